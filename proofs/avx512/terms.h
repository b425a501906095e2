// Models of the AVX-512 intrinsics that kernels/segment_avx512.h uses, for vectors whose lanes are terms. The models
// have the names of the intrinsics, so the header compiles unchanged in a namespace that uses them. models.cpp compares
// each model with the processor, lane by lane.
//
// A lane is a known number (an id, an index or a constant), or a term over variables. Equal terms have the same number.
// Terms have only the operations in this file, so the code path of a kernel cannot depend on its keys. A maximum is a
// set of terms, which does not depend on order or repetition.
#pragma once
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

// Some compilers define these intrinsics as macros, at least without optimization.
#undef _mm512_alignr_epi32
#undef _mm512_alignr_epi64
#undef _mm512_cmpeq_epi32_mask
#undef _mm512_cmpeq_epi64_mask
#undef _mm512_cmplt_epi32_mask
#undef _mm512_cmplt_epi64_mask
#undef _mm512_cmpneq_epi32_mask
#undef _mm512_cmpneq_epi64_mask
#undef _mm512_extracti64x4_epi64
#undef _mm512_mask_cmpgt_epi32_mask
#undef _mm512_mask_cmpgt_epi64_mask
#undef _mm512_setr_epi32
#undef _mm512_setr_epi64
#undef _mm512_slli_epi32
#undef _mm512_srai_epi32
#undef _mm512_srai_epi64
#undef _mm512_srli_epi32
#undef _mm512_ternarylogic_epi64

