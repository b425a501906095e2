// The worker pool: the calling thread and idle workers take the tasks of a call one by one.
#pragma once
#include <chrono>
#include <cstddef>

#include "function_ref.h"

namespace maxops {

// The number of threads that a call may use, including the calling thread.
void set_num_threads(int count);
int num_threads();

// Runs task(0) ... task(count - 1) in any order, and returns when all are done. The calling thread calls
// `poll`, if not null, from time to time. After it returns false, no further task starts, and the result is
// false. Tasks must not throw, and this function does not throw: if allocation fails, the calling thread
// works alone. The calling thread and every worker have scratch memory. A child process that is forked inside
// `poll` runs all tasks again; pass no poll for tasks that must not run twice. `is_brief`: all tasks together
// take microseconds. Workers then help only if they responded promptly before.
bool run_tasks(std::size_t count, FunctionRef<void(std::size_t)> task, bool (*poll)(), bool is_brief);

// A poll that runs at most every 50 milliseconds, because it may have to wait for the GIL.
class Polling {
public:
    using Clock = std::chrono::steady_clock;
    explicit Polling(bool (*poll)()) : poll_(poll) {}

    bool is_due() const {
        return poll_ != nullptr && Clock::now() - polled_ >= std::chrono::milliseconds(50);
    }
    // Returns false to stop the call.
    bool goes_on() {
        if (!is_due()) return true;
        const bool goes_on = poll_();
        polled_ = Clock::now();
        return goes_on;
    }

private:
    bool (*const poll_)();
    Clock::time_point polled_ = Clock::now();
};

// The numbers of completed and of all tasks in the most recent call, for a progress bar.
struct Progress {
    std::size_t done;
    std::size_t count;
};
Progress progress();

}  // namespace maxops
