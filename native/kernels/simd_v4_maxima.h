#pragma once
// Maxima in the type's own instructions: lanes by width and sign, and what is kept of the vectors that were
// seen.
//
// Included by simd_v4.h.

template <std::size_t itemsize>
struct Width;
#define MAXOPS_WIDTH(bytes, bits, MaskOf)                                  \
    template <>                                                            \
    struct Width<bytes> {                                                  \
        using Mask = MaskOf;                                               \
        static constexpr std::size_t kCount = 64 / (bytes);                \
        static __m512i load(__m512i others, Mask mask, const void* from) { \
            return _mm512_mask_loadu_epi##bits(others, mask, from);        \
        }                                                                  \
        static void store(void* to, Mask mask, __m512i v) {                \
            _mm512_mask_storeu_epi##bits(to, mask, v);                     \
        }                                                                  \
    };
MAXOPS_WIDTH(1, 8, __mmask64)
MAXOPS_WIDTH(2, 16, __mmask32)
MAXOPS_WIDTH(4, 32, __mmask16)
MAXOPS_WIDTH(8, 64, __mmask8)
#undef MAXOPS_WIDTH

// Integers of one width and sign.
template <class Int>
struct Lane;
#define MAXOPS_LANE(Int, name, bits)                                                   \
    template <>                                                                        \
    struct Lane<Int> : Width<sizeof(Int)> {                                            \
        static __m512i splat(Int value) {                                              \
            return _mm512_set1_epi##bits(static_cast<std::make_signed_t<Int>>(value)); \
        }                                                                              \
        static __m512i max(__m512i a, __m512i b) {                                     \
            return _mm512_max_##name(a, b);                                            \
        }                                                                              \
        static __m512i min(__m512i a, __m512i b) {                                     \
            return _mm512_min_##name(a, b);                                            \
        }                                                                              \
        static Mask less(__m512i a, __m512i b) {                                       \
            return _mm512_cmplt_##name##_mask(a, b);                                   \
        }                                                                              \
        static Mask equal(__m512i a, __m512i b) {                                      \
            return _mm512_cmpeq_##name##_mask(a, b);                                   \
        }                                                                              \
        static __m512i select(Mask mask, __m512i yes, __m512i no) {                    \
            return _mm512_mask_mov_epi##bits(no, mask, yes);                           \
        }                                                                              \
        static __m512i add(__m512i a, __m512i b) {                                     \
            return _mm512_add_epi##bits(a, b);                                         \
        }                                                                              \
        static __m512i sub(__m512i a, __m512i b) {                                     \
            return _mm512_sub_epi##bits(a, b);                                         \
        }                                                                              \
    };
MAXOPS_LANE(std::int8_t, epi8, 8)
MAXOPS_LANE(std::int16_t, epi16, 16)
MAXOPS_LANE(std::int32_t, epi32, 32)
MAXOPS_LANE(std::int64_t, epi64, 64)
MAXOPS_LANE(std::uint8_t, epu8, 8)
MAXOPS_LANE(std::uint16_t, epu16, 16)
MAXOPS_LANE(std::uint32_t, epu32, 32)
MAXOPS_LANE(std::uint64_t, epu64, 64)
#undef MAXOPS_LANE

// Keys of floats given as bits; a NaN's is above that of +Inf.
template <class T>
static inline __m512i float_keys(__m512i bits) {
    using Keys = Lane<typename T::Key>;
    const __m512i positive = Keys::add(bits, Keys::splat(static_cast<typename T::Key>(T::kPositiveStep)));
    const __m512i negative = Keys::sub(Keys::splat(static_cast<typename T::Key>(T::kNegativeBase)), bits);
    const auto is_negative = Keys::less(bits, _mm512_setzero_si512());
    return Keys::select(is_negative, negative, positive);
}

// The maxima of a vector's lanes over all that was taken.
template <class T>
struct Maxima {
    using Lanes = Lane<typename T::Bits>;
    __m512i high;

