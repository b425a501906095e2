// Proves for all values that kernels/segment_avx512.h converts values to keys and back correctly. The terms (terms.h)
// that the header computes for a loaded lane and for a stored lane are compared with order.h's keys and values. A lane
// may be wider than a key. segments.cpp verifies which lanes each output is the maximum of.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "segment_terms.h"
#include "../order/solver.h"
#include "../order/term.h"

namespace maxops {
namespace MAXOPS_ISA {
const ReduceKernels reduce[kOrders] = {};  // no function of this program calls these kernels
namespace {

using proofs::context;
using proofs::prove;

int failed_trials = 0;

// Translates a term to Z3, with these expressions for its variables.
z3::expr translated(std::uint32_t number, const std::vector<z3::expr>& variables) {
    using terms::Op;
    const terms::Term& t = terms::all_terms()[number];
    const auto of = [&](std::uint32_t n) { return translated(n, variables); };
    const auto by = [&] { return context().bv_val(t.value, t.bits); };
    switch (t.op) {
        case Op::kVariable: return variables.at(t.value);
        case Op::kKnown: return by();
        case Op::kWiden: {
            const unsigned more = t.bits - terms::all_terms()[t.a].bits;
            return t.value != 0 ? z3::sext(of(t.a), more) : z3::zext(of(t.a), more);
        }
        case Op::kNarrow: return of(t.a).extract(t.bits - 1, 0);
        case Op::kShiftLeft: return z3::shl(of(t.a), by());
        case Op::kShiftRight: return z3::lshr(of(t.a), by());
        case Op::kShiftSign: return z3::ashr(of(t.a), by());
        case Op::kAdd: return of(t.a) + of(t.b);
        case Op::kSub: return of(t.a) - of(t.b);
        case Op::kTernary: {
            z3::expr all = context().bv_val(0, t.bits);
            for (unsigned k = 0; k < 8; ++k)
                if ((t.value >> k & 1) != 0)
                    all = all | (((k & 4) != 0 ? of(t.a) : ~of(t.a)) & ((k & 2) != 0 ? of(t.b) : ~of(t.b)) &
                                 ((k & 1) != 0 ? of(t.c) : ~of(t.c)));
            return all;
        }
        case Op::kMinimum: return z3::ite(z3::slt(of(t.a), of(t.b)), of(t.a), of(t.b));
        case Op::kMaximum: {
            const auto& set = terms::all_terms().set(t);
            z3::expr most = of(set[0]);
            for (const std::uint32_t each : set) most = z3::ite(z3::slt(most, of(each)), of(each), most);
            return most;
        }
        case Op::kLess: return z3::ite(z3::slt(of(t.a), of(t.b)), context().bv_val(1, 1), context().bv_val(0, 1));
        case Op::kSelect: return z3::ite(of(t.a) == context().bv_val(1, 1), of(t.b), of(t.c));
    }
    std::abort();
}

template <class T>
class Lanes {
public:
    // Loads two lanes of a vector, and stores the first lane and the maximum of both.
    explicit Lanes(const std::string& type) : type_(type) {
        terms::variables() = {reinterpret_cast<const char*>(items_), 2, sizeof(Item<T>)};
        const terms::Vector loaded = Keys::load(3, items_);
        for (unsigned k = 0; k < 2; ++k) keys_.push_back(loaded.lanes[k].as_term(kBits));
        maximum_ = stored(terms::all_terms().maximum(keys_[0], keys_[1], kBits));
        same_ = stored(keys_[0]);
    }

    void goals() {
        using Term = proofs::Term<typename T::Bits>;
        const Term x = Term::any("x"), y = Term::any("y");
        const std::vector<z3::expr> variables{x.e, y.e};
        const z3::expr a = translated(keys_[0], variables), b = translated(keys_[1], variables);
        prove(type_ + ": lanes are in the order of keys", z3::slt(a, b) == less(T::keys(x), T::keys(y)).e);
        prove(type_ + ": no two keys have one lane", (a == b) == (T::keys(x).e == T::keys(y).e));
        prove(type_ + ": a lane is stored as its key's value", translated(same_, variables) == T::values(T::keys(x)).e);
        prove(type_ + ": the maximum of two lanes is stored as that of two keys",
              translated(maximum_, variables) == T::values(max(T::keys(x), T::keys(y))).e);
    }

    // Tests with random values, without a proof, that the translation of a term to Z3 has the value of the term, and
    // that the key of a number (a carried key or the fill value) equals the key that a lane would have.
    bool trials() {
        std::mt19937_64 random(3);
        std::vector<std::uint64_t> words;
        for (unsigned bit = 0; bit < 8 * sizeof(Item<T>); ++bit)
            for (int near = -1; near <= 1; ++near)
                for (const std::uint64_t sign : {std::uint64_t{0}, std::uint64_t{1} << (8 * sizeof(Item<T>) - 1)})
                    words.push_back((std::uint64_t{1} << bit) + static_cast<std::uint64_t>(near) + sign);
        for (int k = 0; k < 20'000; ++k) words.push_back(random());
        if (sizeof(Item<T>) <= 2)
            for (std::uint64_t word = 0; word < 65536; ++word) words.push_back(word);
        const unsigned bits = 8 * sizeof(Item<T>);
        bool is_valid = true;
        for (std::size_t k = 1; k < words.size(); ++k) {
            const std::vector<std::uint64_t> values{terms::low_bits(words[k], bits), terms::low_bits(words[k - 1], bits)};
            const auto word = static_cast<typename T::Bits>(values[0]);
            // for bool, numbers are results or fill values, which are only 0 and 1
            if (!std::is_same_v<T, BoolOrder> || values[0] < 2)
                is_valid = is_valid && Keys::splat(word).lanes[0].known() == terms::all_terms().value(keys_[0], values);
            if (k % 97 != 0) continue;
            const std::vector<z3::expr> numbers{context().bv_val(values[0], bits), context().bv_val(values[1], bits)};
            for (const std::uint32_t term : {keys_[0], same_, maximum_})
                is_valid = is_valid && translated(term, numbers).simplify().get_numeral_uint64() ==
                                           terms::all_terms().value(term, values);
        }
        return is_valid;
    }

private:
    using Keys = avx512::KeyLanes<T>;
    static constexpr unsigned kBits = 512 / Keys::Lanes::kCount;

    // The term that is stored for a key in the second lane of a vector.
    static std::uint32_t stored(std::uint32_t key) {
        terms::Vector v = Keys::Lanes::splat(0);
        v.lanes[1] = {0, key};
        Item<T> to[2];
        terms::stored().clear();
        Keys::store(2, to, v);
        return terms::stored().at(0);
    }

    std::string type_;
    Item<T> items_[2] = {};
    std::vector<std::uint32_t> keys_;
    std::uint32_t maximum_ = 0, same_ = 0;
};

template <class T>
void all(const std::string& type) {
    Lanes<T> lanes(type);
    lanes.goals();
    if (!lanes.trials()) {
        std::fprintf(stderr, "%s: a key of a number, or a term in the solver's words\n", type.c_str());
        failed_trials += 1;
    }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops

int main() {
    using namespace maxops::MAXOPS_ISA;
#define MAXOPS_TYPE(name, order, ...) all<order>(#name);
#define MAXOPS_IGNORING_NAN(name, order) all<order>(#name ", ignoring NaN");
#include "../../native/core/types.def"
    if (maxops::proofs::unproved != 0) return 1;
    return failed_trials != 0 ? 2 : 0;  // the proofs would not be about these lanes
}