namespace maxops::terms {

enum class Op : std::uint8_t {
    kVariable,    // the variable with the number `value`
    kKnown,       // the number `value`
    kWiden,       // a, sign-extended if `value`
    kNarrow,      // the lower bits of a
    kShiftLeft,   // a, shifted by `value` bits
    kShiftRight,  // logical
    kShiftSign,   // arithmetic
    kAdd,
    kSub,
    kTernary,     // each bit is looked up in the table `value` by the bits of a, b and c
    kMinimum,     // the signed minimum of a and b
    kMaximum,     // the signed maximum of the terms in sets[value]
    kLess,        // a < b, signed, as one bit
    kSelect,      // b if a, else c
};

struct Term {
    Op op;
    std::uint8_t bits;
    std::uint32_t a, b, c;
    std::uint64_t value;
};

[[noreturn]] inline void not_modelled(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    std::printf("{\"states\":0,\"wrong\":1}\n");
    std::exit(1);
}

inline std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}
inline std::int64_t with_sign(std::uint64_t value, unsigned bits) {
    return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

// All terms that have been created. The number 0 denotes a lane with a known value.
class Terms {
public:
    using Set = std::vector<std::uint32_t>;

    std::uint32_t make(const Term& term) {
        const auto [found, is_new] = numbers_.try_emplace(term, static_cast<std::uint32_t>(terms_.size()));
        if (is_new) terms_.push_back(term);
        return found->second;
    }
    // The maximum of two terms, each of which may be a maximum.
    std::uint32_t maximum(std::uint32_t a, std::uint32_t b, unsigned bits) {
        auto& found = of_two_[std::uint64_t{a} << 32 | b];
        if (found != 0) return found;
        Set all;
        for (std::uint32_t each : {a, b}) {
            if (const auto whose = same_.find(each); whose != same_.end()) each = whose->second;
            if (terms_[each].op == Op::kMaximum)
                all.insert(all.end(), sets_[terms_[each].value].begin(), sets_[terms_[each].value].end());
            else
                all.push_back(each);
        }
        return found = maximum(all, bits);
    }
    std::uint32_t maximum(Set all, unsigned bits) {
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        if (all.size() == 1) return all[0];
        const auto [found, is_new] = set_numbers_.try_emplace(all, sets_.size());
        if (is_new) sets_.push_back(all);
        return make({Op::kMaximum, static_cast<std::uint8_t>(bits), 0, 0, 0, found->second});
    }
    std::uint32_t variable(unsigned number, unsigned bits) {
        return make({Op::kVariable, static_cast<std::uint8_t>(bits), 0, 0, 0, number});
    }
    std::uint32_t known(std::uint64_t value, unsigned bits) {
        return make({Op::kKnown, static_cast<std::uint8_t>(bits), 0, 0, 0, low_bits(value, bits)});
    }
    const Term& operator[](std::uint32_t number) const { return terms_[number]; }
    const Set& set(const Term& maximum) const { return sets_[maximum.value]; }

    // The value of a term for these values of the variables.
    std::uint64_t value(std::uint32_t number, const std::vector<std::uint64_t>& variables) const {
        const Term& t = terms_[number];
        const auto of = [&](std::uint32_t n) { return value(n, variables); };
        const auto sign = [&](std::uint32_t n) { return with_sign(of(n), terms_[n].bits); };
        const auto raw = [&]() -> std::uint64_t {
            switch (t.op) {
                case Op::kVariable: return variables.at(t.value);
                case Op::kKnown: return t.value;
                case Op::kWiden: return t.value != 0 ? static_cast<std::uint64_t>(sign(t.a)) : of(t.a);
                case Op::kNarrow: return of(t.a);
                case Op::kShiftLeft: return of(t.a) << t.value;
                case Op::kShiftRight: return of(t.a) >> t.value;
                case Op::kShiftSign: return static_cast<std::uint64_t>(sign(t.a) >> t.value);
                case Op::kAdd: return of(t.a) + of(t.b);
                case Op::kSub: return of(t.a) - of(t.b);
                case Op::kTernary: {
                    const std::uint64_t x = of(t.a), y = of(t.b), z = of(t.c);
                    std::uint64_t all = 0;
                    for (unsigned k = 0; k < 8; ++k)
                        if ((t.value >> k & 1) != 0)
                            all |= ((k & 4) != 0 ? x : ~x) & ((k & 2) != 0 ? y : ~y) & ((k & 1) != 0 ? z : ~z);
                    return all;
                }
                case Op::kMinimum: return sign(t.a) < sign(t.b) ? of(t.a) : of(t.b);
                case Op::kMaximum: {
                    std::uint32_t most = sets_[t.value][0];
                    for (const std::uint32_t each : sets_[t.value])
                        if (sign(each) > sign(most)) most = each;
                    return of(most);
                }
                case Op::kLess: return sign(t.a) < sign(t.b) ? 1 : 0;
                case Op::kSelect: return of(t.a) != 0 ? of(t.b) : of(t.c);
            }
            std::abort();
        };
        return low_bits(raw(), t.bits);
    }

    // Sets the terms that replace known keys in maxima. Other loops store these keys in memory as numbers.
    void set_same(std::unordered_map<std::uint32_t, std::uint32_t> same) {
        same_ = std::move(same);
        of_two_.clear();
    }

private:
    struct Hash {
        std::size_t operator()(const Term& t) const {
            std::uint64_t h = t.value * 0x9E3779B97F4A7C15 + t.a;
            h = (h ^ h >> 29) * 0xBF58476D1CE4E5B9 + t.b;
            h = (h ^ h >> 32) * 0x94D049BB133111EB + t.c;
            return h ^ h >> 31 ^ static_cast<std::uint64_t>(t.op) << 8 ^ t.bits;
        }
    };
    struct Equal {
        bool operator()(const Term& x, const Term& y) const {
            return x.op == y.op && x.bits == y.bits && x.a == y.a && x.b == y.b && x.c == y.c && x.value == y.value;
        }
    };
    std::vector<Term> terms_{Term{Op::kKnown, 0, 0, 0, 0, 0}};
    std::unordered_map<Term, std::uint32_t, Hash, Equal> numbers_;
    std::vector<Set> sets_;
    std::map<Set, std::size_t> set_numbers_;
    std::unordered_map<std::uint64_t, std::uint32_t> of_two_;
    std::unordered_map<std::uint32_t, std::uint32_t> same_;
};
inline Terms& all_terms() {
    static Terms only;
    return only;
}

struct Lane {
    std::uint64_t value = 0;   // the known value, if `term` is 0
    std::uint32_t term = 0;    // the number of the term; 0: the value is known

    bool is_known() const { return term == 0; }
    std::uint64_t known() const {
        if (!is_known()) not_modelled("a key is used as a number");
        return value;
    }
    std::uint32_t as_term(unsigned bits) const { return is_known() ? all_terms().known(value, bits) : term; }
};

// Applies an operation to lanes. If all lanes are known, the result is known, otherwise it is a term.
inline Lane lane_of(Op op, unsigned bits, std::initializer_list<Lane> of, std::initializer_list<unsigned> widths,
                    std::uint64_t value = 0) {
    Term term{op, static_cast<std::uint8_t>(bits), 0, 0, 0, value};
    std::uint32_t* const to[] = {&term.a, &term.b, &term.c};
    bool is_known = true;
    for (std::size_t k = 0; k < of.size(); ++k) {
        is_known = is_known && of.begin()[k].is_known();
        *to[k] = of.begin()[k].as_term(widths.begin()[k]);
    }
    const std::uint32_t made = all_terms().make(term);
    if (is_known) return {all_terms().value(made, {}), 0};
    return {0, made};
}

// A mask whose lanes are known bits or, after a comparison of keys, terms of one bit.
template <unsigned lanes>
struct MaskOf {
    std::array<Lane, lanes> is;

    MaskOf(unsigned bits = 0) {  // NOLINT: implicit, because kernels convert integers to masks
        for (unsigned k = 0; k < lanes; ++k) is[k].value = bits >> k & 1;
    }
    operator unsigned() const {  // NOLINT: implicit, because kernels use masks as integers
        unsigned bits = 0;
        for (unsigned k = 0; k < lanes; ++k) bits |= static_cast<unsigned>(is[k].known()) << k;
        return bits;
    }
};

// A vector of lanes of 32 or 64 bits. seen_by() reinterprets vectors with lanes of the other width if they are known.
struct Vector {
    unsigned bits = 64;
    std::array<Lane, 16> lanes;

    unsigned count() const { return 512 / bits; }
    Vector seen_by(unsigned as) const {
        if (as == bits) return *this;
        Vector other;
        other.bits = as;
        for (unsigned k = 0; k < 512 / as; ++k)
            other.lanes[k].value = as == 32 ? low_bits(lanes[k / 2].known() >> k % 2 * 32, 32)
                                            : lanes[2 * k].known() | lanes[2 * k + 1].known() << 32;
        return other;
    }
    bool is_known() const {
        return std::all_of(lanes.begin(), lanes.begin() + count(), [](const Lane& lane) { return lane.is_known(); });
    }
};
template <class Of>
Vector vector_of(unsigned bits, const Of& of) {
    Vector made;
    made.bits = bits;
    for (unsigned k = 0; k < 512 / bits; ++k) made.lanes[k] = of(k);
    return made;
}

// A vector of narrower items, which are widened after they are loaded.
struct Items {
    std::array<Lane, 16> lanes;
};

// The memory of a call's items. Loads from this memory return variables, numbered from 0.
struct Variables {
    const char* begin = nullptr;
    std::size_t count = 0, size = 0;
};
inline Variables& variables() {
    static Variables only;
    return only;
}
// The stored terms. Memory contains the index of a term in this list plus `kFirstStored`; known values are stored as
// is.
constexpr unsigned kFirstStored = 128;
inline std::vector<std::uint32_t>& stored() {
    static std::vector<std::uint32_t> only;
    return only;
}

inline Lane load(const void* from_, std::size_t size) {
    const auto* from = static_cast<const char*>(from_);
    const auto& all = variables();
    std::uint64_t value = 0;
    std::memcpy(&value, from, size);  // AddressSanitizer checks this access
    if (from < all.begin || from >= all.begin + all.count * all.size) return {value, 0};
    const auto at = static_cast<std::size_t>(from - all.begin);
    if (size != all.size || at % size != 0) not_modelled("a load of part of a key");
    return {0, all_terms().variable(static_cast<unsigned>(at / size), static_cast<unsigned>(8 * size))};
}
template <class Mask>
std::array<Lane, 16> loads(const Mask& mask, const void* from, std::size_t size, unsigned count) {
    std::array<Lane, 16> lanes;
    for (unsigned k = 0; k < count; ++k)
        if (mask.is[k].known() != 0) lanes[k] = load(static_cast<const char*>(from) + k * size, size);
    return lanes;
}
// Stores the lower bits of each lane.
template <class Mask>
void stores(void* to, const Mask& mask, const Vector& v, std::size_t size) {
    for (unsigned k = 0; k < v.count(); ++k) {
        if (mask.is[k].known() == 0) continue;
        std::uint64_t word = v.lanes[k].value;
        if (!v.lanes[k].is_known()) {
            const auto bits = static_cast<unsigned>(8 * size);
            word = kFirstStored + stored().size();
            stored().push_back(bits == v.bits ? v.lanes[k].term
                                              : lane_of(Op::kNarrow, bits, {v.lanes[k]}, {v.bits}).term);
        }
        std::memcpy(static_cast<char*>(to) + k * size, &word, size);
    }
}

// ---------------------------------------------------------------------------- the intrinsics

// Not inlined, which halves the compile time of the header.
#define MAXOPS_CALLED __attribute__((noinline)) inline

using __m512i = Vector;
using __m256i = Items;
using __m128i = Items;
using __mmask16 = MaskOf<16>;
using __mmask8 = MaskOf<8>;

MAXOPS_CALLED __m512i lanewise(Op op, unsigned bits, const __m512i& a_, const __m512i& b_, std::uint64_t value = 0) {
    const Vector a = a_.seen_by(bits), b = b_.seen_by(bits);
    return vector_of(bits, [&](unsigned k) { return lane_of(op, bits, {a.lanes[k], b.lanes[k]}, {bits, bits}, value); });
}
MAXOPS_CALLED __m512i shifted(Op op, unsigned bits, const __m512i& v_, unsigned by) {
    if (by >= bits) not_modelled("a shift by all of a lane");
    const Vector v = v_.seen_by(bits);
    return vector_of(bits, [&](unsigned k) { return by == 0 ? v.lanes[k] : lane_of(op, bits, {v.lanes[k]}, {bits}, by); });
}
MAXOPS_CALLED __m512i widened(const Items& v, unsigned from, unsigned to, bool is_signed) {
    return vector_of(to, [&](unsigned k) { return lane_of(Op::kWiden, to, {v.lanes[k]}, {from}, is_signed ? 1 : 0); });
}
// Applies a bitwise operation, for lanes of any width.
MAXOPS_CALLED __m512i bitwise(const __m512i& a, const __m512i& b, const __m512i& c, std::uint64_t table) {
    const unsigned bits = !a.is_known() ? a.bits : !b.is_known() ? b.bits : c.bits;
    const Vector x = a.seen_by(bits), y = b.seen_by(bits), z = c.seen_by(bits);
    return vector_of(bits, [&](unsigned k) {
        return lane_of(Op::kTernary, bits, {x.lanes[k], y.lanes[k], z.lanes[k]}, {bits, bits, bits}, table);
    });
}
MAXOPS_CALLED __m512i _mm512_xor_si512(const __m512i& a, const __m512i& b) {
    return bitwise(a, b, b, 0x3C);
}
MAXOPS_CALLED __m512i _mm512_or_si512(const __m512i& a, const __m512i& b) {
    return bitwise(a, b, b, 0xFC);
}
MAXOPS_CALLED __m512i _mm512_ternarylogic_epi64(const __m512i& a, const __m512i& b, const __m512i& c, int table) {
    return bitwise(a, b, c, static_cast<std::uint64_t>(table));
}
MAXOPS_CALLED __m512i _mm512_min_epi32(const __m512i& a, const __m512i& b) {
    return lanewise(Op::kMinimum, 32, a, b);
}

#define MAXOPS_MODEL(bits, Mask, Argument)                                                                    \
    MAXOPS_CALLED __m512i _mm512_set1_epi##bits(Argument value) {                                                    \
        return vector_of(bits, [&](unsigned) {                                                                \
            return Lane{low_bits(static_cast<std::uint64_t>(value), bits), 0};                                \
        });                                                                                                   \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_add_epi##bits(const __m512i& a, const __m512i& b) {                                 \
        return lanewise(Op::kAdd, bits, a, b);                                                                \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_sub_epi##bits(const __m512i& a, const __m512i& b) {                                 \
        return lanewise(Op::kSub, bits, a, b);                                                                \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_srai_epi##bits(const __m512i& v, unsigned by) {                                     \
        return shifted(Op::kShiftSign, bits, v, by);                                                          \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_mask_mov_epi##bits(const __m512i& others_, const Mask& mask, const __m512i& v_) {   \
        const Vector others = others_.seen_by(bits), v = v_.seen_by(bits);                                    \
        return vector_of(bits, [&](unsigned k) {                                                              \
            if (mask.is[k].is_known()) return mask.is[k].value != 0 ? v.lanes[k] : others.lanes[k];           \
            return lane_of(Op::kSelect, bits, {mask.is[k], v.lanes[k], others.lanes[k]}, {1, bits, bits});    \
        });                                                                                                   \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_mask_max_epi##bits(const __m512i& others, const Mask& mask, const __m512i& a_,      \
                                             const __m512i& b_) {                                             \
        const Vector a = a_.seen_by(bits), b = b_.seen_by(bits);                                              \
        const Vector highest = vector_of(bits, [&](unsigned k) {                                              \
            if (mask.is[k].is_known() && mask.is[k].value == 0) return Lane{};                                \
            return Lane{0, all_terms().maximum(a.lanes[k].as_term(bits), b.lanes[k].as_term(bits), bits)};    \
        });                                                                                                   \
        return _mm512_mask_mov_epi##bits(others, mask, highest);                                              \
    }                                                                                                         \
    MAXOPS_CALLED Mask _mm512_cmplt_epi##bits##_mask(const __m512i& a_, const __m512i& b_) {                         \
        const Vector a = a_.seen_by(bits), b = b_.seen_by(bits);                                              \
        Mask is;                                                                                              \
        for (unsigned k = 0; k < 512 / bits; ++k)                                                             \
            is.is[k] = lane_of(Op::kLess, 1, {a.lanes[k], b.lanes[k]}, {bits, bits});                         \
        return is;                                                                                            \
    }                                                                                                         \
    MAXOPS_CALLED Mask _mm512_mask_cmpgt_epi##bits##_mask(const Mask& mask, const __m512i& a, const __m512i& b) {    \
        return unsigned{mask} & unsigned{_mm512_cmplt_epi##bits##_mask(b, a)};                                \
    }                                                                                                         \
    MAXOPS_CALLED Mask _mm512_cmpeq_epi##bits##_mask(const __m512i& a_, const __m512i& b_) {                         \
        const Vector a = a_.seen_by(bits), b = b_.seen_by(bits);                                              \
        Mask is;                                                                                              \
        for (unsigned k = 0; k < 512 / bits; ++k)                                                             \
            is.is[k].value = a.lanes[k].known() == b.lanes[k].known() ? 1 : 0;                                \
        return is;                                                                                            \
    }                                                                                                         \
    MAXOPS_CALLED Mask _mm512_cmpneq_epi##bits##_mask(const __m512i& a, const __m512i& b) {                          \
        return ~unsigned{_mm512_cmpeq_epi##bits##_mask(a, b)};                                                \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_maskz_compress_epi##bits(const Mask& mask, const __m512i& v_) {                     \
        const Vector v = v_.seen_by(bits);                                                                    \
        Vector first = _mm512_set1_epi##bits(0);                                                              \
        for (unsigned k = 0, to = 0; k < 512 / bits; ++k)                                                     \
            if (mask.is[k].known() != 0) first.lanes[to++] = v.lanes[k];                                      \
        return first;                                                                                         \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_mask_expand_epi##bits(const __m512i& others, const Mask& mask, const __m512i& v_) { \
        const Vector v = v_.seen_by(bits);                                                                    \
        Vector apart = others.seen_by(bits);                                                                  \
        for (unsigned k = 0, from = 0; k < 512 / bits; ++k)                                                   \
            if (mask.is[k].known() != 0) apart.lanes[k] = v.lanes[from++];                                    \
        return apart;                                                                                         \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_permutexvar_epi##bits(const __m512i& from, const __m512i& v_) {                     \
        const Vector v = v_.seen_by(bits), index = from.seen_by(bits);                                        \
        return vector_of(bits, [&](unsigned k) { return v.lanes[index.lanes[k].known() % (512 / bits)]; });   \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_alignr_epi##bits(const __m512i& high_, const __m512i& low_, unsigned by) {          \
        const Vector high = high_.seen_by(bits), low = low_.seen_by(bits);                                    \
        constexpr unsigned kCount = 512 / bits;                                                               \
        return vector_of(bits, [&](unsigned k) {                                                              \
            const unsigned from = k + by % kCount;                                                            \
            return from < kCount ? low.lanes[from] : high.lanes[from - kCount];                               \
        });                                                                                                   \
    }                                                                                                         \
    MAXOPS_CALLED __m512i _mm512_maskz_loadu_epi##bits(const Mask& mask, const void* from) {                         \
        return {bits, loads(mask, from, bits / 8, 512 / bits)};                                               \
    }                                                                                                         \
    MAXOPS_CALLED void _mm512_mask_storeu_epi##bits(void* to, const Mask& mask, const __m512i& v) {                  \
        stores(to, mask, v.seen_by(bits), bits / 8);                                                          \
    }