    explicit Maxima(__m512i x) : high(seen(x)) {}
    void take(__m512i x) { high = Lanes::max(high, seen(x)); }
    void take(__m512i x, __m512i y) { high = Lanes::max(high, seen(Lanes::max(x, y))); }
    void take(const Maxima& other) { high = Lanes::max(high, other.high); }
    bool is_saturated() const { return Lanes::equal(high, Lanes::splat(T::bits(T::kHighestKey))) != 0; }
    __m512i bits() const { return high; }

private:
    static __m512i seen(__m512i x) {
        return std::is_same_v<T, BoolOrder> ? Lanes::min(x, Lanes::splat(1)) : x;
    }
};

// Two bytes: VRANGE knows none. The highest and the lowest as signed integers and the highest as unsigned
// ones tell all (see fold_pair).
template <class T>
struct HalfMaxima {
    using Lanes = Lane<std::int16_t>;
    using Unsigned = Lane<std::uint16_t>;
    __m512i high, low, top;

    explicit HalfMaxima(__m512i x) : high(x), low(x), top(x) {}
    void take(__m512i x) {
        high = Lanes::max(high, x);
        low = Lanes::min(low, x);
        top = Unsigned::max(top, x);
    }
    void take(__m512i x, __m512i y) {
        take(x);
        take(y);
    }
    void take(const HalfMaxima& other) {
        high = Lanes::max(high, other.high);
        low = Lanes::min(low, other.low);
        top = Unsigned::max(top, other.top);
    }
    bool is_saturated() const { return nan() != 0; }
    __m512i bits() const {
        const auto all_negative = Lanes::less(high, _mm512_setzero_si512());
        return Lanes::select(nan(), Lanes::splat(T::kNaN), Lanes::select(all_negative, low, high));
    }

private:
    __mmask32 nan() const {
        return Unsigned::less(Unsigned::splat(T::kMinusInfinity), top) |
               Lanes::less(Lanes::splat(static_cast<std::int16_t>(T::kInfinity)), high);
    }
};
template <>
struct Maxima<Float16> : HalfMaxima<Float16> {
    using HalfMaxima::HalfMaxima;
};
template <>
struct Maxima<BFloat16> : HalfMaxima<BFloat16> {
    using HalfMaxima::HalfMaxima;
};

// VRANGE is the only maximum of floats that tells -0 from +0. It lets a number win over a NaN: those are
// noted beside it.
template <>
struct Maxima<Float32> {
    using Lanes = Lane<std::int32_t>;
    __m512 high;
    __mmask16 nan;

    explicit Maxima(__m512i x)
        : high(_mm512_castsi512_ps(x)), nan(_mm512_cmp_ps_mask(high, high, _CMP_UNORD_Q)) {}
    void take(__m512i x) { take(x, x); }
    void take(__m512i x, __m512i y) {
        const __m512 a = _mm512_castsi512_ps(x), b = _mm512_castsi512_ps(y);
        high = _mm512_range_ps(high, _mm512_range_ps(a, b, 5), 5);
        nan |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q);
    }
    void take(const Maxima& other) {
        high = _mm512_range_ps(high, other.high, 5);
        nan |= other.nan;
    }
    bool is_saturated() const { return nan != 0; }
    __m512i bits() const {
        return Lanes::select(nan, Lanes::splat(Float32::kNaN), _mm512_castps_si512(high));
    }
};
template <>
struct Maxima<Float64> {
    using Lanes = Lane<std::int64_t>;
    __m512d high;
    __mmask8 nan;

    explicit Maxima(__m512i x)
        : high(_mm512_castsi512_pd(x)), nan(_mm512_cmp_pd_mask(high, high, _CMP_UNORD_Q)) {}
    void take(__m512i x) { take(x, x); }
    void take(__m512i x, __m512i y) {
        const __m512d a = _mm512_castsi512_pd(x), b = _mm512_castsi512_pd(y);
        high = _mm512_range_pd(high, _mm512_range_pd(a, b, 5), 5);
        nan |= _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q);
    }
    void take(const Maxima& other) {
        high = _mm512_range_pd(high, other.high, 5);
        nan |= other.nan;
    }
    bool is_saturated() const { return nan != 0; }
    __m512i bits() const {
        return Lanes::select(nan, Lanes::splat(Float64::kNaN), _mm512_castpd_si512(high));
    }
};

template <class T>
static inline __m512i keys_of(const Maxima<T>& maxima) {
    if constexpr (T::is_float)
        return float_keys<T>(maxima.bits());
    else
        return maxima.bits();
}
