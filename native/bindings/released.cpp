#include "released.h"

#include <atomic>

#include "../drivers/system.h"

namespace maxops {

static std::atomic<unsigned long> main_thread;  // the only one on which Python runs signal handlers

// In a forked child, it is the thread that forked.
[[maybe_unused]] static const int at_forks =
    at_fork(nullptr, nullptr, [] { main_thread = PyThread_get_thread_ident(); });

bool is_main_thread() {
    return PyThread_get_thread_ident() == main_thread;
}

bool poll_signals() {
    if (!is_main_thread()) return true;
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return go_on;
}

void Release::add_block(std::size_t count) {
    constexpr std::size_t kBlock = 512;
    const std::size_t size = std::max(count, kBlock);
    std::unique_ptr<std::ptrdiff_t[]> room(new std::ptrdiff_t[size]);
    next_ = room.get();
    blocks_.reset(new Block{std::move(blocks_), std::move(room)});
    left_ = size;
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
