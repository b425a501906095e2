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
from helpers.engine_cases import CASES, ROWS, Case, hold_to_the_table, in_turn
from maxops import errors, spec
from maxops.plan import Array

RESULTS = {"maximum": 1, "reduce_max": 2, "segment_max": 3}


def _items() -> Iterator[tuple[Adapter, str, list[Case], bool]]:
    """Yield each engine with each row of cases that differ only in their type, and whether only releases test them.

    For an engine that `knows_no_types`, every fifth of them is enough: Dask and xarray pass blocks to other engines,
    JAX's keys are those of order.py, which has tests for every type, and a traced call of torch has the same kernels.
    """
    for adapter in filter(lambda adapter: adapter.is_here, ADAPTERS):
        for name, row in ROWS.items():
            row = [case for case in row if case.dtype in adapter.types]  # noqa: PLW2901
            now = [case for case in row if case in in_turn(name)] if adapter.knows_no_types else row
            for cases, later in ((now, False), ([case for case in row if case not in now], True)):
                if cases:
                    yield adapter, name, cases, later


ITEMS = list(_items())


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_engine_is_here(adapter: Adapter) -> None:
    """Test that the engine is available. If it is not, a single skip replaces all its cases."""
    adapter.need()


@pytest.mark.parametrize(
    ("adapter", "cases"),
    [
        pytest.param(adapter, cases, id=f"{adapter.name}-{name}", marks=[pytest.mark.release] if later else [])
        for adapter, name, cases, later in ITEMS
    ],
)
def test_engine(adapter: Adapter, cases: list[Case]) -> None:
    hold_to_the_table(adapter, cases)


def test_each_engine_has_every_type_and_every_kind_of_call() -> None:
    for adapter in {adapter.name: adapter for adapter, *_ in ITEMS}.values():
        here = [(name, cases) for each, name, cases, later in ITEMS if each is adapter and not later]
        assert [name for name, _ in here] == [*ROWS]
        for function, results in RESULTS.items():
            whole = {
                case.dtype
                for _, cases in here
                for case in cases
                if not case.is_error and case.function == function and len(case.expected) == results
            }
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
