#pragma once
// Maxima in AVX2: lanes by width and sign, pieces shorter than a vector, and what is kept of the vectors that
// were seen.
//
// Included by simd_v3.h.

// Integers of one width and sign. A mask is a vector whose lanes are all ones or all zeros.
template <class Int>
struct Lane;
#define MAXOPS_LANE(Int, name, bits, set1)                                          \
    template <>                                                                     \
    struct Lane<Int> {                                                              \
        static constexpr std::size_t kCount = 32 / sizeof(Int);                     \
        static __m256i splat(Int value) {                                           \
            return _mm256_set1_##set1(static_cast<std::make_signed_t<Int>>(value)); \
        }                                                                           \
        static __m256i max(__m256i a, __m256i b) {                                  \
            return _mm256_max_##name(a, b);                                         \
        }                                                                           \
        static __m256i min(__m256i a, __m256i b) {                                  \
            return _mm256_min_##name(a, b);                                         \
        }                                                                           \
        static __m256i equal(__m256i a, __m256i b) {                                \
            return _mm256_cmpeq_epi##bits(a, b);                                    \
        }                                                                           \
        static __m256i add(__m256i a, __m256i b) {                                  \
            return _mm256_add_epi##bits(a, b);                                      \
        }                                                                           \
        static __m256i sub(__m256i a, __m256i b) {                                  \
            return _mm256_sub_epi##bits(a, b);                                      \
        }                                                                           \
    };
MAXOPS_LANE(std::int8_t, epi8, 8, epi8)
MAXOPS_LANE(std::int16_t, epi16, 16, epi16)
MAXOPS_LANE(std::int32_t, epi32, 32, epi32)
MAXOPS_LANE(std::uint8_t, epu8, 8, epi8)
MAXOPS_LANE(std::uint16_t, epu16, 16, epi16)
MAXOPS_LANE(std::uint32_t, epu32, 32, epi32)
#undef MAXOPS_LANE

// By the mask's highest bits: of each byte, or of each lane of four or eight.
static inline __m256i select(__m256i mask, __m256i yes, __m256i no) {
    return _mm256_blendv_epi8(no, yes, mask);
}
static inline __m256i select_words(__m256i mask, __m256i yes, __m256i no) {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), _mm256_castsi256_ps(mask)));
}
static inline __m256i select_longs(__m256i mask, __m256i yes, __m256i no) {
    return _mm256_castpd_si256(
        _mm256_blendv_pd(_mm256_castsi256_pd(no), _mm256_castsi256_pd(yes), _mm256_castsi256_pd(mask)));
}

// AVX2 has no maximum of eight bytes, and compares them as signed alone.
template <class Int>
struct LongLane {
    static constexpr std::size_t kCount = 4;
    static __m256i splat(Int value) { return _mm256_set1_epi64x(static_cast<std::int64_t>(value)); }
    static __m256i max(__m256i a, __m256i b) { return select_longs(less(a, b), b, a); }
    static __m256i equal(__m256i a, __m256i b) { return _mm256_cmpeq_epi64(a, b); }
    static __m256i add(__m256i a, __m256i b) { return _mm256_add_epi64(a, b); }
    static __m256i sub(__m256i a, __m256i b) { return _mm256_sub_epi64(a, b); }

private:
    static __m256i less(__m256i a, __m256i b) {
        if constexpr (std::is_signed_v<Int>) return _mm256_cmpgt_epi64(b, a);
        const __m256i sign = _mm256_set1_epi64x(std::numeric_limits<std::int64_t>::min());
        return _mm256_cmpgt_epi64(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
    }
};
template <>
struct Lane<std::int64_t> : LongLane<std::int64_t> {};
template <>
struct Lane<std::uint64_t> : LongLane<std::uint64_t> {};

static inline __m256i load_vector(const void* from) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
static inline void store_vector(void* to, __m256i v) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), v);
}

// ---------------------------------------------------------------------------- less than a vector

template <class Word>
static inline Word load_word(const void* from) {
    return static_cast<const Unaligned<Word>*>(from)->value;
}
template <class Word>
static inline void store_word(void* to, long long word) {
    static_cast<Unaligned<Word>*>(to)->value = static_cast<Word>(word);
}

