// Selects an instruction set on processors with missing features: for each line of features, prints the
// supported sets, best first, and the selected one.
#include <iostream>
#include <set>
#include <sstream>
#include <string>

static bool is_supported(const char* feature);
#define __builtin_cpu_supports is_supported
#include "kernels/kernels.h"

namespace maxops {
#define MAXOPS_INSTRUCTION_SET(isa, name)                \
    namespace isa {                                      \
    extern const ElementwiseKernels elementwise[kTypes]; \
    extern const ReduceKernels reduce[kTypes];           \
    extern const SegmentKernels segment[kTypes];         \
    extern const UnsortedKernels unsorted[kTypes];       \
    extern const ArgmaxKernels argmax[kTypes];           \
    extern const CopyKernels copy[kTypes];               \
    const ElementwiseKernels elementwise[kTypes] = {};   \
    const ReduceKernels reduce[kTypes] = {};             \
    const SegmentKernels segment[kTypes] = {};           \
    const UnsortedKernels unsorted[kTypes] = {};         \
    const ArgmaxKernels argmax[kTypes] = {};             \
    const CopyKernels copy[kTypes] = {};                 \
    }
#include "instruction_sets.def"
#undef MAXOPS_INSTRUCTION_SET
}  // namespace maxops
#include "drivers/dispatch.cpp"

static std::set<std::string> features;
static bool is_supported(const char* feature) {
    return features.count(feature) > 0;
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream words(line);
        features.clear();
        for (std::string word; words >> word;) features.insert(word);
        for (const auto* set = maxops::instruction_sets(); set->name != nullptr; ++set)
            if (const bool runs = set->runs_here(); maxops::use(set->name) != runs)
                std::cout << "(asked for " << set->name << ") ";
            else if (runs)
                std::cout << set->name << ' ';
        const char* best = maxops::choose_best().name;
        std::cout << (best == nullptr ? "none" : best) << '\n';
    }
}
