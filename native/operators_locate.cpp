// Where results stand and which segments are empty, on NumPy's arrays, after the planner has checked the
// call.
#include <algorithm>
#include <vector>

#include "calls.h"
#include "operators.h"
#include "segment_names.h"

namespace maxops {
namespace {

PyArrayObject* new_array(int type_number, int rank, const npy_intp* dims) {
    bool is_mapped = false;
    return new_output(type_number, rank, dims, nullptr, &is_mapped);
}

PyObject* finish(PyArrayObject* made, bool finished) {
    if (!finished) Py_CLEAR(made);
    return reinterpret_cast<PyObject*>(made);
}

bool is_flat(PyArrayObject* array) {
    return PyArray_IS_C_CONTIGUOUS(array) && PyArray_ISNOTSWAPPED(array);
}

// An array for indices, of the values' shape; null if the object is none.
PyArrayObject* places_for(PyArrayObject* values, PyObject* object) {
    PyArrayObject* places = plain_array(object);
    const bool fits = places != nullptr && values != nullptr && is_flat(places) &&
                      PyArray_ISWRITEABLE(places) && type_of(places) == static_cast<int>(Type::int64_) &&
                      PyArray_SAMESHAPE(places, values);
    return fits ? places : nullptr;
}

// The caller's array for indices, a new reference.
PyObject* given_back(PyArrayObject* places, bool finished) {
    return finished ? Py_NewRef(reinterpret_cast<PyObject*>(places)) : nullptr;
}

}  // namespace

// (shape): a new array for indices.
PyObject* call_new_indices(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (positional != 1 || keywords != nullptr || !PyTuple_CheckExact(args[0])) return kUnclear;
    npy_intp dims[kMaxRank];
    const Py_ssize_t rank = PyTuple_GET_SIZE(args[0]);
    if (rank > kMaxRank) return kUnclear;
    for (Py_ssize_t axis = 0; axis < rank; ++axis) {
        dims[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[0], axis));
        if (PyErr_Occurred() || dims[axis] < 0) return kUnclear;
    }
    return reinterpret_cast<PyObject*>(new_array(NPY_INT64, static_cast<int>(rank), dims));
}

// (data, axes, values, indices): the axes are a tuple of numbers in 0..r-1, none twice; the values have the
// data's rank, or lack the axes.
PyObject* call_locate(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (positional != 4 || keywords != nullptr || !PyTuple_CheckExact(args[1])) return kUnclear;
    PyArrayObject *data = plain_array(args[0]), *values = plain_array(args[2]);
    PyArrayObject* indices = places_for(values, args[3]);
    if (data == nullptr || indices == nullptr || type_of(data) < 0 || type_of(values) != type_of(data))
        return kUnclear;
    const int rank = PyArray_NDIM(data);
    Located call;
    call.shape.rank = rank;
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, call.shape.size);
    std::fill(call.is_reduced, call.is_reduced + rank, false);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); ++i) {
        const long axis = PyLong_AsLong(PyTuple_GET_ITEM(args[1], i));
        if (PyErr_Occurred() || axis < 0 || axis >= rank) return kUnclear;
        call.is_reduced[axis] = true;
    }
    const bool keeps = PyArray_NDIM(values) == rank;
    int next = 0;
    for (int axis = 0; axis < rank; ++axis) {
        if (call.is_reduced[axis] && !keeps) continue;
        if (next == PyArray_NDIM(values)) return kUnclear;
        if (PyArray_DIM(values, next++) != (call.is_reduced[axis] ? 1 : PyArray_DIM(data, axis)))
            return kUnclear;
    }
    if (next != PyArray_NDIM(values)) return kUnclear;
    if (PyArray_SIZE(indices) == 0) return given_back(indices, true);
    if (PyArray_SIZE(data) == 0) {
        auto* places = static_cast<std::int64_t*>(PyArray_DATA(indices));
        std::fill(places, places + PyArray_SIZE(indices), -1);
        return given_back(indices, true);
    }
    call.data = operand_of(data, rank);
    call.results = {PyArray_BYTES(values), {}, !PyArray_ISNOTSWAPPED(values)};
    call.places = {PyArray_BYTES(indices), {}, false};
    next = 0;
    for (int axis = 0; axis < rank; ++axis) {
        call.results.strides[axis] = call.is_reduced[axis] ? 0 : PyArray_STRIDE(values, next);
        call.places.strides[axis] = call.is_reduced[axis] ? 0 : PyArray_STRIDE(indices, next);
        if (keeps || !call.is_reduced[axis]) ++next;
    }
    const Run run{kernels_of(type_of(data)), poll_signals};
    return given_back(indices, run_released(PyArray_NBYTES(data), [&] { return locate(run, call); }));
}

