// Max, ReduceMax and SegmentMax on NumPy arrays. Converts the arguments, calls the native API, and returns
// arrays.
#include "operators.h"

#include <algorithm>
#include <vector>

#include "element_types.h"
#include "../core/item.h"
#include "arguments.h"
#include "output.h"
#include "released.h"

namespace maxops {
namespace {

// The calls below return an array or null. Null without an error set means "not handled".
inline PyObject* const kNotHandled = nullptr;

constexpr int kMostParameters = 32;  // Rules have a bit for each
#define MAXOPS_PLACE(name) name,
#define MAXOPS_NAME(name) #name,
struct OfMaximum {
    enum Place {
#define MAXOPS_MAXIMUM_ARGUMENT MAXOPS_PLACE
#include "arguments.def"
    };
};
struct OfReduceMax {
    enum Place {
#define MAXOPS_REDUCE_MAX_ARGUMENT MAXOPS_PLACE
#include "arguments.def"
    };
};
struct OfSegmentMax {
    enum Place {
#define MAXOPS_SEGMENT_MAX_ARGUMENT MAXOPS_PLACE
#include "arguments.def"
    };
};
const char* const kMaximumNames[] = {
#define MAXOPS_MAXIMUM_ARGUMENT MAXOPS_NAME
#include "arguments.def"
};
const char* const kReduceMaxNames[] = {
#define MAXOPS_REDUCE_MAX_ARGUMENT MAXOPS_NAME
#include "arguments.def"
};
const char* const kSegmentMaxNames[] = {
#define MAXOPS_SEGMENT_MAX_ARGUMENT MAXOPS_NAME
#include "arguments.def"
};
#undef MAXOPS_PLACE
#undef MAXOPS_NAME

PyObject* interned[kOperators][kMostParameters];

// The arguments of a call in the order of the parameters. Omitted arguments are null.
class Arguments {
public:
    explicit Arguments(int which) : entry_(kOperatorEntries[which]), names_(interned[which]) {
        std::fill(values_, values_ + entry_.count, nullptr);
    }

    // False if they do not match the parameters.
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
        for (int place = 0; place < entry_.count; ++place)  // a string that is not interned
            if (PyUnicode_Compare(name, names_[place]) == 0) return place;
        return -1;
    }

