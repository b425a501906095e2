// Reductions, on keys of the type's own size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transpose.h"
#include "items.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
static inline typename T::Key highest_key(const Item<T>* __restrict data, std::size_t n) {
    typename T::Key best = T::kLowestKey;
    for (std::size_t i = 0; i < n; ++i) best = highest(best, T::key(data[i].value));
    return best;
}

// The highest key of a block. For floats it takes fewer steps an element than highest_key: two integer
// maxima tell all, unless the block holds negative numbers only.
template <class T>
static inline typename T::Key highest_key_of_block(const Item<T>* __restrict data, std::size_t n) {
    if constexpr (T::is_float) {
        using Bits = typename T::Bits;
        using U = typename T::U;
        Bits high = T::kLowestFinite;
        U top = 0;
        for (std::size_t i = 0; i < n; ++i) {
            Bits x = data[i].value;
            high = high < x ? x : high;
            top = top < static_cast<U>(x) ? static_cast<U>(x) : top;
        }
        if (top > T::kMinusInfinity) return T::kNaNKey;
        if (high >= 0) return T::key(high);
    }
    return highest_key<T>(data, n);
}

// Block by block, up to the first that holds the highest key of all: a NaN, or True.
template <class T>
static typename T::Key highest_key_in_blocks(const Item<T>* data, std::size_t n) {
    constexpr std::size_t kBlock = kReduceBlockBytes / sizeof(Item<T>);
    typename T::Key best = T::kLowestKey;
    while (n > 0 && best < T::kHighestKey) {
        std::size_t m = n < kBlock ? n : kBlock;
        best = highest(best, highest_key_of_block<T>(data, m));
        data += m;
        n -= m;
    }
    return best;
}

// The reductions; an instruction set's own header may have better ones.
template <class T>
struct Reduction;

template <class T>
static inline typename T::Key highest_of(const Item<T>* data, std::size_t n) {
    return Reduction<T>::highest_of(data, n);
}

template <class T>
static void start(void* keys, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    for (std::size_t j = 0; j < n; ++j) acc[j] = T::kLowestKey;
}

// Short rows that follow one another, their length known to the compiler.
template <class T, std::size_t n>
static void short_rows(typename T::Key* __restrict acc, const Item<T>* __restrict data, std::size_t rows) {
    for (std::size_t r = 0; r < rows; ++r) {
        typename T::Key best = acc[r];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < n; ++i) best = highest(best, T::key(data[r * n + i].value));
        acc[r] = best;
    }
}

// Up to where turning rows beats a vector each: by measurement.
template <class T>
constexpr std::size_t kShortRow = sizeof(typename T::Bits) <= 2 ? kTransposedNarrowRow : kTransposedRow;

template <class T>
struct PlainReduction {
    using Key = typename T::Key;

    static Key highest_of(const Item<T>* data, std::size_t n) {
        if (n < kScalarReduction) return highest_key<T>(data, n);
        std::size_t head = alignment_peel<T>(data, n);
        Key first = head > 0 ? highest_key<T>(data, head) : T::kLowestKey;
        return highest(first, highest_key_in_blocks<T>(data + head, n - head));
    }

    static void columns(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows,
                        std::size_t n) {
        auto* __restrict acc = static_cast<Key*>(keys);
        // Four rows a turn: each key is loaded and stored once for four elements.
        for (; rows >= 4; rows -= 4) {
            const Item<T>* __restrict a = at<Item<T>>(data, 0);
            const Item<T>* __restrict b = at<Item<T>>(data, stride);
            const Item<T>* __restrict c = at<Item<T>>(data, 2 * stride);
            const Item<T>* __restrict d = at<Item<T>>(data, 3 * stride);
            for (std::size_t j = 0; j < n; ++j)
                acc[j] = highest(acc[j], highest(T::key(a[j].value), T::key(b[j].value)),
                                 highest(T::key(c[j].value), T::key(d[j].value)));
            data = at<char>(data, 4 * stride);
        }
        for (; rows > 0; --rows) {
            const Item<T>* __restrict a = at<Item<T>>(data, 0);
            for (std::size_t j = 0; j < n; ++j) acc[j] = highest(acc[j], T::key(a[j].value));
            data = at<char>(data, stride);
        }
    }

    static void rows(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
        auto* acc = static_cast<Key*>(keys);
        if (rows > 1 && stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>))) {
            auto* items = static_cast<const Item<T>*>(data);
            if (n == 2) return short_rows_in_turns<2>(acc, items, rows);
            if (n == 3) return short_rows_in_turns<3>(acc, items, rows);
            if (n == 4) return short_rows_in_turns<4>(acc, items, rows);
            if (n == 8) return short_rows_in_turns<8>(acc, items, rows);
        }
        if (rows >= kTransposedRows && n > 1 && n <= kShortRow<T>)
            return transposed_rows(acc, data, stride, rows, n);
        for (std::size_t r = 0; r < rows; ++r) {
            const auto* row = at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
            acc[r] = highest(acc[r], Reduction<T>::highest_of(row, n));
        }
    }

private:
    template <std::size_t n>
    static void short_rows_in_turns(Key* acc, const Item<T>* items, std::size_t rows) {
        constexpr std::size_t kRowBytes = n * sizeof(Item<T>);
        constexpr std::size_t kTurn = kShortRowsBytes < kRowBytes ? 1 : kShortRowsBytes / kRowBytes;
        for (std::size_t r = 0; r < rows; r += kTurn) {
            prefetch(items + (r + kTurn) * n, kTurn * kRowBytes);
            short_rows<T, n>(acc + r, items + r * n, rows - r < kTurn ? rows - r : kTurn);
        }
    }

    // Short rows of any length: as columns, once turned in cache.
    static void transposed_rows(Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                                std::size_t n) {
        constexpr std::size_t kTile = kTransposeTile;
        alignas(64) Word<T> turned[kShortRow<T> * kTile];
        for (std::size_t r = 0; r < rows; r += kTile) {
            const std::size_t m = rows - r < kTile ? rows - r : kTile;
            prefetch(at<char>(data, static_cast<std::ptrdiff_t>(r + kTile) * stride),
                     kTile * n * sizeof(Item<T>));
            transpose<Word<T>>(turned, at<char>(data, static_cast<std::ptrdiff_t>(r) * stride), stride, n, m);
            Reduction<T>::columns(acc + r, turned, static_cast<std::ptrdiff_t>(m * sizeof(Item<T>)), n, m);
        }
    }
};

#ifndef MAXOPS_SIMD
template <class T>
struct Reduction : PlainReduction<T> {};
#endif

template <class T>
static void merge(void* keys, std::size_t groups, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    for (std::size_t g = 1; g < groups; ++g)
        for (std::size_t j = 0; j < n; ++j) acc[j] = highest(acc[j], acc[g * n + j]);
}

template <class T>
static void finish(void* out, const void* keys, std::size_t n) {
    auto* __restrict items = static_cast<Item<T>*>(out);
    auto* __restrict acc = static_cast<const typename T::Key*>(keys);
    for (std::size_t j = 0; j < n; ++j) items[j].value = T::bits(acc[j]);
}

#if MAXOPS_SIMD == 4
#include "simd_v4_reduce.h"
#elif MAXOPS_SIMD == 3
#include "simd_v3_reduce.h"
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
