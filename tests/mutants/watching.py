"""Records which tests reach which mutants: Python lines that run, and native places whose value would differ."""

from __future__ import annotations

import ctypes
import importlib
import mmap
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

DIFFERS = 2  # kDiffers of switches.h
SEEN = "MAXOPS_MUTANTS_SEEN"  # the file in which subprocesses of a test record native mutants


class Watch(Protocol):
    """Records which mutants a test reaches."""

    def start(self) -> None:
        """Start recording: called before maxops is imported, and again before tests run."""

    def before(self, test: str) -> None:
        """Start recording a test."""

    def after(self, test: str) -> None:
        """Stop recording a test."""

    def found(self) -> dict[str, list[str]]:
        """Return the tests that reach each key. The test "" means code that runs outside of tests."""


class Lines:
    """Records the lines that run in some Python files of a tree."""

    def __init__(self, tree: Path, files: Sequence[str]) -> None:
        self.paths = {file: str(tree / file) for file in files}

    def start(self) -> None:
        import coverage  # noqa: PLC0415  (only this needs it)

        self.counted = coverage.Coverage(
            data_file=None, config_file=False, include=[*self.paths.values()], messages=False
        )
        self.counted.set_option("run:disable_warnings", ["no-data-collected"])  # if only tests import the files
        self.counted.start()

    def before(self, test: str) -> None:
        self.counted.switch_context(test)

    def after(self, test: str) -> None:
        self.counted.switch_context("")

    def found(self) -> dict[str, list[str]]:
        self.counted.stop()
        return {
            f"{file}:{line}": contexts
            for file, path in self.paths.items()
            for line, contexts in self.counted.get_data().contexts_by_lineno(path).items()
        }


class Switch(ctypes.Structure):
    """The struct MutantSwitch of switches.h."""

    _fields_ = (
        ("first", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("chosen", ctypes.c_uint),
        ("seen", ctypes.c_void_p),
    )

    @classmethod
    def all(cls) -> Iterator[Switch]:
        """Yield the switches of the imported package's native modules."""
        for path in sorted(Path(importlib.import_module("maxops").__file__ or "").parent.glob("_*.so")):
            with suppress(ValueError):  # the module has no switch
                yield cls.in_dll(ctypes.CDLL(str(path)), "maxops_mutants")


class Differences:
    """Records the native mutants that would change a value in a test."""

    def __init__(self, last: int) -> None:
        self.file = tempfile.NamedTemporaryFile()  # noqa: SIM115  (shared with all processes of a test)
        self.file.truncate(last + 1)
        self.seen = mmap.mmap(self.file.fileno(), last + 1)
        self.reached: defaultdict[str, list[str]] = defaultdict(list)
        self.is_imported = False

    def start(self) -> None:
        """Start recording. The first call comes before the import, when no module exists yet."""
        if self.is_imported:
            for switch in Switch.all():
                switch.first, switch.count, switch.chosen = 0, 0xFFFFFFFF, 0
                switch.seen = ctypes.addressof(ctypes.c_char.from_buffer(self.seen))
            os.environ[SEEN] = self.file.name
        self.is_imported = True

    def before(self, test: str) -> None:
        self.seen[:] = bytes(len(self.seen))

    def after(self, test: str) -> None:
        for number, how in enumerate(self.seen[:]):
            if how & DIFFERS:
                self.reached[str(number)].append(test)

    def found(self) -> dict[str, list[str]]:
        return dict(self.reached)
