"""Mutants: small changes to what a user's call goes through, one by one, and whether the tests notice.

    PYTHONPATH=tests python -m mutants [FILE ...] [--sample 40] [--cases 60] [--all] [--keep FOLDER] [--json PATH]

Of each file some changes are drawn, twice as many where the rate is near its bound. The tests of a file are those that
table.py names and that reach the change, of each function some cases; where three seconds of them notice too few, what
lives has 15, then 60. Prints a rate for each file, and the survivors; ends with 1 if a rate is below 85 %. Mutants that
do the same as the source count as alive.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import places_python, running, table, watching
from .running import ROOT, Mutant, Runner

KILLED = 0.85
Judge = Callable[[Sequence[Mutant], float], dict[Mutant, str]]  # of mutants in so many seconds of tests, their fates


def python_mutants(file: str) -> list[Mutant]:
    """All mutants of a Python source."""
    finder = places_python.Finder((ROOT / file).read_text(encoding="utf-8"))
    return [
        Mutant(file, each.lines.start, each.function, each.text, each.kind, each.what, each.lines, each.source)
        for each in finder.changes
    ]


def judge_python(
    files: Sequence[str], folder: Path, jobs: int, cases: int
) -> Iterator[tuple[str, list[Mutant], Judge]]:
    """For Python sources of which the same tests speak, one by one: its mutants, and what judges some of them."""
    libraries = running.installed()
    trees = [running.make_tree(folder / f"tree{number}", libraries) for number in range(jobs)]
    runner = Runner(trees, table.tests_of(files[0]), watching.Lines(trees[0], files), cases=cases)
    try:
        for file in files:
            yield file, python_mutants(file), runner.fates
    finally:
        runner.close()


def judged(files: Sequence[str], folder: Path, jobs: int, cases: int) -> Iterator[tuple[str, list[Mutant], Judge]]:
    """For each of some files of one group: its mutants, and what judges some of them."""
    if files[0].startswith("native/"):
        from .native import judge_native  # noqa: PLC0415  (it needs libclang)

        return judge_native(files[0], folder, jobs, cases)
    return judge_python(files, folder, jobs, cases)


def grouped(files: Sequence[str]) -> list[list[str]]:
    """Python sources by the tests that speak of them, which then run once without a mutant; a native one by itself."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault((file,) if file.startswith("native/") else tuple(table.tests_of(file)), []).append(file)
    return list(groups.values())


def is_near(rate: float, count: int) -> bool:
    """Whether a rate lies within the sampling error of its bound."""
    return abs(rate - KILLED) <= math.sqrt(KILLED * (1 - KILLED) / count)


def rate_of(fates: Mapping[Mutant, str]) -> float:
    """How many are killed; of none, all."""
    return sum(fate.startswith("killed") for fate in fates.values()) / max(1, len(fates)) if fates else 1.0


def fates_of(file: str, mutants: list[Mutant], judge: Judge, sample: int) -> dict[Mutant, str]:
    """The fates of a file's sample."""
    random.Random(file).shuffle(mutants)
    first, *more = running.SECONDS
    fates = judge(mutants[:sample], first)
    if len(mutants) > sample and is_near(rate_of(fates), sample):
        fates |= judge(mutants[sample : 2 * sample], first)
    for seconds in more:
        if rate_of(fates) < KILLED:
            fates |= judge([each for each, fate in fates.items() if fate == "survived"], seconds)
    return fates


def report(file: str, fates: Mapping[Mutant, str], seconds: float) -> str:
    """A file's rate, and what lives."""
    rate = rate_of(fates)
    words = (
        f"{file}: {rate:.1%} of {len(fates)} killed{'' if rate >= KILLED else f', below {KILLED:.0%}'}, {seconds:.0f} s"
    )
    lives = sorted((each for each, fate in fates.items() if fate == "survived"), key=lambda each: each.line)
    return "\n".join([words, *(f"  {each.function}:{each.line}: {each.text}: {each.change}" for each in lives)])


@contextmanager
def making_in(keep: Path | None) -> Iterator[Path]:
    """The folder in which mutants are made and run: one that stays, or one that goes."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="maxops-mutants-") as folder:
        yield Path(folder)


def main() -> int:
    """Run, print what lives, and return 1 if it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="a path from the root, or a pattern of several; all files without one")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="so many of each file, by chance")
    parser.add_argument(
        "--cases", type=int, default=running.CASES, metavar="N", help="so many of each test function; 0: all"
    )
    parser.add_argument("--all", action="store_true", help="every change")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="so many at a time")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where what is made stays")
    parser.add_argument("--json", type=Path, metavar="PATH", help="where the rates are written")
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    rates: dict[str, dict[str, float]] = {}
    sample = sys.maxsize if options.all else options.sample
    for files in grouped(table.files(options.file)):
        began = time.monotonic()
        with making_in(options.keep) as folder:
            for file, mutants, judge in judged(files, folder, options.jobs, options.cases or sys.maxsize):
                fates = fates_of(file, mutants, judge, sample)
                killed = sum(fate.startswith("killed") for fate in fates.values())
                rates[file] = {"killed": killed, "of": len(fates), "rate": round(rate_of(fates), 4)}
                print(report(file, fates, time.monotonic() - began), flush=True)
                if options.json is not None:
                    options.json.write_text(json.dumps(rates, indent=1) + "\n", encoding="utf-8")
                began = time.monotonic()
    if len(rates) > 1:
        print("\n".join(f"{each['rate']:7.1%} of {each['of']:4} {file}" for file, each in rates.items()))
    return int(any(each["rate"] < KILLED for each in rates.values()))


if __name__ == "__main__":
    sys.exit(main())
