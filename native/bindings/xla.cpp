// XLA's custom calls on the CPU: handlers of its foreign function interface, for jax.ffi. XLA passes
// contiguous buffers and has its own threads. Handlers acquire the GIL only for the text of an error.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "../core_table.h"
#include "module_slots.h"
#include "xla/ffi/api/ffi.h"

namespace maxops::xla_calls {
namespace {

namespace ffi = ::xla::ffi;

const CoreTable* core;  // set on import and never freed

// XLA's threads flush subnormals, which sends the core to slower paths. Sets the default floating-point
// modes, and restores the thread's modes in the destructor.
class PlainFloats {
public:
#if defined(__x86_64__)
    PlainFloats() : before_(_mm_getcsr()) {
        constexpr unsigned kPlain = 0x1F80;
        _mm_setcsr(kPlain);
    }
    ~PlainFloats() { _mm_setcsr(before_); }
#else
    PlainFloats() {}
#endif
    PlainFloats(const PlainFloats&) = delete;
    PlainFloats& operator=(const PlainFloats&) = delete;

private:
#if defined(__x86_64__)
    const unsigned before_;
#endif
};

// The number of a type in the core, or -1 if the core does not support it.
int type_of(const ffi::AnyBuffer& buffer) {
    switch (buffer.element_type()) {
#define MAXOPS_TYPE(name, order, onnx, xla) \
    case ffi::DataType::xla:                \
        return static_cast<int>(Type::name##_);
#include "../core/types.def"
        default:
            return -1;
    }
}

constexpr int kInt32 = static_cast<int>(Type::int32_), kInt64 = static_cast<int>(Type::int64_);

// A view of a contiguous array in memory, with its own sizes and strides.
struct Buffer {
    std::ptrdiff_t sizes[kMaxRank], strides[kMaxRank];
    View view;

    // False for ranks and types that the core does not support.
    bool set(const ffi::AnyBuffer& buffer) {
        const auto dimensions = buffer.dimensions();
        const int type = type_of(buffer);
        if (type < 0 || dimensions.size() > kMaxRank) return false;
        std::copy(dimensions.begin(), dimensions.end(), sizes);
        set(type, buffer.untyped_data(), static_cast<int>(dimensions.size()), itemsize_of(buffer));
        return true;
    }
    void set(int type, void* data, int rank, std::size_t itemsize) {
        auto step = static_cast<std::ptrdiff_t>(itemsize);
        for (int axis = rank - 1; axis >= 0; --axis) {
            strides[axis] = step;
            step *= sizes[axis];
        }
        view = {static_cast<char*>(data), sizes, strides, rank, type, false, true};
    }

private:
    static std::size_t itemsize_of(const ffi::AnyBuffer& buffer) {
        const std::size_t count = buffer.element_count();
        return count == 0 ? 1 : buffer.size_bytes() / count;  // without elements, any value is correct
    }
};

// The planner's error for a fault of ids or offsets.
ffi::Error index_error(const Fault& fault, std::int64_t num_segments) {
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject* module = PyImport_ImportModule("maxops.plan.faults");
    PyObject* text = module == nullptr
                         ? nullptr
                         : PyObject_CallMethod(
                               module, "message", "sLLLL", fault.name(),
                               static_cast<long long>(fault.position), static_cast<long long>(fault.value),
                               static_cast<long long>(fault.previous), static_cast<long long>(num_segments));
    const char* words = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, nullptr);
    ffi::Error error = words == nullptr ? ffi::Error::Internal("maxops: internal error without a message")
                                        : ffi::Error::InvalidArgument(words);
    PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(module);
    PyGILState_Release(state);
    return error;
}

ffi::Error error_of(const Fault& fault, std::int64_t num_segments = 0) {
    if (!fault) return ffi::Error::Success();
    if (fault.is_of_indices()) return index_error(fault, num_segments);
    if (fault.kind == Fault::kOutOfMemory)
        return {ffi::ErrorCode::kResourceExhausted, "maxops: out of memory"};
    return ffi::Error::Internal("maxops: internal error without a message");
}

ffi::Error wrong_call(const char* what) {
    return ffi::Error::Internal(std::string("maxops: invalid arguments of the custom call: ") + what);
}

ffi::Error maximum(ffi::RemainingArgs args, ffi::Result<ffi::AnyBuffer> out, bool ignores_nan) {
    Buffer result;
    if (!result.set(*out)) return wrong_call("unsupported dtype or rank");
    // XLA does not support exceptions.
    const std::unique_ptr<Buffer[]> inputs(new (std::nothrow) Buffer[args.size()]);
    const std::unique_ptr<View[]> views(new (std::nothrow) View[args.size()]);
    if (inputs == nullptr || views == nullptr) return error_of({Fault::kOutOfMemory});
    for (std::size_t k = 0; k < args.size(); ++k) {
        const auto input = args.get<ffi::AnyBuffer>(k);
        if (input.has_error()) return input.error();
        if (!inputs[k].set(*input) || inputs[k].view.type != result.view.type)
            return wrong_call("different dtypes");
        views[k] = inputs[k].view;
    }
    Maximum call(views.get(), args.size());
    call.ignores_nan = ignores_nan;
    if (core->plan_maximum(Broadcasting::kNumpy, &call) || call.shape.rank != result.view.rank ||
        !std::equal(result.sizes, result.sizes + result.view.rank, call.shape.size))
        return wrong_call("incompatible shapes");
    const PlainFloats plain;
    return error_of(core->maximum(nullptr, call, result.view, false));
}

// The arguments of a reduction: nonempty data, and non-negative axes. Outputs have the data's shape without
// these axes.
struct ReduceArguments {
    Buffer data;
    Reduction call;

