"""The thread pool: equal bits for any number of threads of Python and of maxops, forks, Ctrl-C, and the GIL.

Some tests run in a separate process. Their timeouts are not measurements: they end a process that hangs.
"""

from __future__ import annotations

import functools
import itertools
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import maxops as mo
from helpers import programs
from helpers.bits import Array, assert_same_bits, fast_maximum, fast_reduce_max, fast_segment_max, mixed
from maxops import _native
from maxops.dtypes import FLOAT16, FLOAT32, INT64
from maxops.errors import ConfigurationError

PRELUDE = """
import os, signal, sys, threading, warnings
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
import maxops as mo
mo.set_num_threads(4)
big = np.arange(1_200_000, dtype=np.int32)
ids = np.arange(1_200_000) // 1000
def right():
    assert (mo.maximum(big, big[::-1]) == np.maximum(big, big[::-1])).all()
    assert mo.reduce_max(big).tolist() == [1_199_999]
    assert (mo.segment_max(big, ids, fill_mode="ZERO") == np.arange(999, 1_200_000, 1000)).all()
"""


def run(code: str) -> str:
    """Run code after the prelude, with warnings as errors."""
    return programs.run(PRELUDE + code, warnings="error")


# ---------------------------------------------------------------------------------------- numbers of threads


@functools.cache
def _calls() -> list[tuple[Callable[[], Array], Array]]:
    """Return calls above the threshold for threads, each with the result of the oracle."""
    a, b = mixed(FLOAT32, 700_000, 1, nans=1e-4), mixed(FLOAT32, 700_000, 2, nans=1e-4)
    table, halves = mixed(INT64, (1000, 700), 3), mixed(FLOAT16, (200_000, 13), 4, nans=1e-5)
    ids = np.sort(np.random.default_rng(5).integers(0, 5000, 200_000))
    return [
        (lambda: mo.maximum(a, b), fast_maximum(a, b)),
        (lambda: mo.maximum(a, b, a[::-1]), fast_maximum(a, b, a[::-1])),
        (lambda: mo.maximum(table, table.T[:1, :1]), fast_maximum(table, table[:1, :1])),
        (lambda: mo.reduce_max(table), fast_reduce_max(table)),
        (lambda: mo.reduce_max(table, (0,)), fast_reduce_max(table, (0,))),
        (lambda: mo.reduce_max(table, (1,)), fast_reduce_max(table, (1,))),
        (lambda: mo.segment_max(halves, ids, 5000, fill_mode="LOWEST"), fast_segment_max(halves, ids, 5000, "LOWEST")),
        (lambda: mo.maximum(a[:10], b[:10]), fast_maximum(a[:10], b[:10])),
        (lambda: mo.reduce_max(table[:3]), fast_reduce_max(table[:3])),
    ]


@pytest.mark.usefixtures("isa", "threads")
def test_the_same_bits_from_any_number_of_threads() -> None:
    for call, expected in _calls():
        for _ in range(3):
            assert_same_bits(call(), expected)


@pytest.mark.usefixtures("threads")
def test_many_python_threads_at_once() -> None:
    calls = _calls() * 10
    with ThreadPoolExecutor(8) as pool:
        for result, (_, expected) in zip(pool.map(lambda each: each[0](), calls), calls, strict=True):
            assert_same_bits(result, expected)


def test_the_number_of_threads_may_change_during_calls() -> None:
    calls = _calls()
    with mo.num_threads(1), ThreadPoolExecutor(4) as pool:
        running = [pool.submit(call) for _ in range(6) for call, _ in calls]
        for count in list(range(1, 9)) * 20:
            mo.set_num_threads(count)
        for number, future in enumerate(running):
            assert_same_bits(future.result(), calls[number % len(calls)][1])


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux lists them")
def test_one_thread_starts_no_other() -> None:
    assert run("mo.set_num_threads(1); right(); print(len(os.listdir('/proc/self/task')))") == "1\n"
    assert int(run("right(); print(len(os.listdir('/proc/self/task')))")) > 1


def test_more_threads_than_work() -> None:
    with mo.num_threads(1024):
        for call, expected in _calls():
            assert_same_bits(call(), expected)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads as Linux lists them")
def test_workers_that_are_too_many_end() -> None:
    """Test that surplus workers end, because a post might wake them instead of the needed ones."""
    code = """
import time
def workers():
    return len(os.listdir("/proc/self/task")) - alone
alone = len(os.listdir("/proc/self/task"))
for count in (6, 2, 5, 1, 3):
    mo.set_num_threads(count)
    expected = count - 1
    for _ in range(1000):
        right()
        if workers() == expected:
            break
        time.sleep(0.01)
    assert workers() == expected, (workers(), expected)
"""
    run(code)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads masks of signals as Linux lists them")
