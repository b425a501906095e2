// Max and ReduceMax on NumPy's arrays.
#include "operators.h"

#include <algorithm>
#include <vector>

#include "calls.h"
#include "scratch.h"

namespace maxops {
namespace {

// ---------------------------------------------------------------------------- Max

// Arrays of one shape, contiguous and native, to an output like them.
bool fold_flat(const Run& run, PyArrayObject* const* arrays, std::size_t count, PyArrayObject* out,
               std::size_t n) {
    const std::size_t itemsize = run.kernels.itemsize, bytes = n * itemsize * (count + 1);
    if (run.may_stream && bytes >= kStreamedBytes) {
        std::vector<Operand> operands;
        for (std::size_t k = 0; k < count; ++k) operands.push_back(operand_of(arrays[k], PyArray_NDIM(out)));
        operands.push_back(operand_of(out, PyArray_NDIM(out)));
        Shape shape;
        shape.rank = PyArray_NDIM(out);
        std::copy(PyArray_DIMS(out), PyArray_DIMS(out) + shape.rank, shape.size);
        return fold(run, shape, operands);
    }
    return in_shares(run, n, task_items(n, itemsize * (count + 1), kTaskAlignment), bytes,
                     [&](std::size_t begin, std::size_t end) {
                         const void* in[Kernels::kMostInputs];
                         for (std::size_t k = 0; k < count; ++k)
                             in[k] = PyArray_BYTES(arrays[k]) + begin * itemsize;
                         run.kernels.fold[count](PyArray_BYTES(out) + begin * itemsize, 0, in, kNoStrides, 1,
                                                 end - begin);
                     });
}

PyObject* maximum(PyObject* const* inputs, Py_ssize_t count, PyObject* out_object) {
    PyArrayObject* first = count > 0 ? plain_array(inputs[0]) : nullptr;
    if (first == nullptr) return kUnclear;
    const int type = type_of(first);
    if (type < 0) return kUnclear;

    Shape shape;
    shape.rank = PyArray_NDIM(first);
    bool alike = true;  // of one shape, contiguous and native
    for (Py_ssize_t k = 0; k < count; ++k) {
        PyArrayObject* input = plain_array(inputs[k]);
        if (input == nullptr || type_of(input) != type) return kUnclear;
        alike = alike && PyArray_IS_C_CONTIGUOUS(input) && PyArray_ISNOTSWAPPED(input) &&
                PyArray_SAMESHAPE(input, first);
        shape.rank = std::max(shape.rank, PyArray_NDIM(input));
    }
    auto arrays = reinterpret_cast<PyArrayObject* const*>(inputs);
    npy_intp dims[kMaxRank];
    if (alike) {
        std::copy(PyArray_DIMS(first), PyArray_DIMS(first) + shape.rank, dims);
    } else {
        std::fill(dims, dims + shape.rank, 1);
        for (Py_ssize_t k = 0; k < count; ++k) {
            const int rank = PyArray_NDIM(arrays[k]), lead = shape.rank - rank;
            for (int axis = 0; axis < rank; ++axis) {
                npy_intp size = PyArray_DIM(arrays[k], axis);
                npy_intp& dim = dims[lead + axis];
                if (size == dim || size == 1) continue;
                if (dim != 1) return kUnclear;
                dim = size;
            }
        }
    }
    Output output(out_object, type, shape.rank, dims);
    if (!output.is_clear()) return kUnclear;
    const Kernels& kernels = kernels_of(type);
    if (alike && output.is_flat() && count <= Kernels::kMostInputs && kernels.fold[count] != nullptr) {
        // the short way: nothing to align, order or merge
        PyArrayObject* out = output.prepare(arrays, count, true, nullptr);
        if (out == nullptr) return kUnclear;
        const auto n = static_cast<std::size_t>(PyArray_SIZE(out));
        if (!run_released(PyArray_NBYTES(out) * (count + 1), [&] {
                return fold_flat({kernels, poll_signals, output.is_mapped()}, arrays,
                                 static_cast<std::size_t>(count), out, n);
            }))
            return output.fail();
        return output.result();
    }

    std::copy(dims, dims + shape.rank, shape.size);
    std::vector<Operand> operands;
    operands.reserve(static_cast<std::size_t>(count) + 1);
    for (Py_ssize_t k = 0; k < count; ++k) operands.push_back(operand_of(arrays[k], shape.rank));
    int axes[kMaxRank];
    memory_order(shape, operands.data(), operands.size(), axes);
    PyArrayObject* out = output.prepare(arrays, count, true, axes);
    if (out == nullptr) return kUnclear;
    operands.push_back(operand_of(out, shape.rank));
    const npy_intp bytes = PyArray_NBYTES(out) * (count + 1);
    if (!run_released(bytes,
                      [&] { return fold({kernels, poll_signals, output.is_mapped()}, shape, operands); }))
        return output.fail();
    return output.result();
}

// ---------------------------------------------------------------------------- ReduceMax

// Marks the reduced axes; false if they are not clearly valid. `all` if the axes are absent or empty.
bool mark_axes(PyObject* axes, int rank, bool* reduced, bool* all) {
    *all = axes == nullptr || axes == Py_None || (PyTuple_CheckExact(axes) && PyTuple_GET_SIZE(axes) == 0);
    std::fill(reduced, reduced + rank, *all);
    if (*all) return true;
    const bool is_tuple = PyTuple_CheckExact(axes);
    const Py_ssize_t count = is_tuple ? PyTuple_GET_SIZE(axes) : 1;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* item = is_tuple ? PyTuple_GET_ITEM(axes, i) : axes;
        if (!PyLong_CheckExact(item)) return false;
        int overflow = 0;
        long axis = PyLong_AsLongAndOverflow(item, &overflow);
        if (overflow != 0 || axis < -rank || axis >= rank) return false;
        if (axis < 0) axis += rank;
        if (reduced[axis]) return false;
        reduced[axis] = true;
    }
    return true;
}

// Contiguous data as `before` blocks of `length` rows of `after` elements, reduced along `length`.
struct Rows {
    std::size_t before = 1, length = 1, after = 1;
};

// Whether the reduced axes stand together, so that the data is such blocks.
bool are_rows(PyArrayObject* data, const bool* reduced, Rows* rows) {
    int axis = 0;
    const int rank = PyArray_NDIM(data);
    for (; axis < rank && !reduced[axis]; ++axis)
        rows->before *= static_cast<std::size_t>(PyArray_DIM(data, axis));
    for (; axis < rank && reduced[axis]; ++axis)
        rows->length *= static_cast<std::size_t>(PyArray_DIM(data, axis));
    for (; axis < rank && !reduced[axis]; ++axis)
        rows->after *= static_cast<std::size_t>(PyArray_DIM(data, axis));
    return axis == rank;
}

void reduce_rows(const Kernels& kernels, const char* data, const Rows& rows, char* out) {
    char* keys = scratch<SmallReduceBuffers>().keys;
    const std::size_t outputs = rows.before * rows.after, block = rows.after * kernels.itemsize;
    kernels.start(keys, outputs);
    if (rows.after == 1) {
        const auto stride = static_cast<std::ptrdiff_t>(rows.length * kernels.itemsize);
        kernels.rows(keys, data, stride, rows.before, rows.length);
    } else {
        for (std::size_t i = 0; i < rows.before; ++i)
            kernels.columns(keys + i * block, data + i * block * rows.length,
                            static_cast<std::ptrdiff_t>(block), rows.length, rows.after);
    }
    kernels.finish(out, keys, outputs);
}

PyObject* reduce_max(PyObject* data_object, PyObject* axes, PyObject* keepdims, PyObject* noop,
                     PyObject* out_object, PyObject* initial_object) {
    PyArrayObject* data = plain_array(data_object);
    if (data == nullptr) return kUnclear;
    const int type = type_of(data), rank = PyArray_NDIM(data);
    bool reduced[kMaxRank], all = false;
    if (type < 0 || !mark_axes(axes, rank, reduced, &all)) return kUnclear;
    if (keepdims != nullptr && keepdims != Py_True && keepdims != Py_False) return kUnclear;
    if (noop != nullptr && noop != Py_False && (noop != Py_True || all)) return kUnclear;
    const bool keeps = keepdims != Py_False;
    Initial initial;
    if (!initial.read(initial_object, type)) return kUnclear;

    npy_intp dims[kMaxRank];
    int out_rank = 0;
    for (int axis = 0; axis < rank; ++axis) {
        if (!reduced[axis])
            dims[out_rank++] = PyArray_DIM(data, axis);
        else if (keeps)
            dims[out_rank++] = 1;
    }
    Output output(out_object, type, out_rank, dims);
    if (!output.is_clear()) return kUnclear;

    const Kernels& kernels = kernels_of(type);
    const npy_intp bytes = PyArray_NBYTES(data);
    Rows rows;
    if (bytes > 0 && bytes < kKeepsGil && output.is_flat() && PyArray_IS_C_CONTIGUOUS(data) &&
        PyArray_ISNOTSWAPPED(data) && are_rows(data, reduced, &rows) &&
        !initial.is_given()) {  // the short way, for small arrays
        PyArrayObject* out = output.prepare(&data, 1, false, nullptr);
        if (out == nullptr) return kUnclear;
        reduce_rows(kernels, PyArray_BYTES(data), rows, PyArray_BYTES(out));
        return output.result();
    }
    Shape shape;
    shape.rank = rank;
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, shape.size);
    Operand operands[2] = {operand_of(data, rank), {}};
    auto& [from, to] = operands;

