// The mapping between NumPy's types and the types of maxops.
#pragma once
#include "../kernels/kernels.h"
#include "numpy.h"

namespace maxops {

// The names of the types in Python, in the order of types.def.
extern const char* const kTypeNames[kTypes];

// Fills the tables below; false with an error set if NumPy or ml_dtypes lacks a type. Called once, on import.
bool find_types();

// NumPy's type number for new arrays of a type, and the type of an array, or -1 if it is not supported.
extern int type_numbers[kTypes];
inline int number_of(int type) {
    return type_numbers[type];
}
inline constexpr int kTypeNumbers = 1 << 10;
extern signed char types_by_number[kTypeNumbers];  // the inverse; -1 for unsupported types
inline int type_of_number(int number) {            // -1 for DTypes that users define
    return static_cast<unsigned>(number) < kTypeNumbers ? types_by_number[number] : -1;
}
inline int type_of(PyArrayObject* array) {
    return type_of_number(PyArray_TYPE(array));
}
// The type of a NumPy scalar, or -1 for any other object, including subclasses, which may run code.
int type_of_scalar(PyObject* object);

}  // namespace maxops
