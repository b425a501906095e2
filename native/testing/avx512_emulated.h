// The AVX-512 intrinsics that vec_x86.h and kernels/segment_avx512.h use, in plain C++, from Intel's
// Intrinsics Guide and Software Developer's Manual. With MAXOPS_EMULATE_AVX512, those kernels run on any
// x86-64 machine with AVX2, for tests. Releases do not contain this file.
//
// Include this file before any other. The kernels are in namespace maxops, where these functions hide the
// compiler's own of the same names. An intrinsic that is missing here does not compile, because its processor
// flag is off.
#pragma once
#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

// Macros in some compilers, at least without optimisation.
#undef _mm512_alignr_epi32
#undef _mm512_alignr_epi64
#undef _mm512_cmp_pd_mask
#undef _mm512_cmp_ps_mask
#undef _mm512_cmpeq_epi16_mask
#undef _mm512_cmpeq_epi32_mask
#undef _mm512_cmpeq_epi64_mask
#undef _mm512_cmpeq_epi8_mask
#undef _mm512_cmplt_epi16_mask
#undef _mm512_cmplt_epi32_mask
#undef _mm512_cmplt_epi64_mask
#undef _mm512_cmplt_epi8_mask
#undef _mm512_cmplt_epu16_mask
#undef _mm512_cmplt_epu32_mask
#undef _mm512_cmplt_epu64_mask
#undef _mm512_cmplt_epu8_mask
#undef _mm512_cmpgt_epi32_mask
#undef _mm512_cmpgt_epi64_mask
#undef _mm512_cmpneq_epi32_mask
#undef _mm512_cmpneq_epi64_mask
#undef _mm512_extracti64x4_epi64
#undef _mm512_mask_cmpgt_epi32_mask
#undef _mm512_mask_cmpgt_epi64_mask
#undef _mm512_range_pd
#undef _mm512_range_ps
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#undef _mm512_slli_epi32
#undef _mm512_srai_epi32
#undef _mm512_srai_epi64
#undef _mm512_srli_epi32
#undef _mm512_ternarylogic_epi64

namespace maxops {
namespace emulated {

template <class T, class Vector>
static inline T lane(const Vector& v, std::size_t i) {
    T value;
    __builtin_memcpy(&value, reinterpret_cast<const char*>(&v) + i * sizeof(T), sizeof(T));
    return value;
}

// The vector whose lane i is of(i).
template <class T, class Vector = __m512i, class Of>
static inline Vector vector(const Of& of) {
    T lanes[sizeof(Vector) / sizeof(T)];
    for (std::size_t i = 0; i < sizeof(Vector) / sizeof(T); ++i) lanes[i] = static_cast<T>(of(i));
    Vector v;
    __builtin_memcpy(&v, lanes, sizeof(v));
    return v;
}

static inline bool has(std::uint64_t mask, std::size_t i) {
    return (mask >> i & 1) != 0;
}

// The mask whose bit i is is(i).
template <class Mask, class Is>
static inline Mask mask(const Is& is) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8 * sizeof(Mask); ++i) bits |= std::uint64_t{is(i)} << i;
    return static_cast<Mask>(bits);
}

