"""Tests of the kit: runtimes that violate a single clause, and the kit's verdict on each clause."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.all_cases import ALL, UNCOVERED
from maxops import dtypes, spec
from maxops.conformance.attempt import attempt
from maxops.conformance.case import Call, Case, Feed, Trial
from maxops.conformance.judge import Judgement, judge
from maxops.conformance.poison import Memory
from maxops.conformance.runtimes.runtime import Prepared, Runtime
from maxops.errors import MaxopsError, SegmentIdsError
from maxops.plan import Array
from maxops.spec import Clause, Spec

Whole = list[Array | None]
Attributes = dict[str, Any]
# A fault: what a faulty runtime computes for a call.
Fault = Callable[[Spec, Whole, Attributes], Any]

# The numbers of cases per clause and of feeds per case, so that the whole table takes seconds.
MOST_CASES, MOST_FEEDS = 8, 8


def right(row: Spec, whole: Sequence[Any], attributes: Attributes) -> Array:
    result: Array = mo.operator(row.standard, row.operator, row.version)(*whole, **attributes)
    return result


def like_the_plain_function(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    """Accept every type and shape that the newest version accepts."""
    if row.is_scatter:  # no plain function
        return first_elements(row, whole, attributes)
    known = {name: value for name, value in attributes.items() if name != "consumed_inputs"}
    name = {"Max": "maximum", "ReduceMax": "reduce_max", "SegmentMax": "segment_max"}[row.operator]
    if row.operator == "ReduceMax" and len(whole) > 1:
        known["axes"] = whole[1]
        whole = whole[:1]
    return getattr(mo, name)(*whole, **known)  # type: ignore[no-any-return]


def or_zeros(fault: Fault) -> Fault:
    """Return the correct result of a valid call, and the result of the faulty runtime for an invalid call."""

    def answer(row: Spec, whole: Whole, attributes: Attributes) -> Any:
        try:
            return right(row, whole, attributes)
        except MaxopsError:
            return fault(row, whole, attributes)

    return answer


def first_elements(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    """Return a result of the right type where an error is required."""
    del row, attributes
    data = next((array for array in whole if array is not None), np.zeros(1, np.float32))
    return np.zeros((1,), data.dtype)


# ------------------------------------------------------------------------------------------------------- faults


def smallest_of_two(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    result = right(row, whole, attributes)
    if result.size and result.dtype != object:
        result.reshape(-1)[-1] = np.zeros((), result.dtype)
    return result


def passes_nan_over(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    """Ignore NaN like fmax, unless all elements are NaN."""
    result = right(row, whole, attributes)
    changed = list(whole)
    for number, array in enumerate(whole):
        if array is not None and array.dtype == result.dtype:
            changed[number] = np.where(np.isnan(array), np.array(-np.inf, array.dtype), array)
    numbers = right(row, changed, attributes)
    return np.where(np.isnan(result) & (numbers > -np.inf), numbers, result)


def other_nan(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    result = right(row, whole, attributes)
    return np.where(np.isnan(result), -result, result)


def other_zero(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    result = right(row, whole, attributes)
    return np.where(result == 0, -result, result)


def wrong_shape(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    result = right(row, whole, attributes)
    return result.reshape(*result.shape, 1)


def widens(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    result = right(row, whole, attributes)
    return result.astype(np.float64) if result.dtype == np.float32 else result


def refuses_attribute(name: str) -> Fault:
    def answer(row: Spec, whole: Whole, attributes: Attributes) -> Array:
        if name in attributes:
            raise ValueError(f"unknown attribute {name}")
        return right(row, whole, attributes)

    return answer


def without_axes_the_last(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    data = whole[0]
    axes = attributes.get("axes") if len(whole) < 2 else whole[1]
    if data is None or (axes is not None and np.size(axes)) or data.ndim < 2:
        return right(row, whole, attributes)
    last: Array = mo.reduce_max(data, (-1,), bool(attributes.get("keepdims", 1)))
    return last


def never_keeps(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    return right(row, whole, attributes | {"keepdims": 0})


def no_identity(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    return right(row, whole, {name: value for name, value in attributes.items() if name != "noop_with_empty_axes"})


def refuses_empty(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    if whole[0] is not None and whole[0].size == 0:
        raise ValueError("zero-size array has no maximum")
    return right(row, whole, attributes)


def no_matrices(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    if whole[0] is not None and whole[0].ndim > 1:
        raise ValueError("data is 1-D")
    return right(row, whole, attributes)


def only_int64_ids(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    if whole[1] is not None and whole[1].dtype != np.int64:
        raise TypeError("ids are int64")
    return right(row, whole, attributes)


def first_axis(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    """Use the first axis instead of the given one, and return some result if the indices are out of range."""
    try:
        right(row, whole, attributes)
        return right(row, whole, attributes | {"axis": 0})
    except MaxopsError:
        return first_elements(row, whole, attributes)


def counts_from_the_start_alone(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    """Treat negative indices as 0, and indices past the end as -1."""
    data, indices, *rest = whole
    assert data is not None
    assert indices is not None
    inside = np.where((indices < 0) | (indices >= len(data)), 0, indices)
    return right(row, [data, inside, *rest], attributes)


def one_segment_more(when: Callable[[int, int], bool]) -> Fault:
    """Return one segment too many if `when` is true for num_segments (or -1) and the number that the ids define."""

    def answer(row: Spec, whole: Whole, attributes: Attributes) -> Array:
        result = right(row, whole, attributes)
        ids, count = whole[1], whole[2] if len(whole) > 2 else None
        assert ids is not None
        by_ids = int(ids[-1]) + 1 if ids.size else 0
        if not when(-1 if count is None else int(count), by_ids):
            return result
        return np.concatenate([result, np.zeros((1, *result.shape[1:]), result.dtype)])

    return answer


def fills_with(value: float) -> Fault:
    """Fill empty segments with another value."""

    def answer(row: Spec, whole: Whole, attributes: Attributes) -> Array:
        result, ids = right(row, whole, attributes), whole[1]
        assert ids is not None
        empty = np.ones(len(result), np.bool)  # np.setdiff1d would take a second for large cases
        empty[ids[ids < len(empty)]] = False
        with np.errstate(all="ignore"):
            result[empty] = np.array(value if result.dtype.kind in "fV" else 1).astype(result.dtype)
        return result

    return answer


def lowest_is_infinite(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    return (
        fills_with(-np.inf)(row, whole, attributes)
        if attributes["fill_mode"] == "LOWEST"
        else right(row, whole, attributes)
    )


def clips_ids(row: Spec, whole: Whole, attributes: Attributes) -> Array:
    try:
        return right(row, whole, attributes)
    except SegmentIdsError:
        data, ids, *rest = whole
        assert ids is not None
        return right(row, [data, np.sort(np.maximum(ids, 0)), *rest], attributes)


# The short name of each clause, with runtimes that violate it: by accepting invalid calls, and by wrong results of
# valid calls.
FAULTS: dict[str, list[Fault]] = {
    "inputs": [or_zeros(first_elements)],
    "L": [or_zeros(first_elements)],
    "T": [widens, or_zeros(like_the_plain_function)],
    "shape": [wrong_shape],
    "C1": [or_zeros(first_elements)],
    "C2": [wrong_shape],
    "zero-size": [or_zeros(like_the_plain_function)],
    "value": [smallest_of_two],
    "nan": [other_nan],
    "NaN": [passes_nan_over],
    "consumed_inputs": [refuses_attribute("consumed_inputs")],
    "axes": [or_zeros(first_elements), smallest_of_two],
    "axes.range": [or_zeros(first_elements)],
    "axes.unique": [or_zeros(first_elements)],
    "axes.default": [without_axes_the_last],
    "keepdims": [never_keeps, or_zeros(first_elements)],
    "noop_with_empty_axes": [no_identity, or_zeros(first_elements)],
    "empty": [refuses_empty],
    "data": [no_matrices, or_zeros(first_elements)],
    "T_IDX": [only_int64_ids, or_zeros(first_elements)],
    "ids.shape": [or_zeros(first_elements)],
    "ids": [clips_ids],
    "num_segments": [or_zeros(first_elements)],
    "num_segments.default": [one_segment_more(lambda expected, by_ids: expected < 0)],
    "num_segments.no_ids": [one_segment_more(lambda expected, by_ids: by_ids == 0)],
    "num_segments.smaller": [one_segment_more(lambda expected, by_ids: 0 <= expected < by_ids)],
    "num_segments.larger": [one_segment_more(lambda expected, by_ids: expected > by_ids)],
    "fill_mode": [fills_with(7), or_zeros(first_elements)],
    "lowest": [lowest_is_infinite],
    "indices.shape": [or_zeros(first_elements)],
    "indices.size": [or_zeros(first_elements)],
    "updates.shape": [or_zeros(first_elements)],
    "axis": [first_axis],
    "indices": [counts_from_the_start_alone],
    "reduction": [smallest_of_two],
    "copy": [smallest_of_two],
}


class Faulty(Runtime):
    """A correct runtime except for a fault. It claims every standard, so that it gets all invalid calls."""

    name = "faulty"
    claims = frozenset({"ONNX", "SONNX", "SONNX draft", "OpenVINO"})
    versioned = True

    def __init__(self, row: Spec, fault: Fault) -> None:
        self._row, self._fault = row, fault

    def prepare(self, call: Call) -> Prepared:
        def run(feed: Feed) -> Any:
            with np.errstate(all="ignore"):
                return self._fault(self._row, call.whole(feed), dict(call.attributes))

        return run


def judged(row: Spec, fault: Fault, asked: Sequence[tuple[Case, Trial]]) -> list[Judgement]:
    return [judge(case, trial, attempt(Faulty(row, fault), trial, Memory())) for case, trial in asked]


def shortened(trial: Trial) -> Trial:
    """Return the same trial with a selection of its feeds."""
    some = slice(None, None, max(1, len(trial.feeds) // MOST_FEEDS))
    expected = None if trial.expected is None else trial.expected[some]
    return replace(trial, feeds=trial.feeds[some], expected=expected, without_nan=trial.without_nan[some])


BY_CLAUSE: dict[str, list[Case]] = {}
for _case in ALL:
    if "000000" not in _case.sentence:  # cases with a million elements reveal no other faults
        BY_CLAUSE.setdefault(_case.clause.id, []).append(_case)

CLAUSES = [
    (row, short, row.rule(short)) for row in spec.ALL for short, _ in row.rules if row.clause(short) in BY_CLAUSE
]


def asked_of(clause: Clause) -> list[tuple[Case, Trial]]:
    """Return a selection of a clause's invalid and valid cases."""
    known = [case for case in BY_CLAUSE[clause.id] if case.dtype is not dtypes.REAL]
    return [each for refusal in (True, False) for each in _spread([case for case in known if case.refusal is refusal])]


