"""What became of a way at a case: right or wrong bits, or refused; and which of several ways to time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from maxops.bench.case import Case
from maxops.bench.measure import quickest
from maxops.bench.oracle import same_bits, words
from maxops.bench.way import RefusedError, Way
from maxops.plan import Array

Status = Literal["right", "wrong", "other input", "refused", "missing", "skipped"]
LONGEST_REASON = 160


@dataclass(frozen=True)
class Verdict:
    """A status, the reason where it is not "right", and the way that will be timed, if one will."""

    status: Status
    reason: str = ""
    way: Way | None = None


def judge(ways: Callable[[], Iterable[Way]], case: Case, expected: Array) -> list[Verdict]:
    """Run every way once and compare bits: the quickest right way, or else what went wrong, and other inputs apart."""
    try:
        offered = list(ways())
    except Exception as error:  # noqa: BLE001  (whatever a peer raises is its way of refusing)
        return [Verdict("refused", in_words(error))]
    verdicts = [_judge_one(way, case, expected) for way in offered]
    apart = [verdict for verdict in verdicts if verdict.status == "other input"]
    for status in ("right", "wrong"):
        if found := [verdict for verdict in verdicts if verdict.status == status]:
            ran = [verdict.way for verdict in found if verdict.way is not None]
            way = quickest(ran)
            return [Verdict(status, found[ran.index(way)].reason, way), *apart]
    refused = [verdict for verdict in verdicts if verdict.status == "refused"]
    return [*refused[:1], *apart]


def _judge_one(way: Way, case: Case, expected: Array) -> Verdict:
    try:
        result = way.result(case)
    except Exception as error:  # noqa: BLE001  (as above)
        return Verdict("refused", f"{way.name}: {in_words(error)}")
    if not same_bits(result, expected):
        return Verdict("wrong", f"{way.name}: {difference(result, expected)}", way)
    return Verdict("other input", way.other_input, way) if way.other_input else Verdict("right", "", way)


def difference(result: Array, expected: Array) -> str:
    """How a result differs, in few words."""
    if result.dtype != expected.dtype:
        return f"gives {result.dtype}"
    if result.shape != expected.shape:
        return f"gives shape {result.shape}"
    wrong = int((words(result) != words(expected)).sum())
    return f"{wrong} of {expected.size} elements differ"


def in_words(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, RefusedError) and type(error).__name__ not in text:
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= LONGEST_REASON else f"{text[: LONGEST_REASON - 3]}..."
