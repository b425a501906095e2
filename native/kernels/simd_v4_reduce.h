#include "simd_float_modes.h"
#include "simd_v4_maxima.h"
// What AVX-512 does better than the loops: reductions with masked tails.
//
// Included by simd_v4.h. Every item is loaded and compared as it is; keys are made of the few maxima that are
// left. Rows and columns of any length take whole vectors, since a tail is a mask or a second look at items
// that were seen before: a maximum does not mind.

// ---------------------------------------------------------------------------- one vector to one key

template <class Key>
static inline Key highest_lane(__m512i keys) {
    using Lanes = Lane<Key>;
    keys = Lanes::max(keys, _mm512_shuffle_i64x2(keys, keys, 0x4E));
    keys = Lanes::max(keys, _mm512_shuffle_i64x2(keys, keys, 0xB1));
    keys = Lanes::max(keys, _mm512_shuffle_epi32(keys, _MM_PERM_BADC));
    if constexpr (sizeof(Key) == 8) return static_cast<Key>(_mm_cvtsi128_si64(_mm512_castsi512_si128(keys)));
    if constexpr (sizeof(Key) <= 4) keys = Lanes::max(keys, _mm512_shuffle_epi32(keys, _MM_PERM_CDAB));
    if constexpr (sizeof(Key) <= 2) keys = Lanes::max(keys, _mm512_rol_epi32(keys, 16));
    if constexpr (sizeof(Key) == 1) keys = Lanes::max(keys, _mm512_rol_epi32(keys, 8));
    return static_cast<Key>(_mm_cvtsi128_si32(_mm512_castsi512_si128(keys)));
}

// ---------------------------------------------------------------------------- rows

template <class T>
static inline __m512i load_items(const Item<T>* from) {
    return _mm512_loadu_si512(from);
}
// The first `count` items, fewer than a vector; the lowest value in the other lanes.
template <class T>
static inline __m512i load_items(const Item<T>* from, std::size_t count) {
    using Lanes = Lane<typename T::Bits>;
    const auto mask = static_cast<typename Lanes::Mask>((std::uint64_t{1} << count) - 1);
    return Lanes::load(Lanes::splat(T::bits(T::kLowestKey)), mask, from);
}

// All n items, in one vector's lanes. `settles`: whether it is worth a look now and then.
template <class T, bool settles>
static inline Maxima<T> maxima_of(const Item<T>* items, std::size_t n) {
    constexpr std::size_t kCount = 64 / sizeof(Item<T>), kStep = 4 * kCount, kBlock = kStepsPerLook * kStep;
    if (n < kCount) return Maxima<T>(load_items<T>(items, n));
    Maxima<T> a(load_items<T>(items));
    const std::size_t before_line = alignment_peel<T>(items, n);
    std::size_t i = before_line > 0 ? before_line : kCount;
    if (n - i >= kStep) {
        Maxima<T> b = a;
        do {
            std::size_t stop = settles && n - i > kBlock ? i + kBlock : n;
            for (; stop - i >= kStep; i += kStep) {
                a.take(load_items<T>(items + i), load_items<T>(items + i + kCount));
                b.take(load_items<T>(items + i + 2 * kCount), load_items<T>(items + i + 3 * kCount));
            }
            if (settles && (a.is_saturated() || b.is_saturated())) break;
        } while (n - i >= kStep);
        a.take(b);
        if (settles && n - i >= kStep) return a;
    }
    for (; n - i >= kCount; i += kCount) a.take(load_items<T>(items + i));
    if (i < n) a.take(load_items<T>(items + n - kCount));
    return a;
}

// The keys of all n items, in one vector's lanes.
template <class T>
static inline __m512i keys_of(const Item<T>* items, std::size_t n) {
    if constexpr (T::is_float)
        if (n < 64 / sizeof(Item<T>)) return float_keys<T>(load_items<T>(items, n));
    return keys_of(maxima_of<T, false>(items, n));
}

