// SegmentMax with sorted ids.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elementwise.h"
#include "reduce.h"
#include "segment_blocks.h"

#ifndef MAXOPS_AVX512
#include "segment_scan.h"
#endif

namespace maxops {
MAXOPS_DECLARE_KERNELS(MAXOPS_ISA)

namespace MAXOPS_ISA {
namespace {

// The index of an order in the kernel tables.
template <class T>
struct PlaceOf;
#define MAXOPS_TYPE(name, order, ...)                                                  \
    template <>                                                                        \
    struct PlaceOf<order> {                                                            \
        static constexpr int value = order_of(static_cast<int>(Type::name##_), false); \
    };
#define MAXOPS_IGNORING_NAN(name, order)                                              \
    template <>                                                                       \
    struct PlaceOf<order> {                                                           \
        static constexpr int value = order_of(static_cast<int>(Type::name##_), true); \
    };
#include "../core/types.def"

// Folds a few rows of one cache line of columns, with keys in registers. Compilers would not vectorize
// unrolled loops.
template <class T, std::size_t n>
static void few_rows(Item<T>* target, bool merge, const char* data, std::ptrdiff_t stride, std::size_t rows) {
    typename T::Key best[n];
    auto* first = merge ? target : at<Item<T>>(data, 0);
#pragma GCC unroll 1
    for (std::size_t j = 0; j < n; ++j) best[j] = T::key(first[j].value);
    for (std::size_t r = merge ? 0 : 1; r < rows; ++r) {
        auto* row = at<Item<T>>(data, static_cast<std::ptrdiff_t>(r) * stride);
#pragma GCC unroll 1
        for (std::size_t j = 0; j < n; ++j) best[j] = highest(best[j], T::key(row[j].value));
    }
#pragma GCC unroll 1
    for (std::size_t j = 0; j < n; ++j) target[j].value = T::bits(best[j]);
}

// Folds a segment's rows into `target`, column by column; with `merge`, includes the values that `target`
// already contains.
template <class T>
static void segment_columns(char* target, bool merge, const char* data, std::ptrdiff_t stride,
                            std::size_t rows, std::size_t width) {
    constexpr std::size_t kBlock = kSegmentBlockBytes / sizeof(Item<T>);
    constexpr std::size_t kLine = kRegisterBytes / sizeof(Item<T>);
    std::size_t j = 0;
    const auto take_few = [&](auto few) {
        constexpr std::size_t n = decltype(few)::value;
        for (; width - j >= n; j += n)
            few_rows<T, n>(reinterpret_cast<Item<T>*>(target) + j, merge, data + j * sizeof(Item<T>), stride,
                           rows);
    };
    if (rows < kFewRows || width < kLine) {
        take_few(std::integral_constant<std::size_t, kLine>{});
        take_few(std::integral_constant<std::size_t, quarter_of(kLine)>{});
    }
    const ReduceKernels& kernels = reduce[PlaceOf<T>::value];  // not instantiated here again
    alignas(64) typename T::Key keys[kBlock];
    for (; j < width; j += kBlock) {
        std::size_t n = width - j < kBlock ? width - j : kBlock;
        auto* out = reinterpret_cast<Item<T>*>(target) + j;
        auto* first = at<Item<T>>(data, 0) + j;
        if (merge)
            for (std::size_t i = 0; i < n; ++i)
                keys[i] = highest(T::key(out[i].value), T::key(first[i].value));
        else
            for (std::size_t i = 0; i < n; ++i) keys[i] = T::key(first[i].value);
        kernels.columns(keys, at<Item<T>>(data, stride) + j, stride, rows - 1, n);
        kernels.finish(out, keys, n);
    }
}

// Folds rows of one segment. Resumes the segment if the walk's last row belongs to it, whichever loop folded
// that row. Otherwise opens the segment and fills the empty segments before it.
template <class T>
static void one_segment(SegmentWalk* walk, std::int64_t id, const char* data, std::ptrdiff_t stride,
                        std::size_t rows) {
    const bool resumes = id == walk->previous;
    if (!resumes) {
        fill<T>(walk, walk->previous + 1, id);
        walk->previous = id;
        walk->target = walk->out + id * walk->out_stride;
    }
    if (walk->width != 1 || stride != static_cast<std::ptrdiff_t>(sizeof(Item<T>)))
        return segment_columns<T>(walk->target, resumes, data, stride, rows, walk->width);
    auto* out = reinterpret_cast<Item<T>*>(walk->target);
    const auto best = highest_of<T>(at<Item<T>>(data, 0), rows);
    out->value = T::bits(resumes ? highest(T::key(out->value), best) : best);
}

// Folds rows of short segments, up to `stop` or to the first row that is outside the output or ends the walk.
// Stores the output after every row, because a branch at the end of a segment costs more than the store.
template <class T, class Id>
static std::size_t short_segments(SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids, std::size_t i,
                                  std::size_t stop, ColumnWalk<T>* at) {
    auto* out = reinterpret_cast<Item<T>*>(walk->out);
    auto [previous, best] = *at;
    for (; i < stop; ++i) {
        const std::int64_t id = ids[i];
        if (!ids.has_row(id) || !steps_to(walk, previous, id)) break;
        if (id > previous + 1) fill<T>(walk, previous + 1, id);
        typename T::Key before = id == previous ? best : T::kLowestKey;
        best = highest(before, T::key(items[i].value));
        out[id].value = T::bits(best);
        previous = id;
    }
    *at = {previous, best};
    return i;
}

// Copies contiguous rows as long as whole blocks of ids are segments of one row each, without gaps. Returns
// the number of rows. `first` is the id of row i as the caller read it, because another thread may change the
// id between check and use.
template <class T, class Id>
static std::size_t single_rows(const SegmentWalk* walk, const Item<T>* items, std::size_t width,
                               const Ids<Id>& ids, std::size_t i, std::int64_t first, std::int64_t previous) {
    constexpr std::int64_t kMostId = std::numeric_limits<Id>::max();
    const std::int64_t last = ids.num_segments - 1 < kMostId ? ids.num_segments - 1 : kMostId;
    if (first <= previous || first > last) return 0;
    auto* __restrict out = reinterpret_cast<Item<T>*>(walk->out) + static_cast<std::size_t>(first) * width;
    auto* __restrict from = items + i * width;
    auto* __restrict id = ids.ids + i;
    std::size_t most = ids.n - i, done = 0;
    if (most > static_cast<std::size_t>(last - first)) most = static_cast<std::size_t>(last - first) + 1;
    for (; most - done >= kSingles; done += kSingles) {
        const Id next = static_cast<Id>(first + static_cast<std::int64_t>(done));
        Id differ = 0;  // in the ids' own width, so that compilers vectorize it
        for (std::size_t k = 0; k < kSingles; ++k)
            differ |= id[done + k].value ^ static_cast<Id>(next + static_cast<Id>(k));
        if (differ != 0) break;
        const std::size_t begin = done * width, end = begin + kSingles * width;
        in_vectors<T>(out + begin, end - begin, [&](const auto&... load) {
            return Several<Vec<typename T::Bits>, sizeof...(load)>{{T::canonical(load(from + begin))...}};
        });
    }
    if (done > 0) fill<T>(walk, previous + 1, first);
    return done;
}
template <class T, class Id>
static std::size_t single_rows(const SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids,
                               std::size_t i, ColumnWalk<T>* at) {
    const std::int64_t first = ids[i];
    const std::size_t rows = single_rows<T>(walk, items, 1, ids, i, first, at->previous);
    if (rows > 0) *at = {first + static_cast<std::int64_t>(rows) - 1, T::key(items[i + rows - 1].value)};
    return i + rows;
}

// VectorSegments::take() replaces short_segments() for the rows from i on that it supports, if any.
#if defined(MAXOPS_AVX512)
template <class T, class Id>
struct VectorSegments;
#elif defined(MAXOPS_HAS_COMPRESSION)
template <class T, class Id>
using VectorSegments = BlockSegments<T, Id, VectorScan<T>>;
#else
template <class T, class Id>
using VectorSegments = BlockSegments<T, Id, PlainScan<T>>;
#endif

// Handles a row whose id is outside the output. Returns false if the rest of the block can be skipped: sorted
// ids past the output stay past it, and a negative id ends a walk that checks.
template <class T, class Id>
static bool continues_after(SegmentWalk* walk, const Ids<Id>& ids, std::size_t i, std::int64_t* previous) {
    const std::int64_t id = ids[i];
    if (id < 0) {
        walk->is_unsorted = walk->checks;
        return !walk->checks;
    }
    walk->is_unsorted = walk->checks && !sorted<Id>(ids.ids + i, ids.n - i);
    fill<T>(walk, *previous + 1, ids.num_segments);
    *previous = ids.num_segments;
    return false;
}

// Folds one column without a call per segment.
template <class T, class Id>
static void segment_column(SegmentWalk* walk, const Item<T>* items, const Ids<Id>& ids, std::size_t i) {
    ColumnWalk<T> at{walk->previous, T::kLowestKey};
    while (i < ids.n && !walk->is_unsorted) {
        const std::int64_t id = ids[i];
        if (!ids.has_row(id)) {
            if (!continues_after<T>(walk, ids, i, &at.previous)) break;
            ++i;
        } else if (ids.n - i >= kRun && ids[i + kRun - 1] == id) {
            if (!steps_to(walk, at.previous, id)) break;
            fill<T>(walk, at.previous + 1, id);
            const std::size_t end = ids.run_end(i);
            const auto run = highest_of<T>(items + i, end - i);
            at = {id, id == at.previous ? highest(at.best, run) : run};
            reinterpret_cast<Item<T>*>(walk->out)[id].value = T::bits(at.best);
            i = end;
        } else {
            std::size_t next = i;
            if (ids.n - i >= kShort && ids[i + kShort - 1] == id + static_cast<std::int64_t>(kShort) - 1)
                next = single_rows<T>(walk, items, ids, i, &at);
            if (next == i) next = VectorSegments<T, Id>::take(walk, items, ids, i, &at);
            const std::size_t stop = ids.n - i < kShort ? ids.n : i + kShort;
            i = next > i ? next : short_segments<T>(walk, items, ids, i, stop, &at);
        }
    }
    if (at.previous == walk->previous) return;
    walk->previous = at.previous;
    walk->target = ids.has_row(at.previous) ? walk->out + at.previous * walk->out_stride : nullptr;
}

template <class T, class Id>
static void segment_rows(SegmentWalk* walk, const void* data_, std::ptrdiff_t stride, const void* ids_,
                         std::size_t n) {
    if (n == 0) return;
    const char* data = static_cast<const char*>(data_);
    const Ids<Id> ids{static_cast<const Unaligned<Id>*>(ids_), n, walk->num_segments, walk->gallops};
    const std::size_t width = walk->width;
    constexpr std::ptrdiff_t kItem = sizeof(Item<T>);
    const auto flat = static_cast<std::ptrdiff_t>(width) * kItem;
    const bool is_flat = stride == flat && walk->out_stride == flat, is_column = is_flat && width == 1;
    std::size_t i = 0;
    if (walk->checks) {
        walk->is_unsorted = ids[0] < walk->last_id;
        walk->last_id = ids[n - 1];
        if (walk->is_unsorted) return;
    }
    if (is_column) {
        if (ids.has_row(walk->previous) && ids[0] == walk->previous) {  // resumed, possibly in a side buffer
            i = ids.run_end(0);
            one_segment<T>(walk, walk->previous, data, stride, i);
        }
        return segment_column<T>(walk, at<Item<T>>(data, 0), ids, i);
    }
    while (i < n) {
        const std::int64_t id = ids[i];
        if (!ids.has_row(id)) {
            if (!continues_after<T>(walk, ids, i, &walk->previous)) return;
            ++i;
            continue;
        }
        if (!steps_to(walk, walk->previous, id)) return;
        if (is_flat && n - i >= kSingles &&
            ids[i + kSingles - 1] == id + static_cast<std::int64_t>(kSingles) - 1) {
            const std::size_t rows =
                single_rows<T>(walk, at<Item<T>>(data, 0), width, ids, i, id, walk->previous);
            if (rows > 0) {
                walk->previous = id + static_cast<std::int64_t>(rows) - 1;
                walk->target = walk->out + walk->previous * walk->out_stride;
                i += rows;
                continue;
            }
        }
        const std::size_t end = ids.run_end(i);
        one_segment<T>(walk, id, data + static_cast<std::ptrdiff_t>(i) * stride, stride, end - i);
        i = end;
    }
}

#if defined(MAXOPS_AVX512)
#include "segment_avx512.h"
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
