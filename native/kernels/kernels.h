// The table of kernels: what one instruction set offers for one storage type.
#pragma once
#include <cstddef>
#include <cstdint>

#include "../core/parameters.h"

namespace maxops {

enum class Type {
#define MAXOPS_TYPE(name, order, ...) name##_,
#include "../core/types.def"
    count
};
constexpr int kTypes = static_cast<int>(Type::count);

// The orders of elements, as the tables below have them: that of each type, then those that ignore NaN.
enum class Ignoring {
    first = kTypes - 1,
#define MAXOPS_IGNORING_NAN(name, order) name##_,
#include "../core/types.def"
    count
};
constexpr int kOrders = static_cast<int>(Ignoring::count);
constexpr int order_of(int type, bool ignores_nan) {
    if (!ignores_nan) return type;
    switch (static_cast<Type>(type)) {
#define MAXOPS_IGNORING_NAN(name, order) \
    case Type::name##_:                  \
        return static_cast<int>(Ignoring::name##_);
#include "../core/types.def"
        default:
            return type;
    }
}

// The scratch memory of a segment kernel: a block's ids, its segments' keys and their destinations.
constexpr std::size_t kSegmentScratchBytes = 3 * 8 * (kBlockRows + 16) + 512;

// The state of a walk over the rows of a SegmentMax, handed from one block of rows to the next.
struct SegmentWalk {
    char* out;  // (num_segments, width), rows `out_stride` bytes apart
    std::ptrdiff_t out_stride;
    std::size_t width;  // elements of a row that this walk covers
    std::int64_t num_segments;
    std::uint64_t fill;     // the bits of the value for empty segments
    bool is_filled;         // with that value already, so that a walk skips it
    bool gallops;           // over long runs, without a look at each id: the caller vouches for them
    bool checks;            // the ids: at one that is negative or lower than the one before the walk ends
    bool is_unsorted;       // it ended so
    std::int64_t last_id;   // of the last row, unchanged; 0 before the first. Kept if the walk checks
    std::int64_t previous;  // the last row's segment; -1 and num_segments mean all outside
    std::int64_t written;   // rows below it were written before ids decreased: they are not a gap
    char* target;           // where the last row's segment has its maximum so far; null outside
    void* scratch;          // kSegmentScratchBytes, aligned to 64; a call leaves nothing there
};

// The keys of a SegmentMax of rows in any order, or those of some of its segments.
struct UnsortedSegments {
    char* keys;  // (to - from, width), rows `stride` bytes apart
    std::ptrdiff_t stride;
    std::size_t width;      // elements of a row that this covers
    std::int64_t from, to;  // the segments
    bool takes_all;         // most rows are of these
};

// The results of a SegmentMax, or those of some of its segments, and the rows that hold them.
struct SegmentArgmax {
    const char* results;  // canonical: (to - from, width), rows `result_stride` bytes apart
    std::ptrdiff_t result_stride;
    std::int64_t* indices;  // rows `indices_stride` items apart; -1 if not known yet
    std::size_t indices_stride;
    std::size_t width;
    std::int64_t from, to;
};

// Every pointer may have any alignment; strides are in bytes, counts in elements.

struct ElementwiseKernels {
    // out[r][i] = max(in[0][r][i], in[1][r][i], ...) for `rows` rows of n elements, strides apart; by the
    // number of inputs; null for 0, 5, 6 and 7.
    static constexpr int kMostInputs = 8;
    void (*fold[kMostInputs + 1])(void* out, std::ptrdiff_t out_stride, const void* const* in,
                                  const std::ptrdiff_t* strides, std::size_t rows, std::size_t n);

    // out[r][i] = max(in[r][i], items[r]) for `rows` rows of n elements, strides apart.
    void (*fold_rows_with)(void* out, std::ptrdiff_t out_stride, const void* in, std::ptrdiff_t in_stride,
                           const void* items, std::ptrdiff_t item_stride, std::size_t rows, std::size_t n);
};

// A reduction in steps, on keys of the type's own size that stay in cache:
// start, then any mixture of rows and columns, then finish.
struct ReduceKernels {
    void (*start)(void* keys, std::size_t n);
    // keys[r] = max(keys[r], all n elements of row r), for each of `rows` rows
    void (*rows)(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n);
    // keys[j] = max(keys[j], element j of every row)
    void (*columns)(void* keys, const void* data, std::ptrdiff_t stride, std::size_t rows, std::size_t n);
    // keys[j] = max(keys[j], keys[j + n], keys[j + 2n], ...) over `groups` groups of n
    void (*merge)(void* keys, std::size_t groups, std::size_t n);
    void (*finish)(void* out, const void* keys, std::size_t n);
};

// A pair of kernels: [0] takes int32 ids, [1] int64.
struct SegmentKernels {
    // Segments over `rows` contiguous ids. Ids that are not sorted spoil the result and nothing else.
    void (*segment[2])(SegmentWalk* walk, const void* data, std::ptrdiff_t stride, const void* ids,
                       std::size_t rows);
    // Rows of one segment, which is the walk's last or comes after it.
    void (*one_segment)(SegmentWalk* walk, std::int64_t id, const char* data, std::ptrdiff_t stride,
                        std::size_t rows);
    // Rows `from` to `to` of the output get the fill value.
    void (*fill)(const SegmentWalk* walk, std::int64_t from, std::int64_t to);
    // Whether n contiguous items, as ids, are non-negative and never decrease. Null for floats.
    bool (*sorted)(const void* ids, std::size_t n);
};

// SegmentMax of rows in any order, in steps, on keys that lie where the output is to be: init_segments, then
// any mixture of accumulate_rows and merge_segments, then finalize_segments.
struct UnsortedKernels {
    void (*init_segments)(void* keys, std::uint64_t bits, std::size_t n);
    // By the ids' type. Whether one of the rows has the lowest key in its first column.
    bool (*accumulate_rows[2])(const UnsortedSegments* to, const void* data, std::ptrdiff_t stride,
                               const void* ids, std::size_t rows);
    void (*merge_segments)(void* keys, const void* others, std::size_t n);
    // `is_empty`: which of the rows have no element; if null, those whose first key is the lowest.
    void (*finalize_segments)(void* keys, std::ptrdiff_t stride, const std::uint8_t* is_empty,
                              std::uint64_t fill, std::size_t rows, std::size_t n);
};

struct ArgmaxKernels {
    // The index of the first element that holds its row's canonical result, in `rows` rows of n elements; -1
    // if none does.
    void (*argmax_rows)(std::int64_t* indices, const void* data, std::ptrdiff_t stride, const void* results,
                        std::size_t rows, std::size_t n);
    // In up to kIndexRows rows of n results' elements, the first row being number `row`: puts the index of
    // the first element that holds each, where none is known yet. How many it put.
    std::size_t (*argmax_columns)(std::int64_t* indices, std::int64_t row, const void* data,
                                  std::ptrdiff_t stride, std::size_t rows, const void* results,
                                  std::size_t n);
    // Rows from number `row` on, by their ids, as in `segment`.
    void (*argmax_segments[2])(const SegmentArgmax* to, std::int64_t row, const void* data,
                               std::ptrdiff_t stride, const void* ids, std::size_t rows);
};

// Between anything and a contiguous native block.
struct CopyKernels {
    void (*gather)(void* block, const void* data, std::ptrdiff_t stride, std::size_t n, bool swapped);
    void (*gather_rows)(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                        std::size_t rows, std::size_t n, bool swapped);
    // (rows, columns), contiguous, from `columns` runs of `rows` items, `stride` bytes apart
    void (*transpose)(void* block, const void* data, std::ptrdiff_t stride, std::size_t rows,
                      std::size_t columns);
    void (*scatter)(void* data, const void* block, std::ptrdiff_t stride, std::size_t n, bool swapped);
    // A copy that leaves nothing in cache. Once a thread is through with it, end_streams() makes what it
    // wrote visible to others.
    void (*stream)(void* to, const void* block, std::size_t bytes);
};

struct TypeFacts {
    std::size_t itemsize;
    // Bits of the value that every other exceeds, and of the one that no other exceeds: -Inf and NaN, or a
    // NaN and +Inf; the lowest and the highest integer; False and True.
    std::uint64_t lowest, highest;
    std::uint64_t neutral;        // bits of the maximum of lowest values: as lowest, but the quiet NaN
    std::uint64_t empty;          // bits of the maximum of nothing: -Inf, False, the lowest integer
    std::uint64_t lowest_finite;  // bits
    std::uint64_t nan;            // bits; 0 for integers
};

struct Kernels : TypeFacts,
                 ElementwiseKernels,
                 ReduceKernels,
                 SegmentKernels,
                 UnsortedKernels,
                 ArgmaxKernels,
                 CopyKernels {};

// The tables that kernels_*.cpp make for one instruction set, by order; those of argmax and copy by type, as
// no order changes which elements equal a maximum.
#define MAXOPS_DECLARE_KERNELS(isa)                \
    namespace isa {                                \
    extern const ElementwiseKernels elementwise[]; \
    extern const ReduceKernels reduce[];           \
    extern const SegmentKernels segment[];         \
    extern const UnsortedKernels unsorted[];       \
    extern const ArgmaxKernels argmax[];           \
    extern const CopyKernels copy[];               \
    }

struct InstructionSet {
    const char* name;
    bool (*runs_here)();
    const Kernels* tables;  // by order

    const Kernels* kernels(Type type, bool ignores_nan = false) const {
        return tables + order_of(static_cast<int>(type), ignores_nan);
    }
};

// For a single row.
constexpr std::ptrdiff_t kNoStrides[Kernels::kMostInputs] = {};

// Streaming stores are not ordered with others: a thread calls this before it tells others of what it wrote.
inline void end_streams() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

}  // namespace maxops
