// Proves for all values that native/core/order.h and native/kernels/maxima.h follow the specification.
//
// The specification (docs/semantics.md) is: NaN propagates as the canonical quiet NaN, or is below every number with
// nan="ignore". -0 is below +0. Otherwise, the result has the bits of the greater value. This program states these
// rules in SMT-LIB's theory of floating point, and shares no source with the kernels. For the maximum of any number of
// elements, the proof is by induction: an invariant of the accumulator is true for one element and for two, remains
// true when two accumulators are merged, and implies that finalize() returns the maximum.
#include <string>

#include "solver.h"
#include "term.h"

namespace maxops::proofs {
namespace {

using namespace MAXOPS_ISA;

// ---------------------------------------------------------------------------- the specification

// The specification of a type in terms of its bits, without using order.h.
template <class T>
struct Sentence;

template <unsigned exponent_bits, unsigned significand_bits, bool ignores_nan>
struct FloatSentence {
    static constexpr unsigned kBits = exponent_bits + significand_bits;
    static z3::sort format() { return context().fpa_sort(exponent_bits, significand_bits); }
    static z3::expr number(const z3::expr& bits) { return bits.mk_from_ieee_bv(format()); }
    static z3::expr is_nan(const z3::expr& bits) { return number(bits).mk_is_nan(); }
    static z3::expr quiet_nan() {
        // all bits of the exponent, and the highest bit of the fraction
        return context().bv_val(((std::uint64_t{1} << (exponent_bits + 1)) - 1) << (significand_bits - 2), kBits);
    }
    static z3::expr canonical(const z3::expr& x) { return z3::ite(is_nan(x), quiet_nan(), x); }
    // Both arguments must be numbers, not NaN.
    static z3::expr is_below(const z3::expr& x, const z3::expr& y) {
        const z3::expr a = number(x), b = number(y);
        const z3::expr zeros = a.mk_is_zero() && b.mk_is_zero();
        return a < b || (zeros && is_negative(x) && !is_negative(y));
    }
    static z3::expr is_negative(const z3::expr& x) { return x.extract(kBits - 1, kBits - 1) == 1; }
    static z3::expr maximum(const z3::expr& x, const z3::expr& y) {
        const z3::expr of_numbers = z3::ite(is_below(x, y), y, x);
        if (!ignores_nan) return z3::ite(is_nan(x) || is_nan(y), quiet_nan(), of_numbers);
        return z3::ite(is_nan(x), canonical(y), z3::ite(is_nan(y), x, of_numbers));
    }
    static z3::expr infinity(bool is_negative) {
        const std::uint64_t exponent = (std::uint64_t{1} << exponent_bits) - 1;
        const std::uint64_t sign = is_negative ? std::uint64_t{1} << exponent_bits : 0;
        return context().bv_val((sign | exponent) << (significand_bits - 1), kBits);
    }
    static z3::expr neutral() { return ignores_nan ? quiet_nan() : infinity(true); }
    static z3::expr absorbing() { return ignores_nan ? infinity(false) : quiet_nan(); }
};
template <bool ignores_nan>
struct Sentence<FloatOrder<std::int16_t, Float16::kInfinity, ignores_nan>> : FloatSentence<5, 11, ignores_nan> {};
template <bool ignores_nan>
struct Sentence<FloatOrder<std::int16_t, BFloat16::kInfinity, ignores_nan>> : FloatSentence<8, 8, ignores_nan> {};
template <bool ignores_nan>
struct Sentence<FloatOrder<std::int32_t, Float32::kInfinity, ignores_nan>> : FloatSentence<8, 24, ignores_nan> {};
template <bool ignores_nan>
struct Sentence<FloatOrder<std::int64_t, Float64::kInfinity, ignores_nan>> : FloatSentence<11, 53, ignores_nan> {};

template <class T>
struct Sentence<Bitwise<T>> : Sentence<T> {};

template <class Int>
struct Sentence<IntegerOrder<Int>> {
    static constexpr unsigned kBits = 8 * sizeof(Int);
    static z3::expr canonical(const z3::expr& x) { return x; }
    // Compares the numbers that the bits represent.
    static z3::expr is_below(const z3::expr& x, const z3::expr& y) {
        return std::is_signed_v<Int> ? z3::slt(x, y) : z3::ult(x, y);
    }
    static z3::expr maximum(const z3::expr& x, const z3::expr& y) { return z3::ite(is_below(x, y), y, x); }
    static z3::expr neutral() { return context().bv_val(std::is_signed_v<Int> ? std::uint64_t{1} << (kBits - 1) : 0, kBits); }
    static z3::expr absorbing() {
        constexpr std::uint64_t kAll = ~std::uint64_t{0} >> (64 - kBits);
        return context().bv_val(std::is_signed_v<Int> ? kAll >> 1 : kAll, kBits);
    }
};
template <>
struct Sentence<BoolOrder> {  // every byte except 0 is True
    static z3::expr one() { return context().bv_val(1, 8); }
    static z3::expr zero() { return context().bv_val(0, 8); }
    static z3::expr canonical(const z3::expr& x) { return z3::ite(x == 0, zero(), one()); }
    static z3::expr is_below(const z3::expr& x, const z3::expr& y) { return x == 0 && y != 0; }
    static z3::expr maximum(const z3::expr& x, const z3::expr& y) { return z3::ite(x == 0 && y == 0, zero(), one()); }
    static z3::expr neutral() { return zero(); }
    static z3::expr absorbing() { return one(); }
};

// ---------------------------------------------------------------------------- the invariants of accumulators

// Whether an accumulator is a valid state for elements whose specified maximum is m.
template <class T, class V>
z3::expr stands_for(const IntegerMaxima<T, V>& s, const z3::expr& m) {
    return Sentence<T>::canonical(s.high.e) == m;
}
template <class T, class V>
z3::expr stands_for(const KeyMaxima<T, V>& s, const z3::expr& m) {
    return T::values(s.high).e == m;
}
template <class T, class V>
z3::expr stands_for(const BitwiseMaxima<T, V>& s, const z3::expr& m) {
    using S = Sentence<T>;
    const z3::expr has_nan = z3::ugt(s.top.e, V::splat(static_cast<typename T::Bits>(T::kMinusInfinity)).e) ||
                             s.high.e > V::splat(static_cast<typename T::Bits>(T::kInfinity)).e;
    return s.low.e <= s.high.e && has_nan == S::is_nan(m) && z3::implies(S::is_nan(m), m == S::quiet_nan()) &&
           z3::implies(!has_nan, z3::ite(s.high.e < 0, s.low.e, s.high.e) == m);
}
template <class T, class V>
z3::expr stands_for(const FloatMaxima<T, V>& s, const z3::expr& m) {
    using S = Sentence<T>;
    const z3::expr high = s.high.e, all = s.all.e;
    const z3::expr equal = S::number(high) == S::number(m);  // SMT-LIB's = distinguishes -0 from +0
    const z3::expr zeros = S::number(high).mk_is_zero() && S::number(m).mk_is_zero();
    const z3::expr is_number = ZerosApart<V>::value
                                   ? high == m
                                   : (equal || zeros) && S::is_negative(all) == S::is_negative(m) &&
                                         z3::implies(S::is_negative(m), S::is_negative(high));
    return s.nan.e == S::is_nan(m) && z3::implies(S::is_nan(m), m == S::quiet_nan()) &&
           z3::implies(!S::is_nan(m), is_number);
}

// Returns an accumulator in an arbitrary state.
template <class T, class V>
IntegerMaxima<T, V> some(IntegerMaxima<T, V>*, const std::string& name) {
    return IntegerMaxima<T, V>(V::any((name + ".high").c_str()));
}
template <class T, class V>
KeyMaxima<T, V> some(KeyMaxima<T, V>*, const std::string& name) {
    KeyMaxima<T, V> state(V::any((name + ".x").c_str()));
    state.high = V::any((name + ".high").c_str());
    return state;
}
template <class T, class V>
BitwiseMaxima<T, V> some(BitwiseMaxima<T, V>*, const std::string& name) {
    BitwiseMaxima<T, V> state(V::any((name + ".high").c_str()));
    state.low = V::any((name + ".low").c_str());
    state.top = V::any((name + ".top").c_str());
    return state;
}
template <class T, class V>
FloatMaxima<T, V> some(FloatMaxima<T, V>*, const std::string& name) {
    FloatMaxima<T, V> state(V::any((name + ".high").c_str()));
    state.all = V::any((name + ".all").c_str());
    state.nan = {context().bool_const((name + ".nan").c_str())};
    return state;
}

// ---------------------------------------------------------------------------- the goals

// The specified maximum does not depend on the order or repetition of elements, or on additional neutral elements.
template <class T>
void algebra(const std::string& type) {
    using S = Sentence<T>;
    using V = Term<typename T::Bits>;
    const z3::expr x = V::any("x").e, y = V::any("y").e, z = V::any("z").e;
    prove(type + ": the maximum is commutative", S::maximum(x, y) == S::maximum(y, x));
    prove(type + ": associative", S::maximum(S::maximum(x, y), z) == S::maximum(x, S::maximum(y, z)));
    prove(type + ": idempotent", S::maximum(x, x) == S::canonical(x));
    prove(type + ": the lowest value is neutral", S::maximum(x, S::neutral()) == S::canonical(x));
    prove(type + ": the highest value is absorbing", S::maximum(x, S::absorbing()) == S::absorbing());
    prove(type + ": it is one of the two, canonical",
          S::maximum(x, y) == S::canonical(x) || S::maximum(x, y) == S::canonical(y));
}

// The keys of order.h are in the order of the values, and determine the values.
template <class T>
void keys(const std::string& type) {
    using S = Sentence<T>;
    using V = Term<typename T::Bits>;
    const V x = V::any("x"), y = V::any("y");
    const z3::expr below = less(T::keys(x), T::keys(y)).e;
    if constexpr (T::is_float) {
        const z3::expr numbers = !S::is_nan(x.e) && !S::is_nan(y.e);
        prove(type + ": keys of numbers are in their order", z3::implies(numbers, below == S::is_below(x.e, y.e)));
        if (T::ignores_nan)
            prove(type + ": the key of a NaN is below every number's",
                  z3::implies(S::is_nan(x.e) && !S::is_nan(y.e), below));
        else
            prove(type + ": the key of a NaN is above every number's",
                  z3::implies(S::is_nan(y.e) && !S::is_nan(x.e), below));
        prove(type + ": no two values have one key", z3::implies(T::keys(x).e == T::keys(y).e, x.e == y.e));
    } else {
        prove(type + ": keys are in the values' order", below == S::is_below(x.e, y.e));
    }
    prove(type + ": branchless keys are the same", T::branchless_keys(x).e == T::keys(x).e);
    prove(type + ": canonical values", T::canonical(x).e == S::canonical(x.e));
    prove(type + ": the lowest key is of the neutral value", T::values(V::splat(T::kLowestKey)).e == S::neutral());
    prove(type + ": the bits of the lowest value have that key", T::keys(V::splat(T::kLowest)).e == V::splat(T::kLowestKey).e);
    prove(type + ": no key is below it", !(less(x, V::splat(T::kLowestKey)).e));
    prove(type + ": values are keys' inverse", T::values(T::keys(x)).e == S::canonical(x.e));
    prove(type + ": the maximum by keys", T::values(max(T::keys(x), T::keys(y))).e == S::maximum(x.e, y.e));
}

// The maximum of two elements, and of any number of elements. T may be Bitwise.
template <class T, class V>
void maxima(const std::string& name) {
    using S = Sentence<T>;
    using State = Maxima<T, V>;
    State* const kind = nullptr;
    const V x = V::any("x"), y = V::any("y");
    const z3::expr mx = S::canonical(x.e), two = S::maximum(x.e, y.e);
    prove(name + ": max_of_two", max_of_two<T>(x, y).e == two);
    prove(name + ": one element", stands_for(State(x), mx));
    prove(name + ": two elements", stands_for(State(x, y), two));

    const State a = some(kind, "a"), b = some(kind, "b");
    const z3::expr ma = V::any("ma").e, mb = V::any("mb").e;
    const z3::expr known = stands_for(a, ma) && stands_for(b, mb) && S::canonical(ma) == ma && S::canonical(mb) == mb;
    const auto after = [&](const char* what, const z3::expr& maximum, auto act) {
        State state = a;
        act(state);
        prove(name + ": " + what, z3::implies(known, stands_for(state, maximum)));
    };
    after("merge", S::maximum(ma, mb), [&](State& state) { state.merge(b); });
    after("accumulate one", S::maximum(ma, x.e), [&](State& state) { state.accumulate(x); });
    after("accumulate two", S::maximum(S::maximum(ma, x.e), y.e), [&](State& state) { state.accumulate(x, y); });
    prove(name + ": finalize", z3::implies(known, a.finalize().e == ma));
    a.is_saturated();
    prove(name + ": saturated, nothing is above", z3::implies(known && last_asked(), S::maximum(ma, x.e) == ma));
    prove(name + ": keys of what finalize gives",
          z3::implies(known, T::values(keys_of<T>(a.finalize())).e == ma));
}

template <class T>
void goals(const std::string& type) {
    using Bits = typename T::Bits;
    algebra<T>(type);
    keys<T>(type);
    if constexpr (kComparesFloats<T>) {
        maxima<T, Term<Bits>>(type + ", by comparison");
        maxima<T, Term<Bits, Compare::kRange>>(type + ", by VRANGE");
        maxima<Bitwise<T>, Term<Bits>>(type + ", as integers");
    } else {
        maxima<T, Term<Bits>>(type);
    }
}

}  // namespace
}  // namespace maxops::proofs

int main() {
    using namespace maxops::proofs;
    using namespace maxops::MAXOPS_ISA;
#define MAXOPS_TYPE(name, order, ...) goals<order>(#name);
#define MAXOPS_IGNORING_NAN(name, order) goals<order>(#name ", ignoring NaN");
#include "../../native/core/types.def"
    return unproved != 0;
}
