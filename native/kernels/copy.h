// Copies between any layout and contiguous blocks in native byte order.
#pragma once
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "transpose.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// Copies the first word of each pair, except a tail, because memory past the last word may be unreadable.
// Returns the number copied. Compilers vectorize the other widths well. With AVX-512, which permutes two
// vectors in one instruction, they vectorize all widths well.
#if defined(__AVX512F__)
constexpr bool kPicksWords = true;
#else
constexpr bool kPicksWords = false;
#endif
static inline std::size_t every_second(char* to, const char* from, std::size_t n) {
    typedef std::uint32_t Row __attribute__((vector_size(16)));
    constexpr std::size_t kWidth = 4, kItem = 4;
    std::size_t i = 0;
    for (; n - i > kWidth; i += kWidth) {
        Row first, second;
        __builtin_memcpy(&first, from + 2 * i * kItem, sizeof(Row));
        __builtin_memcpy(&second, from + (2 * i + kWidth) * kItem, sizeof(Row));
        const Row even = __builtin_shufflevector(first, second, 0, 2, 4, 6);
        __builtin_memcpy(to + i * kItem, &even, sizeof(Row));
    }
    return i;
}

template <class W, bool swap>
static void gather_items(void* block, const void* data, std::ptrdiff_t stride, std::size_t n) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    if (stride == kItem) return copy_items<W, swap>(to, kItem, from, kItem, n);
    if (stride == 0) return copy_items<W, swap>(to, kItem, from, 0, n);
    if (stride == -kItem) return copy_items<W, swap>(to, kItem, from, -kItem, n);
    if (stride == 2 * kItem) {
        auto* __restrict items = reinterpret_cast<Unaligned<W>*>(to);
        auto* __restrict pairs = reinterpret_cast<const Unaligned<W>*>(from);
        std::size_t i = 0;
        if constexpr (!swap && sizeof(W) == 4 && !kPicksWords) i = every_second(to, from, n);
        for (; i < n; ++i) items[i].value = swap ? swapped_bytes(pairs[2 * i].value) : pairs[2 * i].value;
        return;
    }
    copy_items<W, swap>(to, kItem, from, stride, n);
}

template <class W>
static void gather(void* block, const void* data, std::ptrdiff_t stride, std::size_t n, bool swapped) {
    // Prefetches one chunk ahead if items share cache lines but are not contiguous.
    const bool prefetches =
        stride > static_cast<std::ptrdiff_t>(sizeof(W)) && stride <= 64 && n > kGatherChunk;
    const std::size_t chunk = prefetches ? kGatherChunk : n;
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    for (std::size_t i = 0; i < n; i += chunk) {
        const std::size_t m = n - i < chunk ? n - i : chunk;
        const auto span = static_cast<std::ptrdiff_t>(chunk) * stride;
        if (prefetches) prefetch(from + span, static_cast<std::size_t>(span));
        if (swapped)
            gather_items<W, true>(to, from, stride, m);
        else
            gather_items<W, false>(to, from, stride, m);
        to += m * sizeof(W);
        from += span;
    }
}

// Copies rows that are too short for one call per row: contiguous items, one repeated row, a repeated
// element, or any stride.
template <class W, bool swap>
static void gather_short_rows(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                              std::size_t rows, std::size_t n) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    const auto row_bytes = static_cast<std::ptrdiff_t>(n) * kItem;
    if (stride == kItem) {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, kItem, n);
    } else if (stride == 0) {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, 0, n);
    } else {
        for (; rows > 0; --rows, to += row_bytes, from += row_stride)
            copy_items<W, swap>(to, kItem, from, stride, n);
    }
}

template <class W>
static void gather_rows(void* block, const void* data, std::ptrdiff_t row_stride, std::ptrdiff_t stride,
                        std::size_t rows, std::size_t n, bool swapped) {
    if (rows == 1) return gather<W>(block, data, stride, n, swapped);
    if (swapped)
        gather_short_rows<W, true>(block, data, row_stride, stride, rows, n);
    else
        gather_short_rows<W, false>(block, data, row_stride, stride, rows, n);
}

template <class W>
static void scatter(void* data, const void* block, std::ptrdiff_t stride, std::size_t n, bool swapped) {
    constexpr std::ptrdiff_t kItem = sizeof(W);
    auto* to = static_cast<char*>(data);
    auto* from = static_cast<const char*>(block);
    if (swapped)
        copy_items<W, true>(to, stride, from, kItem, n);
    else
        copy_items<W, false>(to, stride, from, kItem, n);
}

// Writes whole cache lines with the widest stores that bypass the cache. The head and the tail do not bypass
// it.
static void stream(void* to_, const void* block, std::size_t bytes) {
    auto* to = static_cast<char*>(to_);
    auto* from = static_cast<const char*>(block);
#if defined(__x86_64__)
    constexpr std::size_t kLine = 64;
    std::size_t head = (kLine - reinterpret_cast<std::uintptr_t>(to) % kLine) % kLine;
    head = head < bytes ? head : bytes;
    __builtin_memcpy(to, from, head);
    for (to += head, from += head, bytes -= head; bytes >= kLine;
         to += kLine, from += kLine, bytes -= kLine) {
#if defined(__AVX512F__)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), _mm512_loadu_si512(from));
#elif defined(__AVX2__)
        for (std::size_t k = 0; k < kLine; k += sizeof(__m256i))
            _mm256_stream_si256(reinterpret_cast<__m256i*>(to + k),
                                _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + k)));
#else
        for (std::size_t k = 0; k < kLine; k += sizeof(__m128i))
            _mm_stream_si128(reinterpret_cast<__m128i*>(to + k),
                             _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k)));
#endif
    }
#endif
    __builtin_memcpy(to, from, bytes);
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
