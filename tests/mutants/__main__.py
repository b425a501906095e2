"""Runs mutation tests: makes small changes to the source one by one, and checks that the tests detect them.

    PYTHONPATH=tests python -m mutants [FILE ...] [--sample 40] [--cases 60] [--all] [--keep FOLDER] [--json PATH]

Each file is tested with a random sample of mutants, which doubles if the detection rate is close to the minimum. The
tests of a mutant are those that table.py lists for the file and that reach the change, with some cases of each test
function. They run for 3 seconds. If the rate is too low, survivors get 15 seconds and then 60. Prints a rate for each
file, and the survivors. The exit code is 1 if a rate is below 85 %. Equivalent mutants count as survivors.
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import places_python, running, table, watching
from .running import ROOT, Mutant, Runner

KILLED = 0.85
Judge = Callable[
    [Sequence[Mutant], float], dict[Mutant, str]
]  # (mutants, seconds of tests per mutant) -> the fate of each mutant


def python_mutants(file: str) -> list[Mutant]:
    finder = places_python.Finder((ROOT / file).read_text(encoding="utf-8"))
    return [
        Mutant(file, each.lines.start, each.function, each.text, each.kind, each.what, each.lines, each.source)
        for each in finder.changes
    ]


def judged(files: Sequence[str], folder: Path, jobs: int, cases: int) -> Iterator[tuple[str, list[Mutant], Judge]]:
    """Yield each file of a group, with its mutants and a function that runs them."""
    libraries = running.installed()
    trees = [running.make_tree(folder / f"tree{number}", libraries) for number in range(jobs)]
    watch: watching.Watch = watching.Lines(trees[0], files)
    mutants: Iterable[list[Mutant]] = map(python_mutants, files)
    more: Sequence[str] = ()
    if files[0].startswith("native/"):
        from .native import prepared  # noqa: PLC0415  (it needs libclang)

        of_file, more = prepared(files[0], trees)
        watch, mutants = watching.Differences(max((each.number for each in of_file), default=0)), [of_file]
    runner = Runner(trees, table.tests_of(files[0]), watch, more, cases)
    try:
        for file, each in zip(files, mutants, strict=True):
            yield file, each, runner.fates
    finally:
        runner.close()


def grouped(files: Sequence[str]) -> list[list[str]]:
    """Return Python files grouped by their tests, which run only once without a mutant, and each native file alone."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for file in files:
        groups.setdefault((file,) if file.startswith("native/") else tuple(table.tests_of(file)), []).append(file)
    return list(groups.values())


def is_near(rate: float, count: int) -> bool:
    """Return whether a rate is within the sampling error of the minimum."""
    return abs(rate - KILLED) <= math.sqrt(KILLED * (1 - KILLED) / count)


def rate_of(fates: Mapping[Mutant, str]) -> float:
    """Return the proportion of killed mutants, or 1 without mutants."""
    return sum(fate.startswith("killed") for fate in fates.values()) / max(1, len(fates)) if fates else 1.0


def fates_of(file: str, mutants: list[Mutant], judge: Judge, sample: int) -> dict[Mutant, str]:
    """Run a sample of a file's mutants, and return the fate of each."""
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
    """Return the text of a file's rate and its survivors."""
    rate = rate_of(fates)
    words = (
        f"{file}: {rate:.1%} of {len(fates)} killed{'' if rate >= KILLED else f', below {KILLED:.0%}'}, {seconds:.0f} s"
    )
    lives = sorted((each for each, fate in fates.items() if fate == "survived"), key=lambda each: each.line)
    return "\n".join([words, *(f"  {each.function}:{each.line}: {each.text}: {each.change}" for each in lives)])


@contextmanager
def making_in(keep: Path | None) -> Iterator[Path]:
    """Yield the folder in which mutants run: the given one, or a temporary one."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="maxops-mutants-") as folder:
        yield Path(folder)


def main() -> int:
    """Run the mutants, print the survivors, and return 1 if a rate is too low."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="*", help="a path from the root, or a part of several; default: all files")
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="the number of mutants per file")
    parser.add_argument(
        "--cases", type=int, default=running.CASES, metavar="N", help="the number of cases per test function; 0: all"
    )
    parser.add_argument("--all", action="store_true", help="run all mutants")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N", help="parallel jobs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the trees here")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the rates here")
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
