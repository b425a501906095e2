// Wrappers of operating systems: forks, pages, signal masks, thread-local memory.
#pragma once
#include <cstddef>

namespace maxops {

// Has these run around each fork, as pthread_atfork does; null ones do nothing. Without forks, as on
// Windows, none ever runs.
int at_fork(void (*prepare)(), void (*in_parent)(), void (*in_child)());

// Pages of zeros, which begin a huge page where the system lets that be chosen; null if it has none. The size
// is a multiple of huge pages.
void* map_pages(std::size_t size);
void unmap_pages(void* data, std::size_t size);
// The system may take their memory whenever it needs some. What they hold is lost then; writing has them
// again.
void offer_pages(void* data, std::size_t size);

// Threads that begin while one of these lives take no signals, so that Ctrl-C reaches the interpreter's.
class SignalsBlocked {
public:
    SignalsBlocked();
    ~SignalsBlocked();
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

private:
    [[maybe_unused]] alignas(8) char before_[128];  // the mask, as large as any system's
};

// Each thread's own block of memory, freed when it ends. A key, not a thread_local: without memory that
// would end the process.
class ThreadBlock {
public:
    ThreadBlock();
    // The calling thread's, or null.
    void* get() const;
    // Gives it one; false if that cannot be had.
    bool make(std::size_t alignment, std::size_t size) const;

private:
    unsigned long key_ = 0;
    bool is_made_;
};

}  // namespace maxops
