// A single lane: an integer with the operations of Vec (vec.h), for scalar loops.
#pragma once
#include <cstdint>
#include <type_traits>

#include "../kernels/isa.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// The integer of twice the width.
template <class Int>
struct Wider {
    using Signed = std::conditional_t<sizeof(Int) == 1, std::int16_t,
                                      std::conditional_t<sizeof(Int) == 2, std::int32_t, std::int64_t>>;
    using type = std::conditional_t<std::is_signed_v<Int>, Signed, std::make_unsigned_t<Signed>>;
};

template <class Int>
struct Scalar {
    using Lane = Int;
    Int v;

    static constexpr Scalar splat(Int value) { return {value}; }
};

// Sums and differences wrap around.
template <class Int>
constexpr Scalar<Int> add(Scalar<Int> a, Scalar<Int> b) {
    using U = std::make_unsigned_t<Int>;
    return {static_cast<Int>(static_cast<U>(static_cast<U>(a.v) + static_cast<U>(b.v)))};
}
template <class Int>
constexpr Scalar<Int> sub(Scalar<Int> a, Scalar<Int> b) {
    using U = std::make_unsigned_t<Int>;
    return {static_cast<Int>(static_cast<U>(static_cast<U>(a.v) - static_cast<U>(b.v)))};
}
template <class Int>
constexpr Scalar<Int> bit_and(Scalar<Int> a, Scalar<Int> b) {
    return {static_cast<Int>(a.v & b.v)};
}
template <class Int>
constexpr Scalar<Int> bit_xor(Scalar<Int> a, Scalar<Int> b) {
    return {static_cast<Int>(a.v ^ b.v)};
}
// Returns all ones for a negative lane, otherwise all zeros.
template <class Int>
constexpr Scalar<Int> sign_lanes(Scalar<Int> a) {
    return {static_cast<Int>(a.v >> (8 * sizeof(Int) - 1))};
}
template <class Int>
constexpr bool less(Scalar<Int> a, Scalar<Int> b) {
    return a.v < b.v;
}
template <class Int>
constexpr bool equal(Scalar<Int> a, Scalar<Int> b) {
    return a.v == b.v;
}
template <class Int>
constexpr Scalar<Int> select(bool where, Scalar<Int> yes, Scalar<Int> no) {
    return {where ? yes.v : no.v};
}
// `a` if `where`, else 0, without a branch.
template <class Int>
constexpr Scalar<Int> keep_if(bool where, Scalar<Int> a) {
    return {static_cast<Int>(a.v & ~(static_cast<Int>(where) - 1))};
}
template <class Int>
constexpr Scalar<Int> select_negative(Scalar<Int> where, Scalar<Int> yes, Scalar<Int> no) {
    return {where.v < 0 ? yes.v : no.v};
}
template <class Int>
constexpr Scalar<Int> max(Scalar<Int> a, Scalar<Int> b) {
    return {a.v < b.v ? b.v : a.v};
}
template <class Int>
constexpr Scalar<Int> min(Scalar<Int> a, Scalar<Int> b) {
    return {a.v < b.v ? a.v : b.v};
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