    bool set(const ffi::AnyBuffer& buffer, ffi::Span<const std::int64_t> axes) {
        if (!data.set(buffer) || buffer.element_count() == 0) return false;
        call.data = data.view;
        call.keepdims = false;
        return axes.size() == 0 || !core->mark_axes(axes.begin(), axes.size(), false, &call);
    }
    // Uses the sizes of the call, whatever shape XLA has for the buffer.
    bool set_output(Buffer* output, int type, void* to, std::size_t itemsize, std::size_t count) const {
        int rank = 0;
        std::size_t elements = 1;
        for (int axis = 0; axis < call.data.rank; ++axis) {
            if (call.is_reduced[axis]) continue;
            output->sizes[rank++] = call.data.sizes[axis];
            elements *= static_cast<std::size_t>(call.data.sizes[axis]);
        }
        output->set(type, to, rank, itemsize);
        return elements == count;
    }
};

ffi::Error reduce_max(ffi::AnyBuffer data, ffi::Result<ffi::AnyBuffer> out,
                      ffi::Span<const std::int64_t> axes, bool ignores_nan) {
    ReduceArguments arguments;
    arguments.call.ignores_nan = ignores_nan;
    Buffer result;
    if (!arguments.set(data, axes) ||
        !arguments.set_output(&result, arguments.call.data.type, out->untyped_data(),
                              data.size_bytes() / data.element_count(), out->element_count()))
        return wrong_call("unsupported data");
    const PlainFloats plain;
    return error_of(core->reduce_max(nullptr, arguments.call, result.view));
}

// Writes the core's indices in the type that JAX has for them: int64, or int32 through a copy.
template <class Write>
ffi::Error write_indices(ffi::Result<ffi::AnyBuffer>& indices, const Write& write) {
    if (indices->element_type() == ffi::DataType::S64)
        return error_of(write(static_cast<std::int64_t*>(indices->untyped_data())));
    if (indices->element_type() != ffi::DataType::S32) return wrong_call("unsupported dtype of indices");
    const std::size_t count = indices->element_count();
    const std::unique_ptr<std::int64_t[]> wide(new (std::nothrow) std::int64_t[count]);
    if (wide == nullptr) return error_of({Fault::kOutOfMemory});  // XLA does not support exceptions
    const Fault fault = write(wide.get());
    if (!fault)
        std::transform(wide.get(), wide.get() + count, static_cast<std::int32_t*>(indices->untyped_data()),
                       [](std::int64_t index) { return static_cast<std::int32_t>(index); });
    return error_of(fault);
}

// `values` are the maxima of the data. Neither is empty.
ffi::Error argmax(ffi::AnyBuffer data, ffi::AnyBuffer values, ffi::Result<ffi::AnyBuffer> indices,
                  ffi::Span<const std::int64_t> axes) {
    ReduceArguments arguments;
    Buffer maxima;
    if (!arguments.set(data, axes) || values.element_count() != indices->element_count() ||
        !arguments.set_output(&maxima, arguments.call.data.type, values.untyped_data(),
                              data.size_bytes() / data.element_count(), values.element_count()))
        return wrong_call("unsupported data");
    const PlainFloats plain;
    return write_indices(indices, [&](std::int64_t* to) {
        Buffer places;
        arguments.set_output(&places, kInt64, to, sizeof *to, indices->element_count());
        return core->argmax_in_axes(nullptr, arguments.call, maxima.view, places.view);
    });
}

// Data (batch, rows, width), ids or offsets (batch, count), and values (batch, num_segments, width).
struct Batches {
    Buffer data, ids, values;
    std::ptrdiff_t batches = 0, data_bytes = 0, id_bytes = 0, value_bytes = 0;
    Segmentation call;

