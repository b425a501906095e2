"""Every engine gives the reference's bits and NumPy's errors, in its own kind of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.bits import assert_same_bits
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from helpers.engine_cases import CASES, Case, hold_to_the_table

# Each engine with the cases of the types that its framework has.
PAIRS = [(adapter, case) for adapter in ADAPTERS if adapter.is_here for case in CASES if case.dtype in adapter.types]


@pytest.mark.parametrize("adapter", [pytest.param(each, id=each.name) for each in ADAPTERS])
def test_engine_is_here(adapter: Adapter) -> None:
    """Where it is not, one skip stands for all its cases."""
    adapter.need()


@pytest.mark.parametrize(("adapter", "case"), PAIRS, ids=[f"{adapter.name}-{case.name}" for adapter, case in PAIRS])
def test_engine(adapter: Adapter, case: Case) -> None:
    hold_to_the_table(adapter, case)


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
