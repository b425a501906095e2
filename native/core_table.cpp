#include "core_table.h"

namespace maxops {

const CoreTable& core_table() {
    static constexpr CoreTable table{kCoreTableSize, plan_maximum,  maximum,     mark_axes, reduce_max,
                                     argmax,         plan_segments, segment_max, argmax};
    return table;
}

}  // namespace maxops
