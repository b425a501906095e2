// XLA's custom calls on the CPU: handlers of its foreign function interface, for jax.ffi. XLA gives
// contiguous buffers and its own threads; nothing here is Python but the import, and no handler takes the
// GIL.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core_table.h"
#include "xla/ffi/api/ffi.h"

namespace maxops::xla_calls {
namespace {

namespace ffi = ::xla::ffi;

const CoreTable* core;  // once imported, for ever

// XLA's threads flush subnormals; the core heeds that, on ways that are slower. While it runs the modes are
// plain, and afterwards what they were.
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

const char* name_of(ffi::DataType type) {
    switch (type) {
        case ffi::DataType::F16:
            return "float16";
        case ffi::DataType::BF16:
            return "bfloat16";
        case ffi::DataType::F32:
            return "float32";
        case ffi::DataType::F64:
            return "float64";
        case ffi::DataType::S8:
            return "int8";
        case ffi::DataType::S16:
            return "int16";
        case ffi::DataType::S32:
            return "int32";
        case ffi::DataType::S64:
            return "int64";
        case ffi::DataType::U8:
            return "uint8";
        case ffi::DataType::U16:
            return "uint16";
        case ffi::DataType::U32:
            return "uint32";
        case ffi::DataType::U64:
            return "uint64";
        case ffi::DataType::PRED:
            return "bool";
        default:
            return "";
    }
}

// The core's number of a type, or -1.
int type_of(const ffi::AnyBuffer& buffer) {
    const std::string_view name = name_of(buffer.element_type());
    for (int type = 0; core->type_names[type] != nullptr; ++type)
        if (name == core->type_names[type]) return type;
    return -1;
}

CoreArray array_of(const ffi::AnyBuffer& buffer) {
    const auto sizes = buffer.dimensions();
    return {buffer.untyped_data(), static_cast<int>(sizes.size()), sizes.begin()};
}

ffi::Error error_of(CoreStatus status) {
    switch (status) {
        case CoreStatus::kDone:
            return ffi::Error::Success();
        case CoreStatus::kNoMemory:
            return {ffi::ErrorCode::kResourceExhausted, "maxops: out of memory"};
        case CoreStatus::kBadRank:
            return ffi::Error::InvalidArgument("maxops takes ranks up to 64");
        default:
            return ffi::Error::Internal("maxops: a fault without a text");
    }
}

ffi::Error wrong_call(const char* what) {
    return ffi::Error::Internal(std::string("maxops: the custom call was made with ") + what);
}

ffi::Error maximum(ffi::RemainingArgs args, ffi::Result<ffi::AnyBuffer> out) {
    const int type = type_of(*out);
    std::vector<CoreArray> inputs;
    for (std::size_t k = 0; k < args.size(); ++k) {
        const auto input = args.get<ffi::AnyBuffer>(k);
        if (input.has_error()) return input.error();
        if (type < 0 || input->element_type() != out->element_type()) return wrong_call("types that differ");
        inputs.push_back(array_of(*input));
    }
    const CoreArray result = array_of(*out);
    const PlainFloats plain;
    return error_of(core->maximum(type, inputs.data(), inputs.size(), &result));
}

// Which axes are named; null if one is out of range. (Not vector<bool>, which has no array of bool inside.)
std::unique_ptr<bool[]> marked(ffi::Span<const std::int64_t> axes, int rank) {
    auto is_reduced = std::make_unique<bool[]>(static_cast<std::size_t>(rank) + 1);
    for (const std::int64_t axis : axes) {
        if (axis < 0 || axis >= rank) return nullptr;
        is_reduced[static_cast<std::size_t>(axis)] = true;
    }
    return is_reduced;
}

ffi::Error reduce_max(ffi::AnyBuffer data, ffi::Result<ffi::AnyBuffer> out,
                      ffi::Span<const std::int64_t> axes) {
    const int type = type_of(data);
    const CoreArray array = array_of(data);
    const auto is_reduced = marked(axes, array.rank);
    if (type < 0 || is_reduced == nullptr || data.element_count() == 0)
        return wrong_call("data that it does not take");
    const PlainFloats plain;
    return error_of(core->reduce_max(type, &array, is_reduced.get(), out->untyped_data()));
}

// Places as the core gives them, in the type that JAX has for them: int64, or int32 by way of a copy.
template <class Locate>
ffi::Error locate_into(ffi::Result<ffi::AnyBuffer>& places, const Locate& locate) {
    if (places->element_type() == ffi::DataType::S64)
        return error_of(locate(static_cast<std::int64_t*>(places->untyped_data())));
    if (places->element_type() != ffi::DataType::S32) return wrong_call("places of another type");
    const std::size_t count = places->element_count();
    const std::unique_ptr<std::int64_t[]> wide(new (std::nothrow) std::int64_t[count]);
    if (wide == nullptr) return error_of(CoreStatus::kNoMemory);  // XLA knows no exceptions
    const CoreStatus status = locate(wide.get());
    if (status == CoreStatus::kDone)
        std::transform(wide.get(), wide.get() + count, static_cast<std::int32_t*>(places->untyped_data()),
                       [](std::int64_t place) { return static_cast<std::int32_t>(place); });
    return error_of(status);
}

// The data and the results that it went into; nothing is empty.
ffi::Error locate(ffi::AnyBuffer data, ffi::AnyBuffer results, ffi::Result<ffi::AnyBuffer> places,
                  ffi::Span<const std::int64_t> axes) {
    const int type = type_of(data);
    const CoreArray array = array_of(data);
    const auto is_reduced = marked(axes, array.rank);
    if (type < 0 || is_reduced == nullptr || data.element_count() == 0 ||
        results.element_count() != places->element_count())
        return wrong_call("data that it does not take");
    const PlainFloats plain;
    return locate_into(places, [&](std::int64_t* to) {
        std::fill(to, to + places->element_count(), -1);
        return core->locate(type, &array, is_reduced.get(), results.untyped_data(), to);
    });
}

// What the planner says of the same fault (maxops.plan.segment), word for word.
std::string text_of(const CoreIdFault& fault, const CoreSegments& call, std::string_view name,
                    std::string_view clause) {
    const auto position = std::to_string(fault.position), value = std::to_string(fault.value);
    const bool are_offsets = call.order == IdOrder::kOffsets;
    const std::string subject = std::string(name) + (are_offsets ? " offsets" : " segment_ids");
    const std::string holds = "position " + position + " holds " + value;
    // `clause` is that of the ids; its neighbours' ids differ in the last part.
    const auto marked = [&, row = std::string(clause.substr(0, clause.rfind('.') + 1))](const char* rule) {
        return " [" + row + rule + "]";
    };
    const std::string own = marked(are_offsets ? "offsets" : "ids");
    switch (fault.fault) {
        case IdFault::kNegative:
            return subject + " must not be negative: " + holds + own;
        case IdFault::kPast:
            return subject + " must lie below num_segments, which is " + std::to_string(call.num_segments) +
                   ": " + holds + "; out_of_range='drop' leaves such rows out" + marked("out_of_range");
        case IdFault::kDecreasing:
            return subject + " must not decrease: " + holds + " after " + std::to_string(fault.previous) +
                   own;
        case IdFault::kBegin:
            return subject + " must begin with 0: " + holds + own;
        case IdFault::kEnd:
            return subject + " must end with the number of rows, which is " + std::to_string(fault.previous) +
                   ": " + holds + own;
    }
    return subject;
}

// (batch, rows, width) by ids (batch, count), and results (batch, num_segments, width).
struct Batches {
    std::size_t count = 0;
    CoreSegments call{};

