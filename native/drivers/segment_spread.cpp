#include "segment_spread.h"

#include <thread>

namespace maxops {

Spread::Spread(const Run& run, const SegmentRows& rows, std::int64_t num_segments, std::size_t cell_bytes)
    : run_(run),
      rows_(rows),
      num_segments_(num_segments),
      bytes_(rows.rows() * (rows.row_bytes() + rows.id_bytes())) {
    if (rows.is_wide() || bytes_ < kThreadedBytes || num_threads() == 1) return;
    // Copies pay off if they are small compared with the data. Otherwise each thread has its own segments and
    // reads all ids, so that more threads gain less and less.
    const auto threads = static_cast<std::size_t>(num_threads());
    const std::size_t copy_bytes = static_cast<std::size_t>(num_segments) * rows.width() * cell_bytes;
    if (copy_bytes * threads <= bytes_ / kCopiesSmall)
        copies_ = threads;
    else
        ranges_ = std::min({threads, kRangesMost, static_cast<std::size_t>(num_segments)});
    taken_ = std::vector<std::atomic<bool>>(copies_);
}

bool Spread::operator()(FunctionRef<void(const Piece&)> take) const {
    if (rows_.is_wide()) return by_columns(take);
    return copies_ > 1 ? by_copies(take) : by_segments(take);
}

bool Spread::by_columns(FunctionRef<void(const Piece&)> take) const {
    const std::size_t grain = std::min(kTaskColumnsBytes / rows_.itemsize(), rows_.most_columns());
    return parallel_for(run_, rows_.width(), grain, std::max(bytes_, kThreadedBytes),
                        [&](std::size_t column, std::size_t end) {
                            take({column, end - column, 0, rows_.rows(), 0, num_segments_, 0});
                        });
}

// More tasks than copies, so that the poll runs from time to time. Each task takes a free copy.
bool Spread::by_copies(FunctionRef<void(const Piece&)> take) const {
    const std::size_t rows = rows_.rows();
    const std::size_t grain = share_rows(rows, copies_ * kTasksPerCopy, rows_.row_bytes() + rows_.id_bytes());
    // No lock, because a forked child might inherit it locked. The child finds a free copy, because the
    // thread that forks uses none.
    const auto take_one = [&] {
        for (;; std::this_thread::yield())  // more threads than copies if the limit was raised meanwhile
            for (std::size_t copy = 0; copy < copies_; ++copy)
                if (!taken_[copy].exchange(true, std::memory_order_acquire)) return copy;
    };
    return parallel_for(run_, rows, grain, bytes_, [&](std::size_t begin, std::size_t end) {
        const std::size_t copy = take_one();
        take({0, rows_.width(), begin, end, 0, num_segments_, copy});
        taken_[copy].store(false, std::memory_order_release);
    });
}

// In rounds of rows, so that the poll runs from time to time.
bool Spread::by_segments(FunctionRef<void(const Piece&)> take) const {
    const std::size_t rows = rows_.rows(),
                      round = kRoundBytes * ranges_ / (rows_.row_bytes() + rows_.id_bytes()) + 1;
    const auto part = [&](std::size_t i) {  // the first segment of range i
        const auto count = static_cast<std::size_t>(num_segments_);
        return static_cast<std::int64_t>(count / ranges_ * i + std::min(i, count % ranges_));
    };
    Polling polling(run_.poll);
    for (std::size_t begin = 0; begin < rows; begin += round) {
        const std::size_t end = std::min(rows, begin + round);
        const auto task = [&](std::size_t i) {
            take({0, rows_.width(), begin, end, part(i), part(i + 1), 0});
        };
        if (ranges_ == 1)
            task(0);
        else if (!run_tasks(ranges_, task, run_.poll, bytes_ < kLongBytes))
            return false;
        if (!polling.goes_on()) return false;
    }
    return true;
}

}  // namespace maxops
