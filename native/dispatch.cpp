#include "dispatch.h"

#include <atomic>
#include <cstring>

namespace maxops {

#define MAXOPS_DECLARE(name)           \
    namespace name {                   \
    const Kernels* kernels(Type type); \
    }

MAXOPS_DECLARE(x86_64_v4)
MAXOPS_DECLARE(x86_64_v3)
MAXOPS_DECLARE(x86_64_v2)
MAXOPS_DECLARE(baseline)
#undef MAXOPS_DECLARE

namespace {

bool always() {
    return true;
}

#ifdef __x86_64__
// Just what CMakeLists.txt lets the compiler use: a little less than the psABI's levels of these names. (A
// build of fewer sets leaves some of these unused.)
[[maybe_unused]] bool has_v2() {
    return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
           __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
           __builtin_cpu_supports("popcnt");
}
[[maybe_unused]] bool has_v3() {
    return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}
[[maybe_unused]] bool has_v4() {
#ifdef MAXOPS_EMULATE_AVX512
    return has_v3();
#else
    return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
}
#endif

// Best first. A new instruction set is an entry here, a line above, and one in CMakeLists.txt.
const InstructionSet kSets[] = {
#ifdef MAXOPS_HAS_x86_64_v4
    {"x86-64-v4", has_v4, x86_64_v4::kernels},
#endif
#ifdef MAXOPS_HAS_x86_64_v3
    {"x86-64-v3", has_v3, x86_64_v3::kernels},
#endif
#ifdef MAXOPS_HAS_x86_64_v2
    {"x86-64-v2", has_v2, x86_64_v2::kernels},
#endif
    {"baseline", always, baseline::kernels},   {nullptr, nullptr, nullptr},
};

const InstructionSet* best() {
    const InstructionSet* set = kSets;
    while (!set->runs_here()) ++set;  // baseline always does
    return set;
}

std::atomic<const InstructionSet*> chosen{nullptr};

}  // namespace

const InstructionSet* instruction_sets() {
    return kSets;
}

const InstructionSet& current() {
    const InstructionSet* set = chosen.load(std::memory_order_relaxed);
    if (set == nullptr) chosen.store(set = best(), std::memory_order_relaxed);
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
