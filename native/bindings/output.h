// The output of a call: the array of the caller, a new array, or a buffer that is copied to the caller's
// array.
#pragma once
#include "tensors.h"

namespace maxops {

class Output {
public:
    // Keeps references to the shape, the tensors and memory of the release. A new output is a tensor of the
    // framework, if there is one.
    Output(PyObject* given, int type, const Shape& shape, Release* release, Tensors* tensors);
    // No destructor: when the interpreter ends a thread that waits for the GIL, it unwinds the stack without
    // the GIL, and nothing may be released. result() returns what was made, and fail() releases it.
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    // Whether the caller passed no output, or one that fits.
    bool fits() const { return fits_; }
    bool is_given() const { return out_ != nullptr || tensor_ != nullptr; }
    // Whether the caller passed no output, or one without gaps in this layout: in C order if `axes` is null,
    // otherwise with `axes` from outermost to innermost.
    bool has_layout(const int* axes) const {
        return !is_given() || (axes == nullptr ? given_.contiguous : has_order(axes));
    }

    // Whether the caller passed no output, or one whose axes are in this order in memory, with or without
    // gaps.
    bool runs_along(const int* axes) const;

    // Selects the array to write; false on failure, with an error set unless it is a tensor. This is the
    // caller's array if it shares no memory with the inputs, except with an input that it replaces
    // (`in_place`). A new array is laid out with `axes` from outermost to innermost, or in C order if null.
    bool prepare(const View* inputs, std::size_t count, bool in_place, const int* axes);
    // Like prepare(), but always makes a new array.
    bool make(const int* axes);
    // Like make(), for a tensor that is laid out like another of its shape.
    bool make_like(const View& other);

    // The view of the array to write.
    View view() const { return made_ ? made_.view(type_, room_) : given_; }
    // Whether the pages of the array to write are mapped, and it is not an input.
    bool is_mapped() const { return is_mapped_; }

    // Returns a new reference to the result of the call; null with an error set, or without one if the
    // caller's array no longer fits.
    PyObject* result();
    PyObject* fail() {
        made_.drop();
        return nullptr;
    }

private:
    bool has_order(const int* axes) const;
    bool is_as_planned() const;
    const npy_intp* dims() const { return reinterpret_cast<const npy_intp*>(shape_.size); }

    const int type_;
    const Shape& shape_;
    const Tensors& tensors_;
    std::ptrdiff_t* const room_;  // allocated first: if that fails, nothing else has been allocated
    bool fits_;
    PyArrayObject* out_ = nullptr;  // the caller's array or tensor, borrowed
    PyObject* tensor_ = nullptr;
    View given_;  // of the caller's output
    Made made_;   // the new output
    bool is_mapped_ = false;
    std::ptrdiff_t strides_[kMaxRank];  // of a tensor
};

}  // namespace maxops
