// Python's arguments as the native API takes them: views of arrays and scalars, axes, flags, integers, words.
// Each returns false for what is not clearly valid, without an error set: the planner says what is wrong.
// None runs code of a user's class: the planner does, so that it runs once and its exceptions come out.
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

// The array itself, or a memory map, which is one; null for anything else.
inline PyArrayObject* plain_array(PyObject* object) {
    const bool is_plain = object != nullptr && (PyArray_CheckExact(object) || Py_TYPE(object) == memory_map);
    return is_plain ? reinterpret_cast<PyArrayObject*>(object) : nullptr;
}

// An array's shape and strides: its own, which assigning to `shape` frees, or a copy if there is room for
// one. Only views of a copy outlive what lets other code run: see Release.
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

// Room for a scalar's element, which a view then points to.
struct alignas(8) Item {
    char bytes[8];
};

// A view of an array or NumPy scalar of one of our types. Arrays are read here, without a call.
bool read_numpy_scalar(PyObject* object, View* view, Item* item);
inline bool read_typed(PyObject* object, View* view, Item* item) {
    PyArrayObject* array = plain_array(object);
    if (array == nullptr) return read_numpy_scalar(object, view, item);
    const int type = type_of(array);
    if (type >= 0) *view = view_of(array, type);
    return type >= 0;
}

// Whether an object is one of Python's own numbers, which take the type of the arrays beside them.
inline bool is_python_scalar(PyObject* object) {
    return PyFloat_CheckExact(object) || PyLong_CheckExact(object) || PyBool_Check(object);
}
// A Python number in a type: a float to nearest beside floats, every other one exactly.
bool read_python_scalar(PyObject* object, int type, View* view, Item* item);

// The element of an array of rank 0 of this type.
bool read_scalar(const View& view, int type, Item* item);

// Reads a view of rank 0 of one of our integer types; false above the highest int64.
bool read_integer_item(const View& item, std::int64_t* value);

// Reads True, False, 0 or 1, of Python or NumPy. Without an argument `value` is unchanged.
bool read_flag(PyObject* object, bool* value);

// An integer of Python's or NumPy's.
bool read_numpy_integer(PyObject* object, std::int64_t* value);
inline bool read_integer(PyObject* object, std::int64_t* value) {
    if (!PyLong_CheckExact(object)) return read_numpy_integer(object, value);
    int overflow = 0;
    *value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

// An integer, or several in a list, a tuple, a range or a 1-D array of one of the types: at most kMaxRank.
// None, and none of them, are 0.
bool read_axes(PyObject* object, std::uint32_t types, std::int64_t* axes, std::size_t* count);

// Whether an object is a str that reads so, in any case.
bool is_word(PyObject* object, const char* lower);

// Finds what the above compare with; false with an error set. Once, on import.
bool find_argument_types();

}  // namespace maxops
