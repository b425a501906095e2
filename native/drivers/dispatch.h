// The selection of the instruction set, and therefore of the kernels.
#pragma once
#include <atomic>

#include "../kernels/kernels.h"

namespace maxops {

// All compiled instruction sets, from best to worst. The list ends with a null name.
const InstructionSet* instruction_sets();

// The instruction set in use, by default the best one of this machine. Its name is null if this machine
// supports none of them; the module then cannot be imported. Inline, because every call reads it several
// times.
extern std::atomic<const InstructionSet*> chosen;
const InstructionSet& choose_best();
inline const InstructionSet& current() {
    const InstructionSet* set = chosen.load(std::memory_order_relaxed);
    return set != nullptr ? *set : choose_best();
}

// Returns false if this instruction set was not compiled, or if the machine does not support it.
bool use(const char* name);

}  // namespace maxops
