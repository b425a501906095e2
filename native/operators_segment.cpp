// SegmentMax on NumPy's arrays.
#include <algorithm>
#include <cstring>

#include "calls.h"
#include "operators.h"
#include "scratch.h"
#include "segment_names.h"

namespace maxops {
namespace {

bool is_given(PyObject* object) {
    return object != nullptr && object != Py_None;
}

bool is_text(PyObject* object, const char* upper, const char* lower) {
    return PyUnicode_CompareWithASCIIString(object, upper) == 0 ||
           PyUnicode_CompareWithASCIIString(object, lower) == 0;
}

// What empty segments hold, and what maxima begin with; false if it is not clear.
bool find_fill(PyObject* fill_mode, const Initial& initial, int type, Segments* call) {
    const Kernels& kernels = kernels_of(type);
    call->first = kernels.lowest;
    if (initial.is_given()) {
        call->fill = call->first = initial.bits();
        return !is_given(fill_mode);
    }
    if (fill_mode == nullptr || !PyUnicode_CheckExact(fill_mode)) return false;
    const bool lowest = is_text(fill_mode, "LOWEST", "lowest");
    call->fill = lowest ? kernels.lowest_finite : 0;
    return lowest || is_text(fill_mode, "ZERO", "zero");
}

struct SegmentArguments {
    PyObject *data, *segment_ids, *num_segments, *fill_mode, *out, *check_ids, *offsets, *sorted, *initial;
};

// What a call of any of these kinds comes to.
PyObject* finish(Output* output, bool finished) {
    return finished ? output->result() : output->fail();
}

// The short way, for small arrays and ids in order: nothing is aligned or shared out. False: the ids are not
// sorted.
bool segment_small(const Kernels& kernels, const Segments& call, const void* ids, std::size_t width) {
    SegmentWalk walk{};
    walk.out = call.out;
    walk.width = width;
    walk.out_stride = static_cast<std::ptrdiff_t>(width * kernels.itemsize);
    walk.num_segments = call.num_segments;
    walk.fill = call.fill;
    walk.gallops = call.trusts;
    walk.checks = call.checks;
    walk.previous = -1;
    walk.scratch = scratch<SegmentBuffers>().kernel;
    kernels.segment[call.id_type](&walk, call.data.data, walk.out_stride, ids, call.shape.size[0]);
    if (walk.is_unsorted) return false;
    kernels.fill(&walk, walk.previous + 1, call.num_segments);
    return true;
}

// `is_new`: nobody reads the output if the call fails.
PyObject* segment_max(const SegmentArguments& given, bool is_new) {
    PyArrayObject* data = plain_array(given.data);
    const bool by_offsets = is_given(given.offsets), in_order = given.sorted != Py_False;
    PyArrayObject* names = plain_array(by_offsets ? given.offsets : given.segment_ids);
    if (data == nullptr || names == nullptr) return kUnclear;
    const int type = type_of(data), rank = PyArray_NDIM(data);
    if (type < 0 || rank < 1 || (by_offsets && (is_given(given.segment_ids) || !in_order))) return kUnclear;
    if (given.sorted != nullptr && given.sorted != Py_True && in_order) return kUnclear;
    if (given.check_ids != nullptr && given.check_ids != Py_True && given.check_ids != Py_False)
        return kUnclear;
    const npy_intp rows = PyArray_DIM(data, 0);
    const Kernels& kernels = kernels_of(type);
    Segments call;
    Initial initial;
    if (!find_names(names, by_offsets, &call)) return kUnclear;
    if (!by_offsets && PyArray_DIM(names, 0) != rows) return kUnclear;
    if (!initial.read(given.initial, type) || !find_fill(given.fill_mode, initial, type, &call))
        return kUnclear;
    const Kernels& id_kernels = kernels_of(type_of(names));
    call.shape.rank = rank;
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, call.shape.size);
    const auto names_bytes = PyArray_NBYTES(names);

    npy_intp segments = -1;
    if (is_given(given.num_segments)) {
        if (!PyLong_CheckExact(given.num_segments)) return kUnclear;
        int overflow = 0;
        segments = PyLong_AsLongLongAndOverflow(given.num_segments, &overflow);
        if (overflow != 0 || segments < 0) return kUnclear;
    }