// Vectors of keys of at most 32 bits as vectors of 32-bit lanes, each the maximum of the lanes it came from.
template <class Key>
static inline __m512i in_wide_lanes(__m512i keys) {
    if constexpr (sizeof(Key) >= 4) {
        return keys;
    } else {
        constexpr int kBits = 8 * sizeof(Key);
        if constexpr (sizeof(Key) == 1) {  // first to the top byte of each 16 bits
            keys = Lane<Key>::max(keys, _mm512_slli_epi16(keys, kBits));
            keys = std::is_signed_v<Key> ? _mm512_srai_epi16(keys, kBits) : _mm512_srli_epi16(keys, kBits);
            return in_wide_lanes<std::conditional_t<std::is_signed_v<Key>, std::int16_t, std::uint16_t>>(
                keys);
        }
        const __m512i low = _mm512_slli_epi32(keys, kBits);
        return std::is_signed_v<Key>
                   ? _mm512_max_epi32(_mm512_srai_epi32(low, kBits), _mm512_srai_epi32(keys, kBits))
                   : _mm512_max_epu32(_mm512_srli_epi32(low, kBits), _mm512_srli_epi32(keys, kBits));
    }
}

// As many vectors as a vector has lanes become one: lane r has the highest lane of vector r.
template <class Key>
static inline __m512i highest_lanes(__m512i* v) {
    using Lanes = Lane<Key>;
    std::size_t count = Lanes::kCount;
    if constexpr (sizeof(Key) == 4) {
        for (std::size_t k = 0; k < count / 2; ++k)
            v[k] = Lanes::max(_mm512_unpacklo_epi32(v[2 * k], v[2 * k + 1]),
                              _mm512_unpackhi_epi32(v[2 * k], v[2 * k + 1]));
        count /= 2;
    }
    for (std::size_t k = 0; k < count / 2; ++k)
        v[k] = Lanes::max(_mm512_unpacklo_epi64(v[2 * k], v[2 * k + 1]),
                          _mm512_unpackhi_epi64(v[2 * k], v[2 * k + 1]));
    for (count /= 2; count > 1; count /= 2)
        for (std::size_t k = 0; k < count / 2; ++k)
            v[k] = Lanes::max(_mm512_shuffle_i64x2(v[2 * k], v[2 * k + 1], 0x88),
                              _mm512_shuffle_i64x2(v[2 * k], v[2 * k + 1], 0xDD));
    return v[0];
}

template <class T>
static void many_rows(typename T::Key* acc, const void* data, std::ptrdiff_t stride, std::size_t rows,
                      std::size_t n) {
    using Key = typename T::Key;
    using Narrow = std::conditional_t<std::is_signed_v<Key>, std::int32_t, std::uint32_t>;
    using Wide = std::conditional_t<(sizeof(Key) < 4), Narrow, Key>;
    constexpr std::size_t kRows = Lane<Wide>::kCount, kShortRowBytes = 512;
    for (std::size_t r = 0; r < rows; r += kRows) {
        const std::size_t m = rows - r < kRows ? rows - r : kRows;
        __m512i keys[kRows];
#pragma GCC unroll 16
        for (std::size_t k = 0; k < kRows; ++k) {
            const std::size_t row = r + (k < m ? k : m - 1);
            auto* items = at<Item<T>>(data, static_cast<std::ptrdiff_t>(row) * stride);
            if (n * sizeof(Item<T>) <= kShortRowBytes)
                prefetch(at<char>(items, static_cast<std::ptrdiff_t>(kRows) * stride), n * sizeof(Item<T>));
            keys[k] = in_wide_lanes<Key>(keys_of<T>(items, n));
        }
        alignas(64) Wide found[kRows];
        _mm512_store_si512(found, highest_lanes<Wide>(keys));
        for (std::size_t k = 0; k < m; ++k) acc[r + k] = highest(acc[r + k], static_cast<Key>(found[k]));
    }
}

// ---------------------------------------------------------------------------- columns

