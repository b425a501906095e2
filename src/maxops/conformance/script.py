"""A script of about ten lines that shows a finding with the runtime alone; and the run that checks that it does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maxops.conformance import one_by_one
from maxops.conformance.case import Call, Case, Feed
from maxops.conformance.controls import control
from maxops.conformance.literal import literal
from maxops.conformance.result import elements
from maxops.conformance.smallest import Found
from maxops.engines.native import usable_cpus
from maxops.plan import Array

SECONDS = 60
BATCH = 40
# What does no harm to the process that it is shown in.
_HARMLESS = ("violates", "refuses", "permitted")
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


def checked(scripts: Sequence[tuple[str, Found]], environment: Mapping[str, str]) -> Iterator[Checked]:
    """Run scripts, and compare what each shows with what the kit saw.

    Those that show an answer or an error run one after the other in a few processes. One that ends its process, or
    leaves something behind in it, has a process of its own.
    """
    together = [number for number, (_, found) in enumerate(scripts) if found.judgement.verdict in _HARMLESS]
    batches = [together[start : start + BATCH] for start in range(0, len(together), BATCH)]
    with ThreadPoolExecutor(usable_cpus()) as threads:
        ran = threads.map(lambda batch: _run_all([scripts[number][0] for number in batch], environment), batches)
        shown = dict(zip(together, (text for batch in ran for text in batch), strict=True))

        def check(number: int) -> Checked:
            text, found = scripts[number]
            if number in shown and (told := shown[number]) is not None:
                return Checked(text, told, _holds(found, _Ran(told)))
            return _checked_alone(text, found, environment)

        yield from threads.map(check, range(len(scripts)))


def _checked_alone(text: str, found: Found, environment: Mapping[str, str]) -> Checked:
    if found.judgement.verdict == "leaks":
        first, second = (_run([text], {**environment, **perturbed}) for perturbed in PERTURBED)
        return Checked(text, first.shown + second.shown, _got(first.shown) != _got(second.shown))
    ran = _run([text], environment)
    return Checked(text, ran.shown, _holds(found, ran))


def _holds(found: Found, ran: _Ran) -> bool:
    """Whether a script showed what the kit saw."""
    verdict, outcome = found.judgement.verdict, found.outcome
    if verdict == "crashes":
        return ran.signal is not None
    if verdict == "hangs":
        return ran.late
    if ran.signal is not None or ran.late:
        return False
    if outcome.kind == "refused":
        return outcome.text.partition(":")[0] in ran.shown
    if outcome.kind == "gave" and verdict != "accepts":
        return _got(ran.shown) == f"got    {_line(outcome.outputs[0])}"
    return True


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


def _run_all(scripts: Sequence[str], environment: Mapping[str, str]) -> list[str | None]:
    """What each printed; None from the one on that ended their process."""
    ran = _run(scripts, environment, through=Path(one_by_one.__file__))
    shown = [
        json.loads(line.removeprefix(one_by_one.MARK))
        for line in ran.shown.splitlines()
        if line.startswith(one_by_one.MARK)
    ]
    return [*shown, *[None] * (len(scripts) - len(shown))]


def _run(scripts: Sequence[str], environment: Mapping[str, str], through: Path | None = None) -> _Ran:
    """Run scripts in an empty folder, with what they may import from where the kit was started."""
    with tempfile.TemporaryDirectory(prefix="maxops-conform-") as folder:
        paths = [Path(folder) / f"reproducer{number}.py" for number in range(len(scripts))]
        for path, text in zip(paths, scripts, strict=True):
            path.write_text(text, encoding="utf-8")
        found = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            done = subprocess.run(
                [sys.executable, *map(str, filter(None, [through])), *map(str, paths)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": found, **environment},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            return _Ran((error.stdout or b"").decode(errors="replace"), late=True)
    shown = done.stdout + "".join(done.stderr.splitlines(keepends=True)[-1:])  # what a traceback ends with
    return _Ran(shown, signal=-done.returncode if done.returncode < 0 else None)
