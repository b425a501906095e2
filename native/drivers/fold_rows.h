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
    // The input of the kernels: `rows` rows of n elements.
    struct Rows {
        const void* in[Kernels::kMostInputs];
        std::ptrdiff_t strides[Kernels::kMostInputs + 1];
        std::size_t rows, n;
    };
    Rows rows_at(const Position& position, std::size_t rows, std::size_t n) const;
    void fold(char* to, const Rows& at) const;

    // Elements begin to end, to where `block` says, or where the output lies.
    void take(std::size_t begin, std::size_t end, char* block) const;
    // The same past the cache, long rows a small piece at a time: so the processor goes on reading while it
    // writes.
    void stream_rows(std::size_t begin, std::size_t end) const;

    const Kernels& kernels_;
    const Shape& shape_;
    const std::vector<Operand>& operands_;
    const bool streams_;
    bool serves_;
    int repeated_ = -1;  // which of two inputs has a single element for each row
};

}  // namespace maxops
