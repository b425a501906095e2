#include "segment_pieces.h"

#include <algorithm>

namespace maxops {

SegmentPieces::SegmentPieces(const Segmentation& call) : call_(call) {
    const int rank = call.data.rank;
    const auto size = [&](int axis) { return static_cast<std::size_t>(call.data.sizes[axis]); };
    if (call.data.contiguous) {
        for (int axis = 0; axis < rank; ++axis) axes_[axis] = axis;
    } else {
        const Operand data = call.data.operand(rank);
        memory_order(call.data.shape(), &data, 1, axes_);
    }
    int* const segment_axis = std::find(axes_, axes_ + rank, call.axis);
    for (const int* axis = segment_axis + 1; axis < axes_ + rank; ++axis) width_ *= size(*axis);
    if (width_ * size(call.axis) < kPieceElements) {
        for (const int* axis = axes_; axis < segment_axis; ++axis) width_ *= size(*axis);
        std::rotate(axes_, segment_axis, segment_axis + 1);
        return;
    }
    for (const int* axis = axes_; axis < segment_axis; ++axis) {
        outer_.size[outer_.rank] = size(*axis);
        outer_data_.strides[outer_.rank++] = call.data.strides[*axis];
    }
}

void SegmentPieces::get_first(Segments* segments) const {
    const int rank = call_.data.rank - outer_.rank;
    segments->shape.rank = rank;
    segments->data.data = call_.data.data;
    segments->data.swapped = call_.data.swapped;
    for (int i = 0; i < rank; ++i) {
        const int axis = axes_[outer_.rank + i];
        segments->shape.size[i] = static_cast<std::size_t>(call_.data.sizes[axis]);
        segments->data.strides[i] = call_.data.strides[axis];
    }
}

}  // namespace maxops
