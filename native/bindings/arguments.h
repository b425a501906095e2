// Converts Python arguments for the native API: views of arrays and scalars, axes, flags, integers, strings.
// Functions return false for arguments that may be invalid, without an error set, and the planner raises the
// error. They never run code of user classes. Only the planner does, so that this code runs once and its
// exceptions propagate.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

#include "../api.h"
#include "element_types.h"
#include "numpy.h"
#include "released.h"

namespace maxops {

inline bool is_integer(int type) {
    return kernels_of(type).nan == 0 && type != static_cast<int>(Type::bool_);
}

inline bool is_given(PyObject* object) {
    return object != nullptr && object != Py_None;
}

extern PyTypeObject* memory_map;  // numpy.memmap

// Returns the object if it is an array or a memory map; null otherwise.
inline PyArrayObject* plain_array(PyObject* object) {
    const bool is_plain = object != nullptr && (PyArray_CheckExact(object) || Py_TYPE(object) == memory_map);
    return is_plain ? reinterpret_cast<PyArrayObject*>(object) : nullptr;
}

// The view of an array. Its shape and strides are those of the array, which are freed if `shape` is assigned,
// or a copy in `room`. Only a copy is valid after other code has run: see Release.
inline View view_of(PyArrayObject* array, int type, std::ptrdiff_t* room = nullptr) {
    static_assert(sizeof(npy_intp) == sizeof(std::ptrdiff_t));
    const bool is_native = PyArray_ISNOTSWAPPED(array);
    View view{PyArray_BYTES(array),
              reinterpret_cast<const std::ptrdiff_t*>(PyArray_DIMS(array)),
              reinterpret_cast<const std::ptrdiff_t*>(PyArray_STRIDES(array)),
              PyArray_NDIM(array),
              type,
              !is_native,
              is_native && PyArray_IS_C_CONTIGUOUS(array)};
    if (room != nullptr) own(&view, room);
    return view;
}

// Storage for the element of a scalar, for a view to point to.
struct alignas(8) Item {
    char bytes[8];
};

// Gets a view of an array or NumPy scalar of a supported type. Arrays are read inline.
bool read_numpy_scalar(PyObject* object, View* view, Item* item);
inline bool read_typed(PyObject* object, View* view, Item* item) {
    PyArrayObject* array = plain_array(object);
    if (array == nullptr) return read_numpy_scalar(object, view, item);
    const int type = type_of(array);
    if (type >= 0) *view = view_of(array, type);
    return type >= 0;
}

// Whether an object is a Python number, which takes the type of the arrays that it is combined with.
inline bool is_python_scalar(PyObject* object) {
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object);
}
// Converts a Python number to a type: floats are rounded to nearest, all others must be exact.
bool read_python_scalar(PyObject* object, int type, View* view, Item* item);

// Reads the element of an array of rank 0 of this type.
bool read_scalar(const View& view, int type, Item* item);

// Reads a view of rank 0 of an integer type; false for values above the maximum of int64.
bool read_integer_item(const View& item, std::int64_t* value);

// Reads True, False, 0 or 1, of Python or NumPy. Without an argument `value` is unchanged.
bool read_flag(PyObject* object, bool* value);

// Reads a Python or NumPy integer.
bool read_numpy_integer(PyObject* object, std::int64_t* value);
inline bool read_integer(PyObject* object, std::int64_t* value) {
    if (!PyLong_CheckExact(object)) return read_numpy_integer(object, value);
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

// Reads an integer, or a list, a tuple, a range or a 1-D array of one of the types: at most kMaxRank
// integers. The count is 0 for None and for empty sequences.
bool read_axes(PyObject* object, std::uint32_t types, std::int64_t* axes, std::size_t* count);

// Whether an object is a str that equals a text, ignoring case.
bool is_word(PyObject* object, const char* lower);

// Initializes the objects that the functions above compare with; false with an error set. Called once, on
// import.
bool find_argument_types();

}  // namespace maxops
