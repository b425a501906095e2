// Compares each model in terms.h with the intrinsic of the same name: with the processor's own intrinsic if the program
// is compiled for AVX-512, and with the emulated intrinsic otherwise. For models with symbolic lanes, each lane is a
// variable whose value is the lane of a random vector. The value of the resulting term must equal the result of the
// intrinsic.
#ifdef __AVX512BW__
#include <immintrin.h>
#define REAL(name) ::name
#else
#include "../../native/testing/avx512_emulated.h"
#define REAL(name) ::maxops::name
#endif

#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "terms.h"

namespace maxops {
namespace {

unsigned long long looked = 0, wrong = 0;
void expect(bool is_valid, const char* name) {
    looked += 1;
    if (!is_valid && wrong++ < 20) std::fprintf(stderr, "%s\n", name);
}

std::mt19937_64 draw(4);
std::vector<std::uint64_t> values;  // the values of the variables

// A vector with the same lanes for the model and for the intrinsic.
template <class Real>
struct Both {
    terms::Vector model;
    terms::Items items;
    Real real;
};
using Vectors = Both<::__m512i>;

template <class Real>
std::uint64_t lane_of(const Real& v, unsigned bits, unsigned k) {
    std::uint64_t word = 0;
    std::memcpy(&word, reinterpret_cast<const char*>(&v) + k * bits / 8, bits / 8);
    return word;
}
// Returns a random word, which is often small, close to other words, or close to a power of two.
std::uint64_t word() {
    const std::uint64_t any = draw();
    switch (draw() % 4) {
        case 0: return any % 4;
        case 1: return std::uint64_t{0} - any % 3;
        case 2: return (std::uint64_t{1} << any % 64) - any / 64 % 2;
        default: return any;
    }
}
template <class Real = ::__m512i>
Both<Real> drawn(unsigned bits, bool are_terms) {
    Both<Real> both;
    const unsigned count = 8 * sizeof(Real) / bits;
    for (unsigned k = 0; k < count; ++k) {
        const std::uint64_t value = terms::low_bits(word(), bits);
        std::memcpy(reinterpret_cast<char*>(&both.real) + k * bits / 8, &value, bits / 8);
        terms::Lane lane{value, 0};
        if (are_terms) {
            lane = {0, terms::all_terms().variable(static_cast<unsigned>(values.size()), bits)};
            values.push_back(value);
        }
        if (k < 16) both.items.lanes[k] = lane;
    }
    both.model.bits = bits;
    both.model.lanes = both.items.lanes;
    return both;
}

std::uint64_t value_of(const terms::Lane& lane) {
    return lane.is_known() ? lane.value : terms::all_terms().value(lane.term, values);
}
void same(const char* name, const terms::Vector& model, const ::__m512i& real) {
    for (unsigned k = 0; k < model.count(); ++k)
        expect(value_of(model.lanes[k]) == lane_of(real, model.bits, k), name);
}
template <unsigned lanes>
void same(const char* name, const terms::MaskOf<lanes>& model, unsigned real) {
    for (unsigned k = 0; k < lanes; ++k) expect(value_of(model.is[k]) == (real >> k & 1), name);
}
void same(const char* name, const terms::Items& model, const ::__m256i& real, unsigned bits) {
    for (unsigned k = 0; k < 256 / bits; ++k) expect(value_of(model.lanes[k]) == lane_of(real, bits, k), name);
}

#define ONE(name, a, ...) same(#name, terms::name(a.model, ##__VA_ARGS__), REAL(name)(a.real, ##__VA_ARGS__))
#define TWO(name, a, b, ...) \
    same(#name, terms::name(a.model, b.model, ##__VA_ARGS__), REAL(name)(a.real, b.real, ##__VA_ARGS__))
#define UNDER_MASK(name, Mask, mask, a)                                    \
    same(#name, terms::name(terms::Mask{mask}, a.model), REAL(name)(static_cast<::Mask>(mask), a.real))
#define WIDENED(name, v) same(#name, terms::name(v.items), REAL(name)(v.real))

#define BY_WIDTH(bits, Mask, Int)                                                                                  \
    void lanes_of_##bits() {                                                                                       \
        const Vectors a = drawn(bits, true), b = drawn(bits, true), c = drawn(bits, true);                         \
        const Vectors x = drawn(bits, false), y = drawn(bits, false);                                              \
        const auto mask = static_cast<unsigned>(draw() & ((1U << 512 / bits) - 1));                                \
        for (const auto& [p, q] : {std::pair{a, b}, {x, y}, {a, y}}) {                                             \
            TWO(_mm512_add_epi##bits, p, q);                                                                       \
            TWO(_mm512_sub_epi##bits, p, q);                                                                       \
            TWO(_mm512_xor_si512, p, q);                                                                           \
            TWO(_mm512_cmplt_epi##bits##_mask, p, q);                                                              \
            ONE(_mm512_srai_epi##bits, p, bits - 1);                                                               \
            ONE(_mm512_srai_epi##bits, p, 3);                                                                      \
            TWO(_mm512_alignr_epi##bits, p, q, 1);                                                                 \
            TWO(_mm512_alignr_epi##bits, p, q, 512 / bits - 1);                                                    \
            TWO(_mm512_alignr_epi##bits, p, q, 512 / bits / 2);                                                    \
            UNDER_MASK(_mm512_maskz_compress_epi##bits, Mask, mask, p);                                            \
            same("mask_mov", terms::_mm512_mask_mov_epi##bits(p.model, terms::Mask{mask}, q.model),                \
                 REAL(_mm512_mask_mov_epi##bits)(p.real, static_cast<::Mask>(mask), q.real));                      \
            same("mask_expand", terms::_mm512_mask_expand_epi##bits(p.model, terms::Mask{mask}, q.model),          \
                 REAL(_mm512_mask_expand_epi##bits)(p.real, static_cast<::Mask>(mask), q.real));                   \
            same("mask_max", terms::_mm512_mask_max_epi##bits(c.model, terms::Mask{mask}, p.model, q.model),       \
                 REAL(_mm512_mask_max_epi##bits)(c.real, static_cast<::Mask>(mask), p.real, q.real));              \
            for (const auto& r : {c, x}) {                                                                         \
                same("ternarylogic", terms::_mm512_ternarylogic_epi64(p.model, q.model, r.model, 0x78),            \
                     REAL(_mm512_ternarylogic_epi64)(p.real, q.real, r.real, 0x78));                               \
                same("ternarylogic", terms::_mm512_ternarylogic_epi64(p.model, q.model, r.model, 0x1D),            \
                     REAL(_mm512_ternarylogic_epi64)(p.real, q.real, r.real, 0x1D));                               \
            }                                                                                                      \
            /* by a mask that is not known */                                                                      \
            same("select", terms::_mm512_mask_mov_epi##bits(a.model, terms::_mm512_cmplt_epi##bits##_mask(p.model, q.model), b.model), \
                 REAL(_mm512_mask_mov_epi##bits)(a.real, REAL(_mm512_cmplt_epi##bits##_mask)(p.real, q.real), b.real)); \
        }                                                                                                          \
        TWO(_mm512_cmpeq_epi##bits##_mask, x, y);                                                                  \
        TWO(_mm512_cmpneq_epi##bits##_mask, x, y);                                                                 \
        TWO(_mm512_or_si512, x, y);                                                                                \
        same("mask_cmpgt", terms::_mm512_mask_cmpgt_epi##bits##_mask(terms::Mask{mask}, x.model, y.model),         \
             REAL(_mm512_mask_cmpgt_epi##bits##_mask)(static_cast<::Mask>(mask), x.real, y.real));                 \
        TWO(_mm512_permutexvar_epi##bits, x, a);                                                                   \
        const auto value = static_cast<Int>(word());                                                               \
        same("set1", terms::_mm512_set1_epi##bits(value), REAL(_mm512_set1_epi##bits)(value));                     \
        /* memory: what a mask leaves out is neither read nor written */                                           \
        char from[64], to[64], also[64];                                                                           \
        std::memcpy(from, &x.real, sizeof from);                                                                   \
        terms::variables() = {};                                                                                   \
        same("maskz_loadu", terms::_mm512_maskz_loadu_epi##bits(terms::Mask{mask}, from),                          \
             REAL(_mm512_maskz_loadu_epi##bits)(static_cast<::Mask>(mask), from));                                 \
        std::memcpy(to, &y.real, sizeof to);                                                                       \
        std::memcpy(also, &y.real, sizeof also);                                                                   \
        terms::_mm512_mask_storeu_epi##bits(to, terms::Mask{mask}, x.model);                                       \
        REAL(_mm512_mask_storeu_epi##bits)(also, static_cast<::Mask>(mask), x.real);                               \
        expect(std::memcmp(to, also, sizeof to) == 0, "mask_storeu");                                              \
    }
BY_WIDTH(32, __mmask16, int)
BY_WIDTH(64, __mmask8, long long)

void lanes_of_one_width() {
    const Vectors a = drawn(32, true), b = drawn(32, true), x = drawn(32, false), y = drawn(32, false);
    const Vectors u = drawn(64, false), v = drawn(64, false);
    const auto mask = static_cast<unsigned>(draw() & 0xFFFF);
    TWO(_mm512_min_epi32, a, b);
    TWO(_mm512_min_epi32, a, x);
    ONE(_mm512_slli_epi32, a, 16);
    ONE(_mm512_slli_epi32, x, 0);
    ONE(_mm512_srli_epi32, a, 16);
    ONE(_mm512_srli_epi32, a, 0);
    const std::int32_t in_order[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15};
    const std::int64_t wide_in_order[] = {0, 1, 2, 3, 4, 5, 6, -7};
    ::__m512i written;  // the expected vector, because some compilers define setr as a macro
    std::memcpy(&written, in_order, sizeof written);
    same("setr_epi32", terms::_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, -15), written);
    std::memcpy(&written, wide_in_order, sizeof written);
    same("setr_epi64", terms::_mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, -7), written);
    same("permutex2var", terms::_mm512_permutex2var_epi32(a.model, x.model, b.model),
         REAL(_mm512_permutex2var_epi32)(a.real, x.real, b.real));
    same("permutex2var", terms::_mm512_permutex2var_epi32(u.model, x.model, v.model),
         REAL(_mm512_permutex2var_epi32)(u.real, x.real, v.real));
    same("sllv", terms::_mm512_maskz_sllv_epi64(terms::__mmask8{mask}, u.model, v.model),
         REAL(_mm512_maskz_sllv_epi64)(static_cast<::__mmask8>(mask), u.real, v.real));
    expect(terms::_mm512_reduce_or_epi64(u.model) == REAL(_mm512_reduce_or_epi64)(u.real), "reduce_or");
    same("castsi512_si256", terms::_mm512_castsi512_si256(x.model), REAL(_mm512_castsi512_si256)(x.real), 32);
    same("extracti64x4", terms::_mm512_extracti64x4_epi64(x.model, 1), REAL(_mm512_extracti64x4_epi64)(x.real, 1), 32);
    for (const bool are_terms : {false, true}) {
        const auto bytes = drawn<::__m128i>(8, are_terms);
        const auto halves = drawn<::__m256i>(16, are_terms);
        const auto words = drawn<::__m256i>(32, are_terms);
        WIDENED(_mm512_cvtepi8_epi32, bytes);
        WIDENED(_mm512_cvtepu8_epi32, bytes);
        WIDENED(_mm512_cvtepi16_epi32, halves);
        WIDENED(_mm512_cvtepu16_epi32, halves);
        WIDENED(_mm512_cvtepi32_epi64, words);
        WIDENED(_mm512_cvtepu32_epi64, words);
    }
}

void narrow_memory() {
    const Vectors x = drawn(32, false), y = drawn(32, false), a = drawn(32, true);
    const auto mask = static_cast<unsigned>(draw() & 0xFFFF);
    char from[64], to[64], also[64];
    std::memcpy(from, &x.real, sizeof from);
    terms::variables() = {};
    const ::__m128i bytes = REAL(_mm_maskz_loadu_epi8)(static_cast<::__mmask16>(mask), from);
    const terms::Items modelled = terms::_mm_maskz_loadu_epi8(terms::__mmask16{mask}, from);
    for (unsigned k = 0; k < 16; ++k) expect(value_of(modelled.lanes[k]) == lane_of(bytes, 8, k), "maskz_loadu_epi8");
    same("maskz_loadu_epi16", terms::_mm256_maskz_loadu_epi16(terms::__mmask16{mask}, from),
         REAL(_mm256_maskz_loadu_epi16)(static_cast<::__mmask16>(mask), from), 16);
    same("maskz_loadu_epi32", terms::_mm256_maskz_loadu_epi32(terms::__mmask8{mask}, from),
         REAL(_mm256_maskz_loadu_epi32)(static_cast<::__mmask8>(mask), from), 32);
    // for known lanes and for terms
    const auto narrow = [&](auto model, auto real, const Vectors& v, unsigned size) {
        std::memcpy(to, &y.real, sizeof to);
        std::memcpy(also, &y.real, sizeof also);
        terms::stored().clear();
        model(to, v.model);
        real(also, v.real);
        std::size_t next = 0;
        for (unsigned k = 0; k < 16; ++k)
            if (!v.model.lanes[k].is_known() && (mask >> k & 1) != 0) {
                expect(static_cast<std::uint8_t>(to[k * size]) == terms::kFirstStored + next, "a term is stored by its number");
                const std::uint64_t value = terms::all_terms().value(terms::stored().at(next++), values);
                std::memcpy(to + k * size, &value, size);
            }
        expect(next == terms::stored().size() && std::memcmp(to, also, sizeof to) == 0, "mask_cvtepi32_storeu");
    };
    for (const Vectors& v : {x, a}) {
        narrow([&](void* at, const auto& m) { terms::_mm512_mask_cvtepi32_storeu_epi16(at, terms::__mmask16{mask}, m); },
               [&](void* at, const auto& r) { REAL(_mm512_mask_cvtepi32_storeu_epi16)(at, static_cast<::__mmask16>(mask), r); }, v, 2);
        narrow([&](void* at, const auto& m) { terms::_mm512_mask_cvtepi32_storeu_epi8(at, terms::__mmask16{mask}, m); },
               [&](void* at, const auto& r) { REAL(_mm512_mask_cvtepi32_storeu_epi8)(at, static_cast<::__mmask16>(mask), r); }, v, 1);
        narrow([&](void* at, const auto& m) { terms::_mm512_mask_storeu_epi32(at, terms::__mmask16{mask}, m); },
               [&](void* at, const auto& r) { REAL(_mm512_mask_storeu_epi32)(at, static_cast<::__mmask16>(mask), r); }, v, 4);
    }
    // loads from the memory of the items return variables
    terms::variables() = {from, 16, 4};
    const terms::Vector loaded = terms::_mm512_maskz_loadu_epi32(terms::__mmask16{mask}, from);
    for (unsigned k = 0; k < 16; ++k)
        expect((mask >> k & 1) == 0 ? loaded.lanes[k].is_known() && loaded.lanes[k].value == 0
                                    : loaded.lanes[k].term == terms::all_terms().variable(k, 32),
               "a load of items");
}

}  // namespace
}  // namespace maxops

int main() {
    using namespace maxops;
    for (int round = 0; round < 300; ++round) {
        values.clear();
        terms::all_terms() = {};
        lanes_of_32();
        lanes_of_64();
        lanes_of_one_width();
        narrow_memory();
    }
    std::printf("{\"states\":%llu,\"wrong\":%llu}\n", looked, wrong);
    return wrong != 0;
}
