// The ReduceMax kernels of one instruction set.
#include "reduce.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr ReduceKernels kernels_for() {
    ReduceKernels k{};
    if constexpr (kHasKernels<T>) {
        k.start = start<T>;
        k.rows = rows<T>;
        k.columns = columns<T>;
        k.merge = merge<T>;
        k.finish = finish<T>;
    }
    return k;
}

}  // namespace

const ReduceKernels reduce[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#define MAXOPS_IGNORING_NAN(name, order) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
