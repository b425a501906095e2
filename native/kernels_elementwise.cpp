// One instruction set's kernels for Max.
#include "kernels/elementwise.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr ElementwiseKernels kernels_for() {
    ElementwiseKernels k{};
    k.fold[1] = Folds<T>::template of<0>;
    k.fold[2] = Folds<T>::template of<0, 1>;
    k.fold[3] = Folds<T>::template of<0, 1, 2>;
    k.fold[4] = Folds<T>::template of<0, 1, 2, 3>;
    k.fold[8] = Folds<T>::template of<0, 1, 2, 3, 4, 5, 6, 7>;
    k.fold_rows_with = Folds<T>::rows_with;
    return k;
}

}  // namespace

const ElementwiseKernels elementwise[kTypes] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#include "types.def"
#undef MAXOPS_TYPE
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
