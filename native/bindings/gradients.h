// The gradients of the operators, of tensors that are taken here: see tensors.h.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace maxops {

// (first, needed, length, inner, ids, by_offsets, maxima, gradient, *data): for each array of data whose bit
// in `needed` is set, what its elements have of the gradients of their maxima, as a tuple of tensors (of
// arrays, if all of the arguments are arrays) and None. Data are rows of `inner` elements. Their maxima are
// rows, too: one for `length` rows of data, or the one that a row's id says, or offsets. Each element that
// holds the maximum has an equal share of its gradient, or all of it goes to the first. None where Python has
// to see to it: of other types than float32 and float64, ids of others than int32 and int64, what does not
// lie in C order, more than 8 arrays or 2^31 elements of data, and tensors of calls that release the GIL.
PyObject* py_spread(PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace maxops
