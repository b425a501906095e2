// The pool: a call's tasks, taken one by one by the calling thread and idle workers.
#pragma once
#include <chrono>
#include <cstddef>

#include "function_ref.h"

namespace maxops {

// How many threads a call may use, the calling one included.
void set_num_threads(int count);
int num_threads();

// Runs task(0) ... task(count - 1), in any order, and returns when all are done. `poll`, if not null, is
// called by the calling thread from time to time; once it returns false no further task is begun, and the
// result is false. Tasks must not throw, and nothing here does: without memory, the calling thread works
// alone. It has its scratch, and so has every worker. A child that is forked inside `poll` does all tasks
// again: those that cannot be done twice take no poll.
// `is_brief` says that the whole takes microseconds: then others help only while help has been coming
// promptly.
bool run_tasks(std::size_t count, FunctionRef<void(std::size_t)> task, bool (*poll)(), bool is_brief);

// A poll that is asked every 50 milliseconds at most: it may have to wait for the GIL.
class Polling {
public:
    using Clock = std::chrono::steady_clock;
    explicit Polling(bool (*poll)()) : poll_(poll) {}

    bool is_due() const {
        return poll_ != nullptr && Clock::now() - polled_ >= std::chrono::milliseconds(50);
    }
    // False if the call is to be stopped.
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

// Tasks done and to do in the call that began last: for a progress bar.
struct Progress {
    std::size_t done;
    std::size_t count;
};
Progress progress();

}  // namespace maxops
