// x86-64 instructions that compilers do not select: overloads of the operations of vec.h. Only vec.h includes
// this file.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// Whether this thread's floating-point modes preserve values. Float instructions flush subnormals in the mode
// "denormals are zero", and trap on a signalling NaN if the program unmasked that exception. Otherwise a
// signalling NaN sets the sticky "invalid" flag, as in NumPy's maximum.
#define MAXOPS_HAS_FLOAT_MODES
MAXOPS_INLINE bool float_modes_are_plain() {
    constexpr unsigned kDenormalsAreZero = 0x0040, kMasks = 0x1F80;
    return (_mm_getcsr() & (kDenormalsAreZero | kMasks)) == kMasks;
}

// unordered() is one comparison instead of two and an OR. select() is one blend by each lane's highest bit
// instead of three bitwise operations. Without both, Max of float32 takes 1.1 times as long on AVX2.
template <class Int>
MAXOPS_INLINE Mask<Int, 16> unordered(Vec<Int, 16> a, Vec<Int, 16> b) {
    using M = typename Mask<Int, 16>::Native;
    if constexpr (sizeof(Int) == 4)
        return {(M)_mm_cmpunord_ps((__m128)a.v, (__m128)b.v)};
    else
        return {(M)_mm_cmpunord_pd((__m128d)a.v, (__m128d)b.v)};
}
template <class Int>
MAXOPS_INLINE bool any(Mask<Int, 16> mask) {
    return _mm_movemask_epi8((__m128i)mask.v) != 0;
}
#if defined(__SSE4_1__)
template <class Int>
MAXOPS_INLINE Vec<Int, 16> select(Mask<Int, 16> where, Vec<Int, 16> yes, Vec<Int, 16> no) {
    using Native = typename Vec<Int, 16>::Native;
    return {(Native)_mm_blendv_epi8((__m128i)no.v, (__m128i)yes.v, (__m128i)where.v)};
}
#endif

#if defined(__AVX2__)
// Compilers load all inputs of one vector before those of the next. The two halves of an input's cache line
// are then loaded with other loads between them: three inputs of different alignment take 1.3 times as long.
template <class Int>
MAXOPS_INLINE Vec<Int, 32> in_step(Vec<Int, 32> a) {
    asm volatile("" : "+x"(a.v));
    return a;
}
template <class Int>
MAXOPS_INLINE Mask<Int, 32> unordered(Vec<Int, 32> a, Vec<Int, 32> b) {
    using M = typename Mask<Int, 32>::Native;
    if constexpr (sizeof(Int) == 4)
        return {(M)_mm256_cmp_ps((__m256)a.v, (__m256)b.v, _CMP_UNORD_Q)};
    else
        return {(M)_mm256_cmp_pd((__m256d)a.v, (__m256d)b.v, _CMP_UNORD_Q)};
}
template <class Int>
MAXOPS_INLINE bool any(Mask<Int, 32> mask) {
    return _mm256_movemask_epi8((__m256i)mask.v) != 0;
}
template <class Int>
MAXOPS_INLINE Vec<Int, 32> select(Mask<Int, 32> where, Vec<Int, 32> yes, Vec<Int, 32> no) {
    using Native = typename Vec<Int, 32>::Native;
    if constexpr (sizeof(Int) == 4)
        return {(Native)_mm256_blendv_ps((__m256)no.v, (__m256)yes.v, (__m256)where.v)};
    else
        return {(Native)_mm256_blendv_epi8((__m256i)no.v, (__m256i)yes.v, (__m256i)where.v)};
}
// Omits the comparison that compilers put before the blend, which saves keys() one instruction.
template <class Int>
MAXOPS_INLINE Vec<Int, 32> select_negative(Vec<Int, 32> where, Vec<Int, 32> yes, Vec<Int, 32> no) {
    using Native = typename Vec<Int, 32>::Native;
    if constexpr (sizeof(Int) == 4)
        return {(Native)_mm256_blendv_ps((__m256)no.v, (__m256)yes.v, (__m256)where.v)};
    else if constexpr (sizeof(Int) == 8)
        return {(Native)_mm256_blendv_pd((__m256d)no.v, (__m256d)yes.v, (__m256d)where.v)};
    else
        return select(less(where, Vec<Int, 32>::splat(0)), yes, no);
}
#endif

#if defined(__AVX2__)
// For unsigned lanes of 16 bits, compilers emit three instructions with a saturating subtraction.
MAXOPS_INLINE Mask<std::uint16_t, 32> at_least(Vec<std::uint16_t, 32> a, Vec<std::uint16_t, 32> b) {
    const __m256i high = _mm256_max_epu16((__m256i)a.v, (__m256i)b.v);
    return {(Mask<std::uint16_t, 32>::Native)_mm256_cmpeq_epi16(high, (__m256i)a.v)};
}
#endif

