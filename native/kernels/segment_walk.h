// Steps of a walk over the rows of a SegmentMax, and the fill of empty segments.
#pragma once
#include <cstdint>

#include "kernels.h"
#include "segment_ids.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
static void fill(const SegmentWalk* walk, std::int64_t from, std::int64_t to) {
    if (from < walk->written) from = walk->written;
    if (from >= to || walk->is_filled) return;
    char* row = walk->out + from * walk->out_stride;
    auto value = static_cast<typename T::Bits>(walk->fill);
    std::size_t rows = static_cast<std::size_t>(to - from), n = walk->width;
    if (walk->out_stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>))) {
        n *= rows;
        rows = 1;
    }
    for (; rows > 0; --rows, row += walk->out_stride)
        for (std::size_t j = 0; j < n; ++j) reinterpret_cast<Item<T>*>(row)[j].value = value;
}

// The state of a walk down one column: the last row's segment, and the highest key of that segment so far.
template <class T>
struct ColumnWalk {
    std::int64_t previous;
    typename T::Key best;
};

// Called before a row of segment `id` is taken. Returns false if the walk ends here with unsorted ids.
static inline bool steps_to(SegmentWalk* walk, std::int64_t previous, std::int64_t id) {
    if (id >= previous) return true;
    if (walk->written <= previous) walk->written = previous + 1;
    walk->is_unsorted = walk->checks;
    return !walk->checks;
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
