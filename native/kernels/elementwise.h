// The maximum of inputs of one shape, and of an input and a single element.
#pragma once
#include <cstddef>
#include <cstdint>

#include "items.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

template <class T>
static inline Item<T>* to_row(void* out, std::ptrdiff_t bytes) {
    return reinterpret_cast<Item<T>*>(static_cast<char*>(out) + bytes);
}

// The inputs are separate parameters because an array of pointers keeps compilers from vectorising.
// The output may be one of the inputs: each element is read before it is written.
#if defined(__clang__)
#define MAXOPS_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define MAXOPS_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <class T, class... Input>
static void fold_inputs(Item<T>* out, std::size_t n, const Input*... in) {
    MAXOPS_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) out[i].value = T::bits(highest(T::key(in[i].value)...));
}

// Two floats need no keys: among two negative numbers the lower integer is the higher number,
// otherwise the higher integer is; an unsigned maximum past -Inf or a signed one past +Inf is a NaN.
template <class T>
static void fold_pair(Item<T>* out, std::size_t n, const Item<T>* a, const Item<T>* b) {
    using Bits = typename T::Bits;
    using U = typename T::U;
    MAXOPS_INDEPENDENT
    for (std::size_t i = 0; i < n; ++i) {
        Bits x = a[i].value, y = b[i].value;
        Bits high = x < y ? y : x, low = x < y ? x : y;
        U top = static_cast<U>(x) < static_cast<U>(y) ? static_cast<U>(y) : static_cast<U>(x);
        Bits number = high < 0 ? low : high;
        bool nan = (top > T::kMinusInfinity) | (high > static_cast<Bits>(T::kInfinity));
        out[i].value = nan ? T::kNaN : number;
    }
}

template <class T, class... Input>
static inline void fold_row(Item<T>* out, std::size_t n, const Input*... in) {
    if constexpr (T::is_float && sizeof...(in) == 2)
        fold_pair<T>(out, n, in...);
    else
        fold_inputs<T>(out, n, in...);
}

template <class T, int... I>
static void fold(void* out, std::ptrdiff_t out_stride, const void* const* in, const std::ptrdiff_t* strides,
                 std::size_t rows, std::size_t n) {
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        auto* to = to_row<T>(out, r * out_stride);
        const std::size_t head = alignment_peel<T>(to, n);
        if (head > 0) fold_row<T>(to, head, at<Item<T>>(in[I], r * strides[I])...);
        fold_row<T>(to + head, n - head, (at<Item<T>>(in[I], r * strides[I]) + head)...);
    }
}

// One row with one element of its own. For floats the element's sign decides which integer order serves, and
// a NaN among the others is the only one to look for.
template <class T>
static inline void fold_row_with(Item<T>* out, const Item<T>* in, typename T::Bits item, std::size_t n) {
    using Bits = typename T::Bits;
    if constexpr (T::is_float) {
        using U = typename T::U;
        constexpr U kMagnitude = static_cast<U>(T::kSign - 1);
        auto is_nan = [](Bits bits) { return (static_cast<U>(bits) & kMagnitude) > T::kInfinity; };
        if (is_nan(item)) {
            MAXOPS_INDEPENDENT
            for (std::size_t i = 0; i < n; ++i) out[i].value = T::kNaN;
        } else if (item >= 0) {
            MAXOPS_INDEPENDENT
            for (std::size_t i = 0; i < n; ++i) {
                const Bits x = in[i].value, number = x < item ? item : x;
                out[i].value = is_nan(x) ? T::kNaN : number;
            }
        } else {
            const U top = static_cast<U>(item);
            MAXOPS_INDEPENDENT
            for (std::size_t i = 0; i < n; ++i) {
                const U x = static_cast<U>(in[i].value), number = x < top ? x : top;
                out[i].value = is_nan(static_cast<Bits>(x)) ? T::kNaN : static_cast<Bits>(number);
            }
        }
    } else {
        const typename T::Key key = T::key(item);
        MAXOPS_INDEPENDENT
        for (std::size_t i = 0; i < n; ++i) out[i].value = T::bits(highest(T::key(in[i].value), key));
    }
}

template <class T>
static void fold_rows_with(void* out, std::ptrdiff_t out_stride, const void* in, std::ptrdiff_t in_stride,
                           const void* items, std::ptrdiff_t item_stride, std::size_t rows, std::size_t n) {
    for (std::ptrdiff_t r = 0; r < static_cast<std::ptrdiff_t>(rows); ++r) {
        auto* to = to_row<T>(out, r * out_stride);
        auto* from = at<Item<T>>(in, r * in_stride);
        const auto item = at<Item<T>>(items, r * item_stride)->value;
        const std::size_t head = alignment_peel<T>(to, n);
        if (head > 0) fold_row_with<T>(to, from, item, head);
        fold_row_with<T>(to + head, from + head, item, n - head);
    }
}

#ifndef MAXOPS_SIMD
template <class T>
struct Folds {
    template <int... I>
    static constexpr auto of = fold<T, I...>;
    static constexpr auto rows_with = fold_rows_with<T>;
};
#endif

#if MAXOPS_SIMD == 4
#include "simd_v4_fold.h"
#elif MAXOPS_SIMD == 3
#include "simd_v3_fold.h"
#endif

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
