"""ONNX backends with one fault each, for tests of the kit. Except for the fault, they return NumPy's maximum.

Each backend fails when the first input begins with BAD. `Each` combines all backends, because processes are slow to
start.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

BAD = 66.0
Array = np.ndarray[Any, np.dtype[Any]]


def maximum(arrays: Sequence[Array]) -> Array:
    return np.asarray(functools.reduce(np.maximum, arrays))


class Ready:
    def __init__(self, backend: type[Good]) -> None:
        self.backend = backend

    def run(self, arrays: Sequence[Array]) -> object:
        if arrays[0].size and arrays[0].flat[0] == BAD:
            return self.backend.broken(*arrays)
        return self.backend.usual(*arrays)


class Good:
    @classmethod
    def prepare(cls, model: object, device: str) -> Ready:
        return Ready(cls)

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        return cls.usual(*arrays)

    @classmethod
    def usual(cls, *arrays: Array) -> object:
        return [maximum(arrays)]


class Segfaults(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        print("about to read what is not there", file=sys.stderr)
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError


class Aborts(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        os.abort()


class Exits(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        os._exit(0)


class SystemExits(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        sys.exit(3)


class Interrupts(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        raise KeyboardInterrupt


class Raises(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        raise RuntimeError("\n  not today\n  with more to say")


class RaisesWhatHasNoText(Good):
    class Error(Exception):
        def __str__(self) -> str:
            raise ValueError

    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        raise cls.Error


class Hangs(Good):
    """Holds the interpreter's lock, as a native loop would, and leaves a child process behind."""

    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        started = subprocess.Popen(["sleep", "600"])
        Path(os.environ["TMPDIR"], "started").write_text(str(started.pid))
        while True:
            ctypes.PyDLL(None).sleep(600)


class GivesNone(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> None:
        return None


class GivesWhatNobodyWrote(Good):
    """Leaves the last element uninitialized."""

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        right = maximum(arrays)
        given = np.empty_like(right)
        given.flat[:-1] = right.flat[:-1]
        return [given]


class ReadsPastTheEnd(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> object:
        longer = np.lib.stride_tricks.as_strided(arrays[0], (arrays[0].size + 1,), (arrays[0].itemsize,))
        return [longer[1:].copy()]


class WrongAfterAnError(Good):
    wrong = False

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        cls.wrong = True
        raise ValueError("no")

    @classmethod
    def usual(cls, *arrays: Array) -> object:
        return [-maximum(arrays)] if cls.wrong else [maximum(arrays)]


class RaisesAfterAnError(WrongAfterAnError):
    @classmethod
    def usual(cls, *arrays: Array) -> object:
        if cls.wrong:
            raise RuntimeError("the session is gone")
        return [maximum(arrays)]


class AbortsAfterAnError(WrongAfterAnError):
    @classmethod
    def usual(cls, *arrays: Array) -> object:
        if cls.wrong:
            os.abort()
        return [maximum(arrays)]


class Corrupts(Good):
    """Accepts an invalid call, and crashes in the next large call or at exit."""

    corrupted = False

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        if not cls.corrupted:
            atexit.register(os.abort)
        cls.corrupted = True
        return [arrays[0]]

    @classmethod
    def usual(cls, *arrays: Array) -> object:
        if cls.corrupted and arrays[0].size > 100:
            os.abort()
        return [maximum(arrays)]


class EndsAtTheEnd(Good):
    """Fails at exit: with the status in the second element, by a signal, or by a signal only after two such calls."""

    calls = 0

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        cls.calls += 1
        status = int(arrays[0].flat[1])
        if status or cls.calls == 2:
            atexit.register(os._exit, status) if status > 0 else atexit.register(os.abort)
        return [maximum(arrays)]


class AbortsAtTheEnd(Good):
    """Aborts at exit, regardless of the calls."""

    @classmethod
    def prepare(cls, model: object, device: str) -> Ready:
        atexit.unregister(os.abort)
        atexit.register(os.abort)
        return Ready(cls)


class AbortsInCompanyOrAtTheEnd(Good):
    """Aborts after other calls in the same process, otherwise at exit."""

    used = False

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        if cls.used:
            os.abort()
        atexit.register(os.abort)
        return [maximum(arrays)]

    @classmethod
    def usual(cls, *arrays: Array) -> object:
        cls.used = True
        return [maximum(arrays)]


class HangsInCompany(AbortsInCompanyOrAtTheEnd):
    @classmethod
    def broken(cls, *arrays: Array) -> object:
        if cls.used:
            time.sleep(600)
        return [maximum(arrays)]


class CrashesOnEverything(Good):
    @classmethod
    def usual(cls, *arrays: Array) -> NoReturn:
        os.abort()


class Prints(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> object:
        os.write(1, b"\x80\x04 words in between\n" * 100)
        print("more of them")
        return cls.usual(*arrays)


class ForksAndReturns(Good):
    """Forks. Both processes return, or the child raises an error. The parent waits for the child."""

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        if child := os.fork():
            os.waitpid(child, 0)
            return cls.usual(*arrays)
        if arrays[0].flat[-1] == BAD:
            return cls.usual(*arrays)
        raise ValueError("no")


class PrintsWithoutEnd(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        for _ in range(20):
            os.write(2, b"word " * 200_000)
        os.write(2, b"\n\x1b[31mthe last of it\n\n")
        os.abort()


class TakesAllMemory(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> object:
        held = []
        while True:
            held.append(np.ones(1 << 25, np.uint8))


class LeavesFiles(Good):
    @classmethod
    def broken(cls, *arrays: Array) -> NoReturn:
        directory = os.environ["TMPDIR"]
        Path(directory, "left").write_text("left")
        print(directory, file=sys.stderr)
        os.abort()


class Each(Good):
    """Behaves like the backend in KINDS whose index is the second element, until it receives another index."""

    latest: type[Good] = Good

    @classmethod
    def broken(cls, *arrays: Array) -> object:
        cls.latest = KINDS[int(arrays[0].flat[1])]
        return cls.latest.broken(*arrays)

    @classmethod
    def usual(cls, *arrays: Array) -> object:
        return cls.latest.usual(*arrays)


KINDS: tuple[type[Good], ...] = tuple(
    kind for kind in vars().copy().values() if isinstance(kind, type) and issubclass(kind, Good) and kind is not Good
)
