#include "simd_float_modes.h"
#include "simd_v4_maxima.h"
// What AVX-512 does better than the loops: Max with masked heads and tails, and without keys.
//
// Included by simd_v4.h.

// out[i] = found(i, mask) in vectors that begin where the output's cache lines do; `mask` has the items of
// the first and the last one.
template <class T, class Found>
static inline void in_vectors(Item<T>* out, std::size_t n, const Found& found) {
    using Lanes = Lane<typename T::Bits>;
    constexpr std::size_t kCount = Lanes::kCount;
    auto masked = [&](std::size_t i, std::size_t count) {
        const auto mask = static_cast<typename Lanes::Mask>((std::uint64_t{1} << count) - 1);
        auto load = [&](const Item<T>* from) { return Lanes::load(_mm512_setzero_si512(), mask, from + i); };
        Lanes::store(out + i, mask, found(load));
    };
    std::size_t i = alignment_peel<T>(out, n);
    if (i > 0) masked(0, i);
    auto whole = [&](std::size_t at) {
        return found([&](const Item<T>* from) { return _mm512_loadu_si512(from + at); });
    };
    for (; n - i >= 2 * kCount; i += 2 * kCount) {
        const __m512i first = whole(i), second = whole(i + kCount);
        _mm512_storeu_si512(out + i, first);
        _mm512_storeu_si512(out + i + kCount, second);
    }
    for (; n - i >= kCount; i += kCount) _mm512_storeu_si512(out + i, whole(i));
    if (i < n) masked(i, n - i);
}

template <class T, int... I>
static void fold_in_vectors(void* out, std::ptrdiff_t out_stride, const void* const* in,
                            const std::ptrdiff_t* strides, std::size_t rows, std::size_t n) {
    if (needs_plain_loops<T>()) return fold<T, I...>(out, out_stride, in, strides, rows, n);
    constexpr std::size_t kInputs = sizeof...(I), kFirst = kInputs % 2 == 0 ? 2 : 1;
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        const Item<T>* const from[] = {at<Item<T>>(in[I], r * strides[I])...};
        in_vectors<T>(to_row<T>(out, r * out_stride), n, [&](const auto& load) {
            Maxima<T> maxima(load(from[0]));
            if constexpr (kFirst == 2) maxima.take(load(from[1]));
            for (std::size_t k = kFirst; k < kInputs; k += 2) maxima.take(load(from[k]), load(from[k + 1]));
            return maxima.bits();
        });
    }
}

template <class T>
static void fold_rows_in_vectors(void* out, std::ptrdiff_t out_stride, const void* in,
                                 std::ptrdiff_t in_stride, const void* items, std::ptrdiff_t item_stride,
                                 std::size_t rows, std::size_t n) {
    if (needs_plain_loops<T>())
        return fold_rows_with<T>(out, out_stride, in, in_stride, items, item_stride, rows, n);
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        const Item<T>* from = at<Item<T>>(in, r * in_stride);
        const __m512i item = Lane<typename T::Bits>::splat(at<Item<T>>(items, r * item_stride)->value);
        in_vectors<T>(to_row<T>(out, r * out_stride), n, [&](const auto& load) {
            Maxima<T> maxima(item);
            maxima.take(load(from));
            return maxima.bits();
        });
    }
}

template <class T>
struct Folds {
    template <int... I>
    static constexpr auto of = fold_in_vectors<T, I...>;
    static constexpr auto rows_with = fold_rows_in_vectors<T>;
};
