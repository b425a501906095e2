// Max, ReduceMax and SegmentMax as operators of ONNX Runtime, in the domain "maxops". The runtime's tensors
// become NumPy arrays on the same memory and go the way that a Python call goes; what is not clearly valid,
// as there, goes to Python (maxops.onnxruntime.node), which runs it or says what is wrong.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "onnxruntime_abi.h"

#include <cxxabi.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "element_types.h"
#include "memory.h"
#include "operators.h"
#include "scratch.h"

namespace maxops::onnxruntime {
namespace {

enum Kind { kMax, kReduceMax, kSegmentMax };
const char* const kNames[] = {"Max", "ReduceMax", "SegmentMax"};

// ONNX's numbers of our types, in their order.
constexpr int kElementTypes[kTypes] = {10, 16, 1, 11, 3, 5, 6, 7, 2, 4, 12, 13, 9};
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

// The Python error that is set, as a status.
Failed python_error(const Api& api) {
    const bool is_interrupt = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
    const bool is_memory = PyErr_ExceptionMatches(PyExc_MemoryError) != 0;
    const bool is_input =
        PyErr_ExceptionMatches(PyExc_ValueError) != 0 || PyErr_ExceptionMatches(PyExc_TypeError) != 0;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject* text = value == nullptr ? nullptr : PyObject_Str(value);
    const char* words = text == nullptr ? nullptr : PyUnicode_AsUTF8(text);
    if (words == nullptr) PyErr_Clear();
    if (is_interrupt) {
        words = "interrupted";
        PyErr_SetInterrupt();  // a status is no KeyboardInterrupt: Python raises it after the run
    } else if (words == nullptr || *words == '\0') {
        words = is_memory ? "maxops: out of memory" : "maxops failed, without a text";
    }
    Status* status = api.create_status(is_input ? kInvalidArgument : kFail, words);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return Failed{status};
}

// act() with the GIL; its failure as a status.
template <class Act>
Status* with_python(const Api& api, const Act& act) {
    Status* status = nullptr;
    PyGILState_STATE state = PyGILState_UNLOCKED;
    try {
        state = PyGILState_Ensure();
        act();
    } catch (const Failed& failed) {
        status = failed.status;
    } catch (const std::bad_alloc&) {
        status = api.create_status(kFail, "maxops: out of memory");
    } catch (const abi::__forced_unwind&) {
        // The interpreter ends, and this thread with it; but the runtime's frames let no such exception
        // through, and the process would abort. So the thread waits for the end, as Python itself has it
        // from 3.14 on.
        for (;;) pause();
    }
    PyGILState_Release(state);
    return status;
}

// ---------------------------------------------------------------------------- a node of a session

struct Kernel {
    const Api& api;
    Kind kind;
    PyObject* node;  // maxops.onnxruntime.node.Node
    PyObject* keepdims;
    PyObject* fill_mode;
    bool broadcasts, negative_axes, noop;
};

// What one run of a node owns until it is over. (No destructor: see Output in operators.cpp.)
class Call {
public:
    Call(const Kernel& kernel, KernelContext* context)
        : kernel_(kernel), api_(kernel.api), context_(context) {}

    void run() {
        std::size_t count = 0;
        check(api_.input_count(context_, &count));
        for (std::size_t i = 0; i < count; ++i) {
            const Value* value = nullptr;
            check(api_.input(context_, i, &value));
            // the interface has one function for tensors that are read and that are written
            inputs_.push_back(value == nullptr ? Py_None : array_on(const_cast<Value*>(value), false));
        }
        const bool is_done = kernel_.kind == kMax         ? maximum()
                             : kernel_.kind == kReduceMax ? reduce_max()
                                                          : segment_max();
        if (!is_done) slowly();
    }
    void release() {
        for (PyObject* object : owned_) Py_DECREF(object);
    }

private:
    PyObject* own(PyObject* object) {
        if (object == nullptr) throw python_error(api_);
        owned_.push_back(object);
        return object;
    }

    PyObject* array_on(Value* value, bool is_output) {
        TensorInfo* info = nullptr;
        check(api_.tensor_info(value, &info));
        int element = 0;
        std::size_t rank = 0;
        std::int64_t sizes[kMaxRank];
        Status* status = api_.element_type(info, &element);
        if (status == nullptr) status = api_.rank(info, &rank);
        if (status == nullptr && rank <= kMaxRank) status = api_.dimensions(info, sizes, rank);
        api_.release_tensor_info(info);
        check(status);
        if (rank > kMaxRank)
            throw Failed{api_.create_status(kInvalidArgument, "a tensor of a rank above NumPy's limit, 64")};
        void* data = nullptr;
        check(api_.tensor_data(value, &data));
        npy_intp dims[kMaxRank];
        std::copy(sizes, sizes + rank, dims);
        const int flags = is_output ? NPY_ARRAY_CARRAY : NPY_ARRAY_CARRAY_RO;
        return own(PyArray_New(&PyArray_Type, static_cast<int>(rank), dims,
                               number_of(type_of_element(element)), nullptr, data, 0, flags, nullptr));
    }

