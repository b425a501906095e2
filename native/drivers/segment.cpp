// SegmentMax: folds each row of the data into the row of the output that its id selects.
#include <atomic>

#include "segment_rows.h"

namespace maxops {
namespace {

// A walk over columns [column, column + width) from row `row` on. Rows that continue the segment of row `row
// - 1` go to `target`. Only the walk over the first column checks the ids, if any does.
SegmentWalk walk_from(const SegmentRows& whole, const Segments& call, std::size_t column, std::size_t width,
                      std::size_t row, char* target) {
    SegmentWalk walk;
    walk.out = call.out + column * whole.itemsize();
    walk.out_stride = static_cast<std::ptrdiff_t>(whole.row_bytes());
    walk.width = width;
    walk.num_segments = call.num_segments;
    walk.fill = call.fill;
    walk.is_filled = false;
    walk.gallops = call.trusts;
    walk.checks = call.checks && column == 0;
    walk.is_unsorted = false;
    walk.last_id = row == 0 ? 0 : whole.id_of(row - 1);
    walk.previous = row == 0 ? -1 : whole.clamped(walk.last_id);
    walk.written = 0;
    bool has_row = walk.previous >= 0 && walk.previous < walk.num_segments;
    walk.target = has_row ? target : nullptr;
    walk.scratch = scratch<SegmentBuffers>().kernel;
    return walk;
}

// Folds rows [begin, end) of the columns of the walk, which start at `column`. False if the walk finds
// unsorted ids.
bool take(const Kernels& kernels, const SegmentRows& whole, SegmentWalk* walk, std::size_t column,
          std::size_t begin, std::size_t end) {
    whole.for_blocks(column, walk->width, begin, end, [&](const RowBlock& rows) {
        if (rows.ids == nullptr)
            kernels.one_segment(walk, rows.segment, rows.data, rows.stride, rows.n);
        else
            kernels.segment[whole.id_type()](walk, rows.data, rows.stride, rows.ids, rows.n);
        return !walk->is_unsorted;
    });
    return !walk->is_unsorted;
}

// If most segments are empty, the whole output is filled first, in parallel. Otherwise, each task fills the
// gaps between its segments.
bool is_mostly_empty(const SegmentRows& whole, const Segments& call) {
    return static_cast<std::size_t>(call.num_segments) / kMostlyEmpty > whole.rows();
}

// Fills rows [from, to) of the output in parallel shares.
bool fill_rows(const Run& run, const SegmentRows& whole, const Segments& call, std::int64_t from,
               std::int64_t to) {
    if (from >= to) return true;
    const std::size_t row_bytes = whole.width() * run.kernels.itemsize,
                      rows = static_cast<std::size_t>(to - from);
    const SegmentWalk walk = walk_from(whole, call, 0, whole.width(), 0, nullptr);
    return parallel_for(run, rows, kTaskBytes / row_bytes + 1, rows * row_bytes,
                        [&](std::size_t begin, std::size_t end) {
                            run.kernels.fill(&walk, from + static_cast<std::int64_t>(begin),
                                             from + static_cast<std::int64_t>(end));
                        });
}

// Folds every row of the data. Fills the gaps between their segments, unless the whole output is filled
// already (`is_filled`).
bool take_rows(const Run& run, const SegmentRows& whole, const Segments& call, bool is_filled, bool* sorted) {
    const Kernels& kernels = run.kernels;
    const std::size_t rows = whole.rows(), width = whole.width(), itemsize = kernels.itemsize;
    const std::size_t row_bytes = width * itemsize;
    const std::size_t id_bytes = whole.id_bytes(), bytes = rows * (row_bytes + id_bytes);

    std::atomic<bool> in_order{true};

    // Threads divide wide rows by columns, and narrow rows by rows.
    std::size_t columns = width;
    if (row_bytes >= kWideRowBytes) columns = kTaskColumnsBytes / itemsize;
    columns = std::min(columns, whole.most_columns());
    if (columns < width || bytes < kThreadedBytes) {
        if (is_filled && !fill_rows(run, whole, call, 0, call.num_segments)) return false;
        const std::size_t worth = columns < width ? std::max(bytes, kThreadedBytes) : bytes;
        bool finished = parallel_for(run, width, columns, worth, [&](std::size_t column, std::size_t end) {
            if (!in_order.load()) return;
            SegmentWalk walk = walk_from(whole, call, column, end - column, 0, nullptr);
            walk.is_filled = is_filled;
            if (!take(kernels, whole, &walk, column, 0, rows)) in_order.store(false);
        });
        *sorted = in_order.load();
        return finished;
    }

    // If a share begins within a segment, the maximum of those rows goes to `aside`, to be merged at the end.
    const std::size_t grain = share_rows(rows, kSharesEnough, row_bytes + id_bytes);
    const std::size_t shares = (rows + grain - 1) / grain;
    std::vector<char> aside(shares * row_bytes);  // before anything is written, because this may fail
    if (is_filled && !fill_rows(run, whole, call, 0, call.num_segments)) return false;
    bool finished = parallel_for(run, rows, grain, bytes, [&](std::size_t begin, std::size_t end) {
        if (!in_order.load()) return;
        char* target = aside.data() + begin / grain * row_bytes;
        SegmentWalk walk = walk_from(whole, call, 0, width, begin, target);
        walk.is_filled = is_filled;
        whole.pack(target, begin, 0, width);  // a maximum may begin with any of its elements
        if (!take(kernels, whole, &walk, 0, begin, end)) in_order.store(false);
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

SegmentsAlike::SegmentsAlike(const Kernels& kernels, const Kernels& id_kernels, const Segments& call)
    : kernels_(kernels),
      call_(call),
      whole_({kernels, nullptr}, id_kernels, call),
      is_filled_(is_mostly_empty(whole_, call)),
      last_(whole_.rows() == 0 ? -1 : whole_.segment_of(whole_.rows() - 1)) {}

void SegmentsAlike::take() const {
    SegmentWalk walk = walk_from(whole_, call_, 0, whole_.width(), 0, nullptr);
    if (is_filled_) kernels_.fill(&walk, 0, call_.num_segments);
    walk.is_filled = is_filled_;
    maxops::take(kernels_, whole_, &walk, 0, 0, whole_.rows());
    if (!is_filled_) kernels_.fill(&walk, last_ + 1, call_.num_segments);
}

bool segment(const Run& run, const Kernels& id_kernels, const Segments& call, bool* sorted) {
    *sorted = true;
    const SegmentRows whole(run, id_kernels, call);
    if (!whole.is_ready()) return false;
    if (whole.width() == 0 || call.num_segments == 0) return true;
    const bool is_filled = is_mostly_empty(whole, call);
    // If rows are wide or the output is filled first, an invalid id would be found late. The ids are then
    // checked first, which takes little time compared with the rest of the work.
    const bool is_wide =
        whole.width() * run.kernels.itemsize >= kWideRowBytes || whole.most_columns() < whole.width();
    if (call.checks && (is_filled || is_wide)) {
        if (!ids_are_sorted({id_kernels, run.poll}, call.ids, whole.rows(), sorted)) return false;
        if (!*sorted) return true;
    }
    if (whole.rows() == 0) return fill_rows(run, whole, call, 0, call.num_segments);
    if (!take_rows(run, whole, call, is_filled, sorted)) return false;
    if (is_filled || !*sorted) return true;
    const std::int64_t last = whole.segment_of(whole.rows() - 1);
    return fill_rows(run, whole, call, last + 1, call.num_segments);
}

}  // namespace maxops
