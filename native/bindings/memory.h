// New outputs, and what may be written where.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../api.h"
#include "numpy.h"

namespace maxops {

// Outputs of more bytes than this are refused before any work: the system may well promise the memory,
// and end the process when it is touched.
void set_largest_output(std::size_t bytes);

// Whether an array of these sizes is no larger than that.
bool fits_memory(std::size_t itemsize, int rank, const npy_intp* dims);

// The exception for memory that cannot be had: a MemoryError, and none that a signal's handler raised. Null
// with an error set if it cannot be made.
PyObject* out_of_memory_error();
void set_out_of_memory();

// A new array, laid out with `axes` from outermost to innermost, or in C order if null.
// Null with that error set if it cannot be had. `is_mapped`: its memory has been in use before.
PyArrayObject* new_output(int type_number, int rank, const npy_intp* dims, const int* axes, bool* is_mapped);

// Whether an output can be written element by element while the inputs are read: it shares no memory with
// them, but for one that it is in place of.
bool can_write_through(const View& out, const View* inputs, std::size_t count, bool in_place);

}  // namespace maxops
