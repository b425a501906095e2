"""Compares two installations of maxops by running the same calls alternately in two processes (A B A B ...)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import maxops
from maxops.bench import environment
from maxops.bench.grid import Case
from maxops.bench.report import Table, by_family, spread
from maxops.bench.timing import Json, paired
from maxops.errors import MaxopsError
from maxops.machine import commit, machine

FORMAT = 2
WORKER = str(Path(__file__).with_name("compare_worker.py"))
DYING_SECONDS = 10.0
LOW = 0.95  # the speedup below which a case is listed
AGAIN = 2  # repetitions on new arrays if the speedup is not between LOW and 1 / LOW; the median of all is reported


class CompareError(MaxopsError, RuntimeError):
    """Raised if the other maxops cannot be started or is this installation, or if a worker process ends early."""


class Install:
    """A worker process with one installation of maxops, and a stopwatch for the prepared case (see `paired`)."""

    def __init__(self, where: Path, threads: int) -> None:
        """Start the interpreter at `where` or, if it is a folder, this interpreter with the `maxops` in the folder."""
        self.where = where
        variables = os.environ | environment.quiet(threads)
        variables.pop("PYTHONPATH", None)
        if where.is_dir():
            variables["PYTHONPATH"] = str(where)
        try:
            # -P: the folder of the worker must not be on the import path
            self._process = subprocess.Popen(
                [sys.executable if where.is_dir() else str(where), "-P", WORKER],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=variables,
                start_new_session=True,  # this process handles Ctrl-C
            )  # fmt: skip
        except OSError as error:
            raise CompareError(f"--compare: {where}: {error.strerror}") from error

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()

    def ask(self, *request: Any) -> Any:
        """Send a request with arguments to the worker, and return the answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            return json.loads(self._process.stdout.readline())
        except (BrokenPipeError, ValueError) as error:
            with suppress(subprocess.TimeoutExpired):  # the process is alive, but its answer is invalid
                self._process.wait(DYING_SECONDS)
            self._process.kill()  # has no effect on a process that has ended
            code = self._process.wait()
            raise CompareError(
                f"--compare: the maxops process for {self.where} exited with code {code}; see above"
            ) from error

    def about(self) -> Json:
        """Return the location, version, instruction set and commit of the installation."""
        about: Json = self.ask("about")
        return about | {"commit": commit(Path(about["folder"]))}

    def warm_up(self, sample_seconds: float) -> float:
        """Choose how many calls take about `sample_seconds`, and return the time per call in seconds."""
        return float(self.ask("warm_up", sample_seconds))

    def seconds(self) -> float:
        """Return the time per call in seconds, measured over a sample of calls."""
        return float(self.ask("seconds"))


def run(
    cases: Sequence[Case],
    other: Path,
    threads: int,
    *,
    seconds: float,
    done: Callable[[str, Json | None], None] = lambda text, measured: None,
) -> Json:
    """Measure cases on this maxops and on another, given by its interpreter or by the folder of its package.

    Ctrl-C or a crash of either process ends the run, and the finished cases are kept.
    """
    with ExitStack() as stack:
        places = (Path(maxops.__file__).resolve().parents[1], other)
        installs = [stack.enter_context(closing(Install(place, threads))) for place in places]
        this, that = (install.about() for install in installs)
        if other.is_dir() and Path(that["folder"]).parent != other.resolve():
            raise CompareError(
                f"--compare: {other} contains no maxops package; Python imported {that['folder']} instead"
            )
        if this["folder"] == that["folder"]:
            raise CompareError(f"--compare: {other} is the same installation as this one: {that['folder']}")
        result: Json = {"format": FORMAT, "machine": machine(threads), "this": this, "other": that, "cases": []}
        try:
            for number, case in enumerate(cases):
                done(f"{number + 1} of {len(cases)}: {case.id}", None)
                row = {"id": case.id, "operator": case.operator, "family": case.family}
                result["cases"].append(row | _measure(case, installs, seconds))
                done(case.id, row)
        except (KeyboardInterrupt, CompareError) as error:  # keep the finished cases
            result["interrupted"] = f"after {len(result['cases'])} of {len(cases)} cases: {error}".rstrip(": ")
    return result


def _measure(case: Case, installs: Sequence[Install], seconds: float) -> Json:
    found = []
    for anew in range(1 + AGAIN):
        if status := _prepare(case, installs, anew):
            return {"status": status}
        found.append(paired(installs[0], installs[1], seconds))
        if LOW <= found[0]["ratio"]["median"] <= 1 / LOW:
            break
    return {"status": "timed"} | sorted(found, key=lambda one: float(one["ratio"]["median"]))[len(found) // 2]


def _prepare(case: Case, installs: Sequence[Install], anew: int) -> str:
    """Make both workers build the case's arrays. Return "", or the reason why the case cannot be compared."""
    this, that = (install.ask("prepare", case.id, anew) for install in installs)
    for name, answer in (("this", this), ("other", that)):
        if "error" in answer:
            return f"error in {name}: {answer['error']}"
    if this["inputs"] != that["inputs"]:
        return "different inputs: the two versions of NumPy generate different random numbers"
    return "" if this["result"] == that["result"] else "different bits"


def tables(result: Json) -> list[Table]:
    """Return tables of speedups by operator and family, of the cases below LOW, and of the cases not timed."""
    note = (
        "The speedup is the time of the other installation divided by the time of this installation. If the first "
        f"measurement is not between {LOW} and {1 / LOW:.2f}, the speedup is the median of three measurements."
    )
    timed = [case for case in result["cases"] if case["status"] == "timed"]
    low = sorted((float(case["ratio"]["median"]), case["id"], spread(case["ratio"])) for case in timed)
    others = [(case["id"], case["status"]) for case in result["cases"] if case["status"] != "timed"]
    found = [
        Table(f"Cases below {LOW}", "", ("case", "speedup (quartiles)"), [row[1:] for row in low if row[0] < LOW]),
        Table("Not timed", "", ("case", "reason"), others),
    ]
    return [
        by_family("Speedup over the other", note, timed, (LOW,)),
        *(table for table in found if table.rows),
    ]


def different(result: Json) -> list[str]:
    """Return the ids of the cases in which the two installations return different bits."""
    return [case["id"] for case in result["cases"] if case["status"] == "different bits"]
