"""Combinations of verdicts: different runs, cases of one type, and empty selections."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.all_cases import ALL
from maxops import dtypes, spec
from maxops.cli.app import app
from maxops.conformance import session
from maxops.conformance.attempt import attempt
from maxops.conformance.case import Case, Trial
from maxops.conformance.cases import NoSuchCaseError, select
from maxops.conformance.child import RuntimeUnusableError
from maxops.conformance.judge import judge
from maxops.conformance.outcome import Kind, Outcome, same_bits
from maxops.conformance.poison import Memory
from maxops.conformance.result import FAULTS, OPEN, elements
from maxops.conformance.runtimes.runtime import Runtime
from maxops.plan import Array
from maxops.spec import Spec
from trials import Does

ONNX_NAN = "ONNX.Max-13.nan/float32/one-input-of-NaNs"
REFUSAL = "ONNX.ReduceMax-20.axes.range/float32/constant-axes-1-of-rank-1"
BY_ID = {case.id: case for case in ALL}


def bits32(*words: int) -> Array:
    return np.array(words, np.uint32).view(np.float32)


# Possible results for a NaN in one run: the expected bits, other bits that ONNX permits, and a forbidden result.
RESULTS = {
    "quiet": (bits32(0x7FC00000), True),
    "negative": (bits32(0xFFC00000), True),
    "payload": (bits32(0x7FC00007), True),
    "number": (bits32(0x3F800000), False),
    "another type": (np.array([np.nan]), False),
    "another shape": (bits32(0x7FC00000).reshape(1, 1), False),
}


@pytest.mark.parametrize("names", [*product(RESULTS, RESULTS)], ids="-".join)
def test_runs_that_differ_are_judged_one_by_one(names: tuple[str, str]) -> None:
    first, second = (RESULTS[name] for name in names)
    case = BY_ID[ONNX_NAN]
    trial = Trial(case.make().call, ((bits32(0x7FC00000),),), (bits32(0x7FC00000),), (bits32(0x7FC00000),))
    runs = iter([first[0], second[0]])

    found = judge(case, trial, attempt(Does(lambda feed: next(runs)), trial, Memory()))
    if names[0] == names[1]:
        assert (found.verdict in FAULTS) != first[1]
    elif first[1] and second[1]:
        assert found.verdict == "not the same twice"
        assert found.verdict in OPEN
    else:
        assert found.verdict == "uninitialized memory"
        assert found.run == (0 if not first[1] else 1)


@pytest.mark.parametrize("wrong", ["number", "another type", "another shape"])
def test_a_fault_is_found_after_many_results_that_are_permitted(wrong: str) -> None:
    case = BY_ID[ONNX_NAN]
    nan = bits32(0x7FC00000)
    trial = Trial(case.make().call, ((nan,),), (nan,), (nan,))
    runs = [*(bits32(0x7FC00000 + number) for number in range(20)), RESULTS[wrong][0], bits32(0x7FC00033)]
    left = iter(runs)

    outcome = attempt(Does(lambda feed: next(left)), trial, Memory(), len(runs))
    found = judge(case, trial, outcome)
    assert found.verdict == "uninitialized memory"
    assert same_bits(outcome.runs[found.run][0], RESULTS[wrong][0])
    assert found.message.startswith("at least 9 different results in 22 runs, and one result is wrong: ")


# ------------------------------------------------------------------------------------------ cases of one type

OUTCOMES: tuple[Kind, ...] = ("returned", "refused", "crashed", "hung", "garbage", "corrupted state", "not applicable")
OF_TYPE = [
    BY_ID["ONNX.Max-13.T/int8/two-short-vectors"],
    BY_ID["ONNX.Max-13.inputs/int8/3-inputs"],
    BY_ID["ONNX.Max-13.inputs/int8/one-input"],
]


class Workers:
    """A pool with one process that returns given outcomes for each case, and others at exit."""

    def __init__(self, outcomes: dict[str, Outcome], amended: dict[str, Outcome]) -> None:
        self._outcomes, self._amended = outcomes, amended
        self.asked: list[tuple[str, Spec]] = []

    def run(self, name: str, trial: Trial, seconds: float) -> Outcome:
        self.asked.append((name, trial.call.row))
        outcome = self._outcomes.get(name.split(" ", maxsplit=1)[0])
        if outcome is None:
            raise RuntimeUnusableError("told is gone")
        return outcome

    def map(self, work: Any, jobs: Any, progress: Any) -> list[Any]:
        return [work(self, job) for job in jobs if not isinstance(job, Trial)]

    def amended(self) -> dict[str, Outcome]:
        return self._amended


def run_of(
    cases: list[Case], outcomes: dict[str, Outcome], amended: dict[str, Outcome] | None = None, claims: str = ""
) -> session._Session:
    runtime: Any = Runtime()
    runtime.name, runtime.claims = "told", frozenset({claims} - {""})
    workers: Any = Workers(outcomes, amended or {})
    made = session._Session(runtime, workers, 1, lambda done, of, doing: None)
    made.run(cases)
    return made


def verdicts_of(made: session._Session) -> dict[str, str]:
    return {each.case.id: each.judgement.verdict for each in made.judged}


def verdicts(cases: list[Case], outcomes: dict[str, Outcome]) -> dict[str, str]:
    return verdicts_of(run_of(cases, outcomes))


def right(cases: list[Case]) -> dict[str, Outcome]:
    return {case.id: Outcome("returned", case.make().expected or ()) for case in cases}


@pytest.mark.parametrize("first", OUTCOMES)
def test_each_verdict_beside_each_other(first: Kind) -> None:
    """Test that each case has its own verdict. If a type is always rejected, the verdict is that of the type."""
    for kinds in product([first], OUTCOMES, OUTCOMES):
        outcomes = {}
        alone = {}
        for case, kind in zip(OF_TYPE, kinds, strict=True):
            trial = case.make()
            assert trial.expected is not None
            wrong = tuple(np.zeros_like(array) - 1 for array in trial.expected)
            outcomes[case.id] = Outcome(kind, wrong if kind == "returned" else (), text="so it was")
            alone[case.id] = judge(case, trial, outcomes[case.id]).verdict
        if set(kinds) == {"not applicable"}:
            with pytest.raises(session.NothingToJudgeError, match="none of the 3 selected cases is applicable"):
                verdicts(OF_TYPE, outcomes)
            continue
        made = run_of(OF_TYPE, outcomes)
        assert verdicts_of(made) == alone
        assert Counter(alone.values())["refuses"] == kinds.count("refused")
        judged = {each.case.id: each for each in made.judged if each.judgement.verdict != "not applicable"}
        of_type = OF_TYPE[0].id in judged and all(each.outcome == "refused" for each in judged.values())
        for each in judged.values():
            assert each.judgement.clause == (OF_TYPE[0] if of_type else each.case).clause
            assert each.judgement.kind == ("type" if of_type else each.original.kind)
            assert each.original == judge(each.case, each.case.make(), outcomes[each.case.id])


@pytest.mark.parametrize("outcome", ["refused", "returned"])
def test_what_must_be_refused_says_nothing_of_a_missing_type(outcome: Kind) -> None:
    refusal = BY_ID["ONNX.Max-13.T/int8/beside-int16"]
    outcomes = {case.id: Outcome("refused", text="no") for case in OF_TYPE}
    outputs = (np.zeros(1, np.int8),) if outcome == "returned" else ()
    made = run_of([*OF_TYPE, refusal], outcomes | {refusal.id: Outcome(outcome, outputs, text="no")}, claims="ONNX")
    assert [each.judgement.clause.id for each in made.judged] == ["ONNX.Max-13.T"] * 4
    assert made.judged[3].judgement.verdict == ("conforms" if outcome == "refused" else "missing error")


def test_an_open_refusal_stays_permitted() -> None:
    cases = [case for case in ALL if "no_ids/float32/" in case.id]
    assert {*verdicts(cases, {case.id: Outcome("refused", text="no") for case in cases}).values()} == {"permitted"}


@pytest.mark.parametrize("claims", ["", "ONNX", "SONNX", "SONNX draft", "OpenVINO"])
def test_cases_of_one_trial_run_once_for_each_standard_that_can_be_named(claims: str) -> None:
    valid, refusal = BY_ID["ONNX.Max-13.T/int8/two-short-vectors"], BY_ID["ONNX.Max-13.T/int8/beside-int16"]
    cases = [case for case in ALL if case.trial_id in (valid.id, refusal.id)]
    outcomes = right([valid]) | {refusal.id: Outcome("refused", text="no")}
    made = run_of(cases, outcomes, claims=claims)
    workers: Any = made._workers
    standards = ("ONNX", "SONNX", "SONNX draft")
    assert [case.row.standard for case in cases] == [*standards] * 2
    named = {"": [("", spec.MAX_13)], "OpenVINO": [("", spec.MAX_13)]}.get(claims) or [
        ("", spec.MAX_13),
        (f" {claims}", next(case.row for case in cases if case.row.standard == claims)),
    ]
    assert {(name, row) for name, row in workers.asked if name.startswith(valid.id)} == {
        (f"{valid.id}{suffix}", row) for suffix, row in named
    }
    refused = [claims in ("ONNX", standard) for standard in standards]
    assert list(verdicts_of(made).values()) == ["conforms"] * 3 + [
        "conforms" if each else "not applicable" for each in refused
    ]
    own = {f"{refusal.id} {claims}"} if any(refused) else set()
    runs = own if claims != "ONNX" else {refusal.id, f"{refusal.id} ONNX"}
    assert {name for name, _ in workers.asked if name.startswith(refusal.id)} == runs
    assert len(workers.asked) == len({*workers.asked})


@pytest.mark.parametrize("takes_arrays", [True, False])
def test_layouts_are_for_runtimes_that_take_arrays(takes_arrays: bool) -> None:
    cases = [BY_ID[f"ONNX.Max-13.value/int8/{each}"] for each in ("reversed-arrays", "10000-elements")]
    runtime, workers = Runtime(), Workers(right(cases), {})
    runtime.name, runtime.takes_arrays = "told", takes_arrays  # type: ignore[misc]
    made = session._Session(runtime, workers, 1, lambda done, of, doing: None)  # type: ignore[arg-type]
    made.run(cases)
    assert list(verdicts_of(made).values()) == ["conforms" if takes_arrays else "not applicable", "conforms"]
    assert len(workers.asked) == 1 + takes_arrays
    if not takes_arrays:
        assert made.judged[0].judgement.message == "the runtime reads arrays from files, which are always contiguous"


@pytest.mark.parametrize("claims", ["", "ONNX"])
@pytest.mark.parametrize("number", range(3))
def test_what_a_process_ended_of_later_is_the_verdict(number: int, claims: str) -> None:
    crashed = Outcome("crashed", text="after it, SIGABRT")
    name = f"{OF_TYPE[number].trial_id} {claims}".rstrip()
    made = run_of(OF_TYPE, right(OF_TYPE), {name: crashed, "another": crashed}, claims)
    verdicts = ["conforms"] * 3
    verdicts[number] = "crashes"
    assert list(verdicts_of(made).values()) == verdicts
    assert made.judged[number].actual == {"text": "after it, SIGABRT"}
    assert made.judged[number].counterexample is not None


def test_calls_of_a_kind_that_hang_are_given_up_and_no_others() -> None:
    kinds = ("ONNX.Max-13.shape/int8/", "ONNX.Max-13.shape/int16/", "ONNX.ReduceMax-20.axes/int8/")
    columns = [[case for case in ALL if case.id.startswith(each) and not case.refusal][:5] for each in kinds]
    cases = [case for row in zip(*columns, strict=True) for case in row]
    hung = {case.id: Outcome("hung", text="no answer") for case in cases if case.dtype is dtypes.INT8}
    made = run_of(cases, right(cases) | hung)
    found = verdicts_of(made)
    given_up = ["hangs"] * 3 + ["not applicable"] * 2
    for column, expected in zip(columns, (given_up, ["conforms"] * 5, given_up), strict=True):
        assert [found[case.id] for case in column] == expected
    said = {each.judgement.message for each in made.judged if each.judgement.verdict == "not applicable"}
    assert said == {"not run: 3 similar calls timed out"}


@pytest.mark.parametrize("kind", ["crashed", "garbage"])
def test_what_was_found_before_a_runtime_is_gone_stays_found(kind: Kind) -> None:
    """Test that findings remain if the runtime cannot start again, for the next case or a smaller call."""
    large = next(case for case in ALL if case.id.startswith("ONNX.Max-13.value/int8/") and len(case.make().feeds) > 1)
    ended = Outcome(kind, text="it was not made for this", feed=1)

    class Once(Workers):
        def run(self, name: str, trial: Trial, seconds: float) -> Outcome:
            outcome = super().run(name, trial, seconds)
            self._outcomes.clear()
            return outcome

    workers: Any = Once({large.id: ended}, {})
    runtime: Any = Runtime()
    runtime.name = "told"
    made = session._Session(runtime, workers, 1, lambda done, of, doing: None)
    made.run([large, *OF_TYPE])
    made.report()
    expected = {"crashed": "crashes", "garbage": "violates"}[kind]
    assert list(verdicts_of(made).values()) == [expected, *["not applicable"] * 3]
    assert {each.judgement.message for each in made.judged[1:]} == {
        "not run: the runtime cannot be restarted: told is gone"
    }
    (finding,) = made.findings
    assert (finding["case"], finding["verdict"], finding["reproducer"]) == (large.id, expected, None)
    assert (finding["message"], finding["feed"]) == ("it was not made for this", 1)


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_of_runs_that_differ_the_wrong_one_is_shown(wrong: int) -> None:
    case = BY_ID[ONNX_NAN]
    (expected,) = case.make().expected or ()
    runs = [(expected.view(np.uint32) + number).view(np.float32) for number in range(3)]
    runs[wrong] = np.ones_like(expected)
    made = run_of([case], {case.id: Outcome("nondeterministic", (runs[0],), (runs[1], runs[2]), "they differ")})
    (found,) = made.judged
    assert (found.judgement.verdict, found.judgement.run) == ("uninitialized memory", wrong)
    assert (found.expected, found.actual) == (elements(expected), elements(runs[wrong]))


@pytest.mark.parametrize("size", [16, 17])
def test_a_finding_shows_a_small_result_whole_and_of_a_large_one_the_element(size: int) -> None:
    array = np.arange(size, dtype=np.int8)
    assert session._excerpt(array, (3,)) == elements(array if size == 16 else np.asarray(array[3]))
    text = {"text": "int8 of shape (17,)"}
    assert session._excerpt(array, None) == (elements(array) if size == 16 else text)


# --------------------------------------------------------------------------------- selections that leave nothing


@pytest.mark.parametrize("only", ["", " ", ",", " , ,"])
def test_blank_patterns_choose_nothing(only: str) -> None:
    with pytest.raises(NoSuchCaseError, match="all patterns are blank"):
        select(ALL, [only])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["numpy", "--only", "ONNX.Max-8.T"], "The runtime does not version its operators"),
        (["numpy", "--only", "ONNX.Max-13.T/*/a-type-that-is-not-listed"], "none of the"),
        (["numpy", "--only", "ONNX.Max-13.value/*/within*"], "none of the"),
        (["numpy", "--only", ","], "all patterns are blank"),
        (["numpy", "--only", "ONNX.Max-13.T/int8/two*", "--select", "OpenVINO"], "exclude every case"),
        (["--list", "--only", ","], "all patterns are blank"),
        (["numpy", "--repeat", "1"], "between 2 and 1000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_selection_that_leaves_nothing_is_an_error(arguments: list[str], text: str) -> None:
    result = CliRunner().invoke(app, ["conform", *arguments])
    assert result.exit_code == 2
    assert text in " ".join(result.output.replace("│", " ").split())


def test_every_type_that_a_quick_run_judges_is_judged_by_the_new_families() -> None:
    found = {case.dtype for case in ALL if case.quick and "in turn" in case.sentence}
    assert found == {*dtypes.ALL} - {dtypes.REAL}
