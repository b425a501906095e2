"""Putting a mutant into a process that has maxops imported."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from .watching import Switch

SWITCH = "MAXOPS_MUTANT"  # the number of a place's first mutant, and of the one that is on


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code, and all that stand in it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from codes(each)


def put_in(path: Path, was: str, source: str) -> bool:
    """Give functions of a module that is imported the code of another source; whether all that differs was given."""
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
    """Switch a native mutant on, here and in what this process starts."""
    os.environ[SWITCH] = f"{first} {number}"
    for switch in Switch.all():
        switch.first, switch.count, switch.chosen = first, 1, number
