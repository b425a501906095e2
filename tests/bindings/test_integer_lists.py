"""Ids and offsets as lists, tuples and ranges of integers, which are converted to int64 for every kind of data."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops.errors import DTypeError, MaxopsError
from maxops.plan import integers_of
from maxops.spec import SEGMENT_MAX

DATA = np.array([[3.0, -0.0], [np.nan, 1.0], [2.0, 5.0]])
NAMES = ["segment_ids", "offsets"]
OPTIONS: list[dict[str, Any]] = [
    {"fill_mode": "ZERO"}, {"fill_value": np.nan}, {"initial": 4.0}, {"fill_mode": "LOWEST", "check_ids": False},
    {"fill_mode": "ZERO", "return_indices": True, "return_empty": True}, {"fill_mode": "ZERO", "num_segments": 2},
    {"fill_mode": "ZERO", "sorted": False}, {"fill_mode": "ZERO", "out_of_range": "drop", "num_segments": 2},
]  # fmt: skip


def outcome(call: Any) -> Any:
    """Return the bits of the results, or the error."""
    try:
        results = call()
    except MaxopsError as error:
        return type(error), str(error)
    return [np.asarray(each) for each in results] if isinstance(results, tuple) else [np.asarray(results)]


def segments(**arguments: Any) -> Any:
    return outcome(lambda: mo.segment_max(DATA, **arguments))


def check_same(first: Any, second: Any) -> None:
    if isinstance(first, tuple) or isinstance(second, tuple):
        assert first == second
    else:
        for one, other in zip(first, second, strict=True):
            assert_same_bits(one, other)


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
@pytest.mark.parametrize("name", NAMES)
def test_every_short_list_is_its_array(name: str, options: dict[str, Any]) -> None:
    """Test that each list of up to four integers from -1 to 3 has the same result or error as its array."""
    for values in (each for length in range(5) for each in product(range(-1, 4), repeat=length)):
        expected = segments(**{name: np.array(values, np.int64)}, **options)
        for given in (list(values), values):
            check_same(segments(**{name: given}, **options), expected)


def test_ranges_and_integers_of_numpy() -> None:
    expected = mo.segment_max(DATA, np.arange(3), fill_mode="ZERO")
    spellings: list[Any] = [range(3), [np.int8(0), 1, np.uint64(2)], tuple(np.arange(3))]
    for ids in spellings:
        assert_same_bits(mo.segment_max(DATA, ids, fill_mode="ZERO"), expected)


LONG = 1 << 16  # longer ranges are not converted to lists


@pytest.mark.parametrize("count", [LONG - 1, LONG, LONG + 1, 3 * LONG])
@pytest.mark.parametrize("ends", [(0, 1), (5, 3), (0, -1), (-(2**63), 1), (2**63 - 1, -1), (-(2**63), 2**44)], ids=repr)
def test_long_ranges_are_their_arrays(ends: tuple[int, int], count: int) -> None:
    start, step = ends
    values = range(start, start + count * step, step)
    assert_same_bits(integers_of(SEGMENT_MAX, "segment_ids", values), np.array(list(values), np.int64))


@pytest.mark.parametrize("start", [2**63 - LONG, 2**63 - 1, 2**63, 2**70, -(2**63) - 1, -(2**70)])
def test_long_ranges_past_int64(start: int) -> None:
    values = range(start, start + 2 * LONG)
    position = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
    with pytest.raises(DTypeError, match=f"must fit in int64, got {values[position]} at position {position}"):
        mo.segment_max(DATA, values, fill_mode="ZERO")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("stop", [2**44, 2**63, 2**64, 10**30])
@pytest.mark.parametrize("step", [1, -1, 2])
def test_ranges_that_no_memory_holds(step: int, stop: int, name: str) -> None:
    given: dict[str, Any] = {name: range(0, stop if step > 0 else -stop, step)}
    with pytest.raises(MaxopsError, match=rf"{name} is a range of \d+ integers, which does not fit in memory"):
        mo.segment_max(DATA, **given, fill_mode="ZERO")


def test_no_rows() -> None:
    empty = mo.segment_max(np.zeros((0, 2)), [], fill_mode="ZERO")
    assert empty.shape == (0, 2)
    assert mo.segment_max(np.zeros((0, 2)), offsets=[0, 0], fill_mode="ZERO").shape == (1, 2)


WRONG: list[Any] = [
    True, np.True_, 1.0, np.float32(1), None, "a", b"a", [0], (1,), np.zeros(1), 1j, 2**63, -(2**63) - 1,
]  # fmt: skip


@pytest.mark.parametrize("item", WRONG, ids=repr)
@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("kind", [list, tuple])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_an_integer_is_refused(name: str, kind: Any, position: int, item: Any) -> None:
    values = [0, 0, 0]
    values[position] = item
    with pytest.raises(DTypeError) as caught:
        mo.segment_max(DATA, **{name: kind(values)}, fill_mode="ZERO")
    assert re.search(
        rf"segment_max {name} must .*, got {re.escape(repr(item))} .*at position {position}", str(caught.value)
    )
    assert caught.value.clause == "maxops.segment_max.index_types"
    assert ("factorize" in str(caught.value)) == (isinstance(item, (int, str)) and not isinstance(item, bool))


def test_named_standards_take_no_lists() -> None:
    with pytest.raises(DTypeError, match=r"segment_ids must be a.* array, got list; convert it with np\.asarray"):
        mo.operator("OpenVINO", "SegmentMax")(DATA, [0, 0, 1], fill_mode="ZERO")  # type: ignore[call-overload]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: adapter.name)
@pytest.mark.parametrize("name", NAMES)
def test_data_of_every_engine(name: str, adapter: Adapter) -> None:
    adapter.need()
    """Test that the engine treats a list like an int64 array in memory: it runs or rejects both."""
    values = {"segment_ids": [0, 0, 2], "offsets": [0, 2, 3]}[name]
    with adapter.around():
        data = adapter.given((DATA,))[0]

        def run(indices: Any) -> Any:
            return outcome(lambda: adapter.take(mo.segment_max(data, **{name: indices}, fill_mode="ZERO")))

        check_same(run(values), run(np.array(values)))


# -------------------------------------------------------------------------------- objects that are not arrays

NOT_ARRAYS: list[tuple[Any, str]] = [
    ([1.0, 2.0], "np.asarray(...)"), ((1, 2), "np.asarray(...)"), ([[1], [2]], "np.asarray(...)"),
    (range(2), "np.asarray(...)"), (bytearray(b"12"), "np.asarray(...)"), ([], "np.asarray(...)"),
    ({1, 2}, "np.asarray(list(...))"), (iter([1]), "np.asarray(list(...))"),
    ((each for each in [1]), "np.asarray(list(...))"), ({1: 2}.values(), "np.asarray(list(...))"),
    ({"a": 1}, ".values()"), ("12", "pass numbers"), (1j, "complex numbers have no order"),
    (object(), "__dlpack__"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "hint"), NOT_ARRAYS, ids=[type(value).__name__ for value, _ in NOT_ARRAYS])
def test_each_mistake_is_told_the_next_step(value: Any, hint: str) -> None:
    x = np.zeros(2)
    calls: list[Any] = [
        lambda: mo.maximum(value, x), lambda: mo.maximum(x, value), lambda: mo.maximum(value, value),
        lambda: mo.reduce_max(value), lambda: mo.segment_max(value, np.zeros(2, int), fill_mode="ZERO"),
        lambda: mo.operator("ONNX", "Max", 13)(x, value), lambda: mo.operator("ONNX", "ReduceMax", 18)(value),
        lambda: mo.operator("OpenVINO", "SegmentMax")(value, np.zeros(2, int), fill_mode="ZERO"),
        lambda: mo.reduce_max(x, initial=value), lambda: mo.segment_max(x, np.zeros(2, int), fill_value=value),
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(DTypeError) as caught:
            call()
        assert hint in str(caught.value)
        assert "torch" not in str(caught.value)
