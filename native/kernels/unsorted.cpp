// The SegmentMax kernels of one instruction set for unsorted ids.
#include "unsorted.h"

#include "kernels.h"

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr UnsortedKernels kernels_for() {
    UnsortedKernels k{};
    if constexpr (kHasKernels<T>) {
        k.init_segments = init_segments<T>;
        k.accumulate_rows[0] = Unsorted<T, std::int32_t>::accumulate;
        k.accumulate_rows[1] = Unsorted<T, std::int64_t>::accumulate;
        k.merge_segments = merge_segments<T>;
        k.finalize_segments = finalize_segments<T>;
    }
    return k;
}

}  // namespace

const UnsortedKernels unsorted[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#define MAXOPS_IGNORING_NAN(name, order) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
