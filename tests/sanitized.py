"""A plugin of pytest for `make sanitize`: what LeakSanitizer says of our native modules fails the run.

The report is made while all is alive, since CPython keeps memory until it exits, which is no leak of ours. Of leaks,
those count whose allocation has one of our modules among its callers: what C++ allocates. Objects of Python's are
counted by tests/leaks.py.
"""

from __future__ import annotations

import ctypes
import gc
import os
import tempfile

import pytest

OURS = ("maxops/_native", "maxops/_xla", "maxops/_onnxruntime", "maxops/_limits")
KNOWN = 54321  # bytes that are left behind on purpose


def leaks() -> list[str]:
    """What LeakSanitizer finds of ours: an allocation and its callers each."""
    gc.collect()
    known = ctypes.CDLL(None).malloc(KNOWN) == 0  # its address is lost
    with tempfile.TemporaryFile() as report:
        kept = os.dup(2)
        os.dup2(report.fileno(), 2)
        try:
            ctypes.CDLL(None).__lsan_do_recoverable_leak_check()
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        report.seek(0)
        text = report.read().decode(errors="replace")
    if known or f"Direct leak of {KNOWN} byte(s)" not in text:
        raise RuntimeError(f"LeakSanitizer does not find a leak that is there:\n{text[-2000:]}")
    return [each for each in text.split("\n\n") if "leak of" in each and any(name in each for name in OURS)]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Fail after the last test of a process if something is left."""
    if nextitem is None and (found := leaks()):
        raise AssertionError("\n\n".join(["something is left behind:", *found]))
