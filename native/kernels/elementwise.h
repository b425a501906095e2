// Max of inputs with equal shapes, and of rows with one element for each row.
#pragma once
#include <cstddef>

#include "items.h"
#include "maxima.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class V, std::size_t count>
struct Several {
    V each[count];
};

// out[i] = maximum(load...) for one vector, or for two in step; load(from) loads the items of `from` from i
// on. Vectors are aligned to the output's cache lines. The first and the last vector may overlap others. If
// the output is also an input, the overlapping lanes compute their maximum twice, which does not change it.
template <class T, class Maximum>
MAXOPS_INLINE void in_vectors(Item<T>* out, std::size_t n, const Maximum& maximum) {
    using V = Vec<typename T::Bits>;
    const auto some = [&](std::size_t at, std::size_t items) {
        Pieces<V>::with(items, [&](auto piece) {
            const auto load = [&](const Item<T>* from) { return piece.load(from + at, V::splat(0)); };
            piece.store(out + at, maximum(load).each[0]);
        });
    };
    const auto loads = [](std::size_t at) {
        return [at](const Item<T>* from) { return V::load(from + at); };
    };
    const auto whole = [&](std::size_t at) { return maximum(loads(at)).each[0]; };
    if (n < V::kLanes) {
        if (n > 0) some(0, n);
        return;
    }
    std::size_t i = alignment_peel<T>(out, n) % V::kLanes;
    if (i > 0) store(out, whole(0));
    for (; n - i >= 2 * V::kLanes; i += 2 * V::kLanes) {
        // Keeps the stores in ascending order; in descending order they take 1.3 times as long.
        const auto both = maximum(loads(i), loads(i + V::kLanes));
        store(out + i, both.each[0]);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
        store(out + i + V::kLanes, both.each[1]);
    }
    if (n - i >= V::kLanes) {
        store(out + i, whole(i));
        i += V::kLanes;
    }
    if (i == n) return;
    if constexpr (kHasMaskedMemory)
        some(i, n - i);
    else
        store(out + n - V::kLanes, whole(n - V::kLanes));
}

template <class T>
inline Item<T>* to_row(void* out, std::ptrdiff_t bytes) {
    return reinterpret_cast<Item<T>*>(static_cast<char*>(out) + bytes);
}

// The maxima of the inputs for each load. All loads advance in step from one input to the next.
template <class T, int inputs, class... Load>
MAXOPS_INLINE auto maxima_in_step(const Item<T>* const (&from)[inputs], const Load&... load) {
    Maxima<T> maxima[] = {Maxima<T>(load(from[0]), load(from[1]))...};
    for (int k = 2; k < inputs; k += 2) {
        if constexpr (sizeof...(load) > 1)
            for (Maxima<T>& each : maxima) each.high = in_step(each.high);
        auto* each = maxima;
        if (k + 1 < inputs)
            (each++->accumulate(load(from[k]), load(from[k + 1])), ...);
        else
            (each++->accumulate(load(from[k])), ...);
    }
    auto* each = maxima;
    return Several<Vec<typename T::Bits>, sizeof...(load)>{
        {(static_cast<void>(load), each++->finalize())...}};
}

template <class T, int inputs>
void fold(void* out, std::ptrdiff_t out_stride, const void* const* in, const std::ptrdiff_t* strides,
          std::size_t rows, std::size_t n) {
    if constexpr (kComparesFloats<T>)
        if (!float_modes_are_plain()) return fold<Bitwise<T>, inputs>(out, out_stride, in, strides, rows, n);
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        const Item<T>* from[inputs];
        for (int k = 0; k < inputs; ++k) from[k] = at<Item<T>>(in[k], r * strides[k]);
        in_vectors<T>(to_row<T>(out, r * out_stride), n, [&](const auto&... load) {
            using Found = Several<Vec<typename T::Bits>, sizeof...(load)>;
            if constexpr (inputs == 1) {
                return Found{{Maxima<T>(load(from[0])).finalize()...}};
            } else if constexpr (inputs == 2) {
                return Found{{max_of_two<T>(load(from[0]), load(from[1]))...}};
            } else if constexpr (inputs <= 4) {
                return maxima_in_step<T, inputs>(from, load...);
            } else {  // too few registers for both at once
                return Found{{maxima_in_step<T, inputs>(from, load).each[0]...}};
            }
        });
    }
}

template <class T>
void fold_rows_with(void* out, std::ptrdiff_t out_stride, const void* in, std::ptrdiff_t in_stride,
                    const void* items, std::ptrdiff_t item_stride, std::size_t rows, std::size_t n) {
    if constexpr (kComparesFloats<T>)
        if (!float_modes_are_plain())
            return fold_rows_with<Bitwise<T>>(out, out_stride, in, in_stride, items, item_stride, rows, n);
    using V = Vec<typename T::Bits>;
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        const Item<T>* from = at<Item<T>>(in, r * in_stride);
        const V item = V::splat(at<Item<T>>(items, r * item_stride)->value);
        in_vectors<T>(to_row<T>(out, r * out_stride), n, [&](const auto&... load) {
            return Several<V, sizeof...(load)>{{max_of_two<T>(item, load(from))...}};
        });
    }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
