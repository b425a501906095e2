"""One check on every instruction set of this machine, where what is expected is worth working out once for all."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from maxops import _native

# x86-64-v2's kernels are the baseline's source for other instructions: `pytest -m exhaustive` looks at them.
OWN_SOURCE = [name for name in _native.isas() if name != "x86-64-v2"]
EACH = [pytest.param(name, marks=() if name in OWN_SOURCE else pytest.mark.exhaustive) for name in _native.isas()]

# For tests of modules that use the fixture `isa`, which then is the one in use and no parameter.
by_itself = pytest.mark.parametrize("isa", [_native.isa()], indirect=True)


def on_each_isa(check: Callable[[], object]) -> None:
    """Call it once on each; an error says on which, and afterwards the one is in use that was."""
    before = _native.isa()
    try:
        for name in _native.isas():
            assert _native.use_isa(name)
            check()
    except Exception as error:
        error.add_note(f"on {_native.isa()}")
        raise
    finally:
        assert _native.use_isa(before)
