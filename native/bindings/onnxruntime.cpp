// Max, ReduceMax, SegmentMax, ScatterElements and ScatterND as operators of ONNX Runtime, in the domain
// "maxops". Calls run on views of the runtime's tensors, without the GIL. Calls that are not clearly valid go
// to Python (maxops.onnxruntime.node), which runs them or raises the error.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "onnxruntime_abi.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif
#ifdef Py_LIMITED_API
#include <dlfcn.h>
#endif

#include "element_types.h"
#include "memory.h"
#include "arguments.h"
#include "released.h"

namespace maxops::onnxruntime {
namespace {

enum Kind { kMax, kReduceMax, kSegmentMax, kScatterElements, kScatterND };
const char* const kNames[] = {"Max", "ReduceMax", "SegmentMax", "ScatterElements", "ScatterND"};

// ONNX's element types for our types, in the order of types.def.
constexpr int kElementTypes[kTypes] = {
#define MAXOPS_TYPE(name, order, onnx, xla) onnx,
#include "../core/types.def"
};
constexpr int kIndexTypes[] = {static_cast<int>(Type::int32_), static_cast<int>(Type::int64_)};

int type_of_element(int element) {
    const int* found = std::find(kElementTypes, kElementTypes + kTypes, element);
    return found == kElementTypes + kTypes ? -1 : static_cast<int>(found - kElementTypes);
}

// ---------------------------------------------------------------------------- errors

struct Failed {
    Status* status;
};

void check(Status* status) {
    if (status != nullptr) throw Failed{status};
}

// Converts the current Python error to a status.
Failed python_error(const Api& api) {
    const bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    const bool is_memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
    const bool is_input =
        PyErr_ExceptionMatches(PyExc_ValueError) != 0 || PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
    const char* words = text == nullptr ? nullptr : PyUnicode_AsUTF8AndSize(text, nullptr);
    if (words == nullptr) PyErr_Clear();
    if (is_interrupt) {
        words = "interrupted";
        PyErr_SetInterrupt();  // a status is not a KeyboardInterrupt: Python raises it after the run
    } else if (words == nullptr || *words == '\0') {
        words = is_memory ? "maxops: out of memory" : "maxops failed without an error message";
    }
    Status* status = api.create_status(is_input ? kInvalidArgument : kFail, words);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return Failed{status};
}

// A reference that is released at the end of its scope.
struct GiveBack {
    void operator()(PyObject* object) const { Py_DECREF(object); }
};
using Owned = std::unique_ptr<PyObject, GiveBack>;

// Blocks a thread that outlives the interpreter until the process ends.
[[noreturn]] void wait_for_the_end() {
    for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

// Runs act(), and returns its failure as a status.
template <class Act>
Status* guarded(const Api& api, const Act& act) {
    try {
        act();
        return nullptr;
    } catch (const Failed& failed) {
        return failed.status;
    } catch (const std::bad_alloc&) {
        return api.create_status(kFail, "maxops: out of memory");
#ifdef __GLIBCXX__  // with other libraries, no exception ends a thread
    } catch (const abi::__forced_unwind&) {
        // The interpreter is ending and ends this thread. The exception that ends it cannot pass the
        // runtime's frames, so the process would abort. Instead, the thread waits for the process to end, as
        // Python itself does from version 3.14 on.
        wait_for_the_end();
#endif
    }
}

// Like guarded(), with the GIL.
template <class Act>
Status* with_python(const Api& api, const Act& act) {
    PyGILState_STATE state = PyGILState_UNLOCKED;
    Status* status = guarded(api, [&] {
        state = PyGILState_Ensure();
        act();
    });
    PyGILState_Release(state);
    return status;
}

// ---------------------------------------------------------------------------- a node of a session

struct Kernel {
    const Api& api;
    Kind kind;
    bool keepdims, broadcasts, negative_axes, noop;
    bool has_fill;  // SegmentMax: fill_mode is lowest or zero
    std::uint64_t fill;
    Owned node;  // maxops.onnxruntime.node.Node
};

// A tensor of the runtime: contiguous, and in this machine's byte order.
struct Tensor {
    std::int64_t dimensions[kMaxRank];
    std::ptrdiff_t sizes[kMaxRank], strides[kMaxRank];
    View view;

    Tensor(const Api& api, Value* value) {
        TensorInfo* info = nullptr;
        check(api.tensor_info(value, &info));
        int element = 0;
        std::size_t rank = 0;
        Status* status = api.element_type(info, &element);
        if (status == nullptr) status = api.rank(info, &rank);
        if (status == nullptr && rank <= kMaxRank) status = api.dimensions(info, dimensions, rank);
        api.release_tensor_info(info);
        check(status);
        if (rank > kMaxRank)
            throw Failed{
                api.create_status(kInvalidArgument, "the rank of a tensor exceeds NumPy's limit of 64")};
        void* data = nullptr;
        check(api.tensor_data(value, &data));
        std::copy(dimensions, dimensions + rank, sizes);
        const int type = type_of_element(element);
        auto step = static_cast<std::ptrdiff_t>(kernels_of(type).itemsize);
        for (int axis = static_cast<int>(rank) - 1; axis >= 0; --axis) {
            strides[axis] = step;
            step *= sizes[axis];
        }
        view = {static_cast<char*>(data), sizes, strides, static_cast<int>(rank), type, false, true};
    }
    // Not copied, because the view points into it.
    Tensor(const Tensor&) = delete;
    Tensor& operator=(const Tensor&) = delete;

    // A new reference.
    PyObject* as_array() const {
        npy_intp dims[kMaxRank];
        std::copy(sizes, sizes + view.rank, dims);
        return PyArray_New(&PyArray_Type, view.rank, dims, number_of(view.type), nullptr, view.data, 0,
                           NPY_ARRAY_CARRAY_RO, nullptr);
    }
};

// One run of a node.
class Call {
public:
    Call(const Kernel& kernel, KernelContext* context)
        : kernel_(kernel), api_(kernel.api), context_(context) {
        std::size_t count = 0;
        check(api_.input_count(context_, &count));
        for (std::size_t i = 0; i < count; ++i) {
            const Value* value = nullptr;
            check(api_.input(context_, i, &value));
            // the interface uses the same function for the types of inputs and outputs
            inputs_.push_back(value == nullptr ? nullptr
                                               : std::make_unique<Tensor>(api_, const_cast<Value*>(value)));
        }
    }

    Fault run() {
        switch (kernel_.kind) {
            case kMax:
                return maximum();
            case kReduceMax:
                return reduce_max();
            case kSegmentMax:
                return segment_max();
            default:
                return {Fault::kNotHandled};  // Python applies the rules of indices and calls the core
        }
    }

    // Runs the node with the planner, which raises the error or returns the result. Requires the GIL.
    void run_by_planner() {
        std::vector<Owned> owned;
        std::vector<PyObject*> arrays;
        owned.reserve(inputs_.size());
        for (const auto& input : inputs_) {
            PyObject* array = input == nullptr ? Py_NewRef(Py_None) : input->as_array();
            if (array == nullptr) throw python_error(api_);
            owned.emplace_back(array);
            arrays.push_back(array);
        }
        const Owned made(PyObject_Vectorcall(kernel_.node.get(), arrays.data(), arrays.size(), nullptr));
        if (made == nullptr) throw python_error(api_);
        write(made.get());
    }

private:
    const View* input(std::size_t i) const {
        return i < inputs_.size() && inputs_[i] != nullptr ? &inputs_[i]->view : nullptr;
    }

    // The node's output, of this shape; null if it is too large for memory.
    std::unique_ptr<Tensor> output(int rank, const std::size_t* sizes) {
        npy_intp dims[kMaxRank];
        std::int64_t dimensions[kMaxRank];
        std::copy(sizes, sizes + rank, dims);
        std::copy(sizes, sizes + rank, dimensions);
        if (!fits_memory(kernels_of(input(0)->type).itemsize, rank, dims)) return nullptr;
        Value* value = nullptr;
        check(api_.output(context_, 0, dimensions, static_cast<std::size_t>(rank), &value));
        return std::make_unique<Tensor>(api_, value);
    }

    Fault maximum() {
        std::vector<View> views;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            if (input(i) == nullptr) return {Fault::kNotHandled};
            views.push_back(*input(i));
        }
        Maximum call(views.data(), views.size());
        if (const Fault fault =
                plan_maximum(kernel_.broadcasts ? Broadcasting::kNumpy : Broadcasting::kNone, &call))
            return fault;
        const auto out = output(call.shape.rank, call.shape.size);
        // A caller's own output may overlap the inputs.
        if (out == nullptr || !can_write_through(out->view, views.data(), views.size(), true))
            return {Fault::kNotHandled};
        return maxops::maximum(poll_signals, call, out->view, false);
    }

    Fault reduce_max() {
        if (input(0) == nullptr) return {Fault::kNotHandled};
        Reduction call;
        call.data = *input(0);
        call.keepdims = kernel_.keepdims;
        std::vector<std::int64_t> axes;
        if (const View* given = input(1)) {
            if (given->rank != 1) return {Fault::kNotHandled};
            axes.resize(given->elements());
            if (!axes.empty()) std::memcpy(axes.data(), given->data, axes.size() * sizeof axes[0]);
        }
        if (axes.empty() && kernel_.noop) {
            const Shape shape = call.data.shape();
            const auto out = output(shape.rank, shape.size);
            if (out == nullptr) return {Fault::kNotHandled};
            if (call.data.bytes() > 0) std::memmove(out->view.data, call.data.data, call.data.bytes());
            return {};
        }
        if (const Fault fault = mark_axes(axes.data(), axes.size(), kernel_.negative_axes, &call))
            return fault;
        const Shape shape = output_shape(call);
        const auto out = output(shape.rank, shape.size);
        if (out == nullptr || !can_write_through(out->view, &call.data, 1, false))
            return {Fault::kNotHandled};
        return maxops::reduce_max(poll_signals, call, out->view);
    }

    Fault segment_max() {
        const View *data = input(0), *ids = input(1), *count = input(2);
        if (data == nullptr || ids == nullptr || !kernel_.has_fill || data->rank == 0 || ids->rank != 1 ||
            ids->sizes[0] != data->sizes[0] || (count != nullptr && count->rank != 0))
            return {Fault::kNotHandled};
        Segmentation call;
        call.data = *data;
        call.indices = *ids;
        call.fill = kernel_.fill;
        if (count != nullptr) {
            if (count->type == static_cast<int>(Type::int32_)) {
                std::int32_t narrow;
                std::memcpy(&narrow, count->data, sizeof narrow);
                call.num_segments = narrow;
            } else {
                std::memcpy(&call.num_segments, count->data, sizeof call.num_segments);
            }
            if (call.num_segments < 0) return {Fault::kNotHandled};
        }
        if (const Fault fault = plan_segments(poll_signals, &call, true)) return fault;
        Shape shape = data->shape();
        shape.size[0] = static_cast<std::size_t>(call.num_segments);
        const auto out = output(shape.rank, shape.size);
        const View inputs[] = {call.data, call.indices};
        if (out == nullptr || !can_write_through(out->view, inputs, 2, false)) return {Fault::kNotHandled};
        return maxops::segment_max(poll_signals, call, out->view);
    }

    // Copies the planner's result to the node's output.
    void write(PyObject* object) {
        auto* result = reinterpret_cast<PyArrayObject*>(object);
        if (!PyArray_CheckExact(object) || !PyArray_IS_C_CONTIGUOUS(result) || input(0) == nullptr ||
            type_of(result) != input(0)->type)
            throw Failed{
                api_.create_status(kFail, "maxops: the planner returned no array of the dtype of the data")};
        std::size_t sizes[kMaxRank];
        std::copy(PyArray_DIMS(result), PyArray_DIMS(result) + PyArray_NDIM(result), sizes);
        const auto out = output(PyArray_NDIM(result), sizes);
        if (out == nullptr) throw Failed{api_.create_status(kFail, "maxops: out of memory")};
        if (PyArray_NBYTES(result) > 0)  // the result may be the input itself
            std::memmove(out->view.data, PyArray_DATA(result),
                         static_cast<std::size_t>(PyArray_NBYTES(result)));
    }

    const Kernel& kernel_;
    const Api& api_;
    KernelContext* const context_;
    std::vector<std::unique_ptr<Tensor>> inputs_;
};

// Whether the interpreter is ending or has ended. The stable ABI has Py_IsFinalizing from 3.13 on; older
// versions of Python have _Py_IsFinalizing.
bool is_finalizing() {
#if defined(Py_LIMITED_API) && Py_LIMITED_API < 0x030D0000
    using Asked = int();
    static Asked* const asked = [] {
        void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
        return reinterpret_cast<Asked*>(found != nullptr ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
    }();
    return asked() != 0 || Py_IsInitialized() == 0;
#elif PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#else
    return _Py_IsFinalizing() != 0 || Py_IsInitialized() == 0;
#endif
}

Status* compute(void* kernel, KernelContext* context) {
    const auto& known = *static_cast<const Kernel*>(kernel);
    Status* status = guarded(known.api, [&] {
        Call call(known, context);
        const Fault fault = call.run();
        if (!fault) return;
        check(with_python(known.api, [&] {
            if (fault.kind == Fault::kStopped) throw python_error(known.api);
            call.run_by_planner();
        }));
    });
    // The runtime's binding acquires the GIL next. Python would then unwind the binding's frames, which
    // aborts the process.
    if (is_finalizing() && !is_main_thread()) wait_for_the_end();
    return status;
}

void destroy(void* kernel) {
    const std::unique_ptr<Kernel> known(static_cast<Kernel*>(kernel));
    if (!Py_IsInitialized()) {  // a session may outlive the interpreter and its objects
        static_cast<void>(known->node.release());
        return;
    }
    PyGILState_STATE state = PyGILState_Ensure();
    known->node.reset();
    PyGILState_Release(state);
}

// ---------------------------------------------------------------------------- the operators

// One operator for each combination of types, so that the runtime itself rejects all other combinations.
struct Operator : CustomOperator {
    Kind kind;
    int type;
    int other_types[2];  // of the second and third input
};

const Operator& own(const CustomOperator* op) {
    return *static_cast<const Operator*>(op);
}

Owned attributes_of(const Api& api, const KernelInfo* info) {
    Owned attributes(PyDict_New());
    if (attributes == nullptr) throw python_error(api);
    auto set = [&](const char* name, PyObject* value) {
        const Owned owned(value);
        if (value == nullptr || PyDict_SetItemString(attributes.get(), name, value) < 0)
            throw python_error(api);
    };
    for (const char* name : {"since_version", "keepdims", "noop_with_empty_axes", "axis"}) {
        std::int64_t number = 0;
        if (Status* status = api.attribute_int64(info, name, &number); status != nullptr)
            api.release_status(status);  // the node lacks it
        else
            set(name, PyLong_FromLongLong(number));
    }
    for (const char* name : {"fill_mode", "reduction"}) {
        std::size_t size = 0;
        if (Status* status = api.attribute_string(info, name, nullptr, &size); status != nullptr) {
            api.release_status(status);
            continue;
        }
        std::string text(size, '\0');
        check(api.attribute_string(info, name, text.data(), &size));
        text.resize(size - 1);  // without the terminating zero
        set(name,
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    }
    return attributes;
}

bool flag(const Api& api, PyObject* node, const char* name) {
    const Owned value(PyObject_GetAttrString(node, name));
    if (value == nullptr) throw python_error(api);
    return value.get() == Py_True;
}

Status* create(const CustomOperator* op, const Api* api, const KernelInfo* info, void** kernel) {
    return with_python(*api, [&] {
        const Owned module(PyImport_ImportModule("maxops.onnxruntime.node"));
        if (module == nullptr) throw python_error(*api);
        const Owned attributes = attributes_of(*api, info);
        Owned node(PyObject_CallMethod(module.get(), "prepare", "ssO", kNames[own(op).kind],
                                       kTypeNames[own(op).type], attributes.get()));
        if (node == nullptr) throw python_error(*api);
        const Owned fill_mode(PyObject_GetAttrString(node.get(), "fill_mode"));
        if (fill_mode == nullptr) throw python_error(*api);
        const bool is_lowest = is_word(fill_mode.get(), "lowest"),
                   has_fill = is_lowest || is_word(fill_mode.get(), "zero");
        *kernel = new Kernel{*api,
                             own(op).kind,
                             flag(*api, node.get(), "keepdims"),
                             flag(*api, node.get(), "broadcasts"),
                             flag(*api, node.get(), "negative_axes"),
                             flag(*api, node.get(), "noop_with_empty_axes"),
                             has_fill,
                             is_lowest ? kernels_of(own(op).type).lowest_finite : 0,
                             std::move(node)};
    });
}

int element_of(const CustomOperator* op, std::size_t input) {
    return kElementTypes[input == 0 ? own(op).type : own(op).other_types[input - 1]];
}

Operator make(Kind kind, int type, int second, int third) {
    Operator op{};
    op.version = kVersion;
    op.name = [](const CustomOperator* self) { return kNames[own(self).kind]; };
    op.execution_provider = [](const CustomOperator*) -> const char* { return nullptr; };
    op.input_type = element_of;
    op.input_types = [](const CustomOperator* self) { return std::min<std::size_t>(1 + own(self).kind, 3); };
    op.output_type = [](const CustomOperator* self, std::size_t) { return element_of(self, 0); };
    op.output_types = [](const CustomOperator*) { return std::size_t{1}; };
    op.destroy = destroy;
    op.input_characteristic = [](const CustomOperator* self, std::size_t input) {
        const Kind kind = own(self).kind;
        if (kind == kMax) return kVariadic;
        const std::size_t required = kind == kReduceMax ? 1 : kind == kSegmentMax ? 2 : 3;
        return input < required ? kRequired : kOptional;
    };
    op.output_characteristic = [](const CustomOperator*, std::size_t) { return kRequired; };
    op.input_memory = [](const CustomOperator*, std::size_t) { return 0; };
    op.variadic_input_least = op.variadic_output_least = [](const CustomOperator*) { return 1; };
    op.variadic_input_is_homogeneous =
        op.variadic_output_is_homogeneous = [](const CustomOperator*) { return 1; };
    op.create = create;
    op.compute = compute;
    op.kind = kind;
    op.type = type;
    op.other_types[0] = second;
    op.other_types[1] = third;
    return op;
}

// Never freed, because the runtime keeps pointers to them.
const std::vector<Operator>& operators() {
    static const auto* all = [] {
        auto* made = new std::vector<Operator>;
        const int wide = static_cast<int>(Type::int64_);
        for (int type = 0; type < kTypes; ++type) {
            made->push_back(make(kMax, type, type, type));
            made->push_back(make(kReduceMax, type, wide, wide));
            for (int ids : kIndexTypes) {
                for (int count : kIndexTypes) made->push_back(make(kSegmentMax, type, ids, count));
                made->push_back(make(kScatterElements, type, ids, type));
            }
            made->push_back(make(kScatterND, type, wide, type));
        }
        return made;
    }();
    return *all;
}

}  // namespace
}  // namespace maxops::onnxruntime

// The symbol that SessionOptions.register_custom_ops_library looks up in this library.
extern "C" __attribute__((visibility("default"))) maxops::onnxruntime::Status* RegisterCustomOps(
    maxops::onnxruntime::SessionOptions* options, const maxops::onnxruntime::ApiBase* base) {
    using namespace maxops::onnxruntime;
    const Api* api = base->get_api(kVersion);
    if (api == nullptr)
        return base->get_api(1)->create_status(kFail, "maxops requires onnxruntime 1.21 or newer");
    static OperatorDomain* domain = nullptr;  // sessions keep using it
    if (domain == nullptr) {
        OperatorDomain* made = nullptr;
        if (Status* status = api->create_domain("maxops", &made); status != nullptr) return status;
        for (const Operator& op : operators())
            if (Status* status = api->add_operator(made, &op); status != nullptr) return status;
        domain = made;
    }
    return api->add_domain(options, domain);
}
