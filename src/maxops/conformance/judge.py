"""What a row of the spec table says of an outcome: a verdict, the clause that it rests on, and the place.

An element that is not the wanted bits is one of four things: the other zero, a NaN of other bits, a number where a NaN
was wanted, or just wrong. The row's `leaves_open` says which of the first three its standard permits. Where it says
nothing of NaN, both readings are open, that NaN absorbs and that it counts for nothing, but no third: a maximum that is
lower than one of its numbers is wrong under any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from maxops import dtypes
from maxops.conformance.case import Case, Trial
from maxops.conformance.outcome import Outcome
from maxops.conformance.result import Verdict
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Clause

# The worst first.
Kind = Literal["type", "shape", "wrong", "NaN", "-Inf", "sign of zero", "NaN's bits"]
# Those that differences of values are.
_KINDS: tuple[Kind, ...] = get_args(Kind)[2:]


@dataclass(frozen=True)
class Judgement:
    """A verdict on a case. `kind` says what differs, where it is values that do, and `place` where they first do."""

    verdict: Verdict
    clause: Clause
    why: str = ""
    kind: Kind | None = None
    feed: int = 0
    place: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Difference:
    """The first element of the worst kind in which an array is not the wanted one."""

    kind: Kind
    text: str
    place: tuple[int, ...] | None = None
    only_first_size: bool = False  # of the shape


# Clauses that, where a source leaves them open, leave open whether there is an answer at all, and which. Of other open
# ones it is only what must be refused: what they ask an answer of, all readings have.
_OPEN_ANSWERS = (".empty", ".num_segments.no_ids")


def judge(case: Case, trial: Trial, outcome: Outcome) -> Judgement:
    """Give the verdict of the case's row on what came of its trial."""
    ends: dict[str, Verdict] = {
        "crashed": "crashes",
        "hung": "hangs",
        "unstable": "leaks",
        "poisoned": "poisoned",
        "not applicable": "not applicable",
    }
    undecided = case.clause.level == "undecided"
    if outcome.kind in ends:
        return Judgement(ends[outcome.kind], case.clause, outcome.text, feed=outcome.feed)
    if outcome.kind in ("garbage", "overwrote"):
        return Judgement("violates", case.clause, outcome.text, feed=outcome.feed)
    if outcome.kind == "refused":
        if trial.is_refusal:
            return Judgement("conforms", case.clause, outcome.text)
        verdict: Verdict = "permitted" if undecided and case.clause.id.endswith(_OPEN_ANSWERS) else "refuses"
        return Judgement(verdict, case.clause, outcome.text, feed=outcome.feed)
    if trial.wanted is None:
        verdict = "permitted" if undecided else "accepts"
        return Judgement(verdict, case.clause, "an answer, where there is to be an error")
    return _judge_arrays(case, trial, trial.wanted, outcome)


def _judge_arrays(case: Case, trial: Trial, wanted: tuple[Array, ...], outcome: Outcome) -> Judgement:
    found: dict[Kind, tuple[int, Difference]] = {}
    for feed, (got, want) in enumerate(zip(outcome.outputs, wanted, strict=True)):
        if _same(got, want):
            continue
        other = trial.without_nan[feed] if trial.without_nan else want
        for each in differences(got, want, other):
            found.setdefault(each.kind, (feed, each))
    if not found:
        return Judgement("conforms", case.clause)
    rulings = [(_rule_on(case, each, feed), each.kind) for feed, each in found.values()]
    return min(rulings, key=lambda ruling: (ruling[0].verdict == "permitted", get_args(Kind).index(ruling[1])))[0]


