// NumPy's types and ours.
#pragma once
#include "kernels.h"
#include "numpy.h"

namespace maxops {

// As types.def has them, and as Python calls them.
extern const char* const kTypeNames[kTypes];

// Fills the tables below; false with an error set if NumPy or ml_dtypes lacks a type. Once, on import.
bool find_types();

// NumPy's number for new arrays of a type, and the type of an array: -1 if it is not one of ours.
int number_of(int type);
int type_of(PyArrayObject* array);
int type_of_number(int number);
// Of a NumPy scalar; -1 for any other object too.
int type_of_scalar(PyObject* object);

}  // namespace maxops