// The maxima of one vector's lanes over `count` rows.
template <class T, std::size_t count, class Load>
static inline __m512i keys_of_rows(const Load& load) {
    Maxima<T> maxima(load(0));
    if constexpr (count % 2 == 0) maxima.take(load(1));
    for (std::size_t k = count % 2 == 0 ? 2 : 1; k < count; k += 2) maxima.take(load(k), load(k + 1));
    return keys_of(maxima);
}

// keys[j] = max(keys[j], element j of `count` rows at once), and the next rows are called for. (Whole vectors
// without a mask: what a masked store wrote has to reach the cache before it can be loaded again.)
template <class T, std::size_t count>
static inline void few_rows(typename T::Key* acc, const Item<T>* const* row, std::ptrdiff_t next,
                            std::size_t n) {
    using Keys = Lane<typename T::Key>;
    constexpr std::size_t kCount = Keys::kCount;
    std::size_t j = 0;
    for (; n - j >= kCount; j += kCount) {
        if constexpr (count > 1)
            for (std::size_t k = 0; k < count; ++k) __builtin_prefetch(at<char>(row[k] + j, next));
        const __m512i keys =
            keys_of_rows<T, count>([&](std::size_t k) { return _mm512_loadu_si512(row[k] + j); });
        _mm512_storeu_si512(acc + j, Keys::max(_mm512_loadu_si512(acc + j), keys));
    }
    if (j == n) return;
    const auto mask = static_cast<typename Keys::Mask>((std::uint64_t{1} << (n - j)) - 1);
    const __m512i none = _mm512_setzero_si512();
    const __m512i keys =
        keys_of_rows<T, count>([&](std::size_t k) { return Keys::load(none, mask, row[k] + j); });
    Keys::store(acc + j, mask, Keys::max(Keys::load(none, mask, acc + j), keys));
}

// ---------------------------------------------------------------------------- the kernels

template <class T>
struct Reduction : PlainReduction<T> {
    using Key = typename T::Key;

    static Key highest_of(const Item<T>* items, std::size_t n) {
        if (needs_plain_loops<T>()) return PlainReduction<T>::highest_of(items, n);
        return n == 0 ? T::kLowestKey : highest_lane<Key>(keys_of(maxima_of<T, true>(items, n)));
    }

    static void rows(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n) {
        constexpr std::size_t kLongRow = kLongVectorRowBytes / sizeof(Item<T>);
        const bool follow = stride == static_cast<std::ptrdiff_t>(n * sizeof(Item<T>));
        const bool is_transposed = sizeof(Item<T>) == 1 && n == Transpose<Word<T>>::kWidth;
        const bool is_short = is_transposed || (follow && (n == 1 || n == 2 || n == 3 || n == 4 || n == 8));
        if (rows < 4 || n == 0 || is_short || n >= kLongRow || needs_plain_loops<T>())
            return PlainReduction<T>::rows(keys, data, stride, rows, n);
        many_rows<T>(static_cast<Key*>(keys), data, stride, rows, n);
    }

    static void columns(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows,
                        std::size_t n) {
        if (needs_plain_loops<T>()) return PlainReduction<T>::columns(keys, data, stride, rows, n);
        constexpr std::size_t kMost = 8;
        auto* acc = static_cast<Key*>(keys);
        const Item<T>* row[kMost];
        const auto turn = static_cast<std::ptrdiff_t>(kMost) * stride;
        while (rows > 0) {
            // Fewer than a turn takes: the last of them again.
            for (std::size_t k = 0; k < kMost; ++k)
                row[k] = at<Item<T>>(data, static_cast<std::ptrdiff_t>(k < rows ? k : rows - 1) * stride);
            if (rows > 4) {
                few_rows<T, 8>(acc, row, turn, n);
            } else if (rows > 1) {
                few_rows<T, 4>(acc, row, turn, n);
            } else {
                few_rows<T, 1>(acc, row, turn, n);
            }
            data = at<char>(data, turn);
            rows -= rows < kMost ? rows : kMost;
        }
    }
};
