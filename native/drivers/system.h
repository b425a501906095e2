// Functions that depend on the operating system: forks, pages, signal masks and thread-local memory.
#pragma once
#include <cstddef>

namespace maxops {

// Registers functions, or null, that run around each fork, like pthread_atfork. On systems without fork, such
// as Windows, they never run.
int at_fork(void (*prepare)(), void (*in_parent)(), void (*in_child)());

// Allocates zeroed pages, aligned to a huge page if the system supports that; null on failure. The size is a
// multiple of the huge page size.
void* map_pages(std::size_t size);
void unmap_pages(void* data, std::size_t size);
// Lets the system reclaim the pages when memory is low. Their content is then lost, and they can be written
// again.
void offer_pages(void* data, std::size_t size);

// Threads that start during the lifetime of this object block all signals, so that the interpreter's thread
// receives Ctrl-C.
class SignalsBlocked {
public:
    SignalsBlocked();
    ~SignalsBlocked();
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    [[maybe_unused]] alignas(8) char before_[128];  // the mask, as large as any system's
};

// A block of memory for each thread, freed when the thread ends. This is a key and not a thread_local, which
// would end the process if allocation fails.
class ThreadBlock {
public:
    ThreadBlock();
    // The block of the calling thread, or null.
    void* get() const;
    // Allocates the block; false on failure.
    bool make(std::size_t alignment, std::size_t size) const;

private:
    unsigned long key_ = 0;
    bool is_made_;
};

}  // namespace maxops
