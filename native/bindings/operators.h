// The operators on NumPy's arrays, as Python calls them.
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
    bool is_plain = true;        // of a plain function, which takes tensors and Python's numbers too
    bool is_ufunc = false;       // of numpy.maximum: two inputs, no tensors, a scalar at rank 0
    bool ignores_nan = false;    // without the argument `nan`
    Py_ssize_t positional = 0;   // how many parameters may be given by position
    std::uint32_t keywords = 0;  // a bit for each parameter that may be given by name

    bool takes(int type) const { return (types >> type & 1) != 0; }
};

// A call with arguments as vectorcall has them. The result is a new reference; null with an error set, if
// Ctrl-C ended it or memory did; or null without one: the call is not clearly valid, and the planner has to
// look at it. The calling thread has its scratch.
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

// The operator of a name: maximum, reduce_max or segment_max; null for any other.
const OperatorEntry* find_operator(PyObject* name);

// The place of a parameter of this name, or -1.
int place_of_parameter(const OperatorEntry& entry, PyObject* name);

// The rules of the plain function.
Rules plain_rules(const OperatorEntry& entry);

// Python's strings for the parameters' names; false with an error set. Once, on import.
bool intern_parameters();

// Whether a call without a result goes on to the planner: it is not clearly valid, or memory ended, of which
// Python says more; that error is cleared.
bool goes_to_python();

// (ids or offsets, whether they are offsets, whether they are in order, whether negative ones are faults,
// num_segments that ids have to lie below or None, rows): the first fault as (kind, position, value,
// previous), or None. The kind is "" if there was a fault and another thread has changed it.
PyObject* py_check_indices(PyObject* self, PyObject* const* args, Py_ssize_t count);

// Makes an array of int32 or int64 from ids or offsets of any integer type. Those of uint64 past 2^63 - 1
// become that.
PyObject* py_widened(PyObject* self, PyObject* array);

}  // namespace maxops
