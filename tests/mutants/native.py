"""Mutants: what the native core's tests notice, of every small change to it.

    python proofs/mutants.py [--only FILE] [--sample N] [--keep FOLDER]

mutate.py finds the places and wraps them in switches, so that one miniature build has every mutant. First each short
enumeration runs once with all mutants watched: which places it reaches, and at which of them the mutant's value would
have been another one. Then each mutant runs, in a process of its own, what can notice it, until something does: other
bits, an exception, a crash, or no end. It prints a rate for each file, and the survivors.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import itertools
import json
import mmap
import random
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import replay
from claims import ROOT, run
from mutation import (
    LIVES,
    TEST_SECONDS,
    Mutant,
    by_tests,
    command_line,
    in_child,
    is_noticed,
    killed,
    report,
    table,
)  # fmt: skip

FILES = (
    "kernels/*.h", "order.h", "scalar.h", "parameters.h", "initial.h", "api*.cpp", "argmax*.cpp", "fold*.*",
    "iterate.*", "reduce.cpp", "scatter.cpp", "segment*.*",
)  # fmt: skip
HEADER = ROOT / "proofs" / "mutants.h"
GUARDED = ROOT / "proofs" / "guarded_new.h"
WALLS = ROOT / "proofs" / "walls.h"
FLAGS = {
    "x86_64_v4": "-msse4.2 -mpopcnt -mavx2 -mbmi -mbmi2 -mavx512f -mavx512bw -mavx512cd -mavx512dq -mavx512vl",
    "x86_64_v3": "-msse4.2 -mpopcnt -mavx2 -mbmi -mbmi2",
    "baseline": "",
}
NEEDS = {"x86_64_v4": "avx512bw", "x86_64_v3": "avx2"}
# Narrowing is of constants that are none any more; what overflows goes on.
# An index past an array that the compiler knows ends the process.
COMPILED = (
    f"-include {HEADER} -w -fpermissive -Wno-narrowing -fwrapv -fsanitize=bounds -fsanitize-undefined-trap-on-error"
)
# The kernels that most processors run first; then what the others have for themselves.
ORDER = ("x86-64-v3", "x86-64-v4", "baseline")
REACHED, DIFFERS = 1, 2
MOST = 4000  # units that a mutant runs, drawn at random: neighbours are alike
EACH_TRIAL = 11  # of planner.py's, this one
CALLS_SECONDS = 2.0  # a unit takes far less, watched, too
# Tests beside the enumerations: of what calls refuse, and of layouts.
TESTS = (
    "test_maximum", "test_reduce_max", "test_segment_max", "test_bad_input", "test_contracts", "test_indices",
    "test_offsets", "test_unsorted_ids", "test_id_types", "test_threads",
)  # fmt: skip

Json = dict[str, Any]


def instruction_sets() -> list[str]:
    """Those with source of their own that this processor runs, as the build names them."""
    there = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    return [isa for isa in FLAGS if NEEDS.get(isa, "") in {"", *there}]


# ---------------------------------------------------------------------- the build


@dataclass(frozen=True)
class Switched(Mutant):
    """One change, in a place with a switch."""

    first: int  # the number that its place's switch goes by


def build(folder: Path, files: Iterable[str], isas: list[str], flags: str = "") -> list[Switched]:
    """The mutants, and a miniature build that has them all, in folder/src."""
    import mutate  # noqa: PLC0415  (needs libclang)

    native = ROOT / "native"
    names = sorted({str(path.relative_to(native)) for pattern in files for path in native.glob(pattern)})
    found = mutate.Found()
    finder = mutate.Finder(native, found, names)
    own = ["-xc++", "-std=c++17", "-DMAXOPS_MINIATURE", "-resource-dir", mutate.resource_dir()]
    for isa in isas:
        for source in sorted(native.glob("kernels_*.cpp")):
            finder.parse(source, [*own, f"-DMAXOPS_ISA={isa}", *FLAGS[isa].split()])
    for name in names:
        if name.endswith(".cpp"):
            finder.parse(native / name, own)
    for part in ("native", "src", "tests"):
        shutil.copytree(ROOT / part, folder / part, dirs_exist_ok=True)
    for part in ("CMakeLists.txt", "pyproject.toml"):
        shutil.copy2(ROOT / part, folder / part)
    for name, more in (
        ("native/sources.cpp", f'MutantSwitch maxops_mutants;\n#include "{GUARDED}"'),
        ("CMakeLists.txt", f"target_compile_options(options INTERFACE {COMPILED} {flags})"),
    ):
        path = folder / name
        path.write_text(f"{path.read_text(encoding='utf-8')}\n{more}\n", encoding="utf-8")
    scratch = folder / "native" / "scratch.h"
    scratch.write_text(walled(scratch.read_text(encoding="utf-8")), encoding="utf-8")
    numbered = list(mutate.numbered(found.places.values()))
    while True:
        for name in names:
            own_places = [each for each in numbered if each[1].file == name]
            wrapped = mutate.wrapped((native / name).read_bytes(), own_places)
            if (folder / "native" / name).read_bytes() != wrapped:
                (folder / "native" / name).write_bytes(wrapped)
        said = _compile(folder, isas)
        if not said:
            break
        wrong = _lines_of_errors(said, folder / "native")
        lines = {name: mutate.line_starts((native / name).read_bytes()) for name, _ in wrong}
        bad = [
            place for _, place in numbered
            if any(place.file == name and mutate.is_on_line(lines[name], place, line) for name, line in wrong)
        ]  # fmt: skip
        if not bad:
            raise RuntimeError(said[-6000:])
        print(f"{len(bad)} places do not compile: {sorted(wrong)}", flush=True)
        found.left_out |= {(place.file, place.start): "does not compile" for place in bad}
        numbered = [each for each in numbered if each[1] not in bad]  # the others keep their numbers
    mutants = []
    for first, place in numbered:
        text_of = (native / place.file).read_bytes()
        line = text_of.count(b"\n", 0, place.start) + 1
        words = " ".join(text_of[place.start : place.end].decode().split())
        mutants += [
            Switched(first + k, place.file, place.function, line, words, place.kind, change, first)
            for k, change in enumerate(place.changes)
        ]
    left_out = Counter(found.left_out.values())
    (folder / "mutants.json").write_text(
        json.dumps({"left_out": left_out, "mutants": [vars(mutant) for mutant in mutants]}, indent=0), encoding="utf-8"
    )
    return mutants


def walled(scratch: str) -> str:
    """scratch.h with each array before a page that nobody may touch; but the kernels' own, whose start is aligned."""
    for pattern, replacement, times in (
        (r"#pragma once", f'#pragma once\n#include "{WALLS}"', 1),
        (r"alignas\(64\) ([\w:]+) (?!kernel\b)(\w+)(\[[^;]+\]);", r"maxops_walls::Walled<\1\3> \2;", 13),
        (r"kScratchAlignment = 64", "kScratchAlignment = maxops_walls::kPage", 1),
        (r"return \*reinterpret_cast<Buffers\*>\(scratch_bytes\(\)\)", "return maxops_walls::walled<Buffers>()", 1),
    ):
        scratch, count = re.subn(pattern, replacement, scratch)
        if count != times:
            raise RuntimeError(f"scratch.h has {pattern} {count} times, not {times}")
    return scratch