def test_workers_take_no_signals() -> None:
    """Test that workers block all signals, and that the masks of the program's threads are unchanged."""
    code = """
def blocked(task):
    with open(f"/proc/self/task/{task}/status") as file:
        mask = next(int(line.split()[1], 16) for line in file if line.startswith("SigBlk"))
    return {number for number in signal.valid_signals() if mask >> number - 1 & 1}
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
before = set(os.listdir("/proc/self/task"))
right()
workers = set(os.listdir("/proc/self/task")) - before
assert workers
for worker in workers:
    missing = signal.valid_signals() - blocked(worker)
    assert missing == {signal.SIGKILL, signal.SIGSTOP}, missing
assert blocked(os.getpid()) == {signal.SIGUSR1}
"""
    run(code)


@pytest.mark.parametrize("count", [0, -1, 1025, 2**40, True, 1.0, "2", None, np.int64(2)], ids=repr)
def test_wrong_numbers_of_threads(count: int) -> None:
    before = mo.get_num_threads()
    with pytest.raises(ConfigurationError, match=r"the number of threads must be an integer from 1 to 1024, got "):
        mo.set_num_threads(count)
    assert mo.get_num_threads() == before


# ------------------------------------------------------------------------------------------------------- fork

# Python 3.12 and later warn about any fork of a process with threads; the test shows that this one is safe.
FORK = """
warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
def child_is_well(work=right):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        try:
            work()
        except BaseException as error:
            os.write(2, repr(error).encode())
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


def test_use_after_fork() -> None:
    """Test forks before the first call, after it, and in a child process."""
    code = """
assert child_is_well()
right()
assert child_is_well()
assert child_is_well(lambda: (right(), child_is_well() or os._exit(2)))
right()
assert mo.get_num_threads() == 4
print("done")
"""
    assert run(FORK + code) == "done\n"


def test_fork_while_other_threads_call() -> None:
    """Test that calls work in a child process even if a thread of the parent held the pool's lock at the fork."""
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        right()
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers:
    worker.start()
well = [child_is_well() for _ in range(10)]
stop.set()
for worker in workers:
    worker.join()
assert all(well), well
print("done")
"""
    assert run(FORK + code) == "done\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method: str) -> None:
    code = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
if __name__ == "__main__":
    right()
    with ProcessPoolExecutor(2, mp_context=get_context(METHOD)) as pool:
        halves = [big[:600_000], big[600_000:]]
        print(sum(int(each[0]) for each in pool.map(mo.reduce_max, halves)))
"""
    assert run(FORK + code.replace("METHOD", repr(method))) == f"{599_999 + 1_199_999}\n"


# ----------------------------------------------------------------------------------------------------- Ctrl-C

LONG_CALLS = {
    "maximum": "mo.maximum(*[np.zeros(20_000_000, np.int8)] * 30_000)",
    "maximum_of_strided": "mo.maximum(*[np.zeros((2000, 4000), np.int16).T] * 30_000)",
    "reduce_max": "mo.reduce_max(sliding_window_view(np.zeros(3_000_000), 1_000_000), (1,))",
    "reduce_max_of_columns": "mo.reduce_max(sliding_window_view(np.zeros(3_000_000), 1_000_000).T, (0,))",
    "reduce_max_to_one": "mo.reduce_max(sliding_window_view(np.zeros(300_000), 100_000)[:, ::3])",
    "segment_max_of_narrow_rows": (
        "mo.segment_max(sliding_window_view(np.zeros(60_000_000, np.int8), 20_000)[:50_000_000],"
        " np.broadcast_to(np.int32(0), 50_000_000), fill_mode='ZERO')"
    ),
    "segment_max_of_wide_rows": (
        "mo.segment_max(sliding_window_view(np.zeros(400_000), 200_000)[:200_000],"
        " np.broadcast_to(np.int64(0), 200_000), fill_mode='ZERO')"
    ),
}


@pytest.mark.parametrize("threads_count", [1, 4])
def test_ctrl_c_ends_a_long_call_and_leaves_a_usable_process(threads_count: int) -> None:
    """Test that a signal ends calls that would take many more seconds."""
    code = f"""
mo.set_num_threads({threads_count})
from maxops import _native
calls = {{
    {", ".join(f"{name!r}: lambda: {call}" for name, call in LONG_CALLS.items())}
}}
for name, call in calls.items():
    before = _native.progress()
    def press():
        while _native.progress() == before or _native.progress()[0] == 0:
            threading.Event().wait(0.01)
        print(name, "is pressed")
        os.kill(os.getpid(), signal.SIGINT)
    thread = threading.Thread(target=press)
    thread.start()
    try:
        call()
    except KeyboardInterrupt:
        print("and ends")
    thread.join()
    for _ in range(3):
        right()
"""
    assert run(code).splitlines() == [line for name in LONG_CALLS for line in (f"{name} is pressed", "and ends")]