def _rule_on(case: Case, difference: Difference, feed: int) -> Judgement:
    """Whether the row permits a difference, and by which clause not."""
    row, kind, asked = case.row, difference.kind, case.clause.id
    of_nan = asked.endswith((".nan", ".NaN"))
    of_values = of_nan or asked.endswith(".value")
    is_open = case.clause.level == "undecided" and asked.endswith(_OPEN_ANSWERS)

    def clause(*shorts: str) -> Clause:
        return next((row.rule(short) for short in shorts if short in dict(row.rules)), case.clause)

    if kind == "type":
        return Judgement("violates", clause("T"), difference.text, kind, feed)
    if kind == "shape":
        if is_open and difference.only_first_size and asked.endswith(".no_ids"):  # how many segments there are
            return Judgement("permitted", case.clause, difference.text, kind, feed)
        broken = case.clause
        if of_values or case.clause.level == "undecided":
            broken = clause("shape", "C2", "C1", *([] if of_values else ["keepdims"]))
        return Judgement("violates", broken, difference.text, kind, feed)
    if kind in row.leaves_open:
        return Judgement("permitted", clause("nan"), difference.text, kind, feed, difference.place)
    if kind in ("NaN", "sign of zero"):
        broken = clause("NaN" if kind == "NaN" else "value")
    elif kind == "-Inf" and not of_values and "lowest" in dict(row.rules):
        # which value is the lowest of a float is open, in whatever case a fill is; not that a maximum becomes another
        broken = row.rule("lowest")
        is_open = broken.level == "undecided"
    elif asked.endswith(".lowest"):
        broken = clause("fill_mode")
    else:
        broken = clause("value") if of_nan else case.clause
    verdict: Verdict = "permitted" if is_open else "violates"
    return Judgement(verdict, broken, difference.text, kind, feed, difference.place)


def _same(got: Array, want: Array) -> bool:
    if (got.dtype, got.shape) != (want.dtype, want.shape):
        return False
    return got.tolist() == want.tolist() if want.dtype == object else got.tobytes() == want.tobytes()


def differences(got: Array, want: Array, without_nan: Array) -> list[Difference]:
    """What is different, each kind once, at its first place.

    >>> import numpy as np
    >>> want, got = np.float32([np.nan, 0, 1]), np.float32([2, -0.0, 1])
    >>> [(each.kind, each.place) for each in differences(got, want, np.float32([2, 0, 1]))]
    [('NaN', (0,)), ('sign of zero', (1,))]
    """
    dtype = dtypes.of(want.dtype)
    assert dtype is not None
    if dtypes.of(got.dtype) is not dtype:
        return [Difference("type", f"the result is {dtypes.of(got.dtype) or got.dtype}, not {dtype}")]
    if got.shape != want.shape:
        only_first_size = 0 < got.ndim == want.ndim and got.shape[1:] == want.shape[1:]
        text = f"the result has the shape {got.shape}, not {want.shape}"
        return [Difference("shape", text, only_first_size=only_first_size)]
    kinds = _kinds(dtype, got, want, without_nan)
    found = []
    for number, kind in enumerate(_KINDS, start=1):
        at = np.flatnonzero(kinds == number)
        if at.size:
            place = tuple(map(int, np.unravel_index(int(at[0]), want.shape)))
            found.append(Difference(kind, f"{at.size} of {want.size} elements: {_SAYS[kind]}", place))
    return found


_SAYS = {
    "wrong": "not the maximum",
    "NaN": "a NaN among the inputs is lost",
    "-Inf": "-Inf, not the lowest finite value",
    "sign of zero": "the other zero",
    "NaN's bits": "a NaN of other bits",
}


def _kinds(dtype: DType, got: Array, want: Array, without_nan: Array) -> Array:
    """For each element, in row-major order, 0 if it is the wanted one, or else the number of its kind from 1."""
    if dtype is dtypes.REAL:
        return np.array([int(a != b) for a, b in zip(got.reshape(-1), want.reshape(-1), strict=True)])
    came, wanted, other = (_words(dtype, array) for array in (got, want, without_nan))
    result = np.where(came == wanted, 0, 1)
    if dtype.kind == "float":
        magnitude = dtype.word.type((1 << dtype.bits - 1) - 1)
        infinity = dtype.word.type(dtype.infinity_bits)
        got_nan, want_nan = ((words & magnitude) > infinity for words in (came, wanted))
        got_zero, want_zero = ((words & magnitude) == 0 for words in (came, wanted))
        differ = result > 0
        lowest = (wanted == dtype.lowest_finite_bits) & (came == dtype.lowest_bits)
        result[lowest] = 1 + _KINDS.index("-Inf")
        as_number = (came == other) | (got_zero & ((other & magnitude) == 0))
        result[differ & want_nan & ~got_nan & as_number] = 1 + _KINDS.index("NaN")
        result[differ & got_zero & want_zero] = 1 + _KINDS.index("sign of zero")
        result[differ & got_nan & want_nan] = 1 + _KINDS.index("NaN's bits")
    return result


def _words(dtype: DType, array: Array) -> Array:
    return array.astype(array.dtype.newbyteorder("="), order="C", copy=True).reshape(-1).view(dtype.word)
