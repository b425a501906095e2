"""Every engine gives the reference's bits and NumPy's errors, in its own kind of arrays."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import maxops as mo
from bits import assert_same_bits
from engine_adapter import Adapter
from engine_adapters import ADAPTERS
from engine_cases import CASES, Case
from maxops.errors import MaxopsError

# No error of a plain function speaks for a standard.
OWN = {clause.id for operator in mo.operators() for clause in operator.clauses if operator.standard == "maxops"}
# Each engine with the cases of the types that its framework has.
PAIRS = [(adapter, case) for adapter in ADAPTERS if adapter.is_here for case in CASES if case.dtype in adapter.types]


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_engine_is_here(adapter: Adapter) -> None:
    """Where it is not, one skip stands for all its cases."""
    adapter.need()


@pytest.mark.parametrize(("adapter", "case"), PAIRS, ids=[f"{adapter.name}-{case.name}" for adapter, case in PAIRS])
def test_engine(adapter: Adapter, case: Case) -> None:
    if case.is_error:
        words = adapter.words.get(case.name, str(case.expected[1]))
        with pytest.raises(case.expected[0], match=re.escape(words)) as caught:  # type: ignore[arg-type]
            _results(adapter, case)
        if isinstance(caught.value, MaxopsError):  # not a framework's own, with the text of one
            assert caught.value.clause in OWN
        return
    got = _results(adapter, case)
    assert len(got) == len(case.expected)
    for result, expected in zip(got, case.expected, strict=True):
        assert_same_bits(result, expected)  # type: ignore[arg-type]


def _results(adapter: Adapter, case: Case) -> list[Any]:
    function = getattr(mo, case.function)
    with adapter.around():
        arrays = adapter.given(case.arrays, case.options.get("axis", 0))
        result = function(*arrays, **case.options) if isinstance(arrays, tuple) else function(**arrays, **case.options)
        return [adapter.take(part) for part in (result if isinstance(result, tuple) else (result,))]


def test_the_table_asks_what_it_should() -> None:
    """A broken engine is seen: no case can pass with a wrong result in any of its parts."""
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
