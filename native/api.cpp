// Max and ReduceMax.
#include "api.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "drivers/guarded.h"
#include "drivers/initial.h"
#include "core/item.h"
#include "drivers/scratch.h"

namespace maxops {

bool View::has_shape_of(const View& other) const {
    if (rank != other.rank) return false;
    for (int axis = 0; axis < rank; ++axis)  // std::equal calls memcmp, which is slower for a few axes
        if (sizes[axis] != other.sizes[axis]) return false;
    return true;
}

void View::get_operand(int shape_rank, Operand* operand) const {
    operand->data = data;
    operand->swapped = swapped;
    const int lead = shape_rank - rank;
    for (int axis = 0; axis < lead; ++axis) operand->strides[axis] = 0;
    for (int axis = 0; axis < rank; ++axis)
        operand->strides[lead + axis] = sizes[axis] == 1 ? 0 : strides[axis];
}

Shape View::shape() const {
    Shape shape;
    shape.rank = rank;
    std::copy(sizes, sizes + rank, shape.size);
    return shape;
}

std::uint64_t canonical(int type, char* item) {
    const Kernels& kernels = kernels_of(type);
    const void* in[] = {item};
    alignas(8) char out[8] = {};
    kernels.fold[1](out, 0, in, kNoStrides, 1, 1);
    std::memcpy(item, out, kernels.itemsize);
    return bits_of(out, kernels.itemsize);
}

// ---------------------------------------------------------------------------- Max

namespace {

Fault broadcast(const View* inputs, std::size_t count, Broadcasting how, Shape* shape) {
    shape->rank = 0;
    for (std::size_t k = 0; k < count; ++k) shape->rank = std::max(shape->rank, inputs[k].rank);
    std::fill(shape->size, shape->size + shape->rank, 1);
    bool has_one[kMaxRank] = {};
    for (std::size_t k = 0; k < count; ++k) {
        const View& input = inputs[k];
        const Fault fault{Fault::kShapes, static_cast<std::int64_t>(k)};
        if (how == Broadcasting::kNone && !input.has_shape_of(inputs[0])) return fault;
        const int lead = shape->rank - input.rank;
        for (int axis = 0; axis < shape->rank; ++axis) {
            const auto size = axis < lead ? 1 : static_cast<std::size_t>(input.sizes[axis - lead]);
            std::size_t& whole = shape->size[axis];
            has_one[axis] = has_one[axis] || size == 1;
            if (size != whole && size != 1) {
                if (whole != 1) return fault;
                whole = size;
            }
            if (how == Broadcasting::kStrict && whole == 0 && has_one[axis]) return fault;
        }
    }
    return {};
}

bool are_alike(const View* inputs, std::size_t count) {
    const View* first = nullptr;
    for (std::size_t k = 0; k < count; ++k) {
        if (inputs[k].rank == 0) {
            if (inputs[k].swapped) return false;
            continue;
        }
        if (first == nullptr) first = inputs + k;
        if (!inputs[k].contiguous || !inputs[k].has_shape_of(*first)) return false;
    }
    return true;
}

std::vector<Operand> operands_of(const View* inputs, std::size_t count, int rank, const View* out) {
    std::vector<Operand> operands(count + (out != nullptr));
    for (std::size_t k = 0; k < count; ++k) inputs[k].get_operand(rank, &operands[k]);
    if (out != nullptr) out->get_operand(rank, &operands[count]);
    return operands;
}

// Max of contiguous inputs of one shape: no axes to align, reorder or merge. One of two inputs may be a
// scalar. Three or more inputs all have the rank of the output.
class FlatMax {
public:
    FlatMax(const Kernels& kernels, const Maximum& call, const View& out)
        : kernels_(kernels), inputs_(call.inputs), count_(call.count), out_(out) {
        if (count_ > Kernels::kMostInputs || kernels.fold[count_] == nullptr || !out.contiguous ||
            !call.alike)
            return;
        std::size_t scalars = 0;
        for (std::size_t k = 0; k < count_; ++k)
            if (inputs_[k].rank < out.rank) {
                scalars += 1;
                scalar_ = k;
            }
        is_beside_scalar_ = scalars == 1 && count_ == 2;
        serves_ = scalars == 0 || is_beside_scalar_;
    }
    bool serves() const { return serves_; }

