// NumPy's C API, imported once, by module.cpp.
#pragma once
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL maxops_numpy_api
#ifndef MAXOPS_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

namespace maxops {

inline PyObject* as_object(PyArrayObject* array) {
    return reinterpret_cast<PyObject*>(array);
}

}  // namespace maxops
