#include "iterate.h"

#include <atomic>

namespace maxops {

std::size_t Shape::elements() const {
    std::size_t n = 1;
    for (int axis = 0; axis < rank; ++axis) n *= size[axis];
    return n;
}

bool Operand::is_contiguous(const Shape& shape, std::size_t itemsize) const {
    if (swapped) return false;
    auto step = static_cast<std::ptrdiff_t>(itemsize);
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
        if (shape.size[axis] == 1) continue;
        if (strides[axis] != step) return false;
        step *= static_cast<std::ptrdiff_t>(shape.size[axis]);
    }
    return true;
}

Position::Position(const Shape& shape) : rank_(shape.rank) {
    for (int axis = 0; axis < rank_; ++axis) index_[axis] = 0;
}

Position::Position(const Shape& shape, std::size_t flat) : rank_(shape.rank) {
    for (int axis = rank_ - 1; axis >= 0; --axis) {
        index_[axis] = flat % shape.size[axis];
        flat /= shape.size[axis];
    }
}

void Position::advance(const Shape& shape, int axis, std::size_t n) {
    index_[axis] += n;
    for (; axis > 0 && index_[axis] == shape.size[axis]; --axis) {
        index_[axis] = 0;
        ++index_[axis - 1];
    }
}

std::ptrdiff_t Position::offset(const Operand& operand) const {
    std::ptrdiff_t bytes = 0;
    for (int axis = 0; axis < rank_; ++axis)
        bytes += static_cast<std::ptrdiff_t>(index_[axis]) * operand.strides[axis];
    return bytes;
}

static std::size_t magnitude(std::ptrdiff_t stride) {
    const auto bytes = static_cast<std::size_t>(stride);
    return stride < 0 ? ~bytes + 1 : bytes;
}

void memory_order(const Shape& shape, const Operand* operands, std::size_t count, int* axes) {
    // Insertion sort, because comparing axes by their strides is not an order if operands disagree. The first
    // operand with nonzero strides along both axes decides. A later operand can only keep the axes as they
    // are.
    auto is_farther_in = [&](int a, int b, bool* decided) {
        bool inside = false;
        *decided = false;
        for (std::size_t k = 0; k < count; ++k) {
            const Operand& operand = operands[k];
            const std::size_t at_a = magnitude(operand.strides[a]), at_b = magnitude(operand.strides[b]);
            if (at_a == 0 || at_b == 0 || shape.size[a] == 1 || shape.size[b] == 1) continue;
            if (at_b <= at_a)
                inside = false;
            else if (!*decided)
                inside = true;
            *decided = true;
        }
        return inside;
    };
    for (int i = 0; i < shape.rank; ++i) axes[i] = i;
    for (int i = shape.rank - 2; i >= 0; --i) {
        int axis = axes[i], place = i;
        for (int j = i + 1; j < shape.rank; ++j) {
            bool decided = false;
            bool inside = is_farther_in(axis, axes[j], &decided);
            if (decided && !inside) break;
            if (decided) place = j;
        }
        for (int j = i; j < place; ++j) axes[j] = axes[j + 1];
        axes[place] = axis;
    }
}

namespace {

template <class Value>
void reorder(Value* values, const int* axes, int rank) {
    Value before[kMaxRank];
    std::copy(values, values + rank, before);
    for (int i = 0; i < rank; ++i) values[i] = before[axes[i]];
}

}  // namespace

void simplify(Shape* shape, Operand* operands, std::size_t count, std::size_t itemsize) {
    int axes[kMaxRank];
    memory_order(*shape, operands, count, axes);
    reorder(shape->size, axes, shape->rank);
    for (std::size_t k = 0; k < count; ++k) reorder(operands[k].strides, axes, shape->rank);

    int last = -1;  // of the remaining axes
    auto is_one_run_with_last = [&](int axis) {
        const auto size = static_cast<std::ptrdiff_t>(shape->size[axis]);
        for (std::size_t k = 0; k < count; ++k)
            if (operands[k].strides[last] != operands[k].strides[axis] * size) return false;
        return true;
    };
    for (int axis = 0; axis < shape->rank; ++axis) {
        const std::size_t size = shape->size[axis];
        if (size == 1) continue;
        if (last >= 0 && is_one_run_with_last(axis))
            shape->size[last] *= size;
        else
            shape->size[++last] = size;
        for (std::size_t k = 0; k < count; ++k) operands[k].strides[last] = operands[k].strides[axis];
    }
    shape->rank = last + 1;
    if (shape->rank == 0) {
        shape->size[shape->rank++] = 1;
        for (std::size_t k = 0; k < count; ++k)
            operands[k].strides[0] = static_cast<std::ptrdiff_t>(itemsize);
    }
}

bool ids_are_sorted(const Run& run, const Operand& ids, std::size_t n, bool* sorted) {
    const std::size_t itemsize = run.kernels.itemsize, block = kBlockBytes / itemsize;
    const Shape shape(n);
    std::atomic<bool> all{true};
    // Each share also reads the id before it.
    bool finished =
        parallel_for(run, n, kTaskBytes / itemsize, n * itemsize, [&](std::size_t begin, std::size_t end) {
            begin -= begin > 0;
            if (ids.is_contiguous(shape, itemsize)) {
                if (!run.kernels.sorted(ids.data + begin * itemsize, end - begin)) all.store(false);
                return;
            }
            alignas(64) char buffer[kBlockBytes];
            for (; begin + 1 < end || begin == 0; begin += block - 1) {
                std::size_t m = std::min(block, end - begin);
                run.kernels.gather(buffer, ids.data + static_cast<std::ptrdiff_t>(begin) * ids.strides[0],
                                   ids.strides[0], m, ids.swapped);
                if (!run.kernels.sorted(buffer, m)) all.store(false);
            }
        });
    *sorted = all.load();
    return finished;
}

}  // namespace maxops
