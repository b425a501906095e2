// Max, ReduceMax and SegmentMax on NumPy's arrays: arguments in, the native API, arrays out.
#include "operators.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "../element_types.h"
#include "../item.h"
#include "arguments.h"
#include "output.h"
#include "released.h"

namespace maxops {
namespace {

// What the calls below give back: an array, or nothing; and nothing may mean this.
inline PyObject* const kNotHandled = nullptr;

constexpr int kMostParameters = 16;
const char* const kMaximumNames[] = {"out", "ties"};
const char* const kReduceMaxNames[] = {"data", "axes", "keepdims", "noop_with_empty_axes", "out",
                                       "axis", "dim",  "initial",  "return_indices",       "ties"};
const char* const kSegmentMaxNames[] = {"data",         "segment_ids", "num_segments", "fill_mode",
                                        "out",          "check_ids",   "offsets",      "sorted",
                                        "out_of_range", "dim",         "initial",      "return_indices",
                                        "return_empty", "ties",        "fill_value"};

PyObject* interned[kOperators][kMostParameters];

// Arguments by their parameters; null where none is given.
class Arguments {
public:
    explicit Arguments(int which) : entry_(kOperatorEntries[which]), names_(interned[which]) {
        std::fill(values_, values_ + entry_.count, nullptr);
    }

    // False if they do not fit.
    bool sort(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
        if (positional > rules.positional) return false;
        std::copy(args, args + positional, values_);
        return sort_keywords(rules, args + positional, keywords);
    }
    bool sort_keywords(const Rules& rules, PyObject* const* values, PyObject* keywords) {
        const Py_ssize_t count = keywords == nullptr ? 0 : PyTuple_Size(keywords);
        for (Py_ssize_t k = 0; k < count; ++k) {
            const int place = place_of(PyTuple_GetItem(keywords, k));
            if (place < 0 || (rules.keywords >> place & 1) == 0 || values_[place] != nullptr) return false;
            values_[place] = values[k];
        }
        return true;
    }
    PyObject* operator[](int place) const { return values_[place]; }

private:
    int place_of(PyObject* name) const {
        for (int place = 0; place < entry_.count; ++place)
            if (name == names_[place]) return place;
        for (int place = 0; place < entry_.count; ++place)  // a string that nobody interned
            if (PyUnicode_Compare(name, names_[place]) == 0) return place;
        return -1;
    }

    const OperatorEntry& entry_;
    PyObject* const* names_;
    PyObject* values_[kMostParameters];
};

// Copies of arrays' shapes and strides: assigning to `shape` frees NumPy's own, which another thread may do
// while the GIL is released, and a signal's handler in a poll.
class OwnShapes {
public:
    void keep(View* view) {
        const auto rank = static_cast<std::size_t>(view->rank);
        std::ptrdiff_t* block = room_for(2 * rank);
        for (std::size_t axis = 0; axis < rank; ++axis) {
            block[axis] = view->sizes[axis];
            block[rank + axis] = view->strides[axis];
        }
        view->sizes = block;
        view->strides = block + rank;
    }

private:
    // A few arrays of few axes fit here: allocating for each of nine takes 300 nanoseconds.
    std::ptrdiff_t* room_for(std::size_t count) {
        constexpr std::size_t kFew = sizeof few_ / sizeof *few_;
        if (count > kFew - used_) return blocks_.emplace_back(new std::ptrdiff_t[count]).get();
        used_ += count;
        return few_ + used_ - count;
    }

