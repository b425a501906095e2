// NumPy's types and ours.
#pragma once
#include "../kernels/kernels.h"
#include "numpy.h"

namespace maxops {

// As types.def has them, and as Python calls them.
extern const char* const kTypeNames[kTypes];

// Fills the tables below; false with an error set if NumPy or ml_dtypes lacks a type. Once, on import.
bool find_types();

// NumPy's number for new arrays of a type, and the type of an array: -1 if it is not one of ours.
extern int type_numbers[kTypes];
inline int number_of(int type) {
    return type_numbers[type];
}
inline constexpr int kTypeNumbers = 1 << 10;
extern signed char types_by_number[kTypeNumbers];  // the other way round, -1 for types that are not ours
inline int type_of_number(int number) {            // which is -1 for types that users define
    return static_cast<unsigned>(number) < kTypeNumbers ? types_by_number[number] : -1;
}
inline int type_of(PyArrayObject* array) {
    return type_of_number(PyArray_TYPE(array));
}
// The type of a NumPy scalar; -1 for any other object, also of a subclass, which may run code.
int type_of_scalar(PyObject* object);

}  // namespace maxops
