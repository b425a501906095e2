"""The judge alone: what a clause that a source leaves open does permit, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from all_cases import ALL
from maxops.conformance.case import Case
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.outcome import Kind, Outcome
from maxops.plan import Array

EMPTY_13 = "ONNX.ReduceMax-13.empty/float32/data-2x0x3-axes-1-keepdims-0"
EMPTY_20 = "ONNX.ReduceMax-20.empty/float32/data-2x0x3-constant-axes-1-keepdims-0"
LAST_AXIS = "ONNX.ReduceMax-1.axes.range/float32/the-last-axis-of-rank-3-as-axes-2"
BELOW = "ONNX.ReduceMax-1.axes.range/float32/axes-1-of-rank-1"
NO_IDS = "OpenVINO.SegmentMax-16.num_segments.no_ids/int64/no-rows-of-rank-2-int64-ids"
LOWEST = "OpenVINO.SegmentMax-16.lowest/float32/rows-some-segments-empty-LOWEST"
LOWER_CASE = "OpenVINO.SegmentMax-16.fill_mode/float32/lowest-in-lower-case"
LARGER = "OpenVINO.SegmentMax-16.num_segments.larger/float32/6-7-100-for-5-segments-with-the-data-LOWEST"
ALONE = "OpenVINO.SegmentMax-16.value/float32/segments-of-a-vector-with-each-pair-of-boundary-values"

REFUSED = "ONNX.ReduceMax-20.axes.range/float32/constant-axes-1-of-rank-1"
NANS, RATIONALS, INTEGERS = "SONNX.Max.NaN/float16/", "SONNX.Max.C2/real/vectors-of-one-size", "SONNX.Max.value/int32/"
OPEN_NANS = "ONNX.Max-13.nan/float16/"

KEEPDIMS = "ONNX.ReduceMax-20.keepdims/int32/keepdims-0-constant-axes-0-2"

BY_ID = {case.id: case for case in ALL}


def case_of(name: str) -> Case:
    return BY_ID.get(name) or next(case for each, case in BY_ID.items() if each.startswith(name))


def judged(name: str, changed: Callable[[Array], Array]) -> Judgement:
    """The judgement on a runtime that gives what is expected, changed."""
    case = case_of(name)
    trial = case.make()
    assert trial.expected is not None
    return judge(case, trial, Outcome("returned", tuple(changed(expected.copy()) for expected in trial.expected)))


def refused(name: str) -> Judgement:
    case = case_of(name)
    return judge(case, case.make(), Outcome("refused", text="an error"))


def with_infinity(expected: Array) -> Array:
    return np.where(expected == np.finfo(np.float32).min, np.float32(-np.inf), expected)


def zeros(expected: Array) -> Array:
    return np.zeros_like(expected)


def one_axis_more(expected: Array) -> Array:
    return expected.reshape(*expected.shape, 1)


def one_row_more(expected: Array) -> Array:
    return np.zeros((len(expected) + 1, *expected.shape[1:]), expected.dtype)


@pytest.mark.parametrize(
    ("name", "changed", "verdict", "clause"),
    [
        # the maximum of nothing may be any value before version 20, but the shape of it is no matter of taste
        (EMPTY_13, zeros, "permitted", "ONNX.ReduceMax-13.empty"),
        (EMPTY_13, one_axis_more, "violates", "ONNX.ReduceMax-13.keepdims"),
        (EMPTY_20, zeros, "violates", "ONNX.ReduceMax-20.empty"),
        # whether version 1 has negative axes is open; the last axis it has
        (LAST_AXIS, zeros, "violates", "ONNX.ReduceMax-1.axes.range"),
        (LAST_AXIS, one_axis_more, "violates", "ONNX.ReduceMax-1.keepdims"),
        # how many segments there are without ids is open; what they are made of is not
        (NO_IDS, one_row_more, "permitted", "OpenVINO.SegmentMax-16.num_segments.no_ids"),
        (NO_IDS, one_axis_more, "violates", "OpenVINO.SegmentMax-16.shape"),
        # -Inf may be the lowest value wherever a segment is filled, but no maximum
        (LOWEST, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (LOWER_CASE, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (LARGER, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (ALONE, with_infinity, "violates", "OpenVINO.SegmentMax-16.value"),
        (LOWEST, zeros, "violates", "OpenVINO.SegmentMax-16.fill_mode"),
        (LOWEST, one_axis_more, "violates", "OpenVINO.SegmentMax-16.shape"),
        # a clause that decides of shapes is itself the one that another shape breaks
        (KEEPDIMS, one_axis_more, "violates", "ONNX.ReduceMax-20.keepdims"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_what_is_open(name: str, changed: Callable[[Array], Array], verdict: str, clause: str) -> None:
    found = judged(name, changed)
    assert (found.verdict, found.clause.id) == (verdict, clause)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        (EMPTY_13, "permitted"),
        (EMPTY_20, "refuses"),
        (NO_IDS, "permitted"),
        (LAST_AXIS, "refuses"),
        (LOWEST, "refuses"),
    ],
)
def test_whether_an_answer_is_open(name: str, verdict: str) -> None:
    assert refused(name).verdict == verdict


def test_whether_a_refusal_is_open() -> None:
    case = case_of(BELOW)
    assert case.refusal
    assert judge(case, case.make(), Outcome("returned", (np.zeros(1, np.float32),))).verdict == "permitted"


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        ("crashed", "crashes"),
        ("hung", "hangs"),
        ("nondeterministic", "uninitialized memory"),
        ("corrupted state", "corrupted state"),
        ("not applicable", "not applicable"),
        ("garbage", "violates"),
        ("overwrote", "violates"),
    ],
)
def test_whatever_else_comes_about(kind: Kind, verdict: str) -> None:
    case = case_of(ALONE)
    found = judge(case, case.make(), Outcome(kind, text="so it was", feed=1))
    assert (found.verdict, found.clause, found.message, found.feed) == (verdict, case.clause, "so it was", 1)


def test_what_must_be_refused() -> None:
    case = case_of(REFUSED)
    trial = case.make()
    assert judge(case, trial, Outcome("refused", text="no")).verdict == "conforms"
    assert judge(case, trial, Outcome("returned", (np.zeros(1, np.float32),))).verdict == "missing error"


def test_what_is_expected_conforms() -> None:
    assert judged(ALONE, np.copy).verdict == "conforms"


def test_another_type_is_the_worst_difference() -> None:
    found = judged(ALONE, lambda expected: expected.astype(np.float64))
    assert (found.verdict, found.clause.id, found.kind) == ("violates", "OpenVINO.SegmentMax-16.T", "type")


def with_other_zeros(expected: Array) -> Array:
    return np.where(expected == 0, -expected, expected)


def with_other_nans(expected: Array) -> Array:
    return (expected.view(np.uint16) ^ np.isnan(expected)).view(np.float16)


def one_more(expected: Array) -> Array:
    return expected + 1


@pytest.mark.parametrize(
    ("name", "changed", "verdict", "clause", "kind"),
    [
        (NANS, np.nan_to_num, "violates", "SONNX.Max.value", "wrong"),  # not what ignoring NaN gives
        (NANS, with_other_nans, "permitted", "SONNX.Max.nan", "NaN's bits"),
        (OPEN_NANS, with_other_nans, "permitted", "ONNX.Max-13.nan", "NaN's bits"),
        ("SONNX.Max.value/float16/", with_other_zeros, "violates", "SONNX.Max.value", "sign of zero"),
        (RATIONALS, one_more, "violates", "SONNX.Max.C2", "wrong"),
        (INTEGERS, one_more, "violates", "SONNX.Max.value", "wrong"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_kinds_of_values(name: str, changed: Callable[[Array], Array], verdict: str, clause: str, kind: str) -> None:
    found = judged(name, changed)
    assert (found.verdict, found.clause.id, found.kind) == (verdict, clause, kind)


def test_a_lost_nan() -> None:
    case = case_of(NANS)
    trial = case.make()
    assert trial.without_nan is not None
    found = judge(case, trial, Outcome("returned", tuple(trial.without_nan)))
    assert (found.verdict, found.clause.id, found.kind) == ("violates", "SONNX.Max.NaN", "NaN")
