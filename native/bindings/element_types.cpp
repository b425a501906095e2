#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "element_types.h"

#include <algorithm>
#include <iterator>

namespace maxops {

extern const char* const kTypeNames[kTypes] = {
#define MAXOPS_TYPE(name, order, ...) #name,
#include "../core/types.def"
};

signed char types_by_number[kTypeNumbers];

int type_numbers[kTypes];

namespace {

PyTypeObject* scalar_types[kTypes];  // NumPy's, never freed

// ml_dtypes has the types that NumPy lacks.
int find_number(PyObject* ml_dtypes, const char* name, PyTypeObject** scalar_type) {
    PyObject* type = PyObject_HasAttrString(ml_dtypes, name) != 0 ? PyObject_GetAttrString(ml_dtypes, name)
                                                                  : PyUnicode_FromString(name);
    PyArray_Descr* descr = nullptr;
    if (type == nullptr || PyArray_DescrConverter(type, &descr) == NPY_FAIL) {
        Py_XDECREF(type);
        return -1;
    }
    int number = descr->type_num;
    *scalar_type = descr->typeobj;
    Py_INCREF(reinterpret_cast<PyObject*>(descr->typeobj));
    Py_DECREF(type);
    Py_DECREF(descr);
    return number;
}

}  // namespace

bool find_types() {
    std::fill(std::begin(types_by_number), std::end(types_by_number), static_cast<signed char>(-1));
    PyObject* const ml_dtypes = PyImport_ImportModule("ml_dtypes");  // stays imported
    if (ml_dtypes == nullptr) return false;
    Py_DECREF(ml_dtypes);
    for (int type = 0; type < kTypes; ++type) {
        int number = find_number(ml_dtypes, kTypeNames[type], scalar_types + type);
        if (number < 0) return false;
        if (number >= static_cast<int>(std::size(types_by_number))) {
            PyErr_Format(PyExc_ImportError, "unexpected NumPy type number of %s: %d", kTypeNames[type],
                         number);
            return false;
        }
        type_numbers[type] = number;
        types_by_number[number] = static_cast<signed char>(type);
    }
    // Both long and long long may be int64.
    static_assert(sizeof(long long) == 8, "long long is int64");
    types_by_number[NPY_LONGLONG] = static_cast<signed char>(Type::int64_);
    types_by_number[NPY_ULONGLONG] = static_cast<signed char>(Type::uint64_);
    return true;
}

int type_of_scalar(PyObject* object) {
    const PyTypeObject* const kind = Py_TYPE(object);
    for (int type = 0; type < kTypes; ++type)
        if (kind == scalar_types[type]) return type;
    if (kind == &PyLongLongArrType_Type) return static_cast<int>(Type::int64_);
    return kind == &PyULongLongArrType_Type ? static_cast<int>(Type::uint64_) : -1;
}

}  // namespace maxops
