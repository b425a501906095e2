// The native API as a table of functions for the package's other modules. Through this table, all modules use
// the same threads, instruction set and settings. A second copy of the core would have its own. The functions
// use no Python, do not require the GIL, and throw no exceptions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "api.h"

namespace maxops {

struct CoreTable {
    std::size_t size;  // of the table and its functions' arguments; each module checks that it equals its own

    Fault (*plan_maximum)(Broadcasting, Maximum*);
    Fault (*maximum)(Poll, const Maximum&, const View& out, bool streams);
    Fault (*mark_axes)(const std::int64_t* axes, std::size_t count, bool negative_allowed, Reduction*);
    Fault (*reduce_max)(Poll, const Reduction&, const View& out);
    Fault (*argmax_in_axes)(Poll, const Reduction&, const View& values, const View& indices);
    Fault (*plan_segments)(Poll, Segmentation*, bool is_new);
    Fault (*segment_max)(Poll, const Segmentation&, const View& out);
    Fault (*argmax_in_segments)(Poll, const Segmentation&, const View& values, std::int64_t* indices);
};

constexpr std::size_t kCoreTableSize =
    sizeof(CoreTable) + sizeof(View) + sizeof(Maximum) + sizeof(Reduction) + sizeof(Segmentation) + kTypes;

// The name of the capsule that holds the table.
constexpr char kCoreTableName[] = "maxops._native.core";

const CoreTable& core_table();

}  // namespace maxops
