// The argmax kernels of one instruction set.
#include "argmax.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr ArgmaxKernels kernels_for() {
    ArgmaxKernels k{};
    if constexpr (kHasKernels<T>) {
        k.argmax_rows = argmax_rows<T>;
        k.argmax_columns = argmax_columns<T>;
        k.argmax_segments[0] = argmax_segments<T, std::int32_t>;
        k.argmax_segments[1] = argmax_segments<T, std::int64_t>;
    }
    return k;
}

}  // namespace

const ArgmaxKernels argmax[kTypes] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
