// Reductions on keys of the element's size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "transpose.h"
#include "items.h"
#include "maxima.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
static void start(void* keys, std::size_t n) {
    auto* acc = static_cast<typename T::Key*>(keys);
    for (std::size_t j = 0; j < n; ++j) acc[j] = T::kLowestKey;
}

// ---------------------------------------------------------------------------- one row

// Four concurrent streams get more bandwidth from memory and the L2 cache than one, except with vectors of a
// whole cache line, which then take 1.15 times as long.
constexpr bool kStreams = kVectorBytes < kLine;

// Folds n items, at least a vector of them, into the lanes of one vector. Stops early if the result is
// saturated.
template <class T>
MAXOPS_INLINE Maxima<T> maxima_of(const Item<T>* items, std::size_t n) {
    using V = Vec<typename T::Bits>;
    constexpr std::size_t kLanes = V::kLanes, kPair = 2 * kLanes, kStep = 4 * kPair;
    constexpr std::size_t kStreamed = kStreamsFromBytes / sizeof(Item<T>);
    constexpr std::size_t kLongest = kStreamMostBytes / sizeof(Item<T>);
    static_assert(!kStreams || (kStreamed >= kStep && kLongest >= kPair),
                  "a stream must be long enough for one step");
    Maxima<T> a(V::load(items));
    const std::size_t peel = alignment_peel<T>(items, n) % kLanes;
    std::size_t i = peel > 0 ? peel : kLanes;
    if (n - i >= kStep) {
        Maxima<T> b = a;
        do {
            const bool streams = kStreams && n - i >= kStreamed;
            std::size_t steps = (n - i) / kStep;
            if (streams && steps > kLongest / kPair) steps = kLongest / kPair;
            const std::size_t apart = streams ? steps * kPair : kPair, step = streams ? kPair : kStep;
            const Item<T>* from = items + i;
            i += steps * kStep;
            while (steps > 0) {
                const std::size_t chunk = steps > kStepsPerLook ? kStepsPerLook : steps;
                for (std::size_t k = 0; k < chunk; ++k, from += step) {
                    const Item<T>*second = from + apart, *third = second + apart, *fourth = third + apart;
                    a.accumulate(V::load(from), V::load(from + kLanes));
                    b.accumulate(V::load(second), V::load(second + kLanes));
                    a.accumulate(V::load(third), V::load(third + kLanes));
                    b.accumulate(V::load(fourth), V::load(fourth + kLanes));
                }
                steps -= chunk;
                Maxima<T> both = a;
                both.merge(b);
                if (both.is_saturated()) return both;
            }
        } while (n - i >= kStep);
        a.merge(b);
    }
    for (; n - i >= kLanes; i += kLanes) a.accumulate(V::load(items + i));
    if (i < n) a.accumulate(V::load(items + n - kLanes));
    return a;
}

// Folds a few items, at least a vector of them, into the keys of one vector. Compares integers only, so that
// the floating-point modes do not matter.
template <class T>
MAXOPS_INLINE Vec<typename T::Key> keys_of_few(const Item<T>* items, std::size_t n) {
    using V = Vec<typename T::Key>;
    V keys = T::keys(V::load(items + n - V::kLanes));
    for (std::size_t i = 0; n - i > V::kLanes; i += V::kLanes) keys = max(keys, T::keys(V::load(items + i)));
    return keys;
}

template <class T>
typename T::Key highest_of(const Item<T>* items, std::size_t n) {
    if (n == 0) return T::kLowestKey;
    using V = Vec<typename T::Key>;
    if (n < V::kLanes) return highest_lane(T::keys(load_some(items, n, V::splat(T::bits(T::kLowestKey)))));
    if (n <= kFewVectorBytes / sizeof(Item<T>)) return highest_lane(keys_of_few<T>(items, n));
    if constexpr (kComparesFloats<T>)
        if (!float_modes_are_plain()) return highest_of<Bitwise<T>>(items, n);
    return highest_lane(keys_of<T>(maxima_of<T>(items, n).finalize()));
}

// ---------------------------------------------------------------------------- many rows

