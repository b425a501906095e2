// Compares the maximum of all 2^32 pairs of each 16-bit float format, computed with this processor's vectors, with the
// maximum of the values as double, which is computed without code of the kernels.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../../native/kernels/maxima.h"

namespace maxops::proofs {
namespace {

using namespace MAXOPS_ISA;

// Returns the value of an IEEE 754 bit pattern: sign, exponent, fraction.
double value(std::uint32_t bits, int fraction_bits) {
    const int exponent_bits = 15 - fraction_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const auto exponent = static_cast<int>(bits >> fraction_bits & ((1U << exponent_bits) - 1));
    const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
    const double sign = (bits >> 15 & 1) != 0 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
    return sign * (exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
}

template <class T>
std::uint64_t wrong_pairs(int fraction_bits) {
    using Bits = typename T::Bits;
    using V = Vec<Bits>;
    constexpr std::uint32_t kAll = 1U << 16;
    std::vector<double> values(kAll);
    for (std::uint32_t bits = 0; bits < kAll; ++bits) values[bits] = value(bits, fraction_bits);
    const auto nan = static_cast<Bits>(((1U << (16 - fraction_bits)) - 1) << (fraction_bits - 1));
    std::uint64_t wrong = 0;
    std::vector<Bits> all(kAll), got(kAll);
    for (std::uint32_t bits = 0; bits < kAll; ++bits) all[bits] = static_cast<Bits>(bits);
    for (std::uint32_t a = 0; a < kAll; ++a) {
        const V x = V::splat(static_cast<Bits>(a));
        for (std::uint32_t b = 0; b < kAll; b += V::kLanes) store(&got[b], max_of_two<T>(x, V::load(&all[b])));
        const double left = values[a];
        for (std::uint32_t b = 0; b < kAll; ++b) {
            const double right = values[b];
            // of two zeros, the expected result is +0
            const bool takes_left = left > right || (left == right && (a & 0x8000) == 0);
            const Bits number = takes_left ? static_cast<Bits>(a) : all[b];
            const bool left_is_nan = left != left, right_is_nan = right != right;
            Bits expected = number;
            if (left_is_nan || right_is_nan) {
                expected = nan;
                if (T::ignores_nan && !right_is_nan) expected = all[b];
                if (T::ignores_nan && !left_is_nan) expected = static_cast<Bits>(a);
            }
            wrong += got[b] != expected;
        }
    }
    return wrong;
}

}  // namespace
}  // namespace maxops::proofs

int main() {
    using namespace maxops::proofs;
    using namespace maxops::MAXOPS_ISA;
    const auto float16 = wrong_pairs<Float16>(10) + wrong_pairs<Float16::IgnoringNaN>(10);
    const auto bfloat16 = wrong_pairs<BFloat16>(7) + wrong_pairs<BFloat16::IgnoringNaN>(7);
    std::printf("{\"float16\":%llu,\"bfloat16\":%llu}\n", static_cast<unsigned long long>(float16),
                static_cast<unsigned long long>(bfloat16));
    return float16 + bfloat16 != 0;
}
