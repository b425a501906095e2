"""Judges an outcome by a row of the spec table: a verdict with its clause and the index of the first difference.

An element can differ from the expected bits in five ways: a zero with the wrong sign, a NaN with different bits, a
number instead of a NaN, -Inf instead of the lowest finite value, or a wrong value. The row's `leaves_open` lists which
of the first three its standard permits. If the standard does not specify NaN, a runtime may propagate NaN or ignore it.
A maximum that is lower than one of the numbers is wrong in both cases.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Case, Trial
from maxops.conformance.outcome import Outcome, same_bits
from maxops.conformance.result import FAULTS, Verdict, words
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Clause

# From the most to the least severe.
Kind = Literal["type", "shape", "wrong", "NaN", "-Inf", "sign of zero", "NaN's bits"]
# The kinds of value differences.
_KINDS: tuple[Kind, ...] = get_args(Kind)[2:]


@dataclass(frozen=True)
class Judgement:
    """A verdict on a case. `kind` states how a result differs. `index` is the index of the first value that differs.

    `run` is the number of the judged run if runs differ.
    """

    verdict: Verdict
    clause: Clause
    message: str = ""
    kind: Kind | None = None
    feed: int = 0
    index: tuple[int, ...] | None = None
    run: int = 0


@dataclass(frozen=True)
class Difference:
    """A kind of difference from the expected array, with the first element that differs in this way."""

    kind: Kind
    text: str
    index: tuple[int, ...] | None = None
    only_first_size: bool = False  # only the first size of the shape differs


# If the source leaves one of these clauses open, the kit permits any values, any number of segments for calls without
# ids, and errors. All readings of the other open clauses agree on valid calls; they differ in which calls to refuse.
_OPEN_ANSWERS = (".empty", ".num_segments.no_ids")


def judge(case: Case, trial: Trial, outcome: Outcome) -> Judgement:
    """Judge the outcome of a case's trial by the case's row."""
    ends: dict[str, Verdict] = {
        "crashed": "crashes",
        "hung": "hangs",
        "corrupted state": "corrupted state",
        "not applicable": "not applicable",
    }
    undecided = case.clause.level == "undecided"
    if outcome.kind in ends:
        return Judgement(ends[outcome.kind], case.clause, outcome.text, feed=outcome.feed)
    if outcome.kind == "nondeterministic":
        return _judge_runs(case, trial, outcome)
    if outcome.kind in ("garbage", "overwrote"):
        return Judgement("violates", case.clause, outcome.text, feed=outcome.feed)
    if outcome.kind == "refused":
        if trial.is_refusal:
            return Judgement("conforms", case.clause, outcome.text)
        if trial.layout != "contiguous":  # no standard specifies memory layouts
            text = f"arrays with layout {trial.layout!r} are unsupported: {outcome.text}"
            return Judgement("not applicable", case.clause, text, feed=outcome.feed)
        verdict: Verdict = "permitted" if undecided and case.clause.id.endswith(_OPEN_ANSWERS) else "refuses"
        return Judgement(verdict, case.clause, outcome.text, feed=outcome.feed)
    if trial.expected is None:
        verdict = "permitted" if undecided else "missing error"
        return Judgement(verdict, case.clause, "returned a result for an invalid call")
    return _judge_arrays(case, trial, trial.expected, outcome)


def _judge_runs(case: Case, trial: Trial, outcome: Outcome) -> Judgement:
    """Judge runs whose results differ on the same inputs. The difference is a fault if one of the results is wrong."""
    rulings = [judge(case, trial, Outcome("returned", outputs)) for outputs in outcome.runs if outputs]
    for number, each in enumerate(rulings):
        if each.verdict in FAULTS:
            text = f"{outcome.text}, and one result is wrong: {each.message}"
            return Judgement("uninitialized memory", case.clause, text, feed=each.feed, index=each.index, run=number)
    for number, each in enumerate(rulings):
        if each.verdict != "conforms":
            text = f"{outcome.text}, and each result is permitted: {each.message}"
            return replace(each, verdict="not the same twice", message=text, run=number)
    verdict: Verdict = "not the same twice" if rulings else "uninitialized memory"
    return Judgement(verdict, case.clause, outcome.text, feed=outcome.feed)


def _judge_arrays(case: Case, trial: Trial, expected_arrays: tuple[Array, ...], outcome: Outcome) -> Judgement:
    found: dict[Kind, tuple[int, Difference]] = {}
    for feed, (actual, expected) in enumerate(zip(outcome.outputs, expected_arrays, strict=True)):
        if same_bits(actual, expected):
            continue
        other = trial.without_nan[feed] if trial.without_nan else expected
        for each in differences(actual, expected, other):
            found.setdefault(each.kind, (feed, each))
    if not found:
        return Judgement("conforms", case.clause)
    rulings = [(_rule_on(case, each, feed), each.kind) for feed, each in found.values()]
    return min(rulings, key=lambda ruling: (ruling[0].verdict == "permitted", get_args(Kind).index(ruling[1])))[0]


def _rule_on(case: Case, difference: Difference, feed: int) -> Judgement:
    """Judge a difference: the row permits it, or the difference violates one of the row's clauses."""
    row, kind, asked = case.row, difference.kind, case.clause.id
    of_nan = asked.endswith((".nan", ".NaN"))
    of_values = of_nan or asked.endswith(".value")
    is_open = case.clause.level == "undecided" and asked.endswith(_OPEN_ANSWERS)

    def clause(*shorts: str) -> Clause:
        return next((row.rule(short) for short in shorts if short in dict(row.rules)), case.clause)

    if kind == "type":
        return Judgement("violates", clause("T"), difference.text, kind, feed)
    if kind == "shape":
        if is_open and difference.only_first_size and asked.endswith(".no_ids"):  # the number of segments
            return Judgement("permitted", case.clause, difference.text, kind, feed)
        broken = case.clause
        if of_values or case.clause.level == "undecided":
            broken = clause("shape", "C2", "C1", *([] if of_values else ["keepdims"]))
        return Judgement("violates", broken, difference.text, kind, feed)
    if kind in row.leaves_open:
        return Judgement("permitted", clause("nan"), difference.text, kind, feed, difference.index)
    if kind in ("NaN", "sign of zero"):
        broken = clause("NaN" if kind == "NaN" else "value")
    elif kind == "-Inf" and not of_values and "lowest" in dict(row.rules):
        # the standard leaves open which float is the lowest, but only for fill values: as a maximum, -Inf is wrong
        broken = row.rule("lowest")
        is_open = broken.level == "undecided"
    elif asked.endswith(".lowest"):
        broken = clause("fill_mode")
    else:
        broken = clause("value") if of_nan else case.clause
    verdict: Verdict = "permitted" if is_open else "violates"
    return Judgement(verdict, broken, difference.text, kind, feed, difference.index)


