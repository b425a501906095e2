#include "simd_float_modes.h"
#include "simd_v3_maxima.h"
// What AVX2 does better than the loops: reductions.
//
// Included by simd_v3.h. Every item is loaded and compared as it is; keys are made of the few maxima that are
// left. Rows and columns of any length take whole vectors, since a tail is a second look at items that were
// seen before: a maximum does not mind.

// ---------------------------------------------------------------------------- one vector to one key

template <class Key>
static inline Key highest_lane(__m256i keys) {
    using Lanes = Lane<Key>;
    keys = Lanes::max(keys, _mm256_permute4x64_epi64(keys, 0x4E));
    keys = Lanes::max(keys, _mm256_shuffle_epi32(keys, 0x4E));
    if constexpr (sizeof(Key) == 8) return static_cast<Key>(_mm_cvtsi128_si64(_mm256_castsi256_si128(keys)));
    if constexpr (sizeof(Key) <= 4) keys = Lanes::max(keys, _mm256_shuffle_epi32(keys, 0xB1));
    if constexpr (sizeof(Key) <= 2) keys = Lanes::max(keys, _mm256_srli_epi32(keys, 16));
    if constexpr (sizeof(Key) == 1) keys = Lanes::max(keys, _mm256_srli_epi16(keys, 8));
    return static_cast<Key>(_mm_cvtsi128_si32(_mm256_castsi256_si128(keys)));
}

// ---------------------------------------------------------------------------- rows

// All n items, of a vector or more, in one vector's lanes. Memory and the second cache give more to four
// streams at once than to one. Ends early with what no other exceeds.
template <class T>
static inline Maxima<T> maxima_of(const Item<T>* items, std::size_t n) {
    constexpr std::size_t kCount = 32 / sizeof(Item<T>), kPair = 2 * kCount, kStep = 4 * kPair;
    constexpr std::size_t kStreamed = kStreamsFromBytes / sizeof(Item<T>);
    constexpr std::size_t kLongest = kStreamMostBytes / sizeof(Item<T>);
    static_assert(kStreamed >= kStep && kLongest >= kPair, "a stream has a step");
    Maxima<T> a(load_vector(items));
    const std::size_t before_line = alignment_peel<T>(items, n) % kCount;
    std::size_t i = before_line > 0 ? before_line : kCount;
    if (n - i >= kStep) {
        Maxima<T> b = a;
        do {
            const bool streams = n - i >= kStreamed;
            std::size_t steps = (n - i) / kStep;
            if (streams && steps > kLongest / kPair) steps = kLongest / kPair;
            const std::size_t apart = streams ? steps * kPair : kPair, step = streams ? kPair : kStep;
            const Item<T>* from = items + i;
            i += steps * kStep;
            while (steps > 0) {
                const std::size_t turn = steps > kStepsPerLook ? kStepsPerLook : steps;
                for (std::size_t k = 0; k < turn; ++k, from += step) {
                    const Item<T>*second = from + apart, *third = second + apart, *fourth = third + apart;
                    a.take(load_vector(from), load_vector(from + kCount));
                    b.take(load_vector(second), load_vector(second + kCount));
                    a.take(load_vector(third), load_vector(third + kCount));
                    b.take(load_vector(fourth), load_vector(fourth + kCount));
                }
                steps -= turn;
                Maxima<T> both = a;
                both.take(b);
                if (both.is_saturated()) return both;
            }
        } while (n - i >= kStep);
        a.take(b);
    }
    for (; n - i >= kCount; i += kCount) a.take(load_vector(items + i));
    if (i < n) a.take(load_vector(items + n - kCount));
    return a;
}

// The keys of a few items, in one vector's lanes: integers throughout, whatever the processor's modes are.
template <class T>
static inline __m256i keys_of_few(const Item<T>* items, std::size_t n) {
    using Keys = Lane<typename T::Key>;
    constexpr std::size_t kCount = Keys::kCount;
    if (n < kCount) return keys_of_items<T>(load_piece(items, n * sizeof(Item<T>)));
    __m256i keys = keys_of_items<T>(load_vector(items + n - kCount));
    for (std::size_t i = 0; n - i > kCount; i += kCount)
        keys = Keys::max(keys, keys_of_items<T>(load_vector(items + i)));
    return keys;
}

