// Measures the memory bandwidth of the machine with plain loads and stores, as the limit that `maxops bench`
// reports. It deliberately shares no code with the native core that it is compared with.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "bindings/module_slots.h"

namespace {

constexpr std::size_t kLine = 64, kStepBytes = 256 << 10;

// A cache line in vectors of 16 bytes, which every processor of an architecture supports. Memory is far
// slower than these vectors, so wider ones would not help.
typedef std::uint64_t Part __attribute__((vector_size(16)));
struct Line {
    Part parts[kLine / sizeof(Part)] = {};
};

inline void take(Line& sum, const char* from) {
    for (std::size_t k = 0; k < kLine / sizeof(Part); ++k) {
        Part part;
        std::memcpy(&part, from + k * sizeof part, sizeof part);
        sum.parts[k] |= part;
    }
}

inline std::uint64_t fold(const Line& line) {
    const Part all = (line.parts[0] | line.parts[1]) | (line.parts[2] | line.parts[3]);
    return all[0] | all[1];
}

template <bool streaming>
inline void put(char* to, const Line& line) {
    for (std::size_t k = 0; k < kLine / sizeof(Part); ++k) {
        char* place = to + k * sizeof(Part);
#if defined(__x86_64__)
        if (streaming) {
            _mm_stream_si128(reinterpret_cast<__m128i*>(place), reinterpret_cast<__m128i>(line.parts[k]));
            continue;
        }
#endif
        std::memcpy(place, &line.parts[k], sizeof(Part));
    }
}

#if defined(__x86_64__)
constexpr bool kHasStreaming = true;
inline void end_streaming() {
    _mm_sfence();
}
#else
constexpr bool kHasStreaming = false;
inline void end_streaming() {}
#endif

// Reads lines alternately from four parts of the source, with prefetches, because processors prefetch several
// streams better than one. Reads and writes alternate in a constant proportion.
template <bool streaming>
std::uint64_t move_lines(const char* from, std::size_t reads, char* to, std::size_t writes) {
    constexpr std::size_t kPlaces = 4, kAhead = 2048;
    const std::size_t part = reads / kPlaces, each = writes == 0 ? reads : reads / writes,
                      rest = writes == 0 ? 0 : reads % writes;
    Line sum;
    std::size_t read = 0, until = 0, left_over = 0;
    for (std::size_t written = 0; read < reads || written < writes; ++written) {
        until += each;
        if ((left_over += rest) >= writes && writes != 0) {
            left_over -= writes;
            ++until;
        }
        for (; read < until; ++read) {
            const std::size_t place = read < kPlaces * part ? read % kPlaces * part + read / kPlaces : read;
            __builtin_prefetch(from + place * kLine + kAhead);
            take(sum, from + place * kLine);
        }
        if (writes != 0) put<streaming>(to + written * kLine, sum);
    }
    if (streaming) end_streaming();
    return fold(sum);
}

// Reads and writes memory in steps, in a constant proportion. Each step runs on the next free thread.
struct Sweep {
    const char* source;
    std::size_t read;
    char* target;
    std::size_t written;
    bool streaming;
    std::size_t steps;
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> seen{0};

