"""Functions that create a family of cases for an ONNX or OpenVINO row and each of its profiles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Literal

from maxops import dtypes, spec
from maxops.conformance.case import Call, Case, Feed, Trial
from maxops.conformance.expected import expected_result, without_nan
from maxops.conformance.pool import is_nan
from maxops.dtypes import DType
from maxops.spec import Spec

# For each meaning, the short names of the clauses that may specify it. The first of them that exists in a row applies.
_CLAUSES = {
    "inputs": ("L", "inputs"),
    "shape": ("C2", "shape", "C1"),
    "mismatch": ("C1", "shape"),
    "propagates": ("NaN", "nan"),
}
# The types and versions for which a quick run includes a case: one type of the newest version (True), each type of the
# newest version, one type of every version, or each type of the newest version and one type of every older version.
Quick = Literal["each type", "each row", "each type and row"] | bool
Refused = Literal["each row"] | bool  # the same for all types
CLOSER = (dtypes.FLOAT32, dtypes.INT64)  # tested in full; the other types share most of their code


def short(row: Spec, meaning: str) -> str:
    """Return the short name of the clause in which a row specifies a meaning."""
    known = dict(row.rules)
    if meaning == "zeros":  # rows with a clause "NaN" order the zeros in the clause "value"
        return "value" if "NaN" in known else "nan"
    return next(name for name in _CLAUSES.get(meaning, (meaning,)) if name in known)


def rows(operator: str) -> list[Spec]:
    """Return the rows of an operator for which models are built: those of ONNX and OpenVINO, oldest first."""
    return [row for row in spec.ALL if row.operator == operator and row.version is not None]


def newest(row: Spec) -> Spec:
    """Return the newest version of a row's operator."""
    return max(rows(row.operator), key=lambda each: each.version or 0)


def judges(row: Spec) -> list[Spec]:
    """Return the rows whose clauses apply to a model of this row: itself and, for the newest version, its profiles."""
    profiles = [each for each in spec.ALL if each.operator == row.operator and each.version is None]
    return [row, *profiles] if row is newest(row) else [row]


def stored(row: Spec) -> list[DType]:
    """Return the types of a row that a model can contain."""
    return [dtype for dtype in row.dtypes if dtype is not dtypes.REAL]


def is_current(row: Spec) -> bool:
    """Return whether a row is the newest of its operator, or profiles the newest."""
    return row.version is None or row is newest(row)


def subsampled(row: Spec, dtype: DType, made: Iterable[Case]) -> Iterator[Case]:
    """Yield all cases for the types in CLOSER. For each other type, yield the quick cases and every third case.

    Use it for cases that do not depend on the type. For older versions, only two types are tested.
    """
    if not is_current(row) and dtype not in (dtypes.FLOAT32, row.dtypes[-1]):
        return
    index = row.dtypes.index(dtype)
    for number, (_, group) in enumerate(groupby(made, key=lambda each: each.trial_id)):
        together = list(group)
        if together[0].quick or dtype in CLOSER or (number + index) % 3 == 0:
            yield from together


def is_quick(row: Spec, dtype: DType, quick: Quick) -> bool:
    """Return whether a quick run includes this row and type."""
    if not quick or not (is_current(row) or str(quick).endswith("row")):
        return False
    if is_current(row) and str(quick).startswith("each type"):
        return True
    return dtype is (dtypes.FLOAT32 if dtypes.FLOAT32 in row.dtypes else row.dtypes[0])


def ask(
    row: Spec,
    meaning: str,
    dtype: DType,
    sentence: str,
    make: Callable[[], Trial],
    *,
    quick: Quick = False,
    among: Sequence[Spec] | None = None,
) -> Iterator[Case]:
    """Yield a case that expects a result, for each row that judges the model and supports the type."""
    taking = [judge for judge in among or judges(row) if dtype in judge.dtypes]
    return _sharing(taking, meaning, dtype, sentence, make, refusal=False, quick=is_quick(row, dtype, quick))


def compute(
    meaning: str,
    sentence: str,
    call: Call,
    *feeds: Feed,
    quick: Quick = False,
    among: Sequence[Spec] | None = None,
) -> Iterator[Case]:
    """Yield the cases of a call on small arrays. The reference computes their results."""
    make = partial(computed, among[0] if among else call.row, call, feeds)
    return ask(call.row, meaning, call.dtype, sentence, make, quick=quick, among=among)


def refuse(
    meaning: str,
    sentence: str,
    call: Call,
    feed: Feed,
    *,
    quick: Refused = False,
    among: Sequence[Spec] | None = None,
) -> Iterator[Case]:
    """Yield a case that expects a refusal, for each row that judges the model. `quick` applies to every type."""
    asked = quick == "each row" or (bool(quick) and is_current(call.row))
    make = partial(Trial, call, (feed,), None)
    return _sharing(among or judges(call.row), meaning, call.dtype, sentence, make, refusal=True, quick=asked)


def _sharing(
    rows: Iterable[Spec],
    meaning: str,
    dtype: DType,
    sentence: str,
    make: Callable[[], Trial],
    *,
    refusal: bool,
    quick: bool,
) -> Iterator[Case]:
    """Yield a case for each row. All of them share the first row's trial."""
    first = ""
    for row in rows:
        made = Case(row, row.rule(short(row, meaning)), dtype, sentence, make, refusal, quick, shared=first)
        first = first or made.id
        yield made


def computed(row: Spec, call: Call, feeds: Sequence[Feed]) -> Trial:
    """Return a trial on small arrays. The reference computes its results one by one."""
    has_nan = any(is_nan(array).any() for feed in feeds for array in (*feed, *call.constants.values()))
    return Trial(
        call,
        tuple(feeds),
        tuple(expected_result(row, call, feed) for feed in feeds),
        tuple(without_nan(row, call, feed) for feed in feeds) if has_nan else (),
    )
