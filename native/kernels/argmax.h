// Argmax: the index of the first element that equals each result.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels.h"
#include "segment_ids.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
static inline bool holds(Item<T> item, typename T::Bits result) {
    return canonical<T>(item.value) == result;
}

// Whether any of a few items equals the result, without a branch for each item.
template <class T>
static inline bool any_holds(const Item<T>* items, typename T::Bits result, std::size_t n) {
    Word<T> any = 0;
    for (std::size_t i = 0; i < n; ++i) any |= static_cast<Word<T>>(holds<T>(items[i], result));
    return any != 0;
}

// The index of the first of n items that equals the result, or n.
template <class T>
static inline std::size_t first_of(const Item<T>* items, typename T::Bits result, std::size_t n) {
    constexpr std::size_t kBlock = kSearchBlockBytes / sizeof(Item<T>);
    std::size_t i = 0;
    for (; n - i >= kBlock; i += kBlock)
        if (any_holds<T>(items + i, result, kBlock)) break;
    while (i < n && !holds<T>(items[i], result)) ++i;
    return i;
}

template <class T>
static void argmax_rows(std::int64_t* indices, const void* data, std::ptrdiff_t stride, const void* results,
                        std::size_t rows, std::size_t n) {
    auto* expected = static_cast<const Item<T>*>(results);
    for (std::size_t r = 0; r < rows; ++r) {
        auto* items = at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
        const auto result = expected[r].value;
        std::int64_t index = -1;
        if (n <= kSearchFew) {  // backwards, to keep the first match without a branch
            for (std::size_t i = n; i > 0; --i)
                index = holds<T>(items[i - 1], result) ? static_cast<std::int64_t>(i - 1) : index;
        } else if (const std::size_t first = first_of<T>(items, result, n); first < n) {
            index = static_cast<std::int64_t>(first);
        }
        indices[r] = index;
    }
}

// Up to kIndexRows rows of n elements, from row number `row_number` on. Finds the first row that contains the
// result of each column, without a branch and in integers of the elements' width.
template <class T>
static std::size_t argmax_columns(std::int64_t* indices, std::int64_t row_number, const void* data,
                                  std::ptrdiff_t stride, std::size_t rows, const void* results,
                                  std::size_t n) {
    constexpr std::size_t kBlock = kIndexBlockBytes / sizeof(Item<T>);
    constexpr auto kNone = static_cast<Word<T>>(kIndexRows);
    std::size_t found = 0;
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t m = n - begin < kBlock ? n - begin : kBlock;
        Word<T> first[kBlock];
        auto* expected = static_cast<const Item<T>*>(results) + begin;
        for (std::size_t j = 0; j < m; ++j) first[j] = kNone;
        for (std::size_t r = rows; r > 0; --r) {  // backwards, so that the first row is stored last
            auto* row = at<Item<T>>(data, static_cast<std::ptrdiff_t>(r - 1) * stride) + begin;
            const auto number = static_cast<Word<T>>(r - 1);
            for (std::size_t j = 0; j < m; ++j)
                first[j] = canonical<T>(row[j].value) == expected[j].value ? number : first[j];
        }
        for (std::size_t j = 0; j < m; ++j) {
            if (first[j] == kNone || indices[begin + j] >= 0) continue;
            indices[begin + j] = row_number + static_cast<std::int64_t>(first[j]);
            ++found;
        }
    }
    return found;
}

// Sets `index` to `row` if `row` is lower. As an unsigned number, an unknown index (-1) is the highest.
static inline void put_first(std::int64_t* index, std::int64_t row) {
    if (static_cast<std::uint64_t>(row) < static_cast<std::uint64_t>(*index)) *index = row;
}

template <class T, class Id>
static void argmax_segments_of_column(const SegmentArgmax to, std::int64_t row, const char* from,
                                      std::ptrdiff_t stride, const Places<Id> ids, std::size_t rows) {
    const bool calls = ids.span > kIndexCachedRows && rows > kIndexAhead;
    const std::size_t called = calls ? rows - kIndexAhead : 0;
    auto* __restrict indices = to.indices;
    const char* __restrict results = to.results;
    for (std::size_t i = 0; i < rows; ++i, from += stride) {
        if (i < called)
            if (const std::uint64_t ahead = ids[i + kIndexAhead]; ids.has(ahead)) {
                __builtin_prefetch(results + static_cast<std::ptrdiff_t>(ahead) * to.result_stride);
                __builtin_prefetch(indices + ahead * to.indices_stride, 1);
            }
        const std::uint64_t place = ids[i];
        if (!ids.has(place)) continue;
        auto* expected = at<Item<T>>(results, static_cast<std::ptrdiff_t>(place) * to.result_stride);
        if (holds<T>(*at<Item<T>>(from, 0), expected->value))
            put_first(indices + place * to.indices_stride, row + static_cast<std::int64_t>(i));
    }
}

template <class T, class Id>
static void argmax_segments(const SegmentArgmax* to_, std::int64_t row, const void* data,
                            std::ptrdiff_t stride, const void* ids_, std::size_t rows) {
    constexpr std::size_t kBlock = kIndexLineBytes / sizeof(Item<T>);
    const SegmentArgmax to = *to_;
    const Places<Id> ids{static_cast<const Unaligned<Id>*>(ids_), static_cast<std::uint64_t>(to.from),
                         static_cast<std::uint64_t>(to.to - to.from)};
    const auto* from = static_cast<const char*>(data);
    if (to.width == 1) return argmax_segments_of_column<T>(to, row, from, stride, ids, rows);
    for (std::size_t i = 0; i < rows; ++i, ++row, from += stride) {
        const std::uint64_t place = ids[i];
        if (!ids.has(place)) continue;
        auto* items = at<Item<T>>(from, 0);
        auto* expected = at<Item<T>>(to.results, static_cast<std::ptrdiff_t>(place) * to.result_stride);
        auto* indices = to.indices + place * to.indices_stride;
        std::size_t j = 0;
        for (; to.width - j >= kBlock; j += kBlock) {
            Word<T> any = 0;
#pragma GCC unroll 1
            for (std::size_t k = 0; k < kBlock; ++k)
                any |=
                    static_cast<Word<T>>(canonical<T>(items[j + k].value) == expected[j + k].value ? 1 : 0);
            if (any == 0) continue;
            for (std::size_t k = j; k < j + kBlock; ++k)
                if (holds<T>(items[k], expected[k].value)) put_first(indices + k, row);
        }
        for (; j < to.width; ++j)
            if (holds<T>(items[j], expected[j].value)) put_first(indices + j, row);
    }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
