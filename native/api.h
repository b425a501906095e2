// Max, ReduceMax and SegmentMax on arrays in memory: views in, a result or a Fault out. Every binding
// (Python, ONNX Runtime, XLA) comes through here, and no call runs that breaks a rule of shapes, axes, ids or
// offsets. Which rule it breaks, maxops.plan says. No Python, no exceptions but those of the caller's poll.
//
// A call has two steps, since the caller allocates its output: the first works out the output's shape, the
// second writes it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "drivers/dispatch.h"
#include "drivers/iterate.h"

namespace maxops {

inline const Kernels& kernels_of(int type, bool ignores_nan = false) {
    return *current().kernels(static_cast<Type>(type), ignores_nan);
}

// An array: any strides, any alignment. What it points to is the caller's.
struct View {
    char* data;
    const std::ptrdiff_t* sizes;
    const std::ptrdiff_t* strides;  // in bytes
    int rank;
    int type;         // as types.def numbers them
    bool swapped;     // not in this machine's byte order
    bool contiguous;  // in C order and in this machine's byte order

    std::size_t elements() const {
        std::size_t count = 1;
        for (int axis = 0; axis < rank; ++axis) count *= static_cast<std::size_t>(sizes[axis]);
        return count;
    }
    std::size_t bytes() const { return elements() * kernels_of(type).itemsize; }
    bool has_shape_of(const View& other) const;
    // With its axes aligned with the last axes of a shape of this rank, and stride 0 where its size is 1.
    void get_operand(int shape_rank, Operand* operand) const;
    Operand operand(int shape_rank) const {
        Operand operand;
        get_operand(shape_rank, &operand);
        return operand;
    }
    Shape shape() const;
};

// Why there is no result.
struct Fault {
    enum Kind : int {
        kNone,
        kNotHandled,  // not clearly valid, as Python's NotImplemented: the planner looks at it
        kStopped,     // by the poll
        kOutOfMemory,
        kShapes,     // input `position` does not broadcast with those before it
        kAxisRange,  // axes[position] is `value`
        kAxisTwice,
        kNegativeId,    // position, value
        kIdTooLarge,    // not below num_segments
        kIdsDecrease,   // after `previous`
        kOffsetsBegin,  // not with 0
        kOffsetsDecrease,
        kOffsetsEnd,  // not with the number of rows, which is `previous`
    };
    Kind kind = kNone;
    std::int64_t position = 0, value = 0, previous = 0;

    explicit operator bool() const { return kind != kNone; }
    bool is_of_indices() const { return kind >= kNegativeId; }
    // Faults of ids and offsets, numbered as in maxops.plan.faults.
    const char* name() const {
        constexpr const char* kNames[] = {"negative_id",   "id_too_large",     "ids_decrease",
                                          "offsets_begin", "offsets_decrease", "offsets_end"};
        return is_of_indices() ? kNames[kind - kNegativeId] : "";
    }
};

// The result of a call that was interrupted, unless it is done.
inline Fault finished(bool is_done) {
    return {is_done ? Fault::kNone : Fault::kStopped};
}

// False to stop a call: asked now and then by the thread that made it, and only where waiting makes sense.
using Poll = bool (*)();

// ---------------------------------------------------------------------------- Max

enum class Broadcasting { kNone, kNumpy, kStrict };  // kStrict: no axis of size 0 beside one of size 1

struct Maximum {
    const View* inputs;
    std::size_t count;
    // Set by plan_maximum: the broadcast shape; and whether the inputs are of one shape, contiguous and
    // native, but for scalars, so that their elements meet in memory order.
    Shape shape;
    bool alike = false;
    bool ignores_nan = false;  // the maximum is NaN only where all elements are

    Maximum(const View* all_inputs, std::size_t how_many) : inputs(all_inputs), count(how_many) {}
};

Fault plan_maximum(Broadcasting how, Maximum* call);

// The axes of a new output from outermost to innermost, as the inputs have them. False: C order.
bool layout(const Maximum& call, int* axes);

// `out` has the call's shape, and overlaps none of the inputs but where it is the same array. `streams`: its
// pages are mapped and it is none of the inputs.
Fault maximum(Poll poll, const Maximum& call, const View& out, bool streams);

// ---------------------------------------------------------------------------- ReduceMax

struct Reduction {
    View data;
    AxisSet is_reduced;
    bool keepdims = true;
    bool ignores_nan = false;       // as above
    const char* initial = nullptr;  // one more element of every maximum, canonical; or none
};

// Marks the axes that are named; none are all.
Fault mark_axes(const std::int64_t* axes, std::size_t count, bool negative_allowed, Reduction* call);
Shape output_shape(const Reduction& call);
// As `layout` above; for new outputs of the shape above.
bool layout(const Reduction& call, int* axes);

// `out` has that shape and does not overlap the data.
Fault reduce_max(Poll poll, const Reduction& call, const View& out);

// The place among the reduced axes, in C order, of the first element that holds each of the values, -1 where
// none does. The values and the contiguous int64 indices have the shape of the output.
Fault argmax(Poll poll, const Reduction& call, const View& values, const View& indices);

// ---------------------------------------------------------------------------- SegmentMax

struct Segmentation {
    View data;     // any rank but 0
    int axis = 0;  // of the data: its slices are the rows, which the ids name
    View indices;  // ids of (rows,), or offsets of (segments + 1,): int32 or int64
    bool by_offsets = false;
    bool is_sorted = true;            // ids that never decrease; offsets always are
    bool checks = true;               // the ids or offsets
    bool rejects_negative = true;     // if not, such rows are left out
    bool rejects_past = false;        // num_segments and more; likewise
    bool ignores_nan = false;         // as above
    std::int64_t num_segments = -1;   // below 0: as the ids or offsets have it
    std::uint64_t fill = 0;           // bits, of empty segments
    const char* initial = nullptr;    // as above
    bool checks_with_maxima = false;  // set by plan_segments: in the pass that takes the maxima
    bool has_rows = true;             // set by plan_segments: false for bad, unchecked offsets
};

// Finds num_segments, and validates ids or offsets: before anything is written, unless the output is new and
// is discarded after a fault (`is_new`).
Fault plan_segments(Poll poll, Segmentation* call, bool is_new);

// As `layout` above, for outputs of the data's shape with num_segments along the segment axis.
bool layout(const Segmentation& call, int* axes);

// Whether memory may end where a part of the output is already written: then that is not the caller's own.
__attribute__((cold)) bool writes_in_parts(const Segmentation& call);

// For a planned call. `out` is native, has no gaps in the order of layout(), and overlaps no input.
Fault segment_max(Poll poll, const Segmentation& call, const View& out);

// For a planned call: the first row that holds each of the values, or -1. Both as `out` above.
Fault argmax(Poll poll, const Segmentation& call, const View& values, std::int64_t* indices);

// For a planned call, without data: 1 for each segment without rows, else 0.
Fault empty_segments(Poll poll, const Segmentation& call, std::uint8_t* is_empty);

// The first id or offset that breaks a rule of the call, whose num_segments may be unknown. Here they may be
// uint64 too: position, value and previous are then those bits.
Fault check_indices(Poll poll, const Segmentation& call);

// Ids or offsets of any integer type as int32 or int64 of the same length, contiguous and native, which hold
// all values but those of uint64 past int64's highest: these become that.
Fault widen_indices(Poll poll, const View& indices, const View& out);

// An item of a type in its canonical bits: any NaN as the one quiet NaN, any True as 1.
std::uint64_t canonical(int type, char* item);

}  // namespace maxops
