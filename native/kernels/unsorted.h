// SegmentMax with unsorted ids: folds each row into keys of the whole output.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels.h"
#include "segment_ids.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// Folds a row's elements into the keys of its segment, in chunks of constant length.
template <class T, std::size_t n>
static inline void fold_few(UnalignedKey<T>* __restrict keys, const Item<T>* __restrict items) {
#pragma GCC unroll 1
    for (std::size_t j = 0; j < n; ++j) keys[j].value = highest(keys[j].value, key_of<T>(items[j].value));
}
template <class T>
static inline void fold_row(UnalignedKey<T>* keys, const Item<T>* items, std::size_t width) {
    constexpr std::size_t kLine = kScatterLineBytes / sizeof(Item<T>), kQuarter = quarter_of(kLine);
    std::size_t j = 0;
    for (; width - j >= kLine; j += kLine) fold_few<T, kLine>(keys + j, items + j);
    for (; width - j >= kQuarter; j += kQuarter) fold_few<T, kQuarter>(keys + j, items + j);
    for (; j < width; ++j) keys[j].value = highest(keys[j].value, key_of<T>(items[j].value));
}

// The keys of the first column show which segments have rows, except for the lowest key, which segments
// without rows also have. Therefore, accumulate() returns whether the first element of any row has the lowest
// key.
template <class T, class Id>
struct Unsorted {
    using Key = typename T::Key;
    using Keys = UnalignedKey<T>;

    static bool accumulate(const UnsortedSegments* to, const void* data, std::ptrdiff_t stride,
                           const void* ids, std::size_t rows) {
        const Places<Id> places{static_cast<const Unaligned<Id>*>(ids), static_cast<std::uint64_t>(to->from),
                                static_cast<std::uint64_t>(to->to - to->from)};
        const auto* from = static_cast<const char*>(data);
        if (!to->takes_all) return accumulate_some(*to, from, stride, places, rows);
        if (to->width > 1 || to->stride != sizeof(Keys))
            return accumulate_rows(*to, from, stride, places, rows);
        auto* keys = reinterpret_cast<Keys*>(to->keys);
        if (places.span * sizeof(Keys) <= kScatterCachedBytes)
            return column<false>(keys, from, stride, places, rows);
        return column<true>(keys, from, stride, places, rows);
    }

private:
    template <bool calls>
    static bool column(Keys* __restrict keys, const char* __restrict from, std::ptrdiff_t stride,
                       const Places<Id> places, std::size_t rows) {
        const std::size_t called = calls && rows > kScatterAhead ? rows - kScatterAhead : 0;
        bool has_lowest = false;
        for (std::size_t i = 0; i < rows; ++i, from += stride) {
            if (calls && i < called)
                if (const std::uint64_t ahead = places[i + kScatterAhead]; places.has(ahead))
                    __builtin_prefetch(keys + ahead, 1);
            const std::uint64_t place = places[i];
            if (!places.has(place)) continue;
            const Key key = key_of<T>(at<Item<T>>(from, 0)->value);
            keys[place].value = highest(keys[place].value, key);
            has_lowest |= key == T::kLowestKey;
        }
        return has_lowest;
    }

    static bool accumulate_rows(const UnsortedSegments to, const char* from, std::ptrdiff_t stride,
                                const Places<Id> places, std::size_t rows) {
        const std::size_t called = rows > kScatterRowsAhead ? rows - kScatterRowsAhead : 0;
        bool has_lowest = false;
        for (std::size_t i = 0; i < rows; ++i, from += stride) {
            if (i < called)
                if (const std::uint64_t ahead = places[i + kScatterRowsAhead]; places.has(ahead))
                    __builtin_prefetch(to.keys + static_cast<std::ptrdiff_t>(ahead) * to.stride, 1);
            if (const std::uint64_t place = places[i]; places.has(place))
                has_lowest |= row(to, place, at<Item<T>>(from, 0));
        }
        return has_lowest;
    }

    // Selects the rows of segments [from, to) without a branch, which would mispredict.
    static bool accumulate_some(const UnsortedSegments to, const char* from, std::ptrdiff_t stride,
                                const Places<Id> places, std::size_t rows) {
        std::uint64_t taken_places[kScatterBlock];
        std::uint16_t taken[kScatterBlock];
        bool has_lowest = false;
        for (std::size_t begin = 0; begin < rows; begin += kScatterBlock) {
            const std::size_t n = rows - begin < kScatterBlock ? rows - begin : kScatterBlock;
            std::size_t count = 0;
            for (std::size_t k = 0; k < n; ++k) {
                const std::uint64_t place = places[begin + k];
                taken_places[count] = place;
                taken[count] = static_cast<std::uint16_t>(k);
                count += places.has(place) ? 1 : 0;
            }
            const char* block = from + static_cast<std::ptrdiff_t>(begin) * stride;
            for (std::size_t k = 0; k < count; ++k)
                has_lowest |= row(to, taken_places[k], at<Item<T>>(block, taken[k] * stride));
        }
        return has_lowest;
    }

    static inline bool row(const UnsortedSegments& to, std::uint64_t place, const Item<T>* items) {
        auto* keys = reinterpret_cast<Keys*>(to.keys + static_cast<std::ptrdiff_t>(place) * to.stride);
        const bool has_lowest = key_of<T>(items[0].value) == T::kLowestKey;
        fold_row<T>(keys, items, to.width);
        return has_lowest;
    }
};

template <class T>
static void init_segments(void* keys, std::uint64_t bits, std::size_t n) {
    auto* to = static_cast<UnalignedKey<T>*>(keys);
    const auto key = T::key(static_cast<typename T::Bits>(bits));
    for (std::size_t j = 0; j < n; ++j) to[j].value = key;
}

template <class T>
static void merge_segments(void* keys, const void* others, std::size_t n) {
    auto* __restrict to = static_cast<UnalignedKey<T>*>(keys);
    auto* __restrict from = static_cast<const UnalignedKey<T>*>(others);
    for (std::size_t j = 0; j < n; ++j) to[j].value = highest(to[j].value, from[j].value);
}

// Converts keys to values in place, and writes the fill value to rows without elements: those that `is_empty`
// marks or, if it is null, those whose first key is the lowest.
template <class T>
static void finalize_segments(void* keys, std::ptrdiff_t stride, const std::uint8_t* is_empty,
                              std::uint64_t fill_, std::size_t rows, std::size_t n) {
    using Bits = typename T::Bits;
    const auto fill = static_cast<Bits>(fill_);
    const bool marked = is_empty != nullptr;
    if (n == 1 && !marked && stride == static_cast<std::ptrdiff_t>(sizeof(Item<T>))) {
        auto* here = static_cast<UnalignedKey<T>*>(keys);
        for (std::size_t r = 0; r < rows; ++r) {
            const auto key = here[r].value;
            const Bits value = T::bits(key);
            here[r].value = static_cast<typename T::Key>(key == T::kLowestKey ? fill : value);
        }
        return;
    }
    for (std::size_t r = 0; r < rows; ++r) {
        auto* row = reinterpret_cast<UnalignedKey<T>*>(static_cast<char*>(keys) +
                                                       static_cast<std::ptrdiff_t>(r) * stride);
        if (marked ? is_empty[r] != 0 : row[0].value == T::kLowestKey)
            for (std::size_t j = 0; j < n; ++j) row[j].value = static_cast<typename T::Key>(fill);
        else
            for (std::size_t j = 0; j < n; ++j)
                row[j].value = static_cast<typename T::Key>(T::bits(row[j].value));
    }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