    bool operator()(const Run& run, std::size_t n, std::size_t bytes) const {
        const std::size_t itemsize = kernels_.itemsize;
        // A single task needs no grain, whose divisions would take as long as the rest of a small call.
        const std::size_t grain =
            bytes < kThreadedBytes ? n : task_items(n, itemsize * (count_ + 1), kTaskAlignment);
        return parallel_for(run, n, grain, bytes, [&](std::size_t begin, std::size_t end) {
            char* to = out_.data + begin * itemsize;
            if (is_beside_scalar_)
                return kernels_.fold_rows_with(to, 0, inputs_[1 - scalar_].data + begin * itemsize, 0,
                                               inputs_[scalar_].data, 0, 1, end - begin);
            const void* in[Kernels::kMostInputs];
            for (std::size_t k = 0; k < count_; ++k) in[k] = inputs_[k].data + begin * itemsize;
            kernels_.fold[count_](to, 0, in, kNoStrides, 1, end - begin);
        });
    }

private:
    const Kernels& kernels_;
    const View* const inputs_;
    const std::size_t count_;
    const View& out_;
    std::size_t scalar_ = 0;
    bool is_beside_scalar_ = false, serves_ = false;
};

}  // namespace

Fault plan_maximum(Broadcasting how, Maximum* call) {
    const View* inputs = call->inputs;
    call->alike = are_alike(inputs, call->count);
    for (std::size_t k = 1; k < call->count; ++k)
        if (!call->alike || inputs[k].rank != inputs[0].rank)
            return broadcast(inputs, call->count, how, &call->shape);
    call->shape = inputs[0].shape();
    return {};
}

bool layout(const Maximum& call, int* axes) {
    if (call.shape.rank <= 1) return false;
    if (std::all_of(call.inputs, call.inputs + call.count,
                    [](const View& input) { return input.contiguous; }))
        return false;
    constexpr std::size_t kFew = 8;
    if (call.count <= kFew) {
        Operand few[kFew];
        for (std::size_t k = 0; k < call.count; ++k) call.inputs[k].get_operand(call.shape.rank, few + k);
        memory_order(call.shape, few, call.count, axes);
    } else {
        const auto operands = operands_of(call.inputs, call.count, call.shape.rank, nullptr);
        memory_order(call.shape, operands.data(), operands.size(), axes);
    }
    return true;
}

Fault maximum(Poll poll, const Maximum& call, const View& out, bool streams) {
    const Kernels& kernels = kernels_of(out.type, call.ignores_nan);
    const Run run{kernels, poll, streams};
    const std::size_t n = out.elements(), bytes = n * kernels.itemsize * (call.count + 1);
    const FlatMax flat(kernels, call, out);
    if (flat.serves() && !(streams && bytes >= kStreamedBytes)) {
        while (!reserve_scratch())
            if (!empty_cache()) return {Fault::kOutOfMemory};
        return finished(flat(run, n, bytes));
    }
    return guarded([&]() -> Fault {
        Shape shape = out.shape();
        auto operands = operands_of(call.inputs, call.count, out.rank, &out);
        return finished(fold(run, shape, operands));
    });
}

// ---------------------------------------------------------------------------- ReduceMax

Fault mark_axes(const std::int64_t* axes, std::size_t count, bool negative_allowed, Reduction* call) {
    const int rank = call->data.rank;
    call->is_reduced.reset();
    if (count == 0) call->is_reduced.set();
    for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t axis = axes[i] < 0 && negative_allowed ? axes[i] + rank : axes[i];
        const auto position = static_cast<std::int64_t>(i);
        if (axis < 0 || axis >= rank) return {Fault::kAxisRange, position, axes[i]};
        if (call->is_reduced[axis]) return {Fault::kAxisTwice, position, axes[i]};
        call->is_reduced[axis] = true;
    }
    return {};
}

Shape output_shape(const Reduction& call) {
    Shape shape;
    for (int axis = 0; axis < call.data.rank; ++axis) {
        if (!call.is_reduced[axis])
            shape.size[shape.rank++] = static_cast<std::size_t>(call.data.sizes[axis]);
        else if (call.keepdims)
            shape.size[shape.rank++] = 1;
    }
    return shape;
}

bool layout(const Reduction& call, int* axes) {
    if (call.data.contiguous) return false;
    int order[kMaxRank], place[kMaxRank], kept = 0;
    const Operand data = call.data.operand(call.data.rank);
    memory_order(call.data.shape(), &data, 1, order);
    for (int axis = 0, next = 0; axis < call.data.rank; ++axis)
        place[axis] = call.is_reduced[axis] && !call.keepdims ? -1 : next++;
    for (int i = 0; i < call.data.rank; ++i)
        if (place[order[i]] >= 0) axes[kept++] = place[order[i]];
    return true;
}

