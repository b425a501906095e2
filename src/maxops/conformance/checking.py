"""Runs the scripts that show findings, and says of each whether it shows what the kit saw."""

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

from maxops.conformance import one_by_one
from maxops.conformance.controls import control
from maxops.conformance.programs import Programs
from maxops.conformance.script import GOT, Script, line
from maxops.conformance.smallest import Found
from maxops.engines.native import usable_cpus
from maxops.plan import Array

SECONDS = 60
BATCH = 40
_TRACEBACK = "Traceback (most recent call last)"
# What is shown by several in a process. An answer where there is to be an error may have written where it must not, so
# that those that accept keep to themselves; if one ends their process, the rest have their own.
_TOGETHER = (("violates", "refuses", "permitted"), ("accepts",))


@dataclass(frozen=True)
class Checked:
    """A script, what it printed, and whether that is what the kit saw."""

    script: Script
    shown: str
    holds: bool


def checked(findings: Sequence[Sequence[Script]], environment: Mapping[str, str]) -> Iterator[Checked]:
    """For each finding the first of its scripts that shows it, or the plainest if none does.

    Those that show an answer or an error run one after the other in a few processes. One that ends its process, or
    leaves something behind in it, has a process of its own.
    """
    batches = [batch for verdicts in _TOGETHER for batch in _batches(findings, verdicts)]
    with ThreadPoolExecutor(usable_cpus()) as threads, Programs() as programs:
        ran = threads.map(lambda batch: _run_all(programs, [script.text for script in batch], environment), batches)
        shown = {
            _lines(script): told
            for batch, all_told in zip(batches, ran, strict=True)
            for script, told in zip(batch, all_told, strict=True)
        }

        def check(scripts: Sequence[Script]) -> Checked:
            told = shown.get(_lines(scripts[0]))
            if told is not None and _holds(scripts[0].found, [_Ran(told)]):
                return Checked(scripts[0], told, holds=True)
            # what did not show it among others may have suffered from what they left behind
            tries = (_checked_alone(programs, script, environment) for script in scripts)
            plainest = next(tries)
            return next((each for each in (plainest, *tries) if each.holds), plainest)

        yield from threads.map(check, findings)


def _batches(findings: Sequence[Sequence[Script]], verdicts: Sequence[str]) -> list[list[Script]]:
    """The plainest scripts of some verdicts, each call once, in as many batches as end together."""
    plain = [scripts[0] for scripts in findings if scripts[0].found.judgement.verdict in verdicts]
    together = list({_lines(script): script for script in plain}.values())
    count = usable_cpus() * -(-len(together) // (BATCH * usable_cpus()))
    size = -(-len(together) // count) if count else 1
    return [together[start : start + size] for start in range(0, len(together), size)]


def _lines(script: Script) -> str:
    """What a script does: several standards have one call, and differ in what they say of it."""
    return "\n".join(each for each in script.text.splitlines() if not each.startswith("#"))


def _checked_alone(programs: Programs, script: Script, environment: Mapping[str, str]) -> Checked:
    ran = [_run(programs, [script.text], {**environment, **where}) for where in script.environments]
    return Checked(script, "".join(each.shown for each in ran), _holds(script.found, ran))


def _holds(found: Found, runs: Sequence[_Ran]) -> bool:
    """Whether a script showed what the kit saw."""
    verdict, outcome = found.judgement.verdict, found.outcome
    ran = runs[0]
    if verdict == "leaks":
        return len({_got(each.shown) for each in runs}) > 1
    got = _got(ran.shown)
    if verdict == "crashes":  # by a signal, or by an exit in the midst of it
        return ran.signal is not None or not (ran.late or ran.raised or got)
    if verdict == "hangs":
        return ran.late
    if ran.signal is not None or ran.late:
        return False
    if verdict == "poisoned":  # the last that it prints is of the call that was right
        right = control(found.trial.call.row).wanted
        assert right is not None
        return got != _line(right[0])
    if verdict == "accepts":
        return got != ""
    if outcome.kind == "refused":
        return outcome.text.partition(":")[0] in ran.shown
    if outcome.kind == "gave":
        return got == _line(outcome.outputs[0])
    # what came is no array: whatever the script makes of it, it is not what is wanted
    return found.trial.wanted is None or got != _line(found.trial.wanted[0])


def _line(array: Array) -> str:
    return f"{GOT}{line(array)}"


def _got(shown: str) -> str:
    """The script's own line, which is its last: a runtime may print such a line, too."""
    return next((each for each in reversed(shown.splitlines()) if each.startswith(GOT)), "")


# --------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class _Ran:
    shown: str
    signal: int | None = None
    late: bool = False
    raised: bool = False  # an error that nobody caught


def _run_all(programs: Programs, scripts: Sequence[str], environment: Mapping[str, str]) -> list[str | None]:
    """What each printed; None from the one on that ended their process."""
    ran = _run(programs, scripts, environment, through=Path(one_by_one.__file__))
    shown = [
        json.loads(each.removeprefix(one_by_one.MARK))
        for each in ran.shown.splitlines()
        if each.startswith(one_by_one.MARK)
    ]
    return [*shown, *[None] * (len(scripts) - len(shown))]


def _run(
    programs: Programs, scripts: Sequence[str], environment: Mapping[str, str], through: Path | None = None
) -> _Ran:
    """Run scripts in an empty folder, with what they may import from where the kit was started."""
    with tempfile.TemporaryDirectory(prefix="maxops-conform-") as folder:
        paths = [Path(folder) / f"reproducer{number}.py" for number in range(len(scripts))]
        for path, text in zip(paths, scripts, strict=True):
            path.write_text(text, encoding="utf-8")
        found = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            done = programs.run(
                [sys.executable, *map(str, filter(None, [through])), *map(str, paths)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": found, **environment},
                seconds=SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            return _Ran((error.stdout or b"").decode(errors="replace"), late=True)
    # what a traceback ends with; some errors have a note of a few lines
    shown = done.stdout + "".join(done.stderr.splitlines(keepends=True)[-4:])
    ended_by = -done.returncode if done.returncode < 0 else None
    return _Ran(shown, ended_by, raised=_TRACEBACK in done.stderr)
