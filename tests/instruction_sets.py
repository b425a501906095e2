"""On which instruction sets a test of kernels runs, and one check on each where its expectation is dear."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from maxops import _native

# x86-64-v2's kernels are the baseline's source for other instructions.
OWN_SOURCE = [name for name in _native.isas() if name != "x86-64-v2"]


def _besides(ordinary: Sequence[str]) -> list[ParameterSet]:
    """Each instruction set; those that are no ordinary ones in `pytest -m exhaustive`."""
    return [pytest.param(name, marks=() if name in ordinary else pytest.mark.exhaustive) for name in _native.isas()]


# The one that is in use unless somebody asks for another. On all of them at once `test_runs` and `test_sizes` cross
# every boundary of the kernels, and `on_each_isa` tries what hypothesis finds.
EACH = _besides(_native.isas()[:1])
# For what the kernels' source alone decides, and cheap: the order, the bounds of memory, the processor's modes.
EACH_SOURCE = _besides(OWN_SOURCE)


Test = TypeVar("Test", bound=Callable[..., None])


def on_each_source(test: Test) -> Test:
    """Call a test once on each of them."""
    marked: Test = pytest.mark.parametrize("isa", EACH_SOURCE, indirect=True)(pytest.mark.usefixtures("isa")(test))
    return marked


# For tests of modules that use the fixture `isa`, which then is the one in use and no parameter.
by_itself = pytest.mark.parametrize("isa", [_native.isa()], indirect=True)


def on_each_isa(check: Callable[[], object]) -> None:
    """Call it once on each source's; an error says on which, and afterwards the one is in use that was."""
    before = _native.isa()
    try:
        for name in OWN_SOURCE:
            assert _native.use_isa(name)
            check()
    except Exception as error:
        error.add_note(f"on {_native.isa()}")
        raise
    finally:
        assert _native.use_isa(before)
