// Memory that ends where a page ends, before one that nobody may touch: for the build that has the mutants, whose core
// would otherwise read and write past what it allocated without a trace. To be included in one source.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

namespace maxops_guarded {
namespace {

constexpr std::size_t kPage = 4096;
struct Block {
    void* given;
    char* first;
    std::size_t bytes;
};
// Few live at a time; where more do, they are ordinary memory.
Block blocks[256];
std::mutex mutex;

void* allocate(std::size_t size) {
    const std::size_t whole = (size + kPage - 1) / kPage * kPage;
    const std::lock_guard lock(mutex);
    for (Block& block : blocks) {
        if (block.given != nullptr) continue;
        void* const there = mmap(nullptr, whole + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (there == MAP_FAILED) return nullptr;
        char* const first = static_cast<char*>(there);
        if (mprotect(first + whole, kPage, PROT_NONE) != 0) return nullptr;
        __builtin_memset(first, 0xA5, whole);  // never zeros by chance
        // What is a multiple of eight bytes ends right there; ordinary memory would be aligned to 16.
        block = {first + (whole - size) / 8 * 8, first, whole + kPage};
        return block.given;
    }
    return std::malloc(size);
}

void release(void* memory) {
    const std::lock_guard lock(mutex);
    for (Block& block : blocks) {
        if (block.given != memory || memory == nullptr) continue;
        munmap(block.first, block.bytes);
        block.given = nullptr;
        return;
    }
    std::free(memory);  // of a library that does not have this operator new
}

}  // namespace
}  // namespace maxops_guarded

void* operator new(std::size_t size) {
    if (void* memory = maxops_guarded::allocate(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return maxops_guarded::allocate(size == 0 ? 1 : size);
}
void* operator new[](std::size_t size) {  // the library's own calls the library's own operator new
    return operator new(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& none) noexcept {
    return operator new(size, none);
}
void operator delete(void* memory) noexcept {
    maxops_guarded::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    maxops_guarded::release(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    maxops_guarded::release(memory);
}
void operator delete[](void* memory) noexcept {
    maxops_guarded::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    maxops_guarded::release(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    maxops_guarded::release(memory);
}
