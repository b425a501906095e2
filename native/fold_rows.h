// Max of two inputs of which one has a single element for each row of the other: a column, a scalar, an outer
// product's. The element is held in a register; nothing is repeated in memory.
#pragma once
#include "iterate.h"

namespace maxops {

// Which of two inputs it is; -1 if this way does not serve. The shape is simplified.
int repeated_operand(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands);

class FoldRows {
public:
    FoldRows(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands, int repeated,
             bool streams)
        : kernels_(kernels),
          shape_(shape),
          in_(operands[repeated == 0 ? 1 : 0]),
          items_(operands[static_cast<std::size_t>(repeated)]),
          out_(operands[2]),
          streams_(streams) {}

    // Elements begin to end of the output, in C order.
    void operator()(std::size_t begin, std::size_t end) const;

private:
    const Kernels& kernels_;
    const Shape& shape_;
    const Operand &in_, &items_, &out_;
    const bool streams_;
};

}  // namespace maxops
