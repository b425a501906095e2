#include "core_table.h"

namespace maxops {

static const char* const kNames[] = {
#define MAXOPS_TYPE(name, order) #name,
#include "types.def"
#undef MAXOPS_TYPE
    nullptr};

const CoreTable& core_table() {
    static constexpr CoreTable table{
        sizeof(CoreTable), kNames, maximum, mark_axes, reduce_max, argmax, plan_segments, segment_max, argmax};
    return table;
}

}  // namespace maxops
