"""Whole runs of the kit: the findings, the smallest call of each, and the script that reproduces it."""

from __future__ import annotations

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
from maxops import conformance, dtypes, spec
from maxops.conformance import saved, session
from maxops.conformance.case import Trial
from maxops.conformance.cases import select
from maxops.conformance.ids import case_name
from maxops.conformance.judge import judge
from maxops.conformance.outcome import Outcome
from maxops.conformance.result import Finding, Reproducer, Run
from maxops.conformance.sanity_calls import sanity_call
from maxops.conformance.shrink import shrink
from maxops.errors import ConfigurationError
from maxops.plan import Array

HERE = Path(__file__).parent

MAX_13 = "ONNX.Max-13"
PLAIN = "two-short-vectors"


@pytest.fixture(scope="module", autouse=True)
def here() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(HERE)  # the folder of own_backend, as with `python -m`
        patch.syspath_prepend(str(HERE))
        patch.setattr("maxops.conformance.cases.cases", lambda: ALL)
        yield


def run_of(backend: str, *only: str) -> Run:
    chosen = select(ALL, only)
    return whole(session.conform(backend, chosen), [case.id for case in chosen])


def whole(run: Run, chosen: list[str]) -> Run:
    """Return the run, which must contain every selected case with consistent counts."""
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


def reproducer_of(run: Run, text: str) -> Reproducer:
    number = finding_of(run, text)["reproducer"]
    assert number is not None
    reproducer = run["reproducers"][number]
    assert reproducer["reproduced"], reproducer["output"]
    assert "maxops" not in reproducer["script"]
    return reproducer


def finding_of(run: Run, text: str) -> Finding:
    (found,) = [finding for finding in run["findings"] if text in finding["case"]]
    return found


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
    """Return the array with one element's bits changed."""
    changed = array.copy()
    changed.reshape(-1).view(f"u{array.itemsize}")[place] ^= 1
    return changed


@pytest.mark.parametrize(
    ("needs", "place"), [("nothing", 0), ("other shapes", -1), ("an axis of 1", 0), ("three elements", -1)]
)
def test_what_is_wrong_of_any_shapes_becomes_a_smaller_call(needs: str, place: int) -> None:
    """Test small cases of a type with a runtime that is wrong in one element for some inputs."""
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
        is_large = sum(array.size for array in trial.feeds[0]) > 20_000
        if not is_large and (judgement := judge(case, trial, run(trial))).verdict == "violates":
            found = shrink(case, trial, judgement, run)
            assert found is not None, case.id
            assert needed[needs](list(found.trial.feeds[0])), case.id
            expected, feed = found.trial.expected, trial.feeds[judgement.feed]
            assert expected is not None
            assert sum(each.size for each in found.trial.feeds[0]) <= sum(each.size for each in feed), case.id
            assert needs != "nothing" or expected[0].size == 1, case.id
            tried += 1
    assert tried >= 5


LANES = "*of-lengths-9-to-16"
ZEROS = "float16/zeros-of-both-signs-in-each-lane*"
RANK_SEVEN = f"{MAX_13}.shape/float32/rank-7-of-one-shape"
LARGE = "ONNX.ReduceMax-20.nan/float32/rows-with-each-pair-with-a-NaN-one-among-copies-of-the-other-a-sample*"


@pytest.fixture(scope="module")
def faulty(here: None) -> Run:
    return run_of(
        "faulty_backend:Faulty",
        *(f"{MAX_13}.T/{dtype}/{PLAIN}" for dtype in ("*int8", "*int16", "*int32", "int64", "float64")),
        *(f"{MAX_13}.value/{dtype}/{LANES}" for dtype in ("uint64", "float32")),
        *(f"{row}.nan/{ZEROS}" for row in (MAX_13, "SONNX-draft.Max")),
        *(f"SONNX.Max.value/{ZEROS}", RANK_SEVEN, LARGE),
    )


