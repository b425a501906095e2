// The slots of every module of maxops (multi-phase initialization, PEP 489).
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

// NumPy supports one interpreter in a process.
#ifdef Py_mod_multiple_interpreters
#define MAXOPS_ONE_INTERPRETER {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}
#else
#define MAXOPS_ONE_INTERPRETER {0, nullptr}
#endif
// No Py_mod_gil: it declares that a module needs no GIL, but the tests have not run on free-threaded Python.
#define MAXOPS_MODULE_SLOTS MAXOPS_ONE_INTERPRETER
