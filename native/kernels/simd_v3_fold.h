#include "simd_float_modes.h"
#include "simd_v3_maxima.h"
// What AVX2 does better than the loops: Max, without keys and with tails that overlap.
//
// Included by simd_v3.h.

// out[i] = found(i) in vectors that begin where the output's cache lines do. The first and the last may
// overlap others: if the output is one of the inputs, the maximum is taken again with what it already has.
template <class T, class Found>
static inline void in_vectors(Item<T>* out, std::size_t n, const Found& found) {
    constexpr std::size_t kCount = 32 / sizeof(Item<T>);
    if (n < kCount) {
        const std::size_t bytes = n * sizeof(Item<T>);
        if (n > 0)
            store_piece(out, bytes, found([&](const Item<T>* from) { return load_piece(from, bytes); }));
        return;
    }
    auto whole = [&](std::size_t at) {
        return found([&](const Item<T>* from) { return load_vector(from + at); });
    };
    std::size_t i = alignment_peel<T>(out, n) % kCount;
    if (i > 0) store_vector(out, whole(0));
    for (; n - i >= 2 * kCount; i += 2 * kCount) {
        const __m256i first = whole(i), second = whole(i + kCount);
        store_vector(out + i, first);
        store_vector(out + i + kCount, second);
    }
    for (; n - i >= kCount; i += kCount) store_vector(out + i, whole(i));
    if (i < n) store_vector(out + n - kCount, whole(n - kCount));
}

// Two vectors' maxima, in fewer steps than Maxima takes for more.
template <class T>
static inline __m256i highest_of_two(__m256i x, __m256i y) {
    if constexpr (T::is_float && sizeof(Item<T>) >= 4) {
        // Of two zeros VMAXPS gives the second: both ways, and what they have in common.
        using F = Floats<T>;
        return F::select(F::unordered(x, y), Lane<typename T::Bits>::splat(T::kNaN),
                         _mm256_and_si256(F::max(x, y), F::max(y, x)));
    } else {
        Maxima<T> maxima(x);
        maxima.take(y);
        return maxima.bits();
    }
}

template <class T, int... I>
static void fold_in_vectors(void* out, std::ptrdiff_t out_stride, const void* const* in,
                            const std::ptrdiff_t* strides, std::size_t rows, std::size_t n) {
    if (needs_plain_loops<T>()) return fold<T, I...>(out, out_stride, in, strides, rows, n);
    constexpr std::size_t kInputs = sizeof...(I);
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        const Item<T>* const from[] = {at<Item<T>>(in[I], r * strides[I])...};
        in_vectors<T>(to_row<T>(out, r * out_stride), n, [&](const auto& load) {
            if constexpr (kInputs == 2) return highest_of_two<T>(load(from[0]), load(from[1]));
            if constexpr (kInputs == 1) return Maxima<T>(load(from[0])).bits();
            Maxima<T> maxima(load(from[0]), load(from[1 % kInputs]));
            for (std::size_t k = 2; k + 1 < kInputs; k += 2) maxima.take(load(from[k]), load(from[k + 1]));
            if constexpr (kInputs % 2 == 1) maxima.take(load(from[kInputs - 1]));
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
        const __m256i item = Lane<typename T::Bits>::splat(at<Item<T>>(items, r * item_stride)->value);
        in_vectors<T>(to_row<T>(out, r * out_stride), n,
                      [&](const auto& load) { return highest_of_two<T>(item, load(from)); });
    }
}

template <class T>
struct Folds {
    template <int... I>
    static constexpr auto of = fold_in_vectors<T, I...>;
    static constexpr auto rows_with = fold_rows_in_vectors<T>;
};
