// The kernel table of one instruction set for one order of elements.
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

// Orders of elements, as indices into the tables below: one per type, then those that ignore NaN.
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

// Scratch memory of a segment kernel: a block's ids, the keys of its segments and their output indices.
constexpr std::size_t kSegmentScratchBytes = 3 * 8 * (kBlockRows + 16) + 512;

// The state of a walk over the rows of a SegmentMax, carried from one block of rows to the next.
struct SegmentWalk {
    char* out;  // (num_segments, width), rows `out_stride` bytes apart
    std::ptrdiff_t out_stride;
    std::size_t width;  // the number of elements of each row that this walk processes
    std::int64_t num_segments;
    std::uint64_t fill;  // bits of the value for empty segments
    bool is_filled;      // the output is already filled, so the walk skips gaps
    bool gallops;        // skips long runs without reading each id, because the caller guarantees sorted ids
    bool checks;         // checks the ids: the walk ends at a negative or a decreasing id
    bool is_unsorted;    // the walk ended at such an id
    std::int64_t last_id;   // the last row's id, not clamped; initially 0. Updated only if `checks`
    std::int64_t previous;  // segment of the last row; -1 or num_segments if it is below or past the output
    std::int64_t written;   // all rows below it are written, and are not filled again if ids decrease
    char* target;           // maximum so far of the last row's segment; null outside the output
    void* scratch;          // kSegmentScratchBytes, aligned to 64; its content does not outlive a call
};

// The keys of all or some segments of a SegmentMax with unsorted ids.
struct UnsortedSegments {
    char* keys;  // (to - from, width), rows `stride` bytes apart
    std::ptrdiff_t stride;
    std::size_t width;      // the number of elements of each row that are processed
    std::int64_t from, to;  // the segments: [from, to)
    bool takes_all;         // [from, to) is all segments, so most rows belong to it
};

// The results of all or some segments of a SegmentMax, and the indices of the rows that contain them.
struct SegmentArgmax {
    const char* results;  // canonical: (to - from, width), rows `result_stride` bytes apart
    std::ptrdiff_t result_stride;
    std::int64_t* indices;  // rows `indices_stride` items apart; -1: not known yet
    std::size_t indices_stride;
    std::size_t width;
    std::int64_t from, to;
};

// Pointers may have any alignment. Strides are in bytes, counts in elements.

struct ElementwiseKernels {
    // out[r][i] = max(in[0][r][i], in[1][r][i], ...) for `rows` rows of n elements; strides are between rows.
    // Indexed by the number of inputs; null for 0, 5, 6 and 7.
    static constexpr int kMostInputs = 8;
    void (*fold[kMostInputs + 1])(void* out, std::ptrdiff_t out_stride, const void* const* in,
                                  const std::ptrdiff_t* strides, std::size_t rows, std::size_t n);

    // out[r][i] = max(in[r][i], items[r]) for `rows` rows of n elements; strides are between rows.
    void (*fold_rows_with)(void* out, std::ptrdiff_t out_stride, const void* in, std::ptrdiff_t in_stride,
                           const void* items, std::ptrdiff_t item_stride, std::size_t rows, std::size_t n);
};

// A reduction in steps, on keys of the element's size that stay in cache:
// start, then any mix of rows and columns, then merge if there are groups, then finish.
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

// In pairs of kernels, [0] takes int32 ids and [1] takes int64 ids.
struct SegmentKernels {
    // Rows with contiguous ids. Unsorted ids corrupt the result, but nothing else.
    void (*segment[2])(SegmentWalk* walk, const void* data, std::ptrdiff_t stride, const void* ids,
                       std::size_t rows);
    // Rows of one segment: the walk's last segment or a later one.
    void (*one_segment)(SegmentWalk* walk, std::int64_t id, const char* data, std::ptrdiff_t stride,
                        std::size_t rows);
    // Writes the fill value to output rows [from, to).
    void (*fill)(const SegmentWalk* walk, std::int64_t from, std::int64_t to);
    // Returns whether n contiguous ids are non-negative and non-decreasing. Null for floats.
    bool (*sorted)(const void* ids, std::size_t n);
};

