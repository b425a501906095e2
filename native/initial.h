// One more element of every maximum, that the caller gives.
#pragma once
#include <cstring>
#include <vector>

#include "api.h"

namespace maxops {

// Folds it into every element of an output. What that needs is had before anything is written: memory may
// end.
class Initial {
public:
    // `item`: canonical and native; null for none.
    Initial(const char* item, const View& out) : is_given_(item != nullptr) {
        if (!is_given_) return;
        std::memcpy(item_, item, kernels_of(out.type).itemsize);
        shape_ = out.shape();
        const Operand output = out.operand(out.rank), one{item_, {}, false};
        operands_ = {output, one, output};
    }
    Initial(const Initial&) = delete;
    Initial& operator=(const Initial&) = delete;

    // False if the poll stopped it.
    bool fold(const Run& run) { return !is_given_ || maxops::fold(run, shape_, operands_); }

private:
    const bool is_given_;
    alignas(8) char item_[8] = {};
    Shape shape_;
    std::vector<Operand> operands_;
};

}  // namespace maxops
