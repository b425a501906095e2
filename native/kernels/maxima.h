// The maximum of two lanes, and accumulators for the maximum of many. This is the arithmetic of every kernel,
// separate from memory access, over any type of lanes with the operations of vec.h.
#pragma once
#include <cstddef>
#include <type_traits>

#include "../core/order.h"
#include "../core/vec.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// T without float comparisons, for threads whose floating-point modes would change the compared values.
template <class T>
struct Bitwise : T {};

template <class T>
constexpr bool kComparesFloats =
    kHasFloatModes && T::is_float && !T::ignores_nan && sizeof(typename T::Bits) >= 4;
template <class T>
constexpr bool kComparesFloats<Bitwise<T>> = false;

// The accumulator for integers: their maximum. finalize() returns keys.
template <class T, class V>
struct IntegerMaxima {
    V high;

    MAXOPS_INLINE explicit IntegerMaxima(V x) : high(x) {}
    MAXOPS_INLINE IntegerMaxima(V x, V y) : high(max(x, y)) {}
    MAXOPS_INLINE void accumulate(V x) { high = max(high, x); }
    MAXOPS_INLINE void accumulate(V x, V y) { high = max(max(high, x), y); }
    MAXOPS_INLINE void merge(const IntegerMaxima& other) { accumulate(other.high); }
    // Whether a lane contains the highest value.
    MAXOPS_INLINE bool is_saturated() const {
        return any(equal(finalize(), V::splat(T::bits(T::kHighestKey))));
    }
    MAXOPS_INLINE V finalize() const { return T::keys(high); }
};

// For nan="ignore". Accumulates keys, because keys order NaN below -Inf.
template <class T, class V>
struct KeyMaxima {
    V high;

    MAXOPS_INLINE explicit KeyMaxima(V x) : high(T::keys(x)) {}
    MAXOPS_INLINE KeyMaxima(V x, V y) : high(max(T::keys(x), T::keys(y))) {}
    MAXOPS_INLINE void accumulate(V x) { high = max(high, T::keys(x)); }
    MAXOPS_INLINE void accumulate(V x, V y) {
        accumulate(x);
        accumulate(y);
    }
    MAXOPS_INLINE void merge(const KeyMaxima& other) { high = max(high, other.high); }
    MAXOPS_INLINE bool is_saturated() const { return any(equal(high, V::splat(T::kHighestKey))); }
    MAXOPS_INLINE V finalize() const { return T::values(high); }
};

// Accumulates floats as integers: their signed maximum, signed minimum and unsigned maximum suffice. If all
// numbers are negative, the signed minimum is the highest number, else the signed maximum is. An unsigned
// maximum above -Inf or a signed maximum above +Inf is a NaN.
template <class T, class V>
struct BitwiseMaxima {
    using Unsigned = std::make_unsigned_t<typename T::Bits>;
    V high, low, top;  // top: the unsigned maximum

    MAXOPS_INLINE explicit BitwiseMaxima(V x) : high(x), low(x), top(x) {}
    MAXOPS_INLINE BitwiseMaxima(V x, V y) : high(max(x, y)), low(min(x, y)), top(unsigned_max(x, y)) {}
    MAXOPS_INLINE void accumulate(V x) { merge(BitwiseMaxima(x)); }
    MAXOPS_INLINE void accumulate(V x, V y) {
        accumulate(x);
        accumulate(y);
    }
    MAXOPS_INLINE void merge(const BitwiseMaxima& other) {
        high = max(high, other.high);
        low = min(low, other.low);
        top = unsigned_max(top, other.top);
    }
    MAXOPS_INLINE bool is_saturated() const { return any(nan()); }
    MAXOPS_INLINE V finalize() const {
        const V number = select_negative(high, low, high);
        return select(nan(), V::splat(T::kNaN), number);
    }

private:
    MAXOPS_INLINE auto nan() const {
        return either(unsigned_at_least(top, V::splat(static_cast<typename T::Bits>(T::kMinusInfinity + 1))),
                      less(V::splat(static_cast<typename T::Bits>(T::kInfinity)), high));
    }
};

// Accumulates floats with the processor's comparison, which equates -0 and +0 and may lose a NaN. `nan`
// therefore marks NaNs, and `all` is the AND of all inputs: a maximum of zero is -0 if all inputs have the
// sign bit.
template <class T, class V>
struct FloatMaxima {
    V high, all;
    decltype(unordered(V{}, V{})) nan;

    MAXOPS_INLINE explicit FloatMaxima(V x) : high(x), all(x), nan(unordered(x, x)) {}
    MAXOPS_INLINE FloatMaxima(V x, V y) : high(float_max(x, y)), all(bit_and(x, y)), nan(unordered(x, y)) {}
    MAXOPS_INLINE void accumulate(V x) { merge(FloatMaxima(x)); }
    MAXOPS_INLINE void accumulate(V x, V y) { merge(FloatMaxima(x, y)); }
    MAXOPS_INLINE void merge(const FloatMaxima& other) {
        high = float_max(high, other.high);
        if constexpr (!ZerosApart<V>::value) all = bit_and(all, other.all);
        nan = either(nan, other.nan);
    }
    MAXOPS_INLINE bool is_saturated() const { return any(nan); }
    MAXOPS_INLINE V finalize() const {
        const V magnitude = V::splat(static_cast<typename T::Bits>(T::kSign - 1));
        const V number = ZerosApart<V>::value ? high : bit_and(high, bit_or(all, magnitude));
        return select(nan, V::splat(T::kNaN), number);
    }
};

template <class T, class V>
struct MaximaOf {
    using OfFloats =
        std::conditional_t<T::ignores_nan, KeyMaxima<T, V>,
                           std::conditional_t<kComparesFloats<T>, FloatMaxima<T, V>, BitwiseMaxima<T, V>>>;
    using type = std::conditional_t<T::is_float, OfFloats, IntegerMaxima<T, V>>;
};
template <class T, class V = Vec<typename T::Bits>>
using Maxima = typename MaximaOf<T, V>::type;

// The maximum of two lanes. A float comparison returns the second of two zeros, so this takes both argument
// orders and ANDs the results: -0 only if both are -0.
template <class T, class V>
MAXOPS_INLINE V max_of_two(V x, V y) {
    if constexpr (kComparesFloats<T>)
        return select(unordered(x, y), V::splat(T::kNaN),
                      ZerosApart<V>::value ? float_max(x, y) : bit_and(float_max(x, y), float_max(y, x)));
    else
        return Maxima<T, V>(x, y).finalize();
}

// The keys of a result of Maxima::finalize().
template <class T, class V>
MAXOPS_INLINE V keys_of(const V& finalized) {
    if constexpr (T::is_float)
        return T::keys(finalized);
    else
        return finalized;
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
