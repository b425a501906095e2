// Concurrent calls, for ThreadSanitizer (`make races`): they use the pool, the output cache, each thread's
// scratch and the settings as Python's free threads would. The program has no interpreter, so no GIL hides a
// race. Every result is compared with that of a plain loop. Prints the number of comparisons.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "../api.h"
#include "../drivers/cache.h"
#include "../bindings/numpy.h"
#include "../drivers/scratch.h"
#include "../drivers/threads.h"

// The only part of Python that the cache uses. Here, a capsule is the pointer that it would contain.
extern "C" PyObject* PyCapsule_New(void* held, const char*, void (*)(PyObject*)) {
    return static_cast<PyObject*>(held);
}

namespace {

using namespace maxops;

constexpr int kRounds = 40, kCallers = 4, kCallsEach = 60;
std::atomic<long> compared{0};
std::atomic<bool> is_over{false};

void require(bool holds, const char* what) {
    if (holds) {
        ++compared;
        return;
    }
    std::printf("wrong: %s\n", what);
    std::exit(1);
}

bool go_on() {
    return true;
}

// A contiguous array of int64 that owns its memory.
struct Array {
    std::vector<std::int64_t> values;
    std::ptrdiff_t sizes[2], strides[2];
    View view;

    Array(std::size_t rows, std::size_t columns) : values(rows * columns) {
        sizes[0] = static_cast<std::ptrdiff_t>(rows);
        sizes[1] = static_cast<std::ptrdiff_t>(columns);
        strides[1] = sizeof(std::int64_t);
        strides[0] = sizes[1] * strides[1];
        view = {reinterpret_cast<char*>(values.data()), sizes, strides, 2,
                static_cast<int>(Type::int64_),         false, true};
    }
    Array(const Array&) = delete;
    Array& operator=(const Array&) = delete;
};

void call_maximum(std::mt19937& random, std::size_t rows, std::size_t columns) {
    Array a(rows, columns), b(rows, columns), out(rows, columns);
    std::vector<std::int64_t> right(rows * columns);
    for (std::size_t i = 0; i < right.size(); ++i) {
        a.values[i] = static_cast<int>(random());
        b.values[i] = static_cast<int>(random());
        right[i] = std::max(a.values[i], b.values[i]);
    }
    const View inputs[] = {a.view, b.view};
    Maximum call(inputs, 2);
    const bool is_done = !plan_maximum(Broadcasting::kNumpy, &call) && !maximum(go_on, call, out.view, false);
    require(is_done && out.values == right, "Max");
}

void call_reduce_max(std::mt19937& random, std::size_t rows, std::size_t columns) {
    Array data(rows, columns), out(rows, 1), places(rows, 1);
    std::vector<std::int64_t> right, first;
    for (auto& value : data.values) value = static_cast<int>(random() % 1000);
    for (auto row = data.values.begin(); row != data.values.end(); row += data.sizes[1]) {
        const auto found = std::max_element(row, row + data.sizes[1]);
        right.push_back(*found);
        first.push_back(found - row);
    }
    Reduction call;
    call.data = data.view;
    const std::int64_t axis = 1;
    const bool is_done = !mark_axes(&axis, 1, true, &call) && !reduce_max(go_on, call, out.view) &&
                         !argmax(go_on, call, out.view, places.view);
    require(is_done && out.values == right && places.values == first, "ReduceMax");
}

void call_segment_max(std::mt19937& random, std::size_t rows, std::size_t columns, bool is_sorted) {
    const std::size_t segments = rows / 3 + 1;
    Array data(rows, columns), ids(1, rows), out(segments, columns);
    std::vector<std::int64_t> right(segments * columns, -1);
    for (auto& value : data.values) value = static_cast<int>(random() % 1000);
    for (auto& id : ids.values) id = static_cast<std::int64_t>(random() % segments);
    if (is_sorted) std::sort(ids.values.begin(), ids.values.end());
    for (std::size_t i = 0; i < data.values.size(); ++i) {
        auto& most = right[static_cast<std::size_t>(ids.values[i / columns]) * columns + i % columns];
        most = std::max(most, data.values[i]);
    }
    Segmentation call;
    call.data = data.view;
    call.indices = ids.view;
    call.indices.sizes = ids.sizes + 1;
    call.indices.strides = ids.strides + 1;
    call.indices.rank = 1;
    call.is_sorted = is_sorted;
    call.rejects_past = true;
    call.num_segments = static_cast<std::int64_t>(segments);
    call.fill = ~std::uint64_t{0};
    const bool is_done = !plan_segments(go_on, &call, true) && !segment_max(go_on, call, out.view);
    require(is_done && out.values == right, is_sorted ? "SegmentMax" : "SegmentMax, ids in any order");
}

void call_operators(unsigned seed) {
    require(reserve_scratch(), "scratch memory of a thread");
    std::mt19937 random(seed);
    for (int i = 0; i < kCallsEach; ++i) {
        const std::size_t rows = 1 + random() % 40, columns = 1 + random() % 8;
        call_maximum(random, rows, columns);
        call_reduce_max(random, rows, columns);
        call_segment_max(random, rows, columns, true);
        call_segment_max(random, rows, columns, false);
    }
}

// Allocates and frees memory as NumPy does for arrays of maxops.
void use_cache(unsigned seed) {
    const auto& allocator = reinterpret_cast<PyDataMem_Handler*>(output_handler())->allocator;
    std::mt19937 random(seed);
    const auto is_all = [](const char* data, std::size_t size, char with) {
        return std::all_of(data, data + size, [&](char byte) { return byte == with; });
    };
    for (int i = 0; i < kCallsEach; ++i) {
        const std::size_t size = 1 + random() % 20000, other = 1 + random() % 20000;
        const char with = static_cast<char>(seed + static_cast<unsigned>(i));
        auto* data = static_cast<char*>(i % 2 == 0 ? allocator.malloc(allocator.ctx, size)
                                                   : allocator.calloc(allocator.ctx, 1, size));
        require(data != nullptr && (i % 2 == 0 || is_all(data, size, 0)), "memory of the cache");
        std::memset(data, with, size);
        data = static_cast<char*>(allocator.realloc(allocator.ctx, data, other));
        require(data != nullptr && is_all(data, std::min(size, other), with), "reallocated memory");
        allocator.free(allocator.ctx, data, other);
    }
}

void change_settings() {
    for (unsigned turn = 0; !is_over.load(); ++turn) {
        set_num_threads(1 + static_cast<int>(turn % 5));
        set_cache_limit(turn % 3 * 20000);
        for (const InstructionSet* set = instruction_sets(); set->name != nullptr; ++set)
            if (set->runs_here()) require(use(set->name), "an instruction set");
        require(progress().count < 1000000 && cache_info().kept <= 40000,
                "progress of calls and size of the cache");
        std::this_thread::yield();
    }
}

}  // namespace

int main() {
    std::thread settings(change_settings);
    for (unsigned round = 0; round < kRounds; ++round) {  // each round starts and ends threads
        std::vector<std::thread> threads;
        for (unsigned caller = 0; caller < kCallers; ++caller) {
            threads.emplace_back(call_operators, round * kCallers + caller);
            threads.emplace_back(use_cache, round * kCallers + caller);
        }
        for (std::thread& thread : threads) thread.join();
    }
    is_over.store(true);
    settings.join();
    std::printf("%ld results of concurrent calls are correct\n", compared.load());
    return 0;
}
