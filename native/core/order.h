// The one order behind every operator: bits <-> key, by compare and subtract only.
//
// A key is an integer whose ordinary order is the order that semantics.md gives to the values:
//   floats:   -Inf < negative < -0 < +0 < positive < +Inf < every NaN
//   floats with nan="ignore": every NaN < -Inf, and then the same
//   integers: themselves
// Nothing here touches a floating-point register, so subnormals, signalling NaNs and the
// processor's rounding and flushing modes cannot change a result.
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
    // The same order of a format of more bits, whose infinity has these.
    template <class Wide, Wide infinity>
    using Widened = FloatOrder<Wide, infinity, nan_is_lowest>;
    static_assert(sizeof(Int) >= 2,
                  "KeyLanes moves floats of 16 bits up by 16, and has no step for narrower ones");

    using U = std::make_unsigned_t<Int>;
    static constexpr U kSign = static_cast<U>(U{1} << (8 * sizeof(Int) - 1));
    static constexpr U kInfinity = static_cast<U>(positive_infinity);
    static constexpr U kMinusInfinity = static_cast<U>(kSign + kInfinity);
    // The lowest bit of the exponent field; half of it is the bit that makes a NaN quiet.
    static constexpr U kExponentStep = static_cast<U>(kInfinity & (~kInfinity + 1));

    static constexpr Bits kNaN = static_cast<Bits>(kInfinity + kExponentStep / 2);
    static constexpr Bits kLowestFinite = static_cast<Bits>(kMinusInfinity - 1);
    static constexpr Bits kZero = 0;

    // Seen as unsigned integers, the negative numbers run from -0 = kSign up to -Inf, and past
    // it come the negative NaNs. Subtracting from a constant turns them round: -Inf gets the
    // lowest key of all, and the negative NaNs wrap past it to the highest. The others move up
    // by a constant that puts +0 next to -0. The result is a bijection. To ignore NaN is to move all keys up
    // by the number of NaNs, which wrap past the highest to the lowest.
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

    // The same values, but that every NaN is the one quiet NaN.
    template <class V>
    static constexpr V canonical(V bits) {
        const V magnitude = bit_and(bits, V::splat(static_cast<Bits>(kSign - 1)));
        return select(less(V::splat(static_cast<Bits>(kInfinity)), magnitude), V::splat(kNaN), bits);
    }

    static constexpr Key kMinusInfinityKey = static_cast<Key>(kNegativeBase - kMinusInfinity);
    static constexpr Key kMinusZeroKey = static_cast<Key>(kNegativeBase - kSign);
    static constexpr Key kInfinityKey = static_cast<Key>(kInfinity + kPositiveStep);
    static constexpr Key kNaNKey = static_cast<Key>(static_cast<U>(kNaN) + kPositiveStep);
    static constexpr Key kLowestKey = std::numeric_limits<Key>::min();  // of -Inf, or of the first NaN
    static constexpr Bits kLowest = static_cast<Bits>(ignores_nan ? kInfinity + 1 : kMinusInfinity);
    static constexpr Bits kEmpty = static_cast<Bits>(kMinusInfinity);  // the maximum of nothing
    // Nothing above it gives another result.
    static constexpr Key kHighestKey = ignores_nan ? kInfinityKey : kNaNKey;

    // The inverse of keys(), but that every NaN comes back as the one quiet NaN.
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

// NumPy lets a bool's byte be any; all but 0 are True.
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

// Orders that have kernels: all of them, but native/testing/races.cpp has arrays of int64 alone, whose ids
// are compared as unsigned integers, too.
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