    ffi::Error read(const ffi::AnyBuffer& data_buffer, const ffi::AnyBuffer& id_buffer,
                    const ffi::AnyBuffer& value_buffer, std::string_view order) {
        if (!data.set(data_buffer) || !ids.set(id_buffer) || !values.set(value_buffer) ||
            data.view.rank != 3 || ids.view.rank != 2 || values.view.rank != 3)
            return wrong_call("unsupported ranks");
        if (ids.view.type != kInt32 && ids.view.type != kInt64) return wrong_call("unsupported dtype of ids");
        call.by_offsets = order == "offsets";
        call.is_sorted = order != "any";
        call.num_segments = values.sizes[1];
        batches = data.sizes[0];
        const bool fits = call.by_offsets ? ids.sizes[1] > 0 : ids.sizes[1] == data.sizes[1];
        if (!fits || ids.sizes[0] != batches || values.sizes[0] != batches ||
            values.sizes[2] != data.sizes[2])
            return wrong_call("incompatible shapes");
        return ffi::Error::Success();
    }

    // Calls run(values, batch) for each batch, until the first fault.
    template <class Run>
    Fault each(const Run& run) {
        const auto part = [](const Buffer& whole, std::ptrdiff_t batch) {
            View view = whole.view;
            view.data += batch * whole.strides[0];
            view.sizes += 1;
            view.strides += 1;
            view.rank -= 1;
            return view;
        };
        for (std::ptrdiff_t batch = 0; batch < batches; ++batch) {
            call.data = part(data, batch);
            call.indices = part(ids, batch);
            call.num_segments = values.sizes[1];
            call.checks_with_maxima = false;
            if (const Fault fault = core->plan_segments(nullptr, &call, true)) return fault;
            if (const Fault fault = run(part(values, batch), batch)) return fault;
        }
        return {};
    }
};

ffi::Error argmax_in_segments(ffi::AnyBuffer data, ffi::AnyBuffer ids, ffi::AnyBuffer values,
                              ffi::Result<ffi::AnyBuffer> indices, std::string_view order) {
    Batches whole;
    const ffi::Error error = whole.read(data, ids, values, order);
    if (error.failure()) return error;
    if (indices->element_count() != values.element_count()) return wrong_call("different shapes");
    whole.call.checks = false;
    const PlainFloats plain;
    return write_indices(indices, [&](std::int64_t* to) {
        return whole.each([&](const View& maxima, std::ptrdiff_t batch) {
            return core->argmax_in_segments(nullptr, whole.call, maxima,
                                            to + static_cast<std::ptrdiff_t>(maxima.elements()) * batch);
        });
    });
}

ffi::Error segment_max(ffi::AnyBuffer data, ffi::AnyBuffer ids, ffi::Result<ffi::AnyBuffer> out,
                       std::string_view order, bool checks, bool rejects_negative, bool rejects_past,
                       std::int64_t fill, bool ignores_nan) {
    Batches whole;
    const ffi::Error error = whole.read(data, ids, *out, order);
    if (error.failure()) return error;
    whole.call.checks = checks;
    whole.call.rejects_negative = rejects_negative;
    whole.call.rejects_past = rejects_past;
    whole.call.fill = static_cast<std::uint64_t>(fill);
    whole.call.ignores_nan = ignores_nan;
    const PlainFloats plain;
    const Fault fault = whole.each(
        [&](const View& values, std::ptrdiff_t) { return core->segment_max(nullptr, whole.call, values); });
    return error_of(fault, whole.values.sizes[1]);
}

XLA_FFI_DEFINE_HANDLER(kMaximum, maximum,
                       ffi::Ffi::Bind().RemainingArgs().Ret<ffi::AnyBuffer>().Attr<bool>("ignores_nan"));
XLA_FFI_DEFINE_HANDLER(kReduceMax, reduce_max,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<ffi::Span<const std::int64_t>>("axes")
                           .Attr<bool>("ignores_nan"));
XLA_FFI_DEFINE_HANDLER(kSegmentMax, segment_max,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<std::string_view>("order")
                           .Attr<bool>("checks")
                           .Attr<bool>("rejects_negative")
                           .Attr<bool>("rejects_past")
                           .Attr<std::int64_t>("fill")
                           .Attr<bool>("ignores_nan"));

XLA_FFI_DEFINE_HANDLER(kArgmax, argmax,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<ffi::Span<const std::int64_t>>("axes"));
XLA_FFI_DEFINE_HANDLER(kArgmaxInSegments, argmax_in_segments,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<std::string_view>("order"));

// ---------------------------------------------------------------------------- the module

// The handlers by name, as jax.ffi.register_ffi_target takes them.
PyObject* handlers(PyObject*, PyObject*) {
    PyObject* found = PyDict_New();
    auto add = [&](const char* name, XLA_FFI_Handler* handler) {
        if (found == nullptr) return;
        PyObject* capsule = PyCapsule_New(reinterpret_cast<void*>(handler), nullptr, nullptr);
        if (capsule == nullptr || PyDict_SetItemString(found, name, capsule) < 0) Py_CLEAR(found);
        Py_XDECREF(capsule);
    };
    add("maxops_maximum", kMaximum);
    add("maxops_reduce_max", kReduceMax);
    add("maxops_segment_max", kSegmentMax);
    add("maxops_argmax", kArgmax);
    add("maxops_argmax_in_segments", kArgmaxInSegments);
    return found;
}

PyMethodDef methods[] = {{"handlers", handlers, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

int fill_module(PyObject*) {
    core = static_cast<const CoreTable*>(PyCapsule_Import(kCoreTableName, 0));
    if (core == nullptr) return -1;
    if (core->size == kCoreTableSize) return 0;
    PyErr_SetString(PyExc_ImportError,
                    "maxops._xla and maxops._native are from different builds; reinstall maxops");
    return -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(fill_module)}, MAXOPS_MODULE_SLOTS, {0, nullptr}};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "maxops._xla",
                                 "The native core as XLA's custom calls.",
                                 0,
                                 methods,
                                 slots,
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace
}  // namespace maxops::xla_calls

PyMODINIT_FUNC PyInit__xla() {
    return PyModuleDef_Init(&maxops::xla_calls::module_definition);
}