def test_a_value_is_reduced_to_one_element(faulty: Run) -> None:
    finding = finding_of(faulty, "/uint64/")
    assert (finding["verdict"], finding["clause"]) == ("violates", "ONNX.Max-13.value")
    reproducer = reproducer_of(faulty, "/uint64/")
    assert [array["shape"] for array in reproducer["inputs"].values()] == [[1]]  # type: ignore[typeddict-item]
    (given,) = (array["values"][0] for array in reproducer["inputs"].values())  # type: ignore[typeddict-item]
    assert int(given) > 2**53
    assert reproducer["expected"] != reproducer["actual"]
    assert reproducer["expected"]["values"] == [given]  # type: ignore[typeddict-item]


def test_a_lane_keeps_its_length(faulty: Run) -> None:
    reproducer = reproducer_of(faulty, "Max-13.value/float32")
    assert all(array["shape"] == [8] for array in reproducer["inputs"].values())  # type: ignore[typeddict-item]
    assert reproducer["actual"]["values"][7] == "42.0"  # type: ignore[typeddict-item]


def test_a_call_that_has_to_be_large_is_told_in_few_words(faulty: Run) -> None:
    reproducer = reproducer_of(faulty, "ReduceMax")
    assert np.prod(reproducer["inputs"]["data"]["shape"]) > 2000  # type: ignore[typeddict-item]
    assert max(map(len, (reproducer["script"] + reproducer["output"]).splitlines())) < 200
    assert re.search(r"^actual = actual\.reshape\(-1\)\[0:4\]  # of \d+ elements", reproducer["script"], re.MULTILINE)
    assert reproducer["output"].count("[nan, nan, nan, nan]") == 1
    assert reproducer["output"].count("[-inf, -inf, -inf, -inf]") == 1


def test_standards_are_judged_apart(faulty: Run) -> None:
    found = [finding for finding in faulty["findings"] if "/float16/" in finding["case"]]
    assert [(finding["clause"], finding["verdict"]) for finding in found] == [
        ("ONNX.Max-13.nan", "permitted"),
        ("SONNX.Max.value", "violates"),
        ("SONNX-draft.Max.nan", "permitted"),
    ]
    assert found[1]["expected"] != found[1]["actual"]


def test_a_few_refusals_are_not_laid_to_the_type(faulty: Run) -> None:
    finding = finding_of(faulty, RANK_SEVEN)
    assert (finding["verdict"], finding["clause"]) == ("refuses", f"{MAX_13}.shape")


@pytest.mark.parametrize(
    ("dtype", "verdict", "message", "shown"),
    [
        ("int8", "violates", "modified its input a", "input a changed: True\nactual   int8"),
        ("int16", "violates", "modified its input a: its shape or dtype", "input a changed: True\nactual   int16"),
        ("int32", "violates", "modified its input a: its shape or dtype", "input a changed: True\nactual   int32"),
        (
            "uint8",
            "violates",
            "modified its input b before raising an error: ValueError: no",
            "input b changed: True\nValueError: no\n",
        ),
        ("uint16", "uninitialized memory", "two runs differ, and one result is wrong: .*", "actual   uint16"),
        ("uint32", "violates", ".* None .*", "TypeError: 'NoneType'"),
        # a child process that returns must not affect the kit or the scripts of other cases
        ("int64", "violates", "expected dtype int64, got float64", "actual   float64"),
    ],
)
def test_each_fault_is_found_and_its_script_shows_it(
    dtype: str, verdict: str, message: str, shown: str, faulty: Run
) -> None:
    finding = finding_of(faulty, f"{MAX_13}.T/{dtype}/")
    assert finding["verdict"] == verdict
    assert re.fullmatch(message, finding["message"])
    assert shown in reproducer_of(faulty, finding["case"])["output"]
    assert faulty["cases"][f"{MAX_13}.T/float64/{PLAIN}"] == "conforms"


def test_a_version_is_printable_everywhere(faulty: Run) -> None:
    version = r"1.0\n::error::\udc80\x1b[2J"
    assert faulty["version"] == version
    script = reproducer_of(faulty, f"{MAX_13}.T/int8/")["script"]
    assert script.startswith(f"# faulty_backend:Faulty {version}, Max-13 of int8: ")


