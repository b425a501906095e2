// The rows of a SegmentMax: their memory, and the segment of each, by its id or by offsets.
#pragma once
#include <memory>

#include "iterate.h"
#include "scratch.h"

namespace maxops {

// Consecutive rows from number `row` on, each contiguous and native.
struct RowBlock {
    std::size_t row, n;
    const char* data;
    std::ptrdiff_t stride;
    const void* ids;       // contiguous and native; null: many rows, all of `segment`
    std::int64_t segment;  // used if there are no ids
};

class SegmentRows {
public:
    SegmentRows(const Run& run, const Kernels& id_kernels, const Segments& call);

    // False if the poll stopped the copy of noncontiguous offsets. The object must not be used then.
    bool is_ready() const { return is_ready_; }

    std::size_t rows() const { return rows_; }
    std::size_t width() const { return width_; }
    std::size_t itemsize() const { return kernels_.itemsize; }
    std::size_t row_bytes() const { return width_ * kernels_.itemsize; }
    std::size_t id_bytes() const { return id_kernels_.itemsize; }
    // The type of the blocks' ids, as an index into kernels: 0 is int32, 1 is int64.
    int id_type() const { return id_type_; }
    // The maximum number of columns in a block, and whether threads should share rows by columns.
    std::size_t most_columns() const {
        return rows_in_place_ ? width_ : kGatheredRowsBytes / kernels_.itemsize;
    }
    bool is_wide() const { return row_bytes() >= kWideRowBytes || most_columns() < width_; }

    std::int64_t id_of(std::size_t row) const;
    // Maps ids below 0 to -1, and ids past the output to num_segments.
    std::int64_t clamped(std::int64_t id) const { return id < 0 ? -1 : std::min(id, call_.num_segments); }
    std::int64_t segment_of(std::size_t row) const { return clamped(id_of(row)); }

    // Calls visit(block) for rows [begin, end) of columns [column, column + width), until it returns false.
    template <class Visit>
    void for_blocks(std::size_t column, std::size_t width, std::size_t begin, std::size_t end,
                    const Visit& visit) const {
        char *data_block = scratch<SegmentBuffers>().rows, *id_block = scratch<SegmentBuffers>().ids;
        const std::size_t most = most_rows(width, end - begin);
        std::int64_t segment = call_.bounds > 0 && begin < end ? id_of(begin) : 0;
        for (std::size_t row = begin; row < end;) {
            RowBlock block{};
            block.row = row;
            block.n = std::min(most, end - row);
            if (call_.bounds == 0) {
                block.ids = ids_at(row, block.n, id_block);
            } else if (const std::size_t run = long_run(&segment, row, end); run > 0) {
                block.ids = nullptr;
                block.segment = segment;
                block.n = run;
            } else {
                write_ids(&segment, row, row + block.n, id_block);
                block.ids = id_block;
            }
            block.data = row_address(row) + column * kernels_.itemsize;
            block.stride = call_.data.strides[0];
            if (!rows_in_place_) {
                block.data = data_block;
                block.stride = static_cast<std::ptrdiff_t>(width * kernels_.itemsize);
                pack_rows(data_block, row, block.n, column, width);
            }
            if (!visit(block)) return;
            row += block.n;
        }
    }

    // Copies a part of a row to contiguous, native memory.
    void pack(char* to, std::size_t row, std::size_t column, std::size_t width) const;

    // Offset `i`, clamped to the rows of the data. Requires `i` up to bounded().
    std::size_t offset(std::size_t i) const;
    // The number of segments of the output that have offsets.
    std::size_t bounded() const { return bounded_; }

private:
    // Packs parts of n rows, one after the other.
    void pack_rows(char* to, std::size_t row, std::size_t n, std::size_t column, std::size_t width) const;
    std::size_t most_rows(std::size_t width, std::size_t rows) const;
    const void* ids_at(std::size_t row, std::size_t n, char* block) const;
    std::size_t long_run(std::int64_t* segment, std::size_t row, std::size_t end) const;
    void write_ids(std::int64_t* segment, std::size_t row, std::size_t end, char* block) const;
    template <class Id>
    void write_ids_as(std::int64_t* segment, std::size_t row, std::size_t end, Id* ids) const;

    const char* id_address(std::size_t i) const { return ids_ + static_cast<std::ptrdiff_t>(i) * id_stride_; }
    const char* row_address(std::size_t row) const {
        return call_.data.data + static_cast<std::ptrdiff_t>(row) * call_.data.strides[0];
    }

    const Kernels& kernels_;
    const Kernels& id_kernels_;
    const Segments& call_;
    std::size_t rows_, bounded_ = 0;
    int id_type_;
    const char* ids_;
    std::ptrdiff_t id_stride_;
    bool ids_swapped_;
    std::unique_ptr<char[]> own_offsets_;  // a copy, unless they are contiguous and native
    bool is_ready_ = true;
    Shape row_;
    Operand in_row_{};  // the strides of elements in a row
    std::size_t width_;
    bool rows_in_place_, ids_in_place_;
};

// Calls that differ only in the addresses of their data and their output. Each is too small for several
// threads, and has offsets, or ids that are known to be sorted.
class SegmentsAlike {
public:
    // Keeps a reference to the call. The caller changes its data and output between the calls of take().
    SegmentsAlike(const Kernels& kernels, const Kernels& id_kernels, const Segments& call);
    // Computes the maxima of the call with its current data and output.
    void take() const;

private:
    const Kernels& kernels_;
    const Segments& call_;
    const SegmentRows whole_;
    const bool is_filled_;
    const std::int64_t last_;  // the last row's segment
};

}  // namespace maxops
