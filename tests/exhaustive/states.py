"""The counters of the enumerations, and their failures, which print the call with its inputs."""

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

counted: Counter[str] = Counter()  # the number of calls of each kind
FUNCTIONS = ("segment_max", "reduce_max", "maximum")


class WrongBitsError(AssertionError):
    """Raised if the bits of a result differ from the definition."""


def clauses(call: str) -> str:
    """Return the ids of the clauses that define the results of the functions in a call."""
    return " ".join(f"[maxops.{name}.value]" for name in FUNCTIONS if name in call) or f"no function is named: {call}"


def check_place(error: Exception, place: int, ids: Any) -> None:
    """Fail unless an error names this position of the ids and the id there."""
    if re.search(rf"got {ids[place]} (after \d+ )?at position {place}\b", str(error)) is None:
        fail("segment_max, the error of wrong ids", f"got {ids[place]} at position {place}", str(error), ids=ids)


def fail(call: str, expected: object, actual: object, **inputs: object) -> NoReturn:
    """Raise an error with everything that is needed to repeat the call, and with the violated clause."""
    with np.printoptions(threshold=10_000):
        given = "\n".join(f"  {name} = {value!r}" for name, value in inputs.items())
    raise WrongBitsError(f"{call} {clauses(call)}\n{given}\n  expected {expected!r}\n  actual   {actual!r}")


def made(maxops: Any, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Call a function that is not one of FUNCTIONS. A recorder of calls that replaces `maxops` records it, too."""
    record = getattr(maxops, "call", None)
    return function(*inputs, **options) if record is None else record(function, *inputs, **options)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Set the number of threads in a context."""
    before = mo.get_num_threads()
    mo.set_num_threads(count)
    try:
        yield
    finally:
        mo.set_num_threads(before)


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Set the processor's mode "denormals are zero" in a context, through glibc on x86-64.

    Elsewhere, this does nothing: the kernels compare only integers, or the floating-point environment differs.
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
