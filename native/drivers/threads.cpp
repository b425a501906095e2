#include "threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "scratch.h"
#include "system.h"

namespace maxops {
namespace {

std::atomic<int> thread_limit{1};
std::atomic<std::size_t> tasks_done{0}, tasks_begun{0};

struct Job {
    const FunctionRef<void(std::size_t)> task;
    const std::size_t count;
    const int most_helpers;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stopped{false};
    std::atomic<int> helpers{0};  // changed only while the pool's mutex is held
    std::atomic<bool> was_helped{false};
    Job* after = nullptr;  // the next in the pool's list

    bool step() {
        if (stopped.load(std::memory_order_relaxed)) return false;
        std::size_t index = next.fetch_add(1, std::memory_order_relaxed);
        if (index >= count) return false;
        task(index);
        tasks_done.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    bool has_work() const {
        return !stopped.load(std::memory_order_relaxed) && next.load(std::memory_order_relaxed) < count;
    }
};

// Spins for about 20 microseconds, which costs less than sleeping and waking up.
template <class Done>
bool spin_until(const Done& done) {
    constexpr int kTurns = 1000;
    for (int turn = 0; turn < kTurns; ++turn) {
        if (done()) return true;
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#else
        std::this_thread::yield();
#endif
    }
    return done();
}

class Pool {
public:
    // Any number of callers may call this at once, each with its own job.
    void help(Job& job) {
        std::unique_lock<std::mutex> lock(mutex_);
        *link_to(nullptr) = &job;
        posted_.fetch_add(1);
        add_workers(job.most_helpers);
        const int asleep = asleep_;
        lock.unlock();
        if (asleep == 0) return;
        if (job.most_helpers == 1)
            wake_.notify_one();
        else
            wake_.notify_all();
    }
    // After this returns, no worker touches the job.
    void leave(Job& job) {
        std::unique_lock<std::mutex> lock(mutex_);
        *link_to(&job) = job.after;
        lock.unlock();
        auto is_alone = [&] { return job.helpers.load() == 0; };
        if (spin_until(is_alone)) return;
        lock.lock();
        idle_.wait(lock, is_alone);
    }

    // Surplus workers end, because a post might wake them instead of the needed ones.
    void dismiss() {
        const std::lock_guard<std::mutex> lock(mutex_);
        wake_.notify_all();
    }

private:
    void add_workers(int count) {
        while (workers_ < count) {
            const SignalsBlocked blocked;
            try {
                std::thread([this] { work(); }).detach();
                ++workers_;
            } catch (const std::exception&) {
                count = workers_;  // no more threads are available: the existing ones do the work
            }
        }
    }
    Job* find_job() {
        Job* job = first_;
        while (job != nullptr && !(job->helpers.load() < job->most_helpers && job->has_work()))
            job = job->after;
        return job;
    }
    // The link that points to a job in the list; for null, the link at the end.
    Job** link_to(Job* job) {
        Job** link = &first_;
        while (*link != job) link = &(*link)->after;
        return link;
    }
    // Returns the next job, or null if there are too many workers. The mutex is held before and after.
    Job* wait_for_job(std::unique_lock<std::mutex>& lock) {
        Job* job = find_job();
        // Limits the number of spinning workers to the number of CPUs besides the caller's. Any worker may
        // spin, because the system chooses which one a post wakes.
        if (job == nullptr && spinning_ < most_spinning_) {
            const std::uint64_t seen = posted_.load();
            ++spinning_;
            lock.unlock();
            spin_until([&] { return posted_.load(std::memory_order_relaxed) != seen; });
            lock.lock();
            --spinning_;
            job = find_job();
        }
        ++asleep_;
        while (job == nullptr && workers_ < num_threads()) {
            wake_.wait(lock);
            job = find_job();
        }
        --asleep_;
        return job;
    }
    void work() {
        const bool can_work = reserve_scratch();
        std::unique_lock<std::mutex> lock(mutex_);
        while (true) {
            Job* job = can_work ? wait_for_job(lock) : nullptr;
            if (job == nullptr) {
                --workers_;
                return;
            }
            job->helpers.fetch_add(1);
            lock.unlock();
            if (job->step()) job->was_helped.store(true, std::memory_order_relaxed);
            while (job->step()) {
            }
            lock.lock();
            if (job->helpers.fetch_sub(1) == 1) idle_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable wake_, idle_;
    Job* first_ = nullptr;                  // the oldest job
    std::atomic<std::uint64_t> posted_{0};  // jobs posted so far
    int workers_ = 0, asleep_ = 0, spinning_ = 0;
    const int most_spinning_ = static_cast<int>(std::thread::hardware_concurrency()) - 1;  // reads a file
};

// Never destroyed, because workers may run until the process ends. A forked child abandons it: the child has
// none of the workers, and a thread may have held the mutex at the fork.
std::atomic<Pool*> shared_pool{nullptr};

[[maybe_unused]] const int at_forks = at_fork(nullptr, nullptr, [] { shared_pool.store(nullptr); });

// Null if out of memory.
Pool* pool() {
    Pool* now = shared_pool.load();
    if (now == nullptr) {
        Pool* fresh = new (std::nothrow) Pool;
        if (fresh == nullptr) return nullptr;
        if (shared_pool.compare_exchange_strong(now, fresh))
            now = fresh;
        else
            delete fresh;  // it has no workers yet
    }
    return now;
}

}  // namespace

void set_num_threads(int count) {
    const int before = thread_limit.exchange(count);
    if (Pool* now = shared_pool.load(); now != nullptr && count < before) now->dismiss();
}
int num_threads() {
    return thread_limit.load();
}
Progress progress() {
    return {tasks_done.load(), tasks_begun.load()};
}

namespace {

// The participation of the pool in a job. The destructor ends it, even if the interpreter is ending and
// unwinds the calling thread inside `poll`.
class Help {
public:
    Help(Pool* pool, Job& job) : pool_(pool), job_(job) {
        if (pool_ != nullptr) pool_->help(job_);
    }
    ~Help() {
        if (pool_ == nullptr || was_forked()) return;
        job_.stopped.store(job_.stopped.load() || job_.has_work());
        pool_->leave(job_);
    }
    Help(const Help&) = delete;
    Help& operator=(const Help&) = delete;