#if defined(__AVX2__)
// Unsigned: the AND turns lanes outside the mask into 0, the lowest value. Signed: AVX2 has no maximum of
// 64-bit lanes.
MAXOPS_INLINE Vec<std::uint32_t, 32> max_where(Mask<std::uint32_t, 32> where, Vec<std::uint32_t, 32> a,
                                               Vec<std::uint32_t, 32> b) {
    return max(a, bit_and(b, as_lanes(where)));
}
MAXOPS_INLINE Vec<std::int64_t, 32> max_where(Mask<std::int64_t, 32> where, Vec<std::int64_t, 32> a,
                                              Vec<std::int64_t, 32> b) {
    return select(Mask<std::int64_t, 32>{less(a, b).v & where.v}, b, a);
}

// One instruction each; compilers load first and widen bytes in two steps.
#define MAXOPS_WIDEN(Item, name, load)                                                                  \
    template <>                                                                                         \
    MAXOPS_INLINE Vec<std::uint32_t, 32> load_widened<Vec<std::uint32_t, 32>, Item>(const void* from) { \
        return {(Vec<std::uint32_t, 32>::Native)_mm256_cvt##name##_epi32(load((const __m128i*)from))};  \
    }
MAXOPS_WIDEN(std::int8_t, epi8, _mm_loadl_epi64)
MAXOPS_WIDEN(std::uint8_t, epu8, _mm_loadl_epi64)
MAXOPS_WIDEN(std::int16_t, epi16, _mm_loadu_si128)
MAXOPS_WIDEN(std::uint16_t, epu16, _mm_loadu_si128)
#undef MAXOPS_WIDEN

// For every set of omitted lanes: the word indices of the other lanes, in order, for a permute.
template <unsigned lanes>
struct CompressionTable {
    static constexpr unsigned kWords = 8 / lanes;  // 32-bit words per lane
    alignas(32) std::uint32_t from[1U << lanes][8];

    constexpr CompressionTable() : from() {
        for (unsigned set = 0; set < 1U << lanes; ++set)
            for (unsigned lane = 0, to = 0; lane < lanes; ++lane)
                if ((set >> lane & 1) == 0)
                    for (unsigned word = 0; word < kWords; ++word) from[set][to++] = lane * kWords + word;
    }
};
template <unsigned lanes>
constexpr CompressionTable<lanes> kCompressionTable;

#define MAXOPS_HAS_COMPRESSION
template <class Int>
struct Compression<Vec<Int, 32>> {
    static constexpr unsigned kLanes = 32 / sizeof(Int);
    unsigned set;  // the omitted lanes

    MAXOPS_INLINE explicit Compression(Mask<Int, 32> left_out)
        : set(static_cast<unsigned>(sizeof(Int) == 4 ? _mm256_movemask_ps((__m256)left_out.v)
                                                     : _mm256_movemask_pd((__m256d)left_out.v))) {}
    MAXOPS_INLINE unsigned count() const { return kLanes - static_cast<unsigned>(__builtin_popcount(set)); }
    template <class Any>
    MAXOPS_INLINE Vec<Any, 32> compress(Vec<Any, 32> a) const {
        const auto* from = reinterpret_cast<const __m256i*>(kCompressionTable<kLanes>.from[set]);
        return {(typename Vec<Any, 32>::Native)_mm256_permutevar8x32_epi32((__m256i)a.v,
                                                                           _mm256_load_si256(from))};
    }
};
#endif

// AVX-512 has mask registers; compilers move the masks of the vector extensions in and out of them. A masked
// load or store of part of a vector is one instruction and replaces the pieces.
#if defined(MAXOPS_AVX512)
#define MAXOPS_HAS_MASKED_MEMORY
template <std::size_t itemsize>
struct MaskRegister;
#define MAXOPS_MASKS(bytes, bits, lanes)                                                                  \
    template <>                                                                                           \
    struct MaskRegister<bytes> {                                                                          \
        using type = __mmask##lanes;                                                                      \
        MAXOPS_INLINE static __m512i load(type mask, __m512i other, const void* from) {                   \
            return _mm512_mask_loadu_epi##bits(other, mask, from);                                        \
        }                                                                                                 \
        MAXOPS_INLINE static void store(type mask, void* to, __m512i a) {                                 \
            _mm512_mask_storeu_epi##bits(to, mask, a);                                                    \
        }                                                                                                 \
        MAXOPS_INLINE static __m512i select(type mask, __m512i yes, __m512i no) {                         \
            return _mm512_mask_mov_epi##bits(no, mask, yes);                                              \
        }                                                                                                 \
        MAXOPS_INLINE static type equal(__m512i a, __m512i b) {                                           \
            return _mm512_cmpeq_epi##bits##_mask(a, b);                                                   \
        }                                                                                                 \
        template <bool is_signed>                                                                         \
        MAXOPS_INLINE static type less(__m512i a, __m512i b) {                                            \
            return is_signed ? _mm512_cmplt_epi##bits##_mask(a, b) : _mm512_cmplt_epu##bits##_mask(a, b); \
        }                                                                                                 \
    };
MAXOPS_MASKS(1, 8, 64)
MAXOPS_MASKS(2, 16, 32)
MAXOPS_MASKS(4, 32, 16)
MAXOPS_MASKS(8, 64, 8)
#undef MAXOPS_MASKS

template <class Int>
struct Mask<Int, 64> {
    using Register = MaskRegister<sizeof(Int)>;
    typename Register::type v;

    MAXOPS_INLINE static Mask first(std::size_t lanes) {
        return {static_cast<typename Register::type>((std::uint64_t{1} << lanes) - 1)};
    }
};
template <class Int>
MAXOPS_INLINE Mask<Int, 64> less(Vec<Int, 64> a, Vec<Int, 64> b) {
    using Register = MaskRegister<sizeof(Int)>;
    return {Register::template less<std::is_signed_v<Int>>((__m512i)a.v, (__m512i)b.v)};
}
template <class Int>
MAXOPS_INLINE Mask<Int, 64> equal(Vec<Int, 64> a, Vec<Int, 64> b) {
    return {MaskRegister<sizeof(Int)>::equal((__m512i)a.v, (__m512i)b.v)};
}
template <class Int>
MAXOPS_INLINE Mask<Int, 64> at_least(Vec<Int, 64> a, Vec<Int, 64> b) {
    return {static_cast<decltype(Mask<Int, 64>::v)>(~less(a, b).v)};
}
template <class Int>
MAXOPS_INLINE Mask<Int, 64> either(Mask<Int, 64> a, Mask<Int, 64> b) {
    return {static_cast<decltype(a.v)>(a.v | b.v)};
}
template <class Int>
MAXOPS_INLINE bool any(Mask<Int, 64> mask) {
    return mask.v != 0;
}
template <class Int>
MAXOPS_INLINE Vec<Int, 64> select(Mask<Int, 64> where, Vec<Int, 64> yes, Vec<Int, 64> no) {
    using Register = MaskRegister<sizeof(Int)>;
    return {(typename Vec<Int, 64>::Native)Register::select(where.v, (__m512i)yes.v, (__m512i)no.v)};
}
template <class Int>
MAXOPS_INLINE Mask<Int, 64> unordered(Vec<Int, 64> a, Vec<Int, 64> b) {
    if constexpr (sizeof(Int) == 4)
        return {_mm512_cmp_ps_mask((__m512)a.v, (__m512)b.v, _CMP_UNORD_Q)};
    else
        return {_mm512_cmp_pd_mask((__m512d)a.v, (__m512d)b.v, _CMP_UNORD_Q)};
}
template <class Int>
struct Piece<Vec<Int, 64>, 0> {
    using V = Vec<Int, 64>;
    using Register = MaskRegister<sizeof(Int)>;
    typename Register::type mask;

    MAXOPS_INLINE V load(const void* from, V other) const {
        return {(typename V::Native)Register::load(mask, (__m512i)other.v, from)};
    }
    MAXOPS_INLINE void store(void* to, V a) const { Register::store(mask, to, (__m512i)a.v); }
};
template <class Int>
struct Pieces<Vec<Int, 64>> {
    template <class Body>
    MAXOPS_INLINE static auto with(std::size_t items, const Body& body) {
        return body(Piece<Vec<Int, 64>, 0>{Mask<Int, 64>::first(items).v});
    }
};

// VRANGE orders -0 below +0, although it prefers a number to a NaN. With two comparisons and a bitwise AND
// instead, Max of three float32 inputs takes 1.3 times as long.
template <class Int>
struct ZerosApart<Vec<Int, 64>> : std::true_type {};
template <class Int>
MAXOPS_INLINE Vec<Int, 64> float_max(Vec<Int, 64> a, Vec<Int, 64> b) {
    using Native = typename Vec<Int, 64>::Native;
    if constexpr (sizeof(Int) == 4)
        return {(Native)_mm512_range_ps((__m512)a.v, (__m512)b.v, 5)};
    else
        return {(Native)_mm512_range_pd((__m512d)a.v, (__m512d)b.v, 5)};
}
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
#endif
