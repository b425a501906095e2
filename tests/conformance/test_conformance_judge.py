"""The judge: the results that it permits or rejects for clauses that a source leaves open."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from helpers.all_cases import ALL
from maxops.conformance.case import Case, Layout, Trial
from maxops.conformance.judge import Judgement, differences, judge
from maxops.conformance.layouts import LAYOUTS
from maxops.conformance.outcome import Kind, Outcome, same_bits
from maxops.plan import Array

EMPTY_13 = "ONNX.ReduceMax-13.empty/float32/data-2x0x3-axes-1-keepdims-0"
EMPTY_20 = "ONNX.ReduceMax-20.empty/float32/data-2x0x3-constant-axes-1-keepdims-0"
LAST_AXIS = "ONNX.ReduceMax-1.axes.range/float32/the-last-axis-of-rank-3-as-axes-2"
BELOW = "ONNX.ReduceMax-1.axes.range/float32/axes-1-of-rank-1"
REVERSED = "ONNX.Max-13.value/float32/reversed-arrays"
NO_IDS = "OpenVINO.SegmentMax-16.num_segments.no_ids/int64/no-rows-of-rank-2-int64-ids"
LOWEST = "OpenVINO.SegmentMax-16.lowest/float32/rows-some-segments-empty-LOWEST"
LOWER_CASE = "OpenVINO.SegmentMax-16.fill_mode/float32/lowest-in-lower-case"
LARGER = "OpenVINO.SegmentMax-16.num_segments.larger/float32/6-7-100-for-5-segments-with-the-data-LOWEST"
ALONE = "OpenVINO.SegmentMax-16.value/float32/segments-of-a-vector-with-each-pair-of-boundary-values"

REFUSED = "ONNX.ReduceMax-20.axes.range/float32/constant-axes-1-of-rank-1"
NANS, RATIONALS, INTEGERS = "SONNX.Max.NaN/float16/", "SONNX.Max.C2/real/vectors-of-one-size", "SONNX.Max.value/int32/"
OPEN_NANS = "ONNX.Max-13.nan/float16/"

KEEPDIMS = "ONNX.ReduceMax-20.keepdims/int32/keepdims-0-constant-axes-0-2"

DEFAULT = "ONNX.ReduceMax-20.axes.default/float16/no-axes-rank-3-keepdims-0"

ONE, TWO, INFINITY, NAN = 0x3C00, 0x4000, 0x7C00, 0x7E00

BY_ID = {case.id: case for case in ALL}


def case_of(name: str) -> Case:
    return BY_ID.get(name) or next(case for each, case in BY_ID.items() if each.startswith(name))


def float16(*bits: int) -> Array:
    return np.array(bits, np.uint16).view(np.float16)


def judged(name: str, changed: Callable[[Array], Array]) -> Judgement:
    """Return the judgement of a runtime that returns the expected results after applying `changed` to them."""
    case = case_of(name)
    trial = case.make()
    assert trial.expected is not None
    return judge(case, trial, Outcome("returned", tuple(changed(expected.copy()) for expected in trial.expected)))


def refused(name: str) -> Judgement:
    case = case_of(name)
    return judge(case, case.make(), Outcome("refused", text="an error", feed=1))


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
        # before version 20, the maximum of no elements may be any value, but its shape is defined
        (EMPTY_13, zeros, "permitted", "ONNX.ReduceMax-13.empty"),
        (EMPTY_13, one_axis_more, "violates", "ONNX.ReduceMax-13.keepdims"),
        (EMPTY_20, zeros, "violates", "ONNX.ReduceMax-20.empty"),
        # whether version 1 supports negative axes is open, but not the meaning of the last axis
        (LAST_AXIS, zeros, "violates", "ONNX.ReduceMax-1.axes.range"),
        (LAST_AXIS, one_axis_more, "violates", "ONNX.ReduceMax-1.keepdims"),
        # the number of segments without ids is open, but not their values
        (NO_IDS, one_row_more, "permitted", "OpenVINO.SegmentMax-16.num_segments.no_ids"),
        (NO_IDS, one_axis_more, "violates", "OpenVINO.SegmentMax-16.shape"),
        # -Inf may be the lowest value where a segment is filled, but it is never a maximum
        (LOWEST, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (LOWER_CASE, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (LARGER, with_infinity, "permitted", "OpenVINO.SegmentMax-16.lowest"),
        (ALONE, with_infinity, "violates", "OpenVINO.SegmentMax-16.value"),
        (LOWEST, zeros, "violates", "OpenVINO.SegmentMax-16.fill_mode"),
        (LOWEST, one_axis_more, "violates", "OpenVINO.SegmentMax-16.shape"),
        # a clause that defines shapes is violated by another shape
        (KEEPDIMS, one_axis_more, "violates", "ONNX.ReduceMax-20.keepdims"),
        (DEFAULT, one_axis_more, "violates", "ONNX.ReduceMax-20.axes.default"),
        ("ONNX.Max-13.inputs/float32/3-inputs", one_axis_more, "violates", "ONNX.Max-13.inputs"),
        # a clause about values is not violated by another shape if a different clause defines shapes
        (NANS, one_axis_more, "violates", "SONNX.Max.C2"),
        (ALONE, one_axis_more, "violates", "OpenVINO.SegmentMax-16.shape"),
        ("ONNX.ReduceMax-20.value/int32/", one_axis_more, "violates", "ONNX.ReduceMax-20.value"),
        ("SONNX-draft.Max.value/float16/", one_axis_more, "violates", "SONNX-draft.Max.C1"),
        # the number of segments does not determine the shape of the maximum of no elements
        (EMPTY_13, one_row_more, "violates", "ONNX.ReduceMax-13.keepdims"),
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
    found = refused(name)
    assert (found.verdict, found.message, found.feed) == (verdict, "an error", 1)


def test_what_a_source_decides_of_no_ids_is_not_open() -> None:
    """Test that calls without ids are definite if a later version of the standard defines them."""
    case = case_of(NO_IDS)
    decided = replace(case, clause=replace(case.clause, level="must"))
    trial = case.make()
    given = Outcome("returned", tuple(map(one_row_more, trial.expected or ())))
    assert judge(decided, trial, given).verdict == "violates"
    assert judge(decided, trial, Outcome("refused", text="no")).verdict == "refuses"


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
@pytest.mark.parametrize("name", ["ALONE", "EMPTY_13", "NO_IDS", "REFUSED", "BELOW", "REVERSED"])
def test_whatever_else_comes_about(kind: Kind, verdict: str, name: str) -> None:
    """Test that no clause excuses a crash, even if the clause is open or the call is invalid."""
    case = case_of(globals()[name])
    found = judge(case, case.make(), Outcome(kind, text="so it was", feed=1))
    assert (found.verdict, found.clause, found.message, found.feed) == (verdict, case.clause, "so it was", 1)


def test_what_must_be_refused() -> None:
    case = case_of(REFUSED)
    trial = case.make()
    assert judge(case, trial, Outcome("refused", text="no")).verdict == "conforms"
    assert judge(case, trial, Outcome("returned", (np.zeros(1, np.float32),))).verdict == "missing error"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_refusing_a_layout_is_no_fault(layout: Layout) -> None:
    case = case_of(KEEPDIMS)
    found = judge(case, replace(case.make(), layout=layout), Outcome("refused", text="no", feed=1))
    expected = ("refuses", "no") if layout == "contiguous" else ("not applicable", f"layout {layout!r} are unsupported")
    assert (found.verdict, found.feed) == (expected[0], 1)
    assert expected[1] in found.message


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
        (NANS, np.nan_to_num, "violates", "SONNX.Max.value", "wrong"),  # differs from a result that ignores NaN
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


def test_what_is_open_excuses_nothing_beside_it() -> None:
    case = case_of(NANS)
    expected = float16(NAN, ONE)
    trial = Trial(case.make().call, (), (expected,), (expected,))
    found = judge(case, trial, Outcome("returned", (float16(0xFE00, TWO),)))
    assert (found.verdict, found.clause.id, found.kind) == ("violates", "SONNX.Max.value", "wrong")


def test_a_difference_that_is_not_open_counts_before_one_that_is() -> None:
    """Test that a definite difference takes precedence over an open one, whichever is worse."""
    case = case_of(LOWEST)
    strict = replace(case, row=replace(case.row, leaves_open=frozenset()))
    trial = Trial(case.make().call, (), (np.array([np.finfo(np.float32).min, 0], np.float32),))
    found = judge(strict, trial, Outcome("returned", (np.array([-np.inf, -0.0], np.float32),)))
    assert (found.verdict, found.clause.id, found.kind) == ("violates", "OpenVINO.SegmentMax-16.value", "sign of zero")


@pytest.mark.parametrize(
    ("name", "actual", "expected", "without_nan", "clause"),
    [
        ("ONNX.Max-13.nan/float16/", ONE, TWO, TWO, "ONNX.Max-13.value"),
        (NANS, ONE, TWO, TWO, "SONNX.Max.value"),
        (NANS, 0x8000, 0, 0, "SONNX.Max.value"),
        ("SONNX.Max.value/float16/", ONE, NAN, ONE, "SONNX.Max.NaN"),
    ],
)
def test_the_clause_of_a_value(name: str, actual: int, expected: int, without_nan: int, clause: str) -> None:
    case = case_of(name)
    trial = Trial(case.make().call, (), (float16(expected),), (float16(without_nan),))
    found = judge(case, trial, Outcome("returned", (float16(actual),)))
    assert (found.verdict, found.clause.id) == ("violates", clause)


def test_infinity_for_the_lowest_value_of_an_operator_without_a_fill() -> None:
    case = case_of("ONNX.Max-13.shape/float32/scalars")
    trial = Trial(case.make().call, (), (np.array(np.finfo(np.float32).min),))
    found = judge(case, trial, Outcome("returned", (np.array(-np.inf, np.float32),)))
    assert (found.verdict, found.clause.id, found.kind) == ("violates", "ONNX.Max-13.shape", "-Inf")


def test_there_is_a_result_for_each_feed() -> None:
    case = case_of(ALONE)
    with pytest.raises(ValueError, match="longer"):
        judge(case, case.make(), Outcome("returned"))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "real"])
@pytest.mark.parametrize("feed", range(3))
@pytest.mark.parametrize(("index", "place"), [((0, 0), 0), ((0, 2), 2), ((1, 1), 4)])
@pytest.mark.parametrize("runs", ["one run", "the first of two", "the second of two"])
def test_a_difference_is_told_with_its_feed_and_its_index(
    feed: int, index: tuple[int, ...], place: int, runs: str, dtype: str
) -> None:
    """Test that the first difference of a kind is reported, whatever follows."""
    case = case_of(f"ONNX.Max-13.inputs/{dtype}/3-inputs" if dtype != "real" else RATIONALS)
    rights = [(np.arange(6).reshape(2, 3) + number).astype(case.dtype.numpy) for number in range(3)]
    given = [expected.copy() for expected in rights]
    for each in given[feed:]:
        each.reshape(-1)[place:] = 9
    trial = Trial(case.make().call, (), tuple(rights))
    outcome = {
        "one run": Outcome("returned", tuple(given)),
        "the first of two": Outcome("nondeterministic", tuple(given), tuple(rights), "two runs differ", feed),
        "the second of two": Outcome("nondeterministic", tuple(rights), tuple(given), "two runs differ", feed),
    }[runs]
    found = judge(case, trial, outcome)
    wrong = f"{6 - place} of 6 elements: wrong maximum"
    if runs == "one run":
        assert (found.verdict, found.message, found.run) == ("violates", wrong, 0)
    else:
        message = f"two runs differ, and one result is wrong: {wrong}"
        run = ["the first of two", "the second of two"].index(runs)
        assert (found.verdict, found.message, found.run) == ("uninitialized memory", message, run)
    assert (found.clause, found.feed, found.index) == (case.clause, feed, index)


def test_runs_that_differ_as_is_permitted_are_told_with_the_first_that_does() -> None:
    case = case_of(OPEN_NANS)
    nans, others = float16(ONE, NAN), float16(ONE, 0xFE00)
    trial = Trial(case.make().call, (), (nans, nans), (nans, nans))
    found = judge(case, trial, Outcome("nondeterministic", (nans, nans), (nans, others), "two runs differ", 1))
    assert (found.verdict, found.clause.id, found.feed, found.index, found.run) == (
        "not the same twice", "ONNX.Max-13.nan", 1, (1,), 1
    )  # fmt: skip
    assert found.message == "two runs differ, and each result is permitted: 1 of 2 elements: NaN with different bits"


@pytest.mark.parametrize(
    ("actual", "expected", "without_nan", "kinds"),
    [
        # a correct element has no kind, regardless of the others
        ([ONE, 0], [TWO, 0], [TWO, 0], [("wrong", (0,))]),
        ([ONE, NAN], [TWO, NAN], [TWO, TWO], [("wrong", (0,))]),
        ([ONE, ONE, TWO], [TWO, TWO, TWO], [TWO, TWO, TWO], [("wrong", (0,))]),
        # a zero instead of another value, and another value instead of a zero
        ([ONE], [0], [0], [("wrong", (0,))]),
        ([0], [ONE], [ONE], [("wrong", (0,))]),
        ([0], [1], [1], [("wrong", (0,))]),
        ([0x8000], [0], [0], [("sign of zero", (0,))]),
        # infinity is not a NaN; NaNs differ in every bit
        ([0xFC00], [INFINITY], [INFINITY], [("wrong", (0,))]),
        ([INFINITY], [NAN], [ONE], [("wrong", (0,))]),
        ([NAN], [INFINITY], [INFINITY], [("wrong", (0,))]),
        ([0x7C01], [NAN], [NAN], [("NaN's bits", (0,))]),
        ([0xFE00], [NAN], [NAN], [("NaN's bits", (0,))]),
        # only the result that ignores NaN, with either zero
        ([TWO], [NAN], [TWO], [("NaN", (0,))]),
        ([0x8000], [NAN], [0], [("NaN", (0,))]),
        ([0], [NAN], [0x8000], [("NaN", (0,))]),
        ([0], [NAN], [TWO], [("wrong", (0,))]),
        ([TWO], [NAN], [0], [("wrong", (0,))]),
        ([TWO], [ONE], [TWO], [("wrong", (0,))]),
    ],
    ids=str,
)
def test_kinds_of_elements(actual: list[int], expected: list[int], without_nan: list[int], kinds: list[Any]) -> None:
    found = differences(float16(*actual), float16(*expected), float16(*without_nan))
    assert [(each.kind, each.index) for each in found] == kinds


def test_integers_have_one_zero() -> None:
    lowest, zero = np.array([-(2**31)], np.int32), np.array([0], np.int32)
    assert [each.kind for each in differences(lowest, zero, zero)] == ["wrong"]


@pytest.mark.parametrize(
    ("actual", "text"),
    [
        (np.zeros((2, 3)), "expected dtype float32, got float64"),
        (np.zeros((2, 3), np.complex64), "expected dtype float32, got complex64"),
        (np.zeros((2, 3), object), "expected dtype float32, got real"),
        (np.zeros((2, 4), np.float32), "expected shape (2, 3), got (2, 4)"),
        (np.ones((2, 3), np.float32), "6 of 6 elements: wrong maximum"),
        (np.array([[0, 0, 0], [0, 1, 0]], np.float32), "1 of 6 elements: wrong maximum"),
    ],
    ids=str,
)
def test_what_is_said_of_a_difference(actual: Array, text: str) -> None:
    expected = np.zeros((2, 3), np.float32)
    assert [each.text for each in differences(actual, expected, expected)] == [text]


@pytest.mark.parametrize(
    ("actual", "expected", "only"),
    [((3,), (2,), True), ((3, 4), (2, 4), True), ((3, 5), (2, 4), False), ((2, 5), (2, 4), False), ((), (2,), False)],
    ids=str,
)
def test_whether_only_the_first_size_differs(actual: Sequence[int], expected: Sequence[int], only: bool) -> None:
    (found,) = differences(*(np.zeros(shape, np.float32) for shape in (actual, expected, expected)))
    assert (found.kind, found.only_first_size) == ("shape", only)


HALF = Fraction(1, 2)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (float16(NAN, 0), float16(NAN, 0), True),
        (float16(0), float16(0x8000), False),
        (float16(NAN), float16(0xFE00), False),
        (np.array([1], np.int32), np.array([1], np.uint32), False),
        (np.zeros((2, 1)), np.zeros((1, 2)), False),
        (np.array([HALF, 1], object), np.array([Fraction(1, 2), Fraction(1)], object), True),
        (np.array([HALF], object), np.array([Fraction(1, 3)], object), False),
    ],
    ids=str,
)
def test_whether_bits_are_the_same(one: Array, other: Array, same: bool) -> None:
    assert same_bits(one, other) is same
