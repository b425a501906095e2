// The SegmentMax kernels of one instruction set for sorted ids.
#include "segment.h"

#include "kernels.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
constexpr SegmentKernels kernels_for() {
    SegmentKernels k{};
    if constexpr (kHasKernels<T>) {
        k.segment[0] = segment_rows<T, std::int32_t>;
        k.segment[1] = segment_rows<T, std::int64_t>;
        k.one_segment = one_segment<T>;
        k.fill = fill<T>;
        if constexpr (!T::is_float) k.sorted = sorted<typename T::Bits>;
    }
    return k;
}

}  // namespace

const SegmentKernels segment[kOrders] = {
#define MAXOPS_TYPE(name, order, ...) kernels_for<order>(),
#define MAXOPS_IGNORING_NAN(name, order) kernels_for<order>(),
#include "../core/types.def"
};

}  // namespace MAXOPS_ISA
}  // namespace maxops
