"""Arrays that another thread changes during planning: a tracer changes one before each line of Python."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops.errors import MaxopsError, OutputError

PLANNED = {
    operator: getattr(mo, operator).__wrapped__  # skips the native entry, which runs no Python code
    for operator in ("maximum", "reduce_max", "segment_max")
}
Arrays = dict[str, np.ndarray[Any, Any]]


def _arrays() -> Arrays:
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    return {
        "row": rows[:, 0].copy(),
        "rows": rows,
        "scalar": np.array(3, np.float32),
        "axes": np.array([0]),
        "ids": np.arange(6) // 2,
        "short ids": (np.arange(6) // 2).astype(np.int16),
        "unsigned ids": (np.arange(6) // 2).astype(np.uint64),
        "negative ids": np.array([0, 0, 0, -5, -5, -5]),
        "falling ids": np.array([2, 2, 2, 1, 1, 1]),
        "offsets": np.array([0, 2, 3, 6]),
        "count": np.array(3),
        "out of row": np.empty(6, np.float32),
        "out of rows": np.empty((1, 2), np.float32),
        "out of segments": np.empty((3, 2), np.float32),
    }


# The arguments of each call: the operator, arrays by position and by name, and other options.
CALLS: dict[str, tuple[str, list[str], dict[str, str], dict[str, Any]]] = {
    "max": ("maximum", ["row", "scalar"], {"out": "out of row"}, {}),
    "reduce": ("reduce_max", ["rows", "axes"], {"out": "out of rows", "initial": "scalar"}, {"return_indices": True}),
    "noop": ("reduce_max", ["rows"], {}, {"axes": [], "noop_with_empty_axes": True, "return_indices": True}),
    "noop to out": ("reduce_max", ["row"], {"out": "out of row"}, {"axes": [], "noop_with_empty_axes": True}),
    "segments": ("segment_max", ["rows", "ids"], {"out": "out of segments"},
     {"fill_mode": "ZERO", "return_indices": True, "return_empty": True}),
    "counted": ("segment_max", ["rows", "ids", "count"], {"fill_value": "scalar"}, {}),
    "short": ("segment_max", ["rows", "short ids"], {"initial": "scalar"}, {}),
    "dropped": ("segment_max", ["rows", "unsigned ids"], {},
                {"sorted": False, "out_of_range": "drop", "fill_mode": "ZERO"}),
    "negative": ("segment_max", ["rows", "negative ids"], {}, {"fill_mode": "ZERO"}),
    "falling": ("segment_max", ["rows", "falling ids"], {}, {"fill_mode": "ZERO"}),
    "offsets": ("segment_max", ["rows"], {"offsets": "offsets", "out": "out of segments"},
     {"fill_mode": "ZERO", "return_empty": True}),
}  # fmt: skip


def _reshape(array: np.ndarray[Any, Any]) -> None:
    if array.size == 1:
        array.shape = (1, 1)
    else:
        array.shape = (2, array.size // 2) if array.ndim == 1 else (array.size,)


def _view_as_bytes(array: Any) -> None:
    if array.ndim:
        array.dtype = np.dtype(np.uint8)


def _view_as_void(array: Any) -> None:
    array.dtype = np.dtype(f"V{array.itemsize}")


def _swap(array: Any) -> None:
    array.dtype = array.dtype.newbyteorder()


def _lock(array: np.ndarray[Any, Any]) -> None:
    array.flags.writeable = False


def _fill(array: np.ndarray[Any, Any]) -> None:
    if array.flags.writeable:
        array[...] = 100


# If a call has already made its views, only the last of these changes affects its result.
CHANGES: list[Callable[[np.ndarray[Any, Any]], None]] = [_reshape, _view_as_bytes, _view_as_void, _swap, _lock, _fill]


def _call(name: str, arrays: Arrays) -> Any:
    operator, by_position, by_name, rest = CALLS[name]
    given = {parameter: arrays[each] for parameter, each in by_name.items()}
    return PLANNED[operator](*(arrays[each] for each in by_position), **given, **rest)


def _outcome(name: str, arrays: Arrays) -> list[bytes] | None:
    """Return the bits of a call's results, or None for an error of maxops."""
    try:
        result = _call(name, arrays)
    except MaxopsError:
        return None
    return [array.tobytes() for array in (result if isinstance(result, tuple) else (result,))]


def _outcome_with_change(name: str, changed: str, change: Any, line: int) -> tuple[list[bytes] | None, bool]:
    """Return the outcome if an array changes before this line of maxops, and whether the call reaches the line."""
    arrays, lines, before = _arrays(), 0, sys.gettrace()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if "maxops" not in frame.f_globals.get("__name__", ""):
            return None
        if event == "line":
            lines += 1
            if lines > line:
                change(arrays[changed])
                sys.settrace(None)
        return trace

    sys.settrace(trace)
    try:
        outcome = _outcome(name, arrays)
    finally:
        sys.settrace(before)
    return outcome, lines > line


