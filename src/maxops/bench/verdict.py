"""The verdict on a candidate: correct, wrong or unsupported; and which of several candidates to time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from maxops.bench.candidate import Candidate, UnsupportedError
from maxops.bench.case import Case
from maxops.bench.measure import quickest
from maxops.bench.oracle import same_bits, words
from maxops.plan import Array

Status = Literal["correct", "wrong", "other input", "unsupported", "not installed", "skipped"]
MAX_REASON_LENGTH = 160


@dataclass(frozen=True)
class Verdict:
    """A status, the reason where it is not "correct", and the candidate that will be timed, if one will."""

    status: Status
    reason: str = ""
    candidate: Candidate | None = None


def judge(candidates: Callable[[], Iterable[Candidate]], case: Case, expected: Array) -> list[Verdict]:
    """Run each candidate once and compare bits: the fastest correct one, or else what is wrong; other inputs apart."""
    try:
        offered = list(candidates())
    except Exception as error:  # noqa: BLE001  (whatever a library raises means that it cannot do it)
        return [Verdict("unsupported", one_line(error))]
    verdicts = [_judge_one(candidate, case, expected) for candidate in offered]
    apart = [verdict for verdict in verdicts if verdict.status == "other input"]
    for status in ("correct", "wrong"):
        if found := [verdict for verdict in verdicts if verdict.status == status]:
            ran = [verdict.candidate for verdict in found if verdict.candidate is not None]
            candidate = quickest(ran)
            return [Verdict(status, found[ran.index(candidate)].reason, candidate), *apart]
    unsupported = [verdict for verdict in verdicts if verdict.status == "unsupported"]
    return [*unsupported[:1], *apart]


def _judge_one(candidate: Candidate, case: Case, expected: Array) -> Verdict:
    try:
        result = candidate.result(case)
    except Exception as error:  # noqa: BLE001  (as above)
        return Verdict("unsupported", f"{candidate.name}: {one_line(error)}")
    if not same_bits(result, expected):
        return Verdict("wrong", f"{candidate.name}: {difference(result, expected)}", candidate)
    return (
        Verdict("other input", candidate.other_input, candidate)
        if candidate.other_input
        else Verdict("correct", "", candidate)
    )


def difference(result: Array, expected: Array) -> str:
    """How a result differs, in few words."""
    if result.dtype != expected.dtype:
        return f"gives {result.dtype}"
    if result.shape != expected.shape:
        return f"gives shape {result.shape}"
    wrong = int((words(result) != words(expected)).sum())
    return f"{wrong} of {expected.size} elements differ"


def one_line(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split()) or type(error).__name__
    if not isinstance(error, UnsupportedError) and type(error).__name__ not in text:
        text = f"{type(error).__name__}: {text}"
    return text if len(text) <= MAX_REASON_LENGTH else f"{text[: MAX_REASON_LENGTH - 3]}..."