    // With a new output sorted ids are checked while they are used, and a bad one spoils nothing; nothing may
    // be written to the caller's before all are known to be right. An empty output has no such pass.
    const bool checks = given.check_ids != Py_False;
    call.checks = false;
    call.trusts = !checks && !by_offsets;
    if (by_offsets) {  // looked at in any case, since what is written where hangs on it
        bool right = false;
        if (!run_released(names_bytes, [&] { return offsets_are_right(id_kernels, call, rows, &right); }))
            return nullptr;
        if (!right && checks) return kUnclear;
        if (!right) call.shape.size[0] = 0;
        if (segments < 0) segments = PyArray_DIM(names, 0) - 1;
    } else if (in_order) {
        if (segments < 0) segments = segments_of_last(id_kernels, call, rows);
        if (segments < 0) return kUnclear;
        const bool checks_first = checks && rows > 0 && (!is_new || segments == 0 || PyArray_SIZE(data) == 0);
        call.checks = checks && !checks_first;
        bool right = true;
        if (checks_first && !run_released(names_bytes, [&] {
                return ids_are_sorted({id_kernels, poll_signals}, call.ids, static_cast<std::size_t>(rows),
                                      &right);
            }))
            return nullptr;
        if (!right) return kUnclear;
    } else if (checks || segments < 0) {
        std::int64_t highest = -1;
        bool right = true;
        if (!run_released(names_bytes, [&] { return find_highest(call, rows, checks, &highest, &right); }))
            return nullptr;
        if (!right || highest == INT64_MAX || (checks && segments >= 0 && highest >= segments))
            return kUnclear;
        if (segments < 0) segments = highest + 1;
    }

    npy_intp dims[kMaxRank];
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, dims);
    dims[0] = segments;
    Output output(given.out, type, rank, dims);
    if (!output.is_clear()) return kUnclear;
    PyArrayObject* inputs[] = {data, names};
    PyArrayObject* out = output.is_flat() ? output.prepare(inputs, 2, false, nullptr) : output.make(nullptr);
    if (out == nullptr) return kUnclear;
    if (PyArray_SIZE(out) == 0) return output.result();

    call.data.data = PyArray_BYTES(data);
    call.out = PyArray_BYTES(out);
    call.num_segments = segments;
    const auto elements = static_cast<std::size_t>(PyArray_SIZE(out));
    const npy_intp bytes = PyArray_NBYTES(data) + PyArray_NBYTES(out);
    const bool are_flat = PyArray_IS_C_CONTIGUOUS(data) && PyArray_ISNOTSWAPPED(data) &&
                          PyArray_IS_C_CONTIGUOUS(names) && PyArray_ISNOTSWAPPED(names);
    if (bytes < kKeepsGil && are_flat && in_order && !by_offsets && !initial.is_given())
        return finish(&output, segment_small(kernels, call, PyArray_DATA(names),
                                             elements / static_cast<std::size_t>(segments)));
    call.data = operand_of(data, rank);
    initial.prepare(out);
    bool sorted = true;
    const bool finished = run_released(bytes + names_bytes, [&] {
        const Run run{kernels, poll_signals};
        const bool is_done =
            in_order ? segment(run, id_kernels, call, &sorted) : scatter(run, id_kernels, call);
        return is_done && initial.fold(run);
    });
    return finish(&output, finished && sorted);  // unsorted: unclear, and Python says where
}

const char* const kNames[] = {"data",      "segment_ids", "num_segments", "fill_mode", "out",
                              "check_ids", "offsets",     "sorted",       "initial"};
constexpr Signature kSegmentMax{kNames, 9, 3};

}  // namespace

PyObject* call_segment_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* v[9];
    if (!sort_arguments(kSegmentMax, args, positional, keywords, v)) return kUnclear;
    return segment_max({v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]}, !is_given(v[4]));
}

PyObject* segment_max_into_new(PyObject* data, PyObject* segment_ids, PyObject* num_segments,
                               PyObject* fill_mode, PyObject* out) {
    return segment_max({data, segment_ids, num_segments, fill_mode, out, Py_True, nullptr, nullptr, nullptr},
                       true);
}

}  // namespace maxops