@pytest.mark.parametrize("change", CHANGES, ids=[each.__name__.strip("_") for each in CHANGES])
@pytest.mark.parametrize("name", CALLS)
def test_a_change_before_each_line(name: str, change: Callable[[np.ndarray[Any, Any]], None]) -> None:
    """Test that the call returns the result for the array before or after the change, or raises an error of maxops."""
    _, by_position, by_name, _ = CALLS[name]
    count = 0
    for changed in [*by_position, *by_name.values()]:
        after = _arrays()
        change(after[changed])
        allowed = [None, _outcome(name, _arrays()), _outcome(name, after)]
        line, runs = 0, True
        while runs:
            outcome, runs = _outcome_with_change(name, changed, change, line)
            assert change is _fill or outcome in allowed, (changed, line, outcome, allowed)
            line += 1
        count += line
    assert count > 50


@pytest.mark.parametrize("operator", PLANNED)
def test_the_callers_output_is_what_a_planned_call_returns(operator: str, tmp_path: Any) -> None:
    rows, ids = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 0, 1])
    for kind in ("array", "memmap"):
        shape = {"maximum": (3, 2), "reduce_max": (1, 2), "segment_max": (2, 2)}[operator]
        out = np.empty(shape, np.float32)
        if kind == "memmap":
            out = np.memmap(tmp_path / operator, np.float32, "w+", shape=shape)
        if operator == "maximum":
            assert PLANNED[operator](rows, rows, out=out) is out
        elif operator == "reduce_max":
            assert PLANNED[operator](rows, 0, out=out) is out
            assert PLANNED[operator](rows, 0, out=out, return_indices=True)[0] is out
        else:
            assert PLANNED[operator](rows, ids, fill_mode="ZERO", out=out) is out
            assert PLANNED[operator](rows, ids, fill_mode="ZERO", out=out, return_empty=True)[0] is out
        assert out[-1].tolist() == [4, 5]


@pytest.mark.parametrize("change", CHANGES, ids=[each.__name__.strip("_") for each in CHANGES])
def test_an_output_that_changes_while_the_core_runs(change: Callable[[np.ndarray[Any, Any]], None]) -> None:
    """Test a signal handler that changes the output, so that the result may no longer fit."""
    data = np.arange(1 << 24, dtype=np.float32).reshape(-1, 2)
    out = np.zeros(len(data), np.float32)
    changed: list[int] = []

    def handler(*_: object) -> None:
        changed.append(1)
        change(out)

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.002)
        try:
            result, _ = mo.reduce_max(data, -1, keepdims=False, out=out, return_indices=True)
            assert result is out
        except OutputError:
            assert change is not _fill
        while not changed:
            signal.sigtimedwait([], 0.001)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ------------------------------------------------------------------------------- subclasses of Python's own numbers


def _hooked(base: Any, calls: list[str]) -> Any:
    """Return a subclass of int or float whose conversions and comparisons return wrong values."""

    def hook(name: str) -> Callable[..., Any]:
        def run(*_: Any) -> Any:
            calls.append(name)
            raise OverflowError(name)

        return run

    names = ["__int__", "__float__", "__index__", "__trunc__", "__lt__", "__le__", "__ge__", "__mod__", "__bool__"]
    return type("Hooked", (base,), {name: hook(name) for name in names})


def test_subclasses_of_pythons_numbers_give_the_number_that_they_hold() -> None:
    """Test every argument that accepts numbers: like operator.index, maxops calls no method that a subclass defines."""
    calls: list[str] = []
    integer, real = _hooked(int, calls), _hooked(float, calls)
    rows, ids = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([0, 0, 1])
    each: list[tuple[Callable[[Any], Any], Any, Any]] = [
        (lambda number: mo.maximum(rows, number), real, 2.5),
        (lambda number: mo.maximum(rows, number), integer, 2),
        (lambda number: mo.maximum(rows.astype(np.int8), number), integer, 2),
        (lambda number: mo.reduce_max(rows, initial=number), real, 2.5),
        (lambda number: mo.reduce_max(rows, initial=number), integer, 2),
        (lambda number: mo.reduce_max(rows, number), integer, 1),
        (lambda number: mo.reduce_max(rows, [number]), integer, 1),
        (lambda number: mo.reduce_max(rows, (number,)), integer, -1),
        (lambda number: mo.reduce_max(rows, keepdims=number), integer, 0),
        (lambda number: mo.reduce_max(rows, axes=[], noop_with_empty_axes=number), integer, 1),
        (lambda number: mo.segment_max(rows, ids, number, fill_mode="ZERO"), integer, 3),
        (lambda number: mo.segment_max(rows, ids, 3, fill_value=number), real, 2.5),
        (lambda number: mo.segment_max(rows, ids, initial=number), real, 2.5),
        (lambda number: mo.segment_max(rows, [0, 0, number], fill_mode="ZERO"), integer, 1),
        (lambda number: mo.segment_max(rows, offsets=(0, 1, number), fill_mode="ZERO"), integer, 3),
        (lambda number: mo.segment_max(rows, ids, check_ids=number, fill_mode="ZERO"), integer, 0),
        (lambda number: mo.operator("onnx", "ReduceMax", 13)(rows, axes=[number]), integer, 1),
        (lambda number: mo.operator("openvino", "SegmentMax", 16)(rows, ids, number, fill_mode="ZERO"), integer, 3),
    ]
    for call, kind, number in each:
        assert_same_bits(call(kind(number)), call(number))
    assert calls == []
