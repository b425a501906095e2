"""Runs the scripts that reproduce findings, and checks whether each shows the observed result."""

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

from maxops.conformance import script_runner
from maxops.conformance.input_buffers import MODIFIED, OUTSIDE
from maxops.conformance.result import Verdict
from maxops.conformance.runtimes.command import REFUSED
from maxops.conformance.sanity_calls import sanity_call
from maxops.conformance.script import ACTUAL, DIFFERING, INPUT, OUTSIDE_INPUT, Script, line, printed
from maxops.conformance.shrink import Counterexample
from maxops.conformance.subprocesses import Subprocesses
from maxops.engines.native import usable_cpus
from maxops.plan import Array

TIMEOUT_SECONDS = 60
BATCH_SIZE = 40
_TRACEBACK = "Traceback (most recent call last)"
# Verdicts whose scripts share a process. A call with a missing error may have written out of bounds, so such scripts
# share a process only with each other; if one of them ends the process, each remaining script gets its own process.
_BATCHED: tuple[tuple[Verdict, ...], ...] = (("violates", "refuses", "permitted"), ("missing error",))


@dataclass(frozen=True)
class Reproduction:
    """A script, its output, and whether the output matches the kit's observation."""

    script: Script
    output: str
    reproduced: bool


def reproduce(findings: Sequence[Sequence[Script]], environment: Mapping[str, str]) -> Iterator[Reproduction]:
    """Yield the first script that reproduces each finding, or the simplest script if no script reproduces it.

    Scripts that show a result or an error run one after the other in a few processes. Each other script, such as one
    that ends its process or corrupts its state, has its own process.
    """
    batches = [batch for verdicts in _BATCHED for batch in _batches(findings, verdicts)]
    with ThreadPoolExecutor(usable_cpus()) as threads, Subprocesses() as subprocesses:
        outputs = threads.map(
            lambda batch: _run_batch(subprocesses, [script.text for script in batch], environment), batches
        )
        output_of = {
            _code(script): output
            for batch, batch_outputs in zip(batches, outputs, strict=True)
            for script, output in zip(batch, batch_outputs, strict=True)
        }

        def check(scripts: Sequence[Script]) -> Reproduction:
            output = output_of.get(_code(scripts[0]))
            if output is not None and _is_reproduced(scripts[0].counterexample, [_Completed(output)]):
                return Reproduction(scripts[0], output, reproduced=True)
            # a script in a batch may fail because of the state that earlier scripts left
            tries = (_run_alone(subprocesses, script, environment) for script in scripts)
            plainest = next(tries)
            return next((each for each in (plainest, *tries) if each.reproduced), plainest)

        yield from threads.map(check, findings)


def _batches(findings: Sequence[Sequence[Script]], verdicts: Sequence[Verdict]) -> list[list[Script]]:
    """Return the simplest scripts of some verdicts without duplicates, in batches of equal size for all CPUs."""
    plain = [scripts[0] for scripts in findings if scripts[0].counterexample.judgement.verdict in verdicts]
    together = list({_code(script): script for script in plain}.values())
    count = usable_cpus() * -(-len(together) // (BATCH_SIZE * usable_cpus()))
    size = -(-len(together) // count) if count else 1
    return [together[start : start + size] for start in range(0, len(together), size)]


def _code(script: Script) -> str:
    """Return a script without its comments: several standards judge one call, and only the comments differ."""
    return "\n".join(each for each in script.text.splitlines() if not each.startswith("#"))


def _run_alone(subprocesses: Subprocesses, script: Script, environment: Mapping[str, str]) -> Reproduction:
    runs = [_run(subprocesses, [script.text], {**environment, **extra}) for extra in script.environments]
    return Reproduction(script, "".join(each.output for each in runs), _is_reproduced(script.counterexample, runs))


def _is_reproduced(counterexample: Counterexample, runs: Sequence[_Completed]) -> bool:
    """Return whether a script's runs match the kit's observation."""
    trial, outcome, verdict = counterexample.trial, counterexample.outcome, counterexample.judgement.verdict
    run = runs[0]
    if verdict in DIFFERING:
        return len({_actual_line(each.output) for each in runs}) > 1
    actual = _actual_line(run.output)
    if verdict == "crashes":  # killed by a signal, or exited during the call
        return run.signal is not None or not (run.timed_out or run.raised or actual or REFUSED in run.output)
    if verdict == "hangs":
        return run.timed_out
    if run.signal is not None or run.timed_out:
        return False
    if verdict == "corrupted state":  # the last line belongs to the sanity call
        expected = sanity_call(trial.call.row).expected
        assert expected is not None
        return actual != _line(expected[0])
    if verdict == "missing error":
        return actual != ""
    if outcome.kind == "refused":
        return outcome.text.partition(":")[0] in run.output
    if outcome.kind == "returned":
        return actual == _line(printed(counterexample, outcome.outputs[0]))
    for text, label in ((MODIFIED, INPUT), (OUTSIDE, OUTSIDE_INPUT)):
        if outcome.text.startswith(text):
            return any(f"{label} {each.name} changed: True" in run.output.splitlines() for each in trial.call.fed)
    # garbage: the script must not print the expected result
    return trial.expected is None or actual != _line(printed(counterexample, trial.expected[0]))


def _line(array: Array) -> str:
    return f"{ACTUAL}{line(array)}"


def _actual_line(output: str) -> str:
    """Return the last line with the script's prefix, because the runtime may print lines with this prefix earlier."""
    return next((each for each in reversed(output.splitlines()) if each.startswith(ACTUAL)), "")


# --------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class _Completed:
    output: str
    signal: int | None = None
    timed_out: bool = False
    raised: bool = False  # an uncaught error


def _run_batch(subprocesses: Subprocesses, scripts: Sequence[str], environment: Mapping[str, str]) -> list[str | None]:
    """Return each script's output, or None for the script that ended the process and for all later scripts."""
    with tempfile.TemporaryDirectory(prefix="maxops-conform-") as folder:
        results = Path(folder, "results")
        results.touch()
        _run(subprocesses, scripts, environment, runner=[script_runner.__file__, str(results)])
        *lines, _ = results.read_text(encoding="utf-8").split("\n")  # the last line is empty or incomplete
    outputs = [json.loads(each) for each in lines]
    return [*outputs, *[None] * (len(scripts) - len(outputs))]


def _run(
    subprocesses: Subprocesses, scripts: Sequence[str], environment: Mapping[str, str], runner: Sequence[str] = ()
) -> _Completed:
    """Run scripts in an empty folder. They can import the modules that were importable where the kit started."""
    with tempfile.TemporaryDirectory(prefix="maxops-conform-") as folder:
        paths = [Path(folder) / f"reproducer{number}.py" for number in range(len(scripts))]
        for path, text in zip(paths, scripts, strict=True):
            path.write_text(text, encoding="utf-8")
        python_path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            done = subprocesses.run(
                [sys.executable, *runner, *map(str, paths)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": python_path, **environment},
                timeout=TIMEOUT_SECONDS,
            )
        except subprocess.TimeoutExpired as error:
            return _Completed((error.stdout or b"").decode(errors="replace"), timed_out=True)
    # the end of a traceback; some errors have notes of a few lines
    output = done.stdout + "".join(done.stderr.splitlines(keepends=True)[-4:])
    ended_by_signal = -done.returncode if done.returncode < 0 else None
    return _Completed(output, ended_by_signal, raised=_TRACEBACK in done.stderr)