    // The first cache line of a step, if `bytes` bytes are divided into steps.
    std::size_t line_of(std::size_t bytes, std::size_t step) const {
        return static_cast<std::size_t>(static_cast<double>(bytes / kLine) * static_cast<double>(step) /
                                        static_cast<double>(steps));
    }
    void work() {
        auto* move = streaming ? move_lines<true> : move_lines<false>;
        std::uint64_t sum = 0;
        for (std::size_t step; (step = next.fetch_add(1)) < steps;) {
            const std::size_t from = line_of(read, step), to = line_of(written, step);
            sum |= move(source + from * kLine, line_of(read, step + 1) - from, target + to * kLine,
                        line_of(written, step + 1) - to);
        }
        seen |= sum;
    }
};

// Helper threads that sleep between sweeps. Never destroyed, because they may sleep until the process ends. A
// forked child abandons the team: it has none of the threads, and a thread may have held the mutex at the
// fork.
class Team {
public:
    void run(Sweep& sweep, int helpers) {
        std::lock_guard<std::mutex> alone(callers_);
        std::unique_lock<std::mutex> lock(mutex_);
        while (size_ < helpers) {
            std::thread([this, number = size_] { serve(number); }).detach();
            ++size_;
        }
        sweep_ = &sweep;
        wanted_ = helpers;
        busy_ = helpers;
        ++round_;
        lock.unlock();
        wake_.notify_all();
        sweep.work();
        lock.lock();
        done_.wait(lock, [&] { return busy_ == 0; });
    }

private:
    void serve(int number) {
        std::unique_lock<std::mutex> lock(mutex_);
        for (std::uint64_t last = round_ - 1;;) {
            wake_.wait(lock, [&] { return round_ != last; });
            last = round_;
            if (number >= wanted_) continue;
            Sweep* sweep = sweep_;
            lock.unlock();
            sweep->work();
            lock.lock();
            if (--busy_ == 0) done_.notify_one();
        }
    }
    std::mutex callers_, mutex_;
    std::condition_variable wake_, done_;
    Sweep* sweep_ = nullptr;
    std::uint64_t round_ = 1;
    int size_ = 0, wanted_ = 0, busy_ = 0;
};

std::atomic<Team*> shared_team{nullptr};
#ifndef _WIN32
[[maybe_unused]] const int at_forks = pthread_atfork(nullptr, nullptr, [] { shared_team.store(nullptr); });
#endif

Team& team() {
    Team* now = shared_team.load();
    if (now != nullptr) return *now;
    Team* fresh = new Team;
    if (shared_team.compare_exchange_strong(now, fresh)) return *fresh;
    delete fresh;  // it has no threads yet
    return *now;
}

const char kSweepDoc[] =
    "sweep(source, target, streaming, threads)\n--\n\n"
    "Read all of source and write all of target in whole cache lines. Return the bitwise OR of the values "
    "read.";

PyObject* sweep(PyObject*, PyObject* args) {
    Py_buffer source, target;
    int streaming, threads;
    if (!PyArg_ParseTuple(args, "y*w*pi", &source, &target, &streaming, &threads)) return nullptr;
    Sweep call{static_cast<const char*>(source.buf),
               static_cast<std::size_t>(source.len),
               static_cast<char*>(target.buf),
               static_cast<std::size_t>(target.len),
               streaming != 0,
               1};
    PyObject* result = nullptr;
    if (threads < 1 || threads > 1024) {
        PyErr_SetString(PyExc_ValueError, "threads must be between 1 and 1024");
    } else if (reinterpret_cast<std::uintptr_t>(target.buf) % 16 != 0) {
        PyErr_SetString(PyExc_ValueError, "target must be aligned to 16 bytes for streaming stores");
    } else {
        call.steps = (call.read + call.written) / kStepBytes + 1;
        const bool failed = [&] {
            PyThreadState* state = PyEval_SaveThread();
            bool no_threads = false;
            try {
                if (threads > 1)
                    team().run(call, threads - 1);
                else
                    call.work();
            } catch (const std::exception&) {
                no_threads = true;
            }
            PyEval_RestoreThread(state);
            return no_threads;
        }();
        if (failed)
            PyErr_SetString(PyExc_RuntimeError, "the system cannot start more threads");
        else
            result = PyLong_FromUnsignedLongLong(call.seen.load());
    }
    PyBuffer_Release(&source);
    PyBuffer_Release(&target);
    return result;
}

PyMethodDef methods[] = {{"sweep", sweep, METH_VARARGS, kSweepDoc}, {nullptr, nullptr, 0, nullptr}};
int fill_module(PyObject* module) {
    return PyModule_AddIntConstant(module, "has_streaming", kHasStreaming);
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(fill_module)}, MAXOPS_MODULE_SLOTS, {0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "maxops._limits",
                      "Measures the memory bandwidth of the machine.",
                      0,
                      methods,
                      slots,
                      nullptr,
                      nullptr,
                      nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__limits() {
    return PyModuleDef_Init(&module);
}
