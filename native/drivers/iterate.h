// From arrays of any strides and byte order to the kernels' contiguous blocks, and to threads' shares.
#pragma once
#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "../kernels/kernels.h"
#include "threads.h"

namespace maxops {

constexpr int kMaxRank = 64;  // NumPy's own limit
// One word: an array of bool is cleared by a call and read before its stores are there, 5 ns of a small call.
using AxisSet = std::bitset<kMaxRank>;

struct Shape {
    int rank = 0;
    std::size_t size[kMaxRank];  // past the rank: anything

    // The sizes that there are, and no more: all 64 take 15 nanoseconds, of the 140 that a short call takes.
    Shape() {}
    explicit Shape(std::size_t only) : rank(1) { size[0] = only; }
    Shape(const Shape& other) { *this = other; }
    Shape& operator=(const Shape& other) {
        rank = other.rank;
        for (int axis = 0; axis < rank; ++axis) size[axis] = other.size[axis];
        return *this;
    }

    std::size_t elements() const;
};

// The layout of an array's elements: strides in bytes, one for each axis of a Shape kept beside it.
struct Operand {
    char* data;
    std::ptrdiff_t strides[kMaxRank];
    bool swapped = false;  // not in this machine's byte order

    Operand() {}                                                   // by hand, as Shape's
    explicit Operand(char* element) : data(element), strides{} {}  // the same one everywhere

    bool is_contiguous(const Shape& shape, std::size_t itemsize) const;
};

// A place in a shape, moved in C order: the last axis runs fastest.
class Position {
public:
    explicit Position(const Shape& shape);  // its first place
    Position(const Shape& shape, std::size_t flat);
    std::size_t operator[](int axis) const { return index_[axis]; }
    // Moves on by n indices along `axis`, at most to its end, from where it carries to the axes before it.
    void advance(const Shape& shape, int axis, std::size_t n);
    std::ptrdiff_t offset(const Operand& operand) const;

private:
    int rank_;
    std::size_t index_[kMaxRank];
};

// The axes from outermost to innermost in memory, by the operands' strides, as NumPy's iterator
// orders them. The same order is the layout of a new output.
void memory_order(const Shape& shape, const Operand* operands, std::size_t count, int* axes);

// Puts the axes into memory order, drops those of size 1 and merges neighbours that are one run of
// memory in every operand. At least one axis is left.
void simplify(Shape* shape, Operand* operands, std::size_t count, std::size_t itemsize);

// How a call runs, beyond its data. `poll`: see run_tasks.
struct Run {
    const Kernels& kernels;
    bool (*poll)();
    // The output's pages are mapped and it is none of the inputs: if it is large, its stores should
    // bypass the cache.
    bool may_stream = false;
};

// How many of `count` items of `item_bytes` a task takes: enough to pay, and some tasks for each thread.
// Tiles of Max have at least `least` elements, so that vectors are whole.
inline std::size_t task_items(std::size_t count, std::size_t item_bytes, std::size_t least = 1) {
    const std::size_t fair = count / (static_cast<std::size_t>(num_threads()) * kTasksPerThread) + 1;
    const std::size_t items = std::max(std::min(fair, kTaskBytes / item_bytes), least);
    return items < kTaskAlignment
               ? items
               : items / kTaskAlignment * kTaskAlignment;  // shares begin where whole vectors do
}

// How many items a block streams to `to`: up to where a cache line ends, since one that is stored in two
// parts has to be fetched.
inline std::size_t items_to_stream(const char* to, std::size_t itemsize) {
    constexpr std::size_t kLine = 64;
    return (kStreamedBlockBytes - reinterpret_cast<std::uintptr_t>(to) % kLine) / itemsize;
}

// visit(position, at, rows, n) for elements begin to end of a shape: stacks of `rows` whole rows, n elements
// of each, but for a piece of a row at the ends. `at` counts the elements that came before.
template <class Visit>
void for_rows(const Shape& shape, std::size_t begin, std::size_t end, const Visit& visit) {
    const int inner = shape.rank - 1;
    const std::size_t row = shape.size[inner];
    Position position(shape, begin);
    for (std::size_t at = begin; at < end;) {
        const std::size_t n = std::min(end - at, row - position[inner]);
        std::size_t rows = 1;
        if (n == row && inner > 0)
            rows = std::min((end - at) / row, shape.size[inner - 1] - position[inner - 1]);
        visit(position, at - begin, rows, n);
        at += rows * n;
        if (rows == 1)
            position.advance(shape, inner, n);
        else
            position.advance(shape, inner - 1, rows);
    }
}

// A share of rows that is no longer than a poll may wait, however many rows there are.
inline std::size_t share_rows(std::size_t rows, std::size_t shares, std::size_t row_bytes) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // ten milliseconds or so
    const std::size_t fair = std::max(rows / shares, kTaskBytes / row_bytes);
    return std::min(fair, std::max(kMostBytes, kTaskBytes) / row_bytes) + 1;
}

