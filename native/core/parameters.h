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

// Both builds' values, whichever this one is.
#define MAXOPS_PARAMETER(name, ordinary, miniature, least, most, unit)               \
    static_assert((least) <= (ordinary) && (ordinary) <= (most), #name " ordinary"); \
    static_assert((least) <= (miniature) && (miniature) <= (most), #name " miniature");
#include "parameters.def"
#undef MAXOPS_PARAMETER

// The relations that the sizes of buffers must satisfy.
static_assert(kStripBytes <= kKeyBytes, "ReduceMax: a strip's keys lie in the block of keys");
static_assert(kGroupsBytes <= kKeyBytes && kGroupedRowBytes <= kGroupsBytes, "ReduceMax: groups' keys, too");
static_assert(kIndexGatheredRows <= kIndexRows, "indices: a row's number fits what counts rows");
static_assert(kPlainScanRows <= kBlockRows, "SegmentMax: a scan's rows fit its block");

// A quarter of a line of so many items, and at least one: what loops over whole lines leave is taken by
// these.
constexpr std::size_t quarter_of(std::size_t items) {
    return items < 4 ? 1 : items / 4;
}

}  // namespace maxops