    std::ptrdiff_t few_[64];
    std::size_t used_ = 0;
    std::vector<std::unique_ptr<std::ptrdiff_t[]>> blocks_;
};

// Whether a call that touches so many bytes lets others run meanwhile.
bool is_interruptible(std::size_t bytes) {
    return bytes >= std::min(kKeepsGilBytes, kThreadedBytes);
}

// Gradients at ties: no result depends on it.
bool is_ties(PyObject* object) {
    return object == nullptr ||
           (PyUnicode_CheckExact(object) && (PyUnicode_CompareWithASCIIString(object, "even") == 0 ||
                                             PyUnicode_CompareWithASCIIString(object, "first") == 0));
}

bool read_initial(PyObject* object, int type, Item* item, const char** initial) {
    if (!is_given(object)) return true;
    if (!read_scalar(object, type, item)) return false;
    canonical(type, item->bytes);
    *initial = item->bytes;
    return true;
}

// Says which array beside the output it is that memory cannot hold.
PyArrayObject* named(PyArrayObject* made, const char* what) {
    if (made != nullptr || !PyErr_ExceptionMatches(out_of_memory_error())) return made;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(out_of_memory_error(), "of %s: %S", what, value == nullptr ? Py_None : value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return nullptr;
}

// A new int64 array of an output's shape.
PyArrayObject* new_indices(const Shape& shape) {
    npy_intp dims[kMaxRank];
    for (int axis = 0; axis < shape.rank; ++axis) dims[axis] = static_cast<npy_intp>(shape.size[axis]);
    bool is_mapped = false;
    return named(new_output(NPY_INT64, shape.rank, dims, nullptr, &is_mapped), "its indices");
}

// A new array of bools, one for each segment.
PyArrayObject* new_mask(npy_intp count) {
    bool is_mapped = false;
    return named(new_output(NPY_BOOL, 1, &count, nullptr, &is_mapped), "its mask of empty segments");
}

// The values, and what else is asked for; takes the references of the latter.
PyObject* together(PyObject* values, PyArrayObject* indices, PyArrayObject* empty) {
    if (indices == nullptr && empty == nullptr) return values;
    PyObject* all = values == nullptr ? nullptr : PyTuple_New(1 + (indices != nullptr) + (empty != nullptr));
    if (all == nullptr) {
        Py_XDECREF(values);
        Py_XDECREF(as_object(indices));
        Py_XDECREF(as_object(empty));
        return nullptr;
    }
    Py_ssize_t place = 0;
    PyTuple_SetItem(all, place++, values);
    for (PyArrayObject* more : {indices, empty})
        if (more != nullptr) PyTuple_SetItem(all, place++, as_object(more));
    return all;
}

// ---------------------------------------------------------------------------- Max

PyObject* run_maximum(const Rules& rules, View* inputs, std::size_t count, PyObject* out) {
    const int type = inputs[0].type;
    Maximum call(inputs, count);
    if (plan_maximum(rules.broadcasting, &call)) return kNotHandled;
    Output output(out, type, call.shape);
    if (!output.fits()) return kNotHandled;
    int axes[kMaxRank];
    const bool is_ordered = !output.is_given() && layout(call, axes);
    if (!output.prepare(inputs, count, true, is_ordered ? axes : nullptr)) return nullptr;
    View view = output.view();
    const std::size_t bytes = view.bytes() * (count + 1);
    OwnShapes shapes;
    if (is_interruptible(bytes)) {
        for (std::size_t k = 0; k < count; ++k) shapes.keep(inputs + k);
        shapes.keep(&view);
    }
    const Fault fault =
        run_released(bytes, [&] { return maximum(poll_signals, call, view, output.is_mapped()); });
    return fault ? output.fail() : output.result();
}

PyObject* call_maximum(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    Arguments given(0);
    if (positional == 0 || !given.sort_keywords(rules, args + positional, keywords) || !is_ties(given[1]))
        return kNotHandled;
    constexpr std::size_t kFew = 8;
    View few_views[kFew];
    Item few_items[kFew];
    const auto count = static_cast<std::size_t>(positional);
    std::vector<View> many_views(count > kFew ? count : 0);
    std::vector<Item> many_items(count > kFew ? count : 0);
    View* views = count > kFew ? many_views.data() : few_views;
    Item* items = count > kFew ? many_items.data() : few_items;
    // Those with a type of their own first: Python's numbers take it.
    int type = -1;
    bool has_numbers = false;
    for (std::size_t k = 0; k < count; ++k) {
        if (is_python_scalar(args[k])) {
            has_numbers = true;
            continue;
        }
        if (!read_typed(args[k], views + k, items + k)) return kNotHandled;
        if (type >= 0 && views[k].type != type) return kNotHandled;
        type = views[k].type;
    }
    if (type < 0 || !rules.takes(type) || (has_numbers && rules.explicit_types)) return kNotHandled;
    for (std::size_t k = 0; has_numbers && k < count; ++k)
        if (is_python_scalar(args[k]) && !read_python_scalar(args[k], type, views + k, items + k))
            return kNotHandled;
    return run_maximum(rules, views, count, given[0]);
}

// ---------------------------------------------------------------------------- ReduceMax

PyObject* call_reduce_max(const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                          PyObject* keywords) {
    Arguments given(1);
    if (!given.sort(rules, args, positional, keywords) || !is_ties(given[9]) || is_given(given[6]))
        return kNotHandled;
    Reduction call;
    Item item, first;
    bool noop = false, with_indices = false;
    if (!read_typed(given[0], &call.data, &item) || !rules.takes(call.data.type)) return kNotHandled;
    if (!read_flag(given[2], &call.keepdims) || !read_flag(given[3], &noop) ||
        !read_flag(given[8], &with_indices))
        return kNotHandled;
    if (is_given(given[1]) && is_given(given[5])) return kNotHandled;
    std::int64_t axes[kMaxRank];
    std::size_t count = 0;
    PyObject* const named = is_given(given[1]) ? given[1] : given[5];
    if (!read_axes(named, rules.index_types, axes, &count) || (noop && count == 0)) return kNotHandled;
    if (mark_axes(axes, count, rules.negative_axes, &call)) return kNotHandled;
    if (!read_initial(given[7], call.data.type, &first, &call.initial)) return kNotHandled;

    const Shape shape = output_shape(call);
    Output output(given[4], call.data.type, shape);
    if (!output.fits()) return kNotHandled;
    PyArrayObject* indices = nullptr;
    if (with_indices && (indices = new_indices(shape)) == nullptr) return nullptr;
    int order[kMaxRank];
    int* const axes_out = count > 0 && layout(call, order) ? order : nullptr;
    // Nothing is written to the caller's output before the indices are there.
    if (with_indices ? !output.make(axes_out) : !output.prepare(&call.data, 1, false, axes_out)) {
        Py_XDECREF(as_object(indices));
        return nullptr;
    }
    View view = output.view();
    const View places = with_indices ? view_of(indices, static_cast<int>(Type::int64_)) : View{};
    const std::size_t bytes = std::max(call.data.bytes(), view.bytes()) + (with_indices ? places.bytes() : 0);
    OwnShapes shapes;
    if (is_interruptible(bytes)) {
        shapes.keep(&call.data);
        shapes.keep(&view);
    }
    const Fault fault = run_released(bytes, [&] {
        Fault found = reduce_max(poll_signals, call, view);
        if (with_indices && !found) found = argmax(poll_signals, call, view, places);
        return found;  // which no call without indices copies: that would wait for its stores
    });
    if (fault) {
        Py_XDECREF(as_object(indices));
        return output.fail();
    }
    return together(output.result(), indices, nullptr);
}

// ---------------------------------------------------------------------------- SegmentMax

// What empty segments hold.
bool read_fill(PyObject* fill_mode, PyObject* fill_value, int type, Segmentation* call) {
    const Kernels& kernels = kernels_of(type);
    if (call->initial != nullptr) {
        call->fill = bits_of(call->initial, kernels.itemsize);
        return !is_given(fill_mode) && !is_given(fill_value);
    }
    if (is_given(fill_value)) {
        Item item;
        if (is_given(fill_mode) || !read_scalar(fill_value, type, &item)) return false;
        call->fill = canonical(type, item.bytes);
        return true;
    }
    if (fill_mode == nullptr) return false;
    const bool is_lowest = is_word(fill_mode, "lowest");
    call->fill = is_lowest ? kernels.lowest_finite : 0;
    return is_lowest || is_word(fill_mode, "zero");
}

bool read_out_of_range(PyObject* object, Segmentation* call) {
    call->past_is_bad = !call->is_sorted;
    if (!is_given(object)) return true;
    if (call->by_offsets || !PyUnicode_CheckExact(object)) return false;
    const bool drops = PyUnicode_CompareWithASCIIString(object, "drop") == 0;
    call->negative_is_bad = call->past_is_bad = !drops;
    return drops || PyUnicode_CompareWithASCIIString(object, "error") == 0;
}

// Ids or offsets of any integer type, in one that the core has: `widened` becomes a new reference if that
// takes a copy. Those of uint64 past 2^63 - 1 come out negative, which is not clearly valid.
bool read_indices(PyObject* object, const Rules& rules, View* view, PyArrayObject** widened) {
    PyArrayObject* array = plain_array(object);
    const int type = array == nullptr ? -1 : type_of(array);
    if (type < 0 || (rules.index_types >> type & 1) == 0 || PyArray_NDIM(array) != 1) return false;
    const bool is_core = type == static_cast<int>(Type::int32_) || type == static_cast<int>(Type::int64_);
    if (is_core) {
        *view = view_of(array, type);
        return true;
    }
    if (type == static_cast<int>(Type::uint64_)) {  // the same bits, if none is past int64's highest
        *view = view_of(array, static_cast<int>(Type::int64_));
        return true;
    }
    const bool is_narrow = kernels_of(type).itemsize < 4;
    PyObject* made = PyArray_CastToType(array, PyArray_DescrFromType(is_narrow ? NPY_INT32 : NPY_INT64), 0);
    if (made == nullptr) {
        if (PyErr_ExceptionMatches(PyExc_MemoryError)) set_out_of_memory();
        return false;
    }
    *widened = reinterpret_cast<PyArrayObject*>(made);
    *view = view_of(*widened, static_cast<int>(is_narrow ? Type::int32_ : Type::int64_));
    return true;
}

bool read_num_segments(PyObject* object, const Rules& rules, std::int64_t* count) {
    if (!is_given(object)) return true;
    if (PyLong_CheckExact(object)) return read_integer(object, count) && *count >= 0;
    View view;
    Item item;
    if (!read_typed(object, &view, &item) || view.rank != 0 || (rules.index_types >> view.type & 1) == 0)
        return false;
    return read_integer_item(view, count) && *count >= 0;
}

PyObject* run_segment_max(const Rules& rules, const Arguments& given, PyArrayObject** widened) {
    Segmentation call;
    Item item, first;
    bool with_indices = false, with_empty = false;
    call.by_offsets = is_given(given[6]);
    if (!is_ties(given[13]) || is_given(given[9])) return kNotHandled;
    if (!read_flag(given[5], &call.checks) || !read_flag(given[7], &call.is_sorted) ||
        !read_flag(given[11], &with_indices) || !read_flag(given[12], &with_empty))
        return kNotHandled;
    if (call.by_offsets && (is_given(given[1]) || !call.is_sorted)) return kNotHandled;
    if (!read_typed(given[0], &call.data, &item) || !rules.takes(call.data.type) || call.data.rank < 1)
        return kNotHandled;
    const int type = call.data.type;
    if (!read_out_of_range(given[8], &call) || !read_num_segments(given[2], rules, &call.num_segments) ||
        !read_initial(given[10], type, &first, &call.initial) || !read_fill(given[3], given[14], type, &call))
        return kNotHandled;
    if (!read_indices(given[call.by_offsets ? 6 : 1], rules, &call.indices, widened)) return kNotHandled;
    if (call.by_offsets ? call.indices.sizes[0] == 0 : call.indices.sizes[0] != call.data.sizes[0])
        return kNotHandled;
    if (call.indices.type == static_cast<int>(Type::int64_) &&
        type_of(reinterpret_cast<PyArrayObject*>(given[call.by_offsets ? 6 : 1])) ==
            static_cast<int>(Type::uint64_) &&
        !(call.checks && call.negative_is_bad))
        return kNotHandled;  // such an id past 2^63 - 1 is not negative, but of no segment

    const bool is_new = !is_given(given[4]) || with_indices;
    const std::size_t index_bytes = call.indices.bytes();
    OwnShapes shapes;
    const bool is_long = is_interruptible(call.data.bytes() + index_bytes);
    if (is_long) {
        shapes.keep(&call.data);
        shapes.keep(&call.indices);
    }
    if (run_released(index_bytes, [&] { return plan_segments(poll_signals, &call, is_new); })) return nullptr;
    Shape shape = call.data.shape();
    shape.size[0] = static_cast<std::size_t>(call.num_segments);
    Output output(given[4], type, shape);
    if (!output.fits()) return kNotHandled;
    PyArrayObject *indices = nullptr, *empty = nullptr;
    const auto fail = [&]() -> PyObject* {
        Py_XDECREF(as_object(indices));
        Py_XDECREF(as_object(empty));
        return output.fail();
    };
    if (with_empty && (empty = new_mask(static_cast<npy_intp>(call.num_segments))) == nullptr) return fail();
    if (with_indices && (indices = new_indices(shape)) == nullptr) return fail();
    const View inputs[] = {call.data, call.indices};
    const bool is_direct = !with_indices && output.is_contiguous();
    if (is_direct ? !output.prepare(inputs, 2, false, nullptr) : !output.make(nullptr)) return fail();
    View view = output.view();
    const std::size_t bytes = call.data.bytes() + index_bytes + view.bytes() +
                              (with_indices ? view.elements() * sizeof(std::int64_t) : 0) +
                              (with_empty ? shape.size[0] : 0);
    if (is_interruptible(bytes)) {
        if (!is_long) {
            shapes.keep(&call.data);
            shapes.keep(&call.indices);
        }
        shapes.keep(&view);
    }
    const Fault fault = run_released(bytes, [&] {
        Fault found = segment_max(poll_signals, call, view);
        if (!found && with_indices)
            found = argmax(poll_signals, call, view, static_cast<std::int64_t*>(PyArray_DATA(indices)));
        if (!found && with_empty)
            found = empty_segments(poll_signals, call, static_cast<std::uint8_t*>(PyArray_DATA(empty)));
        return found;
    });
    return fault ? fail() : together(output.result(), indices, empty);
}

PyObject* call_segment_max(const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                           PyObject* keywords) {
    Arguments given(2);
    if (!given.sort(rules, args, positional, keywords)) return kNotHandled;
    PyArrayObject* widened = nullptr;
    PyObject* result = run_segment_max(rules, given, &widened);
    Py_XDECREF(as_object(widened));
    return result;
}

template <std::size_t count>
constexpr int size_of(const char* const (&)[count]) {
    static_assert(count <= kMostParameters);
    return static_cast<int>(count);
}

}  // namespace

const OperatorEntry kOperatorEntries[] = {
    {"maximum", call_maximum, kMaximumNames, size_of(kMaximumNames), 0},
    {"reduce_max", call_reduce_max, kReduceMaxNames, size_of(kReduceMaxNames), 5},
    {"segment_max", call_segment_max, kSegmentMaxNames, size_of(kSegmentMaxNames), 3}};

const OperatorEntry* find_operator(PyObject* name) {
    for (const OperatorEntry& entry : kOperatorEntries)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, entry.name) == 0) return &entry;
    return nullptr;
}

