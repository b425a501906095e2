// fold() for inputs that run across the output: see fold_tiles.cpp.
#pragma once
#include "iterate.h"

namespace maxops {

// The axis along which inputs run that do not run along the last one; -1 if tiles do not serve: no such
// input, too many, several such axes, or other byte orders. The shape is simplified.
int axis_across(const Kernels& kernels, const Shape& shape, const std::vector<Operand>& operands);

bool fold_tiles(const Run& run, const Shape& shape, const std::vector<Operand>& operands, int across);

}  // namespace maxops
