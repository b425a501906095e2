"""Which tests reach which mutants: lines of Python that run, places of a native module whose values would differ."""

from __future__ import annotations

import ctypes
import importlib
import mmap
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

DIFFERS = 2  # kDiffers of switches.h


class Watch(Protocol):
    """What notes which mutants a test reaches."""

    def start(self) -> None:
        """Before maxops is imported, and again before tests run."""

    def before(self, test: str) -> None:
        """Before each test."""

    def after(self, test: str) -> None:
        """After it."""

    def found(self) -> dict[str, list[str]]:
        """The tests by what they reach; "" is what is reached outside of tests."""


class Lines:
    """Notes the lines of some Python sources of a tree."""

    def __init__(self, tree: Path, files: Sequence[str]) -> None:
        self.paths = {file: str(tree / file) for file in files}

    def start(self) -> None:
        """Count from here on."""
        import coverage  # noqa: PLC0415  (only this needs it)

        self.counted = coverage.Coverage(
            data_file=None, config_file=False, include=[*self.paths.values()], messages=False
        )
        self.counted.set_option("run:disable_warnings", ["no-data-collected"])  # as where only tests import the files
        self.counted.start()

    def before(self, test: str) -> None:
        """The lines from here on are this test's."""
        self.counted.switch_context(test)

    def after(self, test: str) -> None:
        """The next ones are nobody's."""
        self.counted.switch_context("")

    def found(self) -> dict[str, list[str]]:
        """The tests by file and line."""
        self.counted.stop()
        return {
            f"{file}:{line}": contexts
            for file, path in self.paths.items()
            for line, contexts in self.counted.get_data().contexts_by_lineno(path).items()
        }


class Switch(ctypes.Structure):
    """As in switches.h."""

    _fields_ = (
        ("first", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("chosen", ctypes.c_uint),
        ("seen", ctypes.c_void_p),
    )

    @classmethod
    def all(cls) -> Iterator[Switch]:
        """Those of the native modules of the maxops that is imported."""
        for path in sorted(Path(importlib.import_module("maxops").__file__ or "").parent.glob("_*.so")):
            with suppress(ValueError):  # has none
                yield cls.in_dll(ctypes.CDLL(str(path)), "maxops_mutants")


class Differences:
    """Notes the mutants of a native module at whose place a test's values would be others."""

    def __init__(self, last: int) -> None:
        self.seen = mmap.mmap(-1, last + 1)  # that children of a test write into, too
        self.reached: defaultdict[str, list[str]] = defaultdict(list)
        self.is_imported = False

    def start(self) -> None:
        """Note from here on: at first an import, whose modules are not there yet."""
        if self.is_imported:
            for switch in Switch.all():
                switch.first, switch.count, switch.chosen = 0, 0xFFFFFFFF, 0
                switch.seen = ctypes.addressof(ctypes.c_char.from_buffer(self.seen))
        self.is_imported = True

    def before(self, test: str) -> None:
        """Nothing was seen yet."""
        self.seen[:] = bytes(len(self.seen))

    def after(self, test: str) -> None:
        """What was."""
        for number, how in enumerate(self.seen[:]):
            if how & DIFFERS:
                self.reached[str(number)].append(test)

    def found(self) -> dict[str, list[str]]:
        """The tests by the mutant's number."""
        return dict(self.reached)
