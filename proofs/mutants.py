"""Mutants: what the native core's tests notice, of every small change to it.

    python proofs/mutants.py [--only FILE] [--sample N] [--keep FOLDER]

mutate.py finds the places and wraps them in switches, so that one miniature build has every mutant. First each short
enumeration runs once with all mutants watched: which places it reaches, and at which of them the mutant's value would
have been another one. Then each mutant runs, in a process of its own, what can notice it, until something does: other
bits, an exception, a crash, or no end. A survivor has a reason in mutants.toml, or stands open.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import mmap
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import ROOT, Claim, run

FILES = (
    "kernels/*.h", "order.h", "scalar.h", "parameters.h", "initial.h", "api*.cpp", "argmax*.cpp", "fold*.*", "iterate.*",
    "reduce.cpp", "scatter.cpp", "segment*.*",
)  # fmt: skip
HEADER, REASONS = ROOT / "proofs" / "mutants.h", ROOT / "proofs" / "mutants.toml"
FLAGS = {
    "x86_64_v4": "-msse4.2 -mpopcnt -mavx2 -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl",
    "x86_64_v3": "-msse4.2 -mpopcnt -mavx2 -mbmi -mbmi2",
    "baseline": "",
}
NEEDS = {"x86_64_v4": "avx512bw", "x86_64_v3": "avx2"}
# Narrowing is of constants that are none any more; what overflows goes on.
COMPILED = f'-include "{HEADER}" -w -fpermissive -Wno-narrowing -fwrapv'
# The kernels that most processors run first; then what the others have for themselves.
ORDER = ("x86-64-v3", "x86-64-v4", "baseline")
REACHED, DIFFERS = 1, 2
MEMORY = 6 << 30

Json = dict[str, Any]


def instruction_sets() -> list[str]:
    """Those with source of their own that this processor runs, as the build names them."""
    there = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    return [isa for isa in FLAGS if NEEDS.get(isa, "") in {"", *there}]


# ---------------------------------------------------------------------- the build


@dataclass(frozen=True)
class Mutant:
    """One change."""

    number: int
    first: int  # the number that its place's switch goes by
    file: str
    function: str
    line: int
    text: str
    kind: str
    change: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What a reason is found by."""
        return self.file, self.function, self.text


def build(folder: Path, files: Iterable[str]) -> list[Mutant]:
    """The mutants, and a miniature build that has them all, in folder/src."""
    import mutate  # noqa: PLC0415  (needs libclang)

    native = ROOT / "native"
    names = sorted({str(path.relative_to(native)) for pattern in files for path in native.glob(pattern)})
    found = mutate.Found()
    finder = mutate.Finder(native, found, names)
    own = ["-xc++", "-std=c++17", "-DMAXOPS_MINIATURE", "-resource-dir", mutate.resource_dir()]
    for isa in instruction_sets():
        for source in sorted(native.glob("kernels_*.cpp")):
            finder.parse(source, [*own, f"-DMAXOPS_ISA={isa}", *FLAGS[isa].split()])
    for name in names:
        if name.endswith(".cpp"):
            finder.parse(native / name, own)
    places = dict(found.places)
    for part in ("native", "src", "tests", "CMakeLists.txt"):
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, folder / part, **({"dirs_exist_ok": True} if (ROOT / part).is_dir() else {}))
    for name, more in (
        ("native/sources.cpp", "MutantSwitch maxops_mutants;"),
        ("CMakeLists.txt", f"target_compile_options(options INTERFACE {COMPILED})"),
    ):
        path = folder / name
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{more}\n", encoding="utf-8")
    while True:
        numbered = list(mutate.numbered(places.values()))
        for name in names:
            wrapped = mutate.wrapped((native / name).read_bytes(), [each for each in numbered if each[1].file == name])
            if (folder / "native" / name).read_bytes() != wrapped:
                (folder / "native" / name).write_bytes(wrapped)
        said = _compile(folder)
        if not said:
            break
        wrong = _lines_of_errors(said, folder / "native")
        lines = {name: mutate.line_starts((native / name).read_bytes()) for name, _ in wrong}
        bad = {
            key for key, place in places.items()
            if any(place.file == name and mutate.is_on_line(lines[name], place, line) for name, line in wrong)
        }  # fmt: skip
        if not bad:
            raise RuntimeError(said[-6000:])
        print(f"{len(bad)} places do not compile: {sorted(wrong)}", flush=True)
        for key in bad:
            found.left_out[key[0], key[1]] = "does not compile"
            del places[key]
    mutants = []
    for first, place in numbered:
        text_of = (native / place.file).read_bytes()
        line = text_of.count(b"\n", 0, place.start) + 1
        words = " ".join(text_of[place.start : place.end].decode().split())
        mutants += [
            Mutant(first + k, first, place.file, place.function, line, words, place.kind, change)
            for k, change in enumerate(place.changes)
        ]
    left_out = Counter(found.left_out.values())
    (folder / "mutants.json").write_text(
        json.dumps({"left_out": left_out, "mutants": [vars(mutant) for mutant in mutants]}, indent=0), encoding="utf-8"
    )
    return mutants


