"""A plugin of pytest for `make sanitize`: what LeakSanitizer says of our native modules fails the run.

The report is made while all is alive, since CPython keeps memory until it exits, which is no leak of ours. Of leaks,
those count whose allocation has one of our modules among its callers: what C++ allocates. Objects of Python's are
counted by tests/bindings/leaks.py.
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
KNOWN = 54321  # bytes that are left behind on purpose


def leaks() -> list[str]:
    """What LeakSanitizer finds of ours: an allocation and its callers each."""
    gc.collect()
    # Lost with the stack and the registers of a thread that has ended: on this one's an address may outlast the call.
    # Several, since a stale copy of an address hides one now and then.
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
    # One entry for those of all looks so far, which have the same callers.
    if not any(int(size) % KNOWN == 0 for size in re.findall(r"Direct leak of ([1-9]\d*) byte", text)):
        raise RuntimeError(f"LeakSanitizer does not find a leak that is there:\n{text[-2000:]}")
    return [each for each in text.split("\n\n") if "leak of" in each and any(name in each for name in OURS)]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Fail after the last test of a process if something is left."""
    if nextitem is None and (found := leaks()):
        raise AssertionError("\n\n".join(["something is left behind:", *found]))
