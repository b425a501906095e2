// The copy kernels of one instruction set.
#include "copy.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr CopyKernels kernels_for() {
    CopyKernels k{};
    k.gather = gather<Word<T>>;
    k.gather_rows = gather_rows<Word<T>>;
    k.transpose = transpose<Word<T>>;
    k.scatter = scatter<Word<T>>;
    k.stream = stream;
    return k;
}

}  // namespace

const CopyKernels copy[kTypes] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
