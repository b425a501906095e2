// Which instruction set's kernels run.
#pragma once
#include <atomic>

#include "../kernels/kernels.h"

namespace maxops {

// Every instruction set that was compiled, best first; the list ends with a null name.
const InstructionSet* instruction_sets();

// The one in use: at first the best that this machine has. Here, since every call asks several times.
extern std::atomic<const InstructionSet*> chosen;
const InstructionSet& choose_best();
inline const InstructionSet& current() {
    const InstructionSet* set = chosen.load(std::memory_order_relaxed);
    return set != nullptr ? *set : choose_best();
}

// False if no such set was compiled or this machine does not have it.
bool use(const char* name);

}  // namespace maxops
