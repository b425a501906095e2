#include "output.h"

#include <algorithm>
#include <cstdlib>

#include "element_types.h"
#include "memory.h"

namespace maxops {

inline bool Output::is_as_planned() const {
    return out_ != nullptr && type_of(out_) == type_ && PyArray_ISWRITEABLE(out_) &&
           PyArray_NDIM(out_) == shape_.rank && std::equal(dims(), dims() + shape_.rank, PyArray_DIMS(out_));
}

Output::Output(PyObject* given, int type, const Shape& shape, Release* release, Tensors* tensors)
    : type_(type),
      shape_(shape),
      tensors_(*tensors),
      room_(tensors->framework() != nullptr ? strides_ : release->room_for(shape.rank)) {
    static_assert(sizeof(npy_intp) == sizeof shape.size[0]);
    fits_ = given == nullptr || given == Py_None;
    if (fits_) return;
    if (tensors->framework() != nullptr) {
        fits_ = tensors->read_output(given, &given_) && given_.type == type && given_.rank == shape.rank &&
                std::equal(dims(), dims() + shape.rank, given_.sizes) &&
                can_write_through(given_, nullptr, 0,
                                  false);  // Python may reject an output with internal overlap
        if (fits_) tensor_ = given;
        return;
    }
    out_ = plain_array(given);
    fits_ = is_as_planned();
    if (fits_) given_ = view_of(out_, type, room_);
}

bool Output::has_order(const int* axes) const {
    Shape shape = shape_;
    Operand out(given_.data);
    out.swapped = given_.swapped;
    for (int i = 0; i < shape.rank; ++i) {
        shape.size[i] = shape_.size[axes[i]];
        out.strides[i] = given_.strides[axes[i]];
    }
    return out.is_contiguous(shape, kernels_of(type_).itemsize);
}

bool Output::runs_along(const int* axes) const {
    std::ptrdiff_t before = PTRDIFF_MAX;
    for (int i = 0; is_given() && i < shape_.rank; ++i) {
        const int axis = axes == nullptr ? i : axes[i];
        if (shape_.size[axis] == 1) continue;
        const std::ptrdiff_t step = std::abs(given_.strides[axis]);
        if (step > before) return false;
        before = step;
    }
    return true;
}

bool Output::prepare(const View* inputs, std::size_t count, bool in_place, const int* axes) {
    if (!is_given() || !can_write_through(given_, inputs, count, in_place)) return make(axes);
    is_mapped_ = true;  // assumed, because its pages may not be mapped yet
    for (std::size_t k = 0; k < count; ++k) is_mapped_ = is_mapped_ && inputs[k].data != given_.data;
    return true;
}

bool Output::make(const int* axes) {
    const Framework* const framework = tensors_.framework();
    made_ = framework != nullptr ? Made::tensor(framework, type_, shape_.rank, dims(), axes)
                                 : Made::array(type_, shape_.rank, dims(), axes, &is_mapped_);
    return static_cast<bool>(made_);
}

bool Output::make_like(const View& other) {
    made_ = Made::like(tensors_.framework(), other);
    return static_cast<bool>(made_);
}

PyObject* Output::result() {
    if (tensor_ != nullptr) {
        const bool is_written = !made_ || copy_results(view(), given_);
        made_.drop();
        return is_written && tensors_.was_written(tensor_) ? Py_NewRef(tensor_) : nullptr;
    }
    if (out_ == nullptr) return made_.give();
    // If another thread has changed the caller's array meanwhile, it no longer fits.
    const bool is_copied = !made_ || (is_as_planned() && PyArray_CopyInto(out_, made_.array()) == 0);
    made_.drop();
    return is_copied ? Py_NewRef(as_object(out_)) : nullptr;
}

}  // namespace maxops
