// The constants of parameters.def, checked against their ranges and against one another.
#pragma once
#include <cstddef>

namespace maxops {

#if defined(MAXOPS_MINIATURE)
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit) constexpr std::size_t name = miniature;
#else
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit) constexpr std::size_t name = ordinary;
#endif
#include "parameters.def"
#undef MAXOPS_PARAMETER

// Each build checks the values of both builds.
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit)               \
    static_assert((least) <= (ordinary) && (ordinary) <= (most), #name " ordinary"); \
    static_assert((least) <= (miniature) && (miniature) <= (most), #name " miniature");
#include "parameters.def"
#undef MAXOPS_PARAMETER

// Relations between buffer sizes.
static_assert(kStripBytes <= kKeyBytes, "ReduceMax: the block must have room for the keys of a strip");
static_assert(kGroupsBytes <= kKeyBytes && kGroupedRowBytes <= kGroupsBytes,
              "ReduceMax: the block must have room for the keys of groups");
static_assert(kIndexGatheredRows <= kIndexRows, "indices: a block must have room for the gathered rows");
static_assert(kPlainScanRows <= kBlockRows, "SegmentMax: a block must have room for the rows of a scan");

// A quarter of a line of `items` items, at least one item: the step for the tail of a loop over whole lines.
constexpr std::size_t quarter_of(std::size_t items) {
    return items < 4 ? 1 : items / 4;
}

}  // namespace maxops
