// Max where no input needs a buffer: each runs along the rows of the output, or has a single element for each
// row, as a column has, a scalar, or one side of an outer product.
#pragma once
#include "iterate.h"

namespace maxops {

class FoldRows {
public:
    // `streams`: the output, which is one run of memory, goes past the cache.
    FoldRows(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands, bool streams);

    // Whether this way serves. The shape is simplified.
    bool serves() const { return serves_; }

    // Elements begin to end of the output, in C order.
    void operator()(std::size_t begin, std::size_t end) const;

private:
    // The same, to where `block` says, or where the output lies.
    void take(std::size_t begin, std::size_t end, char* block) const;

    const Kernels& kernels_;
    const Shape& shape_;
    const std::vector<Operand>& operands_;
    const bool streams_;
    bool serves_;
    int repeated_ = -1;  // which of two inputs has a single element for each row
};

}  // namespace maxops
