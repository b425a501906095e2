"""Whole runs of the kit: the findings, the smallest call of each, and the script that reproduces it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.all_cases import ALL
from maxops import conformance, dtypes
from maxops.conformance import saved, session
from maxops.conformance.case import Trial
from maxops.conformance.cases import select
from maxops.conformance.ids import case_name, clause_name
from maxops.conformance.judge import judge
from maxops.conformance.outcome import Outcome
from maxops.conformance.result import Finding, Reproducer, Run
from maxops.conformance.shrink import shrink
from maxops.errors import ConfigurationError
from maxops.plan import Array

HERE = Path(__file__).parent

MAX_13 = "ONNX.Max-13"
PLAIN = "two-short-vectors"


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)  # where own_backend is found, as `python -m` would
    monkeypatch.syspath_prepend(str(HERE))


def run_of(backend: str, *only: str) -> Run:
    chosen = select(ALL, only)
    return whole(session.conform(f"own_backend.{backend}", chosen), [case.id for case in chosen])


def whole(run: Run, chosen: list[str]) -> Run:
    """The run, which has to hold every case that was chosen, and to add up."""
    assert list(run["cases"]) == chosen
    assert run["kit"]["cases"] == len(chosen)
    verdicts = run["cases"].items()
    assert [*run["reasons"]] == [case for case, verdict in verdicts if verdict == "not applicable"]
    findings = {case: verdict for case, verdict in verdicts if verdict not in ("conforms", "not applicable")}
    assert {finding["case"]: finding["verdict"] for finding in run["findings"]} == findings
    assert len(run["findings"]) == len(findings)
    assert run["clauses"].keys() == {finding["clause"] for finding in run["findings"]}
    numbers = {finding["reproducer"] for finding in run["findings"]} - {None}
    assert numbers == {*range(len(run["reproducers"]))}
    assert saved.parse(saved.as_text([run]).encode(), "run") == [run]
    return run


def only_reproducer(run: Run) -> Reproducer:
    (reproducer,) = run["reproducers"]
    assert reproducer["reproduced"], reproducer["output"]
    assert "maxops" not in reproducer["script"]
    return reproducer


def finding_of(run: Run, text: str) -> Finding:
    (found,) = [finding for finding in run["findings"] if text in finding["case"]]
    return found


def test_a_right_backend_conforms() -> None:
    run = run_of("Right", f"{MAX_13}.*two-short-vectors", "ONNX.Max-6.shape*")
    assert set(run["cases"].values()) == {"conforms"}
    assert (run["findings"], run["reproducers"], run["notes"]) == ([], [], [])


def test_a_wrong_rational_becomes_a_smallest_call_too() -> None:
    (case,) = (case for case in ALL if case.id == "SONNX.Max.C2/real/vectors-of-one-size")

    def run(trial: Trial) -> Outcome:
        assert trial.expected is not None
        return Outcome("returned", tuple(expected + 1 for expected in trial.expected))

    trial = case.make()
    found = shrink(case, trial, judge(case, trial, run(trial)), run)
    assert found is not None
    assert [array.shape for array in found.trial.feeds[0]] == [(1,)]


def differs_in_place(array: Array, place: int) -> Array:
    """The array with another bit pattern at an element."""
    changed = array.copy()
    changed.reshape(-1).view(f"u{array.itemsize}")[place] ^= 1
    return changed


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("needs", ["nothing", "other shapes", "an axis of 1", "three elements"])
def test_what_is_wrong_of_any_shapes_becomes_a_smaller_call(needs: str, place: int) -> None:
    """Each quick case of a type, by a runtime that is wrong in one element where the inputs are of a kind."""
    needed: dict[str, Callable[[list[Array]], bool]] = {
        "nothing": lambda _: True,
        "other shapes": lambda arrays: len({array.shape for array in arrays}) > 1,
        "an axis of 1": lambda arrays: any(1 in array.shape for array in arrays),
        "three elements": lambda arrays: max(array.size for array in arrays) >= 3,
    }
    tried = 0

    def run(trial: Trial) -> Outcome:
        assert trial.expected is not None
        outputs = [
            differs_in_place(expected, place) if expected.size and needed[needs](list(feed)) else expected
            for feed, expected in zip(trial.feeds, trial.expected, strict=True)
        ]
        return Outcome("returned", tuple(outputs))

    for case in (case for case in ALL if case.quick and not case.refusal and case.dtype is dtypes.UINT16):
        trial = case.make()
        if (judgement := judge(case, trial, run(trial))).verdict == "violates":
            found = shrink(case, trial, judgement, run)
            assert found is not None, case.id
            assert needed[needs](list(found.trial.feeds[0])), case.id
            tried += 1
    assert tried >= 5


@pytest.fixture(scope="module")
def by_float64() -> Iterator[Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)
        patch.syspath_prepend(str(HERE))
        yield run_of("ByFloat64", f"{MAX_13}.value/uint64/*of-lengths-9-to-16")


def test_a_value_is_reduced_to_one_element(by_float64: Run) -> None:
    run = by_float64
    (finding,) = run["findings"]
    assert (finding["verdict"], finding["clause"], case_name(finding["case"]).type) == (
        "violates",
        "ONNX.Max-13.value",
        "uint64",
    )
    reproducer = only_reproducer(run)
    assert [array["shape"] for array in reproducer["inputs"].values()] == [[1]]  # type: ignore[typeddict-item]
    (given,) = (array["values"][0] for array in reproducer["inputs"].values())  # type: ignore[typeddict-item]
    assert int(given) > 2**53
    assert reproducer["expected"] != reproducer["actual"]
    assert reproducer["expected"]["values"] == [given]  # type: ignore[typeddict-item]


def test_a_lane_keeps_its_length() -> None:
    run = run_of("WrongInLaneSeven", f"{MAX_13}.value/float32/*of-lengths-9-to-16")
    reproducer = only_reproducer(run)
    assert all(array["shape"] == [8] for array in reproducer["inputs"].values())  # type: ignore[typeddict-item]
    assert reproducer["actual"]["values"][7] == "42.0"  # type: ignore[typeddict-item]


def test_a_call_that_has_to_be_large_is_told_in_few_words() -> None:
    only = "ONNX.ReduceMax-20.nan/float32/rows-with-each-pair-with-a-NaN-one-among-copies-of-the-other-a-sample*"
    reproducer = only_reproducer(run_of("WrongInLargeReductions", only))
    assert np.prod(reproducer["inputs"]["data"]["shape"]) > 2000  # type: ignore[typeddict-item]
    assert max(map(len, (reproducer["script"] + reproducer["output"]).splitlines())) < 200
    assert re.search(r"^actual = actual\.reshape\(-1\)\[0:4\]  # of \d+ elements", reproducer["script"], re.MULTILINE)
    assert reproducer["output"].count("[nan, nan, nan, nan]") == 1
    assert reproducer["output"].count("[-inf, -inf, -inf, -inf]") == 1


def test_standards_are_judged_apart() -> None:
    run = run_of("NegativeZero", "*.Max*/float32/zeros-of-both-signs-in-each-lane*")
    names = {finding["case"]: clause_name(case_name(finding["case"]).clause) for finding in run["findings"]}
    verdicts = {
        names[finding["case"]].standard: finding["verdict"]
        for finding in run["findings"]
        if names[finding["case"]].version in (13, None)
    }
    assert verdicts == {"ONNX": "permitted", "SONNX": "violates", "SONNX draft": "permitted"}
    sonnx = next(finding for finding in run["findings"] if names[finding["case"]].standard == "SONNX")
    assert sonnx["clause"] == "SONNX.Max.value"
    assert (sonnx["expected"], sonnx["actual"]) != (sonnx["actual"], sonnx["expected"])


def test_a_missing_type_is_laid_to_its_clause() -> None:
    run = session.conform("onnx-reference", select(ALL, [f"{MAX_13}.*/int8/*short-vectors"]))
    assert set(run["cases"].values()) == {"conforms"}


def test_a_few_refusals_are_not_laid_to_the_type() -> None:
    run = run_of("RefusesRankSeven", f"{MAX_13}.shape/float32/rank-7-of-one-shape")
    (finding,) = run["findings"]
    assert (finding["verdict"], finding["clause"]) == ("refuses", f"{MAX_13}.shape")


def test_an_open_refusal_stays_permitted() -> None:
    pytest.importorskip("openvino")
    run = session.conform("openvino", select(ALL, ["*no_ids/float32/*rank-1-int64*"]))
    assert len(run["cases"]) == 1
    assert "refuses" not in run["cases"].values()


@pytest.mark.parametrize(
    ("backend", "text", "shown"),
    [
        ("WritesIntoItsInputs", "modified its input a", "input a changed: True\nactual   int8"),
        ("Reshapes", "modified its input a: its shape or dtype", "input a changed: True\nactual   int8"),
        ("Reinterprets", "modified its input a: its shape or dtype", "input a changed: True\nactual   int8"),
        (
            "WritesAndRaises",
            "modified its input b before raising an error: ValueError: no",
            "input a changed: True\nValueError: no\n",
        ),
    ],
)
def test_who_writes_into_its_inputs_has_a_verdict_on_each_case(backend: str, text: str, shown: str) -> None:
    run = run_of(backend, f"{MAX_13}.T/int8/{PLAIN}")
    (finding,) = run["findings"]
    assert (finding["verdict"], finding["message"]) == ("violates", text)
    assert shown in only_reproducer(run)["output"]


def test_an_exit_is_shown_by_its_script() -> None:
    run = run_of("Exits", f"{MAX_13}.T/int8/{PLAIN}")
    assert finding_of(run, "int8")["verdict"] == "crashes"
    only_reproducer(run)


def test_garbage_for_everything_is_one_line() -> None:
    with pytest.raises(session.NoAnswersError, match=r"own_backend\.GivesTwo: run returned 2 outputs; the model has 1"):
        run_of("GivesTwo", f"{MAX_13}.T/int8/{PLAIN}")


def test_garbage_for_a_case_is_its_finding() -> None:
    run = run_of("SometimesNone", f"{MAX_13}.T/int*/{PLAIN}")
    (finding,) = run["findings"]
    assert (case_name(finding["case"]).type, finding["verdict"]) == ("int8", "violates")
    assert "None" in finding["message"]


def test_what_a_runtime_prints_and_forks_is_not_taken_for_the_results_of_scripts() -> None:
    run = run_of("PrintsAndForks", f"{MAX_13}.T/int*/{PLAIN}")
    assert {finding["verdict"] for finding in run["findings"]} == {"violates"}
    assert len(run["reproducers"]) == 4
    assert all(each["reproduced"] for each in run["reproducers"])


def test_scripts_reproduce_what_a_program_does() -> None:
    """Its path is relative, and scripts run elsewhere."""
    name = f"command:{shlex.quote(sys.executable)} own_program.py"
    run = session.conform(name, select(ALL, [f"{MAX_13}.T/int*/{PLAIN}"]))
    found = {case_name(each["case"]).type: (each["verdict"], each["message"]) for each in run["findings"]}
    crash = "crashes", f"{sys.executable} was killed by SIGSEGV"
    assert found == {"int8": ("refuses", "CommandError: no such type"), "int16": crash, "int32": crash}
    assert [each["reproduced"] for each in run["reproducers"]] == [True] * 3


VERSION = "1.0\n::error::\udc80\x1b[2J\n"


def test_a_version_is_printable_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"from own_backend import Leaks\n__version__ = {VERSION!r}\nclass Odd(Leaks): ...\n"
    (tmp_path / "odd_version.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), ":")
    run = session.conform("odd_version:Odd", select(ALL, [f"{MAX_13}.T/int8/{PLAIN}"]))
    version = r"1.0\n::error::\udc80\x1b[2J"
    assert run["version"] == version
    assert only_reproducer(run)["script"].startswith(f"# odd_version:Odd {version}, Max-13 of int8: ")


def test_a_crash_is_not_the_end() -> None:
    run = run_of("Crashes", f"{MAX_13}.T/int*/{PLAIN}")
    (finding,) = run["findings"]
    assert (case_name(finding["case"]).type, finding["verdict"]) == ("int8", "crashes")
    assert "SIGSEGV" in finding["message"]
    assert run["cases"][f"{MAX_13}.T/int64/{PLAIN}"] == "conforms"
    only_reproducer(run)


def test_who_hangs_is_not_asked_for_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "MAX_HANGS", 1)
    monkeypatch.setattr("maxops.conformance.reproduce.TIMEOUT_SECONDS", 3)
    chosen = select(ALL, [f"{MAX_13}.T/int*/{PLAIN}", f"{MAX_13}.*/int8/one-input", f"{MAX_13}.*/int8/3-inputs"])
    run = session.conform("own_backend.Hangs", chosen, seconds=1)
    verdicts = {case: verdict for case, verdict in run["cases"].items() if "/int8/" in case}
    assert sorted(verdicts.values()) == ["hangs", "not applicable", "not applicable"]
    assert run["cases"][f"{MAX_13}.T/int64/{PLAIN}"] == "conforms"
    assert set(run["reasons"].values()) == {"not run: 1 similar calls timed out"}
    only_reproducer(run)


def test_memory_that_nobody_wrote() -> None:
    run = run_of("Leaks", f"{MAX_13}.T/int8/{PLAIN}")
    assert finding_of(run, "int8")["verdict"] == "uninitialized memory"
    only_reproducer(run)


def test_an_error_that_poisons() -> None:
    run = run_of("PoisonedByErrors", f"{MAX_13}.T/bool/a-type-that-is-not-listed", f"{MAX_13}.T/int*/{PLAIN}")
    assert finding_of(run, "/bool/")["verdict"] == "corrupted state"
    assert run["cases"][f"{MAX_13}.T/int64/{PLAIN}"] == "conforms"
    only_reproducer(run)


def test_a_run_is_saved_as_it_is(by_float64: Run, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    saved.write(file, [by_float64])
    assert saved.read(file) == [by_float64]
    raw: dict[str, Any] = json.loads(file.read_text())
    assert raw["runtime"] == "own_backend.ByFloat64"
    assert {"case", "clause", "verdict", "expected", "actual"} <= set(raw["findings"][0])
    assert raw["findings"][0]["clause"] in raw["clauses"]


def test_a_script_runs_by_itself(by_float64: Run, tmp_path: Path) -> None:
    path = tmp_path / "reproducer.py"
    path.write_text(only_reproducer(by_float64)["script"])
    done = subprocess.run(
        [sys.executable, str(path)],
        env={"PYTHONPATH": f"{HERE}:{':'.join(filter(None, sys.path))}"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("expected uint64")
    assert lines[1].startswith("actual   uint64")
    assert lines[0].split()[2:] != lines[1].split()[2:]
    assert len(path.read_text().splitlines()) <= 14


def test_every_instruction_set_of_ours_conforms() -> None:
    run = session.conform("maxops:baseline", select(ALL, ["*float32/*sample*", "*/int64/*short-vec*"], quick=True))
    assert set(run["cases"].values()) == {"conforms"}
    assert len(run["cases"]) > 20


def test_a_library_is_asked_the_newest_versions_and_refuses_nothing_it_does_not_claim() -> None:
    run = session.conform("numpy", select(ALL, ["ONNX.Max*/float32/*short*", f"{MAX_13}.shape/float32/shapes*"]))
    versions = {case.split(".")[1] for case in run["cases"]}
    assert versions == {"Max-13"}
    refusals = {case: verdict for case, verdict in run["cases"].items() if "/shapes-2-and-3" in case}
    assert set(refusals.values()) == {"not applicable"}
    assert run["version"] == np.__version__


@pytest.mark.parametrize("seconds", [0, -1.0, float("inf"), float("nan"), 1e300])
def test_a_time_that_is_none(seconds: float) -> None:
    with pytest.raises(
        ConfigurationError, match=re.escape(f"the timeout must be between 0.1 and 1e+06 seconds, got {seconds}")
    ):
        conformance.conform("numpy", ["ONNX.Max-13.T/int64/two-short-vectors"], seconds=seconds)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("seconds", "5", "the timeout must be a number of seconds, got '5'"),
        ("seconds", None, "the timeout must be a number of seconds, got None"),
        ("seconds", 1j, "the timeout must be a number of seconds, got 1j"),
        ("repeats", "3", "the number of runs must be an integer, got '3'"),
        ("repeats", 2.5, "the number of runs must be an integer, got 2.5"),
        ("repeats", None, "the number of runs must be an integer, got None"),
        ("repeats", True, "the number of runs must be between 2 and 1000, got 1"),
        ("repeats", 1001, "the number of runs must be between 2 and 1000, got 1001"),
    ],
)
def test_an_option_of_a_wrong_type_or_size(option: str, value: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(text)):
        conformance.conform("numpy", ["ONNX.Max-13.T/int64/two-short-vectors"], **{option: value})


def test_a_program_selects_what_the_command_does() -> None:
    assert [each.id for each in conformance.select()] == [each.id for each in ALL]
    quick = [each.id for each in conformance.select(quick=True)]
    assert quick == [each.id for each in select(ALL, quick=True)]
    assert 0 < len(quick) < len(ALL)
    only = ["ONNX.Max-13.T/*", "short-vec"]
    assert [each.id for each in conformance.select(only, quick=True)] == [
        each.id for each in select(ALL, only, quick=True)
    ]
    assert [each.id for each in conformance.select("ONNX.Max-13.T/int8/two*,ONNX.Max-13.T/int16/two*")] == [
        "ONNX.Max-13.T/int8/two-short-vectors",
        "ONNX.Max-13.T/int16/two-short-vectors",
    ]


@pytest.mark.parametrize("quick", [None, True])
def test_a_program_s_run_says_how_it_was_made(quick: bool | None) -> None:
    told: list[tuple[int, int, str]] = []
    case = "ONNX.Max-13.T/int64/two-short-vectors"
    options = {} if quick is None else {"quick": quick}
    only = case if quick is None else (case,)
    run = conformance.conform("numpy", only, repeats=3, progress=lambda *each: told.append(each), **options)
    assert run["cases"] == {case: "conforms"}
    assert told == [(1, 1, case)]
    assert {key: run["kit"][key] for key in ("quick", "only", "repeats")} == {
        "quick": bool(quick),
        "only": [case],
        "repeats": 3,
    }