    const OperatorEntry& entry_;
    PyObject* const* names_;
    PyObject* values_[kMostParameters];
};

// Whether `ties` is valid. It affects gradients, but no result.
bool is_ties(PyObject* object) {
    return object == nullptr ||
           (PyUnicode_CheckExact(object) && (PyUnicode_CompareWithASCIIString(object, "even") == 0 ||
                                             PyUnicode_CompareWithASCIIString(object, "first") == 0));
}

// Reads the option `nan`: whether NaN is below or above all numbers.
bool read_nan(PyObject* object, bool* ignores_nan) {
    if (object == nullptr) return true;
    if (!PyUnicode_CheckExact(object)) return false;
    *ignores_nan = PyUnicode_CompareWithASCIIString(object, "ignore") == 0;
    return *ignores_nan || PyUnicode_CompareWithASCIIString(object, "propagate") == 0;
}

bool read_initial(PyObject* object, int type, Tensors* tensors, Item* item, const char** initial) {
    if (!is_given(object)) return true;
    if (!tensors->read_scalar(object, type, item)) return false;
    canonical(type, item->bytes);
    *initial = item->bytes;
    return true;
}

// Adds the name of an array other than the output to an out-of-memory error.
template <class Array>
Array named(Array made, const char* what) {
    if (made || !PyErr_Occurred() || !PyErr_ExceptionMatches(out_of_memory_error())) return made;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(out_of_memory_error(), "cannot allocate %s: %S", what, value == nullptr ? Py_None : value);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return Array{};
}

// Allocates an additional result: a new array, or a tensor of the framework.
Made new_array(const Framework* framework, Type type, int rank, const npy_intp* dims, const int* axes,
               const char* what) {
    bool is_mapped = false;
    if (framework != nullptr) return Made::tensor(framework, static_cast<int>(type), rank, dims, axes);
    return named(Made::array(static_cast<int>(type), rank, dims, axes, &is_mapped), what);
}

// Makes an int64 array with the shape and layout of an output.
Made new_indices(const Framework* framework, const Shape& shape, const int* axes = nullptr) {
    const auto* const dims = reinterpret_cast<const npy_intp*>(shape.size);
    return new_array(framework, Type::int64_, shape.rank, dims, axes, "the indices");
}

// Makes an array of bools, one for each segment.
Made new_mask(const Framework* framework, npy_intp count) {
    return new_array(framework, Type::bool_, 1, &count, nullptr, "the mask of empty segments");
}

// Returns the values with the other requested results. Takes ownership of all.
PyObject* together(PyObject* values, Made* indices, Made* empty) {
    if (!*indices && !*empty) return values;
    PyObject* all = values == nullptr ? nullptr : PyTuple_New(1 + bool{*indices} + bool{*empty});
    if (all == nullptr) {
        Py_XDECREF(values);
        indices->drop();
        empty->drop();
        return nullptr;
    }
    Py_ssize_t place = 0;
    PyTuple_SetItem(all, place++, values);
    for (Made* more : {indices, empty}) {
        if (!*more) continue;
        PyObject* const given = all == nullptr ? nullptr : more->give();
        if (given != nullptr) {
            PyTuple_SetItem(all, place++, given);
        } else {
            more->drop();
            Py_CLEAR(all);
        }
    }
    return all;
}

// ---------------------------------------------------------------------------- Max

// Returns the tensor that determines the layout of a new result, as in memory.like: the first one with the
// shape of the result. Null if the result is in C order: if that tensor is, if no tensor has the shape, or if
// the result has at most one axis.
const View* giver_of_layout(const Tensors& tensors, PyObject* const* args, const Maximum& call) {
    if (call.shape.rank <= 1 || tensors.are_contiguous()) return nullptr;
    const auto has_shape = [&](const View& input) {
        const auto is_same = [](std::ptrdiff_t a, std::size_t b) { return static_cast<std::size_t>(a) == b; };
        return input.rank == call.shape.rank &&
               std::equal(input.sizes, input.sizes + input.rank, call.shape.size, is_same);
    };
    for (std::size_t k = 0; k < call.count; ++k)
        if (tensors.has(args[k]) && has_shape(call.inputs[k]))
            return call.inputs[k].contiguous ? nullptr : call.inputs + k;
    return nullptr;
}

PyObject* run_maximum(const Rules& rules, Tensors& tensors, PyObject* const* args, View* inputs,
                      std::size_t count, PyObject* out, bool ignores_nan) {
    const int type = inputs[0].type;
    Maximum call(inputs, count);
    call.ignores_nan = ignores_nan;
    if (plan_maximum(rules.broadcasting, &call)) return kNotHandled;
    const std::size_t bytes = call.shape.elements() * kernels_of(type).itemsize * (count + 1);
    Release release = tensors.release(bytes);
    if (tensors.needs_python(release)) return kNotHandled;
    release.own(inputs, count);
    Output output(out, type, call.shape, &release, &tensors);
    if (!output.fits()) return kNotHandled;
    const View* const like = output.is_given() ? nullptr : giver_of_layout(tensors, args, call);
    int axes[kMaxRank];
    const bool is_ordered = tensors.framework() == nullptr && !output.is_given() && layout(call, axes);
    const bool is_made = like != nullptr ? output.make_like(*like)
                                         : output.prepare(inputs, count, true, is_ordered ? axes : nullptr);
    if (!is_made) return nullptr;
    const View view = output.view();
    const Fault fault =
        run_released(release, bytes, [&] { return maximum(tensors.poll(), call, view, output.is_mapped()); });
    return fault ? output.fail() : output.result();
}

PyObject* call_maximum(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    Arguments given(0);
    bool ignores_nan = rules.ignores_nan;
    if (positional == 0 || (rules.is_ufunc && positional != 2) ||
        !given.sort_keywords(rules, args + positional, keywords) || !is_ties(given[OfMaximum::ties]) ||
        !read_nan(given[OfMaximum::nan], &ignores_nan))
        return kNotHandled;
    Tensors tensors(rules, args, positional, keywords);
    constexpr std::size_t kFew = 8;
    View few_views[kFew];
    Item few_items[kFew];
    const auto count = static_cast<std::size_t>(positional);
    PyObject* const out = given[OfMaximum::out];
    std::vector<View> many_views(count > kFew ? count : 0);
    std::vector<Item> many_items(count > kFew ? count : 0);
    View* views = count > kFew ? many_views.data() : few_views;
    Item* items = count > kFew ? many_items.data() : few_items;
    // Typed arguments come first: Python numbers take their type.
    int type = -1;
    bool has_numbers = false;
    for (std::size_t k = 0; k < count; ++k) {
        if (is_python_scalar(args[k])) {
            has_numbers = true;
            continue;
        }
        if (!tensors.read(args[k], views + k, items + k)) return kNotHandled;
        if (type >= 0 && views[k].type != type) return kNotHandled;
        type = views[k].type;
    }
    if (type < 0 || !rules.takes(type) || (has_numbers && !rules.is_plain)) return kNotHandled;
    for (std::size_t k = 0; has_numbers && k < count; ++k)
        if (is_python_scalar(args[k]) && !read_python_scalar(args[k], type, views + k, items + k))
            return kNotHandled;
    // NumPy promotes bfloat16 to float32 if the other input is a Python float.
    if (rules.is_ufunc && has_numbers && type == static_cast<int>(Type::bfloat16_)) return kNotHandled;
    PyObject* const result = run_maximum(rules, tensors, args, views, count, out, ignores_nan);
    const bool may_be_scalar = rules.is_ufunc && result != nullptr && !is_given(out) && PyArray_Check(result);
    return may_be_scalar ? PyArray_Return(reinterpret_cast<PyArrayObject*>(result)) : result;
}

// ---------------------------------------------------------------------------- ReduceMax

PyObject* call_reduce_max(const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                          PyObject* keywords) {
    using Of = OfReduceMax;
    Arguments given(1);
    if (!given.sort(rules, args, positional, keywords) || !is_ties(given[Of::ties]) ||
        is_given(given[Of::dim]))
        return kNotHandled;
    Reduction call;
    Item item, first;
    bool noop = false, with_indices = false;
    // `axes` follows ONNX's convention, and `axis` follows NumPy's.
    const bool by_axis = given[Of::axis] != nullptr;
    call.keepdims = !by_axis;
    if (!read_flag(given[Of::keepdims], &call.keepdims) ||
        !read_flag(given[Of::noop_with_empty_axes], &noop) ||
        !read_flag(given[Of::return_indices], &with_indices) || !read_nan(given[Of::nan], &call.ignores_nan))
        return kNotHandled;
    if (by_axis && (noop || is_given(given[Of::axes]))) return kNotHandled;
    std::int64_t axes[kMaxRank];
    std::size_t count = 0;
    PyObject* const named = by_axis ? given[Of::axis] : given[Of::axes];
    const bool is_identity = noop || (by_axis && is_given(named));  // if the list of axes is empty
    if (!read_axes(named, rules.index_types, axes, &count) || (is_identity && count == 0)) return kNotHandled;
    Tensors tensors(rules, args, positional, keywords);
    if (!tensors.read(given[Of::data], &call.data, &item) || !rules.takes(call.data.type)) return kNotHandled;
    if (mark_axes(axes, count, rules.negative_axes, &call)) return kNotHandled;
    if (!read_initial(given[Of::initial], call.data.type, &tensors, &first, &call.initial))
        return kNotHandled;

    const Shape shape = output_shape(call);
    const std::size_t results = shape.elements(), out_bytes = results * kernels_of(call.data.type).itemsize;
    const std::size_t bytes =
        std::max(call.data.bytes(), out_bytes) + (with_indices ? results * sizeof(std::int64_t) : 0);
    Release release = tensors.release(bytes);
    if (tensors.needs_python(release)) return kNotHandled;
    release.own(&call.data);
    Output output(given[Of::out], call.data.type, shape, &release, &tensors);
    if (!output.fits()) return kNotHandled;
    std::ptrdiff_t steps[kMaxRank];
    std::ptrdiff_t* const room = !with_indices                    ? nullptr
                                 : tensors.framework() != nullptr ? steps
                                                                  : release.room_for(shape.rank);
    Made indices;
    if (with_indices && !(indices = new_indices(tensors.framework(), shape))) return nullptr;
    int order[kMaxRank];
    const bool is_few = results < kFewResults, is_laid_out = tensors.framework() == nullptr || !is_few;
    int* const axes_out = is_laid_out && count > 0 && layout(call, order) ? order : nullptr;
    // Nothing is written to the caller's output before the indices are computed. An output that is not in the
    // order of the data is written element by element, which is slower than copying more than a few results.
    const bool is_direct = !with_indices && (is_few || output.runs_along(axes_out));
    if (is_direct ? !output.prepare(&call.data, 1, false, axes_out) : !output.make(axes_out)) {
        indices.drop();
        return nullptr;
    }
    const View view = output.view();
    const View places = with_indices ? indices.view(static_cast<int>(Type::int64_), room) : View{};
    const Fault fault = run_released(release, bytes, [&] {
        Fault found = reduce_max(tensors.poll(), call, view);
        if (with_indices && !found) found = argmax(tensors.poll(), call, view, places);
        return found;  // returned without a copy if there are no indices: a copy would wait for its stores
    });
    if (fault) {
        indices.drop();
        return output.fail();
    }
    Made no_mask;
    return together(output.result(), &indices, &no_mask);
}

// ---------------------------------------------------------------------------- SegmentMax

// Reads the value of empty segments.
bool read_fill(PyObject* fill_mode, PyObject* fill_value, int type, Tensors* tensors, Segmentation* call) {
    const Kernels& kernels = kernels_of(type);
    if (call->initial != nullptr) {
        call->fill = bits_of(call->initial, kernels.itemsize);
        return !is_given(fill_mode) && !is_given(fill_value);
    }
    if (is_given(fill_value)) {
        Item item;
        if (is_given(fill_mode) || !tensors->read_scalar(fill_value, type, &item)) return false;
        call->fill = canonical(type, item.bytes);
        return true;
    }
    if (fill_mode == nullptr) return false;
    const bool is_lowest = is_word(fill_mode, "lowest");
    call->fill = is_lowest ? kernels.lowest_finite : 0;
    return is_lowest || is_word(fill_mode, "zero");
}

// A copy of ids or offsets in a type that the core supports.
struct Widened {
    Made made;
    std::ptrdiff_t step;
};

// Replaces ids or offsets with a wider copy. False on failure, with or without an error set. Allocating a
// NumPy array may run other code.
bool widen(const Tensors& tensors, View* view, Widened* widened) {
    const bool is_narrow = kernels_of(view->type).itemsize < 4;
    const auto size = static_cast<npy_intp>(view->sizes[0]);
    const std::size_t bytes = view->elements() * (is_narrow ? sizeof(std::int32_t) : sizeof(std::int64_t));
    Release release = tensors.release(bytes);
    if (tensors.needs_python(release)) return false;
    release.own(view);
    const Framework* const framework = tensors.framework();
    std::ptrdiff_t* const room = framework != nullptr ? &widened->step : release.room_for(1);
    const Type type = is_narrow ? Type::int32_ : Type::int64_;
    widened->made = new_array(framework, type, 1, &size, nullptr, "ids or offsets in a wider type");
    if (!widened->made) return false;
    const View to = widened->made.view(static_cast<int>(type), room);
    if (run_released(release, bytes, [&] { return widen_indices(tensors.poll(), *view, to); })) return false;
    *view = framework != nullptr ? to : view_of(widened->made.array(), static_cast<int>(type));
    return true;
}

bool read_out_of_range(PyObject* object, Segmentation* call) {
    call->rejects_past = !call->is_sorted;
    if (!is_given(object)) return true;
    if (call->by_offsets || !PyUnicode_CheckExact(object)) return false;
    const bool drops = PyUnicode_CompareWithASCIIString(object, "drop") == 0;
    call->rejects_negative = call->rejects_past = !drops;
    return drops || PyUnicode_CompareWithASCIIString(object, "error") == 0;
}

// Reads ids or offsets of any integer type as a type that the core supports. `widened` owns the copy, if one
// is necessary. Sets `is_unsigned` for uint64: values above 2^63 - 1 become negative, so the call is not
// clearly valid.
bool read_indices(PyObject* object, const Rules& rules, Tensors* tensors, View* view, Widened* widened,
                  bool* is_unsigned) {
    Item item;
    if (!tensors->read(object, view, &item)) return false;
    const int type = view->type;
    if ((rules.index_types >> type & 1) == 0 || view->rank != 1) return false;
    *is_unsigned = type == static_cast<int>(Type::uint64_);
    if (*is_unsigned) view->type = static_cast<int>(Type::int64_);  // the same bits
    if (view->type == static_cast<int>(Type::int32_) || view->type == static_cast<int>(Type::int64_))
        return true;
    return widen(*tensors, view, widened);
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

// Reads the segment axis of the data.
bool read_axis(PyObject* object, Segmentation* call) {
    std::int64_t axis = 0;
    if (object != nullptr &&
        (!read_integer(object, &axis) || axis < -call->data.rank || axis >= call->data.rank))
        return false;
    call->axis = static_cast<int>(axis < 0 ? axis + call->data.rank : axis);
    return true;
}

PyObject* run_segment_max(const Rules& rules, const Arguments& given, Tensors tensors, Widened* widened) {
    using Of = OfSegmentMax;
    Segmentation call;
    Item item, first;
    bool with_indices = false, with_empty = false;
    call.by_offsets = is_given(given[Of::offsets]);
    if (!is_ties(given[Of::ties]) || is_given(given[Of::dim])) return kNotHandled;
    if (!read_flag(given[Of::check_ids], &call.checks) || !read_flag(given[Of::sorted], &call.is_sorted) ||
        !read_flag(given[Of::return_indices], &with_indices) ||
        !read_flag(given[Of::return_empty], &with_empty) || !read_nan(given[Of::nan], &call.ignores_nan))
        return kNotHandled;
    if (call.by_offsets && (is_given(given[Of::segment_ids]) || !call.is_sorted)) return kNotHandled;
    if (!read_out_of_range(given[Of::out_of_range], &call) ||
        !read_num_segments(given[Of::num_segments], rules, &call.num_segments))
        return kNotHandled;
    // Ids come first, because widening them may run other code, which may change the data's shape.
    bool is_unsigned = false;
    if (!read_indices(given[call.by_offsets ? Of::offsets : Of::segment_ids], rules, &tensors, &call.indices,
                      widened, &is_unsigned))
        return kNotHandled;
    if (!tensors.read(given[Of::data], &call.data, &item) || !rules.takes(call.data.type) ||
        call.data.rank < 1)
        return kNotHandled;
    if (!read_axis(given[Of::axis], &call)) return kNotHandled;
    const int type = call.data.type;
    if (!read_initial(given[Of::initial], type, &tensors, &first, &call.initial) ||
        !read_fill(given[Of::fill_mode], given[Of::fill_value], type, &tensors, &call))
        return kNotHandled;
    if (call.by_offsets ? call.indices.sizes[0] == 0 : call.indices.sizes[0] != call.data.sizes[call.axis])
        return kNotHandled;
    if (is_unsigned && !(call.checks && call.rejects_negative))
        return kNotHandled;  // an id above 2^63 - 1 looks negative here, but is past every segment

    const bool is_new = !is_given(given[Of::out]) || with_indices;
    const std::size_t index_bytes = call.indices.bytes();
    Release planning = tensors.release(call.data.bytes() + index_bytes);
    if (tensors.needs_python(planning)) return kNotHandled;
    planning.own(&call.data);
    planning.own(&call.indices);
    const auto plan = [&] { return plan_segments(tensors.poll(), &call, is_new); };
    if (run_released(planning, index_bytes, plan)) return nullptr;
    Shape shape = call.data.shape();
    shape.size[call.axis] = static_cast<std::size_t>(call.num_segments);
    const std::size_t results = shape.elements(), out_bytes = results * kernels_of(type).itemsize;
    const std::size_t bytes = call.data.bytes() + index_bytes + out_bytes +
                              (with_indices ? results * sizeof(std::int64_t) : 0) +
                              (with_empty ? shape.size[call.axis] : 0);
    Release release = tensors.release(bytes);
    if (tensors.needs_python(release)) return kNotHandled;
    release.own(&call.data);
    release.own(&call.indices);
    const Framework* const framework = tensors.framework();
    Output output(given[Of::out], type, shape, &release, &tensors);
    if (!output.fits()) return kNotHandled;
    int order[kMaxRank];
    const int* const axes = layout(call, order) ? order : nullptr;
    Made indices, empty;
    const auto fail = [&]() -> PyObject* {
        indices.drop();
        empty.drop();
        return output.fail();
    };
    if (with_empty && !(empty = new_mask(framework, static_cast<npy_intp>(call.num_segments)))) return fail();
    if (with_indices && !(indices = new_indices(framework, shape, axes))) return fail();
    const View inputs[] = {call.data, call.indices};
    const bool is_direct =
        !with_indices && output.has_layout(axes) && (!output.is_given() || !writes_in_parts(call));
    if (is_direct ? !output.prepare(inputs, 2, false, axes) : !output.make(axes)) return fail();
    const View view = output.view();
    auto* const places = with_indices ? reinterpret_cast<std::int64_t*>(indices.data()) : nullptr;
    auto* const mask = with_empty ? reinterpret_cast<std::uint8_t*>(empty.data()) : nullptr;
    const Fault fault = run_released(release, bytes, [&] {
        // The mask comes first: nothing is written to the caller's output before all memory is allocated.
        Fault found = with_empty ? empty_segments(tensors.poll(), call, mask) : Fault{};
        if (!found) found = segment_max(tensors.poll(), call, view);
        if (!found && with_indices) found = argmax(tensors.poll(), call, view, places);
        return found;
    });
    // All memory is allocated before the caller's output is written.
    return fault || !indices.put_in_c_order() ? fail() : together(output.result(), &indices, &empty);
}

PyObject* call_segment_max(const Rules& rules, PyObject* const* args, Py_ssize_t positional,
                           PyObject* keywords) {
    Arguments given(2);
    if (!given.sort(rules, args, positional, keywords)) return kNotHandled;
    Widened widened;
    try {
        PyObject* result =
            run_segment_max(rules, given, Tensors(rules, args, positional, keywords), &widened);
        widened.made.drop();
        return result;
    } catch (const std::bad_alloc&) {
        widened.made.drop();
        throw;
    }
}

template <std::size_t count>
constexpr int size_of(const char* const (&)[count]) {
    static_assert(count <= kMostParameters, "kMostParameters must not be less than the number of parameters");
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
        rules.index_types |= is_integer(type) ? std::uint32_t{1} << type : 0;
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
            interned[which][place] = name;  // never freed
        }
    return true;
}

bool goes_to_python() {
    if (!PyErr_Occurred()) return true;
    if (!PyErr_ExceptionMatches(out_of_memory_error())) return false;
    PyErr_Clear();
    return true;
}

PyObject* py_widened(PyObject*, PyObject* object) {
    PyArrayObject* array = plain_array(object);
    const int type = array == nullptr ? -1 : type_of(array);
    if (type < 0 || !is_integer(type) || PyArray_NDIM(array) != 1) {
        PyErr_SetString(PyExc_TypeError, "widened() expects a 1-D array of integers");
        return nullptr;
    }
    View view = view_of(array, type);
    Widened widened;
    if (widen(Tensors(), &view, &widened)) return widened.made.give();
    widened.made.drop();
    if (!PyErr_Occurred())
        PyErr_SetString(PyExc_TypeError, "widened() does not accept arrays of int32 or int64");
    return nullptr;
}

PyObject* py_check_indices(PyObject*, PyObject* const* args, Py_ssize_t count) {
    Segmentation call;
    PyArrayObject* array = count == 6 ? plain_array(args[0]) : nullptr;
    const int type = array == nullptr ? -1 : type_of(array);
    std::int64_t rows = 0;
    const bool is_read = type >= 0 && PyArray_NDIM(array) == 1 && read_flag(args[1], &call.by_offsets) &&
                         read_flag(args[2], &call.is_sorted) && read_flag(args[3], &call.rejects_negative) &&
                         (!is_given(args[4]) || read_integer(args[4], &call.num_segments)) &&
                         read_integer(args[5], &rows);
    const bool is_index = type == static_cast<int>(Type::int32_) || type == static_cast<int>(Type::int64_) ||
                          type == static_cast<int>(Type::uint64_);
    if (!is_read || !is_index || (call.by_offsets && PyArray_SIZE(array) == 0)) {
        PyErr_SetString(PyExc_TypeError,
                        "check_indices() expects a 1-D array of int32, int64 or uint64, and its rules");
        return nullptr;
    }
    call.indices = view_of(array, type);
    Release release(call.indices.bytes());
    release.own(&call.indices);
    call.rejects_past = is_given(args[4]);
    const std::ptrdiff_t size = rows;
    call.data = {nullptr, &size, &size, 1, type, false, false};
    const auto check = [&] { return check_indices(poll_signals, call); };
    const Fault fault = run_released(release, call.indices.bytes(), check);
    if (!fault) Py_RETURN_NONE;
    if (PyErr_Occurred()) return nullptr;
    return Py_BuildValue("sLLL", fault.name(), static_cast<long long>(fault.position),
                         static_cast<long long>(fault.value), static_cast<long long>(fault.previous));
}

}  // namespace maxops