int place_of_parameter(const OperatorEntry& entry, PyObject* name) {
    for (int place = 0; place < entry.count; ++place)
        if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, entry.parameters[place]) == 0)
            return place;
    return -1;
}

Rules plain_rules(const OperatorEntry& entry) {
    constexpr std::uint32_t kAll = ~std::uint32_t{0};
    Rules rules;
    rules.types = kAll;
    for (int type = 0; type < kTypes; ++type) {
        const Kernels& kernels = kernels_of(type);
        const bool is_integer = kernels.nan == 0 && type != static_cast<int>(Type::bool_);
        rules.index_types |= is_integer ? std::uint32_t{1} << type : 0;
    }
    rules.positional = entry.positional;
    rules.keywords = kAll;
    return rules;
}

bool intern_parameters() {
    for (int which = 0; which < kOperators; ++which)
        for (int place = 0; place < kOperatorEntries[which].count; ++place) {
            PyObject* name = PyUnicode_InternFromString(kOperatorEntries[which].parameters[place]);
            if (name == nullptr) return false;
            interned[which][place] = name;  // for good
        }
    return true;
}

bool goes_to_python() {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(out_of_memory_error())) return false;
    PyErr_Clear();
    return true;
}

PyObject* py_check_indices(PyObject*, PyObject* const* args, Py_ssize_t count) {
    Segmentation call;
    PyArrayObject* array = count == 6 ? plain_array(args[0]) : nullptr;
    const int type = array == nullptr ? -1 : type_of(array);
    std::int64_t rows = 0;
    const bool is_read = type >= 0 && PyArray_NDIM(array) == 1 && read_flag(args[1], &call.by_offsets) &&
                         read_flag(args[2], &call.is_sorted) && read_flag(args[3], &call.negative_is_bad) &&
                         (!is_given(args[4]) || read_integer(args[4], &call.num_segments)) &&
                         read_integer(args[5], &rows);
    const bool is_index = type == static_cast<int>(Type::int32_) || type == static_cast<int>(Type::int64_) ||
                          type == static_cast<int>(Type::uint64_);
    if (!is_read || !is_index || (call.by_offsets && PyArray_SIZE(array) == 0)) {
        PyErr_SetString(PyExc_TypeError,
                        "check_indices takes a 1-D array of int32, int64 or uint64, and its rules");
        return nullptr;
    }
    call.indices = view_of(array, type);
    call.past_is_bad = is_given(args[4]);
    const std::ptrdiff_t size = rows;
    call.data = {nullptr, &size, &size, 1, type, false, false};
    const Fault fault = run_released(call.indices.bytes(), [&] { return check_indices(poll_signals, call); });
    if (!fault) Py_RETURN_NONE;
    if (!fault.is_of_indices()) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_RuntimeError, "the ids were changed by another thread");
        return nullptr;
    }
    return Py_BuildValue("sLLL", fault.name(), static_cast<long long>(fault.position),
                         static_cast<long long>(fault.value), static_cast<long long>(fault.previous));
}

}  // namespace maxops
