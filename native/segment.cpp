// SegmentMax: rows of the data, each into the output row that its id names.
#include <atomic>
#include <cstring>

#include "iterate.h"

namespace maxops {
namespace {

constexpr std::size_t kWideRow = 32768;  // bytes, from which on rows are shared out by columns

class Segment {
public:
    Segment(const Kernels& kernels, const Kernels& id_kernels, const Segments& call)
        : kernels_(kernels), id_kernels_(id_kernels), call_(call), rows_(call.shape.size[0]) {
        row_ = call.shape;
        row_.rank -= 1;
        in_row_.swapped = call.data.swapped;
        for (int axis = 0; axis < row_.rank; ++axis) {
            row_.size[axis] = call.shape.size[axis + 1];
            in_row_.strides[axis] = call.data.strides[axis + 1];
        }
        width_ = row_.elements();
        rows_in_place_ = in_row_.is_contiguous(row_, kernels.itemsize);
        ids_in_place_ = call.ids.is_contiguous({1, {rows_}}, id_kernels.itemsize);
    }

    std::size_t rows() const { return rows_; }
    std::size_t width() const { return width_; }

    // The segment of a row, with -1 and num_segments for all that lie outside the output.
    std::int64_t segment_of(std::size_t row) const { return clamped(id_of(row)); }

    std::int64_t id_of(std::size_t row) const {
        std::int64_t id = 0;
        char native[8];
        id_kernels_.gather(native, id_address(row), 0, 1, call_.ids.swapped);
        if (call_.id_type == 0) {
            std::int32_t narrow;
            std::memcpy(&narrow, native, sizeof narrow);
            id = narrow;
        } else {
            std::memcpy(&id, native, sizeof id);
        }
        return id;
    }

    // A walk over columns [column, column + width), after row `row - 1`, whose segment goes on in `target`.
    // The walk over the first column is the one that checks the ids, if any does.
    SegmentWalk walk(std::size_t column, std::size_t width, std::size_t row, char* target) const {
        SegmentWalk walk;
        walk.out = call_.out + column * kernels_.itemsize;
        walk.out_stride = static_cast<std::ptrdiff_t>(width_ * kernels_.itemsize);
        walk.width = width;
        walk.num_segments = call_.num_segments;
        walk.fill = call_.fill;
        walk.is_filled = false;
        walk.gallops = call_.trusts;
        walk.checks = call_.checks && column == 0;
        walk.is_unsorted = false;
        walk.last_id = row == 0 ? 0 : id_of(row - 1);
        walk.previous = row == 0 ? -1 : clamped(walk.last_id);
        walk.written = 0;
        bool has_row = walk.previous >= 0 && walk.previous < walk.num_segments;
        walk.target = has_row ? target : nullptr;
        return walk;
    }

    // Rows begin to end of the columns that the walk covers, which start at `column`. False if the walk finds
    // the ids unsorted.
    bool take(SegmentWalk* walk, std::size_t column, std::size_t begin, std::size_t end) const {
        alignas(64) char data_block[kDataBytes];
        alignas(64) char id_block[kBlockBytes];
        std::size_t block = end - begin;
        if (!ids_in_place_) block = std::min(block, kBlockBytes / id_kernels_.itemsize);
        if (!rows_in_place_) block = std::min(block, kDataBytes / (walk->width * kernels_.itemsize));
        for (std::size_t row = begin; row < end; row += block) {
            std::size_t n = std::min(block, end - row);
            const void* ids = id_address(row);
            if (!ids_in_place_) {
                id_kernels_.gather(id_block, ids, call_.ids.strides[0], n, call_.ids.swapped);
                ids = id_block;
            }
            const char* data = row_address(row) + column * kernels_.itemsize;
            std::ptrdiff_t stride = call_.data.strides[0];
            if (!rows_in_place_) {
                data = data_block;
                stride = static_cast<std::ptrdiff_t>(walk->width * kernels_.itemsize);
                for (std::size_t r = 0; r < n; ++r)
                    pack(data_block + static_cast<std::ptrdiff_t>(r) * stride, row + r, column, walk->width);
            }
            kernels_.segment[call_.id_type](walk, data, stride, ids, n);
            if (walk->is_unsorted) return false;
        }
        return true;
    }

