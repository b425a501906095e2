"""Tests calls that a signal handler interrupts, offsets of missing rows, and the maximum number of axes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import resource
import signal
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

import maxops
import maxops as mo
from maxops import segment_max
from maxops.errors import MaxopsError

from .states import Array, counted, fail, made, threads

MANY = 120_000
RANK = 64  # NumPy's own limit
TRIES = 20
UNCHECKED: Any = 0  # instead of False, which means an unspecified result to a recorder of calls


# ---------------------------------------------------------------------------- a signal while a call runs


class _StoppedError(RuntimeError):
    """Raised by the signal handler."""


def _stop(*_: Any) -> NoReturn:
    raise _StoppedError


def _user_seconds() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def _ended(call: Callable[[], Any], seconds: float) -> Array:
    """Run a call with a signal after some seconds of CPU time: the call must return or raise an error.

    If the core continued after the signal, Python would report an error because the call returned a result as well.
    """
    before = signal.signal(signal.SIGVTALRM, _stop)
    try:
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
            call()
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    except (_StoppedError, MaxopsError):
        pass
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return np.zeros(0)


def _is_done(call: Callable[..., Any], segments: int) -> Array:
    """Return whether a call completes at least once in several tries if a signal is pending when it begins."""
    full, send = call(), functools.partial(ctypes.CDLL(None)["raise"], int(signal.SIGVTALRM))
    before, done = signal.signal(signal.SIGVTALRM, _stop), False
    try:
        for _ in range(TRIES):  # a slow call may also poll at another place
            out = np.zeros(segments, np.int8)
            try:
                # No Python code runs between the signal and the call, because it would handle the signal first.
                list(map(functools.partial.__call__, (send, functools.partial(call, out=out))))
            except _StoppedError:
                done = done or out.tobytes() == full.tobytes()
    finally:
        signal.signal(signal.SIGVTALRM, before)
    return np.array(done)


def _long_calls() -> tuple[Callable[[], Any], ...]:
    """Return calls that each spend most of their time in one loop that polls for signals."""
    rows = 3_000_000
    ids = (np.arange(rows, dtype=np.int32) * 7 % 1000)[::-1]
    some = np.broadcast_to(np.int8(-1), rows)
    lowest = np.repeat(np.array([-128, -1], np.int8), rows // 2)[::-1]
    ordered, few, other = np.sort(ids)[::-1][::-1], np.array([2, 0, 1]), np.array([-3, -2, -1], np.int8)
    down = np.sort(ids)
    down[rows // 4] = 0
    out = np.zeros(1000, np.int8)
    drops: dict[str, Any] = {"sorted": False, "out_of_range": "drop"}
    one, many = np.int8(1), 12_000_000
    return (
        lambda: maxops.segment_max(some, ids, sorted=False, fill_mode="ZERO"),
        lambda: maxops.segment_max(some, ids, 1000, fill_mode="ZERO", **drops),
        lambda: maxops.segment_max(lowest, ids, 1000, fill_mode="ZERO", **drops),
        lambda: maxops.segment_max(some, ordered, 1000, fill_mode="ZERO", out=out),
        lambda: maxops.segment_max(some, down, 1000, fill_mode="ZERO"),
        lambda: maxops.segment_max(some[:0], offsets=np.zeros(1, np.int64).repeat(2 * rows), fill_mode="ZERO"),
        lambda: maxops.segment_max(other, few, many, sorted=False, fill_mode="ZERO"),
        lambda: maxops.segment_max(other, np.sort(few), 2 * many, initial=one),
        lambda: maxops.reduce_max(np.zeros((0, many), np.int8), 0, initial=one),
        lambda: maxops.reduce_max(np.zeros((2, many), np.int8), 0, initial=one),
    )


def stopped() -> None:
    """Test that long calls end if a signal arrives at their beginning or later."""
    for call in _long_calls():
        began = _user_seconds()
        _ended(call, 1000)
        whole = _user_seconds() - began
        for part in (0.001, 0.4):
            made(mo, _ended, call, whole * part + 1e-6)
            counted["calls stopped by signals"] += 1
            with threads(2):  # separates the calls for a recorder of calls
                mo.maximum(np.zeros(1, np.float32))


def waiting() -> None:
    """Test short calls with a pending signal: they complete, or end between two rounds of their output."""
    for rows, segments in itertools.product((3, 40, 200), (3, 17, 100)):
        ids = (np.arange(rows) * 7 % segments)[::-1].copy()
        data = -1 - (np.arange(rows) * 5 % 100).astype(np.int8)
        call = functools.partial(segment_max, data, ids, segments, fill_mode="ZERO", sorted=False, out_of_range="drop")
        made(mo, _is_done, call, segments)
        counted["calls that signals wait for"] += 1


# ---------------------------------------------------------------------------- rows


def no_rows() -> None:
    """Test unchecked offsets of missing rows: no row is read, which would be past the end of memory."""
    memory = np.zeros(64, np.float32)
    for shape in ((0,), (0, 2)):
        data = np.ndarray(shape, memory.dtype, memory, memory.nbytes)
        for offsets in ((0, 1), (1, 1), (0, 2, 1), (0, 3), (5, 0, 9)):
            for count, dtype in itertools.product((None, 1, 4), (np.int32, np.int64)):
                for _ in range(2):  # a recorder puts every second array at the end of a page
                    got = mo.segment_max(
                        data,
                        offsets=np.array(offsets, dtype),
                        num_segments=count,
                        fill_mode="ZERO",
                        check_ids=UNCHECKED,
                    )
                    if got.shape[1:] != shape[1:]:
                        fail("segment_max, wrong offsets of no rows", shape, got, offsets=offsets)
                    counted["wrong offsets, no rows"] += 1


def many_steps_down() -> None:
    """Test that decreasing ids do not fill output rows repeatedly, which would take quadratic time."""
    data = np.ones(MANY, np.int8)
    for pattern in ((0, MANY - 1, 0, 0), (0, MANY - 1, 5, 0)):
        ids = np.tile(np.array(pattern, np.int32), MANY // 4)
        got = mo.segment_max(data, ids, MANY, fill_value=1, check_ids=UNCHECKED)
        if not (got == 1).all():
            fail("segment_max, many steps down", "ones", got)
        counted["wrong ids, many steps down"] += 1


# ---------------------------------------------------------------------------- elements


def every_axis() -> None:
    """Test 64 axes, NumPy's maximum, with a byte-swapped scalar, on one and on several threads."""
    scalar = np.array(2, np.dtype(np.float32).newbyteorder("S"))
    for count in (1, 2, 3, 1, 2, 3, 1, 2):  # alternates to separate the calls for a recorder of calls
        with threads(count):
            for size in (1, 3):
                whole = np.ones((1,) * (RANK - 1) + (size,), np.float32)
                for inputs in ((whole, scalar), (scalar, whole)):
                    got = mo.maximum(*inputs)
                    if got.shape != whole.shape or (got != 2).any():
                        fail("maximum of 64 axes and a scalar", (whole.shape, 2), got)
                    counted["maximum: 64 axes"] += 1


def found_twice() -> None:
    """Test a maximum at the end of each part that threads search concurrently: the first index is returned."""
    data = np.zeros(4_000_000, np.int8)
    data[[len(data) // 2 - 1, len(data) - 1]] = 1
    for count in (2, 3, 2, 3):
        with threads(count):
            values, places = mo.reduce_max(data, return_indices=True)
            if values.tolist() != [1] or places.tolist() != [len(data) // 2 - 1]:
                fail("reduce_max, indices, found twice", len(data) // 2 - 1, places)
            counted["reduce_max: found twice"] += 1
