// SegmentMax: the ids or offsets of a call, its maxima and their indices.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "api.h"
#include "drivers/guarded.h"
#include "drivers/initial.h"
#include "drivers/segment_pieces.h"
#include "drivers/segment_rows.h"

namespace maxops {
namespace {

// ---------------------------------------------------------------------------- checks of single ids and
// offsets

template <class Id>
Id id_at(const View& indices, std::int64_t i) {
    Id id;
    std::memcpy(&id, indices.data + i * indices.strides[0], sizeof id);
    if (!indices.swapped) return id;
    if constexpr (sizeof(Id) == 4)
        return static_cast<Id>(__builtin_bswap32(static_cast<std::uint32_t>(id)));
    else
        return static_cast<Id>(__builtin_bswap64(static_cast<std::uint64_t>(id)));
}

bool is_wide(const Segmentation& call) {
    return call.indices.type == static_cast<int>(Type::int64_);
}

std::int64_t id_at(const Segmentation& call, std::int64_t i) {
    return is_wide(call) ? id_at<std::int64_t>(call.indices, i) : id_at<std::int32_t>(call.indices, i);
}

std::int64_t rows_of(const Segmentation& call) {
    return call.data.rank == 0 ? 0 : call.data.sizes[call.axis];
}

// Converts an id for a Fault. Ids of uint64 above the maximum of int64 keep their bits and become negative.
template <class Id>
std::int64_t signed_of(Id id) {
    return static_cast<std::int64_t>(id);
}

template <class Id>
bool is_at_least(Id id, std::int64_t limit) {
    const std::int64_t value = signed_of(id);
    return value >= limit || (!std::is_signed_v<Id> && value < 0);
}

// The number of ids or offsets between polls. One core reads them in about 1 ms, or in about 10 ms if each is
// on its own page.
constexpr std::int64_t kScannedBlock = std::int64_t{1} << 20;

template <class Id>
Fault find_id_fault(Poll poll, const Segmentation& call) {
    // Within each block, checks the rules one by one, so that faults are reported in the order of the rules.
    const View& ids = call.indices;
    const std::int64_t n = ids.sizes[0];
    Polling polling(poll);
    for (std::int64_t begin = 0; begin < n; begin += kScannedBlock) {
        if (!polling.goes_on()) return {Fault::kStopped};
        const std::int64_t end = std::min(n, begin + kScannedBlock);
        const auto first = [&](auto breaks_rule) {
            std::int64_t i = begin;
            while (i < end && !breaks_rule(i)) ++i;
            return i;
        };
        if (std::is_signed_v<Id> && call.rejects_negative) {
            const std::int64_t i = first([&](std::int64_t at) { return id_at<Id>(ids, at) < 0; });
            if (i < end) return {Fault::kNegativeId, i, signed_of(id_at<Id>(ids, i))};
        }
        if (call.rejects_past && call.num_segments >= 0) {
            const std::int64_t i =
                first([&](std::int64_t at) { return is_at_least(id_at<Id>(ids, at), call.num_segments); });
            if (i < end) return {Fault::kIdTooLarge, i, signed_of(id_at<Id>(ids, i)), call.num_segments};
        }
        if (call.is_sorted) {
            const std::int64_t i = first(
                [&](std::int64_t at) { return at + 1 < n && id_at<Id>(ids, at + 1) < id_at<Id>(ids, at); });
            if (i < end)
                return {Fault::kIdsDecrease, i + 1, signed_of(id_at<Id>(ids, i + 1)),
                        signed_of(id_at<Id>(ids, i))};
        }
    }
    return {};
}

template <class Id>
Fault find_offset_fault(Poll poll, const Segmentation& call) {
    const View& offsets = call.indices;
    const std::int64_t last = offsets.sizes[0] - 1, rows = rows_of(call);
    const std::int64_t begin = signed_of(id_at<Id>(offsets, 0)), end = signed_of(id_at<Id>(offsets, last));
    if (begin != 0) return {Fault::kOffsetsBegin, 0, begin};
    Polling polling(poll);
    for (std::int64_t i = 1; i <= last; ++i) {
        if (i % kScannedBlock == 0 && !polling.goes_on()) return {Fault::kStopped};
        if (const Id here = id_at<Id>(offsets, i), before = id_at<Id>(offsets, i - 1); here < before)
            return {Fault::kOffsetsDecrease, i, signed_of(here), signed_of(before)};
    }
    if (end != rows) return {Fault::kOffsetsEnd, last, end, rows};
    return {};
}

template <class From, class To>
void widen(const char* from, std::size_t n, To* to) {
    const auto* items = reinterpret_cast<const From*>(from);
    for (std::size_t i = 0; i < n; ++i)
        to[i] =
            sizeof(From) < sizeof(To)
                ? static_cast<To>(items[i])
                : static_cast<To>(std::min<std::uint64_t>(static_cast<std::uint64_t>(items[i]), INT64_MAX));
}

using Widen = void (*)(const char* from, std::size_t n, char* to);
template <class From, class To>
void widen_block(const char* from, std::size_t n, char* to) {
    widen<From>(from, n, reinterpret_cast<To*>(to));
}

Widen widen_of(int type) {
    switch (static_cast<Type>(type)) {
        case Type::int8_:
            return widen_block<std::int8_t, std::int32_t>;
        case Type::uint8_:
            return widen_block<std::uint8_t, std::int32_t>;
        case Type::int16_:
            return widen_block<std::int16_t, std::int32_t>;
        case Type::uint16_:
            return widen_block<std::uint16_t, std::int32_t>;
        case Type::uint32_:
            return widen_block<std::uint32_t, std::int64_t>;
        case Type::uint64_:
            return widen_block<std::uint64_t, std::int64_t>;
        default:
            return nullptr;
    }
}

// ---------------------------------------------------------------------------- checks with kernels

const Kernels& id_kernels_of(const Segmentation& call) {
    return kernels_of(call.indices.type);
}

bool are_sorted(Poll poll, const Segmentation& call, bool* sorted) {
    return ids_are_sorted({id_kernels_of(call), poll}, call.indices.operand(1),
                          static_cast<std::size_t>(call.indices.sizes[0]), sorted);
}

// Finds the highest id, or -1 if there are no ids. With `no_negative`, the result is negative if any id is.
// Returns false if the poll stopped the search.
bool find_highest(Poll poll, const Segmentation& call, bool no_negative, std::int64_t* highest) {
    *highest = -1;
    const std::int64_t rows = call.indices.sizes[0];
    if (rows == 0) return true;
    // Interpreted as unsigned numbers, negative ids are the highest.
    const Type as_unsigned = is_wide(call) ? Type::uint64_ : Type::uint32_;
    const Kernels& kernels = no_negative ? kernels_of(static_cast<int>(as_unsigned)) : id_kernels_of(call);
    alignas(8) char native[8];
    Shape shape(static_cast<std::size_t>(rows));
    Operand operands[2] = {call.indices.operand(1), Operand(native)};
    if (!reduce({kernels, poll}, shape, operands)) return false;
    const std::ptrdiff_t one = 1;
    View found = call.indices;
    found.data = native;
    found.swapped = false;
    found.sizes = found.strides = &one;
    *highest = is_wide(call) ? id_at<std::int64_t>(found, 0) : id_at<std::int32_t>(found, 0);
    return true;
}

// Returns the first fault, found by reading the ids or offsets one by one.
Fault find_index_fault(Poll poll, const Segmentation& call) {
    const auto find = [&](auto id) {
        using Id = decltype(id);
        return call.by_offsets ? find_offset_fault<Id>(poll, call) : find_id_fault<Id>(poll, call);
    };
    if (call.indices.type == static_cast<int>(Type::uint64_)) return find(std::uint64_t{});
    return is_wide(call) ? find(std::int64_t{}) : find(std::int32_t{});
}

// Returns the fault of ids or offsets that a kernel rejected. Another thread may have corrected them since;
// then the planner handles the call.
Fault report(Poll poll, const Segmentation& call) {
    const Fault fault = find_index_fault(poll, call);
    return fault ? fault : Fault{Fault::kNotHandled};
}

Fault plan_offsets(Poll poll, Segmentation* call) {
    // Validated even if the call does not check, because offsets determine which memory is accessed.
    const std::int64_t last = call->indices.sizes[0] - 1;
    bool valid = id_at(*call, 0) == 0 && id_at(*call, last) == rows_of(*call);
    if (valid && !are_sorted(poll, *call, &valid)) return {Fault::kStopped};
    if (!valid && call->checks) return report(poll, *call);
    call->has_rows = valid;
    if (call->num_segments < 0) call->num_segments = last;
    return {};
}

Fault plan_sorted(Poll poll, Segmentation* call, bool is_new) {
    const std::int64_t rows = call->indices.sizes[0];
    const std::int64_t last = rows == 0 ? -1 : id_at(*call, rows - 1);
    const bool is_given = call->num_segments >= 0;
    if (call->checks && rows > 0) {
        if (!call->rejects_negative) {  // the kernels reject all negative ids
            if (const Fault fault = find_index_fault(poll, *call)) return fault;
        } else if (call->rejects_past && is_given && last >= call->num_segments) {
            return report(poll, *call);
        } else if (!is_new || last < 0 || call->num_segments == 0 || call->data.elements() == 0 ||
                   (!SegmentPieces::is_one(*call) && SegmentPieces(*call).count() > 1)) {
            // Validate all ids first: the caller's output must not be written before. An empty output has no
            // pass over the ids, and several pieces have several passes.
            bool valid = true;
            if (!are_sorted(poll, *call, &valid)) return {Fault::kStopped};
            if (!valid) return report(poll, *call);
        } else {
            call->checks_with_maxima = true;
        }
    }
    if (is_given) return {};
    if (last == INT64_MAX) return {Fault::kNotHandled};
    call->num_segments = std::max<std::int64_t>(last, -1) + 1;
    return {};
}

Fault plan_unsorted(Poll poll, Segmentation* call) {
    const bool is_given = call->num_segments >= 0, checks = call->checks && call->rejects_negative;
    if (!checks && is_given) return {};
    std::int64_t highest = -1;
    if (!find_highest(poll, *call, checks, &highest)) return {Fault::kStopped};
    if (checks && highest < 0 && call->indices.sizes[0] > 0) return report(poll, *call);
    if (checks && call->rejects_past && is_given && highest >= call->num_segments) return report(poll, *call);
    if (highest == INT64_MAX && !is_given) return {Fault::kNotHandled};
    if (!is_given) call->num_segments = std::max<std::int64_t>(highest, -1) + 1;
    return {};
}

// ---------------------------------------------------------------------------- execution

// Returns the first piece of a call.
Segments segments_of(const Segmentation& call, const SegmentPieces& pieces) {
    Segments segments{};
    pieces.get_first(&segments);
    if (!call.has_rows) segments.shape.size[0] = 0;
    segments.ids = call.indices.operand(1);
    segments.id_type = is_wide(call) ? 1 : 0;
    segments.num_segments = call.num_segments;
    segments.fill = call.fill;
    segments.first = kernels_of(call.data.type, call.ignores_nan).lowest;
    segments.bounds = call.by_offsets ? static_cast<std::size_t>(call.indices.sizes[0]) : 0;
    segments.checks = call.checks_with_maxima;
    segments.trusts = !call.checks_with_maxima && !call.by_offsets;
    return segments;
}

// The number of bytes of one piece: its rows, their ids, and its part of the output.
std::size_t piece_bytes(const Segmentation& call, const SegmentPieces& pieces) {
    const std::size_t row_bytes = pieces.row_width() * kernels_of(call.data.type).itemsize;
    const std::size_t rows = call.has_rows ? static_cast<std::size_t>(rows_of(call)) : 0;
    return rows * (row_bytes + id_kernels_of(call).itemsize) +
           static_cast<std::size_t>(call.num_segments) * row_bytes;
}

// Whether pieces run one after the other instead of in parallel tasks: if a piece is large enough for several
// tasks, or if it allocates, because tasks must not throw. Pieces with unsorted ids or noncontiguous offsets
// allocate.
bool are_one_by_one(const Segmentation& call, const SegmentPieces& pieces) {
    const std::size_t row_bytes = pieces.row_width() * kernels_of(call.data.type).itemsize;
    const bool allocates = call.by_offsets ? !call.indices.contiguous : !call.is_sorted;
    return allocates || piece_bytes(call, pieces) >= kThreadedBytes ||
           row_bytes >= std::min(kWideRowBytes, kGatheredRowsBytes);
}

// Computes all pieces, each into its part of an output that begins at `out`. Sets `sorted` to false if the
// call checks its ids with the maxima and they are not sorted. Calls of several pieces check them earlier.
bool take_pieces(const Run& run, const Segmentation& call, const SegmentPieces& pieces, Segments& first,
                 char* out, bool* sorted) {
    const Kernels& id_kernels = id_kernels_of(call);
    const std::size_t count = pieces.count(), bytes = piece_bytes(call, pieces);
    const std::size_t part =
        static_cast<std::size_t>(call.num_segments) * pieces.row_width() * run.kernels.itemsize;
    if (call.initial != nullptr) first.first = first.fill;
    if (count == 1 || are_one_by_one(call, pieces))
        return pieces(run.poll, 0, count, first, [&](Segments& piece, std::size_t number) {
            piece.out = out + number * part;
            return call.is_sorted || call.by_offsets ? segment(run, id_kernels, piece, sorted)
                                                     : scatter(run, id_kernels, piece);
        });
    const auto share = [&](std::size_t begin, std::size_t end) {
        Segments of_task = first;
        const SegmentsAlike alike(run.kernels, id_kernels, of_task);
        pieces(nullptr, begin, end, of_task, [&](Segments& piece, std::size_t number) {
            piece.out = out + number * part;
            alike.take();
            return true;
        });
    };
    return parallel_for(run, count, kTaskBytes / bytes + 1, count * bytes, share);
}

// Computes small contiguous calls with sorted ids, without tasks. False if the ids are invalid.
bool segment_small(const Kernels& kernels, const Segmentation& call, const View& out) {
    SegmentWalk walk{};
    walk.out = out.data;
    walk.width = out.elements() / static_cast<std::size_t>(call.num_segments);
    walk.out_stride = static_cast<std::ptrdiff_t>(walk.width * kernels.itemsize);
    walk.num_segments = call.num_segments;
    walk.fill = call.fill;
    walk.gallops = !call.checks_with_maxima;
    walk.checks = call.checks_with_maxima;
    walk.previous = -1;
    walk.scratch = scratch<SegmentBuffers>().kernel;
    kernels.segment[is_wide(call) ? 1 : 0](&walk, call.data.data, walk.out_stride, call.indices.data,
                                           static_cast<std::size_t>(call.indices.sizes[0]));
    if (walk.is_unsorted) return false;
    kernels.fill(&walk, walk.previous + 1, call.num_segments);
    return true;
}

}  // namespace

Fault check_indices(Poll poll, const Segmentation& call) {
    return guarded([&]() -> Fault {
        if (call.indices.type == static_cast<int>(Type::uint64_)) return find_index_fault(poll, call);
        Segmentation known = call;  // num_segments is set here, not derived from the ids
        if (known.by_offsets) return plan_offsets(poll, &known);
        const bool has_limit = call.num_segments >= 0;
        if (!has_limit) known.num_segments = INT64_MAX;
        known.rejects_past = call.rejects_past && has_limit;
        return known.is_sorted ? plan_sorted(poll, &known, false) : plan_unsorted(poll, &known);
    });
}

Fault widen_indices(Poll poll, const View& indices, const View& out) {
    const Kernels& kernels = kernels_of(indices.type);
    const Widen widen = widen_of(indices.type);
    if (widen == nullptr) return {Fault::kNotHandled};
    return guarded([&] {
        const std::size_t to_bytes = kernels_of(out.type).itemsize, n = out.elements();
        return finished(parallel_for(
            {kernels, poll}, n, kTaskBytes / to_bytes, n * to_bytes, [&](std::size_t begin, std::size_t end) {
                alignas(64) char block[kBlockBytes];
                constexpr std::size_t kMost = kBlockBytes / 8;
                for (std::size_t at = begin; at < end; at += kMost) {
                    const std::size_t m = std::min(kMost, end - at);
                    kernels.gather(block, indices.data + static_cast<std::ptrdiff_t>(at) * indices.strides[0],
                                   indices.strides[0], m, indices.swapped);
                    widen(block, m, out.data + at * to_bytes);
                }
            }));
    });
}

Fault plan_segments(Poll poll, Segmentation* call, bool is_new) {
    return guarded([&] {
        if (call->by_offsets) return plan_offsets(poll, call);
        return call->is_sorted ? plan_sorted(poll, call, is_new) : plan_unsorted(poll, call);
    });
}

Fault segment_max(Poll poll, const Segmentation& call, const View& out) {
    return guarded([&]() -> Fault {
        if (out.elements() == 0) return {};
        const Kernels& kernels = kernels_of(call.data.type, call.ignores_nan);
        const Run run{kernels, poll};
        Initial initial(call.initial, out);
        if (call.data.bytes() + out.bytes() < kKeepsGilBytes && SegmentPieces::is_one(call) &&
            call.indices.contiguous && call.is_sorted && !call.by_offsets)
            return segment_small(kernels, call, out) ? finished(initial.fold(run)) : report(poll, call);
        const SegmentPieces pieces(call);
        bool sorted = true;
        Segments first = segments_of(call, pieces);
        const bool is_done = take_pieces(run, call, pieces, first, out.data, &sorted);
        if (is_done && !sorted) return report(poll, call);
        return finished(is_done && initial.fold(run));
    });
}

Fault argmax(Poll poll, const Segmentation& call, const View& values, std::int64_t* indices) {
    return guarded([&]() -> Fault {
        if (values.elements() == 0) return {};
        const Run run{kernels_of(call.data.type), poll};
        const SegmentPieces pieces(call);
        Segments first = segments_of(call, pieces);
        first.checks = first.trusts = false;
        const std::size_t part = static_cast<std::size_t>(call.num_segments) * pieces.row_width();
        return finished(pieces(poll, 0, pieces.count(), first, [&](Segments& piece, std::size_t number) {
            piece.out = values.data + number * part * run.kernels.itemsize;
            return argmax_in_segments(run, id_kernels_of(call), piece, call.is_sorted || call.by_offsets,
                                      indices + number * part);
        }));
    });
}

bool layout(const Segmentation& call, int* axes) {
    if (SegmentPieces::is_one(call)) return false;
    const SegmentPieces pieces(call);
    std::copy(pieces.axes(), pieces.axes() + call.data.rank, axes);
    return !std::is_sorted(axes, axes + call.data.rank);
}

bool writes_in_parts(const Segmentation& call) {
    if (SegmentPieces::is_one(call)) return false;
    const SegmentPieces pieces(call);
    return pieces.count() > 1 && are_one_by_one(call, pieces);
}

Fault empty_segments(Poll poll, const Segmentation& call, std::uint8_t* is_empty) {
    return guarded([&]() -> Fault {
        if (call.num_segments == 0) return {};
        Segments segments{};
        segments.ids = call.indices.operand(1);
        segments.id_type = is_wide(call) ? 1 : 0;
        segments.num_segments = call.num_segments;
        segments.bounds = call.by_offsets ? static_cast<std::size_t>(call.indices.sizes[0]) : 0;
        segments.shape = Shape(!call.has_rows    ? 0
                               : call.by_offsets ? SIZE_MAX
                                                 : static_cast<std::size_t>(call.indices.sizes[0]));
        const Kernels& kernels = id_kernels_of(call);
        return finished(find_empty({kernels, poll}, kernels, segments, is_empty));
    });
}

}  // namespace maxops
