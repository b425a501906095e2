// Unaligned elements, prefetch and alignment, for all kernels.
#pragma once
#include <cstddef>
#include <cstdint>

#include "isa.h"
#include "../core/parameters.h"
#include "../core/order.h"

namespace maxops {
namespace MAXOPS_ISA {
namespace {

// An element at any alignment that may alias the caller's types, as in NumPy arrays. A struct, because a
// typedef loses its attributes as a template argument.
template <class Int>
struct __attribute__((packed, may_alias)) Unaligned {
    Int value;
};

template <class T>
using Item = Unaligned<typename T::Bits>;
template <class T>
using UnalignedKey = Unaligned<typename T::Key>;

template <std::size_t itemsize>
struct WordOf;
template <>
struct WordOf<1> {
    using type = std::uint8_t;
};
template <>
struct WordOf<2> {
    using type = std::uint16_t;
};
template <>
struct WordOf<4> {
    using type = std::uint32_t;
};
template <>
struct WordOf<8> {
    using type = std::uint64_t;
};
template <class T>
using Word = typename WordOf<sizeof(typename T::Bits)>::type;

// The bits of one element, with every NaN as the quiet NaN and every True as 1.
template <class T>
static inline typename T::Bits canonical(typename T::Bits bits) {
    return T::canonical(Scalar<typename T::Bits>{bits}).v;
}
template <class T>
static inline typename T::Key key_of(typename T::Bits bits) {
    return T::branchless_keys(Scalar<typename T::Bits>{bits}).v;
}

template <class Key>
static inline Key highest(Key a, Key b) {
    return max(Scalar<Key>{a}, Scalar<Key>{b}).v;
}

constexpr std::size_t kLine = 64;  // bytes of a cache line

template <class Target>
inline const Target* at(const void* data, std::ptrdiff_t bytes) {
    return reinterpret_cast<const Target*>(static_cast<const char*>(data) + bytes);
}

// For loops that do much work per cache line: hardware prefetchers follow only dense loads.
[[maybe_unused]] inline void prefetch(const void* data, std::size_t bytes) {
    for (std::size_t line = 0; line < bytes; line += kLine)
        __builtin_prefetch(static_cast<const char*>(data) + line);
}

// The alignment peel: the number of items before the next cache line, where whole vectors should begin.
// 0 if the items are too few to gain from it, or if no item starts at a cache line.
template <class T>
inline std::size_t alignment_peel(const void* data, std::size_t n) {
    std::size_t past = reinterpret_cast<std::uintptr_t>(data) % kLine;
    if (past == 0 || past % sizeof(Item<T>) != 0 || n * sizeof(Item<T>) < kPeelBytes) return 0;
    return (kLine - past) / sizeof(Item<T>);
}

}  // namespace
}  // namespace MAXOPS_ISA
}  // namespace maxops