// Keys in lanes of at least 32 bits, each the maximum of its source lanes.
template <class Key>
MAXOPS_INLINE auto in_wide_lanes(Vec<Key> keys) {
    if constexpr (sizeof(Key) >= 4) {
        return keys;
    } else {
        using Lane = typename Wider<Key>::type;
        constexpr int kBits = 8 * sizeof(Key);
        // the high half of each lane against the low half
        const auto low = as<Key>(shift_left<kBits>(as<Lane>(keys)));
        return in_wide_lanes<Lane>(shift_right<kBits>(as<Lane>(max(keys, low))));
    }
}

// Folds V::kLanes vectors into one: lane r is the highest lane of vector r.
template <class V>
MAXOPS_INLINE V highest_lanes(V* v) {
    std::size_t count = V::kLanes;
    if constexpr (sizeof(typename V::Lane) == 4) {
        count /= 2;
        for (std::size_t k = 0; k < count; ++k)
            v[k] = max(interleave_low(v[2 * k], v[2 * k + 1]), interleave_high(v[2 * k], v[2 * k + 1]));
    }
    using Pairs = std::conditional_t<std::is_signed_v<typename V::Lane>, std::int64_t, std::uint64_t>;
    const auto low = [](V a, V b) {
        return as<typename V::Lane>(interleave_low(as<Pairs>(a), as<Pairs>(b)));
    };
    const auto high = [](V a, V b) {
        return as<typename V::Lane>(interleave_high(as<Pairs>(a), as<Pairs>(b)));
    };
    count /= 2;
    for (std::size_t k = 0; k < count; ++k)
        v[k] = max(low(v[2 * k], v[2 * k + 1]), high(v[2 * k], v[2 * k + 1]));
    for (; count > 1; count /= 2)
        for (std::size_t k = 0; k < count / 2; ++k)
            v[k] = max(even_blocks(v[2 * k], v[2 * k + 1]), odd_blocks(v[2 * k], v[2 * k + 1]));
    return v[0];
}

// Like maxima_of(), but without an early stop, for rows shorter than kLongVectorRowBytes. Vectors of a whole
// cache line are aligned and taken in pairs: unaligned, rows of 5000 bytes take 1.3 times as long.
template <class T>
MAXOPS_INLINE Maxima<T> maxima_of_row(const Item<T>* items, std::size_t n) {
    using V = Vec<typename T::Bits>;
    constexpr std::size_t kLanes = V::kLanes, kPair = 2 * kLanes;
    Maxima<T> a(V::load(items));
    std::size_t i = kLanes;
    if constexpr (kVectorBytes == kLine) {
        if (const std::size_t peel = alignment_peel<T>(items, n); peel > 0) i = peel;
        if (n - i >= 2 * kPair) {
            Maxima<T> b = a;
            for (; n - i >= 2 * kPair; i += 2 * kPair) {
                a.accumulate(V::load(items + i), V::load(items + i + kLanes));
                b.accumulate(V::load(items + i + kPair), V::load(items + i + kPair + kLanes));
            }
            a.merge(b);
        }
    } else {
        a.accumulate(V::load(items + i));
        i += kLanes;
    }
    for (; n - i >= kPair; i += kPair) a.accumulate(V::load(items + i), V::load(items + i + kLanes));
    if (n - i > kLanes) a.accumulate(V::load(items + i));
    if (n > i) a.accumulate(V::load(items + n - kLanes));
    return a;
}

// keys_of_row(row) returns the keys of a row's items in the lanes of one vector.
template <class T, class KeysOfRow>
MAXOPS_INLINE void many_rows(typename T::Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                             std::size_t n, const KeysOfRow& keys_of_row) {
    using Key = typename T::Key;
    using Wide = decltype(in_wide_lanes<Key>(Vec<Key>{}));
    constexpr std::size_t kRows = Wide::kLanes;
    const std::size_t bytes = n * sizeof(Item<T>);
    const auto ahead = static_cast<std::ptrdiff_t>(kPrefetchedRowsAhead / bytes) * stride;
    const auto row_at = [&](std::size_t r) {
        return at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
    };
    for (std::size_t r = 0; r < rows; r += kRows) {
        const std::size_t m = rows - r < kRows ? rows - r : kRows;
        Wide keys[kRows];
        if (bytes <= kPrefetchedRowBytes) prefetch(at<char>(row_at(r), ahead), kRows * bytes);
        if (m == kRows) {
#pragma GCC unroll 16
            for (std::size_t k = 0; k < kRows; ++k) keys[k] = in_wide_lanes<Key>(keys_of_row(row_at(r + k)));
        } else {
            for (std::size_t k = 0; k < kRows; ++k)
                keys[k] = k < m ? in_wide_lanes<Key>(keys_of_row(row_at(r + k))) : keys[0];
        }
        alignas(64) typename Wide::Lane found[kRows];
        store(found, highest_lanes(keys));
        for (std::size_t k = 0; k < m; ++k) acc[r + k] = highest(acc[r + k], static_cast<Key>(found[k]));
    }
}