// Does not read or write the memory of lanes whose bit is 0.
template <class T, class Vector>
static inline Vector load(const Vector& others, std::uint64_t mask, const void* from) {
    return vector<T, Vector>([&](std::size_t i) {
        T value = lane<T>(others, i);
        if (has(mask, i)) __builtin_memcpy(&value, static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
        return value;
    });
}
// Stores the lower bits of each lane of T as a To.
template <class T, class To>
static inline void store(void* to, std::uint64_t mask, const __m512i& v) {
    for (std::size_t i = 0; i < 64 / sizeof(T); ++i) {
        if (!has(mask, i)) continue;
        const auto value = static_cast<To>(lane<T>(v, i));
        __builtin_memcpy(static_cast<char*>(to) + i * sizeof(To), &value, sizeof(To));
    }
}

// Lane i is lane from(i) of a and b, where the lanes of b follow those of a.
template <class T, class From>
static inline __m512i permute(__m512i a, __m512i b, const From& from) {
    constexpr std::size_t kCount = 64 / sizeof(T);
    return vector<T>([&](std::size_t i) { return lane<T>(from(i) < kCount ? a : b, from(i) % kCount); });
}
template <class T>
static inline __m512i compress(std::uint64_t mask, __m512i v) {
    T lanes[64 / sizeof(T)] = {};
    std::size_t count = 0;
    for (std::size_t i = 0; i < 64 / sizeof(T); ++i)
        if (has(mask, i)) lanes[count++] = lane<T>(v, i);
    return vector<T>([&](std::size_t i) { return lanes[i]; });
}
template <class T>
static inline __m512i expand(__m512i others, std::uint64_t mask, __m512i v) {
    std::size_t count = 0;
    return vector<T>([&](std::size_t i) { return has(mask, i) ? lane<T>(v, count++) : lane<T>(others, i); });
}

// VRANGE's maximum with its own sign, which the kernels use: -0 < +0, a number wins over a quiet NaN, and a
// signalling NaN, made quiet, wins over all. It obeys "denormals are zero".
constexpr int kMaximumWithSign = 5;
template <class Int>
static inline Int range(Int a, Int b, Int infinity, int what) {
    if (what != kMaximumWithSign) __builtin_trap();
    constexpr Int kMagnitude = std::numeric_limits<Int>::max();
    constexpr unsigned kDenormalsAreZero = 0x0040;
    const auto quiet = static_cast<Int>(infinity | infinity >> 1);
    const auto is_nan = [&](Int x) { return (x & kMagnitude) > infinity; };
    const auto is_signalling = [&](Int x) { return is_nan(x) && (x & quiet) != quiet; };
    const auto flushed = [&](Int x) {
        const bool is_tiny = (x & infinity) == 0;
        return is_tiny && (_mm_getcsr() & kDenormalsAreZero) != 0 ? x & ~kMagnitude : x;
    };
    const auto key = [&](Int x) { return x < 0 ? x ^ kMagnitude : x; };
    if (is_signalling(a)) return a | quiet;
    if (is_signalling(b)) return b | quiet;
    if (is_nan(b)) return flushed(a);
    if (is_nan(a)) return flushed(b);
    return key(flushed(a)) < key(flushed(b)) ? flushed(b) : flushed(a);
}

}  // namespace emulated

// ---------------------------------------------------------------------------- lane by lane

#define MAXOPS_EMULATE(name, T, result)                                       \
    static inline __m512i _mm512_##name(__m512i a, __m512i b) {               \
        return emulated::vector<T>([&](std::size_t i) {                       \
            const T x = emulated::lane<T>(a, i), y = emulated::lane<T>(b, i); \
            return result;                                                    \
        });                                                                   \
    }
MAXOPS_EMULATE(add_epi32, std::uint32_t, x + y)
MAXOPS_EMULATE(add_epi64, std::uint64_t, x + y)
MAXOPS_EMULATE(sub_epi32, std::uint32_t, x - y)
MAXOPS_EMULATE(sub_epi64, std::uint64_t, x - y)
MAXOPS_EMULATE(max_epi32, std::int32_t, x > y ? x : y)
MAXOPS_EMULATE(max_epi64, std::int64_t, x > y ? x : y)
MAXOPS_EMULATE(min_epi32, std::int32_t, x < y ? x : y)
MAXOPS_EMULATE(or_si512, std::uint64_t, x | y)
MAXOPS_EMULATE(xor_si512, std::uint64_t, x ^ y)
#undef MAXOPS_EMULATE

#define MAXOPS_EMULATE(name, T, Mask, result)                                 \
    static inline Mask _mm512_##name##_mask(__m512i a, __m512i b) {           \
        return emulated::mask<Mask>([&](std::size_t i) {                      \
            const T x = emulated::lane<T>(a, i), y = emulated::lane<T>(b, i); \
            return result;                                                    \
        });                                                                   \
    }
