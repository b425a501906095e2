#include "segment_rows.h"

#include <cstring>

namespace maxops {
namespace {

std::int64_t index_at(const char* from, std::size_t itemsize) {
    if (itemsize == sizeof(std::int32_t)) {
        std::int32_t narrow;
        std::memcpy(&narrow, from, sizeof narrow);
        return narrow;
    }
    std::int64_t wide;
    std::memcpy(&wide, from, sizeof wide);
    return wide;
}

}  // namespace

SegmentRows::SegmentRows(const Run& run, const Kernels& id_kernels, const Segments& call)
    : kernels_(run.kernels),
      id_kernels_(id_kernels),
      call_(call),
      rows_(call.shape.size[0]),
      id_type_(call.id_type),
      ids_(call.ids.data),
      id_stride_(call.ids.strides[0]),
      ids_swapped_(call.ids.swapped) {
    in_row_.swapped = call.data.swapped;
    for (int axis = 1; axis < call.shape.rank; ++axis) {
        const std::size_t size = call.shape.size[axis];
        const std::ptrdiff_t stride = call.data.strides[axis];
        if (size == 1) continue;
        const int last = row_.rank - 1;
        if (last >= 0 && in_row_.strides[last] == stride * static_cast<std::ptrdiff_t>(size))
            row_.size[last] *= size;  // one run of memory
        else
            row_.size[row_.rank++] = size;
        in_row_.strides[row_.rank - 1] = stride;
    }
    width_ = row_.elements();
    // Rows of one element are used in place if they are contiguous, or if there is no data.
    rows_in_place_ =
        in_row_.is_contiguous(row_, kernels_.itemsize) &&
        (width_ > 1 || call.data.data == nullptr || call.data.is_contiguous(Shape(rows_), kernels_.itemsize));
    const std::size_t count = call.bounds > 0 ? call.bounds : rows_;
    ids_in_place_ = call.ids.is_contiguous(Shape(count), id_kernels.itemsize);
    if (call.bounds == 0) return;
    if (!ids_in_place_) {
        const std::size_t itemsize = id_kernels.itemsize;
        own_offsets_.reset(new char[count * itemsize]);
        is_ready_ = serial_for(run, count, kRoundBytes / itemsize, [&](std::size_t begin, std::size_t end) {
            id_kernels.gather(own_offsets_.get() + begin * itemsize, id_address(begin), id_stride_,
                              end - begin, ids_swapped_);
        });
        ids_ = own_offsets_.get();
    }
    id_stride_ = static_cast<std::ptrdiff_t>(id_kernels.itemsize);
    ids_swapped_ = false;
    id_type_ = static_cast<std::size_t>(call.num_segments) > kNarrowIdsMost ? 1 : 0;
    bounded_ = std::min(static_cast<std::size_t>(call.num_segments), call.bounds - 1);
    rows_ = bounded_ == 0 ? 0 : offset(bounded_);  // rows past it belong to no segment of the output
}

std::size_t SegmentRows::offset(std::size_t i) const {
    const std::int64_t row = index_at(id_address(i), id_kernels_.itemsize);
    return row < 0 ? 0 : std::min(static_cast<std::size_t>(row), call_.shape.size[0]);
}

std::int64_t SegmentRows::id_of(std::size_t row) const {
    if (call_.bounds > 0) {  // the last segment that begins at or before this row
        std::size_t low = 0, high = bounded_;
        while (high - low > 1) {
            const std::size_t middle = low + (high - low) / 2;
            (offset(middle) <= row ? low : high) = middle;
        }
        return static_cast<std::int64_t>(low);
    }
    char native[8];
    id_kernels_.gather(native, id_address(row), 0, 1, ids_swapped_);
    return index_at(native, id_kernels_.itemsize);
}

std::size_t SegmentRows::most_rows(std::size_t width, std::size_t rows) const {
    std::size_t most = rows;
    if (call_.bounds > 0)
        most = kBlockBytes / (id_type_ == 0 ? 4 : 8);
    else if (!ids_in_place_)
        most = kBlockBytes / id_kernels_.itemsize;
    return rows_in_place_ ? most : std::min(most, kGatheredRowsBytes / (width * kernels_.itemsize));
}

const void* SegmentRows::ids_at(std::size_t row, std::size_t n, char* block) const {
    const char* ids = id_address(row);
    if (ids_in_place_) return ids;
    id_kernels_.gather(block, ids, id_stride_, n, ids_swapped_);
    return block;
}

// The length of the run of rows in one segment from `row` on, if the rows are used in place and the run is
// too long to write ids for; otherwise 0. Advances `segment` from the segment of an earlier row to that of
// `row`.
std::size_t SegmentRows::long_run(std::int64_t* segment, std::size_t row, std::size_t end) const {
    auto s = static_cast<std::size_t>(*segment);
    while (s + 1 < bounded_ && offset(s + 1) <= row) ++s;
    *segment = static_cast<std::int64_t>(s);
    if (!rows_in_place_) return 0;
    const std::size_t stop = s + 1 < bounded_ ? std::min(offset(s + 1), end) : end;
    return stop > row && stop - row >= kOffsetsRun ? stop - row : 0;
}

void SegmentRows::write_ids(std::int64_t* segment, std::size_t row, std::size_t end, char* block) const {
    if (id_type_ == 0)
        write_ids_as(segment, row, end, reinterpret_cast<std::int32_t*>(block));
    else
        write_ids_as(segment, row, end, reinterpret_cast<std::int64_t*>(block));
}

// Writes the ids of rows [row, end); `segment` is that of the first row. Stores several ids at a time, beyond
// the segment's end, where later stores overwrite them, because a branch on its length would cost more.
template <class Id>
void SegmentRows::write_ids_as(std::int64_t* segment, std::size_t row, std::size_t end, Id* ids) const {
    auto s = static_cast<std::size_t>(*segment);
    Id* const past = ids + (end - row);
    for (Id* to = ids;;) {
        // There are no rows past the last segment's end, unless another thread has changed the offsets.
        const std::size_t stop = s + 1 < bounded_ ? offset(s + 1) : end;
        Id* const next = stop >= end ? past : stop <= row ? ids : ids + (stop - row);
        const Id id = static_cast<Id>(s);
        for (std::size_t k = 0; k < kOffsetsStore; ++k) to[k] = id;
        for (Id* more = to + kOffsetsStore; more < next; ++more) *more = id;
        to = std::max(to, next);
        if (to == past) break;
        ++s;
    }
    *segment = static_cast<std::int64_t>(s);
}

void SegmentRows::pack_rows(char* to, std::size_t row, std::size_t n, std::size_t column,
                            std::size_t width) const {
    const std::ptrdiff_t stride = call_.data.strides[0],
                         row_bytes = static_cast<std::ptrdiff_t>(width * kernels_.itemsize);
    const char* from = row_address(row);
    if (row_.rank == 0) return kernels_.gather(to, from, stride, n, in_row_.swapped);
    if (row_.rank > 1) {
        for (std::size_t r = 0; r < n; ++r)
            pack(to + static_cast<std::ptrdiff_t>(r) * row_bytes, row + r, column, width);
        return;
    }
    from += static_cast<std::ptrdiff_t>(column) * in_row_.strides[0];
    if (stride == static_cast<std::ptrdiff_t>(kernels_.itemsize) && !in_row_.swapped)
        kernels_.transpose(to, from, in_row_.strides[0], n, width);
    else
        kernels_.gather_rows(to, from, stride, in_row_.strides[0], n, width, in_row_.swapped);
}

void SegmentRows::pack(char* to, std::size_t row, std::size_t column, std::size_t width) const {
    const char* from = row_address(row);
    const int inner = row_.rank - 1;
    if (inner < 0) {
        kernels_.gather(to, from, 0, 1, in_row_.swapped);
        return;
    }
    Position position(row_, column);
    while (width > 0) {
        std::size_t n = std::min(width, row_.size[inner] - position[inner]);
        kernels_.gather(to, from + position.offset(in_row_), in_row_.strides[inner], n, in_row_.swapped);
        to += n * kernels_.itemsize;
        width -= n;
        position.advance(row_, inner, n);
    }
}

}  // namespace maxops
