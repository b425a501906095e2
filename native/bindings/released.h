// Runs calls without the GIL, and handles Ctrl-C.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <memory>

#include "../api.h"
#include "memory.h"

namespace maxops {

// Returns false after a signal handler raised an exception; the error is then set.
bool poll_signals();

// Whether this is the thread that runs signal handlers and finalizes the interpreter.
bool is_main_thread();

// Finds the thread that runs signal handlers; false with an error set. Called once, on import.
bool find_main_thread();

// Copies the shape and strides of a view to a buffer for 2 * rank values.
inline void own(View* view, std::ptrdiff_t* room) {
    const auto rank = static_cast<std::size_t>(view->rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        room[axis] = view->sizes[axis];
        room[rank + axis] = view->strides[axis];
    }
    view->sizes = room;
    view->strides = room + rank;
}

// The state of a call that releases the GIL: copies of the shapes of its arrays. Assigning to `shape` frees
// NumPy's own copy. Other threads may do so during the call, as may signal handlers in a poll and finalizers
// during an allocation. A call of few bytes ends before another thread could run, so it keeps the GIL and
// uses NumPy's shapes.
class Release {
public:
    explicit Release(std::size_t bytes, std::size_t least = std::min(kKeepsGilBytes, kThreadedBytes))
        : lets_others_run_(bytes >= least) {}
    Release(const Release&) = delete;
    Release& operator=(const Release&) = delete;

    bool lets_others_run() const { return lets_others_run_; }
    // Copies the shapes of all views that the call reads.
    void own(View* views, std::size_t count = 1) {
        for (std::size_t k = 0; lets_others_run_ && k < count; ++k)
            maxops::own(views + k, room_for(views[k].rank));
    }
    // Reserves a buffer for a view that is made later, when nothing may fail. Null if the view may keep
    // NumPy's shape.
    std::ptrdiff_t* room_for(int rank) {
        const std::size_t count = 2 * static_cast<std::size_t>(rank);
        if (!lets_others_run_) return nullptr;
        if (count > left_) add_block(count);
        left_ -= count;
        return (next_ += count) - count;
    }

private:
    struct Block {
        std::unique_ptr<Block> before;
        std::unique_ptr<std::ptrdiff_t[]> room;
    };
    void add_block(std::size_t count);

    const bool lets_others_run_;
    std::ptrdiff_t few_[64];  // for a few arrays of few axes, because nine allocations take 300 ns
    std::ptrdiff_t* next_ = few_;
    std::size_t left_ = sizeof few_ / sizeof *few_;
    std::unique_ptr<Block> blocks_;
};

// Runs work() without the GIL, unless the call keeps the GIL or this part of the call touches few bytes.
// work() must not use objects of Python or NumPy (tests/bindings/test_bindings.py checks it).
template <class Work>
Fault run_released(const Release& release, std::size_t bytes, const Work& work) {
    const bool is_long = release.lets_others_run() && bytes >= kKeepsGilBytes;
    PyThreadState* state = is_long ? PyEval_SaveThread() : nullptr;
    const Fault fault = work();
    if (state != nullptr) PyEval_RestoreThread(state);
    if (fault.kind == Fault::kOutOfMemory) set_out_of_memory();
    return fault;
}

}  // namespace maxops
