// An element type whose values are sets of colours and whose maximum is their union: what is needed to show which
// elements a kernel's output is the maximum of.
//
// A kernel is a template over its type; what it does with a lane is move it, and take the maximum by the operations of
// kernels/maxima.h. `Colour` offers nothing else: no comparison, no arithmetic, no branch on its value compiles. So the
// same text computes, for any type whose maximum is associative, commutative and idempotent (order.cpp proves that of
// each), the maximum of the elements whose colours come out here. An element that is left out, taken twice where that
// matters, or put into another's place, shows by its colour.
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
    constexpr Colour(Word colours) : set(colours) {}  // NOLINT: lanes are read as words
    template <class Wider>  // a narrower lane of what was widened
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
#if defined(MAXOPS_AVX512)  // which has masks of its own
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

// Lanes of twice the width, whose upper halves count (kernels/reduce.h).
template <class Word>
struct Wider<Colour<Word>> {
    using type = Colour<typename Wider<Word>::type>;
};

// As an integer's order, and as a float's: what a state of Maxima is, is a set either way.
template <class Word, bool as_float>
struct ColourOrder {
    using Bits = Colour<Word>;
    using Key = Colour<Word>;
    using U = Word;
    static constexpr bool is_float = as_float;
    static constexpr bool ignores_nan = false;  // that order's state is one of keys, as an integer's
    static constexpr Bits kLowestFinite = Word{0}, kZero = Word{0};
    static constexpr Key kLowestKey = Word{0};  // of no colour: neutral
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

// Of what was seen, the colours; it stands in for the states of maxima.h, of which order.cpp shows that they stand for
// the maximum of what was seen.
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
