// The machine's own limit: bytes read and written by nothing but loads and stores, for `maxops bench`.
// Apart from the native core on purpose: what measures it shares no code with it.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#if defined(__x86_64__)
#include <emmintrin.h>
#define MAXOPS_FOR_EACH_WIDTH __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define MAXOPS_FOR_EACH_WIDTH
#endif

namespace {

constexpr std::size_t kLine = 64, kStepBytes = 16 << 10, kStepsEach = 16;

// A cache line as one value; the compiler makes of it what the instruction set has.
typedef std::uint64_t Line __attribute__((vector_size(kLine)));

MAXOPS_FOR_EACH_WIDTH std::uint64_t read_lines(const char* from, std::size_t bytes) {
    Line sums[4] = {};
    std::size_t i = 0;
    for (; i + 4 * kLine <= bytes; i += 4 * kLine) {
        Line lines[4];
        std::memcpy(lines, from + i, sizeof lines);
        for (int k = 0; k < 4; ++k) sums[k] |= lines[k];
    }
    Line sum = (sums[0] | sums[1]) | (sums[2] | sums[3]);
    for (; i + kLine <= bytes; i += kLine) {
        Line line;
        std::memcpy(&line, from + i, kLine);
        sum |= line;
    }
    return sum[0] | sum[1] | sum[2] | sum[3] | sum[4] | sum[5] | sum[6] | sum[7];
}

MAXOPS_FOR_EACH_WIDTH void write_lines(char* to, std::size_t bytes, std::uint64_t value) {
    Line line = {value, ~value, value, ~value, value, ~value, value, ~value};  // no pattern that is a memset
    for (std::size_t i = 0; i + kLine <= bytes; i += kLine) std::memcpy(to + i, &line, kLine);
}

#if defined(__x86_64__)
constexpr bool kHasStreaming = true;
void stream_lines(char* to, std::size_t bytes, std::uint64_t value) {
    const __m128i part = _mm_set1_epi64x(static_cast<long long>(value));
    for (std::size_t i = 0; i + kLine <= bytes; i += kLine) {
        auto* line = reinterpret_cast<__m128i*>(to + i);
        for (int k = 0; k < 4; ++k) _mm_stream_si128(line + k, part);
    }
    _mm_sfence();
}
#else
constexpr bool kHasStreaming = false;
void stream_lines(char* to, std::size_t bytes, std::uint64_t value) {
    write_lines(to, bytes, value);
}
#endif

// Reads and writes step by step in one proportion, the steps taken by whichever thread is free.
struct Sweep {
    const char* source;
    std::size_t read;
    char* target;
    std::size_t written;
    bool streaming;
    std::size_t steps;
    std::atomic<std::size_t> next{0};
    std::atomic<std::uint64_t> seen{0};

    static std::size_t cut(std::size_t bytes, std::size_t step, std::size_t steps) {
        return static_cast<std::size_t>(static_cast<double>(bytes) * static_cast<double>(step) /
                                        static_cast<double>(steps)) /
               kLine * kLine;
    }
    void work() {
        std::uint64_t sum = 0;
        for (std::size_t first; (first = next.fetch_add(kStepsEach)) < steps;) {
            for (std::size_t step = first; step < std::min(first + kStepsEach, steps); ++step) {
                std::size_t from = cut(read, step, steps), to = cut(written, step, steps);
                sum |= read_lines(source + from, cut(read, step + 1, steps) - from);
                auto* write = streaming ? stream_lines : write_lines;
                write(target + to, cut(written, step + 1, steps) - to, sum);
            }
        }
        seen |= sum;
    }
};

// Helpers that sleep between sweeps. Never destroyed: they may sleep until the process ends.
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

const char kSweepDoc[] =
    "sweep(source, target, streaming, threads)\n--\n\n"
    "Read all of source and write all of target, whole cache lines of each. Returns what was read, or'ed "
    "together.";

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
        PyErr_SetString(PyExc_ValueError, "threads: 1 to 1024");
    } else if (reinterpret_cast<std::uintptr_t>(target.buf) % 16 != 0) {
        PyErr_SetString(PyExc_ValueError, "target: not aligned to 16 bytes, as streaming stores need it");
    } else {
        call.steps = (call.read + call.written) / kStepBytes + 1;
        const bool failed = [&] {
            static Team* team = new Team;
            PyThreadState* state = PyEval_SaveThread();
            bool no_threads = false;
            try {
                if (threads > 1)
                    team->run(call, threads - 1);
                else
                    call.work();
            } catch (const std::system_error&) {
                no_threads = true;
            }
            PyEval_RestoreThread(state);
            return no_threads;
        }();
        if (failed)
            PyErr_SetString(PyExc_RuntimeError, "the system gives no more threads");
        else
            result = PyLong_FromUnsignedLongLong(call.seen.load());
    }
    PyBuffer_Release(&source);
    PyBuffer_Release(&target);
    return result;
}

PyMethodDef methods[] = {{"sweep", sweep, METH_VARARGS, kSweepDoc}, {nullptr, nullptr, 0, nullptr}};
PyModuleDef module = {PyModuleDef_HEAD_INIT,
                      "maxops._limits",
                      "The machine's memory limit.",
                      -1,
                      methods,
                      nullptr,
                      nullptr,
                      nullptr,
                      nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__limits() {
    PyObject* result = PyModule_Create(&module);
    if (result != nullptr && PyModule_AddIntConstant(result, "has_streaming", kHasStreaming) < 0)
        Py_CLEAR(result);
    return result;
}