// Vectors of keys of at most 32 bits as vectors of 32-bit lanes, each the maximum of the lanes it came from.
template <class Key>
static inline __m256i in_wide_lanes(__m256i keys) {
    if constexpr (sizeof(Key) >= 4) {
        return keys;
    } else {
        constexpr int kBits = 8 * sizeof(Key);
        if constexpr (sizeof(Key) == 1) {  // first to the top byte of each 16 bits
            keys = Lane<Key>::max(keys, _mm256_slli_epi16(keys, kBits));
            keys = std::is_signed_v<Key> ? _mm256_srai_epi16(keys, kBits) : _mm256_srli_epi16(keys, kBits);
            return in_wide_lanes<std::conditional_t<std::is_signed_v<Key>, std::int16_t, std::uint16_t>>(
                keys);
        }
        keys = Lane<Key>::max(keys, _mm256_slli_epi32(keys, kBits));
        return std::is_signed_v<Key> ? _mm256_srai_epi32(keys, kBits) : _mm256_srli_epi32(keys, kBits);
    }
}

// As many vectors as a vector has lanes become one: lane r has the highest lane of vector r.
template <class Key>
static inline __m256i highest_lanes(__m256i* v) {
    using Lanes = Lane<Key>;
    std::size_t count = Lanes::kCount / 2;
    if constexpr (sizeof(Key) == 4) {
        for (std::size_t k = 0; k < count; ++k)
            v[k] = Lanes::max(_mm256_unpacklo_epi32(v[2 * k], v[2 * k + 1]),
                              _mm256_unpackhi_epi32(v[2 * k], v[2 * k + 1]));
        count /= 2;
    }
    for (std::size_t k = 0; k < count; ++k)
        v[k] = Lanes::max(_mm256_unpacklo_epi64(v[2 * k], v[2 * k + 1]),
                          _mm256_unpackhi_epi64(v[2 * k], v[2 * k + 1]));
    return Lanes::max(_mm256_permute2x128_si256(v[0], v[1], 0x20),
                      _mm256_permute2x128_si256(v[0], v[1], 0x31));
}

// keys_of_row(row): the keys of a row's items, in one vector's lanes.
template <class T, class KeysOfRow>
static inline void many_rows(typename T::Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                             std::size_t n, const KeysOfRow& keys_of_row) {
    using Key = typename T::Key;
    using Narrow = std::conditional_t<std::is_signed_v<Key>, std::int32_t, std::uint32_t>;
    using Wide = std::conditional_t<(sizeof(Key) < 4), Narrow, Key>;
    constexpr std::size_t kRows = Lane<Wide>::kCount, kShortRowBytes = 32, kAheadBytes = 2048;
    const std::size_t bytes = n * sizeof(Item<T>);
    const auto ahead = static_cast<std::ptrdiff_t>(kAheadBytes / bytes) * stride;
    auto row_at = [&](std::size_t r) { return at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride); };
    for (std::size_t r = 0; r < rows; r += kRows) {
        const std::size_t m = rows - r < kRows ? rows - r : kRows;
        __m256i keys[kRows];
        if (bytes <= kShortRowBytes) prefetch(at<char>(row_at(r), ahead), kRows * bytes);
        if (m == kRows) {
#pragma GCC unroll 8
            for (std::size_t k = 0; k < kRows; ++k) keys[k] = in_wide_lanes<Key>(keys_of_row(row_at(r + k)));
        } else {
            for (std::size_t k = 0; k < kRows; ++k)
                keys[k] = k < m ? in_wide_lanes<Key>(keys_of_row(row_at(r + k))) : keys[0];
        }
        alignas(32) Wide found[kRows];
        store_vector(found, highest_lanes<Wide>(keys));
        for (std::size_t k = 0; k < m; ++k) acc[r + k] = highest(acc[r + k], static_cast<Key>(found[k]));
    }
}

// ---------------------------------------------------------------------------- columns

// The maxima of one vector's lanes over `count` rows.
template <class T, std::size_t count, class Load>
static inline __m256i keys_of_rows(const Load& load) {
    if constexpr (count == 1) {
        return keys_of_items<T>(load(0));
    } else {
        Maxima<T> maxima(load(0), load(1));
        for (std::size_t k = 2; k < count; k += 2) maxima.take(load(k), load(k + 1));
        return keys_of(maxima);
    }
}

