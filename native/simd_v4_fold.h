// What AVX-512 does better than the loops: the maximum of two float32 or float64 arrays.
//
// Included by simd_v4.h. VRANGE's maximum puts -0 below +0 and lets a number win over a NaN, so that NaNs are
// put back by a comparison: three instructions in place of six.

// VRANGE obeys the processor's modes: it would flush subnormals under "denormals are zero", and trap on a
// signalling NaN if somebody unmasked that. In such a thread the integer loops do the work. (In others a
// signalling NaN sets the sticky "invalid" flag, as NumPy's own maximum does.)
static inline bool float_modes_are_plain() {
    constexpr unsigned kDenormalsAreZero = 0x0040, kMasks = 0x1F80;
    return (_mm_getcsr() & (kDenormalsAreZero | kMasks)) == kMasks;
}

struct Lanes32 {
    using Vector = __m512;
    static constexpr std::size_t kCount = 16;
    static Vector load(const void* from) { return _mm512_loadu_ps(from); }
    static Vector load(const void* from, unsigned mask) {
        return _mm512_maskz_loadu_ps(static_cast<__mmask16>(mask), from);
    }
    static void store(void* to, Vector v) { _mm512_storeu_ps(to, v); }
    static void store(void* to, unsigned mask, Vector v) {
        _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), v);
    }
    static Vector max(Vector a, Vector b, Vector nan) {
        return _mm512_mask_mov_ps(_mm512_range_ps(a, b, 5), _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q), nan);
    }
    static Vector nan() { return _mm512_castsi512_ps(_mm512_set1_epi32(Float32::kNaN)); }
};

struct Lanes64 {
    using Vector = __m512d;
    static constexpr std::size_t kCount = 8;
    static Vector load(const void* from) { return _mm512_loadu_pd(from); }
    static Vector load(const void* from, unsigned mask) {
        return _mm512_maskz_loadu_pd(static_cast<__mmask8>(mask), from);
    }
    static void store(void* to, Vector v) { _mm512_storeu_pd(to, v); }
    static void store(void* to, unsigned mask, Vector v) {
        _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), v);
    }
    static Vector max(Vector a, Vector b, Vector nan) {
        return _mm512_mask_mov_pd(_mm512_range_pd(a, b, 5), _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q), nan);
    }
    static Vector nan() { return _mm512_castsi512_pd(_mm512_set1_epi64(Float64::kNaN)); }
};

template <class T, class Lanes>
static void fold_pair_by_range(void* out, const void* const* in, std::size_t n) {
    if (!float_modes_are_plain()) return fold<T, 0, 1>(out, in, n);
    constexpr std::size_t kStep = Lanes::kCount;
    const auto nan = Lanes::nan();
    auto* to = static_cast<Item<T>*>(out);
    auto* a = static_cast<const Item<T>*>(in[0]);
    auto* b = static_cast<const Item<T>*>(in[1]);
    auto masked = [&](std::size_t i, std::size_t count) {
        unsigned mask = (1U << count) - 1;
        Lanes::store(to + i, mask, Lanes::max(Lanes::load(a + i, mask), Lanes::load(b + i, mask), nan));
    };
    std::size_t i = items_before_line<T>(out, n);
    if (i > 0) masked(0, i);
    for (; i + 2 * kStep <= n; i += 2 * kStep) {
        auto first = Lanes::max(Lanes::load(a + i), Lanes::load(b + i), nan);
        auto second = Lanes::max(Lanes::load(a + i + kStep), Lanes::load(b + i + kStep), nan);
        Lanes::store(to + i, first);
        Lanes::store(to + i + kStep, second);
    }
    for (; i < n; i += kStep) masked(i, n - i < kStep ? n - i : kStep);
}

template <>
constexpr auto kFoldTwo<Float32> = fold_pair_by_range<Float32, Lanes32>;
template <>
constexpr auto kFoldTwo<Float64> = fold_pair_by_range<Float64, Lanes64>;
