// The initial value: an additional element of every maximum.
#pragma once
#include <cstring>
#include <vector>

#include "../api.h"

namespace maxops {

// Folds the initial value into every element of an output. All memory is allocated before anything is
// written.
class Initial {
public:
    // `item` is canonical and native, or null for no initial value.
    Initial(const char* item, const View& out) : is_given_(item != nullptr), out_(out) {
        if (!is_given_) return;
        std::memcpy(item_, item, kernels_of(out.type).itemsize);
        if (out.contiguous) return;
        shape_ = out.shape();
        const Operand output = out.operand(out.rank), one(item_);
        operands_ = {output, one, output};
    }
    Initial(const Initial&) = delete;
    Initial& operator=(const Initial&) = delete;

    // False if the poll stopped the call.
    bool fold(const Run& run) {
        if (!is_given_) return true;
        if (!out_.contiguous) return maxops::fold(run, shape_, operands_);
        const std::size_t n = out_.elements(), itemsize = run.kernels.itemsize;
        return parallel_for(run, n, task_items(n, 2 * itemsize, kTaskAlignment), 2 * n * itemsize,
                            [&](std::size_t begin, std::size_t end) {
                                char* at = out_.data + begin * itemsize;
                                run.kernels.fold_rows_with(at, 0, at, 0, item_, 0, 1, end - begin);
                            });
    }

private:
    const bool is_given_;
    const View& out_;
    alignas(8) char item_[8] = {};
    Shape shape_;
    std::vector<Operand> operands_;
};

}  // namespace maxops