// ---------------------------------------------------------------------------- columns

// The keys of the maxima of `count` rows.
template <class T, std::size_t count, class Load>
MAXOPS_INLINE Vec<typename T::Key> keys_of_rows(const Load& load) {
    if constexpr (count == 1) {
        return T::keys(load(0));
    } else {
        Maxima<T> maxima(load(0), load(1));
        for (std::size_t k = 2; k < count; k += 2) maxima.accumulate(load(k), load(k + 1));
        return keys_of<T>(maxima.finalize());
    }
}

// keys[j] = max(keys[j], element j of each of `count` rows). Can prefetch the next rows.
template <class T, std::size_t count, bool prefetches>
inline void few_rows(typename T::Key* acc, const Item<T>* const* row, std::ptrdiff_t next, std::size_t n) {
    using V = Vec<typename T::Key>;
    const auto some = [&](std::size_t j, std::size_t items) {
        Pieces<V>::with(items, [&](auto piece) {
            const V none = V::splat(0);
            const V keys =
                keys_of_rows<T, count>([&](std::size_t k) { return piece.load(row[k] + j, none); });
            piece.store(acc + j, max(piece.load(acc + j, none), keys));
        });
    };
    const auto whole = [&](std::size_t j) {
        const V keys = keys_of_rows<T, count>([&](std::size_t k) { return V::load(row[k] + j); });
        store(acc + j, max(V::load(acc + j), keys));
    };
    std::size_t j = 0;
    // Vectors of a whole cache line are folded one at a time, each prefetched, because two at a time take 1.3
    // times as long.
    constexpr std::size_t kStep = V::kBytes < kLine ? 2 : 1;
    for (; n - j >= kStep * V::kLanes; j += kStep * V::kLanes) {
        if constexpr (prefetches)
            for (std::size_t k = 0; k < count; ++k) prefetch(at<char>(row[k] + j, next), kStep * V::kBytes);
        whole(j);
        if constexpr (kStep == 2) whole(j + V::kLanes);
    }
    for (; n - j >= V::kLanes; j += V::kLanes) whole(j);
    if (j == n) return;
    if constexpr (kHasMaskedMemory)  // avoids reloading lanes whose store is not in the cache yet
        some(j, n - j);
    else
        whole(n - V::kLanes);
}

// few_rows() as a separate function with its own copy of the addresses, for vectors of a whole cache line.
// Inlined among other loops, it has too few registers for the addresses: columns of float16 take 1.3 to 2
// times as long. With smaller vectors the call would make short rows take 1.4 times as long.
template <class T, std::size_t count, bool prefetches>
static __attribute__((noinline)) void few_rows_apart(typename T::Key* acc, const Item<T>* const* rows,
                                                     std::ptrdiff_t next, std::size_t n) {
    const Item<T>* row[count];
    for (std::size_t k = 0; k < count; ++k) row[k] = rows[k];
    few_rows<T, count, prefetches>(acc, row, next, n);
}
template <class T, std::size_t count, bool prefetches>
constexpr auto kColumnsLoop =
    kVectorBytes < kLine ? few_rows<T, count, prefetches> : few_rows_apart<T, count, prefetches>;

