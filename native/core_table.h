// The core as a table of C functions, for the package's other modules: they share its threads, its
// instruction set and its settings, which a second copy of it would have to itself. No Python, no GIL, no
// exceptions.
#pragma once
#include <cstddef>
#include <cstdint>

namespace maxops {

// A contiguous array in C order and this machine's byte order.
struct CoreArray {
    void* data;
    int rank;
    const std::int64_t* sizes;
};

enum class CoreStatus : int { kDone, kBadIds, kNoMemory, kBadRank };

enum class IdOrder : int { kSorted, kAny, kOffsets };

// SegmentMax of rows of `width` elements. The ids are (rows,); offsets are (segments + 1,), to be cut or
// padded to num_segments. Bad ones, where nothing is checked, spoil the result and nothing else.
struct CoreSegments {
    const void* data;
    std::size_t rows, width;
    const void* ids;
    std::size_t id_count;
    bool ids_are_wide;  // int64, not int32
    IdOrder order;
    bool checks;                        // what is wrong under `order`, and the two below
    bool negative_is_bad, past_is_bad;  // if not, such rows are left out
    std::int64_t num_segments;
    std::uint64_t fill;  // bits
    void* out;           // (num_segments, width)
};

// Where ids or offsets break a rule.
enum class IdFault : int { kNegative, kPast, kDecreasing, kBegin, kEnd };
struct CoreIdFault {
    IdFault fault;
    std::int64_t position, value, previous;
};

struct CoreTable {
    std::size_t size;               // of this table, for the reader to compare with its own
    const char* const* type_names;  // `type` below is a place in it; a null name ends it

    // Max of inputs that broadcast to the output's shape.
    CoreStatus (*maximum)(int type, const CoreArray* inputs, std::size_t count, const CoreArray* out);
    // ReduceMax; is_reduced[axis] for each axis of the data, nothing empty. The output is contiguous without
    // them.
    CoreStatus (*reduce_max)(int type, const CoreArray* data, const bool* is_reduced, void* out);
    CoreStatus (*segment_max)(int type, const CoreSegments* call, CoreIdFault* fault);
    // Where the results of the two above stand: the first place among the reduced axes in C order, or the
    // first row; -1 where no element holds the result. The ids are not checked, and `out` holds the results.
    CoreStatus (*locate)(int type, const CoreArray* data, const bool* is_reduced, const void* results,
                         std::int64_t* places);
    CoreStatus (*locate_segments)(int type, const CoreSegments* call, std::int64_t* places);
};

// Of the capsule that holds the table.
constexpr char kCoreTableName[] = "maxops._native.core";

const CoreTable& core_table();

}  // namespace maxops