MAXOPS_EMULATE(cmplt_epi8, std::int8_t, __mmask64, x < y)
MAXOPS_EMULATE(cmplt_epi16, std::int16_t, __mmask32, x < y)
MAXOPS_EMULATE(cmplt_epi32, std::int32_t, __mmask16, x < y)
MAXOPS_EMULATE(cmplt_epi64, std::int64_t, __mmask8, x < y)
MAXOPS_EMULATE(cmplt_epu8, std::uint8_t, __mmask64, x < y)
MAXOPS_EMULATE(cmplt_epu16, std::uint16_t, __mmask32, x < y)
MAXOPS_EMULATE(cmplt_epu32, std::uint32_t, __mmask16, x < y)
MAXOPS_EMULATE(cmplt_epu64, std::uint64_t, __mmask8, x < y)
MAXOPS_EMULATE(cmpeq_epi8, std::int8_t, __mmask64, x == y)
MAXOPS_EMULATE(cmpeq_epi16, std::int16_t, __mmask32, x == y)
MAXOPS_EMULATE(cmpeq_epi32, std::int32_t, __mmask16, x == y)
MAXOPS_EMULATE(cmpeq_epi64, std::int64_t, __mmask8, x == y)
MAXOPS_EMULATE(cmpneq_epi32, std::int32_t, __mmask16, x != y)
MAXOPS_EMULATE(cmpneq_epi64, std::int64_t, __mmask8, x != y)
MAXOPS_EMULATE(cmpgt_epi32, std::int32_t, __mmask16, x > y)
MAXOPS_EMULATE(cmpgt_epi64, std::int64_t, __mmask8, x > y)
#undef MAXOPS_EMULATE

// Shifts by at least the width of a lane leave 0, or the sign if the shift is arithmetic.
#define MAXOPS_EMULATE(name, T, result)                           \
    static inline __m512i _mm512_##name(__m512i v, unsigned by) { \
        constexpr unsigned kBits = 8 * sizeof(T);                 \
        return emulated::vector<T>([&](std::size_t i) {           \
            const T x = emulated::lane<T>(v, i);                  \
            return result;                                        \
        });                                                       \
    }
MAXOPS_EMULATE(slli_epi32, std::uint32_t, by < kBits ? x << by : 0)
MAXOPS_EMULATE(srli_epi32, std::uint32_t, by < kBits ? x >> by : 0)
MAXOPS_EMULATE(srai_epi32, std::int32_t, x >> (by < kBits ? by : kBits - 1))
MAXOPS_EMULATE(srai_epi64, std::int64_t, x >> (by < kBits ? by : kBits - 1))
#undef MAXOPS_EMULATE

#define MAXOPS_EMULATE(name, From, VectorOfFrom, To)                                                \
    static inline __m512i _mm512_##name(VectorOfFrom v) {                                           \
        return emulated::vector<To>([&](std::size_t i) { return To{emulated::lane<From>(v, i)}; }); \
    }
MAXOPS_EMULATE(cvtepi8_epi32, std::int8_t, __m128i, std::int32_t)
MAXOPS_EMULATE(cvtepu8_epi32, std::uint8_t, __m128i, std::uint32_t)
MAXOPS_EMULATE(cvtepi16_epi32, std::int16_t, __m256i, std::int32_t)
MAXOPS_EMULATE(cvtepu16_epi32, std::uint16_t, __m256i, std::uint32_t)
MAXOPS_EMULATE(cvtepi32_epi64, std::int32_t, __m256i, std::int64_t)
MAXOPS_EMULATE(cvtepu32_epi64, std::uint32_t, __m256i, std::uint64_t)
#undef MAXOPS_EMULATE

// ---------------------------------------------------------------------------- by width

#define MAXOPS_EMULATE(bits, T, Argument, Mask)                                                        \
    static inline __m512i _mm512_set1_epi##bits(Argument value) {                                      \
        return emulated::vector<T>([&](std::size_t) { return value; });                                \
    }                                                                                                  \
    static inline __m512i _mm512_mask_loadu_epi##bits(__m512i others, Mask mask, const void* from) {   \
        return emulated::load<T>(others, mask, from);                                                  \
    }                                                                                                  \
    static inline void _mm512_mask_storeu_epi##bits(void* to, Mask mask, __m512i v) {                  \
        emulated::store<T, T>(to, mask, v);                                                            \
    }                                                                                                  \
    static inline __m512i _mm512_mask_mov_epi##bits(__m512i others, Mask mask, __m512i v) {            \
        return emulated::vector<T>(                                                                    \
            [&](std::size_t i) { return emulated::lane<T>(emulated::has(mask, i) ? v : others, i); }); \
    }
