// Tests what the proofs assume about the processor: the results of float comparisons (term.h), and that keys have the
// same order in the wider lanes of short segments, which walks.cpp replaces with wider sets of colours.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <type_traits>
#include <vector>

#include "../../native/kernels/segment.h"

namespace maxops {
namespace MAXOPS_ISA {
const ReduceKernels reduce[kOrders] = {};  // no function of this program calls these kernels
namespace {

unsigned long long looked = 0, wrong = 0;
void expect(bool is_valid) {
    looked += 1;
    wrong += !is_valid;
}

// ---------------------------------------------------------------------------- comparisons of floats

// Comparisons that use only the bits: the sign and the magnitude.
template <class T>
struct Bits {
    using U = typename T::U;
    static constexpr U kMagnitude = static_cast<U>(T::kSign - 1);
    static bool is_nan(U x) { return (x & kMagnitude) > T::kInfinity; }
    static bool is_greater(U x, U y) {  // IEEE 754's >: false if either is a NaN, or if both are zeros
        if (is_nan(x) || is_nan(y) || ((x | y) & kMagnitude) == 0) return false;
        const bool x_negative = (x & T::kSign) != 0, y_negative = (y & T::kSign) != 0;
        if (x_negative != y_negative) return y_negative;
        return x_negative ? x < y : x > y;
    }
    // The result of VRANGE for the maximum of two numbers, with -0 below +0.
    static U ranged(U x, U y) {
        if (((x | y) & kMagnitude) == 0) return x & y;
        return is_greater(x, y) ? x : y;
    }
};

template <class T>
void pairs(const std::vector<typename T::U>& left, const std::vector<typename T::U>& right) {
    using B = Bits<T>;
    using U = typename T::U;
    using V = Vec<typename T::Bits>;
    constexpr std::size_t kLanes = V::kLanes;
    for (std::size_t i = 0; i + kLanes <= left.size(); i += kLanes) {
        const V a = V::load(&left[i]), b = V::load(&right[i]);
        U high[kLanes], chosen[kLanes];
        store(high, float_max(a, b));
        store(chosen, select(unordered(a, b), V::splat(1), V::splat(0)));
        for (std::size_t k = 0; k < kLanes; ++k) {
            const U x = left[i + k], y = right[i + k];
            if constexpr (ZerosApart<V>::value) {
                // the proofs accept any result if either value is a NaN
                expect(B::is_nan(x) || B::is_nan(y) || high[k] == B::ranged(x, y));
            } else {
                expect(high[k] == (B::is_greater(x, y) ? x : y));
            }
            expect((chosen[k] != 0) == (B::is_nan(x) || B::is_nan(y)));
        }
    }
}

template <class T>
void comparisons(std::size_t drawn) {
    using U = typename T::U;
    std::vector<U> ends;  // near the limits of each class of values, and near each power of two
    for (int bit = 0; bit < static_cast<int>(8 * sizeof(U)); ++bit)
        for (int near = -1; near <= 1; ++near)
            for (const U base : {U{0}, T::kSign, T::kInfinity, T::kMinusInfinity})
                ends.push_back(static_cast<U>(base + (U{1} << bit) + static_cast<U>(near)));
    for (const U each : {U{0}, T::kSign, T::kInfinity, T::kMinusInfinity, static_cast<U>(T::kNaN)}) ends.push_back(each);
    std::vector<U> left, right;
    for (const U x : ends)
        for (const U y : ends) {
            left.push_back(x);
            right.push_back(y);
        }
    std::mt19937_64 random(1);
    for (std::size_t k = 0; k < drawn; ++k) {
        left.push_back(static_cast<U>(random()));
        // half of the values are near their counterpart, and the other half are random
        right.push_back(k % 2 != 0 ? static_cast<U>(left.back() + random() % 5 - 2) : static_cast<U>(random()));
    }
    while (left.size() % 64 != 0) {
        left.push_back(0);
        right.push_back(0);
    }
    pairs<T>(left, right);
}

// ---------------------------------------------------------------------------- keys in wider lanes

// Checks that the lanes of `values`, which are sorted by key, are also sorted, and convert back to the values.
template <class Lanes, class T>
void in_order(const std::vector<typename T::Bits>& values) {
    using Lane = typename Lanes::Lane;
    for (std::size_t k = 0; k < values.size(); ++k) {
        const Lane lane = Lanes::lane(values[k]);
        expect(Lanes::bits(lane) == canonical<T>(values[k]));
        if (k == 0) continue;
        const Lane before = Lanes::lane(values[k - 1]);
        const bool same = T::key(values[k - 1]) == T::key(values[k]);
        // values with equal keys have equal lanes, and all others have increasing lanes
        expect(same ? before == lane : before < lane);
    }
}

template <class Lanes, class T>
void loaded(const std::vector<typename T::Bits>& values) {
    using V = typename Lanes::V;
    for (std::size_t k = 0; k + V::kLanes <= values.size(); k += V::kLanes) {
        typename Lanes::Lane lanes[V::kLanes];
        store(lanes, Lanes::load(reinterpret_cast<const Item<T>*>(&values[k])));
        for (std::size_t j = 0; j < V::kLanes; ++j) expect(lanes[j] == Lanes::lane(values[k + j]));
    }
}

template <class T>
void lanes() {
    using Type = typename T::Bits;
    using U = std::make_unsigned_t<Type>;
    std::vector<Type> values;
    if constexpr (sizeof(Type) <= 2) {
        for (std::uint32_t bits = 0; bits < 1U << (8 * sizeof(Type)); ++bits) values.push_back(static_cast<Type>(bits));
    } else {
        std::mt19937_64 random(2);
        for (std::size_t k = 0; k < 2'000'000; ++k) values.push_back(static_cast<Type>(random()));
        for (int bit = 0; bit < static_cast<int>(8 * sizeof(Type)); ++bit)
            for (int near = -2; near <= 2; ++near)
                for (const bool negative : {false, true})
                    values.push_back(static_cast<Type>((negative ? U{1} << (8 * sizeof(U) - 1) : U{0}) + (U{1} << bit) +
                                                       static_cast<U>(near)));
    }
    std::sort(values.begin(), values.end(), [](Type a, Type b) { return T::key(a) < T::key(b); });
    in_order<PlainLanes<T>, T>(values);
#if defined(MAXOPS_HAS_COMPRESSION) && !defined(MAXOPS_AVX512)
    in_order<KeyLanes<T>, T>(values);
    loaded<KeyLanes<T>, T>(values);
#endif
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
    comparisons<Float32>(20'000'000);
    comparisons<Float64>(20'000'000);
#define MAXOPS_TYPE(name, order, ...) lanes<order>();
#define MAXOPS_IGNORING_NAN(name, order) lanes<order>();
#include "../../native/core/types.def"
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", looked, wrong);
    return wrong != 0;
}
