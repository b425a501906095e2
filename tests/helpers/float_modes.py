"""The processor's modes of computing with floats."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def float_modes(bits: int) -> Iterator[None]:
    """This thread's MXCSR with these bits set, by way of the C library's environment of 32 bytes."""
    library = ctypes.CDLL(None)
    before, changed = ctypes.create_string_buffer(32), ctypes.create_string_buffer(32)
    assert library.fegetenv(before) == 0
    modes = int.from_bytes(before.raw[28:], "little") | bits
    changed.raw = before.raw[:28] + modes.to_bytes(4, "little")
    assert library.fesetenv(changed) == 0
    try:
        yield
    finally:
        assert library.fesetenv(before) == 0
