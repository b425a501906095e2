// Tensors of a framework whose class has DLPack's table of C functions: small calls read and make them here,
// without Python between. Whatever the framework has to know of a call (a gradient, a transform, a mode) is
// asked of it first, and then the call goes to Python.
#pragma once
#include "arguments.h"
#include "dlpack_abi.h"
#include "operators.h"
#include "released.h"

namespace maxops {

struct Framework;

// The arguments of one call. Some may be tensors, all of one framework. Views of them are valid
// until other code runs: for calls that keep the GIL. What is asked first may let it run.
class Tensors {
public:
    Tensors() = default;
    // The arguments of a vectorcall.
    Tensors(const Rules& rules, PyObject* const* args, Py_ssize_t positional, PyObject* keywords);

    // A view of an array, a NumPy scalar or a tensor, of one of our types.
    bool read(PyObject* object, View* view, Item* item) {
        return read_typed(object, view, item) ||
               (framework_ != nullptr && object != nullptr && look(object, view));
    }
    // A number, or an array of rank 0 of this type; a tensor only beside another one.
    bool read_scalar(PyObject* object, int type, Item* item) {
        View view;
        if (is_python_scalar(object)) return read_python_scalar(object, type, &view, item);
        return (read_typed(object, &view, item) || (has_tensor_ && look(object, &view))) &&
               maxops::read_scalar(view, type, item);
    }
    // A tensor beside others that may be written to.
    bool read_output(PyObject* object, View* view);
    // After it was written to; false with an error set.
    bool was_written(PyObject* output) const;
    // Whether an argument is a tensor of the framework.
    bool has(PyObject* object) const;
    // Null where no argument is a tensor that is taken here.
    const Framework* framework() const { return framework_; }
    bool are_contiguous() const { return are_contiguous_; }
    // Calls on tensors that touch fewer bytes keep the GIL, for 0.01 to 0.5 ms, and hear no signal: nothing
    // else may run. The way through Python, which releases it, adds 8 to 35 microseconds to a call.
    Release release(std::size_t bytes) const {
        return framework_ != nullptr ? Release(bytes, kThreadedBytes) : Release(bytes);
    }
    Poll poll() const { return framework_ != nullptr ? nullptr : poll_signals; }
    // Whether other code may run while the call does.
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

// A new array of NumPy's, or a framework's tensor that is not given to Python yet.
class Made {
public:
    // Null if it cannot be had: of NumPy's with an error set, of a framework's without one, which Python then
    // sets. Laid out by `axes` from outermost to innermost, or in C order if null. Of a tensor, which is in C
    // order once it is given, the axes and the shape stay the caller's.
    static Made array(int type, int rank, const npy_intp* dims, const int* axes, bool* is_mapped) {
        return {new_output(number_of(type), rank, dims, axes, is_mapped), nullptr, nullptr};
    }
    static Made tensor(const Framework* framework, int type, int rank, const npy_intp* dims,
                       const int* axes = nullptr);
    // A tensor of the shape, type and layout of another one, without its gaps and repetitions.
    static Made like(const Framework* framework, const View& other);
    Made() = default;

    explicit operator bool() const { return array_ != nullptr || tensor_ != nullptr; }
    char* data() const {
        return array_ != nullptr ? PyArray_BYTES(array_)
                                 : static_cast<char*>(tensor_->tensor.data) + tensor_->tensor.offset;
    }
    // A view of it: of a tensor with this room for its strides.
    View view(int type, std::ptrdiff_t* room) const;
    PyArrayObject* array() const { return array_; }
    // A tensor as the same in C order; false if it cannot be had.
    bool put_in_c_order();
    // A new reference to it, which it gives away; null with an error set, or without one if it cannot be put
    // in C order.
    PyObject* give();
    void drop();

private:
    Made(PyArrayObject* array, dlpack::OwnedTensor* tensor, const Framework* framework)
        : array_(array), tensor_(tensor), framework_(framework) {}

    PyArrayObject* array_ = nullptr;
    dlpack::OwnedTensor* tensor_ = nullptr;
    const Framework* framework_ = nullptr;
    const int* axes_ = nullptr;  // of a tensor that is not in C order, whose own shape is of these axes
    const npy_intp* dims_ = nullptr;
};

// Copies results to another layout; false if there is no memory for it.
bool copy_results(const View& from, const View& to);

// (classes, functions, settings, gradients, attributes, methods, outputs): tensors of these classes, the
// first of which has the table, are taken from now on while no function's result is true and each setting (a
// dict, a name, the value) is as it says, where no method, descriptors of the first class, says True, and no
// attribute while the function `gradients` does. `outputs` are a method that says True of those that may be
// written to only while a function does; that function; and what is called with each that was written, which
// may let other code run. False if there is no table, or one that is too old.
PyObject* py_take_tensors(PyObject* self, PyObject* args);

}  // namespace maxops
