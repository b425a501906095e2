// The output of a call: the array of the caller, a new array, or a buffer that is copied to the caller's
// array.
#pragma once
#include "tensors.h"

namespace maxops {

class Output {
public:
    // The shape and the release stay the caller's. A new output is a tensor of the framework, if there is
    // one.
    Output(PyObject* given, int type, const Shape& shape, Release* release, Tensors* tensors);
    // No destructor: when the interpreter ends a thread that waits for the GIL, it unwinds the stack without
    // the GIL, and nothing may be released. What was made is given by result(), or back by fail().
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    // Whether the caller gave none, or one that fits.
    bool fits() const { return fits_; }
    bool is_given() const { return out_ != nullptr || tensor_ != nullptr; }
    // Whether the caller gave none, or one in this layout without gaps: in C order if `axes` is null, else
    // with axes from outermost to innermost.
    bool has_layout(const int* axes) const {
        return !is_given() || (axes == nullptr ? given_.contiguous : has_order(axes));
    }

    // Whether the caller gave none, or one whose axes lie in this order in memory, with or without gaps.
    bool runs_along(const int* axes) const;

    // Has the array to write; false if it cannot be had, with an error set unless it is a framework's. The
    // caller's own, if it shares no memory with the inputs but for one that it is in place of (`in_place`).
    // New ones are laid out by `axes` from outermost to innermost, or in C order if null.
    bool prepare(const View* inputs, std::size_t count, bool in_place, const int* axes);
    // The same, but never the caller's own.
    bool make(const int* axes);
    // The same, a new tensor that is laid out like another of its shape.
    bool make_like(const View& other);

    // The view of the array to write.
    View view() const { return made_ ? made_.view(type_, room_) : given_; }
    // Whether the array to write has pages already, and is not an input.
    bool is_mapped() const { return is_mapped_; }

    // A new reference to what the call returns; null with an error set, or without one if the caller's array
    // no longer fits.
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
    std::ptrdiff_t* const room_;  // allocated first: if that fails, nothing is made yet
    bool fits_;
    PyArrayObject* out_ = nullptr;  // the caller's, borrowed; or
    PyObject* tensor_ = nullptr;
    View given_;  // of the caller's
    Made made_;   // ours
    bool is_mapped_ = false;
    std::ptrdiff_t strides_[kMaxRank];  // of a tensor
};

}  // namespace maxops
