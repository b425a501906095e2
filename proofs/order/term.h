// Lanes that are terms of the solver Z3. The code in native/core/order.h and native/kernels/maxima.h uses lanes only
// through named operations, so it also compiles for these lanes. The proofs are therefore about the same source that is
// compiled into the kernels.
#pragma once
#include <z3++.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "../../native/kernels/maxima.h"

namespace maxops::proofs {

inline z3::context& context() {
    static z3::context only;
    return only;
}

// How the processor compares floats: with the vector extensions (x > y ? x : y), or with VRANGE, which orders -0 below
// +0. In these proofs, the result of VRANGE with a NaN is arbitrary. `instructions.cpp` compares both with the
// processor.
enum class Compare { kGreater, kRange };

// A bit vector of the width of Int. As in vec.h, comparisons are signed if Int is signed.
template <class Int, Compare compare = Compare::kGreater>
struct Term {
    using Lane = Int;
    static constexpr unsigned kBits = 8 * sizeof(Int);
    z3::expr e;

    Term() : Term(splat(0)) {}
    explicit Term(const z3::expr& bits) : e(bits) {}

    static Term splat(Int value) {
        constexpr std::uint64_t kMask = ~std::uint64_t{0} >> (64 - kBits);
        return Term(context().bv_val(static_cast<std::uint64_t>(value) & kMask, kBits));
    }
    static Term any(const char* name) { return Term(context().bv_const(name, kBits)); }
};

// A mask of one lane.
struct Truth {
    z3::expr e;
};

// The IEEE binary format of this width. No kernel compares 16-bit floats as floats.
inline z3::sort ieee(unsigned bits) {
    return bits == 32 ? context().fpa_sort(8, 24) : context().fpa_sort(11, 53);
}

#define MAXOPS_LANES template <class Int, Compare c>
#define MAXOPS_LANE const Term<Int, c>&

MAXOPS_LANES z3::expr is_less(MAXOPS_LANE a, MAXOPS_LANE b) {
    return std::is_signed_v<Int> ? z3::slt(a.e, b.e) : z3::ult(a.e, b.e);
}
MAXOPS_LANES Term<Int, c> add(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(a.e + b.e);
}
MAXOPS_LANES Term<Int, c> sub(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(a.e - b.e);
}
MAXOPS_LANES Term<Int, c> bit_and(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(a.e & b.e);
}
MAXOPS_LANES Term<Int, c> bit_or(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(a.e | b.e);
}
MAXOPS_LANES Term<Int, c> bit_xor(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(a.e ^ b.e);
}
MAXOPS_LANES Term<Int, c> sign_lanes(MAXOPS_LANE a) {
    return Term<Int, c>(z3::ashr(a.e, a.kBits - 1));
}
MAXOPS_LANES Truth less(MAXOPS_LANE a, MAXOPS_LANE b) {
    return {is_less(a, b)};
}
MAXOPS_LANES Truth equal(MAXOPS_LANE a, MAXOPS_LANE b) {
    return {a.e == b.e};
}
MAXOPS_LANES Truth unsigned_at_least(MAXOPS_LANE a, MAXOPS_LANE b) {
    return {z3::uge(a.e, b.e)};
}
inline Truth either(const Truth& a, const Truth& b) {
    return {a.e || b.e};
}
MAXOPS_LANES Term<Int, c> select(const Truth& where, MAXOPS_LANE yes, MAXOPS_LANE no) {
    return Term<Int, c>(z3::ite(where.e, yes.e, no.e));
}
MAXOPS_LANES Term<Int, c> select_negative(MAXOPS_LANE where, MAXOPS_LANE yes, MAXOPS_LANE no) {
    return Term<Int, c>(z3::ite(z3::slt(where.e, context().bv_val(0, where.kBits)), yes.e, no.e));
}
MAXOPS_LANES Term<Int, c> max(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(z3::ite(is_less(a, b), b.e, a.e));
}
MAXOPS_LANES Term<Int, c> min(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(z3::ite(is_less(a, b), a.e, b.e));
}
MAXOPS_LANES Term<Int, c> unsigned_max(MAXOPS_LANE a, MAXOPS_LANE b) {
    return Term<Int, c>(z3::ite(z3::ult(a.e, b.e), b.e, a.e));
}
MAXOPS_LANES Truth unordered(MAXOPS_LANE a, MAXOPS_LANE b) {
    const z3::sort format = ieee(a.kBits);
    return {a.e.mk_from_ieee_bv(format).mk_is_nan() || b.e.mk_from_ieee_bv(format).mk_is_nan()};
}
MAXOPS_LANES Term<Int, c> float_max(MAXOPS_LANE a, MAXOPS_LANE b) {
    const z3::sort format = ieee(a.kBits);
    const z3::expr x = a.e.mk_from_ieee_bv(format), y = b.e.mk_from_ieee_bv(format);
    const z3::expr greater = z3::ite(x > y, a.e, b.e);
    if constexpr (c == Compare::kGreater) {
        return Term<Int, c>(greater);
    } else {
        static int calls = 0;
        const z3::expr anything = context().bv_const(("vrange" + std::to_string(calls++)).c_str(), a.kBits);
        const z3::expr zeros = x.mk_is_zero() && y.mk_is_zero();
        return Term<Int, c>(
            z3::ite(x.mk_is_nan() || y.mk_is_nan(), anything, z3::ite(zeros, a.e & b.e, greater)));
    }
}
// any() must return a bool, but the mask of a term is symbolic. Therefore, any() stores the mask here and returns true.
// Proofs about code after a call of any() must assume that the stored mask is true.
inline z3::expr& last_asked() {
    static z3::expr only = context().bool_val(false);
    return only;
}
inline bool any(const Truth& mask) {
    last_asked() = mask.e;
    return true;
}

#undef MAXOPS_LANES
#undef MAXOPS_LANE

}  // namespace maxops::proofs

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class Int>
struct ZerosApart<proofs::Term<Int, proofs::Compare::kRange>> : std::true_type {};

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