def _compile(folder: Path, isas: list[str]) -> str:
    """What the compiler said of errors, if there are any."""
    place = folder / "build"
    defines = (
        "CMAKE_BUILD_TYPE=Debug", "MAXOPS_MINIATURE=ON", f"MAXOPS_ISAS={';'.join(isas)}",
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
    """Runs units of tests, with mutants watched or one switched on, in a process each.

    A unit says whether something is noticed; it does the same whenever it runs without a mutant.
    """

    def __init__(
        self,
        native: ModuleType,
        count: int,
        units: list[Callable[[], bool]],
        seconds: float,
        *,
        all_must_pass: bool = True,
    ) -> None:
        self.native, self.count, self.units, self.seconds = native, count, units, seconds
        self.all_must_pass = all_must_pass  # without a mutant; else those that do not are left out
        self.switch = Switch.in_dll(ctypes.CDLL(native.__file__), "maxops_mutants")
        gc.collect()
        gc.freeze()  # or each process would copy what the collector touches
        gc.disable()

    def is_noticed(self, which: Iterable[int]) -> bool:
        """Whether one of these units notices something."""
        return is_noticed((self.units[number] for number in which), self.seconds)

    def watch(self, isa: str) -> tuple[Any, bytes]:
        """Which mutants differ in each unit, as bits, and which are reached at all."""
        row = (self.count + 8) // 8
        shared = mmap.mmap(-1, row * len(self.units))
        every = mmap.mmap(-1, self.count + 1)
        failing = mmap.mmap(-1, len(self.units))

        def act() -> bool:
            assert self.native.use_isa(isa)
            seen = np.zeros(self.count + 64, np.uint8)
            reached = np.frombuffer(every, np.uint8)
            for number in range(len(self.units)):
                self.switch.count = 0
                if self.is_noticed([number]):  # with nothing switched on
                    if self.all_must_pass:
                        raise RuntimeError(f"unit {number} notices something where there is nothing")
                    failing[number] = 1
                    continue
                self.switch.first, self.switch.count, self.switch.chosen = 0, 1 << 31, 0
                self.switch.seen = seen.ctypes.data
                seen[:] = 0
                if self.is_noticed([number]):
                    raise RuntimeError(f"unit {number} notices that it is watched")
                differs = np.packbits((seen[: self.count + 1] & DIFFERS) != 0)
                shared[number * row : (number + 1) * row] = differs.tobytes()
                reached |= seen[: self.count + 1]
            return False

        if (code := in_child(act)) != 0:
            raise RuntimeError(f"the units on {isa} ended with {code} without a mutant")
        if left_out := sum(bytes(failing)):
            print(f"{left_out} of {len(self.units)} tests want the ordinary constants, and are left out", flush=True)
        return np.frombuffer(bytes(shared), np.uint8).reshape(-1, row), bytes(every)

    def kill(self, mutant: Switched, isa: str, which: list[int]) -> int:
        """What the process ends with that runs these units; 0 if none of them notices."""

        def act() -> bool:
            assert self.native.use_isa(isa)
            self.switch.first, self.switch.count, self.switch.chosen = mutant.first, 1, mutant.number
            return self.is_noticed(which)

        return in_child(act)


def calls() -> list[Callable[[], bool]]:
    """The calls of the short enumerations, some at a time."""
    import maxops  # noqa: PLC0415
    from exhaustive.sections import MODULES, SHORT  # noqa: PLC0415

    recorder = replay.Recorder(maxops)
    for name, task in SHORT.items():
        began, before = time.perf_counter(), len(recorder.calls)
        recorder.record(MODULES, task)
        print(f"{name}: {len(recorder.calls) - before} calls, {time.perf_counter() - began:.1f} s", flush=True)

    def unit(chunk: list[replay.Call]) -> bool:
        maxops.set_num_threads(chunk[0].threads)
        return any(call.make() != call.expected for call in chunk)

    return [functools.partial(unit, chunk) for chunk in replay.chunks(recorder.calls)]


def arguments() -> list[Callable[[], bool]]:
    """Some of the calls by which planner.py holds the rules of arguments, a few at a time, as they are shipped."""
    import planner  # noqa: PLC0415

    import maxops  # noqa: PLC0415

    made = []
    maxops.set_num_threads(1)
    for says in planner.CLAIMS.values():
        for row, args, options, _ in itertools.islice(says.trials(), 0, None, EACH_TRIAL):
            shipped = planner.ways_of(row)[0]
            given = functools.partial(planner.seen, shipped, args, options, says.with_values)
            made.append((given, given()))

    def unit(chunk: list[tuple[Callable[[], planner.Seen], planner.Seen]]) -> bool:
        maxops.set_num_threads(1)
        return any(given() != expected for given, expected in chunk)

    return [functools.partial(unit, made[at : at + replay.CHUNK]) for at in range(0, len(made), replay.CHUNK)]


def fate(runner: Runner, mutant: Switched, seen: dict[str, tuple[Any, bytes]]) -> str:
    """What becomes of a mutant: killed (and by what), or why it lives."""
    lives = "not reached"
    for isa, (differs, reached) in seen.items():
        which = np.flatnonzero(differs[:, mutant.number // 8] >> (7 - mutant.number % 8) & 1)
        if reached[mutant.number] and lives == "not reached":
            lives = "never differs"
        if not len(which):
            continue
        lives = "survived"
        which = np.random.default_rng(mutant.number).permutation(which)[:MOST]
        code = runner.kill(mutant, isa, which.tolist())
        if code:
            return killed(code)
    return lives


def judge(folder: Path, chosen: list[Switched], isas: Iterable[str], runner: Runner) -> dict[int, str]:
    """The fate of each chosen mutant; what a run before this one killed stays so, in a folder that is kept."""
    path = folder / "fates.json"
    fates = {int(number): was for number, was in json.loads(path.read_text()).items()} if path.exists() else {}
    todo = [mutant for mutant in chosen if not fates.get(mutant.number, "").startswith("killed")]
    if todo:
        began = time.perf_counter()
        seen = {isa: runner.watch(isa) for isa in isas}
        print(f"{len(runner.units)} units watched in {time.perf_counter() - began:.0f} s", flush=True)
        for count, mutant in enumerate(todo, 1):
            was, now = fates.get(mutant.number, LIVES[0]), fate(runner, mutant, seen)
            fates[mutant.number] = max(was, now, key=LIVES.index) if now in LIVES else now
            if count % 200 == 0 or count == len(todo):
                path.write_text(json.dumps(fates))
                lives = sum(not fates[each.number].startswith("killed") for each in todo[:count])
                print(f"{count} of {len(todo)}, {lives} live, {time.perf_counter() - began:.0f} s", flush=True)
    return {mutant.number: fates[mutant.number] for mutant in chosen}


def run_mutants(folder: Path, only: str, sample: int, *, tests: bool = True) -> tuple[list[str], bool]:
    """Build if the folder has none, run, and give the lines to print and whether enough are killed."""
    isas = instruction_sets()
    if not (folder / "mutants.json").exists():
        build(folder, FILES, isas)
    found = json.loads((folder / "mutants.json").read_text(encoding="utf-8"))
    mutants = [Switched(**each) for each in found["mutants"]]
    chosen = [mutant for mutant in mutants if only in mutant.file]
    if sample:
        chosen = random.Random(15).sample(chosen, min(sample, len(chosen)))
    here = [isa for isa in ORDER if isa.replace("x86-64-", "x86_64_") in isas]
    sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
    from maxops import _native  # noqa: PLC0415

    count = max(mutant.number for mutant in mutants)
    fates = judge(folder, chosen, here, Runner(_native, count, [*calls(), *arguments()], CALLS_SECONDS))
    left = [mutant for mutant in chosen if not fates[mutant.number].startswith("killed")]
    if left and tests:
        by_tests(
            folder,
            TESTS,
            lambda units: fates.update(
                judge(folder, left, here[:1], Runner(_native, count, units, TEST_SECONDS, all_must_pass=False))
            ),
        )
    return table(chosen, fates, found["left_out"])


def main() -> int:
    """Run, and say what lives."""
    parser = command_line(__doc__ or "")
    parser.add_argument("--calls", action="store_true", help="the enumerations' calls alone")
    options = parser.parse_args()
    return report(options, lambda folder: run_mutants(folder, options.only, options.sample, tests=not options.calls))


if __name__ == "__main__":
    sys.exit(main())
