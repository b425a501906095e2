// The operators on NumPy's arrays.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace maxops {

// A call with arguments as vectorcall has them. The result is a new reference; null with an error set, if
// Ctrl-C ended it or memory did; or null without one: the call is not clearly valid, and the Python function
// has to look at it. May throw std::bad_alloc, before anything is written. The calling thread has its
// scratch.
using Call = PyObject* (*)(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);

PyObject* call_maximum(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_reduce_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_segment_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);

// Whether a call without a result goes on to Python: it is not clearly valid, or memory ended, of which
// Python says more; that error is cleared.
bool goes_to_python();

// What an engine asks for beside the maxima: see operators_locate.cpp. Null without an error set: the
// arguments are not what they should be.
PyObject* call_new_indices(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_locate(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_locate_segments(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_empty_segments(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);
PyObject* call_names_are_right(PyObject* const* args, Py_ssize_t positional, PyObject* keywords);

// SegmentMax into an array that nobody reads if the call fails: ids are checked in the same pass.
PyObject* segment_max_into_new(PyObject* data, PyObject* segment_ids, PyObject* num_segments,
                               PyObject* fill_mode, PyObject* out);

// Finds the thread that signals' handlers run on; false with an error set. Once, on import.
bool find_main_thread();

}  // namespace maxops
