// Runs a call of the API without exceptions.
#pragma once
#include <new>

#include "../api.h"
#include "cache.h"
#include "scratch.h"

namespace maxops {

// If memory runs out, the output cache is cleared, and the call is repeated: nothing is written before all
// memory is allocated.
template <class Act>
Fault guarded(const Act& act) {
    do {
        if (!reserve_scratch()) continue;
        try {
            return act();
        } catch (const std::bad_alloc&) {
        }
    } while (empty_cache());
    return {Fault::kOutOfMemory};
}

}  // namespace maxops
