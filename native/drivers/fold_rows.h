// Max without buffers for inputs. Each input is contiguous along the rows of the output, or one of two inputs
// has a single element for each row, like a column, a scalar, or one side of an outer product.
#pragma once
#include "iterate.h"

namespace maxops {

class FoldRows {
public:
    // `streams`: the output is contiguous, and its stores bypass the cache.
    FoldRows(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands, bool streams);

    // Whether this class supports the call. The shape is simplified.
    bool serves() const { return serves_; }

    // Computes elements [begin, end) of the output, in C order.
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

    // Computes elements [begin, end) into `block`, or into the output if null.
    void take(std::size_t begin, std::size_t end, char* block) const;
    // Streams long rows in small pieces, so that the processor keeps reading while it writes.
    void stream_rows(std::size_t begin, std::size_t end) const;

    const Kernels& kernels_;
    const Shape& shape_;
    const std::vector<Operand>& operands_;
    const bool streams_;
    bool serves_;
    int repeated_ = -1;  // the index of the input with a single element for each row; -1: none
};

}  // namespace maxops
