"""Regression tests for bugs that attacks on the core found."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.programs import run
from maxops import reference
from maxops.errors import SegmentIdsError


def test_ids_that_another_thread_changes_stay_in_bounds(isa: str) -> None:
    """Test that ids are read once for both check and use. The output ends before inaccessible memory."""
    code = f"""
import ctypes, mmap, threading, time
import numpy as np, maxops as mo
from maxops import _native
assert _native.use_isa({isa!r})
n, page = 100_000, mmap.PAGESIZE
size = -(-4 * n // page) * page
space = mmap.mmap(-1, size + 64 * page)
start = ctypes.addressof(ctypes.c_char.from_buffer(space))
protect = ctypes.CDLL(None).mprotect
protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
assert protect(start + size, 64 * page, 0) == 0
out = np.frombuffer((ctypes.c_char * size).from_address(start), np.float32)[-n:]
data = np.ones(n, np.float32)
for ids_as, wrong in ((np.int32, 2**31 - 1), (np.int64, 2**40)):
    for gap in (1, 2):
        right = (np.arange(n) // 2 * gap).astype(ids_as)
        right[-1] = n - 1
        ids, ends, calls = right.copy(), False, 0
        def change():
            while not ends:
                ids[3:-40:5] = wrong
                ids[4:-40:7] = -wrong
                np.copyto(ids, right)
        thread = threading.Thread(target=change)
        thread.start()
        until = time.monotonic() + 0.2
        while time.monotonic() < until or calls < 50:
            mo.segment_max(data, ids, n, fill_mode="ZERO", out=out, check_ids=False)
            calls += 1
        ends = True
        thread.join()
        print(ids_as.__name__, gap)
"""
    assert run(code).split() == ["int32", "1", "int32", "2", "int64", "1", "int64", "2"]


def test_daemon_threads_inside_calls_when_the_interpreter_ends() -> None:
    """Test that the pool drops a thread's work before the thread ends."""
    code = """
import threading, time
import numpy as np, maxops as mo
mo.set_num_threads(4)
a, table = np.random.rand(2_000_000), np.random.rand(5_000, 1_000)
def work(number):
    while True:
        mo.maximum(a, a) if number % 2 else mo.reduce_max(table, axes=(0,))
for number in range(4):
    threading.Thread(target=work, args=(number,), daemon=True).start()
time.sleep(0.2)
print("ends")
"""
    for _ in range(2):
        assert run(code) == "ends\n"


def test_a_fork_inside_a_signal_handler() -> None:
    """Test that the child completes the interrupted call without the threads, which stay in the parent."""
    code = """
import os, signal
import numpy as np, maxops as mo
from maxops import _native
mo.set_num_threads(4)
def fork(*_):
    global child, done, tasks
    if child is None:
        done, tasks = _native.progress()
        child = os.fork()
signal.signal(signal.SIGALRM, fork)
n = 5_000
while True:
    columns = np.broadcast_to(np.arange(n, dtype=np.int8)[:, None] % 100, (n, n))
    child, done, tasks = None, 0, 0
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    result = mo.maximum(columns[:, : n // 4 * 3], columns[:, n // 4 :])
    while child is None:
        signal.pause()
    if 0 < done < tasks:  # the fork was inside the call
        break
    if child == 0:
        os._exit(9)
    os.waitpid(child, 0)
    n = min(2 * n, 40_000)
assert (result[:, 0] == columns[:, 0]).all() and (result[:, -1] == columns[:, 0]).all()
if child == 0:
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(code) == "7\n"


def test_a_fork_inside_a_signal_handler_while_keys_become_values() -> None:
    """Test that a child that completes the call does not repeat the conversion of keys."""
    code = """
import os, signal
import numpy as np, maxops as mo
mo.set_num_threads(2)
def fork(*_):
    global child
    # of empty segments: values in front, keys behind (of which one is as -0)
    if child is None and begun and bits[1] == 0 and bits[-2] != 0:
        child = 0
        signal.setitimer(signal.ITIMER_REAL, 0)
        child = os.fork()
signal.signal(signal.SIGALRM, fork)
n, child = 20_000_000, None
while child is None:
    begun = False
    out, ids = np.ones(n, np.float32), np.arange(0, n, n // 8)[::-1].copy()
    data = np.full(len(ids), -2, np.float32)
    bits, begun = out.view(np.int32), True
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    mo.segment_max(data, ids, n, fill_mode="ZERO", sorted=False, out=out)
    signal.setitimer(signal.ITIMER_REAL, 0)
    n = min(2 * n, 160_000_000)
is_valid = np.array_equal(np.flatnonzero(out), ids[::-1]) and (out[ids] == -2).all()
if child == 0:
    os._exit(7 if is_valid else 1)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), is_valid)
"""
    assert run(code) == "7 True\n"


def test_rationals_of_more_than_32_axes() -> None:
    """Test more axes than NumPy's older iterators support."""
    shape = (1, 2) + (1,) * 38
    exact = np.array([Fraction(1, 3), 2], object).reshape(shape)
    assert mo.maximum(exact, exact).shape == shape
    assert mo.reduce_max(exact).item() == 2


@pytest.mark.parametrize("place", [0, -1])
def test_bools_that_are_stored_as_other_bytes(place: int, isa: str) -> None:
    """Test that every nonzero byte is True, and that results are 0 or 1."""
    del isa
    for count in (1, 70, 20_000):
        stored = np.zeros(count, np.uint8)
        stored[place] = 2
        data = stored.view(np.bool)
        assert mo.reduce_max(data).view(np.uint8).tolist() == [1]
        assert_same_bits(mo.maximum(data, data[::-1]), reference.maximum(data, data[::-1]))
        ids = np.zeros(count, np.int64)
        assert mo.segment_max(data, ids, fill_mode="ZERO").view(np.uint8).tolist() == [1]


def test_bad_ids_of_wide_rows_and_of_mostly_empty_outputs() -> None:
    """Test that ids are validated before other work, so that decreasing ids cost no repeated fills."""
    ids = np.where(np.arange(300) % 2, 299, 0)
    for rows in (np.ones((300, 8192)), np.ones((300, 16384))[:, ::2], np.ones(300)):
        with pytest.raises(SegmentIdsError, match="got 0 after 299 at position 2"):
            mo.segment_max(rows, ids, fill_mode="ZERO")
        with pytest.raises(SegmentIdsError, match="got 0 after 299 at position 2"):
            mo.segment_max(rows, ids, 10_000, fill_mode="ZERO")


def test_ctrl_c_ends_the_padding_of_a_large_output() -> None:
    """Test that the rows after the last id are filled in tasks, which Ctrl-C can interrupt."""
    code = """
import signal
import numpy as np, maxops as mo
def stop(*_):
    raise KeyboardInterrupt
signal.signal(signal.SIGALRM, stop)
try:
    for _ in range(10_000):
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        mo.segment_max(np.ones(3, np.int8), np.arange(3), 400_000_000, fill_mode="ZERO")
except KeyboardInterrupt:
    print("stopped")
"""
    assert run(code) == "stopped\n"
