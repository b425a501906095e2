#include "core_table.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <vector>

#include "dispatch.h"
#include "iterate.h"
#include "scratch.h"

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
    if (!reserve_scratch()) return CoreStatus::kNoMemory;
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

// The operand of what is without the reduced axes, along which it does not move.
Operand reduced_operand(const void* data, const Shape& shape, const bool* is_reduced, std::size_t itemsize) {
    Operand operand{static_cast<char*>(const_cast<void*>(data)), {}, false};
    auto step = static_cast<std::ptrdiff_t>(itemsize);
    for (int axis = shape.rank - 1; axis >= 0; --axis) {
        if (is_reduced[axis]) continue;
        if (shape.size[axis] != 1) operand.strides[axis] = step;
        step *= static_cast<std::ptrdiff_t>(shape.size[axis]);
    }
    return operand;
}

CoreStatus reduce_max(int type, const CoreArray* data, const bool* is_reduced, void* out) {
    if (data->rank > kMaxRank) return CoreStatus::kBadRank;
    return guarded([&] {
        const Kernels& kernels = kernels_of(type);
        Shape shape = shape_of(*data);
        Operand operands[2] = {operand_of(*data, shape, kernels.itemsize),
                               reduced_operand(out, shape, is_reduced, kernels.itemsize)};
        reduce(run_with(kernels), shape, operands);
        return CoreStatus::kDone;
    });
}

CoreStatus locate_in_axes(int type, const CoreArray* data, const bool* is_reduced, const void* results,
                          std::int64_t* places) {
    if (data->rank > kMaxRank) return CoreStatus::kBadRank;
    return guarded([&] {
        const Kernels& kernels = kernels_of(type);
        Located call;
        call.shape = shape_of(*data);
        std::copy(is_reduced, is_reduced + data->rank, call.is_reduced);
        call.data = operand_of(*data, call.shape, kernels.itemsize);
        call.results = reduced_operand(results, call.shape, is_reduced, kernels.itemsize);
        call.places = reduced_operand(places, call.shape, is_reduced, sizeof *places);
        locate(run_with(kernels), call);
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

// ---------------------------------------------------------------------------- segments

const Kernels& id_kernels_of(const CoreSegments& call) {
    return kernels_of(static_cast<int>(call.ids_are_wide ? Type::int64_ : Type::int32_));
}

Segments segments_of(const Kernels& kernels, const CoreSegments& call) {
    Segments segments{};
    segments.shape = {2, {call.rows, call.width}};
    const auto item = static_cast<std::ptrdiff_t>(kernels.itemsize);
    // as const as the kernels that read them have them
    segments.data = {static_cast<char*>(const_cast<void*>(call.data)),
                     {static_cast<std::ptrdiff_t>(call.width) * item, item},
                     false};
    segments.ids = {static_cast<char*>(const_cast<void*>(call.ids)),
                    {static_cast<std::ptrdiff_t>(id_kernels_of(call).itemsize)},
                    false};
    segments.id_type = call.ids_are_wide ? 1 : 0;
    segments.out = static_cast<char*>(call.out);
    segments.num_segments = call.num_segments;
    segments.fill = call.fill;
    segments.first = kernels.lowest;
    segments.trusts = true;
    segments.bounds = call.order == IdOrder::kOffsets ? call.id_count : 0;
    return segments;
}

bool is_faulty(const CoreSegments& call, CoreIdFault* fault) {
    const auto by = [&](const auto* ids) {
        return call.order == IdOrder::kOffsets ? has_offset_fault(call, ids, fault)
                                               : has_fault(call, ids, fault);
    };
    return call.ids_are_wide ? by(static_cast<const std::int64_t*>(call.ids))
                             : by(static_cast<const std::int32_t*>(call.ids));
}

CoreStatus segment_max(int type, const CoreSegments* call, CoreIdFault* fault) {
    return guarded([&] {
        if (call->checks && is_faulty(*call, fault)) return CoreStatus::kBadIds;
        if (call->num_segments == 0 || call->width == 0) return CoreStatus::kDone;
        const Kernels& kernels = kernels_of(type);
        const Segments segments = segments_of(kernels, *call);
        bool is_sorted = true;
        if (call->order == IdOrder::kAny)
            scatter(run_with(kernels), id_kernels_of(*call), segments);
        else
            segment(run_with(kernels), id_kernels_of(*call), segments, &is_sorted);
        return CoreStatus::kDone;
    });
}

CoreStatus locate_in_segments(int type, const CoreSegments* call, std::int64_t* places) {
    return guarded([&] {
        const Kernels& kernels = kernels_of(type);
        locate_segments(run_with(kernels), id_kernels_of(*call), segments_of(kernels, *call),
                        call->order != IdOrder::kAny, places);
        return CoreStatus::kDone;
    });
}

const char* const kNames[] = {
#define MAXOPS_TYPE(name, order) #name,
#include "types.def"
#undef MAXOPS_TYPE
    nullptr};

}  // namespace

const CoreTable& core_table() {
    static constexpr CoreTable table{sizeof(CoreTable), kNames,         maximum,           reduce_max,
                                     segment_max,       locate_in_axes, locate_in_segments};
    return table;
}

}  // namespace maxops
