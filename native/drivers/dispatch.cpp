#include "dispatch.h"

#include <array>
#include <atomic>
#include <cstring>

#include "../core/order.h"

namespace maxops {

// CMakeLists.txt writes instruction_sets.def: a line MAXOPS_INSTRUCTION_SET(namespace, name) for each
// instruction set that is compiled, best first.
#define MAXOPS_INSTRUCTION_SET(isa, name) MAXOPS_DECLARE_KERNELS(isa)
#include "instruction_sets.def"
#undef MAXOPS_INSTRUCTION_SET

namespace {

// Whether this machine supports each instruction set. Builds of fewer sets do not use all of these functions.
#ifdef __x86_64__
// Exactly the features that CMakeLists.txt enables: slightly fewer than the psABI's levels of these names.
// The baseline is x86-64-v2.
[[maybe_unused]] bool has_baseline() {
    return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
           __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("popcnt");
}
[[maybe_unused]] bool has_x86_64_v3() {
    return has_baseline() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_x86_64_v4() {
#ifdef MAXOPS_EMULATE_AVX512
    return has_x86_64_v3();
#else
    return has_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
}
#else
bool has_baseline() {
    return true;
}
#endif

template <class T>
constexpr TypeFacts facts() {
    using Word = std::make_unsigned_t<typename T::Bits>;
    TypeFacts facts{};
    facts.itemsize = sizeof(typename T::Bits);
    facts.lowest = static_cast<Word>(T::kLowest);
    facts.neutral = static_cast<Word>(T::bits(T::kLowestKey));
    facts.empty = static_cast<Word>(T::kEmpty);
    facts.lowest_finite = static_cast<Word>(T::kLowestFinite);
    facts.highest = static_cast<Word>(T::bits(T::kHighestKey));
    if constexpr (T::is_float) facts.nan = static_cast<Word>(T::kNaN);
    return facts;
}
constexpr TypeFacts kFacts[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) facts<MAXOPS_ISA::order>(),
#define MAXOPS_IGNORING_NAN(name, order) facts<MAXOPS_ISA::order>(),
#include "../core/types.def"
};

// The type of each order.
constexpr int kTypesOfOrders[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) static_cast<int>(Type::name##_),
#define MAXOPS_IGNORING_NAN(name, order) static_cast<int>(Type::name##_),
#include "../core/types.def"
};

// Combines the tables of each kernel family into one table for each order, in code that every machine can
// run.
using Tables = std::array<Kernels, kOrders>;
Tables tables(const ElementwiseKernels* elementwise, const ReduceKernels* reduce,
              const SegmentKernels* segment, const UnsortedKernels* unsorted, const ArgmaxKernels* argmax,
              const CopyKernels* copy) {
    Tables all;
    for (std::size_t order = 0; order < kOrders; ++order) {
        const int type = kTypesOfOrders[order];
        all[order] = {kFacts[order],   elementwise[order], reduce[order], segment[order],
                      unsorted[order], argmax[type],       copy[type]};
    }
    return all;
}
#define MAXOPS_INSTRUCTION_SET(isa, name) \
    const Tables isa##_tables =           \
        tables(isa::elementwise, isa::reduce, isa::segment, isa::unsorted, isa::argmax, isa::copy);
#include "instruction_sets.def"
#undef MAXOPS_INSTRUCTION_SET

const InstructionSet kSets[] = {
#define MAXOPS_INSTRUCTION_SET(isa, name) {name, has_##isa, isa##_tables.data()},
#include "instruction_sets.def"
#undef MAXOPS_INSTRUCTION_SET
    {nullptr, nullptr, nullptr},
};

}  // namespace

std::atomic<const InstructionSet*> chosen{nullptr};

const InstructionSet* instruction_sets() {
    return kSets;
}

const InstructionSet& choose_best() {
    const InstructionSet* set = kSets;
    while (set->name != nullptr && !set->runs_here()) ++set;
    chosen.store(set, std::memory_order_relaxed);
    return *set;
}

bool use(const char* name) {
    for (const InstructionSet* set = kSets; set->name != nullptr; ++set)
        if (std::strcmp(set->name, name) == 0 && set->runs_here()) {
            chosen.store(set, std::memory_order_relaxed);
            return true;
        }
    return false;
}

}  // namespace maxops