def _compile(folder: Path) -> str:
    """What the compiler said of errors, if there are any."""
    place = folder / "build"
    defines = (
        "CMAKE_BUILD_TYPE=Debug", "MAXOPS_MINIATURE=ON", f"MAXOPS_ISAS={';'.join(instruction_sets())}",
        f"Python_EXECUTABLE={sys.executable}",
    )  # fmt: skip
    run(["cmake", "-S", str(folder), "-B", str(place), *(f"-D{each}" for each in defines)])
    done = run(["cmake", "--build", str(place), "-j2", "--", "-k"], check=False)
    if done.returncode != 0:
        return done.stdout + done.stderr
    for library in place.glob("_*.so"):
        shutil.copy(library, folder / "src" / "maxops" / library.name)
    return ""


def _lines_of_errors(said: str, native: Path) -> set[tuple[str, int]]:
    """File and line of each error, or of what asked for the template that it is in."""
    found = set()
    for block in re.split(r"(?=^[^\n]*: error: )", said, flags=re.M)[1:]:
        # (what a template was asked by comes before the error in gcc's text, too)
        for path, line in re.findall(r"^(/[^:\n]+):(\d+):\d+:", block, flags=re.M):
            if native in Path(path).parents:
                found.add((str(Path(path).relative_to(native)), int(line)))
                break
    return found


# ---------------------------------------------------------------------- running


class Switch(ctypes.Structure):
    """MutantSwitch of mutants.h."""

    _fields_ = (
        ("first", ctypes.c_uint),
        ("count", ctypes.c_uint),
        ("chosen", ctypes.c_uint),
        ("seen", ctypes.c_void_p),
    )


class Runner:
    """Runs enumerations of the build, with mutants watched or one switched on, in a process each."""

    def __init__(self, folder: Path, count: int) -> None:
        sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
        from exhaustive.sections import SECTIONS, SHORT  # noqa: PLC0415

        from maxops import _native  # noqa: PLC0415

        self.tasks: dict[str, Callable[[], None]] = {**SHORT, **SECTIONS}
        self.short = tuple(SHORT)
        self.native = _native
        self.switch = Switch.in_dll(ctypes.CDLL(_native.__file__), "maxops_mutants")
        self.count = count
        self.seconds: dict[str, float] = {}

    def child(self, act: Callable[[], None], limit: float) -> int:
        """What a process that does this ends with: 0, 1 if a check fails, else a signal's number, negative."""
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(1, 2)
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
                signal.setitimer(signal.ITIMER_PROF, limit)
                signal.setitimer(signal.ITIMER_REAL, 10 + 8 * limit)
                act()
                code = 0
            except BaseException:  # noqa: BLE001  (whatever it is, the tests noticed)
                code = 1
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def watch(self, isa: str, task: str) -> bytes:
        """What of each mutant is seen in a task; and how long the task takes without."""

        def act() -> None:
            assert self.native.use_isa(isa)
            self.tasks[task]()

        began = time.process_time(), os.times()
        code = self.child(act, 600)
        after = os.times()
        took = after.children_user + after.children_system - began[1].children_user - began[1].children_system
        self.seconds[task] = max(self.seconds.get(task, 0.0), took)
        if code != 0:
            raise RuntimeError(f"{task} on {isa} ended with {code} without a mutant")
        with mmap.mmap(-1, self.count + 64) as seen:
            address = ctypes.addressof(ctypes.c_char.from_buffer(seen))

            def watched() -> None:
                self.switch.first, self.switch.count, self.switch.chosen, self.switch.seen = 0, 1 << 31, 0, address
                act()

            code = self.child(watched, 1200)
            found = bytes(seen[: self.count + 1])
        if code != 0:
            raise RuntimeError(f"{task} on {isa} ended with {code} as it was watched")
        return found

    def kill(self, mutant: Mutant, isa: str, tasks: list[str]) -> int:
        """What the first task that notices ends with; 0 if none does."""

        def act() -> None:
            assert self.native.use_isa(isa)
            self.switch.first, self.switch.count, self.switch.chosen = mutant.first, 1, mutant.number
            for task in tasks:
                signal.setitimer(signal.ITIMER_PROF, 2 + 2 * self.seconds[task])
                self.tasks[task]()

        return self.child(act, 60)
