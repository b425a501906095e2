#include "cache.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <list>
#include <mutex>
#include <new>
#include <unordered_map>

#include "../bindings/numpy.h"
#include "../core/parameters.h"
#include "system.h"

namespace maxops {
namespace {

// Freed blocks, the latest first. The system may reclaim their pages whenever memory is low, so the cache
// does not take memory from other programs.
class Cache {
public:
    void* take(std::size_t size) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const std::size_t needed = rounded(size);
        auto fits = [&](const Block& block) {
            return block.size >= needed && block.size <= needed + needed / 4;
        };
        auto found = std::find_if(kept_.begin(), kept_.end(), fits);
        if (found != kept_.end()) {
            const Block block = *found;
            used_.emplace(block.data, block.size);
            kept_bytes_ -= block.size;
            kept_.erase(found);
            ++reused_;
            return block.data;
        }
        void* data = map_pages(needed);
        if (data == nullptr && trim_to(0)) data = map_pages(needed);
        if (data == nullptr) return nullptr;
        try {
            used_.emplace(data, needed);
        } catch (const std::bad_alloc&) {
            unmap_pages(data, needed);
            return nullptr;
        }
        ++fresh_;
        return data;
    }

    void give(void* data) {
        const std::lock_guard<std::mutex> lock(mutex_);
        auto found = used_.find(data);
        const Block block{data, found->second};
        used_.erase(found);
        if (block.size > limit_ || !keep(block)) {
            unmap_pages(block.data, block.size);
            return;
        }
        offer_pages(block.data, block.size);
        kept_bytes_ += block.size;
        trim_to(limit_);
    }

    bool empty() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return trim_to(0);
    }

    std::size_t size_of(void* data) {
        const std::lock_guard<std::mutex> lock(mutex_);
        return used_.at(data);
    }

    void set_limit(std::size_t bytes) {
        const std::lock_guard<std::mutex> lock(mutex_);
        limit_ = bytes;
        trim_to(limit_);
    }

    CacheInfo info() {
        const std::lock_guard<std::mutex> lock(mutex_);
        return {limit_, kept_bytes_, kept_.size(), reused_, fresh_};
    }

    std::mutex& mutex() { return mutex_; }

private:
    struct Block {
        void* data;
        std::size_t size;
    };

    bool keep(const Block& block) {
        try {
            kept_.push_front(block);
        } catch (const std::bad_alloc&) {
            return false;
        }
        return true;
    }

    static std::size_t rounded(std::size_t size) {
        return (size + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    }

    // Returns false if the cache is already within this size.
    bool trim_to(std::size_t bytes) {
        const bool has_more = kept_bytes_ > bytes;
        while (kept_bytes_ > bytes) {
            const Block block = kept_.back();
            kept_.pop_back();
            kept_bytes_ -= block.size;
            unmap_pages(block.data, block.size);
        }
        return has_more;
    }

    std::mutex mutex_;
    std::list<Block> kept_;
    std::unordered_map<void*, std::size_t> used_;
    std::size_t limit_ = 0, kept_bytes_ = 0, reused_ = 0, fresh_ = 0;
};

// Never destroyed: arrays may be freed until the process ends.
Cache& cache() {
    static Cache* const shared = new Cache;
    return *shared;
}

// A forked child must not inherit a mutex that another thread held at the fork.
[[maybe_unused]] const int at_forks = at_fork(
    [] { cache().mutex().lock(); }, [] { cache().mutex().unlock(); }, [] { cache().mutex().unlock(); });

// NumPy's C code calls these for the arrays of new_output, so they must not throw.
void* allocate(void*, std::size_t size) {
    try {
        return cache().take(std::max<std::size_t>(size, 1));
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* allocate_zeroed(void*, std::size_t count, std::size_t size) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) return nullptr;
    void* data = allocate(nullptr, bytes);
    if (data != nullptr) std::memset(data, 0, bytes);
    return data;
}
void release(void*, void* data, std::size_t) {
    if (data != nullptr) cache().give(data);
}
void* reallocate(void*, void* data, std::size_t size) {  // for ndarray.resize
    void* moved = allocate(nullptr, size);
    if (moved == nullptr || data == nullptr) return moved;
    std::memcpy(moved, data, std::min(cache().size_of(data), size));
    release(nullptr, data, 0);
    return moved;
}

PyDataMem_Handler handler = {
    "maxops_output_cache", 1, {nullptr, allocate, allocate_zeroed, reallocate, release}};

}  // namespace

PyObject* output_handler() {
    static PyObject* const capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
    return capsule;
}

void set_cache_limit(std::size_t bytes) {
    cache().set_limit(bytes);
}
bool empty_cache() {
    return cache().empty();
}
CacheInfo cache_info() {
    return cache().info();
}

}  // namespace maxops