    ffi::Error read(const ffi::AnyBuffer& data, const ffi::AnyBuffer& ids, const ffi::AnyBuffer& results,
                    std::string_view order, std::int64_t fill) {
        const auto sizes = data.dimensions(), id_sizes = ids.dimensions(), out_sizes = results.dimensions();
        if (type_of(data) < 0 || sizes.size() != 3 || id_sizes.size() != 2 || out_sizes.size() != 3)
            return wrong_call("ranks that it does not take");
        call.ids_are_wide = ids.element_type() == ffi::DataType::S64;
        if (!call.ids_are_wide && ids.element_type() != ffi::DataType::S32)
            return wrong_call("ids of another type");
        count = static_cast<std::size_t>(sizes[0]);
        call.rows = static_cast<std::size_t>(sizes[1]);
        call.width = static_cast<std::size_t>(sizes[2]);
        call.id_count = static_cast<std::size_t>(id_sizes[1]);
        call.order = order == "offsets" ? IdOrder::kOffsets
                     : order == "any"   ? IdOrder::kAny
                                        : IdOrder::kSorted;
        call.num_segments = out_sizes[1];
        std::memcpy(&call.fill, &fill, sizeof fill);
        const bool fits = call.order == IdOrder::kOffsets ? call.id_count > 0 : call.id_count == call.rows;
        if (!fits || id_sizes[0] != sizes[0] || out_sizes[0] != sizes[0] || out_sizes[2] != sizes[2])
            return wrong_call("shapes that do not go together");
        return ffi::Error::Success();
    }

