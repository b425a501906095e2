"""A script of about ten lines that shows a finding with the runtime alone; and the run that checks that it does."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maxops.conformance.case import Call, Case, Feed
from maxops.conformance.controls import control
from maxops.conformance.literal import literal
from maxops.conformance.result import elements
from maxops.conformance.smallest import Found
from maxops.plan import Array

SECONDS = 30
# What glibc fills memory with in two runs: an answer that is not the same in both holds memory that nobody wrote.
PERTURBED = tuple({"MALLOC_PERTURB_": byte, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"} for byte in ("85", "170"))


class Shows(Protocol):
    """Lines that leave a runtime's answer in `got`: a runtime's own `script`."""

    def __call__(self, call: Call, feed: Feed) -> list[str]:
        """The lines for a call on the arrays of a feed, which stand under the names of its inputs."""


@dataclass(frozen=True)
class Checked:
    """A script, what it printed, and whether that is what the kit saw."""

    script: str
    shown: str
    holds: bool


def written(runtime: str, case: Case, found: Found, lines: Shows) -> str:
    """The script of a finding."""
    judgement, trial = found.judgement, found.trial
    call, feed = trial.call, trial.feeds[0]
    text = [f"# {runtime}, {case.row.name} of {case.dtype}: {judgement.verdict}"]
    text += [f"# {judgement.clause.id}: {judgement.clause.statement}"]
    if judgement.verdict == "leaks":
        text.append("# run it twice, with MALLOC_PERTURB_=85 and =170 (and GLIBC_TUNABLES=glibc.malloc.tcache_count=0)")
    text.append("import numpy as np")
    if any(array.dtype.name == "bfloat16" for array in feed):
        text.append("import ml_dtypes")
    text += _arrays(call, feed)
    if trial.wanted is not None:
        text.append(f'print("wanted", {_line(trial.wanted[0])!r})')
    else:
        text.append('print("wanted an error")')
    answer = lines(call, feed)
    if judgement.verdict == "poisoned":
        text += ["try:", *(f"    {line}" for line in answer), "except Exception as error:", '    print("error", error)']
        right = control(call.row)
        text += ["# a call that is right before that", *_arrays(right.call, right.feeds[0])]
        text += lines(right.call, right.feeds[0])
    else:
        text += answer
    text.append(_PRINT)
    return "\n".join(text) + "\n"


def checked(script: str, found: Found, environment: dict[str, str]) -> Checked:
    """Run a script in a process of its own, and compare what it shows with what the kit saw."""
    verdict, outcome = found.judgement.verdict, found.outcome
    first = _run(script, environment | (PERTURBED[0] if verdict == "leaks" else {}))
    if verdict == "leaks":
        second = _run(script, environment | PERTURBED[1])
        return Checked(script, first.shown, holds=_got(first.shown) != _got(second.shown))
    if verdict == "crashes":
        holds = first.signal is not None
    elif verdict == "hangs":
        holds = first.late
    elif outcome.kind == "refused":
        holds = first.signal is None and not first.late and outcome.text.partition(":")[0] in first.shown
    elif outcome.kind == "gave" and verdict != "accepts":
        holds = _got(first.shown) == f"got    {_line(outcome.outputs[0])}"
    else:
        holds = first.signal is None and not first.late
    return Checked(script, first.shown, holds)


# ------------------------------------------------------------------------------------------------------ as text

# One line of an array, in the script and here: its type, its values, and its words in hexadecimal.
_WORDS = '[f"{word:0{2 * got.itemsize}X}" for word in got.ravel().view(f"u{got.itemsize}").tolist()]'
_PRINT = f'print("got   ", got.dtype, got.tolist(), {_WORDS})'


def _line(array: Array) -> str:
    return f"{array.dtype} {array.tolist()} {elements(array)['bits']}"


def _got(shown: str) -> str:
    return next((line for line in shown.splitlines() if line.startswith("got")), "")


def _arrays(call: Call, feed: Feed) -> list[str]:
    return [f"{each.name} = {literal(array)}" for each, array in zip(call.fed, feed, strict=True)]


# --------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class _Ran:
    shown: str
    signal: int | None = None
    late: bool = False


def _run(script: str, environment: dict[str, str]) -> _Ran:
    """Run a script in an empty folder, with what it may import from where the kit was started."""
    with tempfile.TemporaryDirectory(prefix="maxops-conform-") as folder:
        path = Path(folder) / "reproducer.py"
        path.write_text(script, encoding="utf-8")
        paths = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            done = subprocess.run(
                [sys.executable, str(path)],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": paths} | environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return _Ran(str(error.stdout or ""), late=True)
    shown = done.stdout + "".join(done.stderr.splitlines(keepends=True)[-1:])  # what a traceback ends with
    return _Ran(shown, signal=-done.returncode if done.returncode < 0 else None)
