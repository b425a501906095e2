"""Every engine returns the reference's bits and raises NumPy's errors, with its own kind of arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import FLOATS, assert_same_bits, of_words
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from helpers.engine_cases import CASES, Case, hold_to_the_table
from maxops import errors, spec
from maxops.plan import Array

IN_TURN = 5
RESULTS = {"maximum": 1, "reduce_max": 2, "segment_max": 3}


def _pairs() -> Iterator[tuple[Adapter, Case, bool]]:
    """Yield each engine with the cases of its framework's types, and whether a pair is tested only for releases.

    For an engine that `knows_no_types`, every fifth of the cases that differ only in their type is enough, beginning
    with another type in each row: Dask and xarray pass blocks to other engines, and JAX's keys are those of order.py,
    which has tests for every type. Cases with all values of a type are always tested.
    """
    rows: dict[str, list[Case]] = {}
    for case in CASES:
        rows.setdefault(case.name.replace(str(case.dtype), ""), []).append(case)
    for adapter in filter(lambda adapter: adapter.is_here, ADAPTERS):
        for turn, (name, row) in enumerate(rows.items()):
            every = 1 if not adapter.knows_no_types or "pool" in name else min(IN_TURN, len(row))
            for place, case in enumerate(row):
                if case.dtype in adapter.types:
                    yield adapter, case, (place + turn) % every != 0


PAIRS = list(_pairs())


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_engine_is_here(adapter: Adapter) -> None:
    """Test that the engine is available; otherwise, a single skip replaces all its cases."""
    adapter.need()


@pytest.mark.parametrize(
    ("adapter", "case"),
    [
        pytest.param(adapter, case, id=f"{adapter.name}-{case.name}", marks=[pytest.mark.release] if later else [])
        for adapter, case, later in PAIRS
    ],
)
def test_engine(adapter: Adapter, case: Case) -> None:
    hold_to_the_table(adapter, case)


def test_each_engine_has_every_type_and_every_kind_of_call() -> None:
    for adapter in {adapter.name: adapter for adapter, *_ in PAIRS}.values():
        here = [case for each, case, later in PAIRS if each is adapter and not later and not case.is_error]
        assert {case.name.replace(str(case.dtype), "") for case in here} == {
            case.name.replace(str(case.dtype), "") for case in CASES if not case.is_error
        }
        for function, results in RESULTS.items():
            whole = {case.dtype for case in here if case.function == function and len(case.expected) == results}
            assert whole == set(adapter.types)


def test_the_table_asks_what_it_should() -> None:
    """Test that a wrong result in any part of a case fails the test."""
    for case in CASES:
        if case.is_error:
            continue
        for part in case.expected:
            assert isinstance(part, np.ndarray)
            if part.size:
                wrong = part.copy()
                wrong.reshape(-1).view(np.uint8)[0] ^= 1
                with pytest.raises(AssertionError):
                    assert_same_bits(wrong, part)


FLAGS = [(row, each.name) for row in spec.PLAIN for each in row.parameters if each.kind == "flag"]


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS if each.is_here])
@pytest.mark.parametrize(("row", "name"), FLAGS, ids=[f"{row.name}-{name}" for row, name in FLAGS])
def test_each_flag_is_0_or_1(adapter: Adapter, row: spec.Spec, name: str) -> None:
    arrays: dict[str, Array] = {"data": np.array([[1, 2], [3, 0]], np.float32)}
    options: dict[str, Any] = {}
    if row is spec.SEGMENT_MAX:
        arrays["segment_ids"], options = np.array([0, 1]), {"num_segments": 2, "fill_mode": "ZERO"}
    with adapter.around():
        for value in (2, "1", *([None] if name != "keepdims" else [])):
            with pytest.raises(errors.AttributeValueError, match=f"{name} must be True, False, 1 or 0, got ") as caught:
                getattr(mo, row.operator)(**adapter.given(arrays), **options, **{name: value})
            assert caught.value.clause == row.clause(name)


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS if each.is_here])
def test_a_python_float_is_rounded(adapter: Adapter) -> None:
    for dtype in FLOATS:
        if dtype not in adapter.types:
            continue
        data = of_words(dtype, [dtype.lowest_bits, 0, dtype.infinity_bits])
        with adapter.around():
            given = adapter.given({"data": data})["data"]
            for value in (0.1, 1 / 3, 1 + 2.0**-dtype.mantissa_bits * 0.75):
                expected = mo.maximum(data, value)
                assert abs(float(expected[0]) - value) <= 2.0 ** -(dtype.mantissa_bits + 1) * max(value, 2.0**-14)
                assert_same_bits(adapter.take(mo.maximum(given, value)), expected)
                assert_same_bits(adapter.take(mo.maximum(value, given)), expected)