def _spread(known: list[Case]) -> list[tuple[Case, Trial]]:
    return [(case, shortened(case.make())) for case in known[:: max(1, len(known) // MOST_CASES)]]


@pytest.mark.parametrize(("row", "short", "clause"), CLAUSES, ids=[clause.id for _, _, clause in CLAUSES])
def test_a_runtime_that_breaks_one_clause_is_caught(row: Spec, short: str, clause: Clause) -> None:
    asked = asked_of(clause)
    assert {each.verdict for each in judged(row, right, asked)} == {"conforms"}
    # An attribute has a fixed type and rank, so axes cannot violate this clause, but only clauses about their values.
    faults = [smallest_of_two] if short == "axes" and not row.axes_input else FAULTS[short]
    if len(row.index_dtypes) == 1:  # accepting only int64 is then correct
        faults = [fault for fault in faults if fault is not only_int64_ids]
    for fault in faults:
        verdicts = [each for each in judged(row, fault, asked) if each.verdict != "conforms"]
        assert verdicts, f"{fault} is not caught"
        by_clause = [each for each in verdicts if each.clause == clause]
        assert by_clause, f"{fault} is laid to {sorted({each.clause.id for each in verdicts})}"
        if clause.level == "must":
            assert any(each.verdict in ("violates", "refuses", "missing error") for each in by_clause)
        else:
            assert all(each.verdict == "permitted" for each in by_clause)


NAN_CLAUSES = [(row, short) for row, short, _ in CLAUSES if short in ("nan", "NaN")]


@pytest.mark.parametrize(("row", "short"), NAN_CLAUSES, ids=[row.clause(short) for row, short in NAN_CLAUSES])
def test_what_is_open_differs_by_standard(row: Spec, short: str) -> None:
    """Test that SONNX forbids results for NaN and zeros that ONNX permits, and that no standard defines NaN's bits."""
    asked = _spread(
        [
            case
            for each in ("nan", "NaN", "value")
            if each in dict(row.rules)
            for case in BY_CLAUSE[row.clause(each)]
            if case.dtype is dtypes.FLOAT32 and ("NaN" in case.sentence or "zeros" in case.sentence)
        ]
    )
    for fault in (passes_nan_over, other_nan, other_zero):
        found = {(each.verdict, each.clause.id) for each in judged(row, fault, asked) if each.verdict != "conforms"}
        if row.standard != "SONNX" or fault is other_nan:
            assert found == {("permitted", row.clause("nan"))}, fault
        else:
            assert found == {("violates", row.clause("NaN" if fault is passes_nan_over else "value"))}, fault


def test_there_is_a_fault_for_every_clause() -> None:
    shorts = {short for row in spec.ALL for short, _ in row.rules}
    assert set(FAULTS) | set(UNCOVERED) == shorts
