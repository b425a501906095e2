"""A pytest plugin for `make sanitize`: a LeakSanitizer report about a native module of maxops fails the run.

The check runs before the interpreter exits, because CPython does not free all of its memory at exit. Only allocations
with a module of maxops among their callers count. These are C++ allocations. tests/bindings/leaks.py counts Python
objects.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import tempfile
import threading

import pytest

OURS = ("maxops/_native", "maxops/_xla", "maxops/_onnxruntime", "maxops/_limits")
KNOWN = 54321  # bytes that are leaked on purpose


def leaks() -> list[str]:
    """Return LeakSanitizer's reports about maxops, each an allocation with its callers."""
    gc.collect()
    # Leaked in threads that end, because the stack or registers of this thread may keep an address. There are several
    # leaks, because a stale copy of an address occasionally hides one.
    for _ in range(8):
        leaking = threading.Thread(target=ctypes.CDLL(None).malloc, args=[KNOWN])
        leaking.start()
        leaking.join()
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
    # The intentional leaks of all checks share one entry, because the callers are the same.
    if not any(int(size) % KNOWN == 0 for size in re.findall(r"Direct leak of ([1-9]\d*) byte", text)):
        raise RuntimeError(f"LeakSanitizer does not detect an intentional leak:\n{text[-2000:]}")
    return [each for each in text.split("\n\n") if "leak of" in each and any(name in each for name in OURS)]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Fail after the last test of a process if memory was leaked."""
    if nextitem is None and (found := leaks()):
        raise AssertionError("\n\n".join(["leaked memory:", *found]))
