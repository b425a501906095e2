#include "calls.h"

#include <pthread.h>

#include "operators.h"
#include "segment_names.h"

namespace maxops {

static unsigned long main_thread;  // the only one that Python runs signals' handlers on

// In a forked child that is the one that forked, whichever it was.
[[maybe_unused]] static const int at_fork =
    pthread_atfork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });

bool poll_signals() {
    if (PyThread_get_thread_ident() != main_thread) return true;
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return go_on;
}

bool goes_to_python() {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(out_of_memory_error())) return false;
    PyErr_Clear();
    return true;
}

bool Initial::read(PyObject* object, int type) {
    is_given_ = object != nullptr && object != Py_None;
    if (!is_given_) return true;
    PyArrayObject* array = plain_array(object);
    if (array == nullptr || PyArray_NDIM(array) != 0 || type_of(array) != type) return false;
    const Kernels& kernels = kernels_of(type);
    alignas(8) char native[8];
    kernels.gather(native, PyArray_BYTES(array), 0, 1, !PyArray_ISNOTSWAPPED(array));
    const void* in[] = {native};
    kernels.fold[1](item_, 0, in, kNoStrides, 1, 1);
    bits_ = bits_of(item_, kernels.itemsize);
    operands_.reserve(kOperands);
    return true;
}

void Initial::prepare(PyArrayObject* out) {
    if (!is_given_) return;
    shape_.rank = PyArray_NDIM(out);
    std::copy(PyArray_DIMS(out), PyArray_DIMS(out) + shape_.rank, shape_.size);
    const Operand output = operand_of(out, shape_.rank), item{item_, {}, false};
    operands_.assign({output, item, output});
}

bool Initial::fold(const Run& run) {
    return !is_given_ || maxops::fold(run, shape_, operands_);
}

bool sort_arguments(const Signature& signature, PyObject* const* args, Py_ssize_t positional,
                    PyObject* keywords, PyObject** values) {
    std::fill(values, values + signature.count, nullptr);
    if (positional > signature.positional) return false;
    std::copy(args, args + positional, values);
    const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyObject* name = PyTuple_GET_ITEM(keywords, k);
        int place = 0;
        while (place < signature.count && PyUnicode_CompareWithASCIIString(name, signature.names[place]) != 0)
            ++place;
        if (place == signature.count || values[place] != nullptr) return false;
        values[place] = args[positional + k];
    }
    return true;
}

bool find_main_thread() {
    PyObject* threading = PyImport_ImportModule("threading");
    PyObject* thread =
        threading == nullptr ? nullptr : PyObject_CallMethod(threading, "main_thread", nullptr);
    PyObject* ident = thread == nullptr ? nullptr : PyObject_GetAttrString(thread, "ident");
    if (ident != nullptr) main_thread = PyLong_AsUnsignedLong(ident);
    Py_XDECREF(threading);
    Py_XDECREF(thread);
    Py_XDECREF(ident);
    return !PyErr_Occurred();
}

}  // namespace maxops