MAXOPS_MODEL(32, __mmask16, int)
MAXOPS_MODEL(64, __mmask8, long long)
#undef MAXOPS_MODEL

MAXOPS_CALLED __m512i _mm512_slli_epi32(const __m512i& v, unsigned by) {
    return shifted(Op::kShiftLeft, 32, v, by);
}
MAXOPS_CALLED __m512i _mm512_srli_epi32(const __m512i& v, unsigned by) {
    return shifted(Op::kShiftRight, 32, v, by);
}
template <class... Each>
__m512i _mm512_setr_epi32(Each... each) {
    const std::uint64_t values[] = {low_bits(static_cast<std::uint64_t>(each), 32)...};
    static_assert(sizeof...(each) == 16);
    return vector_of(32, [&](unsigned k) { return Lane{values[k], 0}; });
}
template <class... Each>
__m512i _mm512_setr_epi64(Each... each) {
    const std::uint64_t values[] = {static_cast<std::uint64_t>(each)...};
    static_assert(sizeof...(each) == 8);
    return vector_of(64, [&](unsigned k) { return Lane{values[k], 0}; });
}
MAXOPS_CALLED __m512i _mm512_permutex2var_epi32(const __m512i& a_, const __m512i& from, const __m512i& b_) {
    const Vector a = a_.seen_by(32), b = b_.seen_by(32), index = from.seen_by(32);
    return vector_of(32, [&](unsigned k) {
        const auto at = static_cast<unsigned>(index.lanes[k].known() % 32);
        return at < 16 ? a.lanes[at] : b.lanes[at - 16];
    });
}
MAXOPS_CALLED __m512i _mm512_maskz_sllv_epi64(const __mmask8& mask, const __m512i& v, const __m512i& by) {
    const Vector of = v.seen_by(64), bits = by.seen_by(64);
    return vector_of(64, [&](unsigned k) {
        const std::uint64_t n = bits.lanes[k].known();
        return Lane{mask.is[k].known() != 0 && n < 64 ? of.lanes[k].known() << n : 0, 0};
    });
}
MAXOPS_CALLED long long _mm512_reduce_or_epi64(const __m512i& v) {
    std::uint64_t all = 0;
    for (unsigned k = 0; k < 8; ++k) all |= v.seen_by(64).lanes[k].known();
    return static_cast<long long>(all);
}

