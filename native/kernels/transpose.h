// Strided copies and transposes of blocks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "items.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

[[maybe_unused]] static inline std::uint8_t swapped_bytes(std::uint8_t x) {
    return x;
}
static inline std::uint16_t swapped_bytes(std::uint16_t x) {
    return __builtin_bswap16(x);
}
static inline std::uint32_t swapped_bytes(std::uint32_t x) {
    return __builtin_bswap32(x);
}
static inline std::uint64_t swapped_bytes(std::uint64_t x) {
    return __builtin_bswap64(x);
}

// With a constant stride of one item, compilers copy vectors; with a stride of 0, they hoist the load.
template <class W, bool swap>
static inline void copy_items(char* to, std::ptrdiff_t to_stride, const char* from,
                              std::ptrdiff_t from_stride, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i, to += to_stride, from += from_stride) {
        W word = reinterpret_cast<const Unaligned<W>*>(from)->value;
        reinterpret_cast<Unaligned<W>*>(to)->value = swap ? swapped_bytes(word) : word;
    }
}

// Transposes square blocks with rows of 16 bytes by interleaving rows, in log2(kWidth) rounds.
template <class W>
struct Transpose {
    typedef W Row __attribute__((vector_size(16)));
    static constexpr int kWidth = 16 / sizeof(W);

    template <int first, int... lane>
    static Row zip(Row a, Row b, std::integer_sequence<int, lane...>) {
        return __builtin_shufflevector(a, b, (lane % 2 * kWidth + first + lane / 2)...);
    }
    static void block(char* to, std::ptrdiff_t to_stride, const char* from, std::ptrdiff_t from_stride) {
        constexpr auto kLanes = std::make_integer_sequence<int, kWidth>{};
        Row rows[kWidth], zipped[kWidth];
        for (int r = 0; r < kWidth; ++r) __builtin_memcpy(&rows[r], from + r * from_stride, sizeof(Row));
        for (int round = 1; round < kWidth; round *= 2) {
            for (int r = 0; r < kWidth / 2; ++r) {
                zipped[2 * r] = zip<0>(rows[r], rows[r + kWidth / 2], kLanes);
                zipped[2 * r + 1] = zip<kWidth / 2>(rows[r], rows[r + kWidth / 2], kLanes);
            }
            for (int r = 0; r < kWidth; ++r) rows[r] = zipped[r];
        }
        for (int r = 0; r < kWidth; ++r) __builtin_memcpy(to + r * to_stride, &rows[r], sizeof(Row));
    }
};

template <class W>
static void transpose(void* block, const void* data, std::ptrdiff_t stride, std::size_t rows,
                      std::size_t columns) {
    constexpr std::size_t kWidth = Transpose<W>::kWidth;
    constexpr std::ptrdiff_t kItem = sizeof(W);
    const auto line = static_cast<std::ptrdiff_t>(columns) * kItem;
    auto* to = static_cast<char*>(block);
    auto* from = static_cast<const char*>(data);
    for (std::size_t c = 0; c < columns;) {
        const std::size_t across = columns - c < kWidth ? 1 : kWidth;
        std::size_t r = 0;
        if (across == kWidth)
            for (; rows - r >= kWidth; r += kWidth)
                Transpose<W>::block(to + static_cast<std::ptrdiff_t>(r) * line, line,
                                    from + static_cast<std::ptrdiff_t>(r) * kItem, stride);
        for (std::size_t k = 0; k < across; ++k)
            copy_items<W, false>(
                to + static_cast<std::ptrdiff_t>(r) * line + static_cast<std::ptrdiff_t>(k) * kItem, line,
                from + static_cast<std::ptrdiff_t>(k) * stride + static_cast<std::ptrdiff_t>(r) * kItem,
                kItem, rows - r);
        c += across;
        to += static_cast<std::ptrdiff_t>(across) * kItem;
        from += static_cast<std::ptrdiff_t>(across) * stride;
    }
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