// 1 to 31 bytes as a vector of which every lane is one of the items: two pieces that overlap where they must,
// and again. A maximum does not mind seeing an item twice.
static inline __m256i load_piece(const void* from, std::size_t bytes) {
    auto* first = static_cast<const char*>(from);
    auto* end = first + bytes;
    if (bytes >= 16)
        return _mm256_set_m128i(_mm_loadu_si128(reinterpret_cast<const __m128i*>(end - 16)),
                                _mm_loadu_si128(reinterpret_cast<const __m128i*>(first)));
    if (bytes >= 8)
        return _mm256_broadcastsi128_si256(
            _mm_set_epi64x(load_word<std::int64_t>(end - 8), load_word<std::int64_t>(first)));
    if (bytes >= 4) {
        const auto low = load_word<std::uint32_t>(first), high = load_word<std::uint32_t>(end - 4);
        return _mm256_set1_epi64x(static_cast<std::int64_t>(std::uint64_t{high} << 32 | low));
    }
    if (bytes >= 2) {
        const auto low = load_word<std::uint16_t>(first), high = load_word<std::uint16_t>(end - 2);
        return _mm256_set1_epi32(static_cast<std::int32_t>(std::uint32_t{high} << 16 | low));
    }
    return _mm256_set1_epi8(*first);
}

// The items go back to where load_piece() found them.
static inline void store_piece(void* to, std::size_t bytes, __m256i v) {
    auto* first = static_cast<char*>(to);
    auto* end = first + bytes;
    const __m128i low = _mm256_castsi256_si128(v);
    if (bytes >= 16) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(first), low);
        _mm_storeu_si128(reinterpret_cast<__m128i*>(end - 16), _mm256_extracti128_si256(v, 1));
        return;
    }
    const long long word = _mm_cvtsi128_si64(low);
    if (bytes >= 8) {
        store_word<std::int64_t>(first, word);
        store_word<std::int64_t>(end - 8, _mm_extract_epi64(low, 1));
    } else if (bytes >= 4) {
        store_word<std::uint32_t>(first, word);
        store_word<std::uint32_t>(end - 4, word >> 32);
    } else if (bytes >= 2) {
        store_word<std::uint16_t>(first, word);
        store_word<std::uint16_t>(end - 2, word >> 16);
    } else {
        store_word<std::uint8_t>(first, word);
    }
}

// ---------------------------------------------------------------------------- keys

// Keys of floats given as bits; a NaN's is above that of +Inf.
template <class T>
static inline __m256i float_keys(__m256i bits) {
    using Keys = Lane<typename T::Key>;
    const __m256i positive = Keys::add(bits, Keys::splat(static_cast<typename T::Key>(T::kPositiveStep)));
    const __m256i negative = Keys::sub(Keys::splat(static_cast<typename T::Key>(T::kNegativeBase)), bits);
    if constexpr (sizeof(typename T::Key) == 2)
        return select(_mm256_srai_epi16(bits, 15), negative, positive);
    else if constexpr (sizeof(typename T::Key) == 4)
        return select_words(bits, negative, positive);
    else
        return select_longs(bits, negative, positive);
}

template <class T>
static inline __m256i keys_of_items(__m256i bits) {
    if constexpr (T::is_float) return float_keys<T>(bits);
    if constexpr (std::is_same_v<T, BoolOrder>) return _mm256_min_epu8(bits, _mm256_set1_epi8(1));
    return bits;
}

// ---------------------------------------------------------------------------- maxima

// The maxima of a vector's lanes over all that was taken.
template <class T>
struct Maxima {
    using Lanes = Lane<typename T::Bits>;
    __m256i high;

    explicit Maxima(__m256i x) : high(x) {}
    Maxima(__m256i x, __m256i y) : high(Lanes::max(x, y)) {}
    void take(__m256i x) { high = Lanes::max(high, x); }
    void take(__m256i x, __m256i y) { high = Lanes::max(high, Lanes::max(x, y)); }
    void take(const Maxima& other) { take(other.high); }
    bool is_saturated() const {
        return _mm256_movemask_epi8(Lanes::equal(bits(), Lanes::splat(T::bits(T::kHighestKey)))) != 0;
    }
    __m256i bits() const { return keys_of_items<T>(high); }
};

// Two bytes: the highest and the lowest as signed integers and the highest as unsigned ones tell all (see
// fold_pair).
template <class T>
struct HalfMaxima {
    using Lanes = Lane<std::int16_t>;
    using Unsigned = Lane<std::uint16_t>;
    __m256i high, low, top;