// Rows of sizeof...(v) vectors: the accumulators stay in registers for all rows. With blocks of eight rows
// instead, rows of two vectors of bytes take 1.25 to 1.4 times as long. load(row, v) loads vector v of a row,
// and keep(v, keys) receives the maximum of vector v over all rows.
template <class T, std::size_t... v, class Load, class Keep>
MAXOPS_INLINE void narrow_columns(std::index_sequence<v...>, const void* data, std::ptrdiff_t stride,
                                  std::size_t rows, const Load& load, const Keep& keep) {
    const auto row_at = [&](std::size_t r) {
        return at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
    };
    // The hardware does not recognize rows with gaps as a stream.
    constexpr auto kAhead = static_cast<std::ptrdiff_t>(kPrefetchedRowsAhead);
    const std::ptrdiff_t apart = stride < 0 ? -stride : stride;
    const std::ptrdiff_t ahead = (0 < apart && apart < kAhead / 8 ? kAhead / apart : 8) * stride;
    Maxima<T> all[] = {Maxima<T>(load(row_at(0), v))...};
    std::size_t r = 1;
    for (; rows - r >= 2; r += 2) {
        const Item<T>*first = row_at(r), *second = row_at(r + 1);
        prefetch(at<char>(first, ahead), sizeof...(v) * kVectorBytes);
        prefetch(at<char>(second, ahead), sizeof...(v) * kVectorBytes);
        (all[v].accumulate(load(first, v), load(second, v)), ...);
    }
    if (r < rows) (all[v].accumulate(load(row_at(r), v)), ...);
    (keep(v, keys_of<T>(all[v].finalize())), ...);
}

template <class T>
void columns(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
    if constexpr (kComparesFloats<T>)
        if (!float_modes_are_plain()) return columns<Bitwise<T>>(keys, data, stride, rows, n);
    if (n == 0 || rows == 0) return;
    using V = Vec<typename T::Bits>;
    using Keys = Vec<typename T::Key>;
    auto* acc = static_cast<typename T::Key*>(keys);
    if (n < V::kLanes) {
        return Pieces<V>::with(n, [&](auto piece) {
            narrow_columns<T>(
                std::index_sequence<0>{}, data, stride, rows,
                [&](const Item<T>* row, std::size_t) { return piece.load(row, V::splat(0)); },
                [&](std::size_t, Keys found) {
                    piece.store(acc, max(piece.load(acc, Keys::splat(0)), found));
                });
        });
    }
    if (rows >= kNarrowRows && n <= kNarrowVectors * V::kLanes) {
        const auto narrow = [&](auto vectors) {
            constexpr std::size_t kLast = decltype(vectors)::size() - 1;  // may overlap the vector before it
            const auto place = [n](std::size_t v) { return v < kLast ? v * V::kLanes : n - V::kLanes; };
            narrow_columns<T>(
                vectors, data, stride, rows,
                [&](const Item<T>* row, std::size_t v) { return V::load(row + place(v)); },
                [&](std::size_t v, Keys found) {
                    store(acc + place(v), max(Keys::load(acc + place(v)), found));
                });
        };
        if (n <= V::kLanes) return narrow(std::make_index_sequence<1>{});
        if (n <= 2 * V::kLanes) return narrow(std::make_index_sequence<2>{});
        if (n <= 3 * V::kLanes) return narrow(std::make_index_sequence<3>{});
        return narrow(std::make_index_sequence<4>{});
    }
    constexpr std::size_t kMost = 8;
    constexpr auto kPrefetched = static_cast<std::ptrdiff_t>(kPrefetchedStride);
    const Item<T>* row[kMost];
    const auto next = static_cast<std::ptrdiff_t>(kMost) * stride;
    // The hardware prefetches longer rows by itself: each is a stream.
    const bool prefetches = -kPrefetched < stride && stride < kPrefetched;
    while (rows > 0) {
        // Fewer rows than kMost are padded with the last row.
        for (std::size_t k = 0; k < kMost; ++k)
            row[k] = at<Item<T>>(data, static_cast<std::ptrdiff_t>(k < rows ? k : rows - 1) * stride);
        if (rows > 4 && prefetches)
            kColumnsLoop<T, 8, true>(acc, row, next, n);
        else if (rows > 4)
            kColumnsLoop<T, 8, false>(acc, row, next, n);
        else if (rows > 1)
            kColumnsLoop<T, 4, false>(acc, row, next, n);
        else
            kColumnsLoop<T, 1, false>(acc, row, next, n);
        data = at<char>(data, next);
        rows -= rows < kMost ? rows : kMost;
    }
}

// ---------------------------------------------------------------------------- short rows

// Short contiguous rows of constant length.
template <class T, std::size_t n>
static void short_rows(typename T::Key* __restrict acc, const Item<T>* __restrict data, std::size_t rows) {
    for (std::size_t r = 0; r < rows; ++r) {
        typename T::Key best = acc[r];
#pragma GCC unroll 8
        for (std::size_t i = 0; i < n; ++i) best = highest(best, T::key(data[r * n + i].value));
        acc[r] = best;
    }
}

