// SIMD vectors of integer lanes, on the vector extensions of GCC and Clang.
//
// Kernels use lanes only through the named operations below and `select`, never through operators, `?:` or
// `if` on a lane's value. A lane may therefore be any type with these operations, such as one integer
// (scalar.h) or an SMT solver's term. Hooks in vec_x86.h replace what the extensions lack or compile badly.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "../kernels/isa.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

#if defined(__AVX512BW__) && !defined(MAXOPS_AVX512)  // the build defines it to emulate AVX-512
#define MAXOPS_AVX512
#endif
#if defined(MAXOPS_AVX512)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

#define MAXOPS_INLINE __attribute__((always_inline)) inline

template <class Int, std::size_t bytes>
struct NativeVec {
    typedef Int type __attribute__((vector_size(bytes)));
};

// A set of lanes: each lane is all ones or all zeros.
template <class Int, std::size_t bytes>
struct Mask {
    using Native = typename NativeVec<std::make_signed_t<Int>, bytes>::type;
    Native v;
};

template <class Int, std::size_t bytes = kVectorBytes>
struct Vec {
    using Lane = Int;
    using Unsigned = std::make_unsigned_t<Int>;
    using Native = typename NativeVec<Int, bytes>::type;
    using NativeUnsigned = typename NativeVec<Unsigned, bytes>::type;
    static constexpr std::size_t kLanes = bytes / sizeof(Int), kBytes = bytes;
    Native v;

    MAXOPS_INLINE static Vec splat(Int value) { return {value - Native{}}; }
    MAXOPS_INLINE static Vec load(const void* from) {
        Vec loaded;
        __builtin_memcpy(&loaded.v, from, bytes);
        return loaded;
    }
};

template <class Int, std::size_t bytes>
MAXOPS_INLINE void store(void* to, Vec<Int, bytes> a) {
    __builtin_memcpy(to, &a.v, bytes);
}