// share(begin, end) over [0, count), in shares of `grain` if the whole touches enough bytes to pay.
template <class Share>
bool parallel_for(const Run& run, std::size_t count, std::size_t grain, std::size_t bytes,
                  const Share& share) {
    if (bytes < kThreadedBytes) {
        share(std::size_t{0}, count);
        return true;
    }
    return run_tasks((count + grain - 1) / grain,
                     [&](std::size_t task) { share(task * grain, std::min(count, (task + 1) * grain)); },
                     run.poll, bytes < kLongBytes);
}

// Fills n items; false if the poll stopped it.
template <class Item>
bool fill(const Run& run, Item* items, std::size_t n, Item value) {
    return parallel_for(
        run, n, kTaskBytes / sizeof(Item), n * sizeof(Item),
        [&](std::size_t begin, std::size_t end) { std::fill(items + begin, items + end, value); });
}

// share(begin, end) over [0, count) in order, one after the other, with a poll between them.
template <class Share>
bool serial_for(const Run& run, std::size_t count, std::size_t grain, const Share& share) {
    Polling polling(run.poll);
    for (std::size_t begin = 0; begin < count; begin += grain) {
        if (!polling.goes_on()) return false;
        share(begin, std::min(count, begin + grain));
    }
    return true;
}

// Each of these returns false if the poll stopped it; what the output then holds is unspecified. The shape
// and the operands that fold and reduce are given become simpler.

// The last operand, the output, becomes the maximum of the others. All have the shape's axes, with stride 0
// where they are broadcast. The output must not overlap an input, unless each element lies on its own.
bool fold(const Run& run, Shape& shape, std::vector<Operand>& operands);

// Along axes of out-stride 0 the data is reduced. Nothing may be empty; the two must not overlap.
bool reduce(const Run& run, Shape& shape, Operand (&data_and_out)[2]);

struct Segments {
    Shape shape;  // of the data; the ids run along its axis 0
    Operand data;
    Operand ids;  // their axis 0; or the offsets
    int id_type;  // 0: int32, 1: int64
    char* out;    // (num_segments, the data's other axes), contiguous and native
    std::int64_t num_segments;
    std::uint64_t fill;       // bits
    std::uint64_t first = 0;  // bits of what the maxima of rows in any order begin with
    bool checks;  // the ids, in the same pass; if they are not sorted, what the output holds is unspecified
    bool trusts;  // them, unread: long runs may be galloped over
    std::size_t bounds = 0;  // how many offsets there are; 0: ids name the segments
};
// `sorted` becomes false if the call checks and finds ids that are negative or decrease. Offsets are known to
// be right; should they have changed meanwhile, the result is wrong and nothing else.
bool segment(const Run& run, const Kernels& id_kernels, const Segments& call, bool* sorted);

// The same of ids in any order; those outside 0 to num_segments - 1 are of no segment.
bool scatter(const Run& run, const Kernels& id_kernels, const Segments& call);

// Which of the segments have no rows: 1, and 0 for the others. `call` needs no data.
bool find_empty(const Run& run, const Kernels& id_kernels, const Segments& call, std::uint8_t* is_empty);

// The first row of each segment that holds the result, or -1; call.out holds the results.
bool argmax_in_segments(const Run& run, const Kernels& id_kernels, const Segments& call, bool in_order,
                        std::int64_t* indices);

// For each of the results, the place among the reduced axes, in C order, of the first element that holds it,
// or -1. Results and indices have the data's shape, with stride 0 along the reduced axes.
struct ArgmaxCall {
    Shape shape;
    AxisSet is_reduced;
    Operand data, results, indices;
};
bool argmax_in_axes(const Run& run, const ArgmaxCall& call);

// Whether the n ids are non-negative and never decrease; `run` with the kernels of the ids' type.
bool ids_are_sorted(const Run& run, const Operand& ids, std::size_t n, bool* sorted);

}  // namespace maxops