MAXOPS_EMULATE(8, std::int8_t, char, __mmask64)
MAXOPS_EMULATE(16, std::int16_t, short, __mmask32)
MAXOPS_EMULATE(32, std::int32_t, int, __mmask16)
MAXOPS_EMULATE(64, std::int64_t, long long, __mmask8)
#undef MAXOPS_EMULATE

static inline __m512i _mm512_setzero_si512() {
    return _mm512_set1_epi64(0);
}

#define MAXOPS_EMULATE(bits, T, Mask)                                                                  \
    static inline __m512i _mm512_maskz_loadu_epi##bits(Mask mask, const void* from) {                  \
        return _mm512_mask_loadu_epi##bits(_mm512_setzero_si512(), mask, from);                        \
    }                                                                                                  \
    static inline __m512i _mm512_mask_max_epi##bits(__m512i others, Mask mask, __m512i a, __m512i b) { \
        return _mm512_mask_mov_epi##bits(others, mask, _mm512_max_epi##bits(a, b));                    \
    }                                                                                                  \
    static inline Mask _mm512_mask_cmpgt_epi##bits##_mask(Mask mask, __m512i a, __m512i b) {           \
        return static_cast<Mask>(mask & _mm512_cmpgt_epi##bits##_mask(a, b));                          \
    }                                                                                                  \
    static inline __m512i _mm512_maskz_compress_epi##bits(Mask mask, __m512i v) {                      \
        return emulated::compress<T>(mask, v);                                                         \
    }                                                                                                  \
    static inline __m512i _mm512_mask_expand_epi##bits(__m512i others, Mask mask, __m512i v) {         \
        return emulated::expand<T>(others, mask, v);                                                   \
    }                                                                                                  \
    static inline __m512i _mm512_alignr_epi##bits(__m512i high, __m512i low, int by) {                 \
        const auto first = static_cast<std::size_t>(by) % (512 / bits);                                \
        return emulated::permute<T>(low, high, [&](std::size_t i) { return first + i; });              \
    }                                                                                                  \
    static inline __m512i _mm512_permutexvar_epi##bits(__m512i from, __m512i v) {                      \
        return emulated::permute<T>(                                                                   \
            v, v, [&](std::size_t i) { return emulated::lane<T>(from, i) % (512 / bits); });           \
    }
MAXOPS_EMULATE(32, std::uint32_t, __mmask16)
MAXOPS_EMULATE(64, std::uint64_t, __mmask8)
#undef MAXOPS_EMULATE

// ---------------------------------------------------------------------------- one width only

