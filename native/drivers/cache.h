// The cache of memory for large new outputs, whose page faults would cost more than the computation.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>

#include "../core/parameters.h"

namespace maxops {

// The capsule with the handler for NumPy's data allocations, created once. Null with an error set on failure.
PyObject* output_handler();

// Sets the maximum size of the cache in bytes; 0 disables it. Blocks above a new limit are released at once.
void set_cache_limit(std::size_t bytes);

// Releases all cached blocks; false if there are none. A failed allocation may be retried afterwards.
bool empty_cache();

struct CacheInfo {
    std::size_t limit, kept, blocks, reused, fresh;
};
CacheInfo cache_info();

}  // namespace maxops