def test_ctrl_c_ends_a_long_call_in_a_forked_child() -> None:
    """Test children of the main thread, of another thread, and of a child of another thread.

    In a child process, the thread that forked is Python's main thread.
    """
    code = f"""
warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)
from maxops import _native
right()
def child():
    signal.alarm(60)
    before = _native.progress()[1]
    def press():
        while _native.progress()[1] == before or _native.progress()[0] == 0:
            threading.Event().wait(0.01)
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=press, daemon=True).start()
    try:
        {LONG_CALLS["reduce_max"]}
    except KeyboardInterrupt:
        right()
        return 7
    return 1
def in_child(work):
    pid = os.fork()
    if pid == 0:
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
def in_thread(work):
    codes = []
    thread = threading.Thread(target=lambda: codes.append(in_child(work)))
    thread.start()
    thread.join()
    return codes[0]
print(in_child(child), in_thread(child), in_thread(lambda: in_thread(child)))
"""
    assert run(code) == "7 7 7\n"


def test_ctrl_c_that_the_program_handles_lets_the_call_finish() -> None:
    code = """
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
data = sliding_window_view(np.arange(50_000, dtype=np.int32), 20_000)
thread = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
thread.start()
result = mo.reduce_max(data, (1,), False)
thread.join()
assert (result == np.arange(19_999, 50_000)).all()
print(len(seen))
"""
    assert run(code) == "1\n"


def test_a_signal_handler_may_fork_during_a_call() -> None:
    """Test that both processes finish the call: the child has none of its parent's workers."""
    code = """
children = []
signal.signal(signal.SIGALRM, lambda number, frame: children.append(os.fork()))
data = sliding_window_view(np.arange(80_000, dtype=np.int32), 30_000)
signal.setitimer(signal.ITIMER_REAL, 0.01)
while not children:
    result = mo.reduce_max(data, (1,), False)
assert (result == np.arange(29_999, 80_000)).all()
right()
if children == [0]:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]))
"""
    assert run(FORK + code) == "7\n"