def differences(actual: Array, expected: Array, without_nan: Array) -> list[Difference]:
    """Return the first difference of each kind.

    >>> import numpy as np
    >>> expected, actual = np.float32([np.nan, 0, 1]), np.float32([2, -0.0, 1])
    >>> [(each.kind, each.index) for each in differences(actual, expected, np.float32([2, 0, 1]))]
    [('NaN', (0,)), ('sign of zero', (1,))]
    """
    dtype = dtypes.of(expected.dtype)
    assert dtype is not None
    if dtypes.of(actual.dtype) is not dtype:
        return [Difference("type", f"expected dtype {dtype}, got {dtypes.of(actual.dtype) or actual.dtype}")]
    if actual.shape != expected.shape:
        only_first_size = 0 < actual.ndim == expected.ndim and actual.shape[1:] == expected.shape[1:]
        text = f"expected shape {expected.shape}, got {actual.shape}"
        return [Difference("shape", text, only_first_size=only_first_size)]
    kinds = _kinds(dtype, actual, expected, without_nan)
    found = []
    for number, kind in enumerate(_KINDS, start=1):
        at = np.flatnonzero(kinds == number)
        if at.size:
            index = tuple(map(int, np.unravel_index(int(at[0]), expected.shape)))
            found.append(Difference(kind, f"{at.size} of {expected.size} elements: {_MESSAGES[kind]}", index))
    return found


_MESSAGES = {
    "wrong": "wrong maximum",
    "NaN": "NaN is not propagated",
    "-Inf": "-Inf instead of the lowest finite value",
    "sign of zero": "zero with the wrong sign",
    "NaN's bits": "NaN with different bits",
}


def _kinds(dtype: DType, actual: Array, expected: Array, without_nan: Array) -> Array:
    """Return each element's kind in row-major order: 0 for the expected bits, or 1 + the index in `_KINDS`."""
    if dtype is dtypes.REAL:
        return np.array([int(a != b) for a, b in zip(actual.reshape(-1), expected.reshape(-1), strict=True)])
    actual_bits, expected_bits, other_bits = map(words, (actual, expected, without_nan))
    result = np.where(actual_bits == expected_bits, 0, 1)
    if dtype.kind == "float":
        magnitude = dtype.word.type((1 << dtype.bits - 1) - 1)
        infinity = dtype.word.type(dtype.infinity_bits)
        actual_nan, expected_nan = ((bits & magnitude) > infinity for bits in (actual_bits, expected_bits))
        actual_zero, expected_zero = ((bits & magnitude) == 0 for bits in (actual_bits, expected_bits))
        differ = result > 0
        lowest = (expected_bits == dtype.lowest_finite_bits) & (actual_bits == dtype.lowest_bits)
        result[lowest] = 1 + _KINDS.index("-Inf")
        as_number = (actual_bits == other_bits) | (actual_zero & ((other_bits & magnitude) == 0))
        result[differ & expected_nan & ~actual_nan & as_number] = 1 + _KINDS.index("NaN")
        result[differ & actual_zero & expected_zero] = 1 + _KINDS.index("sign of zero")
        result[differ & actual_nan & expected_nan] = 1 + _KINDS.index("NaN's bits")
    return result