// SegmentMax with unsorted ids, in steps, on keys in the memory of the output: init_segments, then any mix of
// accumulate_rows and merge_segments, then finalize_segments.
struct UnsortedKernels {
    void (*init_segments)(void* keys, std::uint64_t bits, std::size_t n);
    // Returns whether any row has the lowest key in its first column.
    bool (*accumulate_rows[2])(const UnsortedSegments* to, const void* data, std::ptrdiff_t stride,
                               const void* ids, std::size_t rows);
    void (*merge_segments)(void* keys, const void* others, std::size_t n);
    // `is_empty` marks rows without elements; if null, these are the rows whose first key is the lowest.
    void (*finalize_segments)(void* keys, std::ptrdiff_t stride, const std::uint8_t* is_empty,
                              std::uint64_t fill, std::size_t rows, std::size_t n);
};

struct ArgmaxKernels {
    // For each of `rows` rows of n elements: the index of the first element that equals the row's canonical
    // result, or -1.
    void (*argmax_rows)(std::int64_t* indices, const void* data, std::ptrdiff_t stride, const void* results,
                        std::size_t rows, std::size_t n);
    // For up to kIndexRows rows of n elements, from row number `row` on: sets each column's index that is
    // still unknown to the first row that contains the column's result. Returns the number of indices set.
    std::size_t (*argmax_columns)(std::int64_t* indices, std::int64_t row, const void* data,
                                  std::ptrdiff_t stride, std::size_t rows, const void* results,
                                  std::size_t n);
    // The same for segments, for rows from number `row` on. The ids are as for `segment`.
    void (*argmax_segments[2])(const SegmentArgmax* to, std::int64_t row, const void* data,
                               std::ptrdiff_t stride, const void* ids, std::size_t rows);
};

// Copies between any layout and a contiguous block in native byte order.
struct CopyKernels {
    void (*gather)(void* block, const void* data, std::ptrdiff_t stride, std::size_t n, bool swapped);
    void (*gather_rows)(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                        std::size_t rows, std::size_t n, bool swapped);
    // a contiguous (rows, columns) block from `columns` runs of `rows` items, `stride` bytes apart
    void (*transpose)(void* block, const void* data, std::ptrdiff_t stride, std::size_t rows,
                      std::size_t columns);
    void (*scatter)(void* data, const void* block, std::ptrdiff_t stride, std::size_t n, bool swapped);
    // A copy by non-temporal stores, which bypass the cache. After the last one, a thread calls end_streams()
    // to make its stores visible to other threads.
    void (*stream)(void* to, const void* block, std::size_t bytes);
};

struct TypeFacts {
    std::size_t itemsize;
    // Bits of the lowest and of the highest value: -Inf and NaN, or with nan="ignore" a NaN and +Inf; the
    // lowest and the highest integer; False and True.
    std::uint64_t lowest, highest;
    std::uint64_t neutral;  // bits of max(lowest, lowest): `lowest`, with a NaN replaced by the quiet NaN
    std::uint64_t empty;    // bits of the maximum of no elements: -Inf, False, the lowest integer
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

// The tables of one instruction set, defined in kernels/*.cpp and indexed by order. argmax and copy are
// indexed by type, because no order changes which elements equal a maximum.
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
    const Kernels* tables;  // indexed by order

    const Kernels* kernels(Type type, bool ignores_nan = false) const {
        return tables + order_of(static_cast<int>(type), ignores_nan);
    }
};

// The strides of a single row.
constexpr std::ptrdiff_t kNoStrides[Kernels::kMostInputs] = {};

// Non-temporal stores are weakly ordered: a thread calls this before it publishes them to other threads.
inline void end_streams() {
#if defined(__x86_64__)
    __builtin_ia32_sfence();
#endif
}

}  // namespace maxops