    explicit HalfMaxima(__m256i x) : high(x), low(x), top(x) {}
    HalfMaxima(__m256i x, __m256i y) : HalfMaxima(x) { take(y); }
    void take(__m256i x) {
        high = Lanes::max(high, x);
        low = Lanes::min(low, x);
        top = Unsigned::max(top, x);
    }
    void take(__m256i x, __m256i y) {
        take(x);
        take(y);
    }
    void take(const HalfMaxima& other) {
        high = Lanes::max(high, other.high);
        low = Lanes::min(low, other.low);
        top = Unsigned::max(top, other.top);
    }
    bool is_saturated() const { return _mm256_movemask_epi8(nan()) != 0; }
    __m256i bits() const {
        const __m256i all_negative = _mm256_srai_epi16(high, 15);
        return select(nan(), Lanes::splat(T::kNaN), select(all_negative, low, high));
    }

private:
    __m256i nan() const {
        const __m256i first_negative = Unsigned::splat(static_cast<std::uint16_t>(T::kMinusInfinity + 1));
        return _mm256_or_si256(
            Unsigned::equal(Unsigned::max(top, first_negative), top),
            _mm256_cmpgt_epi16(high, Lanes::splat(static_cast<std::int16_t>(T::kInfinity))));
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

template <class T>
struct Floats;
#define MAXOPS_FLOATS(T, Vector, name)                                    \
    template <>                                                           \
    struct Floats<T> {                                                    \
        static Vector of(__m256i v) {                                     \
            return _mm256_castsi256_##name(v);                            \
        }                                                                 \
        static __m256i bits(Vector v) {                                   \
            return _mm256_cast##name##_si256(v);                          \
        }                                                                 \
        static __m256i max(__m256i a, __m256i b) {                        \
            return bits(_mm256_max_##name(of(a), of(b)));                 \
        }                                                                 \
        static __m256i unordered(__m256i a, __m256i b) {                  \
            return bits(_mm256_cmp_##name(of(a), of(b), _CMP_UNORD_Q));   \
        }                                                                 \
        static __m256i select(__m256i mask, __m256i yes, __m256i no) {    \
            return bits(_mm256_blendv_##name(of(no), of(yes), of(mask))); \
        }                                                                 \
        static int movemask(__m256i mask) {                               \
            return _mm256_movemask_##name(of(mask));                      \
        }                                                                 \
    };
MAXOPS_FLOATS(Float32, __m256, ps)
MAXOPS_FLOATS(Float64, __m256d, pd)
#undef MAXOPS_FLOATS

// VMAXPS takes -0 for +0 and may lose a NaN: NaNs are noted beside it, and so are the bits that all have.
// Where the highest is a zero, it is -0 if all have the sign.
template <class T>
struct FloatMaxima {
    using Lanes = Lane<typename T::Bits>;
    using F = Floats<T>;
    __m256i high, all, nan;

    explicit FloatMaxima(__m256i x) : high(x), all(x), nan(F::unordered(x, x)) {}
    FloatMaxima(__m256i x, __m256i y)
        : high(F::max(x, y)), all(_mm256_and_si256(x, y)), nan(F::unordered(x, y)) {}
    void take(__m256i x) { take(FloatMaxima(x)); }
    void take(__m256i x, __m256i y) { take(FloatMaxima(x, y)); }
    void take(const FloatMaxima& other) {
        high = F::max(high, other.high);
        all = _mm256_and_si256(all, other.all);
        nan = _mm256_or_si256(nan, other.nan);
    }
    bool is_saturated() const { return F::movemask(nan) != 0; }
    __m256i bits() const {
        const __m256i magnitude = Lanes::splat(static_cast<typename T::Bits>(T::kSign - 1));
        const __m256i number = _mm256_and_si256(high, _mm256_or_si256(all, magnitude));
        return F::select(nan, Lanes::splat(T::kNaN), number);
    }
};
template <>
struct Maxima<Float32> : FloatMaxima<Float32> {
    using FloatMaxima::FloatMaxima;
};
template <>
struct Maxima<Float64> : FloatMaxima<Float64> {
    using FloatMaxima::FloatMaxima;
};

template <class T>
static inline __m256i keys_of(const Maxima<T>& maxima) {
    if constexpr (T::is_float)
        return float_keys<T>(maxima.bits());
    else
        return maxima.bits();
}
