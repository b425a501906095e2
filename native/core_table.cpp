#include "core_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#include "dispatch.h"
#include "iterate.h"

namespace maxops {
namespace {

const Kernels& kernels_of(int type) {
    return *current().kernels(static_cast<Type>(type));
}

// Nobody waits at a keyboard for these calls: whoever makes them has signals of its own.
Run run_with(const Kernels& kernels) {
    return {kernels, nullptr};
}

template <class Act>
CoreStatus guarded(const Act& act) {
    try {
        return act();
    } catch (const std::bad_alloc&) {
        return CoreStatus::kNoMemory;
    }
}

// An array's operand, its axes aligned with the last of a shape, and 0 for the strides of those of size 1.
Operand operand_of(const CoreArray& array, const Shape& shape, std::size_t itemsize) {
    Operand operand{static_cast<char*>(array.data), {}, false};
    const int lead = shape.rank - array.rank;
    auto step = static_cast<std::ptrdiff_t>(itemsize);
    for (int axis = array.rank - 1; axis >= 0; --axis) {
        if (array.sizes[axis] != 1) operand.strides[lead + axis] = step;
        step *= static_cast<std::ptrdiff_t>(array.sizes[axis]);
    }
    return operand;
}

Shape shape_of(const CoreArray& array) {
    Shape shape;
    shape.rank = array.rank;
    std::copy(array.sizes, array.sizes + array.rank, shape.size);
    return shape;
}

CoreStatus maximum(int type, const CoreArray* inputs, std::size_t count, const CoreArray* out) {
    if (out->rank > kMaxRank) return CoreStatus::kBadRank;
    return guarded([&] {
        const Kernels& kernels = kernels_of(type);
        Shape shape = shape_of(*out);
        std::vector<Operand> operands;
        operands.reserve(count + 1);
        for (std::size_t k = 0; k < count; ++k)
            operands.push_back(operand_of(inputs[k], shape, kernels.itemsize));
        operands.push_back(operand_of(*out, shape, kernels.itemsize));
        fold(run_with(kernels), shape, operands);
        return CoreStatus::kDone;
    });
}

CoreStatus reduce_max(int type, const CoreArray* data, const bool* is_reduced, void* out) {
    if (data->rank > kMaxRank) return CoreStatus::kBadRank;
    return guarded([&] {
        const Kernels& kernels = kernels_of(type);
        Shape shape = shape_of(*data);
        Operand operands[2] = {operand_of(*data, shape, kernels.itemsize),
                               {static_cast<char*>(out), {}, false}};
        auto step = static_cast<std::ptrdiff_t>(kernels.itemsize);
        for (int axis = shape.rank - 1; axis >= 0; --axis) {
            if (is_reduced[axis]) continue;
            if (shape.size[axis] != 1) operands[1].strides[axis] = step;
            step *= static_cast<std::ptrdiff_t>(shape.size[axis]);
        }
        reduce(run_with(kernels), shape, operands);
        return CoreStatus::kDone;
    });
}

// ---------------------------------------------------------------------------- ids

template <class Id>
bool has_fault(const CoreSegments& call, const Id* ids, CoreIdFault* fault) {
    // In blocks, and rule by rule within a block: the fault that is told is the one that the planner tells.
    constexpr std::size_t kBlock = std::size_t{1} << 20;
    const std::size_t n = call.id_count;
    auto found = [&](IdFault kind, const Id* place) {
        *fault = {kind, place - ids, *place, place == ids ? 0 : place[-1]};
        return true;
    };
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const Id *from = ids + begin, *to = ids + std::min(n, begin + kBlock);
        if (call.negative_is_bad) {
            const Id* place = std::find_if(from, to, [](Id id) { return id < 0; });
            if (place != to) return found(IdFault::kNegative, place);
        }
        if (call.past_is_bad) {
            const Id* place = std::find_if(from, to, [&](Id id) { return id >= call.num_segments; });
            if (place != to) return found(IdFault::kPast, place);
        }
        if (call.order == IdOrder::kSorted) {
            const Id* last = ids + std::min(n, begin + kBlock + 1);
            const Id* place = std::adjacent_find(from, last, [](Id one, Id next) { return next < one; });
            if (place != last) return found(IdFault::kDecreasing, place + 1);
        }
    }
    return false;
}

template <class Id>
bool has_offset_fault(const CoreSegments& call, const Id* offsets, CoreIdFault* fault) {
    const auto rows = static_cast<std::int64_t>(call.rows);
    const Id* end = offsets + call.id_count;
    if (offsets[0] != 0) {
        *fault = {IdFault::kBegin, 0, offsets[0], 0};
        return true;
    }
    const Id* place = std::adjacent_find(offsets, end, [](Id one, Id next) { return next < one; });
    if (place != end) {
        *fault = {IdFault::kDecreasing, place + 1 - offsets, place[1], place[0]};
        return true;
    }
    if (end[-1] != rows) {
        *fault = {IdFault::kEnd, static_cast<std::int64_t>(call.id_count) - 1, end[-1], rows};
        return true;
    }
    return false;
}

// The ids that offsets stand for; -1 for rows that no segment has.
template <class Id>
std::vector<std::int64_t> ids_of_offsets(const CoreSegments& call, const Id* offsets) {
    std::vector<std::int64_t> ids(call.rows, -1);
    const auto rows = static_cast<std::int64_t>(call.rows);
    for (std::size_t segment = 0; segment + 1 < call.id_count; ++segment) {
        const auto begin = std::clamp<std::int64_t>(offsets[segment], 0, rows);
        const auto end = std::clamp<std::int64_t>(offsets[segment + 1], begin, rows);
        std::fill(ids.begin() + begin, ids.begin() + end, static_cast<std::int64_t>(segment));
    }
    return ids;
}

// ---------------------------------------------------------------------------- segments

void run_sorted(const Kernels& kernels, const CoreSegments& call, const void* ids, bool are_wide) {
    const Type id_type = are_wide ? Type::int64_ : Type::int32_;
    const Kernels& id_kernels = kernels_of(static_cast<int>(id_type));
    Segments segments;
    segments.shape = {2, {call.rows, call.width}};
    const auto item = static_cast<std::ptrdiff_t>(kernels.itemsize);
    // as const as the kernels that read it have it
    segments.data = {static_cast<char*>(const_cast<void*>(call.data)),
                     {static_cast<std::ptrdiff_t>(call.width) * item, item},
                     false};
    segments.ids = {static_cast<char*>(const_cast<void*>(ids)),
                    {static_cast<std::ptrdiff_t>(id_kernels.itemsize)},
                    false};
    segments.id_type = are_wide ? 1 : 0;
    segments.out = static_cast<char*>(call.out);
    segments.num_segments = call.num_segments;
    segments.fill = call.fill;
    segments.checks = false;
    segments.trusts = true;
    bool is_sorted = true;
    segment(run_with(kernels), id_kernels, segments, &is_sorted);
}

template <class Id>
void run_in_any_order(const Kernels& kernels, const CoreSegments& call, const Id* ids) {
    const auto count = static_cast<std::size_t>(call.num_segments);
    const std::size_t row_bytes = call.width * kernels.itemsize;
    std::vector<bool> has_rows(count);
    auto* data = static_cast<const char*>(call.data);
    auto* out = static_cast<char*>(call.out);
    for (std::size_t row = 0; row < call.rows; ++row) {
        const std::int64_t id = ids[row];
        if (id < 0 || id >= call.num_segments) continue;
        const auto segment = static_cast<std::size_t>(id);
        char* to = out + segment * row_bytes;
        const void* both[] = {data + row * row_bytes, to};
        // alone at first: what the output holds then is nobody's
        kernels.fold[has_rows[segment] ? 2 : 1](to, 0, both, kNoStrides, 1, call.width);
        has_rows[segment] = true;
    }
    SegmentWalk walk{};
    walk.out = out;
    walk.width = call.width;
    walk.out_stride = static_cast<std::ptrdiff_t>(row_bytes);
    walk.num_segments = call.num_segments;
    walk.fill = call.fill;
    for (std::size_t segment = 0; segment < count; ++segment)
        if (!has_rows[segment])
            kernels.fill(&walk, static_cast<std::int64_t>(segment), static_cast<std::int64_t>(segment) + 1);
}

template <class Id>
CoreStatus segment_max_by(int type, const CoreSegments& call, CoreIdFault* fault) {
    auto* ids = static_cast<const Id*>(call.ids);
    const bool are_offsets = call.order == IdOrder::kOffsets;
    if (call.checks && (are_offsets ? has_offset_fault(call, ids, fault) : has_fault(call, ids, fault)))
        return CoreStatus::kBadIds;
    if (call.num_segments == 0 || call.width == 0) return CoreStatus::kDone;
    const Kernels& kernels = kernels_of(type);
    if (are_offsets)
        run_sorted(kernels, call, ids_of_offsets(call, ids).data(), true);
    else if (call.order == IdOrder::kSorted)
        run_sorted(kernels, call, ids, call.ids_are_wide);
    else
        run_in_any_order(kernels, call, ids);
    return CoreStatus::kDone;
}

CoreStatus segment_max(int type, const CoreSegments* call, CoreIdFault* fault) {
    return guarded([&] {
        return call->ids_are_wide ? segment_max_by<std::int64_t>(type, *call, fault)
                                  : segment_max_by<std::int32_t>(type, *call, fault);
    });
}

const char* const kNames[] = {
#define MAXOPS_TYPE(name, order) #name,
#include "types.def"
#undef MAXOPS_TYPE
    nullptr};

}  // namespace

const CoreTable& core_table() {
    static constexpr CoreTable table{sizeof(CoreTable), kNames, maximum, reduce_max, segment_max};
    return table;
}

}  // namespace maxops