def test_a_signal_from_outside() -> None:
    """Test a Ctrl-C from a terminal, which may reach any thread of the process."""
    code = "print('ready', flush=True)\ntry:\n    " + LONG_CALLS["reduce_max"]
    code += "\nexcept KeyboardInterrupt:\n    right()\n    print('done', flush=True)\n"
    command = [sys.executable, "-W", "error", "-c", PRELUDE + code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "ready\n"
            threading.Event().wait(0.3)  # usually long enough for the call to start; otherwise, the test passes, too
            process.send_signal(signal.SIGINT)
            printed, _ = process.communicate(timeout=programs.HANGS_AFTER)
        finally:
            process.kill()
    assert (printed, process.returncode) == ("done\n", 0)


# -------------------------------------------------------------------------------------------------------- GIL


@pytest.mark.parametrize("threads_count", [1, 2])
def test_other_python_threads_run_during_a_call(threads_count: int) -> None:
    """Test that other threads run during a call: they see that some, but not all, of its tasks are done."""
    windows = sliding_window_view(np.zeros(40_000, np.float32), 20_000)
    seen: set[int] = set()
    with mo.num_threads(threads_count):
        for _ in range(20):
            call = threading.Thread(target=mo.reduce_max, args=(windows, (1,)))
            call.start()
            while call.is_alive():
                done, count = _native.progress()
                if 0 < done < count:
                    seen.add(done)
            if len(seen) >= 3:
                break
    assert len(seen) >= 3


# ----------------------------------------------------------------------------------------- numbers for a block


@pytest.fixture
def four() -> Iterator[None]:
    """Set four threads, and restore the number afterwards."""
    with mo.num_threads(4):
        yield


@pytest.mark.usefixtures("four")
def test_a_block_has_its_number_and_gives_it_back() -> None:
    with mo.num_threads(1):
        assert mo.get_num_threads() == 1
        with mo.num_threads(3):
            assert mo.get_num_threads() == 3
        assert mo.get_num_threads() == 1
        mo.set_num_threads(7)
        assert mo.get_num_threads() == 7
    assert mo.get_num_threads() == 4
    with pytest.raises(KeyError), mo.num_threads(2):
        raise KeyError
    assert mo.get_num_threads() == 4


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("count", [0, 1025, True, 1.0, "2"], ids=repr)
def test_a_block_with_a_wrong_number_does_not_begin(count: int) -> None:
    with pytest.raises(ConfigurationError, match=r"the number of threads must be an integer from 1 to 1024, got "):
        mo.num_threads(count).__enter__()
    assert mo.get_num_threads() == 4
    with mo.num_threads(2):  # the other blocks have no effect
        assert mo.get_num_threads() == 2
    assert mo.get_num_threads() == 4


@pytest.mark.usefixtures("four")
def test_a_block_can_begin_again() -> None:
    """Test that a context manager can be entered again, after the block and in it, and also by other threads."""
    two = mo.num_threads(2)
    for _ in range(2):
        with two, mo.num_threads(3):
            with two:
                assert mo.get_num_threads() == 2
            assert mo.get_num_threads() == 3
        assert mo.get_num_threads() == 4

    def work(_: int) -> None:
        for _ in range(100):
            with two:
                assert mo.get_num_threads() == 2

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert mo.get_num_threads() == 4


@pytest.mark.usefixtures("four")
def test_a_function_with_a_number_has_it_in_each_call() -> None:
    count = mo.num_threads(2)(mo.get_num_threads)
    assert [count(), mo.get_num_threads(), count(), mo.get_num_threads()] == [2, 4, 2, 4]


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_blocks_of_threads_end_in_any_order(order: tuple[int, ...]) -> None:
    """Test that the last block to begin takes effect, and that the last one to end restores the original number."""
    blocks = [mo.num_threads(10 + number) for number in range(3)]
    for block in blocks:
        block.__enter__()
    running = [0, 1, 2]
    for number in order:
        assert mo.get_num_threads() == 10 + running[-1]
        blocks[number].__exit__(None, None, None)
        running.remove(number)
    assert mo.get_num_threads() == 4


@pytest.mark.usefixtures("four")
def test_blocks_of_many_threads_at_once_leave_what_there_was() -> None:
    def work(first: int) -> None:
        for turn in range(200):
            with mo.num_threads(1 + (first + turn) % 9), mo.num_threads(3):
                assert 1 <= mo.get_num_threads() <= 9

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result()
    assert mo.get_num_threads() == 4


def test_a_child_that_is_forked_amid_blocks_of_other_threads_has_its_own() -> None:
    code = """
stop = threading.Event()
def work():
    while not stop.is_set():
        with mo.num_threads(3):
            pass
workers = [threading.Thread(target=work) for _ in range(3)]
for worker in workers:
    worker.start()
def child():
    with mo.num_threads(2):
        assert mo.get_num_threads() == 2
well = [child_is_well(child) for _ in range(30)]
stop.set()
for worker in workers:
    worker.join()
assert all(well) and mo.get_num_threads() == 4, (well, mo.get_num_threads())
print("done")
"""
    assert run(FORK + code) == "done\n"


# -------------------------------------------------------------------------------------------------- threadpoolctl

LIMITS = """
def ours():
    return [each for each in threadpoolctl.threadpool_info() if each["user_api"] == "maxops"]
[info] = ours()
assert (info["num_threads"], info["version"], info["architecture"]) == (4, mo.__version__, _native.isa()), info
with threadpoolctl.threadpool_limits(1):
    right()
    print(len(os.listdir("/proc/self/task")), mo.get_num_threads())
with threadpoolctl.threadpool_limits(2, user_api="blas"):
    print(mo.get_num_threads())
with threadpoolctl.threadpool_limits(3, user_api="maxops"):
    print(mo.get_num_threads(), ours()[0]["num_threads"])
with threadpoolctl.threadpool_limits(5000):
    print(mo.get_num_threads())
print(mo.get_num_threads())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads as Linux lists them")
def test_threadpoolctl_sees_and_sets_the_number() -> None:
    pytest.importorskip("threadpoolctl")
    code = "import threadpoolctl\nfrom maxops import _native\n" + LIMITS
    assert run(code) == "1 1\n4\n3 3\n1024\n4\n"


@pytest.mark.parametrize(
    "module", ["None", "types.ModuleType('threadpoolctl')"], ids=["not-installed", "before-it-took-controllers"]
)
def test_maxops_does_without_threadpoolctl(module: str) -> None:
    code = f"import sys, types; sys.modules['threadpoolctl'] = {module}; import maxops; print(maxops.get_num_threads())"
    assert programs.run(code, warnings="error", MAXOPS_NUM_THREADS="3") == "3\n"


@pytest.mark.parametrize("error", ["AttributeError('of it')", "ModuleNotFoundError('of it', name='other')"])
def test_a_broken_threadpoolctl_is_a_warning(error: str, tmp_path: Path) -> None:
    (tmp_path / "threadpoolctl.py").write_text(f"raise {error}", encoding="utf-8")
    code = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
with warnings.catch_warnings(record=True) as caught:
    import maxops
print(*(each.message for each in caught))
"""
    said = programs.run(code, str(tmp_path))
    assert said.startswith("threadpoolctl does not control the threads of maxops, because its import failed: ")
    assert "of it; reinstall it" in said
