// The one order behind every operator: bits <-> key, by compare and subtract only.
//
// A key is an integer whose ordinary order is the order that semantics.md gives to the values:
//   floats:   -Inf < negative < -0 < +0 < positive < +Inf < every NaN
//   integers: themselves
// Nothing here touches a floating-point register, so subnormals, signalling NaNs and the
// processor's rounding and flushing modes cannot change a result.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "isa.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class Int, Int positive_infinity>
struct FloatOrder {
    using Bits = Int;
    using Key = Int;
    static constexpr bool is_float = true;

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
    // by a constant that puts +0 next to -0. The result is a bijection.
    static constexpr U kNegativeBase = static_cast<U>(kMinusInfinity - kSign);
    static constexpr U kPositiveStep = static_cast<U>(kMinusInfinity - kSign - kSign + 1);

    static constexpr Key key(Bits bits) {
        return static_cast<Key>(bits < 0 ? static_cast<U>(kNegativeBase - static_cast<U>(bits))
                                         : static_cast<U>(static_cast<U>(bits) + kPositiveStep));
    }

    static constexpr Key kLowestKey = std::numeric_limits<Key>::min();  // of -Inf
    static constexpr Key kMinusZeroKey = static_cast<Key>(kNegativeBase - kSign);
    static constexpr Key kInfinityKey = static_cast<Key>(kInfinity + kPositiveStep);
    static constexpr Key kNaNKey = static_cast<Key>(static_cast<U>(kNaN) + kPositiveStep);
    static constexpr Key kHighestKey = kNaNKey;  // nothing above it gives another result

    // The inverse of key(), but that every NaN comes back as the one quiet NaN.
    static constexpr Bits bits(Key key) {
        Bits number =
            static_cast<Bits>(key <= kMinusZeroKey ? static_cast<U>(kNegativeBase - static_cast<U>(key))
                                                   : static_cast<U>(static_cast<U>(key) - kPositiveStep));
        return key > kInfinityKey ? kNaN : number;
    }
};

template <class Int>
struct IntegerOrder {
    using Bits = Int;
    using Key = Int;
    static constexpr bool is_float = false;
    static constexpr Bits kLowestFinite = std::numeric_limits<Int>::min();
    static constexpr Bits kZero = 0;
    static constexpr Key kLowestKey = std::numeric_limits<Int>::min();
    static constexpr Key kHighestKey = std::numeric_limits<Int>::max();
    static constexpr Key key(Bits bits) { return bits; }
    static constexpr Bits bits(Key key) { return key; }
};

// NumPy lets a bool's byte be any; all but 0 are True.
struct BoolOrder : IntegerOrder<std::uint8_t> {
    static constexpr Key kHighestKey = 1;
    static constexpr Key key(Bits bits) { return bits != 0; }
};

using Float16 = FloatOrder<std::int16_t, 0x7C00>;
using BFloat16 = FloatOrder<std::int16_t, 0x7F80>;
using Float32 = FloatOrder<std::int32_t, 0x7F800000>;
using Float64 = FloatOrder<std::int64_t, 0x7FF0000000000000>;

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