    PyArrayObject* input(std::size_t i) const {
        return i < inputs_.size() && inputs_[i] != Py_None ? reinterpret_cast<PyArrayObject*>(inputs_[i])
                                                           : nullptr;
    }

    // The node's output, of these sizes; null if memory cannot hold it.
    PyObject* output(int rank, const npy_intp* dims) {
        if (!fits_memory(static_cast<std::size_t>(PyArray_ITEMSIZE(input(0))), rank, dims)) return nullptr;
        std::int64_t sizes[kMaxRank];
        std::copy(dims, dims + rank, sizes);
        Value* value = nullptr;
        check(api_.output(context_, 0, sizes, static_cast<std::size_t>(rank), &value));
        return array_on(value, true);
    }

    // Whether a call was clearly valid.
    bool is_done(PyObject* result) {
        if (result == nullptr && !goes_to_python()) throw python_error(api_);
        Py_XDECREF(result);
        return result != nullptr;
    }

    bool maximum() {
        int rank = 0;
        for (PyObject* object : inputs_) {
            if (object == Py_None) return false;
            rank = std::max(rank, PyArray_NDIM(reinterpret_cast<PyArrayObject*>(object)));
        }
        npy_intp dims[kMaxRank];
        std::fill(dims, dims + rank, 1);
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const int lead = rank - PyArray_NDIM(input(i));
            if (!kernel_.broadcasts && !PyArray_SAMESHAPE(input(i), input(0))) return false;
            for (int axis = lead; axis < rank; ++axis) {
                const npy_intp size = PyArray_DIM(input(i), axis - lead);
                if (size == 1 || size == dims[axis]) continue;
                if (dims[axis] != 1) return false;
                dims[axis] = size;
            }
        }
        PyObject* out = output(rank, dims);
        if (out == nullptr) return false;
        PyObject* keywords = own(Py_BuildValue("(s)", "out"));
        inputs_.push_back(out);
        PyObject* result =
            call_maximum(inputs_.data(), static_cast<Py_ssize_t>(inputs_.size()) - 1, keywords);
        inputs_.pop_back();
        return is_done(result);
    }

    // The axes that are named, as a tuple that call_reduce_max takes; null if they are not clearly valid.
    PyObject* named_axes(PyArrayObject* array, int rank, bool* reduced) {
        std::fill(reduced, reduced + rank, false);
        if (PyArray_NDIM(array) != 1) return nullptr;
        const npy_intp count = PyArray_SIZE(array);
        PyObject* tuple = own(PyTuple_New(count));
        for (npy_intp i = 0; i < count; ++i) {
            std::int64_t axis;
            std::memcpy(&axis, PyArray_BYTES(array) + i * 8, sizeof axis);
            if (axis < (kernel_.negative_axes ? -rank : 0) || axis >= rank) return nullptr;
            bool& taken = reduced[axis < 0 ? axis + rank : axis];
            if (taken) return nullptr;
            taken = true;
            PyObject* number = PyLong_FromLongLong(axis);
            if (number == nullptr) throw python_error(api_);
            PyTuple_SET_ITEM(tuple, i, number);
        }
        return tuple;
    }

    bool reduce_max() {
        PyArrayObject *data = input(0), *given = input(1);
        if (data == nullptr) return false;
        const int rank = PyArray_NDIM(data);
        const bool are_named = given != nullptr && PyArray_SIZE(given) > 0;
        if (!are_named && kernel_.noop) {
            PyObject* out = output(rank, PyArray_DIMS(data));
            if (out == nullptr) return false;
            if (PyArray_NBYTES(data) > 0)  // a caller's own output may overlap the input
                std::memmove(PyArray_DATA(reinterpret_cast<PyArrayObject*>(out)), PyArray_DATA(data),
                             static_cast<std::size_t>(PyArray_NBYTES(data)));
            return true;
        }
        bool reduced[kMaxRank];
        std::fill(reduced, reduced + rank, true);
        PyObject* axes = are_named ? named_axes(given, rank, reduced) : Py_None;
        if (axes == nullptr) return false;
        npy_intp dims[kMaxRank];
        int out_rank = 0;
        for (int axis = 0; axis < rank; ++axis)
            if (!reduced[axis])
                dims[out_rank++] = PyArray_DIM(data, axis);
            else if (kernel_.keepdims == Py_True)
                dims[out_rank++] = 1;
        PyObject* out = output(out_rank, dims);
        if (out == nullptr) return false;
        PyObject* args[] = {inputs_[0], axes, kernel_.keepdims, Py_False, out};
        return is_done(call_reduce_max(args, 5, nullptr));
    }