template <class T, std::size_t n>
void short_rows_in_chunks(typename T::Key* acc, const Item<T>* items, std::size_t rows) {
    constexpr std::size_t kRowBytes = n * sizeof(Item<T>);
    constexpr std::size_t kChunk = kShortRowsBytes < kRowBytes ? 1 : kShortRowsBytes / kRowBytes;
    for (std::size_t r = 0; r < rows; r += kChunk) {
        prefetch(items + (r + kChunk) * n, kChunk * kRowBytes);
        short_rows<T, n>(acc + r, items + r * n, rows - r < kChunk ? rows - r : kChunk);
    }
}

// Rows of Transpose::kWidth items: transposed in cache, then folded as columns.
template <class T>
void transposed_rows(typename T::Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                     std::size_t n) {
    constexpr std::size_t kTile = kTransposeTile;
    alignas(64) Word<T> transposed[Transpose<Word<T>>::kWidth * kTile];
    for (std::size_t r = 0; r < rows; r += kTile) {
        const std::size_t m = rows - r < kTile ? rows - r : kTile;
        prefetch(at<char>(data, static_cast<std::ptrdiff_t>(r + kTile) * stride),
                 kTile * n * sizeof(Item<T>));
        transpose<Word<T>>(transposed, at<char>(data, static_cast<std::ptrdiff_t>(r) * stride), stride, n, m);
        columns<T>(acc + r, transposed, static_cast<std::ptrdiff_t>(m * sizeof(Item<T>)), n, m);
    }
}

// Contiguous rows of 2, 3, 4 or 8 items, where loops of constant length beat a vector per row (measured).
template <class T>
bool rows_in_own_loops(typename T::Key* acc, const Item<T>* items, std::size_t rows, std::size_t n) {
    if (n == 2) return short_rows_in_chunks<T, 2>(acc, items, rows), true;
    if (n == 3) return short_rows_in_chunks<T, 3>(acc, items, rows), true;
    if (sizeof(Item<T>) > 2 && kVectorBytes == 32 && rows >= kVectorRows) return false;
    if (n == 4) return short_rows_in_chunks<T, 4>(acc, items, rows), true;
    if (n == 8) return short_rows_in_chunks<T, 8>(acc, items, rows), true;
    return false;
}

// ---------------------------------------------------------------------------- the kernels

template <class T>
void rows(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
    if constexpr (kComparesFloats<T>)
        if (!float_modes_are_plain()) return MAXOPS_ISA::rows<Bitwise<T>>(keys, data, stride, rows, n);
    using V = Vec<typename T::Bits>;
    auto* acc = static_cast<typename T::Key*>(keys);
    const bool follow = stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>));
    if (rows > 1 && follow && rows_in_own_loops<T>(acc, static_cast<const Item<T>*>(data), rows, n)) return;
    const bool is_square = sizeof(Item<T>) == 1 && n == Transpose<Word<T>>::kWidth;
    if (is_square && rows >= kTransposedRows) return transposed_rows<T>(acc, data, stride, rows, n);
    if (rows < kVectorRows || n <= 1 || n >= kLongVectorRowBytes / sizeof(Item<T>)) {
        for (std::size_t r = 0; r < rows; ++r) {
            const auto* row = at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
            acc[r] = highest(acc[r], highest_of<T>(row, n));
        }
    } else if (n < V::kLanes) {
        Pieces<V>::with(n, [&](auto piece) {
            many_rows<T>(acc, data, stride, rows, n, [piece](const Item<T>* row) {
                return T::keys(piece.load(row, V::splat(T::bits(T::kLowestKey))));
            });
        });
    } else if (n == V::kLanes) {
        many_rows<T>(acc, data, stride, rows, n, [](const Item<T>* row) { return T::keys(V::load(row)); });
    } else if (n <= 2 * V::kLanes) {
        many_rows<T>(acc, data, stride, rows, n, [n](const Item<T>* row) { return keys_of_few<T>(row, n); });
    } else {
        many_rows<T>(acc, data, stride, rows, n,
                     [n](const Item<T>* row) { return keys_of<T>(maxima_of_row<T>(row, n).finalize()); });
    }
}

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

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
