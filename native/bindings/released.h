// Running without the GIL, and Ctrl-C meanwhile.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "../api.h"
#include "../memory.h"

namespace maxops {

// False once a signal's handler raised: then the error is set.
bool poll_signals();

// Whether this is the thread that signals' handlers run on, which also ends the interpreter.
bool is_main_thread();

// Finds the thread that signals' handlers run on; false with an error set. Once, on import.
bool find_main_thread();

// work() without the GIL, unless it touches so few bytes that it is over before another thread could use it.
template <class Work>
Fault run_released(std::size_t bytes, const Work& work) {
    PyThreadState* state = bytes < kKeepsGilBytes ? nullptr : PyEval_SaveThread();
    const Fault fault = work();
    if (state != nullptr) PyEval_RestoreThread(state);
    if (fault.kind == Fault::kOutOfMemory) set_out_of_memory();
    return fault;
}

}  // namespace maxops