    // An id, or a number of segments, by its place.
    static std::int64_t integer(PyArrayObject* array, npy_intp place) {
        const char* from = PyArray_BYTES(array) + place * PyArray_ITEMSIZE(array);
        if (type_of(array) == static_cast<int>(Type::int32_)) {
            std::int32_t narrow;
            std::memcpy(&narrow, from, sizeof narrow);
            return narrow;
        }
        std::int64_t wide;
        std::memcpy(&wide, from, sizeof wide);
        return wide;
    }

    bool segment_max() {
        PyArrayObject *data = input(0), *ids = input(1), *count = input(2);
        if (data == nullptr || ids == nullptr || PyArray_NDIM(data) == 0 || PyArray_NDIM(ids) != 1)
            return false;
        if (count != nullptr && PyArray_NDIM(count) != 0) return false;
        std::int64_t segments = 0;
        if (count != nullptr)
            segments = integer(count, 0);
        else if (PyArray_SIZE(ids) > 0 && (segments = integer(ids, PyArray_SIZE(ids) - 1)) != INT64_MAX)
            ++segments;
        if (segments < 0) return false;
        npy_intp dims[kMaxRank];
        std::copy(PyArray_DIMS(data), PyArray_DIMS(data) + PyArray_NDIM(data), dims);
        dims[0] = segments;
        PyObject* out = output(PyArray_NDIM(data), dims);
        if (out == nullptr) return false;
        PyObject* number = own(PyLong_FromLongLong(segments));
        return is_done(segment_max_into_new(inputs_[0], inputs_[1], number, kernel_.fill_mode, out));
    }

    // By the planner: it raises what is wrong, or gives the result.
    void slowly() {
        PyObject* object = own(PyObject_Vectorcall(kernel_.node, inputs_.data(), inputs_.size(), nullptr));
        auto* result = reinterpret_cast<PyArrayObject*>(object);
        if (!PyArray_CheckExact(object) || !PyArray_IS_C_CONTIGUOUS(result) || input(0) == nullptr ||
            type_of(result) != type_of(input(0)))
            throw Failed{api_.create_status(kFail, "maxops: the planner gave no array of the data's type")};
        PyObject* out = output(PyArray_NDIM(result), PyArray_DIMS(result));
        if (out == nullptr) throw Failed{api_.create_status(kFail, "maxops: out of memory")};
        if (PyArray_NBYTES(result) > 0)  // the result may be the input itself
            std::memmove(PyArray_DATA(reinterpret_cast<PyArrayObject*>(out)), PyArray_DATA(result),
                         static_cast<std::size_t>(PyArray_NBYTES(result)));
    }

