// The slots of every module of maxops (multi-phase initialization, PEP 489).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

// NumPy is in one interpreter of a process alone.
#ifdef Py_mod_multiple_interpreters
#define MAXOPS_ONE_INTERPRETER {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}
#else
#define MAXOPS_ONE_INTERPRETER {0, nullptr}
#endif
// Not Py_mod_gil: it says that a module needs no GIL, and no build of Python without one has run the tests.
#define MAXOPS_MODULE_SLOTS MAXOPS_ONE_INTERPRETER