    // A new output is laid out as the data is, without the reduced axes.
    int axes_out[kMaxRank];
    if (!all) {
        int order[kMaxRank], place[kMaxRank], kept = 0;
        memory_order(shape, &from, 1, order);
        for (int axis = 0, next = 0; axis < rank; ++axis) place[axis] = reduced[axis] && !keeps ? -1 : next++;
        for (int i = 0; i < rank; ++i)
            if (place[order[i]] >= 0) axes_out[kept++] = place[order[i]];
    }
    PyArrayObject* out = output.prepare(&data, 1, false, all ? nullptr : axes_out);
    if (out == nullptr) return kUnclear;
    if (PyArray_SIZE(out) == 0) return output.result();
    initial.prepare(out);

    if (bytes == 0) {  // an empty set: the lowest value there is
        alignas(8) char keys[8], lowest[8];
        kernels.start(keys, 1);
        kernels.finish(lowest, keys, 1);
        shape.rank = out_rank;
        std::copy(dims, dims + out_rank, shape.size);
        const bool finished = run_released(PyArray_NBYTES(out), [&] {
            const Run run{kernels, poll_signals};
            std::vector<Operand> one{Operand{lowest, {}, false}, operand_of(out, out_rank)};
            return fold(run, shape, one) && initial.fold(run);
        });
        return finished ? output.result() : output.fail();
    }
    to.data = PyArray_BYTES(out);
    to.swapped = !PyArray_ISNOTSWAPPED(out);
    for (int axis = 0, next = 0; axis < rank; ++axis) {
        if (!reduced[axis]) to.strides[axis] = PyArray_DIM(data, axis) == 1 ? 0 : PyArray_STRIDE(out, next);
        if (!reduced[axis] || keeps) ++next;
    }
    if (!run_released(bytes, [&] {
            const Run run{kernels, poll_signals};
            return reduce(run, shape, operands) && initial.fold(run);
        }))
        return output.fail();
    return output.result();
}

const char* const kMaximumNames[] = {"out"};
const char* const kReduceMaxNames[] = {"data", "axes", "keepdims", "noop_with_empty_axes", "out", "initial"};
constexpr Signature kMaximum{kMaximumNames, 1, 0};
constexpr Signature kReduceMax{kReduceMaxNames, 6, 5};

}  // namespace

PyObject* call_maximum(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* out[1];
    if (!sort_arguments(kMaximum, args + positional, 0, keywords, out)) return kUnclear;
    return maximum(args, positional, out[0]);
}

PyObject* call_reduce_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* v[6];
    if (!sort_arguments(kReduceMax, args, positional, keywords, v)) return kUnclear;
    return reduce_max(v[0], v[1], v[2], v[3], v[4], v[5]);
}

}  // namespace maxops
