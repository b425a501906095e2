// An element type whose values are sets of colours, and whose maximum is the union of two sets. If each input element
// has its own colour, the colours of an output show the elements that it is the maximum of.
//
// Kernels are templates over the element type. They only move lanes, and compute maxima with the operations of
// kernels/maxima.h. `Colour` has no other operations, so comparisons, arithmetic, and branches on its value do not
// compile. For each type whose maximum is associative, commutative and idempotent, the same template therefore computes
// the maximum of the elements whose colours are in the output. order.cpp proves these properties for all shipped types.
#pragma once
#include <cstdint>

#include "../../native/kernels/maxima.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class Word>
struct __attribute__((packed, may_alias)) Colour {
    Word set;

    constexpr Colour() = default;
    constexpr Colour(Word colours) : set(colours) {}  // NOLINT: implicit, because kernels read lanes as words
    template <class Wider>  // narrows a lane that was widened
    constexpr explicit Colour(Colour<Wider> wide) : set(static_cast<Word>(wide.set)) {}
    friend constexpr bool operator==(Colour a, Colour b) { return a.set == b.set; }
};

template <class Word>
struct Scalar<Colour<Word>> {
    using Lane = Colour<Word>;
    Colour<Word> v;
    static constexpr Scalar splat(Colour<Word> value) { return {value}; }
};
template <class Word>
constexpr Scalar<Colour<Word>> max(Scalar<Colour<Word>> a, Scalar<Colour<Word>> b) {
    return {static_cast<Word>(a.v.set | b.v.set)};
}

template <class Word>
constexpr Scalar<Colour<Word>> keep_if(bool where, Scalar<Colour<Word>> a) {
    return {where ? a.v : Colour<Word>{0}};
}

template <class Word, std::size_t bytes>
struct Mask<Colour<Word>, bytes> : Mask<Word, bytes> {};
#if defined(MAXOPS_AVX512)  // AVX-512 has its own masks
template <class Word>
struct Mask<Colour<Word>, 64> : Mask<Word, 64> {};
#endif

template <class Word, std::size_t bytes>
struct Vec<Colour<Word>, bytes> {
    using Lane = Colour<Word>;
    using Native = typename Vec<Word, bytes>::Native;
    using NativeUnsigned = Native;
    static constexpr std::size_t kLanes = bytes / sizeof(Word), kBytes = bytes;
    Native v;

    MAXOPS_INLINE static Vec splat(Lane value) { return {Vec<Word, bytes>::splat(value.set).v}; }
    MAXOPS_INLINE static Vec load(const void* from) { return {Vec<Word, bytes>::load(from).v}; }
};
template <class Word, std::size_t bytes>
MAXOPS_INLINE Vec<Colour<Word>, bytes> max(Vec<Colour<Word>, bytes> a, Vec<Colour<Word>, bytes> b) {
    return {a.v | b.v};
}

// A lane of twice the width, as kernels/reduce.h requires.
template <class Word>
struct Wider<Colour<Word>> {
    using type = Colour<typename Wider<Word>::type>;
};

// The order of sets of colours. With `as_float`, kernels use their code for floats, otherwise their code for integers.
template <class Word, bool as_float>
struct ColourOrder {
    using Bits = Colour<Word>;
    using Key = Colour<Word>;
    using U = Word;
    static constexpr bool is_float = as_float;
    static constexpr bool ignores_nan = false;  // with nan="ignore", kernels accumulate keys, as for integers
    static constexpr Bits kLowestFinite = Word{0}, kZero = Word{0};
    static constexpr Key kLowestKey = Word{0};  // the empty set, which is the neutral element
    static constexpr Key kHighestKey = static_cast<Word>(~Word{0});

    template <class V>
    static constexpr V keys(V bits) {
        return bits;
    }
    template <class V>
    static constexpr V branchless_keys(V bits) {
        return bits;
    }
    template <class V>
    static constexpr V canonical(V bits) {
        return bits;
    }
    template <class V>
    static constexpr V values(V keys) {
        return keys;
    }
    static constexpr Key key(Bits bits) { return bits; }
    static constexpr Bits bits(Key key) { return key; }
};

template <class Word, bool as_float>
constexpr bool kComparesFloats<ColourOrder<Word, as_float>> = false;

// Replaces the accumulators for floats with one that computes the union of all accumulated sets. order.cpp proves that
// the replaced accumulators compute the maximum of all accumulated elements.
template <class Word, class V>
struct MaximaOf<ColourOrder<Word, true>, V> {
    using type = IntegerMaxima<ColourOrder<Word, true>, V>;
};
template <class Word, class V>
struct MaximaOf<Bitwise<ColourOrder<Word, true>>, V> {
    using type = IntegerMaxima<ColourOrder<Word, true>, V>;
};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
