"""Floating-point modes of the processor."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def float_modes(bits: int) -> Iterator[None]:
    """Set bits of this thread's MXCSR through the C library's 32-byte floating-point environment."""
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