    // A piece of a row, contiguous and native.
    void pack(char* to, std::size_t row, std::size_t column, std::size_t width) const {
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

    // How many columns a walk can cover at most.
    std::size_t most_columns() const { return rows_in_place_ ? width_ : kDataBytes / kernels_.itemsize; }

private:
    static constexpr std::size_t kDataBytes = 16384;

    std::int64_t clamped(std::int64_t id) const { return id < 0 ? -1 : std::min(id, call_.num_segments); }

    const char* id_address(std::size_t row) const {
        return call_.ids.data + static_cast<std::ptrdiff_t>(row) * call_.ids.strides[0];
    }
    const char* row_address(std::size_t row) const {
        return call_.data.data + static_cast<std::ptrdiff_t>(row) * call_.data.strides[0];
    }

    const Kernels& kernels_;
    const Kernels& id_kernels_;
    const Segments& call_;
    const std::size_t rows_;
    Shape row_;
    Operand in_row_{};  // an element's place in its row
    std::size_t width_;
    bool rows_in_place_, ids_in_place_;
};

// Rows `from` to `to` of the output get the fill value, in shares of their own.
bool fill_rows(const Run& run, const Segment& whole, std::int64_t from, std::int64_t to) {
    if (from >= to) return true;
    const std::size_t row_bytes = whole.width() * run.kernels.itemsize,
                      rows = static_cast<std::size_t>(to - from);
    const SegmentWalk walk = whole.walk(0, whole.width(), 0, nullptr);
    return in_shares(run, rows, kTaskBytes / row_bytes + 1, rows * row_bytes,
                     [&](std::size_t begin, std::size_t end) {
                         run.kernels.fill(&walk, from + static_cast<std::int64_t>(begin),
                                          from + static_cast<std::int64_t>(end));
                     });
}

// Every row of the data, with what lies between their segments.
bool take_rows(const Run& run, const Segment& whole, const Segments& call, std::size_t id_bytes,
               bool is_filled, bool* sorted) {
    const Kernels& kernels = run.kernels;
    const std::size_t rows = whole.rows(), width = whole.width(), itemsize = kernels.itemsize;
    const std::size_t row_bytes = width * itemsize;
    const std::size_t bytes = rows * (row_bytes + id_bytes);

    std::atomic<bool> in_order{true};

    // Wide rows are shared out by columns, and narrow ones by rows.
    constexpr std::size_t kEnoughTasks = 64;
    std::size_t columns = width;
    if (row_bytes >= kWideRow) columns = kTaskBytes / 16 / itemsize;
    columns = std::min(columns, whole.most_columns());
    if (columns < width || bytes < kThreadedBytes) {
        const std::size_t worth = columns < width ? std::max(bytes, kThreadedBytes) : bytes;
        bool finished = in_shares(run, width, columns, worth, [&](std::size_t column, std::size_t end) {
            if (!in_order.load()) return;
            SegmentWalk walk = whole.walk(column, end - column, 0, nullptr);
            walk.is_filled = is_filled;
            if (!whole.take(&walk, column, 0, rows)) in_order.store(false);
        });
        *sorted = in_order.load();
        return finished;
    }

    // Where a share begins within a segment, its rows' maximum goes aside, to be merged at the end.
    const std::size_t grain = std::max(rows / kEnoughTasks, kTaskBytes / (row_bytes + id_bytes)) + 1;
    const std::size_t shares = (rows + grain - 1) / grain;
    std::vector<char> aside(shares * row_bytes);
    bool finished = in_shares(run, rows, grain, bytes, [&](std::size_t begin, std::size_t end) {
        if (!in_order.load()) return;
        char* target = aside.data() + begin / grain * row_bytes;
        SegmentWalk walk = whole.walk(0, width, begin, target);
        walk.is_filled = is_filled;
        whole.pack(target, begin, 0, width);  // a maximum may begin with any of its elements
        if (!whole.take(&walk, 0, begin, end)) in_order.store(false);
    });
    *sorted = in_order.load();
    if (!finished) return false;
    for (std::size_t share = 1; share < shares; ++share) {
        std::int64_t id = whole.segment_of(share * grain);
        bool goes_on = id == whole.segment_of(share * grain - 1);
        if (!goes_on || id < 0 || id >= call.num_segments) continue;
        char* row = call.out + static_cast<std::size_t>(id) * row_bytes;
        const void* both[] = {row, aside.data() + share * row_bytes};
        kernels.fold[2](row, 0, both, kNoStrides, 1, width);
    }
    return true;
}

}  // namespace

bool segment(const Run& run, const Kernels& id_kernels, const Segments& call, bool* sorted) {
    *sorted = true;
    const Segment whole(run.kernels, id_kernels, call);
    if (whole.width() == 0 || call.num_segments == 0) return true;
    // Where most segments are empty, they are filled first, all of them: in shares, which the gaps within one
    // task are not.
    constexpr std::size_t kMostlyEmpty = 16;
    const bool is_filled = static_cast<std::size_t>(call.num_segments) / kMostlyEmpty > whole.rows();
    // Where a bad id would cost much before it is found, the ids are looked at ahead; beside the rest of the
    // work they are few.
    const bool is_wide =
        whole.width() * run.kernels.itemsize >= kWideRow || whole.most_columns() < whole.width();
    if (call.checks && (is_filled || is_wide)) {
        if (!ids_are_sorted({id_kernels, run.poll}, call.ids, whole.rows(), sorted)) return false;
        if (!*sorted) return true;
    }
    if (is_filled && !fill_rows(run, whole, 0, call.num_segments)) return false;
    if (whole.rows() > 0 && !take_rows(run, whole, call, id_kernels.itemsize, is_filled, sorted))
        return false;
    if (is_filled || !*sorted) return true;
    const std::int64_t last = whole.rows() == 0 ? -1 : whole.segment_of(whole.rows() - 1);
    return fill_rows(run, whole, last + 1, call.num_segments);
}

}  // namespace maxops