    // Whether this is a child process that a signal handler forked inside `poll`. It has none of the helpers.
    bool was_forked() const { return pool_ != nullptr && shared_pool.load() != pool_; }

private:
    Pool* const pool_;
    Job& job_;
};

}  // namespace

namespace {

using Clock = std::chrono::steady_clock;

// On a busy machine, a helper comes too late for a call of microseconds, or is preempted in the middle of a
// task, and the call waits for it. If that continues for longer than a worker needs to wake up, brief calls
// run without help for a while, twice as long each time (exponential backoff).
class Backoff {
public:
    bool is_waiting() const { return ticks(Clock::now()) < alone_until_.load(std::memory_order_relaxed); }

    void learn(bool was_helped, Clock::duration waited) {
        constexpr auto kPrompt = std::chrono::microseconds(50), kWaking = std::chrono::microseconds(500);
        constexpr auto kFirst = std::chrono::milliseconds(10);
        constexpr int kMostDoublings = 7;
        if (was_helped && waited < kPrompt) {
            failing_since_.store(0, std::memory_order_relaxed);
            doublings_.store(0, std::memory_order_relaxed);
            return;
        }
        const auto now = Clock::now();
        const Clock::rep since = failing_since_.load(std::memory_order_relaxed);
        if (since == 0) {
            failing_since_.store(ticks(now), std::memory_order_relaxed);
        } else if (ticks(now) - since > Clock::duration(kWaking).count()) {
            const int doublings = doublings_.load(std::memory_order_relaxed);
            alone_until_.store(ticks(now + kFirst * (1 << doublings)), std::memory_order_relaxed);
            doublings_.store(std::min(doublings + 1, kMostDoublings), std::memory_order_relaxed);
            failing_since_.store(0, std::memory_order_relaxed);
        }
    }

private:
    static Clock::rep ticks(Clock::time_point time) { return time.time_since_epoch().count(); }

    std::atomic<Clock::rep> alone_until_{0}, failing_since_{0};
    std::atomic<int> doublings_{0};
};
Backoff backoff;

}  // namespace

bool run_tasks(std::size_t count, FunctionRef<void(std::size_t)> task, bool (*poll)(), bool is_brief) {
    auto most = static_cast<int>(
        std::min<std::size_t>(static_cast<std::size_t>(num_threads()), std::max<std::size_t>(count, 1)));
    if (is_brief && backoff.is_waiting()) most = 1;
    Job job{task, count, most - 1};
    tasks_done.store(0);
    tasks_begun.store(count);
    Clock::time_point done;
    {
        const Help help(most > 1 ? pool() : nullptr, job);
        Polling polling(poll);
        while (job.step()) {
            if (!polling.is_due()) continue;
            const bool goes_on = polling.goes_on();
            if (help.was_forked()) {
                // The child does not know which tasks the helpers had completed. All tasks may run twice,
                // because a maximum is idempotent.
                for (std::size_t index = 0; goes_on && index < count; ++index) task(index);
                return goes_on;
            }
            if (!goes_on) job.stopped.store(true);
        }
        done = Clock::now();
    }
    if (is_brief && most > 1) backoff.learn(job.was_helped.load(), Clock::now() - done);
    return !job.stopped.load();
}

}  // namespace maxops
