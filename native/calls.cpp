#include "calls.h"

#include "operators.h"

namespace maxops {

static unsigned long main_thread;  // the only one that Python runs signals' handlers on

bool poll_signals() {
    if (PyThread_get_thread_ident() != main_thread) return true;
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return go_on;
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
