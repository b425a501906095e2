// What every call on NumPy's arrays needs: its output, its arguments, and running without the GIL.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <new>
#include <vector>

#include "element_types.h"
#include "memory.h"

namespace maxops {

// ---------------------------------------------------------------------------- running without the GIL

// Below this many bytes a call is over before another thread could use the GIL.
constexpr auto kKeepsGil = static_cast<npy_intp>(kKeepsGilBytes);

// False once a signal's handler raised: then the error is set.
bool poll_signals();

// work() without the GIL, if it is long enough; false with an error set if a signal stopped it or memory
// ended.
template <class Work>
bool run_released(npy_intp bytes, const Work& work) {
    PyThreadState* state = bytes < kKeepsGil ? nullptr : PyEval_SaveThread();
    bool finished = false, has_memory = true;
    try {
        finished = work();
    } catch (const std::bad_alloc&) {
        has_memory = false;
    }
    if (state != nullptr) PyEval_RestoreThread(state);
    if (!has_memory) set_out_of_memory();
    return finished;
}

// What the calls below give back: an array, or nothing; and nothing may mean "not clearly valid".
inline PyObject* const kUnclear = nullptr;

inline PyArrayObject* plain_array(PyObject* object) {
    return object != nullptr && PyArray_CheckExact(object) ? reinterpret_cast<PyArrayObject*>(object)
                                                           : nullptr;
}

// The operand for an array, its axes aligned with the last axes of a shape of rank `rank`.
inline Operand operand_of(PyArrayObject* array, int rank) {
    Operand operand;
    operand.data = PyArray_BYTES(array);
    operand.swapped = !PyArray_ISNOTSWAPPED(array);
    const int lead = rank - PyArray_NDIM(array);
    for (int axis = 0; axis < rank; ++axis) {
        bool moves = axis >= lead && PyArray_DIM(array, axis - lead) != 1;
        operand.strides[axis] = moves ? PyArray_STRIDE(array, axis - lead) : 0;
    }
    return operand;
}

// The output of a call: the caller's, a new one, or one that is copied into the caller's at the end.
class Output {
public:
    Output(PyObject* wanted, int type, int rank, const npy_intp* dims) : type_(type), rank_(rank) {
        std::copy(dims, dims + rank, dims_);
        is_clear_ = wanted == nullptr || wanted == Py_None;
        if (is_clear_) return;
        out_ = plain_array(wanted);
        is_clear_ = out_ != nullptr && type_of(out_) == type && PyArray_ISWRITEABLE(out_) &&
                    PyArray_NDIM(out_) == rank && std::equal(dims, dims + rank, PyArray_DIMS(out_));
    }
    // No destructor: when the interpreter ends a thread that waits for the GIL, it unwinds the stack without
    // the GIL, and nothing may be released. What was made is given by result(), or back by fail().
    Output(const Output&) = delete;
    Output& operator=(const Output&) = delete;

    bool is_clear() const { return is_clear_; }
    bool is_flat() const {
        return out_ == nullptr || (PyArray_IS_C_CONTIGUOUS(out_) && PyArray_ISNOTSWAPPED(out_));
    }

    // The array to write; null with an error set if it cannot be had.
    PyArrayObject* prepare(PyArrayObject* const* inputs, Py_ssize_t count, bool in_place, const int* axes) {
        if (out_ == nullptr || !can_write_through(out_, inputs, count, in_place)) return make(axes);
        is_mapped_ = true;  // or the first to be touched here: it cannot be known
        for (Py_ssize_t k = 0; k < count; ++k)
            is_mapped_ = is_mapped_ && PyArray_DATA(inputs[k]) != PyArray_DATA(out_);
        return out_;
    }
    // The same, though the caller's own would do.
    PyArrayObject* make(const int* axes) {
        made_ = new_output(number_of(type_), rank_, dims_, axes, &is_mapped_);
        return made_;
    }
    // Whether the array to write has pages already, and is none of the inputs.
    bool is_mapped() const { return is_mapped_; }

    // A new reference to what the call returns.
    PyObject* result() {
        if (out_ == nullptr) {
            PyArrayObject* made = made_;
            made_ = nullptr;
            return reinterpret_cast<PyObject*>(made);
        }
        const bool copied = made_ == nullptr || PyArray_CopyInto(out_, made_) == 0;
        Py_CLEAR(made_);
        return copied ? Py_NewRef(reinterpret_cast<PyObject*>(out_)) : nullptr;
    }
    PyObject* fail() {
        Py_CLEAR(made_);
        return nullptr;
    }

private:
    const int type_, rank_;
    npy_intp dims_[kMaxRank];
    bool is_clear_;
    PyArrayObject* out_ = nullptr;   // the caller's, borrowed
    PyArrayObject* made_ = nullptr;  // ours
    bool is_mapped_ = false;
};

// One more element of every maximum, that the caller gives.
class Initial {
public:
    // Whether it is not given, or clearly valid: an array of rank 0 of this type. May throw std::bad_alloc;
    // what follows does not, since then there is an output, which may even be written.
    bool read(PyObject* object, int type);

    bool is_given() const { return is_given_; }
    std::uint64_t bits() const { return bits_; }
    // Every element of the output becomes at least it, by fold(): false if the poll stopped it.
    void prepare(PyArrayObject* out);
    bool fold(const Run& run);

private:
    static constexpr std::size_t kOperands = 3;
    bool is_given_ = false;
    std::uint64_t bits_ = 0;
    alignas(8) char item_[8] = {};
    Shape shape_;
    std::vector<Operand> operands_;
};

// ---------------------------------------------------------------------------- arguments

// One parameter list: `positional` of the names may be given by position.
struct Signature {
    const char* const* names;
    int count, positional;
};

// Sorts arguments into their parameters' places; false if they do not fit.
bool sort_arguments(const Signature& signature, PyObject* const* args, Py_ssize_t positional,
                    PyObject* keywords, PyObject** values);

}  // namespace maxops
