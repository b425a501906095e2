"""What the enumerations count and how they fail: with the call that shows it, as a script."""

from __future__ import annotations

import ctypes
import platform
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

import maxops as mo

Array = np.ndarray[Any, np.dtype[Any]]

counted: Counter[str] = Counter()  # calls by what they vary
FUNCTIONS = ("segment_max", "reduce_max", "maximum")


class WrongBitsError(AssertionError):
    """A call of the enumeration gave other bits than the definition's."""


def clauses(call: str) -> str:
    """The clauses that say what calls of these functions give."""
    return " ".join(f"[maxops.{name}.value]" for name in FUNCTIONS if name in call) or f"no function is named: {call}"


def check_place(error: Exception, place: int, ids: Any) -> None:
    """Fail unless an error names a place of the ids, and what is there."""
    if re.search(rf"got {ids[place]} (after \d+ )?at position {place}\b", str(error)) is None:
        fail("segment_max, the error of wrong ids", f"got {ids[place]} at position {place}", str(error), ids=ids)


def fail(call: str, expected: object, actual: object, **inputs: object) -> NoReturn:
    """Raise with all that is needed to make the call again, and the clause that it breaks."""
    with np.printoptions(threshold=10_000):
        given = "\n".join(f"  {name} = {value!r}" for name, value in inputs.items())
    raise WrongBitsError(f"{call} {clauses(call)}\n{given}\n  expected {expected!r}\n  actual   {actual!r}")


def made(maxops: Any, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """What a function gives that is none of the three; where their calls are recorded (`maxops`), it is too."""
    record = getattr(maxops, "call", None)
    return function(*inputs, **options) if record is None else record(function, *inputs, **options)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads for the calls within."""
    before = mo.get_num_threads()
    mo.set_num_threads(count)
    try:
        yield
    finally:
        mo.set_num_threads(before)


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """The processor's mode in which a comparison of floats takes subnormals for zero, by glibc on x86-64.

    Nothing elsewhere: kernels compare integers alone there, or the environment of floats has another layout.
    """
    if platform.machine() != "x86_64" or platform.libc_ver()[0] != "glibc":
        yield
        return
    library = ctypes.CDLL(None)
    before = ctypes.create_string_buffer(32)
    assert library.fegetenv(before) == 0
    modes = int.from_bytes(before.raw[28:], "little") | 0x0040  # MXCSR's "denormals are zero"
    try:
        assert library.fesetenv(before.raw[:28] + modes.to_bytes(4, "little")) == 0
        yield
    finally:
        assert library.fesetenv(before) == 0
