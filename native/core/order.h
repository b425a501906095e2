// The total order of every operator: maps bits to integer keys and back.
//
// The integer order of keys is the order of values in semantics.md:
//   floats:   -Inf < negative < -0 < +0 < positive < +Inf < every NaN
//   floats with nan="ignore": every NaN < -Inf, then the same
//   integers: the values themselves
// The mapping uses integer operations only, so subnormals, signalling NaNs and the processor's rounding and
// flush-to-zero modes cannot change a result.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../kernels/isa.h"
#include "scalar.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class Int, Int positive_infinity, bool nan_is_lowest = false>
struct FloatOrder {
    using Bits = Int;
    using Key = Int;
    static constexpr bool is_float = true;
    static constexpr bool ignores_nan = nan_is_lowest;
    using IgnoringNaN = FloatOrder<Int, positive_infinity, true>;
    // The same order for a wider format; `infinity` is the bits of its infinity.
    template <class Wide, Wide infinity>
    using Widened = FloatOrder<Wide, infinity, nan_is_lowest>;
    static_assert(sizeof(Int) >= 2,
                  "KeyLanes shifts 16-bit floats by 16 bits and does not support narrower formats");

    using U = std::make_unsigned_t<Int>;
    static constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(Int) - 1));
    static constexpr U kInfinity = static_cast<U>(positive_infinity);
    static constexpr U kMinusInfinity = static_cast<U>(kSign + kInfinity);
    // The lowest bit of the exponent; half of it is the quiet bit of a NaN.
    static constexpr U kExponentStep = static_cast<U>(kInfinity & (~kInfinity + 1));

    static constexpr Bits kNaN = static_cast<Bits>(kInfinity + kExponentStep / 2);
    static constexpr Bits kLowestFinite = static_cast<Bits>(kMinusInfinity - 1);
    static constexpr Bits kZero = 0;

    // As unsigned integers, the negative numbers run from -0 = kSign up to -Inf; the negative NaNs follow.
    // Subtraction from kNegativeBase reverses them: -Inf gets the lowest key, and the negative NaNs wrap past
    // it to the highest keys. The other bits move up by kPositiveStep, which puts +0 next to -0. The mapping
    // is a bijection. nan="ignore" moves all keys up by the number of NaNs, whose keys wrap to the lowest.
    static constexpr U kNaNs = static_cast<U>(2 * static_cast<U>(kSign - kInfinity - 1));
    static constexpr U kMoved = nan_is_lowest ? kNaNs : 0;
    static constexpr U kNegativeBase = static_cast<U>(kMinusInfinity - kSign + kMoved);
    static constexpr U kPositiveStep = static_cast<U>(kMinusInfinity - kSign - kSign + 1 + kMoved);

    template <class V>
    static constexpr V keys(V bits) {
        return select_negative(bits, sub(V::splat(static_cast<Key>(kNegativeBase)), bits),
                               add(bits, V::splat(static_cast<Key>(kPositiveStep))));
    }
    static constexpr Key key(Bits bits) { return keys(Scalar<Bits>{bits}).v; }

    // The same keys, for scalars: compilers turn keys() into a branch on the sign, which mispredicts.
    static constexpr U kNegativeOffset = static_cast<U>(kNegativeBase + 1 - kPositiveStep);
    template <class V>
    static constexpr V branchless_keys(V bits) {
        const V sign = sign_lanes(bits);
        const V ordered =
            add(bit_xor(bits, sign), bit_and(sign, V::splat(static_cast<Key>(kNegativeOffset))));
        return add(ordered, V::splat(static_cast<Key>(kPositiveStep)));
    }

    // The same bits, except that every NaN becomes the quiet NaN kNaN.
    template <class V>
    static constexpr V canonical(V bits) {
        const V magnitude = bit_and(bits, V::splat(static_cast<Bits>(kSign - 1)));
        return select(less(V::splat(static_cast<Bits>(kInfinity)), magnitude), V::splat(kNaN), bits);
    }

    static constexpr Key kMinusInfinityKey = static_cast<Key>(kNegativeBase - kMinusInfinity);
    static constexpr Key kMinusZeroKey = static_cast<Key>(kNegativeBase - kSign);
    static constexpr Key kInfinityKey = static_cast<Key>(kInfinity + kPositiveStep);
    static constexpr Key kNaNKey = static_cast<Key>(static_cast<U>(kNaN) + kPositiveStep);
    static constexpr Key kLowestKey = std::numeric_limits<Key>::min();  // key(kLowest)
    static constexpr Bits kLowest = static_cast<Bits>(ignores_nan ? kInfinity + 1 : kMinusInfinity);
    static constexpr Bits kEmpty = static_cast<Bits>(kMinusInfinity);  // the maximum of no elements
    // All keys from this one up represent the same value.
    static constexpr Key kHighestKey = ignores_nan ? kInfinityKey : kNaNKey;

    // The inverse of keys(), except that every NaN becomes the quiet NaN kNaN.
    template <class V>
    static constexpr V values(V keys) {
        const V number =
            select(less(V::splat(kMinusZeroKey), keys), sub(keys, V::splat(static_cast<Key>(kPositiveStep))),
                   sub(V::splat(static_cast<Key>(kNegativeBase)), keys));
        if constexpr (ignores_nan)
            return select(less(keys, V::splat(kMinusInfinityKey)), V::splat(kNaN), number);
        else
            return select(less(V::splat(kInfinityKey), keys), V::splat(kNaN), number);
    }
    static constexpr Bits bits(Key key) { return values(Scalar<Key>{key}).v; }
};

template <class Int>
struct IntegerOrder {
    using Bits = Int;
    using Key = Int;
    static constexpr bool is_float = false;
    static constexpr bool ignores_nan = false;
    static constexpr Bits kLowest = std::numeric_limits<Int>::min();
    static constexpr Bits kEmpty = kLowest;
    static constexpr Bits kLowestFinite = std::numeric_limits<Int>::min();
    static constexpr Bits kZero = 0;
    static constexpr Key kLowestKey = std::numeric_limits<Int>::min();
    static constexpr Key kHighestKey = std::numeric_limits<Int>::max();
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

// A NumPy bool may contain any byte; every byte except 0 is True.
struct BoolOrder : IntegerOrder<std::uint8_t> {
    static constexpr Key kHighestKey = 1;
    template <class V>
    static constexpr V keys(V bits) {
        return min(bits, V::splat(1));
    }
    template <class V>
    static constexpr V branchless_keys(V bits) {
        return keys(bits);
    }
    template <class V>
    static constexpr V canonical(V bits) {
        return keys(bits);
    }
    static constexpr Key key(Bits bits) { return keys(Scalar<Bits>{bits}).v; }
};

using Float16 = FloatOrder<std::int16_t, 0x7C00>;
using BFloat16 = FloatOrder<std::int16_t, 0x7F80>;
using Float32 = FloatOrder<std::int32_t, 0x7F800000>;
using Float64 = FloatOrder<std::int64_t, 0x7FF0000000000000>;

// Whether an order has kernels: all have, except in the build of native/testing/races.cpp. Its arrays are
// int64, and uint64 kernels check its ids.
#ifdef MAXOPS_RACES
template <class T>
constexpr bool kHasKernels =
    std::is_same_v<T, IntegerOrder<std::int64_t>> || std::is_same_v<T, IntegerOrder<std::uint64_t>>;
#else
template <class T>
constexpr bool kHasKernels = true;
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
