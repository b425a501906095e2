#include "operators.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "element_types.h"
#include "memory.h"

namespace maxops {
namespace {

// ---------------------------------------------------------------------------- running without the GIL

// Below this many bytes a call is over before another thread could use the GIL.
constexpr npy_intp kKeepsGil = 32768;

unsigned long main_thread;  // the only one that Python runs signals' handlers on

bool poll_signals() {
    if (PyThread_get_thread_ident() != main_thread) return true;
    PyGILState_STATE state = PyGILState_Ensure();
    bool go_on = PyErr_CheckSignals() == 0;
    PyGILState_Release(state);
    return go_on;
}

// work() without the GIL, if it is long enough; false with an error set if a signal stopped it.
template <class Work>
bool run_released(npy_intp bytes, const Work& work) {
    PyThreadState* state = bytes < kKeepsGil ? nullptr : PyEval_SaveThread();
    bool finished = false, has_memory = true;
    try {
        finished = work();
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    if (state != nullptr) PyEval_RestoreThread(state);
    if (!has_memory) PyErr_NoMemory();
    return finished;
}

// What the calls below give back: an array, or nothing; and nothing may mean "not clearly valid".
PyObject* const kUnclear = nullptr;

PyArrayObject* plain_array(PyObject* object) {
    return object != nullptr && PyArray_CheckExact(object) ? reinterpret_cast<PyArrayObject*>(object)
                                                           : nullptr;
}

// The operand for an array, its axes aligned with the last axes of a shape of rank `rank`.
Operand operand_of(PyArrayObject* array, int rank) {
    Operand operand;
    operand.data = PyArray_BYTES(array);
    operand.swapped = !PyArray_ISNOTSWAPPED(array);
    const int lead = rank - PyArray_NDIM(array);
    for (int axis = 0; axis < rank; ++axis) {
        bool moves = axis >= lead && PyArray_DIM(array, axis - lead) != 1;
        operand.strides[axis] = moves ? PyArray_STRIDE(array, axis - lead) : 0;
    }
    return operand;
}

// The output of a call: the caller's, a new one, or one that is copied into the caller's at the end.
class Output {
public:
    Output(PyObject* wanted, int type, int rank, const npy_intp* dims) : type_(type), rank_(rank) {
        std::copy(dims, dims + rank, dims_);
        is_clear_ = wanted == nullptr || wanted == Py_None;
        if (is_clear_) return;
        out_ = plain_array(wanted);
        is_clear_ = out_ != nullptr && type_of(out_) == type && PyArray_ISWRITEABLE(out_) &&
                    PyArray_NDIM(out_) == rank && std::equal(dims, dims + rank, PyArray_DIMS(out_));
    }
    // No destructor: when the interpreter ends a thread that waits for the GIL, it unwinds the stack without
    // the GIL, and nothing may be released. What was made is given by result(), or back by fail().
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    bool is_clear() const { return is_clear_; }
    bool is_flat() const {
        return out_ == nullptr || (PyArray_IS_C_CONTIGUOUS(out_) && PyArray_ISNOTSWAPPED(out_));
    }

    // The array to write; null if it cannot be had.
    PyArrayObject* prepare(PyArrayObject* const* inputs, Py_ssize_t count, bool in_place, const int* axes) {
        if (out_ == nullptr || !can_write_through(out_, inputs, count, in_place)) return make(axes);
        is_mapped_ = true;  // or the first to be touched here: it cannot be known
        for (Py_ssize_t k = 0; k < count; ++k)
            is_mapped_ = is_mapped_ && PyArray_DATA(inputs[k]) != PyArray_DATA(out_);
        return out_;
    }
    // The same, though the caller's own would do.
    PyArrayObject* make(const int* axes) {
        made_ = new_output(number_of(type_), rank_, dims_, axes, &is_mapped_);
        return made_;
    }
    // Whether the array to write has pages already, and is none of the inputs.
    bool is_mapped() const { return is_mapped_; }

    // A new reference to what the call returns.
    PyObject* result() {
        if (out_ == nullptr) {
            PyArrayObject* made = made_;
            made_ = nullptr;
            return reinterpret_cast<PyObject*>(made);
        }
        const bool copied = made_ == nullptr || PyArray_CopyInto(out_, made_) == 0;
        Py_CLEAR(made_);
        return copied ? Py_NewRef(reinterpret_cast<PyObject*>(out_)) : nullptr;
    }
    PyObject* fail() {
        Py_CLEAR(made_);
        return nullptr;
    }

private:
    const int type_, rank_;
    npy_intp dims_[kMaxRank];
    bool is_clear_;
    PyArrayObject* out_ = nullptr;   // the caller's, borrowed
    PyArrayObject* made_ = nullptr;  // ours
    bool is_mapped_ = false;
};

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
    return in_shares(
        run, n, task_items(n, itemsize * (count + 1)), bytes, [&](std::size_t begin, std::size_t end) {
            const void* in[Kernels::kMostInputs];
            for (std::size_t k = 0; k < count; ++k) in[k] = PyArray_BYTES(arrays[k]) + begin * itemsize;
            run.kernels.fold[count](PyArray_BYTES(out) + begin * itemsize, 0, in, kNoStrides, 1, end - begin);
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
    alignas(64) char keys[kKeepsGil];  // as much as the data is at most
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
                     PyObject* out_object) {
    PyArrayObject* data = plain_array(data_object);
    if (data == nullptr) return kUnclear;
    const int type = type_of(data), rank = PyArray_NDIM(data);
    bool reduced[kMaxRank], all = false;
    if (type < 0 || !mark_axes(axes, rank, reduced, &all)) return kUnclear;
    if (keepdims != nullptr && keepdims != Py_True && keepdims != Py_False) return kUnclear;
    if (noop != nullptr && noop != Py_False && (noop != Py_True || all)) return kUnclear;
    const bool keeps = keepdims != Py_False;

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
        PyArray_ISNOTSWAPPED(data) && are_rows(data, reduced, &rows)) {  // the short way, for small arrays
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

    if (bytes == 0) {  // an empty set: the lowest value there is
        alignas(8) char keys[8], lowest[8];
        kernels.start(keys, 1);
        kernels.finish(lowest, keys, 1);
        shape.rank = out_rank;
        std::copy(dims, dims + out_rank, shape.size);
        std::vector<Operand> one{Operand{lowest, {}, false}, operand_of(out, out_rank)};
        bool finished =
            run_released(PyArray_NBYTES(out), [&] { return fold({kernels, poll_signals}, shape, one); });
        return finished ? output.result() : output.fail();
    }
    to.data = PyArray_BYTES(out);
    to.swapped = !PyArray_ISNOTSWAPPED(out);
    for (int axis = 0, next = 0; axis < rank; ++axis) {
        if (!reduced[axis]) to.strides[axis] = PyArray_DIM(data, axis) == 1 ? 0 : PyArray_STRIDE(out, next);
        if (!reduced[axis] || keeps) ++next;
    }
    if (!run_released(bytes, [&] { return reduce({kernels, poll_signals}, shape, operands); }))
        return output.fail();
    return output.result();
}

// ---------------------------------------------------------------------------- SegmentMax

bool is_text(PyObject* object, const char* upper, const char* lower) {
    return PyUnicode_CompareWithASCIIString(object, upper) == 0 ||
           PyUnicode_CompareWithASCIIString(object, lower) == 0;
}

// `is_new`: nobody reads the output if the call fails.
PyObject* segment_max(PyObject* data_object, PyObject* ids_object, PyObject* num_segments,
                      PyObject* fill_mode, PyObject* out_object, PyObject* check_ids, bool is_new) {
    PyArrayObject* data = plain_array(data_object);
    PyArrayObject* ids = plain_array(ids_object);
    if (data == nullptr || ids == nullptr || fill_mode == nullptr) return kUnclear;
    const int type = type_of(data), id_type = type_of(ids), rank = PyArray_NDIM(data);
    const bool is_wide = id_type == static_cast<int>(Type::int64_);
    if (type < 0 || rank < 1 || (!is_wide && id_type != static_cast<int>(Type::int32_))) return kUnclear;
    const npy_intp rows = PyArray_DIM(data, 0);
    if (PyArray_NDIM(ids) != 1 || PyArray_DIM(ids, 0) != rows) return kUnclear;
    if (check_ids != nullptr && check_ids != Py_True && check_ids != Py_False) return kUnclear;
    if (!PyUnicode_CheckExact(fill_mode)) return kUnclear;
    const bool lowest = is_text(fill_mode, "LOWEST", "lowest");
    if (!lowest && !is_text(fill_mode, "ZERO", "zero")) return kUnclear;

    const Kernels& kernels = kernels_of(type);
    const Kernels& id_kernels = kernels_of(id_type);
    const Operand id_operand = operand_of(ids, 1);
    npy_intp segments = 0;
    if (num_segments != nullptr && num_segments != Py_None) {
        if (!PyLong_CheckExact(num_segments)) return kUnclear;
        int overflow = 0;
        segments = PyLong_AsLongLongAndOverflow(num_segments, &overflow);
        if (overflow != 0 || segments < 0) return kUnclear;
    } else if (rows > 0) {
        std::int64_t last = 0;
        char native[8];
        id_kernels.gather(native, id_operand.data + (rows - 1) * id_operand.strides[0], 0, 1,
                          id_operand.swapped);
        if (is_wide) {
            std::memcpy(&last, native, sizeof last);
        } else {
            std::int32_t narrow;
            std::memcpy(&narrow, native, sizeof narrow);
            last = narrow;
        }
        if (last == INT64_MAX) return kUnclear;
        segments = last < 0 ? 0 : last + 1;
    }

    // With a new output the ids are checked while they are used, and a bad one spoils nothing; nothing may be
    // written to the caller's before all are known to be right. An empty output has no such pass.
    const bool checks = check_ids != Py_False;
    const bool checks_first = checks && rows > 0 && (!is_new || segments == 0 || PyArray_SIZE(data) == 0);
    if (checks_first) {
        bool sorted = false, finished = run_released(PyArray_NBYTES(ids), [&] {
                                 return ids_are_sorted({id_kernels, poll_signals}, id_operand,
                                                       static_cast<std::size_t>(rows), &sorted);
                             });
        if (!finished) return nullptr;
        if (!sorted) return kUnclear;
    }
    npy_intp dims[kMaxRank];
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, dims);
    dims[0] = segments;
    Output output(out_object, type, rank, dims);
    if (!output.is_clear()) return kUnclear;
    PyArrayObject* inputs[] = {data, ids};
    PyArrayObject* out = output.is_flat() ? output.prepare(inputs, 2, false, nullptr) : output.make(nullptr);
    if (out == nullptr) return kUnclear;
    if (PyArray_SIZE(out) == 0) return output.result();

    const npy_intp bytes = PyArray_NBYTES(data) + PyArray_NBYTES(out);
    const bool are_flat = PyArray_IS_C_CONTIGUOUS(data) && PyArray_ISNOTSWAPPED(data) &&
                          PyArray_IS_C_CONTIGUOUS(ids) && PyArray_ISNOTSWAPPED(ids);
    if (bytes < kKeepsGil && are_flat) {  // the short way, for small arrays
        SegmentWalk walk{};
        walk.out = PyArray_BYTES(out);
        walk.width = static_cast<std::size_t>(PyArray_SIZE(out) / segments);
        walk.out_stride = static_cast<std::ptrdiff_t>(walk.width * kernels.itemsize);
        walk.num_segments = segments;
        walk.fill = lowest ? kernels.lowest_finite : 0;
        walk.gallops = !checks;
        walk.checks = checks && !checks_first;
        walk.previous = -1;
        kernels.segment[is_wide ? 1 : 0](&walk, PyArray_DATA(data), walk.out_stride, PyArray_DATA(ids),
                                         static_cast<std::size_t>(rows));
        if (walk.is_unsorted) return output.fail();
        kernels.fill(&walk, walk.previous + 1, segments);
        return output.result();
    }
    Segments call;
    call.shape.rank = rank;
    std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + rank, call.shape.size);
    call.data = operand_of(data, rank);
    call.ids = id_operand;
    call.id_type = is_wide ? 1 : 0;
    call.out = PyArray_BYTES(out);
    call.num_segments = segments;
    call.fill = lowest ? kernels.lowest_finite : 0;
    call.checks = checks && !checks_first;
    call.trusts = !checks;
    bool sorted = true,
         finished =
             run_released(bytes, [&] { return segment({kernels, poll_signals}, id_kernels, call, &sorted); });
    if (!finished || !sorted) return output.fail();  // unsorted: unclear, and Python says where
    return output.result();
}

// ---------------------------------------------------------------------------- arguments

// One parameter list: `positional` of the names may be given by position.
struct Signature {
    const char* const* names;
    int count, positional;
};
const char* const kMaximumNames[] = {"out"};
const char* const kReduceMaxNames[] = {"data", "axes", "keepdims", "noop_with_empty_axes", "out"};
const char* const kSegmentMaxNames[] = {"data",      "segment_ids", "num_segments",
                                        "fill_mode", "out",         "check_ids"};
constexpr Signature kMaximum{kMaximumNames, 1, 0};
constexpr Signature kReduceMax{kReduceMaxNames, 5, 5};
constexpr Signature kSegmentMax{kSegmentMaxNames, 6, 3};
constexpr int kMostParameters = 6;

// Sorts arguments into their parameters' places; false if they do not fit.
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

}  // namespace

PyObject* call_maximum(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* out[kMostParameters];
    if (!sort_arguments(kMaximum, args + positional, 0, keywords, out)) return kUnclear;
    return maximum(args, positional, out[0]);
}

PyObject* call_reduce_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* v[kMostParameters];
    if (!sort_arguments(kReduceMax, args, positional, keywords, v)) return kUnclear;
    return reduce_max(v[0], v[1], v[2], v[3], v[4]);
}

PyObject* call_segment_max(PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    PyObject* v[kMostParameters];
    if (!sort_arguments(kSegmentMax, args, positional, keywords, v)) return kUnclear;
    return segment_max(v[0], v[1], v[2], v[3], v[4], v[5], v[4] == nullptr || v[4] == Py_None);
}

PyObject* segment_max_into_new(PyObject* data, PyObject* segment_ids, PyObject* num_segments,
                               PyObject* fill_mode, PyObject* out) {
    return segment_max(data, segment_ids, num_segments, fill_mode, out, Py_True, true);
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
