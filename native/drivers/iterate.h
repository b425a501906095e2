// Splits arrays of any strides and byte order into contiguous blocks for kernels and into shares for threads.
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
// One word, because an array of bool takes 5 ns more: a call clears it, and later reads wait for these
// stores.
using AxisSet = std::bitset<kMaxRank>;

struct Shape {
    int rank = 0;
    std::size_t size[kMaxRank];  // unspecified past the rank

    // Copies only `rank` sizes and initializes none: all 64 take 15 ns, of the 140 ns of a short call.
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

// The layout of an array's elements: a stride in bytes for each axis of its Shape.
struct Operand {
    char* data;
    std::ptrdiff_t strides[kMaxRank];
    bool swapped = false;  // not in this machine's byte order

    Operand() {}                                                   // leaves strides unset, like Shape
    explicit Operand(char* element) : data(element), strides{} {}  // the same element at each index

    bool is_contiguous(const Shape& shape, std::size_t itemsize) const;
};

// An index into a shape, advanced in C order: the last axis runs fastest.
class Position {
public:
    explicit Position(const Shape& shape);  // index 0 along each axis
    Position(const Shape& shape, std::size_t flat);
    std::size_t operator[](int axis) const { return index_[axis]; }
    // Advances by n along `axis`, at most to its end. At the end, it carries to the axes before it.
    void advance(const Shape& shape, int axis, std::size_t n);
    std::ptrdiff_t offset(const Operand& operand) const;

private:
    int rank_;
    std::size_t index_[kMaxRank];
};

// Orders the axes from outermost to innermost in memory by the operands' strides, like NumPy's iterator. New
// outputs have this layout.
void memory_order(const Shape& shape, const Operand* operands, std::size_t count, int* axes);

// Puts the axes into memory order, drops axes of size 1, and merges adjacent axes that are one run of memory
// in every operand. Leaves at least one axis.
void simplify(Shape* shape, Operand* operands, std::size_t count, std::size_t itemsize);

// The kernels and options of a call. `poll`: see run_tasks.
struct Run {
    const Kernels& kernels;
    bool (*poll)();
    // The output's pages are mapped, and it is not an input: if it is large, its stores should bypass the
    // cache.
    bool may_stream = false;
};

// The number of items in a task if `count` items of `item_bytes` are split: at most kTaskBytes per task, and
// several tasks per thread. Max requires at least `least` items, so that vectors are whole.
inline std::size_t task_items(std::size_t count, std::size_t item_bytes, std::size_t least = 1) {
    const std::size_t fair = count / (static_cast<std::size_t>(num_threads()) * kTasksPerThread) + 1;
    const std::size_t items = std::max(std::min(fair, kTaskBytes / item_bytes), least);
    return items < kTaskAlignment
               ? items
               : items / kTaskAlignment * kTaskAlignment;  // shares begin where whole vectors begin
}

// The number of items in the next block to stream to `to`. The block ends at the end of a cache line, because
// a line that is stored in two parts must be fetched.
inline std::size_t items_to_stream(const char* to, std::size_t itemsize) {
    constexpr std::size_t kLine = 64;
    return (kStreamedBlockBytes - reinterpret_cast<std::uintptr_t>(to) % kLine) / itemsize;
}

// Calls visit(position, at, rows, n) for elements [begin, end) of a shape, in stacks of `rows` whole rows of
// n elements, except for parts of rows at the ends. `at` counts the elements before.
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

// The number of rows in a share. A share never takes longer than the interval between polls.
inline std::size_t share_rows(std::size_t rows, std::size_t shares, std::size_t row_bytes) {
    constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // about 10 ms
    const std::size_t fair = std::max(rows / shares, kTaskBytes / row_bytes);
    return std::min(fair, std::max(kMostBytes, kTaskBytes) / row_bytes) + 1;
}

// Calls share(begin, end) over [0, count), in parallel shares of `grain` if that pays off for so many bytes.
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

// Fills n items. Returns false if the poll stopped the call.
template <class Item>
bool fill(const Run& run, Item* items, std::size_t n, Item value) {
    return parallel_for(
        run, n, kTaskBytes / sizeof(Item), n * sizeof(Item),
        [&](std::size_t begin, std::size_t end) { std::fill(items + begin, items + end, value); });
}

// Calls share(begin, end) over [0, count) in order, with polls in between.
template <class Share>
bool serial_for(const Run& run, std::size_t count, std::size_t grain, const Share& share) {
    Polling polling(run.poll);
    for (std::size_t begin = 0; begin < count; begin += grain) {
        if (!polling.goes_on()) return false;
        share(begin, std::min(count, begin + grain));
    }
    return true;
}

// Each function below returns false if the poll stopped the call; the output is then unspecified. fold and
// reduce simplify the shape and the operands that they are passed.

// Sets the last operand, the output, to the maximum of the others. All have the axes of the shape, with
// stride 0 where they are broadcast. The output must not overlap an input, except element for element.
bool fold(const Run& run, Shape& shape, std::vector<Operand>& operands);

// Reduces the data along axes where the output has stride 0. The data and the output are not empty and do not
// overlap.
bool reduce(const Run& run, Shape& shape, Operand (&data_and_out)[2]);

struct Segments {
    Shape shape;  // of the data; the ids are along its axis 0
    Operand data;
    Operand ids;  // the ids along that axis, or the offsets
    int id_type;  // 0: int32, 1: int64
    char* out;    // (num_segments, the data's other axes), contiguous and native
    std::int64_t num_segments;
    std::uint64_t fill;       // bits of the value of empty segments
    std::uint64_t first = 0;  // bits of the initial maxima, for ids in any order
    bool checks;  // checks the ids in the same pass; if they are not sorted, the output is unspecified
    bool trusts;  // the caller guarantees sorted ids, so kernels may skip long runs
    std::size_t bounds = 0;  // the number of offsets; 0: there are ids
};
// Sets `sorted` to false if the call checks ids and finds negative or decreasing ones. Offsets must be valid.
// If another thread changes them during the call, the result is wrong, but memory is safe.
bool segment(const Run& run, const Kernels& id_kernels, const Segments& call, bool* sorted);

// Like segment(), for ids in any order. Rows with ids outside [0, num_segments) are dropped.
bool scatter(const Run& run, const Kernels& id_kernels, const Segments& call);

// Writes 1 for each segment without rows, and 0 for others. `call` needs no data.
bool find_empty(const Run& run, const Kernels& id_kernels, const Segments& call, std::uint8_t* is_empty);

// Finds the first row of each segment that contains the result, or -1; call.out contains the results.
bool argmax_in_segments(const Run& run, const Kernels& id_kernels, const Segments& call, bool in_order,
                        std::int64_t* indices);

// Finds, for each result, the index along the reduced axes, in C order, of the first element that equals it,
// or -1. Results and indices have the data's shape, with stride 0 along the reduced axes.
struct ArgmaxCall {
    Shape shape;
    AxisSet is_reduced;
    Operand data, results, indices;
};
bool argmax_in_axes(const Run& run, const ArgmaxCall& call);

// Sets `sorted` to whether the n ids are non-negative and non-decreasing. `run` has their type's kernels.
bool ids_are_sorted(const Run& run, const Operand& ids, std::size_t n, bool* sorted);

}  // namespace maxops
