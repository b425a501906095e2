#include "scratch.h"

#include <pthread.h>

#include <cstdlib>
#include <exception>

namespace maxops {
namespace {

// A key, not a thread_local: where memory ends, that ends the process.
class Key {
public:
    Key() : is_made_(pthread_key_create(&key_, std::free) == 0) {}

    void* get() const { return is_made_ ? pthread_getspecific(key_) : nullptr; }
    bool set(void* memory) const { return is_made_ && pthread_setspecific(key_, memory) == 0; }

private:
    pthread_key_t key_{};
    const bool is_made_;
};
const Key key;

}  // namespace

bool reserve_scratch() {
    if (key.get() != nullptr) return true;
    void* memory = std::aligned_alloc(kScratchAlignment, kScratchBytes);
    if (memory == nullptr) return false;
    // A thread's first exception allocates too, and where that fails the process ends: now there is memory.
    if (std::uncaught_exceptions() >= 0 && key.set(memory)) return true;
    std::free(memory);
    return false;
}

char* scratch_bytes() {
    return static_cast<char*>(key.get());
}

}  // namespace maxops