def test_scripts_reproduce_what_a_program_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test a program with a relative path, although scripts run in another folder."""
    monkeypatch.setattr(session, "sanity_calls", lambda: [sanity_call(spec.MAX_13)])  # each starts the program twice
    name = f"command:{shlex.quote(sys.executable)} own_program.py"
    run = session.conform(name, select(ALL, [f"{MAX_13}.T/int*/{PLAIN}"]))
    found = {case_name(each["case"]).type: (each["verdict"], each["message"]) for each in run["findings"]}
    crash = "crashes", f"{sys.executable} was killed by SIGSEGV"
    assert found == {"int8": ("refuses", "CommandError: no such type"), "int16": crash, "int32": crash}
    assert [each["reproduced"] for each in run["reproducers"]] == [True] * 3


def test_the_end_of_a_process_and_an_error_that_poisons_are_not_the_end() -> None:
    run = run_of("own_backend.Ends", f"{MAX_13}.T/bool/a-type-that-is-not-listed", f"{MAX_13}.T/int*/{PLAIN}")
    found = {case_name(each["case"]).type: each["verdict"] for each in run["findings"]}
    assert found == {"bool": "corrupted state", "int8": "crashes", "int16": "crashes"}
    assert "SIGSEGV" in finding_of(run, "/int8/")["message"]
    assert run["cases"][f"{MAX_13}.T/int64/{PLAIN}"] == "conforms"
    for dtype in found:
        reproducer_of(run, f"/{dtype}/")


@pytest.mark.parametrize(
    ("backend", "message"),
    [("GivesSwappedBytes", ""), ("WritesOutside", "wrote outside the bounds of its input b")],
)
def test_rare_faults_are_reproduced(backend: str, message: str) -> None:
    cases = [f"{MAX_13}.T/float32/{PLAIN}", f"{MAX_13}.value/float32/reversed-arrays", f"{MAX_13}.T/bfloat16/{PLAIN}"]
    run = run_of(
        f"own_backend.{backend}", *cases[: 2 if backend == "GivesSwappedBytes" else 3]
    )  # bfloat16 has only one byte order
    assert [finding["verdict"] for finding in run["findings"]] == ["violates"] * len(run["cases"])
    for case in run["cases"]:
        assert message in finding_of(run, case)["message"]
        reproducer_of(run, case)


def test_a_hang_is_reproduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxops.conformance.reproduce.TIMEOUT_SECONDS", 1)
    run = session.conform("own_backend.Hangs", select(ALL, [f"{MAX_13}.T/int8/{PLAIN}"]), seconds=1)
    assert [*run["cases"].values()] == ["hangs"]
    reproducer_of(run, "/int8/")


def test_a_script_runs_by_itself(faulty: Run, tmp_path: Path) -> None:
    path = tmp_path / "reproducer.py"
    path.write_text(reproducer_of(faulty, "/uint64/")["script"])
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


@pytest.mark.parametrize(
    ("runtime", "only"),
    [
        ("maxops:baseline", ["*float32/*sample*", "*/int64/*short-vec*"]),
        ("onnx-reference", [f"{MAX_13}.T/int8/*short*"]),
    ],
)
def test_every_instruction_set_of_ours_and_onnx_s_own_evaluator_conform(runtime: str, only: list[str]) -> None:
    run = session.conform(runtime, select(ALL, only, quick=True))
    assert set(run["cases"].values()) == {"conforms"}


def test_a_library_is_asked_the_newest_versions_and_refuses_nothing_it_does_not_claim() -> None:
    run = session.conform("numpy", select(ALL, ["ONNX.Max*/float32/*short*", f"{MAX_13}.shape/float32/shapes*"]))
    versions = {case.split(".")[1] for case in run["cases"]}
    assert versions == {"Max-13"}
    refusals = {case: verdict for case, verdict in run["cases"].items() if "/shapes-2-and-3" in case}
    assert set(refusals.values()) == {"not applicable"}
    assert run["version"] == np.__version__


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
        *(
            ("seconds", seconds, f"the timeout must be between 0.1 and 1e+06 seconds, got {seconds}")
            for seconds in (0, -1.0, float("inf"), float("nan"), 1e300)
        ),
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
    assert run["kit"]["bounds"]["Max"]["elements"] == 5
    assert {key: run["kit"][key] for key in ("quick", "only", "repeats")} == {
        "quick": bool(quick),
        "only": [case],
        "repeats": 3,
    }
