"""On which instruction sets a test of kernels runs, and one check on each where its expectation is dear."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from maxops import _native

# x86-64-v2's kernels are the baseline's source for other instructions.
OWN_SOURCE = [name for name in _native.isas() if name != "x86-64-v2"]


# The one in use, which MAXOPS_ISA names; the others in `pytest -m exhaustive`. On all of them at once `test_runs` and
# `test_sizes` cross every boundary of the kernels, and `on_each_isa` tries what hypothesis finds.
EACH = [
    _native.isa(),
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in OWN_SOURCE if name != _native.isa()),
]


Test = TypeVar("Test", bound=Callable[..., None])


def on_each_source(test: Test) -> Test:
    """Call a test of what the kernels' source alone decides, and cheap, once on each of them."""
    marked: Test = pytest.mark.parametrize("isa", OWN_SOURCE, indirect=True)(pytest.mark.usefixtures("isa")(test))
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
