// Allocates new outputs, and determines whether an output may be written in place.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../api.h"
#include "numpy.h"

namespace maxops {

// Larger outputs, in bytes, are rejected before any work, because the operating system may grant the memory
// and kill the process when it writes to it.
void set_largest_output(std::size_t bytes);

// Whether an array of these sizes is within the limit.
bool fits_memory(std::size_t itemsize, int rank, const npy_intp* dims);

// The exception class for failed allocations: a subclass of MemoryError, to distinguish it from exceptions of
// signal handlers. Null with an error set on failure.
PyObject* out_of_memory_error();
void set_out_of_memory();

// Allocates an array, laid out with `axes` from outermost to innermost, or in C order if null. Null with an
// OutOfMemoryError set on failure. `is_mapped` is set if the memory was in use before.
PyArrayObject* new_output(int type_number, int rank, const npy_intp* dims, const int* axes, bool* is_mapped);

// Whether an output can be written element by element while the inputs are read: it shares no memory with
// them, except with an input that it replaces.
bool can_write_through(const View& out, const View* inputs, std::size_t count, bool in_place);

}  // namespace maxops
