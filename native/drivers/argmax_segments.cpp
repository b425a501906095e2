// The argmax of a SegmentMax: the first row that contains each maximum.
#include <memory>

#include "segment_spread.h"

namespace maxops {
namespace {

class SegmentIndices {
public:
    SegmentIndices(const Kernels& kernels, const SegmentRows& rows, const Segments& call)
        : kernels_(kernels), rows_(rows), call_(call) {}

    // Searches the rows of a piece. `indices` begins at segment `piece.from`.
    void take(const Piece& piece, std::int64_t* indices) const {
        const auto first = static_cast<std::size_t>(piece.from);
        const SegmentArgmax to{call_.out + first * rows_.row_bytes() + piece.column * rows_.itemsize(),
                               static_cast<std::ptrdiff_t>(rows_.row_bytes()),
                               indices + piece.column,
                               rows_.width(),
                               piece.width,
                               piece.from,
                               piece.to};
        rows_.for_blocks(piece.column, piece.width, piece.begin, piece.end, [&](const RowBlock& block) {
            if (block.ids != nullptr)
                kernels_.argmax_segments[rows_.id_type()](&to, static_cast<std::int64_t>(block.row),
                                                          block.data, block.stride, block.ids, block.n);
            else if (block.segment >= piece.from && block.segment < piece.to)
                take_run(to, block);
            return true;
        });
    }

private:
    // Searches many rows of one segment, until every index is found.
    void take_run(const SegmentArgmax& to, const RowBlock& block) const {
        const std::int64_t id = block.segment;
        const auto* results = to.results + (id - to.from) * to.result_stride;
        std::int64_t* indices = to.indices + static_cast<std::size_t>(id - to.from) * to.indices_stride;
        if (to.width == 1 && block.stride == static_cast<std::ptrdiff_t>(rows_.itemsize())) {
            if (indices[0] >= 0) return;
            std::int64_t place = -1;
            kernels_.argmax_rows(&place, block.data, 0, results, 1, block.n);
            if (place >= 0) indices[0] = static_cast<std::int64_t>(block.row) + place;
            return;
        }
        static const std::int64_t ids[kIndexRunRows] = {};
        SegmentArgmax one = to;
        one.results = results;
        one.indices = indices;
        one.from = 0;
        one.to = 1;
        for (std::size_t r = 0; r < block.n; r += kIndexRunRows) {
            if (std::all_of(indices, indices + to.width, [](std::int64_t place) { return place >= 0; }))
                return;
            kernels_.argmax_segments[1](&one, static_cast<std::int64_t>(block.row + r),
                                        block.data + static_cast<std::ptrdiff_t>(r) * block.stride,
                                        block.stride, ids, std::min(kIndexRunRows, block.n - r));
        }
    }

    const Kernels& kernels_;
    const SegmentRows& rows_;
    const Segments& call_;
};

// The end of the run of rows with the id of `row`, in sorted ids.
std::size_t run_end(const SegmentRows& rows, std::size_t row, std::size_t end) {
    const std::int64_t id = rows.id_of(row);
    std::size_t low = row, high = end;  // low is in the run, high is not
    while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        (rows.id_of(middle) == id ? low : high) = middle;
    }
    return high;
}

// Searches rows with sorted ids, in shares. If a share begins within a segment, its indices for that segment
// go to `aside` and are merged at the end.
bool take_in_order(const Run& run, const SegmentRows& rows, const Segments& call, const SegmentIndices& all,
                   std::int64_t* indices) {
    const std::size_t width = rows.width(), count = rows.rows(),
                      bytes_each = rows.row_bytes() + rows.id_bytes();
    const std::size_t grain = share_rows(count, kSharesEnough, bytes_each);
    const std::size_t shares = (count + grain - 1) / grain;
    std::vector<std::int64_t> aside(shares * width, -1), ids_aside(shares, -1);
    const bool finished =
        parallel_for(run, count, grain, count * bytes_each, [&](std::size_t begin, std::size_t end) {
            const std::size_t share = begin / grain;
            const std::int64_t id = rows.segment_of(begin);
            if (begin > 0 && id >= 0 && id < call.num_segments && id == rows.segment_of(begin - 1)) {
                const std::size_t head = run_end(rows, begin, end);
                ids_aside[share] = id;
                all.take({0, width, begin, head, id, id + 1, 0}, aside.data() + share * width);
                begin = head;
            }
            if (begin < end) all.take({0, width, begin, end, 0, call.num_segments, 0}, indices);
        });
    for (std::size_t share = 0; finished && share < shares; ++share) {
        if (ids_aside[share] < 0) continue;
        std::int64_t* row = indices + static_cast<std::size_t>(ids_aside[share]) * width;
        for (std::size_t j = 0; j < width; ++j)
            if (row[j] < 0) row[j] = aside[share * width + j];
    }
    return finished;
}

}  // namespace

bool argmax_in_segments(const Run& run, const Kernels& id_kernels, const Segments& call, bool in_order,
                        std::int64_t* indices) {
    const SegmentRows rows(run, id_kernels, call);
    if (!rows.is_ready()) return false;
    const std::size_t cells = static_cast<std::size_t>(call.num_segments) * rows.width();
    if (!fill(run, indices, cells, std::int64_t{-1})) return false;
    if (cells == 0 || rows.rows() == 0) return true;
    const SegmentIndices all(run.kernels, rows, call);
    if (in_order && !rows.is_wide()) return take_in_order(run, rows, call, all, indices);

    const Spread spread(run, rows, call.num_segments, sizeof *indices);
    const std::size_t others = (spread.copies() - 1) * cells;
    const std::unique_ptr<std::int64_t[]> copies(new std::int64_t[others]);
    if (!fill(run, copies.get(), others, std::int64_t{-1})) return false;
    const auto copy_at = [&](std::size_t copy) {
        return copy == 0 ? indices : copies.get() + (copy - 1) * cells;
    };
    const bool finished = spread([&](const Piece& piece) {
        all.take(piece, copy_at(piece.copy) + static_cast<std::size_t>(piece.from) * rows.width());
    });
    if (!finished || spread.copies() == 1) return finished;
    const auto merge = [&](std::size_t begin, std::size_t end) {
        for (std::size_t copy = 1; copy < spread.copies(); ++copy) {
            const std::int64_t* found = copy_at(copy);
            for (std::size_t i = begin; i < end; ++i) {  // as an unsigned number, -1 is the highest
                const auto here = static_cast<std::uint64_t>(indices[i]),
                           there = static_cast<std::uint64_t>(found[i]);
                indices[i] = static_cast<std::int64_t>(std::min(here, there));
            }
        }
    };
    return parallel_for(run, cells, kTaskBytes / sizeof *indices, cells * sizeof *indices, merge);
}

}  // namespace maxops