    void go_to(std::size_t batch, const ffi::AnyBuffer& data, const ffi::AnyBuffer& ids,
               const ffi::AnyBuffer& results) {
        auto part = [&](const ffi::AnyBuffer& whole) {
            return static_cast<char*>(whole.untyped_data()) + whole.size_bytes() / count * batch;
        };
        call.data = part(data);
        call.ids = part(ids);
        call.out = part(results);
    }
};

ffi::Error locate_segments(ffi::AnyBuffer data, ffi::AnyBuffer ids, ffi::AnyBuffer results,
                           ffi::Result<ffi::AnyBuffer> places, std::string_view order) {
    Batches whole;
    const ffi::Error error = whole.read(data, ids, results, order, 0);
    if (error.failure()) return error;
    if (places->element_count() != results.element_count()) return wrong_call("shapes that differ");
    const PlainFloats plain;
    return locate_into(places, [&](std::int64_t* to) {
        CoreStatus status = CoreStatus::kDone;
        for (std::size_t batch = 0; batch < whole.count && status == CoreStatus::kDone; ++batch) {
            whole.go_to(batch, data, ids, results);
            status = core->locate_segments(type_of(data), &whole.call,
                                           to + results.element_count() / whole.count * batch);
        }
        return status;
    });
}

ffi::Error segment_max(ffi::AnyBuffer data, ffi::AnyBuffer ids, ffi::Result<ffi::AnyBuffer> out,
                       std::string_view order, bool checks, bool negative_is_bad, bool past_is_bad,
                       std::int64_t fill, std::string_view name, std::string_view clause) {
    Batches whole;
    const ffi::Error error = whole.read(data, ids, *out, order, fill);
    if (error.failure()) return error;
    CoreSegments& call = whole.call;
    call.checks = checks;
    call.negative_is_bad = negative_is_bad;
    call.past_is_bad = past_is_bad;
    const int type = type_of(data);
    const PlainFloats plain;
    for (std::size_t batch = 0; batch < whole.count; ++batch) {
        whole.go_to(batch, data, ids, *out);
        CoreIdFault fault{};
        const CoreStatus status = core->segment_max(type, &call, &fault);
        if (status == CoreStatus::kBadIds)
            return ffi::Error::InvalidArgument(text_of(fault, call, name, clause));
        if (status != CoreStatus::kDone) return error_of(status);
    }
    return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER(kMaximum, maximum, ffi::Ffi::Bind().RemainingArgs().Ret<ffi::AnyBuffer>());
XLA_FFI_DEFINE_HANDLER(
    kReduceMax, reduce_max,
    ffi::Ffi::Bind().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<ffi::Span<const std::int64_t>>("axes"));
XLA_FFI_DEFINE_HANDLER(kSegmentMax, segment_max,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<std::string_view>("order")
                           .Attr<bool>("checks")
                           .Attr<bool>("negative_is_bad")
                           .Attr<bool>("past_is_bad")
                           .Attr<std::int64_t>("fill")
                           .Attr<std::string_view>("name")
                           .Attr<std::string_view>("clause"));

XLA_FFI_DEFINE_HANDLER(kLocate, locate,
                       ffi::Ffi::Bind()
                           .Arg<ffi::AnyBuffer>()
                           .Arg<ffi::AnyBuffer>()
                           .Ret<ffi::AnyBuffer>()
                           .Attr<ffi::Span<const std::int64_t>>("axes"));
XLA_FFI_DEFINE_HANDLER(kLocateSegments, locate_segments,
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
    add("maxops_locate", kLocate);
    add("maxops_locate_segments", kLocateSegments);
    return found;
}

PyMethodDef methods[] = {{"handlers", handlers, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};

PyModuleDef module_definition = {PyModuleDef_HEAD_INIT,
                                 "maxops._xla",
                                 "The native core as XLA's custom calls.",
                                 -1,
                                 methods,
                                 nullptr,
                                 nullptr,
                                 nullptr,
                                 nullptr};

}  // namespace
}  // namespace maxops::xla_calls

PyMODINIT_FUNC PyInit__xla() {
    using maxops::xla_calls::core;
    core = static_cast<const maxops::CoreTable*>(PyCapsule_Import(maxops::kCoreTableName, 0));
    if (core == nullptr) return nullptr;
    if (core->size != sizeof(maxops::CoreTable)) {
        PyErr_SetString(PyExc_ImportError,
                        "maxops._xla and maxops._native are of different builds; install both anew");
        return nullptr;
    }
    return PyModule_Create(&maxops::xla_calls::module_definition);
}
