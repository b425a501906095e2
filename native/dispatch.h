// Which instruction set's kernels run.
#pragma once
#include "kernels.h"

namespace maxops {

// Every instruction set that was compiled, best first; the list ends with a null name.
const InstructionSet* instruction_sets();

// The one in use: at first the best that this machine has.
const InstructionSet& current();

// False if no such set was compiled or this machine does not have it.
bool use(const char* name);

}  // namespace maxops
