"""Selects the instruction sets of kernel tests, and repeats a check on each of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from maxops import _native

ISAS = _native.isas()


# The instruction set in use, which MAXOPS_ISA selects; `pytest -m exhaustive` adds the others. `test_runs` and
# `test_sizes` cross every boundary of the kernels on all of them, and `on_each_isa` repeats hypothesis's examples.
EACH = [
    _native.isa(),
    *(pytest.param(name, marks=pytest.mark.exhaustive) for name in ISAS if name != _native.isa()),
]


Test = TypeVar("Test", bound=Callable[..., None])


def on_each_source(test: Test) -> Test:
    """Run a cheap test on each instruction set."""
    marked: Test = pytest.mark.parametrize("isa", ISAS, indirect=True)(pytest.mark.usefixtures("isa")(test))
    return marked


# For tests in modules that use the fixture `isa`: only the instruction set in use.
by_itself = pytest.mark.parametrize("isa", [_native.isa()], indirect=True)


def on_each_isa(check: Callable[[], object]) -> None:
    """Call a check on each instruction set. Errors name the instruction set, which is restored afterwards."""
    before = _native.isa()
    try:
        for name in ISAS:
            assert _native.use_isa(name)
            check()
    except Exception as error:
        error.add_note(f"on {_native.isa()}")
        raise
    finally:
        assert _native.use_isa(before)
