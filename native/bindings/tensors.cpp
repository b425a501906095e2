#include "tensors.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

namespace maxops {

constexpr int kMostAnswers = 8, kMostClasses = 4, kMostFrameworks = 4;
constexpr int kMostAxes = 32;  // of all tensors of a call together

struct Framework {
    const dlpack::Table* table;
    dlpack::ElementType types[kTypes];
    int classes, functions, settings, attributes, methods;
    PyTypeObject* class_[kMostClasses];
    PyObject* function[kMostAnswers];
    struct Setting {
        PyObject *items, *key, *value;
    } setting[kMostAnswers];
    struct Attribute {
        PyObject* descriptor;
        descrgetfunc get;
    } attribute[kMostAnswers];
    PyObject* method[kMostAnswers];
    PyObject* gradients;
    PyObject *is_guarded, *is_guard_off, *was_written;  // for outputs

    // Whether no function or setting requires Python, regardless of the tensors.
    bool is_idle() const;
    bool has(PyTypeObject* type) const {
        for (int k = 0; k < classes; ++k)
            if (class_[k] == type) return true;
        return false;
    }
    // Whether a tensor has no features that require Python, such as a gradient.
    bool is_plain(PyObject* tensor) const;
    int type_of(const dlpack::ElementType& type) const {
        for (int k = 0; k < kTypes; ++k)
            if (types[k].code == type.code && types[k].bits == type.bits && type.lanes == 1) return k;
        return -1;
    }
};

namespace {

Framework frameworks[kMostFrameworks];  // never freed, nor are the objects that they hold
int count_of_frameworks = 0;

const Framework* framework_of(PyTypeObject* type) {
    for (int k = 0; k < count_of_frameworks; ++k)
        if (frameworks[k].has(type)) return frameworks + k;
    return nullptr;
}

// Whether a Python call returned the expected truth value. Takes the reference. Clears errors, except Ctrl-C.
bool is(int expected, PyObject* answer) {
    const bool is_so = answer != nullptr && PyObject_IsTrue(answer) == expected;
    Py_XDECREF(answer);
    if (!is_so && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
    return is_so;
}

bool is_false(PyObject* answer) {
    return is(0, answer);
}

bool is_true(PyObject* answer) {
    return is(1, answer);
}

// A type's code in DLPack, by the family of its name.
std::uint8_t code_of(std::string_view name) {
    using namespace dlpack;
    const std::string_view family = name.substr(0, name.find_first_of("0123456789"));
    return family == "float"    ? kFloat
           : family == "bfloat" ? kBFloat
           : family == "int"    ? kInt
           : family == "uint"   ? kUInt
                                : kBool;
}

bool is_in_c_order(const dlpack::Tensor& tensor) {
    std::int64_t expected = 1;
    bool is_so = true;
    for (int axis = tensor.rank - 1; axis >= 0; --axis) {
        if (tensor.sizes[axis] == 0) return true;
        if (tensor.sizes[axis] != 1 && tensor.strides != nullptr && tensor.strides[axis] != expected)
            is_so = false;
        expected *= tensor.sizes[axis];
    }
    return is_so;
}

void ignore_error(void*, const char*, const char*) {}

}  // namespace

bool Framework::is_idle() const {
    for (int k = 0; k < settings; ++k)
        if (PyDict_GetItemWithError(setting[k].items, setting[k].key) != setting[k].value) {
            PyErr_Clear();
            return false;
        }
    for (int k = 0; k < functions; ++k)
        if (!is_false(PyObject_Vectorcall(function[k], nullptr, 0, nullptr))) return false;
    return true;
}

bool Framework::is_plain(PyObject* tensor) const {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(tensor));
    for (int k = 0; k < attributes; ++k)
        if (!is_false(attribute[k].get(attribute[k].descriptor, tensor, type)) &&
            !is_false(PyObject_Vectorcall(gradients, nullptr, 0, nullptr)))
            return false;
    for (int k = 0; k < methods; ++k)
        if (!is_false(PyObject_Vectorcall(method[k], &tensor, 1, nullptr))) return false;
    return true;
}

Tensors::Tensors(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords) {
    if (!rules.is_plain || rules.is_ufunc || count_of_frameworks == 0) return;
    const Py_ssize_t count = positional + (keywords == nullptr ? 0 : PyTuple_Size(keywords));
    const Framework* found = nullptr;
    for (Py_ssize_t k = 0; k < count; ++k) {
        const Framework* const other = framework_of(Py_TYPE(args[k]));
        if (other == nullptr) continue;
        if ((found == nullptr ? !other->is_idle() : found != other) || !other->is_plain(args[k])) return;
        found = other;
    }
    framework_ = found;
}

bool Tensors::read_output(PyObject* object, View* view) {
    return framework_ != nullptr && has_tensor_ && look(object, view) &&
           (is_false(PyObject_Vectorcall(framework_->is_guarded, &object, 1, nullptr)) ||
            is_true(PyObject_Vectorcall(framework_->is_guard_off, nullptr, 0, nullptr)));
}

bool Tensors::has(PyObject* object) const {
    return framework_ != nullptr && framework_->has(Py_TYPE(object));
}

bool Tensors::was_written(PyObject* output) const {
    PyObject* const none = PyObject_Vectorcall(framework_->was_written, &output, 1, nullptr);
    Py_XDECREF(none);
    return none != nullptr;
}

bool Tensors::look(PyObject* object, View* view) {
    if (!framework_->has(Py_TYPE(object))) return false;
    dlpack::Tensor tensor;
    if (framework_->table->look(object, &tensor) != 0) {
        PyErr_Clear();
        return false;
    }
    const int type = framework_->type_of(tensor.type);
    static_assert(sizeof strides_ / sizeof *strides_ == kMostAxes);
    if (type < 0 || tensor.device.type != dlpack::kCpu || tensor.rank > kMostAxes - used_) return false;
    const auto itemsize = static_cast<std::int64_t>(kernels_of(type).itemsize);
    const bool is_contiguous = is_in_c_order(tensor);
    static_assert(sizeof(std::ptrdiff_t) == sizeof *tensor.sizes);
    std::ptrdiff_t* const strides = strides_ + used_;
    std::int64_t dense = itemsize;
    for (int axis = tensor.rank - 1; axis >= 0; --axis) {
        strides[axis] = tensor.strides == nullptr ? dense : tensor.strides[axis] * itemsize;
        // more bytes than an address space has, as in expanded tensors: no NumPy array is that large
        if (__builtin_mul_overflow(dense, tensor.sizes[axis], &dense)) return false;
    }
    used_ += tensor.rank;
    are_contiguous_ = are_contiguous_ && is_contiguous;
    *view = {static_cast<char*>(tensor.data) + tensor.offset,
             reinterpret_cast<const std::ptrdiff_t*>(tensor.sizes),
             strides,
             tensor.rank,
             type,
             false,
             is_contiguous};
    has_tensor_ = true;
    return tensor.data != nullptr || view->elements() == 0;
}

namespace {

// The strides of a new tensor that is laid out like another one, as in PyTorch's empty_like. If the other
// tensor has no gaps and no repeated elements, these are its own strides. Otherwise its axes are packed in
// the order of its strides, where strides of 0 are not compared.
void get_packed_steps(const View& other, std::ptrdiff_t itemsize, std::int64_t* steps) {
    const int rank = other.rank;
    int axes[kMaxRank];  // from innermost to outermost
    for (int i = 0; i < rank; ++i) axes[i] = rank - 1 - i;
    const auto compare = [&](int a, int b) {
        const std::ptrdiff_t left = std::abs(other.strides[a]), right = std::abs(other.strides[b]);
        if (left == 0 || right == 0) return 0;
        if (left != right) return left < right ? -1 : 1;
        return other.sizes[a] > other.sizes[b] ? 1 : 0;
    };
    for (int i = 1; i < rank; ++i)
        for (int place = i, before = i - 1; before >= 0; --before) {
            const int order = compare(axes[before], axes[place]);
            if (order < 0) break;
            if (order > 0) {
                std::swap(axes[before], axes[place]);
                place = before;
            }
        }
    std::int64_t step = 1;
    bool is_packed = true;
    for (int i = 0; i < rank; ++i) {
        const int axis = axes[i];
        steps[axis] = step;
        is_packed = is_packed && (other.sizes[axis] == 1 || other.strides[axis] == step * itemsize);
        step *= other.sizes[axis];
    }
    for (int axis = 0; is_packed && axis < rank; ++axis) steps[axis] = other.strides[axis] / itemsize;
}

// A framework's 1-D tensor in another shape.
struct Shaped {
    dlpack::OwnedTensor tensor;
    dlpack::OwnedTensor* flat;
    std::int64_t sizes[kMostAxes], steps[kMostAxes];
};

void release_shaped(dlpack::OwnedTensor* tensor) {
    auto* const shaped = static_cast<Shaped*>(tensor->context);
    shaped->flat->release(shaped->flat);
    delete shaped;
}

}  // namespace

Made Made::like(const Framework* framework, const View& other) {
    const auto elements = static_cast<npy_intp>(other.elements());
    std::unique_ptr<Shaped> shaped(new Shaped);
    Made made = tensor(framework, other.type, 1, &elements);
    if (!made) return made;
    shaped->flat = made.tensor_;
    shaped->tensor = *made.tensor_;
    shaped->tensor.context = shaped.get();
    shaped->tensor.release = release_shaped;
    std::copy(other.sizes, other.sizes + other.rank, shaped->sizes);
    get_packed_steps(other, static_cast<std::ptrdiff_t>(kernels_of(other.type).itemsize), shaped->steps);
    shaped->tensor.tensor.rank = other.rank;
    shaped->tensor.tensor.sizes = shaped->sizes;
    shaped->tensor.tensor.strides = shaped->steps;
    made.tensor_ = &shaped.release()->tensor;
    return made;
}

Made Made::tensor(const Framework* framework, int type, int rank, const npy_intp* dims, const int* axes) {
    static_assert(sizeof(npy_intp) == sizeof(std::int64_t));
    std::int64_t sizes[kMaxRank];
    for (int axis = 0; axis < rank; ++axis) sizes[axis] = dims[axes == nullptr ? axis : axes[axis]];
    dlpack::Tensor prototype{nullptr, {dlpack::kCpu, 0}, rank, framework->types[type], sizes, nullptr, 0};
    dlpack::OwnedTensor* made = nullptr;
    if (framework->table->allocate(&prototype, &made, nullptr, ignore_error) != 0) {
        PyErr_Clear();
        return {};
    }
    if (made->version.major == dlpack::kMajor && is_in_c_order(made->tensor)) {
        Made result(nullptr, made, framework);
        result.axes_ = axes;
        result.dims_ = dims;
        return result;
    }
    made->release(made);
    return {};
}

View Made::view(int type, std::ptrdiff_t* room) const {
    if (array_ != nullptr) return view_of(array_, type, room);
    const dlpack::Tensor& tensor = tensor_->tensor;
    const auto itemsize = static_cast<std::ptrdiff_t>(kernels_of(type).itemsize);
    std::int64_t dense = 1;
    for (int axis = tensor.rank - 1; axis >= 0; --axis) {
        const std::int64_t step = tensor.strides == nullptr ? dense : tensor.strides[axis];
        room[axes_ == nullptr ? axis : axes_[axis]] = step * itemsize;
        dense *= tensor.sizes[axis];
    }
    const auto* const sizes = axes_ == nullptr ? reinterpret_cast<const std::ptrdiff_t*>(tensor.sizes)
                                               : reinterpret_cast<const std::ptrdiff_t*>(dims_);
    return {data(), sizes, room, tensor.rank, type, false, axes_ == nullptr && is_in_c_order(tensor)};
}

bool copy_results(const View& from, const View& to) {
    Maximum same(&from, 1);
    return !plan_maximum(Broadcasting::kNone, &same) && !maximum(nullptr, same, to, false);
}

bool Made::put_in_c_order() {
    if (axes_ == nullptr) return true;
    const int type = framework_->type_of(tensor_->tensor.type);
    Made ordered = tensor(framework_, type, tensor_->tensor.rank, dims_);
    std::ptrdiff_t room[2][kMaxRank];
    const bool is_copied = ordered && copy_results(view(type, room[0]), ordered.view(type, room[1]));
    std::swap(*this, ordered);
    ordered.drop();
    return is_copied;
}

PyObject* Made::give() {
    if (tensor_ == nullptr) {
        PyObject* const object = as_object(array_);
        array_ = nullptr;
        return object;
    }
    if (!put_in_c_order()) {
        drop();
        return nullptr;
    }
    void* object = nullptr;
    const bool is_given = framework_->table->give(tensor_, &object) == 0;
    tensor_ = nullptr;  // the framework owns it now
    return is_given ? static_cast<PyObject*>(object) : nullptr;
}

void Made::drop() {
    Py_CLEAR(array_);
    if (tensor_ != nullptr) tensor_->release(tensor_);
    tensor_ = nullptr;
}

// ---------------------------------------------------------------------------- registering

PyObject* py_take_tensors(PyObject*, PyObject* args) {
    PyObject *classes, *functions, *settings, *gradients, *attributes, *methods, *guarded, *off, *written;
    if (!PyArg_ParseTuple(args, "O!O!O!OO!O!(OOO):take_tensors", &PyTuple_Type, &classes, &PyTuple_Type,
                          &functions, &PyTuple_Type, &settings, &gradients, &PyTuple_Type, &attributes,
                          &PyTuple_Type, &methods, &guarded, &off, &written))
        return nullptr;
    if (PyTuple_Size(classes) == 0) Py_RETURN_FALSE;
    if (framework_of(reinterpret_cast<PyTypeObject*>(PyTuple_GetItem(classes, 0))) != nullptr) Py_RETURN_TRUE;
    if (count_of_frameworks == kMostFrameworks) Py_RETURN_FALSE;
    Framework made{};
    const auto read = [](PyObject* tuple, int most, int* count, const auto& put) {
        *count = static_cast<int>(PyTuple_Size(tuple));
        if (*count > most)
            PyErr_Format(PyExc_ValueError, "take_tensors() expects at most %d items in each tuple", most);
        for (int k = 0; k < *count && !PyErr_Occurred(); ++k) put(k, PyTuple_GetItem(tuple, k));
        return !PyErr_Occurred();
    };
    const bool is_read =
        read(classes, kMostClasses, &made.classes,
             [&](int k, PyObject* item) {
                 if (PyType_Check(item))
                     made.class_[k] = reinterpret_cast<PyTypeObject*>(item);
                 else
                     PyErr_SetString(PyExc_TypeError, "take_tensors() expects classes");
             }) &&
        read(functions, kMostAnswers, &made.functions,
             [&](int k, PyObject* item) { made.function[k] = item; }) &&
        read(settings, kMostAnswers, &made.settings,
             [&](int k, PyObject* item) {
                 Framework::Setting& to = made.setting[k];
                 if (!PyTuple_Check(item))
                     PyErr_SetString(PyExc_TypeError,
                                     "take_tensors() expects tuples of a dict, a key and a value");
                 else
                     PyArg_ParseTuple(item, "O!OO", &PyDict_Type, &to.items, &to.key, &to.value);
             }) &&
        read(attributes, kMostAnswers, &made.attributes,
             [&](int k, PyObject* item) {
                 auto* const get = PyType_GetSlot(Py_TYPE(item), Py_tp_descr_get);
                 made.attribute[k] = {item, reinterpret_cast<descrgetfunc>(get)};
                 if (get == nullptr) PyErr_SetString(PyExc_TypeError, "take_tensors() expects descriptors");
             }) &&
        read(methods, kMostAnswers, &made.methods, [&](int k, PyObject* item) { made.method[k] = item; });
    if (!is_read) return nullptr;
    PyObject* capsule = PyObject_GetAttrString(PyTuple_GetItem(classes, 0), "__dlpack_c_exchange_api__");
    made.table = capsule == nullptr
                     ? nullptr
                     : static_cast<const dlpack::Table*>(PyCapsule_GetPointer(capsule, dlpack::kTableName));
    Py_XDECREF(capsule);  // the table lives as long as the process
    PyErr_Clear();
    if (made.table == nullptr || made.table->version.major != dlpack::kMajor ||
        made.table->version.minor < dlpack::kTableSince || made.table->look == nullptr)
        Py_RETURN_FALSE;
    for (int type = 0; type < kTypes; ++type)
        made.types[type] = {code_of(kTypeNames[type]),
                            static_cast<std::uint8_t>(8 * kernels_of(type).itemsize), 1};
    made.gradients = gradients;
    made.is_guarded = guarded;
    made.is_guard_off = off;
    made.was_written = written;
    Py_INCREF(args);  // keeps all of them alive, and is never freed
    frameworks[count_of_frameworks++] = made;
    Py_RETURN_TRUE;
}

}  // namespace maxops
