// What AVX2 does better than the loops: reductions.
//
// Included by simd_v3.h.

template <class T>
struct Reduction : PlainReduction<T> {};
