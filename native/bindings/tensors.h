// Tensors of a framework whose class has DLPack's table of C functions: small calls read and make them here,
// without Python. Calls that the framework must see, because of a gradient, a transform or a mode, go to
// Python. A call asks the framework before it reads the tensors.
#pragma once
#include "arguments.h"
#include "dlpack_abi.h"
#include "operators.h"
#include "released.h"

namespace maxops {

struct Framework;

// The arguments of one call. Some may be tensors, all of one framework. Views of tensors are valid until
// other code runs, so the call must keep the GIL. Questions to the framework may release it, so they come
// first.
class Tensors {
public:
    Tensors() = default;
    // The arguments of a vectorcall.
    Tensors(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords);

    // Gets a view of an array, a NumPy scalar or a tensor, of a supported type.
    bool read(PyObject* object, View* view, Item* item) {
        return read_typed(object, view, item) ||
               (framework_ != nullptr && object != nullptr && look(object, view));
    }
    // Reads a number, or an array of rank 0 of this type. A tensor is accepted only if another argument is a
    // tensor.
    bool read_scalar(PyObject* object, int type, Item* item) {
        View view;
        if (is_python_scalar(object)) return read_python_scalar(object, type, &view, item);
        return (read_typed(object, &view, item) || (has_tensor_ && look(object, &view))) &&
               maxops::read_scalar(view, type, item);
    }
    // Gets a view of an output tensor of a call on tensors; false if it may not be written.
    bool read_output(PyObject* object, View* view);
    // Tells the framework that a tensor was written; false with an error set.
    bool was_written(PyObject* output) const;
    // Whether an argument is a tensor of the framework.
    bool has(PyObject* object) const;
    // The framework of the tensors; null if no argument is a tensor that calls here accept.
    const Framework* framework() const { return framework_; }
    bool are_contiguous() const { return are_contiguous_; }
    // Calls on tensors that touch fewer bytes keep the GIL, for 0.01 to 0.5 ms, and ignore signals, because
    // nothing else may run. The path through Python, which releases the GIL, adds 8 to 35 microseconds to a
    // call.
    Release release(std::size_t bytes) const {
        return framework_ != nullptr ? Release(bytes, kThreadedBytes) : Release(bytes);
    }
    Poll poll() const { return framework_ != nullptr ? nullptr : poll_signals; }
    // Whether the call must go to Python, because other code may run during it.
    bool needs_python(const Release& release) const {
        return framework_ != nullptr && release.lets_others_run();
    }

private:
    bool look(PyObject* object, View* view);

    const Framework* framework_ = nullptr;
    bool has_tensor_ = false, are_contiguous_ = true;
    int used_ = 0;
    std::ptrdiff_t strides_[32];  // in bytes; tensors of more axes go to Python
};

// A new NumPy array, or a new tensor of a framework that has no Python object yet.
class Made {
public:
    // Null on failure, with an error set for NumPy arrays, and without one for tensors: Python then sets it.
    // Laid out with `axes` from outermost to innermost, or in C order if null. A tensor keeps pointers to the
    // axes and the shape, and give() puts it in C order.
    static Made array(int type, int rank, const npy_intp* dims, const int* axes, bool* is_mapped) {
        return {new_output(number_of(type), rank, dims, axes, is_mapped), nullptr, nullptr};
    }
    static Made tensor(const Framework* framework, int type, int rank, const npy_intp* dims,
                       const int* axes = nullptr);
    // Makes a tensor with the shape, type and layout of another one, without gaps or repeated elements.
    static Made like(const Framework* framework, const View& other);
    Made() = default;

    explicit operator bool() const { return array_ != nullptr || tensor_ != nullptr; }
    char* data() const {
        return array_ != nullptr ? PyArray_BYTES(array_)
                                 : static_cast<char*>(tensor_->tensor.data) + tensor_->tensor.offset;
    }
    // A view of the array or tensor. The strides of a tensor go to `room`.
    View view(int type, std::ptrdiff_t* room) const;
    PyArrayObject* array() const { return array_; }
    // Puts a tensor in C order; false on failure.
    bool put_in_c_order();
    // Gives up ownership, and returns a new reference. Null with an error set, or without one if a tensor
    // cannot be put in C order.
    PyObject* give();
    void drop();

private:
    Made(PyArrayObject* array, dlpack::OwnedTensor* tensor, const Framework* framework)
        : array_(array), tensor_(tensor), framework_(framework) {}

    PyArrayObject* array_ = nullptr;
    dlpack::OwnedTensor* tensor_ = nullptr;
    const Framework* framework_ = nullptr;
    const int* axes_ = nullptr;  // of a tensor that is not in C order: the order of its own axes
    const npy_intp* dims_ = nullptr;
};

// Copies results to another layout; false if out of memory.
bool copy_results(const View& from, const View& to);

// (classes, functions, settings, gradients, attributes, methods, outputs): accept tensors of these classes
// from now on. The first class has the table. Calls need every function to return false, and each setting (a
// dict, a key, a value) to have its value. Methods and attributes are descriptors of the first class. A
// tensor needs every method to return false, and every attribute to be false, unless the function `gradients`
// returns false. `outputs` are a method, a function and a callback. If the method returns true for a tensor,
// it is written only if the function returns true. The callback gets each tensor that was written, and may
// run other code. Returns False if the table is missing or too old.
PyObject* py_take_tensors(PyObject* self, PyObject* args);

}  // namespace maxops
