"""Applies a mutant in a process that has already imported maxops."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .watching import Switch

SWITCH = "MAXOPS_MUTANT"  # the numbers of a place's first mutant and of the enabled mutant


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def put_in(path: Path, was: str, source: str) -> bool:
    """Replace the code of an imported module's functions with that of another source. Return False on failure."""
    old, new = (list(codes(compile(text, str(path), "exec", dont_inherit=True))) for text in (was, source))
    if [each.co_qualname for each in old] != [each.co_qualname for each in new]:
        return False
    changed = {a: b for a, b in zip(old[1:], new[1:], strict=True) if a != b}
    functions = [
        each for each in gc.get_objects() if isinstance(each, FunctionType) and each.__code__ in changed
        and each.__code__.co_filename == str(path)
    ]  # fmt: skip
    for each in functions:
        each.__code__ = changed[each.__code__]
    return bool(functions)


def switch_on(first: int, number: int) -> None:
    """Enable a native mutant in this process and in its subprocesses."""
    os.environ[SWITCH] = f"{first} {number}"
    for switch in Switch.all():
        switch.first, switch.count, switch.chosen = first, 1, number
