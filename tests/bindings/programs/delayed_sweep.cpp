// A library for a test: the bench's sweep through memory, with stores that become visible only at a fence.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <immintrin.h>

#include <cstring>
#include <vector>

struct Store {
    void* to;
    __m128i value;
};
static thread_local std::vector<Store> pending;
static void delayed_store(__m128i* to, __m128i value) {
    pending.push_back({to, value});
}
static void delayed_fence() {
    for (const Store& store : pending) std::memcpy(store.to, &store.value, sizeof store.value);
    pending.clear();
}
#define _mm_stream_si128 delayed_store
#define _mm_sfence delayed_fence
#include "limits.cpp"

// Returns the number of sweeps that wrote the same as plain stores; 0 if one did not.
extern "C" __attribute__((visibility("default"))) int right_sweeps() {
    int right = 0;
    for (std::size_t reads = 0; reads < 40; ++reads)
        for (std::size_t writes = 0; writes < 40; ++writes) {
            std::vector<char> from(64 * reads + 64 + 4096, 1), streamed(64 * writes + 64),
                plain(64 * writes + 64);
            std::vector<char> to(64 * writes + 64, 7), same(64 * writes + 64, 7);
            const auto first = move_lines<true>(from.data(), reads, to.data(), writes);
            const auto second = move_lines<false>(from.data(), reads, same.data(), writes);
            if (first != second || to != same || !pending.empty()) return 0;
            ++right;
        }
    return right;
}
