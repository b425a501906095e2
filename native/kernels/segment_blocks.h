// SegmentMax of one column with short segments, a block of rows at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "segment_walk.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

constexpr std::size_t kMargin = 16;  // lanes that may be accessed beyond a block

// A block's ids, each read once, because another thread may change them between check and use.
template <class Place, class Id>
struct IdBlock {
    using Unsigned = std::make_unsigned_t<Id>;

    std::int64_t first, last;
    std::size_t rows;
    alignas(64) Place places[kMargin + kBlockRows + kMargin];  // ids relative to `first`

    // Copies the ids of up to kRows rows from i on, padded to whole vectors of `lanes` lanes. Returns false
    // if the first id is outside the output or lower than `previous`, if a long run starts here, or if ids
    // are too far apart for the type Place.
    template <std::size_t kRows, std::size_t lanes>
    bool copy(const Ids<Id>& ids, std::size_t i, std::int64_t previous) {
        first = ids[i];
        rows = ids.n - i;
        if (first < previous || !ids.has_row(first)) return false;
        const bool near = rows >= kRows ? copy_rows(ids.ids + i, rows = kRows) : copy_rows(ids.ids + i, rows);
        auto* place = begin();
        place[0] = 0;
        last = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) +
                                         static_cast<std::uint64_t>(place[rows - 1]));
        const std::size_t end = (rows + lanes - 1) / lanes * lanes;
        for (std::size_t k = rows; k < end; ++k) place[k] = place[rows - 1];
        place[end] = place[-2] = -1;
        place[-1] = first == previous ? 0 : -1;
        return near && !(rows >= kRun && place[kRun - 1] == 0);
    }
    // Whether the ids are sorted and inside the output; `steps` is the OR of all steps between places. Steps
    // below kFar add up to less than 2^31. Ids that wrap past the maximum of their type are negative, and put
    // `last` above the maximum.
    bool is_valid(std::uint64_t steps, std::int64_t num_segments) const {
        constexpr std::uint64_t kFar = (std::uint64_t{1} << 31) / kBlockRows;
        return steps < kFar && last < num_segments && last <= std::int64_t{std::numeric_limits<Id>::max()};
    }
    bool begins_with_gaps() const {
        const auto* place = begin();
        using U = std::make_unsigned_t<Place>;
        U steps = 0;
        if (rows > kGapRows)
            for (std::size_t k = 0; k < kGapRows; ++k)
                steps |= static_cast<U>(place[k + 1]) - static_cast<U>(place[k]);
        return steps > 1;
    }
    bool is_single_rows() const { return last - first == static_cast<std::int64_t>(rows) - 1; }
    Place* begin() { return places + kMargin; }
    const Place* begin() const { return places + kMargin; }

private:
    __attribute__((always_inline)) bool copy_rows(const Unaligned<Id>* __restrict from, std::size_t n) {
        auto* __restrict place = begin();
        Unsigned all = 0;
        for (std::size_t k = 0; k < n; ++k) {
            const auto distance =
                static_cast<Unsigned>(static_cast<Unsigned>(from[k].value) - static_cast<Unsigned>(first));
            all |= distance;
            place[k] = static_cast<Place>(distance);
        }
        __asm__ volatile("" : : "r"(place) : "memory");  // the compiler must not read the ids again
        return all >> 31 == 0;
    }
};

// The result of a block: the keys of its segments and, if it has gaps, their indices.
template <class Lane, class Place>
struct SegmentBlock {
    std::size_t count;
    std::uint64_t steps;  // the OR of all steps from one row's place to the next
    alignas(64) Lane best[kBlockRows + kMargin];
    alignas(64) Place place[kBlockRows + kMargin];
};

// Keys as unsigned integers of 32 or 64 bits, so that the lowest key is 0.
template <class T>
struct PlainLanes {
    using Key = typename T::Key;
    using Lane = std::conditional_t<sizeof(Key) == 8, std::uint64_t, std::uint32_t>;
    static constexpr Lane kLowest = static_cast<Lane>(T::kLowestKey);

    static Lane lane(typename T::Bits bits) {
        return static_cast<Lane>(static_cast<Lane>(T::key(bits)) - kLowest);
    }
    static typename T::Bits bits(Lane lane) { return T::bits(static_cast<Key>(lane + kLowest)); }
};

// Scans a block row by row.
template <class T>
struct PlainScan : PlainLanes<T> {
    using Lanes = PlainLanes<T>;
    using Lane = typename Lanes::Lane;
    using Place = std::int32_t;
    static constexpr std::size_t kLanes = 1;
    // Fewer than kBlockRows, because a long run within a block costs more here.
    static constexpr std::size_t kRows = kPlainScanRows;