namespace {

// Contiguous data of shape (before, length, after), reduced along the axis of size `length`.
struct Rows {
    std::size_t before = 1, length = 1, after = 1;
};

// Whether the reduced axes are adjacent. Sets the sizes of the blocks.
bool are_rows(const Reduction& call, Rows* rows) {
    int axis = 0;
    const auto part = [&](bool is_reduced) {
        std::size_t count = 1;
        for (; axis < call.data.rank && call.is_reduced[axis] == is_reduced; ++axis)
            count *= static_cast<std::size_t>(call.data.sizes[axis]);
        return count;
    };
    rows->before = part(false);
    rows->length = part(true);
    rows->after = part(false);
    return axis == call.data.rank;
}

// Reduces small arrays without tasks.
void reduce_rows(const Kernels& kernels, const char* data, const Rows& rows, char* out) {
    char* keys = scratch<SmallReduceBuffers>().keys;
    const std::size_t outputs = rows.before * rows.after, block = rows.after * kernels.itemsize;
    kernels.start(keys, outputs);
    if (rows.after == 1) {
        const auto stride = static_cast<std::ptrdiff_t>(rows.length * kernels.itemsize);
        kernels.rows(keys, data, stride, rows.before, rows.length);
    } else {
        for (std::size_t i = 0; i < rows.before; ++i)
            kernels.columns(keys + i * block, data + i * block * rows.length,
                            static_cast<std::ptrdiff_t>(block), rows.length, rows.after);
    }
    kernels.finish(out, keys, outputs);
}

// Returns an operand of the output with the data's axes, with stride 0 along the reduced axes.
Operand along_data(const Reduction& call, const View& out) {
    Operand operand;
    operand.data = out.data;
    operand.swapped = out.swapped;
    for (int axis = 0, next = 0; axis < call.data.rank; ++axis) {
        const bool moves = !call.is_reduced[axis] && call.data.sizes[axis] != 1;
        operand.strides[axis] = moves ? out.strides[next] : 0;
        next += !call.is_reduced[axis] || call.keepdims;
    }
    return operand;
}

bool fill_with_bits(const Run& run, std::uint64_t bits, const View& out) {
    alignas(8) char item[8];
    put_bits(bits, run.kernels.itemsize, item);
    Shape shape = out.shape();
    std::vector<Operand> operands{Operand(item), out.operand(out.rank)};
    return fold(run, shape, operands);
}

}  // namespace

Fault reduce_max(Poll poll, const Reduction& call, const View& out) {
    if (out.elements() == 0) return {};
    return guarded([&]() -> Fault {
        const Kernels& kernels = kernels_of(out.type, call.ignores_nan);
        const View& data = call.data;
        const std::size_t bytes = data.bytes();
        Rows rows;
        const Run run{kernels, poll};
        Initial initial(call.initial, out);
        if (bytes > 0 && bytes < kKeepsGilBytes && out.contiguous && data.contiguous &&
            (out.elements() != data.elements() || out.elements() == 1) && are_rows(call, &rows)) {
            reduce_rows(kernels, data.data, rows, out.data);
            return finished(initial.fold(run));
        }
        if (bytes == 0) {
            const std::uint64_t first = call.initial != nullptr ? kernels.lowest : kernels.empty;
            return finished(fill_with_bits(run, first, out) && initial.fold(run));
        }
        Shape shape = data.shape();
        Operand operands[2] = {data.operand(data.rank), along_data(call, out)};
        if (out.elements() == data.elements()) {  // axes of size 1: each element is its own maximum
            std::vector<Operand> each(operands, operands + 2);
            return finished(fold(run, shape, each) && initial.fold(run));
        }
        return finished(reduce(run, shape, operands) && initial.fold(run));
    });
}

Fault argmax(Poll poll, const Reduction& call, const View& values, const View& indices) {
    if (indices.elements() == 0) return {};
    return guarded([&]() -> Fault {
        const Run run{kernels_of(call.data.type), poll};
        if (call.data.elements() == 0)
            return finished(fill(run, reinterpret_cast<std::int64_t*>(indices.data), indices.elements(),
                                 std::int64_t{-1}));
        ArgmaxCall core_call;
        core_call.shape = call.data.shape();
        core_call.is_reduced = call.is_reduced;
        core_call.data = call.data.operand(call.data.rank);
        core_call.results = along_data(call, values);
        core_call.indices = along_data(call, indices);
        return finished(argmax_in_axes(run, core_call));
    });
}

}  // namespace maxops
