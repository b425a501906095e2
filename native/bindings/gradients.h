// The gradients of the operators, for tensors that calls here accept: see tensors.h.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace maxops {

// (first, needed, length, inner, ids, by_offsets, maxima, gradient, *data): for each array of data whose bit
// in `needed` is set, the gradients of its elements from those of their maxima. Returns a tuple of tensors
// (of arrays, if all arguments are arrays), with None for the other data. Data are rows of `inner` elements.
// Maxima are rows as well: one for each `length` rows of data, or for each segment of the ids or offsets. The
// elements that equal a maximum share its gradient equally, or the first of them gets all of it. Shares of 16
// bits are computed in float32, and are not rounded if the gradient of the data is float32. If the data are
// one row, an array whose gradients are not needed may have a single element, which is repeated. Returns None
// if Python must compute the gradients: for types other than float16, bfloat16, float32 and float64, ids
// other than int32 and int64, arrays not in C order, more than 8 arrays, 2^31 or more elements of data, and
// tensors of calls that release the GIL.
PyObject* py_spread(PyObject* self, PyObject* const* args, Py_ssize_t count);

}  // namespace maxops
