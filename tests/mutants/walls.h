// Working memory whose arrays each end where a page ends, before one that nobody may touch: for the build that has
// the mutants. mutants.py puts Walled where scratch.h declares an array, and walled() where it hands out one of these.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>

namespace maxops_walls {

constexpr std::size_t kPage = 4096;

struct alignas(kPage) Wall {
    char page[kPage];
    Wall() {
        if (mprotect(page, kPage, PROT_NONE) != 0) std::abort();
    }
};

template <class Array>
struct alignas(kPage) Walled {
    static_assert(sizeof(Array) % 8 == 0, "aligned for any element");
    char before[kPage - sizeof(Array) % kPage];
    Array here;
    Wall after;
    operator std::decay_t<Array>() { return here; }
};

// Each thread has its own, of each kind, and keeps it.
template <class Buffers>
Buffers& walled() {
    static thread_local Buffers* const mine = [] {
        void* const there =
            mmap(nullptr, sizeof(Buffers), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (there == MAP_FAILED) std::abort();
        __builtin_memset(there, 0xA5, sizeof(Buffers));  // never zeros by chance
        return new (there) Buffers;
    }();
    return *mine;
}

}  // namespace maxops_walls
