// Distributes rows to threads if ids are unsorted, so that each row may belong to any segment.
#pragma once
#include <atomic>
#include <vector>

#include "function_ref.h"
#include "segment_rows.h"

namespace maxops {

// A part of the work: columns [column, column + width) of those rows in [begin, end) that are of segments
// [from, to). The result goes to copy `copy` of the output, which no other task uses meanwhile; 0 is the
// output itself.
struct Piece {
    std::size_t column, width, begin, end;
    std::int64_t from, to;
    std::size_t copy;
};

class Spread {
public:
    // `cell_bytes`: the size of an element of the output.
    Spread(const Run& run, const SegmentRows& rows, std::int64_t num_segments, std::size_t cell_bytes);

    // The number of copies, including the output itself. The caller initializes each.
    std::size_t copies() const { return copies_; }
    // False if the poll stopped the call.
    bool operator()(FunctionRef<void(const Piece&)> take) const;

private:
    bool by_columns(FunctionRef<void(const Piece&)> take) const;
    bool by_copies(FunctionRef<void(const Piece&)> take) const;
    bool by_segments(FunctionRef<void(const Piece&)> take) const;

    const Run& run_;
    const SegmentRows& rows_;
    const std::int64_t num_segments_;
    const std::size_t bytes_;  // of the data and the ids
    std::size_t copies_ = 1, ranges_ = 1;
    mutable std::vector<std::atomic<bool>> taken_;  // whether a task is using the copy
};

}  // namespace maxops
