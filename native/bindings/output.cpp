#include "output.h"

#include <algorithm>

#include "element_types.h"
#include "memory.h"

namespace maxops {

inline bool Output::is_as_planned() const {
    return out_ != nullptr && type_of(out_) == type_ && PyArray_ISWRITEABLE(out_) &&
           PyArray_NDIM(out_) == shape_.rank && std::equal(dims(), dims() + shape_.rank, PyArray_DIMS(out_));
}

Output::Output(PyObject* given, int type, const Shape& shape, Release* release, const Framework* framework)
    : type_(type),
      shape_(shape),
      framework_(framework),
      room_(framework != nullptr ? strides_ : release->room_for(shape.rank)) {
    static_assert(sizeof(npy_intp) == sizeof shape.size[0]);
    fits_ = given == nullptr || given == Py_None;
    if (fits_ || framework != nullptr) return;
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

bool Output::prepare(const View* inputs, std::size_t count, bool in_place, const int* axes) {
    if (out_ == nullptr || !can_write_through(given_, inputs, count, in_place)) return make(axes);
    is_mapped_ = true;  // or the first to be touched here: it cannot be known
    for (std::size_t k = 0; k < count; ++k) is_mapped_ = is_mapped_ && inputs[k].data != given_.data;
    return true;
}

bool Output::make(const int* axes) {
    made_ = framework_ != nullptr ? Made::tensor(framework_, type_, shape_.rank, dims())
                                  : Made::array(type_, shape_.rank, dims(), axes, &is_mapped_);
    return static_cast<bool>(made_);
}

PyObject* Output::result() {
    if (out_ == nullptr) return made_.give();
    // Another thread may have changed the caller's array meanwhile: then it is as one that does not fit.
    const bool is_copied = !made_ || (is_as_planned() && PyArray_CopyInto(out_, made_.array()) == 0);
    made_.drop();
    return is_copied ? Py_NewRef(as_object(out_)) : nullptr;
}

}  // namespace maxops