    const Kernel& kernel_;
    const Api& api_;
    KernelContext* const context_;
    std::vector<PyObject*> inputs_;  // borrowed
    std::vector<PyObject*> owned_;
};

Status* compute(void* kernel, KernelContext* context) {
    const auto& known = *static_cast<const Kernel*>(kernel);
    if (!reserve_scratch()) return known.api.create_status(kFail, "maxops: out of memory");
    return with_python(known.api, [&] {
        Call call(known, context);
        try {
            call.run();
        } catch (const Failed&) {
            call.release();
            throw;
        } catch (const std::bad_alloc&) {
            call.release();
            throw;
        }
        call.release();
    });
}

void destroy(void* kernel) {
    auto* known = static_cast<Kernel*>(kernel);
    if (Py_IsInitialized()) {  // a session may outlive the interpreter; its objects then went with it
        PyGILState_STATE state = PyGILState_Ensure();
        Py_DECREF(known->node);
        Py_DECREF(known->keepdims);
        Py_DECREF(known->fill_mode);
        PyGILState_Release(state);
    }
    delete known;
}

// ---------------------------------------------------------------------------- the operators

// One operator for each combination of types, so that the runtime itself refuses every other.
struct Operator : CustomOperator {
    Kind kind;
    int type;
    int other_types[2];  // of the second and third input
};

const Operator& own(const CustomOperator* op) {
    return *static_cast<const Operator*>(op);
}

PyObject* attributes_of(const Api& api, const KernelInfo* info) {
    PyObject* attributes = PyDict_New();
    if (attributes == nullptr) throw python_error(api);
    auto set = [&](const char* name, PyObject* value) {
        const bool is_set = value != nullptr && PyDict_SetItemString(attributes, name, value) == 0;
        Py_XDECREF(value);
        if (!is_set) throw python_error(api);
    };
    for (const char* name : {"since_version", "keepdims", "noop_with_empty_axes"}) {
        std::int64_t number = 0;
        if (Status* status = api.attribute_int64(info, name, &number); status != nullptr)
            api.release_status(status);  // it is not there
        else
            set(name, PyLong_FromLongLong(number));
    }
    std::size_t size = 0;
    if (Status* status = api.attribute_string(info, "fill_mode", nullptr, &size); status != nullptr) {
        api.release_status(status);
    } else {
        std::string text(size, '\0');
        check(api.attribute_string(info, "fill_mode", text.data(), &size));
        text.resize(size - 1);  // without the zero at its end
        set("fill_mode",
            PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
    }
    return attributes;
}

bool flag(const Api& api, PyObject* node, const char* name) {
    PyObject* value = PyObject_GetAttrString(node, name);
    if (value == nullptr) throw python_error(api);
    Py_DECREF(value);
    return value == Py_True;
}

Status* create(const CustomOperator* op, const Api* api, const KernelInfo* info, void** kernel) {
    return with_python(*api, [&] {
        PyObject* module = PyImport_ImportModule("maxops.onnxruntime.node");
        if (module == nullptr) throw python_error(*api);
        PyObject* attributes = attributes_of(*api, info);
        PyObject* node = PyObject_CallMethod(module, "prepare", "ssO", kNames[own(op).kind],
                                             kTypeNames[own(op).type], attributes);
        Py_DECREF(module);
        Py_DECREF(attributes);
        if (node == nullptr) throw python_error(*api);
        PyObject* fill_mode = PyObject_GetAttrString(node, "fill_mode");
        if (fill_mode == nullptr) throw python_error(*api);
        *kernel = new Kernel{*api,
                             own(op).kind,
                             node,
                             Py_NewRef(flag(*api, node, "keepdims") ? Py_True : Py_False),
                             fill_mode,
                             flag(*api, node, "broadcasts"),
                             flag(*api, node, "negative_axes"),
                             flag(*api, node, "noop_with_empty_axes")};
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
    op.input_types = [](const CustomOperator* self) { return std::size_t{1} + own(self).kind; };
    op.output_type = [](const CustomOperator* self, std::size_t) { return element_of(self, 0); };
    op.output_types = [](const CustomOperator*) { return std::size_t{1}; };
    op.destroy = destroy;
    op.input_characteristic = [](const CustomOperator* self, std::size_t input) {
        if (own(self).kind == kMax) return kVariadic;
        const std::size_t required = own(self).kind == kReduceMax ? 1 : 2;
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

// The runtime keeps pointers to them for good.
const std::vector<Operator>& operators() {
    static const auto* all = [] {
        auto* made = new std::vector<Operator>;
        const int wide = static_cast<int>(Type::int64_);
        for (int type = 0; type < kTypes; ++type) {
            made->push_back(make(kMax, type, type, type));
            made->push_back(make(kReduceMax, type, wide, wide));
            for (int ids : kIndexTypes)
                for (int count : kIndexTypes) made->push_back(make(kSegmentMax, type, ids, count));
        }
        return made;
    }();
    return *all;
}

}  // namespace
}  // namespace maxops::onnxruntime

// What SessionOptions.register_custom_ops_library looks for in this library.
extern "C" __attribute__((visibility("default"))) maxops::onnxruntime::Status* RegisterCustomOps(
    maxops::onnxruntime::SessionOptions* options, const maxops::onnxruntime::ApiBase* base) {
    using namespace maxops::onnxruntime;
    const Api* api = base->get_api(kVersion);
    if (api == nullptr)
        return base->get_api(1)->create_status(kFail, "maxops needs onnxruntime 1.21 or newer");
    static OperatorDomain* domain = nullptr;  // sessions go on using it
    if (domain == nullptr) {
        OperatorDomain* made = nullptr;
        if (Status* status = api->create_domain("maxops", &made); status != nullptr) return status;
        for (const Operator& op : operators())
            if (Status* status = api->add_operator(made, &op); status != nullptr) return status;
        domain = made;
    }
    return api->add_domain(options, domain);
}
