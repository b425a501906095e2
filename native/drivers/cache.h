// Memory for large new outputs, whose page faults would cost more than their maximum does.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstddef>

#include "../core/parameters.h"

namespace maxops {

// The handler for NumPy's data allocations (a capsule), made once. Null with an error set if it cannot be.
PyObject* output_handler();

// How many bytes of freed blocks may be kept; 0: none. Those past a new limit go back at once.
void set_cache_limit(std::size_t bytes);

// Gives back what is kept; false if nothing is. An allocation that failed may then be tried again.
bool empty_cache();

struct CacheInfo {
    std::size_t limit, kept, blocks, reused, fresh;
};
CacheInfo cache_info();

}  // namespace maxops