    template <bool gaps>
    static void scan(const Item<T>* items, const Place* place, std::size_t n, Lane carry,
                     SegmentBlock<Lane, Place>* to) {
        Lane keys[kRows];
        for (std::size_t k = 0; k < n; ++k) keys[k] = Lanes::lane(items[k].value);
        std::uint32_t steps = 0;
        for (std::size_t k = 0; k < n; ++k)
            steps |= static_cast<std::uint32_t>(place[k]) - static_cast<std::uint32_t>(place[k - 1]);
        to->steps = steps;
        std::size_t end = 0;
        Lane best = carry;
        for (std::size_t k = 0; k < n; ++k) {
            const Place here = place[k];
            best = highest(keep_if(here == place[k - 1], Scalar<Lane>{best}).v, keys[k]);
            to->best[end] = best;
            if constexpr (gaps) to->place[end] = here;
            end += here != place[k + 1];
        }
        to->count = end;
    }
};

// Folds blocks of rows from i on, up to a block that another loop must process: a block that has unsorted ids
// or ids outside the output, that starts with a long run, or that has segments of one row each.
template <class T, class Id, class Scan>
struct BlockSegments {
    using Lane = typename Scan::Lane;
    using Place = typename Scan::Place;
    struct Work {
        SegmentBlock<Lane, Place> segments;
        IdBlock<Place, Id> block;
    };
    static_assert(sizeof(Work) <= kSegmentScratchBytes && alignof(Work) <= 64);

    // Not inline, because its stack frame would slow down the caller's loop over long runs.
    __attribute__((noinline)) static std::size_t take(const SegmentWalk* walk, const Item<T>* items,
                                                      const Ids<Id>& ids, std::size_t i, ColumnWalk<T>* at) {
        auto& [segments, block] = *static_cast<Work*>(walk->scratch);
        bool gaps = false;                         // in the last block
        if (ids.n - i < kScanRowsLeast) return i;  // for fewer rows, row by row is faster
        while (i < ids.n && block.template copy<Scan::kRows, Scan::kLanes>(ids, i, at->previous)) {
            const Lane carry = Scan::lane(T::bits(at->best));
            gaps = gaps || block.begins_with_gaps();
            const auto scan = gaps ? Scan::template scan<true> : Scan::template scan<false>;
            scan(items + i, block.begin(), block.rows, carry, &segments);
            if (!block.is_valid(segments.steps, ids.num_segments)) break;
            if (segments.steps > 1 && !gaps)
                Scan::template scan<true>(items + i, block.begin(), block.rows, carry, &segments);
            gaps = segments.steps > 1;
            if (block.is_single_rows() && !gaps && block.first > at->previous && block.rows >= kSingles)
                break;
            fill<T>(walk, at->previous + 1, gaps ? block.last + 1 : block.first);
            auto* out = reinterpret_cast<Item<T>*>(walk->out) + block.first;
            if (gaps)
                scatter(out, segments);
            else
                store(out, segments);
            *at = {block.last, T::key(Scan::bits(segments.best[segments.count - 1]))};
            i += block.rows;
        }
        return i;
    }

private:
    static constexpr std::size_t kSome = kStoreRows;  // per chunk of stores, which compilers vectorize
    static_assert(kSome <= kMargin && Scan::kLanes <= kMargin && Scan::kRows <= kBlockRows,
                  "the margin and the rows of a block must be long enough");
    static void store_some(Item<T>* __restrict out, const Lane* __restrict best) {
        for (std::size_t j = 0; j < kSome; ++j) out[j].value = Scan::bits(best[j]);
    }
    // The tail is one chunk of kSome that overlaps the chunk before it, if there is one.
    static void store(Item<T>* out, const SegmentBlock<Lane, Place>& segments) {
        const std::size_t count = segments.count;
        std::size_t k = 0;
        for (; count - k >= kSome; k += kSome) store_some(out + k, segments.best + k);
        if (k == count) return;
        if (count >= kSome) return store_some(out + count - kSome, segments.best + count - kSome);
        for (; k < count; ++k) out[k].value = Scan::bits(segments.best[k]);
    }
    static void scatter(Item<T>* out, const SegmentBlock<Lane, Place>& segments) {
        Item<T> rows[kBlockRows + kSome];
        const std::size_t count = segments.count;
        for (std::size_t k = 0; k < count; k += kSome) store_some(rows + k, segments.best + k);
        for (std::size_t k = 0; k < count; ++k) out[segments.place[k]] = rows[k];
    }
};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