// Reinterprets the bits as lanes of another type.
template <class To, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<To, bytes> as(Vec<Int, bytes> a) {
    return {(typename Vec<To, bytes>::Native)a.v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> as_lanes(Mask<Int, bytes> mask) {
    return {(typename Vec<Int, bytes>::Native)mask.v};
}

// Sums and differences wrap around.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> add(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using V = Vec<Int, bytes>;
    return {(typename V::Native)((typename V::NativeUnsigned)a.v + (typename V::NativeUnsigned)b.v)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> sub(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using V = Vec<Int, bytes>;
    return {(typename V::Native)((typename V::NativeUnsigned)a.v - (typename V::NativeUnsigned)b.v)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> bit_and(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {a.v & b.v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> bit_or(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {a.v | b.v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> bit_xor(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {a.v ^ b.v};
}
// Shifts of each lane. Right shifts are arithmetic for signed types.
template <int count, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> shift_left(Vec<Int, bytes> a) {
    using V = Vec<Int, bytes>;
    return {(typename V::Native)((typename V::NativeUnsigned)a.v << count)};
}
template <int count, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> shift_right(Vec<Int, bytes> a) {
    return {a.v >> count};
}

// For signed and unsigned types: a logical right shift, and the sign bit in all bits of its lane.
template <int count, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> unsigned_shift_right(Vec<Int, bytes> a) {
    return as<Int>(shift_right<count>(as<std::make_unsigned_t<Int>>(a)));
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> sign_lanes(Vec<Int, bytes> a) {
    return as<Int>(shift_right<8 * sizeof(Int) - 1>(as<std::make_signed_t<Int>>(a)));
}

template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> less(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {(typename Mask<Int, bytes>::Native)(a.v < b.v)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> equal(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {(typename Mask<Int, bytes>::Native)(a.v == b.v)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> at_least(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {(typename Mask<Int, bytes>::Native)((a.v < b.v ? b.v : a.v) == a.v)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> either(Mask<Int, bytes> a, Mask<Int, bytes> b) {
    return {a.v | b.v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> select(Mask<Int, bytes> where, Vec<Int, bytes> yes, Vec<Int, bytes> no) {
    using Native = typename Vec<Int, bytes>::Native;
    return {((Native)where.v & yes.v) | (~(Native)where.v & no.v)};
}
// `yes` where `where` is negative, else `no`.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> select_negative(Vec<Int, bytes> where, Vec<Int, bytes> yes,
                                              Vec<Int, bytes> no) {
    return select(less(where, Vec<Int, bytes>::splat(0)), yes, no);
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> max(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {a.v < b.v ? b.v : a.v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> min(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return {a.v < b.v ? a.v : b.v};
}

// max(a, b) where the mask is set, else `a`.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> max_where(Mask<Int, bytes> where, Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return select(where, max(a, b), a);
}
// The same mask for lanes of another signedness.
template <class V, class Int, std::size_t bytes>
MAXOPS_INLINE Mask<typename V::Lane, bytes> same_lanes(Mask<Int, bytes> mask) {
    return {mask.v};
}

// Unsigned operations, whatever the type of the lanes.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> unsigned_at_least(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using U = std::make_unsigned_t<Int>;
    return {at_least(as<U>(a), as<U>(b)).v};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> unsigned_max(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using U = std::make_unsigned_t<Int>;
    return as<Int>(max(as<U>(a), as<U>(b)));
}

// Returns `a`. The hook for AVX2 keeps operations on the result after the code above it.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> in_step(Vec<Int, bytes> a) {
    return a;
}

// ---------------------------------------------------------------------------- float lanes

template <std::size_t itemsize>
struct FloatOf;
template <>
struct FloatOf<4> {
    using type = float;
};
template <>
struct FloatOf<8> {
    using type = double;
};
template <class Int, std::size_t bytes>
using NativeFloats = typename NativeVec<typename FloatOf<sizeof(Int)>::type, bytes>::type;

// `a` where it is greater, else `b` (also for two zeros, and if either is a NaN). Uses the processor's float
// comparison, which obeys the floating-point modes.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> float_max(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using F = NativeFloats<Int, bytes>;
    const F x = (F)a.v, y = (F)b.v;
    return {(typename Vec<Int, bytes>::Native)(x > y ? x : y)};
}
// Where `a` or `b` is a NaN.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Mask<Int, bytes> unordered(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    using F = NativeFloats<Int, bytes>;
    const F x = (F)a.v, y = (F)b.v;
    return {(typename Mask<Int, bytes>::Native)((x != x) | (y != y))};
}

// Whether float_max() orders -0 below +0, so that the order of two zeros does not matter.
template <class V>
struct ZerosApart : std::false_type {};

template <class Int, std::size_t bytes>
MAXOPS_INLINE bool any(Mask<Int, bytes> mask) {
    const auto words = as<std::uint64_t>(as_lanes(mask));
    std::uint64_t all = 0;
    for (std::size_t k = 0; k < bytes / 8; ++k) all |= words.v[k];
    return all != 0;
}

// ---------------------------------------------------------------------------- halves, blocks and shuffles

template <class Int, std::size_t bytes, std::size_t... lane>
MAXOPS_INLINE Vec<Int, 2 * bytes> joined(Vec<Int, bytes> low, Vec<Int, bytes> high,
                                         std::index_sequence<lane...>) {
    return {__builtin_shufflevector(low.v, high.v, lane...)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, 2 * bytes> join(Vec<Int, bytes> low, Vec<Int, bytes> high) {
    return joined(low, high, std::make_index_sequence<2 * bytes / sizeof(Int)>{});
}
template <std::size_t first, class Int, std::size_t bytes, std::size_t... lane>
MAXOPS_INLINE Vec<Int, bytes / 2> part(Vec<Int, bytes> a, std::index_sequence<lane...>) {
    return {__builtin_shufflevector(a.v, a.v, (first + lane)...)};
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes / 2> low_half(Vec<Int, bytes> a) {
    return part<0>(a, std::make_index_sequence<bytes / sizeof(Int) / 2>{});
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes / 2> high_half(Vec<Int, bytes> a) {
    constexpr std::size_t kHalf = bytes / sizeof(Int) / 2;
    return part<kHalf>(a, std::make_index_sequence<kHalf>{});
}

// Lane i of the result is lane Lanes::of(i) of the concatenation of `a` and `b`.
template <class Lanes, class Int, std::size_t bytes, std::size_t... lane>
MAXOPS_INLINE Vec<Int, bytes> shuffled(Vec<Int, bytes> a, Vec<Int, bytes> b, std::index_sequence<lane...>) {
    return {__builtin_shufflevector(a.v, b.v, Lanes::template of<bytes / sizeof(Int)>(lane)...)};
}
template <class Lanes, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> shuffle(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return shuffled<Lanes>(a, b, std::make_index_sequence<bytes / sizeof(Int)>{});
}

// Interleaves the lower (or upper) halves of `a` and `b` within each block of 16 bytes.
template <std::size_t itemsize, bool upper>
struct Interleaved {
    static constexpr std::size_t kBlock = 16 / itemsize;
    template <std::size_t lanes>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>(lane / kBlock * kBlock + (upper ? kBlock / 2 : 0) + lane % kBlock / 2 +
                                lane % 2 * lanes);
    }
};
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> interleave_low(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return shuffle<Interleaved<sizeof(Int), false>>(a, b);
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> interleave_high(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return shuffle<Interleaved<sizeof(Int), true>>(a, b);
}
// The even (or odd) blocks of 16 bytes: those of `a`, then those of `b`.
template <std::size_t itemsize, std::size_t first>
struct SecondBlocks {
    static constexpr std::size_t kBlock = 16 / itemsize;
    template <std::size_t lanes>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>((2 * (lane / kBlock) + first) * kBlock + lane % kBlock);
    }
};
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> even_blocks(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return shuffle<SecondBlocks<sizeof(Int), 0>>(a, b);
}
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> odd_blocks(Vec<Int, bytes> a, Vec<Int, bytes> b) {
    return shuffle<SecondBlocks<sizeof(Int), 1>>(a, b);
}
// Swaps lanes within each block of 16 bytes: lane i of the result is lane i ^ distance.
template <std::size_t distance>
struct Swapped {
    template <std::size_t>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>(lane ^ distance);
    }
};
template <std::size_t distance, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> swap(Vec<Int, bytes> a) {
    return shuffle<Swapped<distance>>(a, a);
}

// A shuffle of lanes as a shuffle of words of 4 bytes. Within blocks of 16 bytes, compilers then select the
// instruction that does not cross blocks, which takes a third of the time.
template <class Lanes, std::size_t words>
struct ByWords {
    template <std::size_t lanes>
    static constexpr int of(std::size_t word) {
        return static_cast<int>(
            static_cast<std::size_t>(Lanes::template of<lanes / words>(word / words)) * words + word % words);
    }
};
template <class Lanes, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> shuffle_words(Vec<Int, bytes> a) {
    const auto words = as<std::uint32_t>(a);
    return as<Int>(shuffle<ByWords<Lanes, sizeof(Int) / 4>>(words, words));
}

// Moves lanes up by `distance` in each block of 16 bytes; the block's first lane fills the gap.
template <std::size_t itemsize, std::size_t distance>
struct MovedUp {
    template <std::size_t>
    static constexpr int of(std::size_t lane) {
        constexpr std::size_t kBlock = 16 / itemsize;
        return static_cast<int>(lane % kBlock < distance ? lane / kBlock * kBlock : lane - distance);
    }
};
template <std::size_t distance, class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> moved_up(Vec<Int, bytes> a) {
    return shuffle_words<MovedUp<sizeof(Int), distance>>(a);
}
template <std::size_t itemsize>
struct LastOfBlock {
    template <std::size_t>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>(lane | (16 / itemsize - 1));
    }
};
template <std::size_t itemsize>
struct FirstBlock {
    template <std::size_t>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>(lane % (16 / itemsize));
    }
};
// Splats the last lane of the first 16 bytes. Two shuffles, within blocks and then of blocks, are faster on
// AVX2 than one shuffle across blocks.
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> splat_low_last(Vec<Int, bytes> a) {
    a = shuffle_words<LastOfBlock<sizeof(Int)>>(a);
    return shuffle<FirstBlock<sizeof(Int)>>(a, a);
}
template <std::size_t itemsize>
struct LastBlock {
    template <std::size_t lanes>
    static constexpr int of(std::size_t lane) {
        return static_cast<int>(lanes - 16 / itemsize + lane % (16 / itemsize));
    }
};
template <class Int, std::size_t bytes>
MAXOPS_INLINE Vec<Int, bytes> splat_last(Vec<Int, bytes> a) {
    a = shuffle_words<LastOfBlock<sizeof(Int)>>(a);
    return shuffle<LastBlock<sizeof(Int)>>(a, a);
}

// The bitwise OR of all lanes.
template <class Int, std::size_t bytes>
MAXOPS_INLINE std::uint64_t any_bits(Vec<Int, bytes> a) {
    if constexpr (bytes > 16) {
        return any_bits(bit_or(low_half(a), high_half(a)));
    } else {
        const auto words = as<std::uint64_t>(a);
        const std::uint64_t all = words.v[0] | words.v[1];
        return sizeof(Int) == 8 ? all : (all | all >> 32) & 0xFFFFFFFF;
    }
}

// Loads V::kLanes narrower items and widens each to a lane.
template <class V, class Item>
MAXOPS_INLINE V load_widened(const void* from) {
    if constexpr (sizeof(Item) == sizeof(typename V::Lane)) {
        return V::load(from);
    } else {
        typename NativeVec<Item, V::kLanes * sizeof(Item)>::type items;
        __builtin_memcpy(&items, from, sizeof items);
        using Wide = std::conditional_t<std::is_signed_v<Item>, std::make_signed_t<typename V::Lane>,
                                        std::make_unsigned_t<typename V::Lane>>;
        return as<typename V::Lane>(
            Vec<Wide, V::kBytes>{__builtin_convertvector(items, typename Vec<Wide, V::kBytes>::Native)});
    }
}

// Moves the lanes outside a mask to the front. The lanes after them are unspecified.
template <class V>
struct Compression;
template <class Int, std::size_t bytes>
struct Compression<Vec<Int, bytes>> {
    Mask<Int, bytes> left_out;

    MAXOPS_INLINE unsigned count() const {
        unsigned kept = 0;
        for (std::size_t k = 0; k < bytes / sizeof(Int); ++k) kept += left_out.v[k] == 0 ? 1 : 0;
        return kept;
    }
    template <class Any>
    MAXOPS_INLINE Vec<Any, bytes> compress(Vec<Any, bytes> a) const {
        std::size_t to = 0;
        for (std::size_t k = 0; k < bytes / sizeof(Int); ++k)
            if (left_out.v[k] == 0) a.v[to++] = a.v[k];
        return a;
    }
};

template <class Int, std::size_t bytes>
MAXOPS_INLINE Int highest_lane(Vec<Int, bytes> a) {
    if constexpr (bytes > 16) {
        return highest_lane(max(low_half(a), high_half(a)));
    } else {
        using Words = std::uint32_t;
        a = max(a, as<Int>(swap<2>(as<Words>(a))));
        if constexpr (sizeof(Int) <= 4) a = max(a, as<Int>(swap<1>(as<Words>(a))));
        if constexpr (sizeof(Int) <= 2) a = max(a, as<Int>(shift_right<16>(as<Words>(a))));
        if constexpr (sizeof(Int) == 1) a = max(a, as<Int>(shift_right<8>(as<Words>(a))));
        return a.v[0];
    }
}

// ---------------------------------------------------------------------------- parts of a vector

template <class Word>
MAXOPS_INLINE Word load_word(const char* from) {
    Word word;
    __builtin_memcpy(&word, from, sizeof word);
    return word;
}
template <class Word>
MAXOPS_INLINE void store_word(char* to, std::uint64_t word) {
    const auto low = static_cast<Word>(word);
    __builtin_memcpy(to, &low, sizeof low);
}

// Fewer items than a vector has lanes: at least `least` bytes, but fewer than 2 * least. Every lane contains
// one of the items: load() repeats two words (or half vectors), which may overlap. The first word becomes the
// low half of each pair, because the machine is little-endian.
template <class V, std::size_t least>
struct Piece;
template <class Int, std::size_t width, std::size_t least>
struct Piece<Vec<Int, width>, least> {
    using V = Vec<Int, width>;
    std::size_t bytes;

    MAXOPS_INLINE V load(const void* from, V) const {
        auto* first = static_cast<const char*>(from);
        auto* last = first + bytes - least;
        if constexpr (width > 16) {
            using Half = Vec<Int, width / 2>;
            if constexpr (2 * least == width) {
                return join(Half::load(first), Half::load(last));
            } else {
                const Half half = Piece<Half, least>{bytes}.load(from, Half{});
                return join(half, half);
            }
        } else if constexpr (least == 8) {
            using Words = Vec<std::uint64_t, 16>;
            return as<Int>(Words{{load_word<std::uint64_t>(first), load_word<std::uint64_t>(last)}});
        } else if constexpr (least == 4) {
            using Words = Vec<std::uint64_t, 16>;
            return as<Int>(Words::splat(std::uint64_t{load_word<std::uint32_t>(last)} << 32 |
                                        load_word<std::uint32_t>(first)));
        } else if constexpr (least == 2) {
            using Words = Vec<std::uint32_t, 16>;
            return as<Int>(Words::splat(std::uint32_t{load_word<std::uint16_t>(last)} << 16 |
                                        std::uint32_t{load_word<std::uint16_t>(first)}));
        } else {
            return as<Int>(Vec<std::uint8_t, 16>::splat(load_word<std::uint8_t>(first)));
        }
    }
    // Stores the items where load() read them.
    MAXOPS_INLINE void store(void* to, V a) const {
        auto* first = static_cast<char*>(to);
        auto* last = first + bytes - least;
        if constexpr (width > 16) {
            using Half = Vec<Int, width / 2>;
            if constexpr (2 * least == width) {
                MAXOPS_ISA::store(first, low_half(a));
                MAXOPS_ISA::store(last, high_half(a));
            } else {
                Piece<Half, least>{bytes}.store(to, low_half(a));
            }
        } else {
            const auto words = as<std::uint64_t>(a);
            if constexpr (least == 8) {
                store_word<std::uint64_t>(first, words.v[0]);
                store_word<std::uint64_t>(last, words.v[1]);
            } else if constexpr (least == 4) {
                store_word<std::uint32_t>(first, words.v[0]);
                store_word<std::uint32_t>(last, words.v[0] >> 32);
            } else if constexpr (least == 2) {
                store_word<std::uint16_t>(first, words.v[0]);
                store_word<std::uint16_t>(last, words.v[0] >> 16);
            } else {
                store_word<std::uint8_t>(first, words.v[0]);
            }
        }
    }
};

// Calls body(piece) with the piece for `items` items: at least one, but fewer than a vector has lanes.
template <class V>
struct Pieces {
    template <class Body>
    MAXOPS_INLINE static auto with(std::size_t items, const Body& body) {
        constexpr std::size_t kItem = sizeof(typename V::Lane);
        const std::size_t bytes = items * kItem;
        if constexpr (V::kBytes > 32)
            if (bytes >= 32) return body(Piece<V, 32>{bytes});
        if constexpr (V::kBytes > 16)
            if (bytes >= 16) return body(Piece<V, 16>{bytes});
        if constexpr (kItem < 8)
            if (bytes < 8) {
                if constexpr (kItem < 4)
                    if (bytes < 4) {
                        if constexpr (kItem < 2)
                            if (bytes < 2) return body(Piece<V, 1>{bytes});
                        return body(Piece<V, 2>{bytes});
                    }
                return body(Piece<V, 4>{bytes});
            }
        return body(Piece<V, 8>{bytes});
    }
};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

#include "vec_x86.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// If the floating-point modes are unknown, kernels compare integers only.
#ifdef MAXOPS_HAS_FLOAT_MODES
constexpr bool kHasFloatModes = true;
#else
constexpr bool kHasFloatModes = false;
inline bool float_modes_are_plain() {
    return false;
}
#endif
// Loads at least one item, but fewer than a vector has lanes. Every lane contains an item or a lane of
// `other`.
template <class V>
MAXOPS_INLINE V load_some(const void* from, std::size_t items, V other) {
    return Pieces<V>::with(items, [&](auto piece) { return piece.load(from, other); });
}

#ifdef MAXOPS_HAS_MASKED_MEMORY
constexpr bool kHasMaskedMemory = true;
#else
constexpr bool kHasMaskedMemory = false;
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