// (data, ids or offsets, whether they are offsets, whether they are in order, values, indices): the values
// are contiguous and native.
PyObject* call_locate_segments(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (positional != 6 || keywords != nullptr) return kUnclear;
    PyArrayObject *data = plain_array(args[0]), *names = plain_array(args[1]), *values = plain_array(args[4]);
    PyArrayObject* indices = places_for(values, args[5]);
    if (data == nullptr || names == nullptr || indices == nullptr) return kUnclear;
    const int type = type_of(data), rank = PyArray_NDIM(data);
    const bool by_offsets = args[2] == Py_True, in_order = args[3] == Py_True;
    Segments call;
    if (type < 0 || type_of(values) != type || rank < 1 || PyArray_NDIM(values) != rank || !is_flat(values))
        return kUnclear;
    if (!find_names(names, by_offsets, &call)) return kUnclear;
    if (!std::equal(PyArray_DIMS(data) + 1, PyArray_DIMS(data) + rank, PyArray_DIMS(values) + 1))
        return kUnclear;
    const npy_intp rows = PyArray_DIM(data, 0);
    if (!by_offsets && PyArray_DIM(names, 0) != rows) return kUnclear;
    if (PyArray_SIZE(indices) == 0) return given_back(indices, true);
    call.shape.rank = rank;
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, call.shape.size);
    call.data = operand_of(data, rank);
    call.out = PyArray_BYTES(values);
    call.num_segments = PyArray_DIM(values, 0);
    call.checks = call.trusts = false;
    auto* places = static_cast<std::int64_t*>(PyArray_DATA(indices));
    const Kernels& id_kernels = kernels_of(type_of(names));
    return given_back(indices, run_released(PyArray_NBYTES(data) + PyArray_NBYTES(indices), [&] {
                          bool right = true;
                          if (by_offsets && !offsets_are_right(id_kernels, call, rows, &right)) return false;
                          if (!right) call.shape.size[0] = 0;
                          return locate_segments({kernels_of(type), poll_signals}, id_kernels, call, in_order,
                                                 places);
                      }));
}

// (ids or offsets, whether they are offsets, num_segments)
PyObject* call_empty_segments(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (positional != 3 || keywords != nullptr || !PyLong_CheckExact(args[2])) return kUnclear;
    PyArrayObject* names = plain_array(args[0]);
    const bool by_offsets = args[1] == Py_True;
    const npy_intp count = PyLong_AsSsize_t(args[2]);
    Segments call;
    if (names == nullptr || PyErr_Occurred() || count < 0 || !find_names(names, by_offsets, &call))
        return kUnclear;
    PyArrayObject* made = new_array(NPY_BOOL, 1, &count);
    if (made == nullptr || count == 0) return finish(made, made != nullptr);
    call.shape = {1, {by_offsets ? SIZE_MAX : static_cast<std::size_t>(PyArray_DIM(names, 0))}};
    call.num_segments = count;
    const Kernels& id_kernels = kernels_of(type_of(names));
    return finish(made, run_released(PyArray_NBYTES(names) + count, [&] {
                      return find_empty({id_kernels, poll_signals}, id_kernels, call,
                                        static_cast<std::uint8_t*>(PyArray_DATA(made)));
                  }));
}

// (ids or offsets, whether they are offsets, whether they are in order, limit): whether ids lie in
// 0..limit-1, or offsets run from 0 to the limit. A limit of None: ids may be any that are not negative.
PyObject* call_names_are_right(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (positional != 4 || keywords != nullptr) return kUnclear;
    PyArrayObject* names = plain_array(args[0]);
    const bool by_offsets = args[1] == Py_True, in_order = args[2] == Py_True;
    npy_intp limit = -1;
    if (args[3] != Py_None) {
        int overflow = 0;
        limit = PyLong_CheckExact(args[3]) ? PyLong_AsLongLongAndOverflow(args[3], &overflow) : -1;
        if (limit < 0 || overflow != 0) return kUnclear;
    }
    Segments call;
    if (names == nullptr || !find_names(names, by_offsets, &call)) return kUnclear;
    const Kernels& id_kernels = kernels_of(type_of(names));
    const npy_intp count = PyArray_DIM(names, 0);
    bool right = true;
    std::int64_t highest = -1;
    const bool finished = run_released(PyArray_NBYTES(names), [&] {
        if (by_offsets) return offsets_are_right(id_kernels, call, limit, &right);
        if (!in_order) return find_highest(call, count, true, &highest, &right);
        highest = segments_of_last(id_kernels, call, count) - 1;
        return ids_are_sorted({id_kernels, poll_signals}, call.ids, static_cast<std::size_t>(count), &right);
    });
    if (!finished) return nullptr;
    return PyBool_FromLong(right && (by_offsets || limit < 0 || highest < limit));
}

}  // namespace maxops
