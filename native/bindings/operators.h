// The operators on NumPy arrays, called from Python.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <cstdint>

#include "../api.h"

namespace maxops {

// The rules of a row of the spec table (maxops.spec).
struct Rules {
    std::uint32_t types = 0, index_types = 0;  // a bit for each type
    Broadcasting broadcasting = Broadcasting::kNumpy;
    bool negative_axes = true;
    bool is_plain = true;        // of a plain function, which accepts tensors and Python numbers as well
    bool is_ufunc = false;       // of numpy.maximum: two inputs, no tensors, results of rank 0 are scalars
    bool ignores_nan = false;    // the default of `nan`
    Py_ssize_t positional = 0;   // how many parameters may be given by position
    std::uint32_t keywords = 0;  // a bit for each parameter that may be given by name

    bool takes(int type) const { return (types >> type & 1) != 0; }
};

// Runs a call with vectorcall arguments. Returns a new reference; null with an error set after Ctrl-C or a
// failed allocation; or null without an error if the call may be invalid, for the planner to check. The
// calling thread has its scratch memory.
using Call = PyObject* (*)(const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                           PyObject* keywords);

// An operator: its parameters in the order of maxops.ops, as in the bits of `keywords` above.
struct OperatorEntry {
    const char* name;
    Call call;
    const char* const* parameters;
    int count;
    Py_ssize_t positional;  // how many of them the plain function takes by position
};
extern const OperatorEntry kOperatorEntries[];
constexpr int kOperators = 3;

// Returns the operator named maximum, reduce_max or segment_max; null for other names.
const OperatorEntry* find_operator(PyObject* name);

// The index of the parameter with this name, or -1.
int place_of_parameter(const OperatorEntry& entry, PyObject* name);

// The rules of the plain function.
Rules plain_rules(const OperatorEntry& entry);

// Creates the Python strings of parameter names; false with an error set. Called once, on import.
bool intern_parameters();

// Whether the planner handles a call that has no result: the call may be invalid, or it ran out of memory,
// for which Python raises a better error. Clears the error.
bool goes_to_python();

// (ids or offsets, whether they are offsets, whether they are sorted, whether negative ids are faults, the
// num_segments that ids must be below or None, rows): returns the first fault as (kind, position, value,
// previous), or None. The kind is "" if another thread has since corrected the faulty value.
PyObject* py_check_indices(PyObject* self, PyObject* const* args, Py_ssize_t count);

// Makes an array of int32 or int64 from ids or offsets of any other integer type. Values of uint64 above 2^63
// - 1 become 2^63 - 1.
PyObject* py_widened(PyObject* self, PyObject* array);

}  // namespace maxops