static inline __m512i _mm512_setr_epi32(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j,
                                        int k, int l, int m, int n, int o, int p) {
    const int lanes[] = {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
    return emulated::vector<std::int32_t>([&](std::size_t at) { return lanes[at]; });
}
static inline __m512i _mm512_setr_epi64(long long a, long long b, long long c, long long d, long long e,
                                        long long f, long long g, long long h) {
    const long long lanes[] = {a, b, c, d, e, f, g, h};
    return emulated::vector<std::int64_t>([&](std::size_t at) { return lanes[at]; });
}

static inline __m128i _mm_maskz_loadu_epi8(__mmask16 mask, const void* from) {
    return emulated::load<std::int8_t>(_mm_setzero_si128(), mask, from);
}
static inline __m256i _mm256_maskz_loadu_epi16(__mmask16 mask, const void* from) {
    return emulated::load<std::int16_t>(_mm256_setzero_si256(), mask, from);
}
static inline __m256i _mm256_maskz_loadu_epi32(__mmask8 mask, const void* from) {
    return emulated::load<std::int32_t>(_mm256_setzero_si256(), mask, from);
}
static inline void _mm512_mask_cvtepi32_storeu_epi16(void* to, __mmask16 mask, __m512i v) {
    emulated::store<std::int32_t, std::int16_t>(to, mask, v);
}
static inline void _mm512_mask_cvtepi32_storeu_epi8(void* to, __mmask16 mask, __m512i v) {
    emulated::store<std::int32_t, std::int8_t>(to, mask, v);
}

static inline __m512 _mm512_castsi512_ps(__m512i v) {
    return emulated::lane<__m512>(v, 0);
}
static inline __m512d _mm512_castsi512_pd(__m512i v) {
    return emulated::lane<__m512d>(v, 0);
}
static inline __m256i _mm512_extracti64x4_epi64(__m512i v, int half) {
    return emulated::lane<__m256i>(v, static_cast<std::size_t>(half) & 1);
}
static inline __m256i _mm512_castsi512_si256(__m512i v) {
    return emulated::lane<__m256i>(v, 0);
}
static inline __m128i _mm512_castsi512_si128(__m512i v) {
    return emulated::lane<__m128i>(v, 0);
}

static inline __m512i _mm512_permutex2var_epi32(__m512i a, __m512i from, __m512i b) {
    return emulated::permute<std::uint32_t>(
        a, b, [&](std::size_t i) { return emulated::lane<std::uint32_t>(from, i) % 32; });
}
static inline __m512i _mm512_maskz_sllv_epi64(__mmask8 mask, __m512i v, __m512i by) {
    return emulated::vector<std::uint64_t>([&](std::size_t i) {
        const auto bits = emulated::lane<std::uint64_t>(by, i);
        return emulated::has(mask, i) && bits < 64 ? emulated::lane<std::uint64_t>(v, i) << bits : 0;
    });
}
static inline long long _mm512_reduce_or_epi64(__m512i v) {
    long long all = 0;
    for (std::size_t i = 0; i < 8; ++i) all |= emulated::lane<long long>(v, i);
    return all;
}
// Each bit of the result is bit 4a + 2b + c of the table, for bits a, b and c.
static inline __m512i _mm512_ternarylogic_epi64(__m512i a, __m512i b, __m512i c, int table) {
    return emulated::vector<std::uint64_t>([&](std::size_t i) {
        const std::uint64_t bits[] = {emulated::lane<std::uint64_t>(c, i),
                                      emulated::lane<std::uint64_t>(b, i),
                                      emulated::lane<std::uint64_t>(a, i)};
        std::uint64_t result = 0;
        for (unsigned k = 0; k < 8; ++k) {
            std::uint64_t is_k = table >> k & 1 ? ~std::uint64_t{0} : 0;
            for (unsigned n = 0; n < 3; ++n) is_k &= k >> n & 1 ? bits[n] : ~bits[n];
            result |= is_k;
        }
        return result;
    });
}

// Whether either lane is a NaN, compared by AVX, which raises the same exceptions as AVX-512.
static inline __mmask16 _mm512_cmp_ps_mask(__m512 a, __m512 b, int what) {
    if (what != _CMP_UNORD_Q) __builtin_trap();
    const auto half = [&](std::size_t k) {
        const __m256 x = emulated::lane<__m256>(a, k), y = emulated::lane<__m256>(b, k);
        return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_UNORD_Q)));
    };
    return static_cast<__mmask16>(half(0) | half(1) << 8);
}
static inline __mmask8 _mm512_cmp_pd_mask(__m512d a, __m512d b, int what) {
    if (what != _CMP_UNORD_Q) __builtin_trap();
    const auto half = [&](std::size_t k) {
        const __m256d x = emulated::lane<__m256d>(a, k), y = emulated::lane<__m256d>(b, k);
        return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(x, y, _CMP_UNORD_Q)));
    };
    return static_cast<__mmask8>(half(0) | half(1) << 4);
}
static inline __m512 _mm512_range_ps(__m512 a, __m512 b, int what) {
    return emulated::vector<std::int32_t, __m512>([&](std::size_t i) {
        return emulated::range(emulated::lane<std::int32_t>(a, i), emulated::lane<std::int32_t>(b, i),
                               0x7F800000, what);
    });
}
static inline __m512d _mm512_range_pd(__m512d a, __m512d b, int what) {
    return emulated::vector<std::int64_t, __m512d>([&](std::size_t i) {
        return emulated::range(emulated::lane<std::int64_t>(a, i), emulated::lane<std::int64_t>(b, i),
                               std::int64_t{0x7FF0000000000000}, what);
    });
}

}  // namespace maxops
