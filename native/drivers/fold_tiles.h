// fold() for transposed inputs: see fold_tiles.cpp.
#pragma once
#include "iterate.h"

namespace maxops {

// The axis along which the transposed inputs are contiguous. -1 if tiles do not apply: no such input, too
// many, several such axes, other byte orders, or too small a shape. The shape is simplified.
int axis_across(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands);

bool fold_tiles(const Run& run, const Shape& shape, const std::vector<Operand>& operands, int across);

}  // namespace maxops
