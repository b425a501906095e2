// Max, ReduceMax and SegmentMax on arrays in memory. Functions take views, and return a result or a Fault.
// All bindings (Python, ONNX Runtime, XLA) use this API. It rejects calls that break a rule of shapes, axes,
// ids or offsets; maxops.plan raises the error. It uses no Python, and throws only exceptions of the caller's
// poll.
//
// A call has two steps, because the caller allocates the output: the first step computes the shape of the
// output, the second writes it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "drivers/dispatch.h"
#include "drivers/iterate.h"

namespace maxops {

inline const Kernels& kernels_of(int type, bool ignores_nan = false) {
    return *current().kernels(static_cast<Type>(type), ignores_nan);
}

// An array with any strides and alignment. The caller owns the memory.
struct View {
    char* data;
    const std::ptrdiff_t* sizes;
    const std::ptrdiff_t* strides;  // bytes
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
    // Aligns the axes with the last axes of a shape of this rank, with stride 0 for axes of size 1.
    void get_operand(int shape_rank, Operand* operand) const;
    Operand operand(int shape_rank) const {
        Operand operand;
        get_operand(shape_rank, &operand);
        return operand;
    }
    Shape shape() const;
};

// The reason why a call has no result.
struct Fault {
    enum Kind : int {
        kNone,
        kNotHandled,  // possibly invalid; the planner decides
        kStopped,     // the poll stopped the call
        kOutOfMemory,
        kShapes,     // input `position` does not broadcast with the inputs before it
        kAxisRange,  // axes[position] is `value`
        kAxisTwice,
        kNegativeId,    // position, value
        kIdTooLarge,    // num_segments or more
        kIdsDecrease,   // after `previous`
        kOffsetsBegin,  // the first offset is not 0
        kOffsetsDecrease,
        kOffsetsEnd,  // the last offset is not the number of rows, `previous`
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

// The result of a call that has finished or was stopped by the poll.
inline Fault finished(bool is_done) {
    return {is_done ? Fault::kNone : Fault::kStopped};
}

// The calling thread calls this function from time to time during long work. It returns false to stop the
// call.
using Poll = bool (*)();

// ---------------------------------------------------------------------------- Max

enum class Broadcasting { kNone, kNumpy, kStrict };  // kStrict: size 0 does not broadcast with size 1

struct Maximum {
    const View* inputs;
    std::size_t count;
    // Set by plan_maximum: the broadcast shape, and whether all inputs except scalars have the same shape,
    // are contiguous and native, so that their elements correspond in memory order.
    Shape shape;
    bool alike = false;
    bool ignores_nan = false;  // a maximum is NaN only if all elements are NaN

    Maximum(const View* all_inputs, std::size_t how_many) : inputs(all_inputs), count(how_many) {}
};

Fault plan_maximum(Broadcasting how, Maximum* call);

// Gets the axes of a new output, from outermost to innermost in memory, in the order of the inputs. Returns
// false if the output is in C order.
bool layout(const Maximum& call, int* axes);

// `out` has the shape of the call, and overlaps an input only if it is the same array. `streams`: its pages
// are mapped, and it is not an input.
Fault maximum(Poll poll, const Maximum& call, const View& out, bool streams);

// ---------------------------------------------------------------------------- ReduceMax

struct Reduction {
    View data;
    AxisSet is_reduced;
    bool keepdims = true;
    bool ignores_nan = false;       // as in Maximum
    const char* initial = nullptr;  // the canonical initial value of each maximum, or null
};

// Marks the axes to reduce; without axes, all of them.
Fault mark_axes(const std::int64_t* axes, std::size_t count, bool negative_allowed, Reduction* call);
Shape output_shape(const Reduction& call);
// Like `layout` above, for new outputs of this shape.
bool layout(const Reduction& call, int* axes);

// `out` has the shape of the result and does not overlap the data.
Fault reduce_max(Poll poll, const Reduction& call, const View& out);

// Computes the index along the reduced axes, in C order, of the first element that equals each value, or -1
// if there is none. The values and the contiguous int64 indices have the shape of the output.
Fault argmax(Poll poll, const Reduction& call, const View& values, const View& indices);

// ---------------------------------------------------------------------------- SegmentMax

struct Segmentation {
    View data;     // of rank 1 or more
    int axis = 0;  // the axis of the data whose slices are the rows
    View indices;  // ids of (rows,), or offsets of (segments + 1,): int32 or int64
    bool by_offsets = false;
    bool is_sorted = true;            // the ids are non-decreasing; offsets always are
    bool checks = true;               // validates the ids or offsets
    bool rejects_negative = true;     // negative ids are faults; otherwise their rows are dropped
    bool rejects_past = false;        // ids of num_segments and above are faults; otherwise dropped
    bool ignores_nan = false;         // as in Maximum
    std::int64_t num_segments = -1;   // negative: derived from the ids or offsets
    std::uint64_t fill = 0;           // bits of the value of empty segments
    const char* initial = nullptr;    // as in Reduction
    bool checks_with_maxima = false;  // set by plan_segments: validates in the pass that computes maxima
    bool has_rows = true;             // set by plan_segments: false for invalid unchecked offsets
};

// Determines num_segments, and validates ids or offsets before anything is written. With `is_new`, validation
// may be deferred, because a new output is discarded after a fault.
Fault plan_segments(Poll poll, Segmentation* call, bool is_new);

// Like `layout` above, for outputs of the shape of the data with num_segments along the segment axis.
bool layout(const Segmentation& call, int* axes);

// Whether the call may run out of memory after it has written a part of the output. If so, `out` must be new.
__attribute__((cold)) bool writes_in_parts(const Segmentation& call);

// Runs a planned call. `out` is native, has no gaps in the order of layout(), and overlaps no input.
Fault segment_max(Poll poll, const Segmentation& call, const View& out);

// For a planned call: finds the first row that contains each value, or -1. Values and indices are laid out
// like `out`.
Fault argmax(Poll poll, const Segmentation& call, const View& values, std::int64_t* indices);

// For a planned call, which needs no data: writes 1 for each empty segment, and 0 for others.
Fault empty_segments(Poll poll, const Segmentation& call, std::uint8_t* is_empty);

// Returns the first invalid id or offset of the call, whose num_segments may be unknown. Ids and offsets may
// be uint64, too: position, value and previous are then their bits.
Fault check_indices(Poll poll, const Segmentation& call);

// Converts ids or offsets of any integer type to contiguous, native int32 or int64 of the same length. Values
// of uint64 above the maximum of int64 become that maximum.
Fault widen_indices(Poll poll, const View& indices, const View& out);

// Canonicalizes an item: any NaN becomes the quiet NaN with payload 0, any True becomes 1. Returns its bits.
std::uint64_t canonical(int type, char* item);

}  // namespace maxops
