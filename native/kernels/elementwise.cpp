// The Max kernels of one instruction set.
#include "elementwise.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr ElementwiseKernels kernels_for() {
    ElementwiseKernels k{};
    if constexpr (kHasKernels<T>) {
        k.fold[1] = fold<T, 1>;
        k.fold[2] = fold<T, 2>;
        k.fold[3] = fold<T, 3>;
        k.fold[4] = fold<T, 4>;
        k.fold[8] = fold<T, 8>;
        k.fold_rows_with = fold_rows_with<T>;
    }
    return k;
}

}  // namespace

const ElementwiseKernels elementwise[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#define MAXOPS_IGNORING_NAN(name, order) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
