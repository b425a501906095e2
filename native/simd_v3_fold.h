// What AVX2 does better than the loops: Max.
//
// Included by simd_v3.h.

template <class T>
struct Folds {
    template <int... I>
    static constexpr auto of = fold<T, I...>;
    static constexpr auto rows_with = fold_rows_with<T>;
};