// Loads, conversions and stores of narrower items, of 8, 16 or 32 bits.
MAXOPS_CALLED __m128i _mm_maskz_loadu_epi8(const __mmask16& mask, const void* from) {
    return {loads(mask, from, 1, 16)};
}
MAXOPS_CALLED __m256i _mm256_maskz_loadu_epi16(const __mmask16& mask, const void* from) {
    return {loads(mask, from, 2, 16)};
}
MAXOPS_CALLED __m256i _mm256_maskz_loadu_epi32(const __mmask8& mask, const void* from) {
    return {loads(mask, from, 4, 8)};
}
MAXOPS_CALLED __m512i _mm512_cvtepi8_epi32(const __m128i& v) {
    return widened(v, 8, 32, true);
}
MAXOPS_CALLED __m512i _mm512_cvtepu8_epi32(const __m128i& v) {
    return widened(v, 8, 32, false);
}
MAXOPS_CALLED __m512i _mm512_cvtepi16_epi32(const __m256i& v) {
    return widened(v, 16, 32, true);
}
MAXOPS_CALLED __m512i _mm512_cvtepu16_epi32(const __m256i& v) {
    return widened(v, 16, 32, false);
}
MAXOPS_CALLED __m512i _mm512_cvtepi32_epi64(const __m256i& v) {
    return widened(v, 32, 64, true);
}
MAXOPS_CALLED __m512i _mm512_cvtepu32_epi64(const __m256i& v) {
    return widened(v, 32, 64, false);
}
MAXOPS_CALLED __m256i _mm512_castsi512_si256(const __m512i& v) {
    return {v.seen_by(32).lanes};  // the first eight
}
MAXOPS_CALLED __m256i _mm512_extracti64x4_epi64(const __m512i& v, int half) {
    Items part;
    for (unsigned k = 0; k < 8; ++k) part.lanes[k] = v.seen_by(32).lanes[k + 8 * (static_cast<unsigned>(half) & 1)];
    return part;
}
MAXOPS_CALLED void _mm512_mask_cvtepi32_storeu_epi16(void* to, const __mmask16& mask, const __m512i& v) {
    stores(to, mask, v.seen_by(32), 2);
}
MAXOPS_CALLED void _mm512_mask_cvtepi32_storeu_epi8(void* to, const __mmask16& mask, const __m512i& v) {
    stores(to, mask, v.seen_by(32), 1);
}

#undef MAXOPS_CALLED

}  // namespace maxops::terms
