// The ids of SegmentMax: sorted (Ids) and unsorted (Places).
#pragma once
#include <cstddef>
#include <cstdint>

#include "items.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// A block's ids. Results rely on sorted ids, memory safety does not: an id outside [0, num_segments) has no
// row. For any ids, every output row up to the last id is written, because a step up fills the rows that it
// skips.
template <class Id>
struct Ids {
    const Unaligned<Id>* ids;
    std::size_t n;
    std::int64_t num_segments;
    bool gallops;

    // A volatile access reads the id once, because another thread may change it between check and use.
    std::int64_t operator[](std::size_t i) const {
        return static_cast<const volatile Unaligned<Id>*>(ids + i)->value;
    }
    bool has_row(std::int64_t id) const {
        return static_cast<std::uint64_t>(id) < static_cast<std::uint64_t>(num_segments);
    }
    // The end of the run of ids equal to ids[i].
    std::size_t run_end(std::size_t i) const {
        const Id id = ids[i].value;
        const std::size_t scanned = gallops && n - i > kGallopRows ? i + kGallopRows : n;
        for (++i; scanned - i >= kRunScan; i += kRunScan) {
            Id differ = 0;  // in the ids' own width, so that compilers vectorize it
            for (std::size_t k = 0; k < kRunScan; ++k) differ |= ids[i + k].value ^ id;
            if (differ != 0) break;
        }
        if (scanned < n && scanned - i < kRunScan) {
            // In sorted ids, all ids of a stretch are equal if the last one is. Doubles the stretch while
            // they are equal, then halves it.
            std::size_t stretch = kRunScan;
            for (; n - i >= stretch && ids[i + stretch - 1].value == id; stretch *= 2) i += stretch;
            for (; stretch >= kRunScan; stretch /= 2)
                if (n - i >= stretch && ids[i + stretch - 1].value == id) i += stretch;
        }
        while (i < n && ids[i].value == id) ++i;
        return i;
    }
};

template <class Id>
static bool sorted(const void* ids_, std::size_t n) {
    auto* __restrict ids = static_cast<const Unaligned<Id>*>(ids_);
    if (n == 0) return true;
    if (ids[0].value < 0) return false;
    for (std::size_t b = 1; b < n; b += kOrderBlock) {
        std::size_t e = n - b < kOrderBlock ? n : b + kOrderBlock;
        Id down = 0;  // in the ids' own width, so that compilers vectorize it
        for (std::size_t i = b; i < e; ++i) down |= static_cast<Id>(ids[i].value < ids[i - 1].value ? 1 : 0);
        if (down != 0) return false;
    }
    return true;
}

// Unsorted ids as places relative to `from`. The place of an id outside the segments is `span` or more. A
// volatile access reads each id once, because another thread may change it between check and use.
template <class Id>
struct Places {
    const Unaligned<Id>* ids;
    std::uint64_t from, span;

    std::uint64_t operator[](std::size_t i) const {
        const std::int64_t id = static_cast<const volatile Unaligned<Id>*>(ids + i)->value;
        return static_cast<std::uint64_t>(id) - from;
    }
    bool has(std::uint64_t place) const { return place < span; }
};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
