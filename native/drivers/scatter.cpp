// SegmentMax with unsorted ids. The output contains keys, and each row is folded into the keys of its
// segment.
#include <atomic>
#include <memory>

#include "segment_spread.h"

namespace maxops {
namespace {

// Calls each(first row, count) for the rows of the output, in parallel shares.
template <class Each>
bool over_output(const Run& run, const SegmentRows& rows, const Segments& call, const Each& each) {
    const auto count = static_cast<std::size_t>(call.num_segments);
    return parallel_for(run, count, kTaskBytes / rows.row_bytes() + 1, count * rows.row_bytes(),
                        [&](std::size_t begin, std::size_t end) { each(begin, end - begin); });
}

// Like over_output, for tasks that must not run twice. A child process that is forked inside the poll runs
// all tasks again, so the poll runs only between rounds, when no task has begun.
template <class Each>
bool once_over_output(const Run& run, const SegmentRows& rows, const Segments& call, const Each& each) {
    const auto count = static_cast<std::size_t>(call.num_segments);
    const std::size_t round = kRoundBytes * static_cast<std::size_t>(num_threads()) / rows.row_bytes() + 1;
    for (std::size_t begin = 0; begin < count; begin += round) {
        const std::size_t n = std::min(round, count - begin);
        parallel_for({run.kernels, nullptr}, n, kTaskBytes / rows.row_bytes() + 1, n * rows.row_bytes(),
                     [&](std::size_t from, std::size_t to) { each(begin + from, to - from); });
        if (begin + n < count && run.poll != nullptr && !run.poll()) return false;
    }
    return true;
}

template <class Id>
struct __attribute__((packed, may_alias)) Unaligned {
    Id value;
};

// Several threads may mark a segment at the same time: all of them store 0.
template <class Id>
void mark(const RowBlock& block, std::size_t count, std::uint8_t* is_empty) {
    auto* ids = static_cast<const Unaligned<Id>*>(block.ids);
    for (std::size_t i = 0; i < block.n; ++i) {
        // volatile, to read once: another thread may change the id between the check and the use
        const std::int64_t id = static_cast<const volatile Unaligned<Id>*>(ids + i)->value;
        if (static_cast<std::uint64_t>(id) < count)
            __atomic_store_n(is_empty + id, std::uint8_t{0}, __ATOMIC_RELAXED);
    }
}

}  // namespace

bool scatter(const Run& run, const Kernels& id_kernels, const Segments& call) {
    bool in_order = false;
    if (call.shape.size[0] > 0 &&
        !ids_are_sorted({id_kernels, run.poll}, call.ids, call.shape.size[0], &in_order))
        return false;
    if (in_order || call.shape.size[0] == 0) return segment(run, id_kernels, call, &in_order);

    const Kernels& kernels = run.kernels;
    const SegmentRows rows(run, id_kernels, call);
    if (!rows.is_ready()) return false;
    if (rows.width() == 0 || call.num_segments == 0) return true;
    const std::size_t row_bytes = rows.row_bytes(), width = rows.width();
    const Spread spread(run, rows, call.num_segments, kernels.itemsize);

    const std::unique_ptr<char[]> copies(
        new char[(spread.copies() - 1) * static_cast<std::size_t>(call.num_segments) * row_bytes]);
    const auto copy_at = [&](std::size_t copy, std::size_t row) {
        const std::size_t before = (copy - 1) * static_cast<std::size_t>(call.num_segments);
        return (copy == 0 ? call.out : copies.get() + before * row_bytes) + row * row_bytes;
    };
    // If the fill value is the value of the lowest key, empty segments need no special treatment.
    const bool is_plain = call.fill == kernels.neutral;
    // Otherwise, a segment is empty if its first key is the lowest, unless a row begins with that key. In
    // that case, this array marks the empty segments. It is allocated before anything is written.
    const std::unique_ptr<std::uint8_t[]> is_empty(
        is_plain ? nullptr : new std::uint8_t[static_cast<std::size_t>(call.num_segments)]);

    bool finished = over_output(run, rows, call, [&](std::size_t row, std::size_t count) {
        for (std::size_t copy = 0; copy < spread.copies(); ++copy)
            kernels.init_segments(copy_at(copy, row), call.first, count * width);
    });
    if (!finished) return false;

    std::atomic<bool> has_lowest{false};
    finished = spread([&](const Piece& piece) {
        const std::size_t first = static_cast<std::size_t>(piece.from);
        const UnsortedSegments to{copy_at(piece.copy, first) + piece.column * kernels.itemsize,
                                  static_cast<std::ptrdiff_t>(row_bytes),
                                  piece.width,
                                  piece.from,
                                  piece.to,
                                  piece.from == 0 && piece.to == call.num_segments};
        rows.for_blocks(piece.column, piece.width, piece.begin, piece.end, [&](const RowBlock& block) {
            if (kernels.accumulate_rows[rows.id_type()](&to, block.data, block.stride, block.ids, block.n))
                has_lowest.store(true, std::memory_order_relaxed);
            return true;
        });
    });
    if (!finished) return false;

    const bool is_marked = has_lowest.load() && !is_plain;
    if (is_marked && !find_empty({id_kernels, run.poll}, id_kernels, call, is_empty.get())) return false;
    return once_over_output(run, rows, call, [&](std::size_t row, std::size_t count) {
        for (std::size_t copy = 1; copy < spread.copies(); ++copy)
            kernels.merge_segments(copy_at(0, row), copy_at(copy, row), count * width);
        const std::uint8_t* marks = is_marked ? is_empty.get() + row : nullptr;
        const std::size_t n = is_plain ? 1 : width;
        kernels.finalize_segments(copy_at(0, row), static_cast<std::ptrdiff_t>(n * kernels.itemsize), marks,
                                  call.fill, count * width / n, n);
    });
}

bool find_empty(const Run& run, const Kernels& id_kernels, const Segments& call, std::uint8_t* is_empty) {
    Segments without_data = call;
    without_data.shape.rank = 1;
    without_data.data = Operand(nullptr);
    const SegmentRows rows(run, id_kernels, without_data);
    if (!rows.is_ready()) return false;
    const auto count = static_cast<std::size_t>(call.num_segments);
    if (call.bounds > 0) {
        const std::size_t itemsize = id_kernels.itemsize;
        return parallel_for(run, count, kTaskBytes / itemsize, count * itemsize,
                            [&](std::size_t begin, std::size_t end) {
                                for (std::size_t i = begin; i < end; ++i)
                                    is_empty[i] = i >= rows.bounded() || rows.offset(i) >= rows.offset(i + 1);
                            });
    }
    if (!fill(run, is_empty, count, std::uint8_t{1})) return false;
    const std::size_t itemsize = id_kernels.itemsize;
    return parallel_for(run, rows.rows(), kTaskBytes / itemsize, rows.rows() * itemsize,
                        [&](std::size_t begin, std::size_t end) {
                            rows.for_blocks(0, 1, begin, end, [&](const RowBlock& block) {
                                if (rows.id_type() == 0)
                                    mark<std::int32_t>(block, count, is_empty);
                                else
                                    mark<std::int64_t>(block, count, is_empty);
                                return true;
                            });
                        });
}

}  // namespace maxops
