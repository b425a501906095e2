// The switches of mutants: places_native.py wraps each place of a source in one of them, with the number of the place's
// first mutant. At run time, one mutant is enabled, or all are watched. Constant expressions keep their values.
#pragma once
#include <cstddef>
#include <type_traits>
#include <utility>

struct MutantSwitch {
    unsigned from, count;  // places whose first mutant is in this range use the slow path
    unsigned chosen;       // the enabled mutant; 0 while all are watched
    unsigned char* seen;   // for each mutant: kReached, kDiffers
};
extern "C" __attribute__((visibility("default"))) MutantSwitch maxops_mutants;

namespace maxops_mutation {
namespace {

enum : unsigned char { kReached = 1, kDiffers = 2 };  // the place ran; the mutant's value differed

#define MUTANT_INLINE __attribute__((always_inline)) inline constexpr
#define MUTANT_SLOW __attribute__((noinline, cold))

MUTANT_INLINE bool is_on(unsigned first) {
    return !__builtin_is_constant_evaluated() && __builtin_expect(first - maxops_mutants.from < maxops_mutants.count, 0);
}

template <class T>
bool differ(const T& a, const T& b) {
    return __builtin_memcmp(&a, &b, sizeof a) != 0;
}

// Sets the result to the mutant's value if the mutant is enabled, and records whether the value differs.
template <class T, class U>
void one(unsigned mutant, T* result, const T& was, const U& mutated) {
    const T value = static_cast<T>(mutated);
    if (maxops_mutants.seen != nullptr)
        maxops_mutants.seen[mutant] |= static_cast<unsigned char>(differ(value, was) ? kReached | kDiffers : kReached);
    if (maxops_mutants.chosen == mutant) *result = value;
}

// An operator and its replacement, for operands that support both.
#define MUTANT_BINARY(name, op, other)                                                            \
    template <class A, class B, class = void>                                                     \
    struct name##_has : std::false_type {};                                                       \
    template <class A, class B>                                                                   \
    struct name##_has<A, B, std::void_t<decltype(std::declval<A&>() other std::declval<B&>())>>   \
        : std::is_convertible<decltype(std::declval<A&>() other std::declval<B&>()),              \
                              decltype(std::declval<A&>() op std::declval<B&>())> {};             \
    template <class A, class B>                                                                   \
    MUTANT_SLOW auto name##_slow(unsigned first, A a, B b) {                                      \
        const auto was = a op b;                                                                  \
        auto result = a op b;                                                                     \
        if constexpr (name##_has<A, B>::value) one(first, &result, was, a other b);               \
        return result;                                                                            \
    }                                                                                             \
    template <class A, class B>                                                                   \
    MUTANT_INLINE auto name(unsigned first, A a, B b) {                                           \
        if (is_on(first)) return name##_slow(first, a, b);                                        \
        return a op b;                                                                            \
    }

MUTANT_BINARY(less, <, <=)
MUTANT_BINARY(less_equal, <=, <)
MUTANT_BINARY(greater, >, >=)
MUTANT_BINARY(greater_equal, >=, >)
MUTANT_BINARY(equal, ==, !=)
MUTANT_BINARY(not_equal, !=, ==)
MUTANT_BINARY(plus, +, -)
MUTANT_BINARY(minus, -, +)
MUTANT_BINARY(times, *, +)
MUTANT_BINARY(divide, /, *)
MUTANT_BINARY(modulo, %, *)
MUTANT_BINARY(left, <<, >>)
MUTANT_BINARY(right, >>, <<)
MUTANT_BINARY(bit_and, &, |)
MUTANT_BINARY(bit_or, |, &)
MUTANT_BINARY(bit_xor, ^, |)

// A condition with the first `count` mutants of: negated, never, always.
MUTANT_SLOW inline bool condition_slow(unsigned first, unsigned count, bool was) {
    bool result = was;
    one(first, &result, was, !was);
    if (count > 1) one(first + 1, &result, was, false);
    if (count > 2) one(first + 2, &result, was, true);
    return result;
}
MUTANT_INLINE bool condition(unsigned first, unsigned count, bool was) {
    return is_on(first) ? condition_slow(first, count, was) : was;
}

// An operand of && or ||, which the mutant omits.
MUTANT_SLOW inline bool operand_slow(unsigned first, bool was, bool neutral) {
    bool result = was;
    one(first, &result, was, neutral);
    return result;
}
MUTANT_INLINE bool operand(unsigned first, bool neutral, bool was) {
    return is_on(first) ? operand_slow(first, was, neutral) : was;
}

// Swaps && and || by De Morgan's law: f(f(a) && f(b)), where f negates in the mutant.
MUTANT_SLOW inline bool flips(unsigned first) {
    if (maxops_mutants.seen != nullptr) maxops_mutants.seen[first] |= kReached | kDiffers;
    return maxops_mutants.chosen == first;
}
MUTANT_INLINE bool flip(unsigned first, bool was) {
    return is_on(first) && flips(first) ? !was : was;
}

// A constant with the first `count` mutants of: plus one, minus one, zero. For a bool, its negation.
template <class T>
MUTANT_SLOW T constant_slow(unsigned first, unsigned count, T was) {
    T result = was;
    if constexpr (std::is_same_v<T, bool>) {
        one(first, &result, was, !was);
    } else {
        one(first, &result, was, was + 1);
        one(first + 1, &result, was, was - 1);
        if (count > 2) one(first + 2, &result, was, 0);
    }
    return result;
}
template <class T>
MUTANT_INLINE T constant(unsigned first, unsigned count, T was) {
    if (is_on(first)) return constant_slow(first, count, was);
    return was;
}

// The operand of += or -=, which the mutant negates.
template <class T>
MUTANT_SLOW T summand_slow(unsigned first, T was) {
    T result = was;
    one(first, &result, was, T(0 - was));
    return result;
}
template <class T>
MUTANT_INLINE T summand(unsigned first, T was) {
    if (is_on(first)) return summand_slow(first, was);
    return was;
}
MUTANT_INLINE int summand(unsigned first, bool was) {  // a negated bool is the same bool
    return summand<int>(first, was);
}

// Whether a statement is omitted, or ++ and -- are swapped.
MUTANT_INLINE bool without(unsigned first) {
    return is_on(first) && flips(first);
}

}  // namespace
}  // namespace maxops_mutation
