#include "scratch.h"

#include <exception>

#include "system.h"

namespace maxops {

static const ThreadBlock block;

bool reserve_scratch() {
    if (block.get() != nullptr) return true;
    // A thread's first exception also allocates memory, and the process ends if that fails. So allocate it
    // now.
    return block.make(kScratchAlignment, kScratchBytes) && std::uncaught_exceptions() >= 0;
}

char* scratch_bytes() {
    return static_cast<char*>(block.get());
}

}  // namespace maxops