// keys[j] = max(keys[j], element j of `count` rows at once). `calls`: for the rows that are `next` bytes on.
template <class T, std::size_t count, bool calls>
static inline void few_rows(typename T::Key* acc, const Item<T>* const* row, std::ptrdiff_t next,
                            std::size_t n) {
    using Keys = Lane<typename T::Key>;
    constexpr std::size_t kCount = Keys::kCount;
    if (n < kCount) {
        const std::size_t bytes = n * sizeof(Item<T>);
        const __m256i keys = keys_of_rows<T, count>([&](std::size_t k) { return load_piece(row[k], bytes); });
        return store_piece(acc, bytes, Keys::max(load_piece(acc, bytes), keys));
    }
    auto whole = [&](std::size_t j) {
        const __m256i keys = keys_of_rows<T, count>([&](std::size_t k) { return load_vector(row[k] + j); });
        store_vector(acc + j, Keys::max(load_vector(acc + j), keys));
    };
    std::size_t j = 0;
    for (; n - j >= 2 * kCount; j += 2 * kCount) {
        if constexpr (calls)
            for (std::size_t k = 0; k < count; ++k) __builtin_prefetch(at<char>(row[k] + j, next));
        whole(j);
        whole(j + kCount);
    }
    for (; n - j >= kCount; j += kCount) whole(j);
    if (j < n) whole(n - kCount);
}

// ---------------------------------------------------------------------------- the kernels

template <class T>
struct Reduction : PlainReduction<T> {
    using Key = typename T::Key;

    static Key highest_of(const Item<T>* items, std::size_t n) {
        constexpr std::size_t kFew = kFewVectorBytes / sizeof(Item<T>);
        if (n == 0) return T::kLowestKey;
        if (n <= kFew) return highest_lane<Key>(keys_of_few<T>(items, n));
        if (needs_plain_loops<T>()) return PlainReduction<T>::highest_of(items, n);
        return highest_lane<Key>(keys_of(maxima_of<T>(items, n)));
    }

    static void rows(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
        constexpr std::size_t kLongRow = kLongVectorRowBytes / sizeof(Item<T>), kCount = 32 / sizeof(Item<T>);
        const bool follow = stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>));
        const bool is_transposed = sizeof(Item<T>) == 1 && n == Transpose<Word<T>>::kWidth;
        const bool is_short = follow && (n <= 3 || (sizeof(Item<T>) <= 2 && (n == 4 || n == 8)));
        if (rows < 4 || n == 0 || is_transposed || is_short || n >= kLongRow || needs_plain_loops<T>())
            return PlainReduction<T>::rows(keys, data, stride, rows, n);
        auto* acc = static_cast<Key*>(keys);
        if (n == kCount)
            return many_rows<T>(acc, data, stride, rows, n,
                                [](const Item<T>* row) { return keys_of_items<T>(load_vector(row)); });
        if (n <= 2 * kCount)
            return many_rows<T>(acc, data, stride, rows, n,
                                [n](const Item<T>* row) { return keys_of_few<T>(row, n); });
        many_rows<T>(acc, data, stride, rows, n, [n](const Item<T>* row) {
            constexpr std::size_t kPair = 2 * kCount;
            Maxima<T> maxima(load_vector(row), load_vector(row + kCount));
            std::size_t i = kPair;
            for (; n - i >= kPair; i += kPair)
                maxima.take(load_vector(row + i), load_vector(row + i + kCount));
            if (n - i > kCount) maxima.take(load_vector(row + i));
            if (n > i) maxima.take(load_vector(row + n - kCount));
            return keys_of(maxima);
        });
    }

    static void columns(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows,
                        std::size_t n) {
        if (n == 0 || needs_plain_loops<T>()) return PlainReduction<T>::columns(keys, data, stride, rows, n);
        constexpr std::size_t kMost = 8;
        constexpr std::ptrdiff_t kCalledStride = 2048;
        auto* acc = static_cast<Key*>(keys);
        const Item<T>* row[kMost];
        const auto turn = static_cast<std::ptrdiff_t>(kMost) * stride;
        // Longer rows are as many streams, which the processor sees by itself.
        const bool calls = -kCalledStride < stride && stride < kCalledStride;
        while (rows > 0) {
            // Fewer than a turn takes: the last of them again.
            for (std::size_t k = 0; k < kMost; ++k)
                row[k] = at<Item<T>>(data, static_cast<std::ptrdiff_t>(k < rows ? k : rows - 1) * stride);
            if (rows > 4 && calls)
                few_rows<T, 8, true>(acc, row, turn, n);
            else if (rows > 4)
                few_rows<T, 8, false>(acc, row, turn, n);
            else if (rows > 1)
                few_rows<T, 4, false>(acc, row, turn, n);
            else
                few_rows<T, 1, false>(acc, row, turn, n);
            data = at<char>(data, turn);
            rows -= rows < kMost ? rows : kMost;
        }
    }
};
