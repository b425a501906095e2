#include "system.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "../core/parameters.h"

#ifdef _WIN32
#include <malloc.h>
#include <windows.h>
#else
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#endif

namespace maxops {

#ifdef _WIN32

int at_fork(void (*)(), void (*)(), void (*)()) {
    return 0;
}

void* map_pages(std::size_t size) {
    return VirtualAlloc(nullptr, size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}
void unmap_pages(void* data, std::size_t) {
    VirtualFree(data, 0, MEM_RELEASE);
}
void offer_pages(void* data, std::size_t size) {
    VirtualAlloc(data, size, MEM_RESET, PAGE_READWRITE);
}

SignalsBlocked::SignalsBlocked() : before_{} {}  // Windows runs each signal handler in a new thread
SignalsBlocked::~SignalsBlocked() {}

static void WINAPI free_block(void* block) {
    _aligned_free(block);
}
ThreadBlock::ThreadBlock() : key_(FlsAlloc(free_block)), is_made_(key_ != FLS_OUT_OF_INDEXES) {}
void* ThreadBlock::get() const {
    return is_made_ ? FlsGetValue(key_) : nullptr;
}
bool ThreadBlock::make(std::size_t alignment, std::size_t size) const {
    void* block = is_made_ ? _aligned_malloc(size, alignment) : nullptr;
    if (block != nullptr && FlsSetValue(key_, block) != 0) return true;
    _aligned_free(block);
    return false;
}

#else

int at_fork(void (*prepare)(), void (*in_parent)(), void (*in_child)()) {
    return pthread_atfork(prepare, in_parent, in_child);
}

void* map_pages(std::size_t size) {
    void* space =
        mmap(nullptr, size + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (space == MAP_FAILED) return nullptr;
    char* start = static_cast<char*>(space);
    const std::size_t head =
        (kHugePageBytes - reinterpret_cast<std::uintptr_t>(start) % kHugePageBytes) % kHugePageBytes;
    if (head > 0) munmap(start, head);
    munmap(start + head + size, kHugePageBytes - head);
#ifdef MADV_HUGEPAGE
    madvise(start + head, size, MADV_HUGEPAGE);
#endif
    return start + head;
}
void unmap_pages(void* data, std::size_t size) {
    munmap(data, size);
}
void offer_pages([[maybe_unused]] void* data, [[maybe_unused]] std::size_t size) {
#ifdef MADV_FREE
    madvise(data, size, MADV_FREE);
#endif
}

SignalsBlocked::SignalsBlocked() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    static_assert(sizeof before <= sizeof before_);
    std::memcpy(before_, &before, sizeof before);
}
SignalsBlocked::~SignalsBlocked() {
    sigset_t before;
    std::memcpy(&before, before_, sizeof before);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadBlock::ThreadBlock() {
    pthread_key_t key{};
    is_made_ = pthread_key_create(&key, std::free) == 0;
    key_ = key;
}
void* ThreadBlock::get() const {
    return is_made_ ? pthread_getspecific(static_cast<pthread_key_t>(key_)) : nullptr;
}
bool ThreadBlock::make(std::size_t alignment, std::size_t size) const {
    void* block = is_made_ ? std::aligned_alloc(alignment, size) : nullptr;
    if (block != nullptr && pthread_setspecific(static_cast<pthread_key_t>(key_), block) == 0) return true;
    std::free(block);
    return false;
}

#endif

}  // namespace maxops
