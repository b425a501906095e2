"""Groups kinds of findings by apparent cause; each cause is a heading with a script on a runtime's page.

Wrong results are grouped by how a value changed, such as a lost NaN or a zero with the wrong sign, across operators,
standards and types. If the change does not reveal a cause, as for integers, or if an error is missing, the findings
are grouped by operator. Crashes, hangs and all other findings are grouped by script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maxops import dtypes
from maxops.conformance.kinds import Kind, float_class, size
from maxops.conformance.result import OPEN, Elements, Message, Reproducer
from maxops.conformance.wording import first_difference

ZEROS = ("+0", "-0")
VAGUE = ("Wrong values", "Wrong integers", "Wrong floats")


@dataclass(frozen=True)
class Cause:
    """Kinds of findings under one title."""

    title: str
    kinds: tuple[Kind, ...]

    @property
    def count(self) -> int:
        """The number of findings."""
        return sum(len(kind.findings) for kind in self.kinds)

    @property
    def shown(self) -> Kind | None:
        """The kind whose script is shown: one that reproduced the finding if possible, then the smallest call."""
        with_script = [kind for kind in self.kinds if script(kind)]
        return min(with_script, key=_unsure_and_size, default=None)


def causes(kinds: Sequence[Kind]) -> list[Cause]:
    """Group kinds by cause; causes keep the order of the kinds, which starts with the worst verdict."""
    found: dict[object, list[Kind]] = {}
    for kind in kinds:
        found.setdefault(_key(kind), []).append(kind)
    return [Cause(title(members[0]), tuple(members)) for members in found.values()]


def title(kind: Kind) -> str:
    """Return a short heading; headings differ in characters that heading links keep."""
    if kind.verdict in ("violates", *OPEN):
        became = what_became(kind.smallest.expected, kind.smallest.actual)
        return f"{became}: {kind.row.operator}" if became in VAGUE else became
    if kind.verdict == "missing error":
        return f"Missing errors: {kind.row.operator}"
    return f"{kind.verdict.capitalize()}: {kind.row.operator}, {kind.row.short}"


def what_became(expected: Elements | Message, actual: Elements | Message) -> str:
    """Describe how the first wrong value is wrong.

    >>> from maxops.conformance.result import elements
    >>> import numpy as np
    >>> what_became(elements(np.float32([np.nan])), elements(np.float32([1])))
    'NaN is lost'
    >>> what_became(elements(np.float16([1e-7])), elements(np.float16([0])))
    'Subnormal numbers become 0'
    >>> what_became(elements(np.int8([1, 2])), elements(np.int8([1, 3])))
    'Wrong integers'
    """
    if "text" in expected:
        return "A result, not an error"
    if "text" in actual:
        return "An error, not a result"
    for name in ("type", "shape"):
        if expected[name] != actual[name]:
            return f"Another {name}"
    number = first_difference(expected, actual)
    dtype = dtypes.BY_NAME.get(expected["type"])
    if dtype is None or number is None:
        return "Wrong values"
    if dtype.kind != "float":
        return "Wrong integers"
    correct, given = (float_class(int(each["bits"][number], 16), dtype) for each in (expected, actual))
    if correct == "NaN":
        return "Different NaN bits" if given == "NaN" else "NaN is lost"
    if correct in ZEROS and given in ZEROS:
        return "-0 where 0 is the maximum" if correct == "+0" else "0 where -0 is the maximum"
    if correct == "subnormal" and given in ZEROS:
        return "Subnormal numbers become 0"
    if correct == "infinity":
        return "Infinities become finite"
    return "Wrong floats"


def script(kind: Kind) -> str:
    """Return the script of the smallest call without its comments, or "" if there is no script.

    The comments differ between standards that judge the same call.
    """
    reproducer: Reproducer | None = kind.smallest.reproducer
    lines = reproducer["script"].splitlines() if reproducer else []
    return "\n".join(line for line in lines if not line.startswith("#"))


def _unsure_and_size(kind: Kind) -> tuple[bool, tuple[bool, int, int]]:
    reproducer = kind.smallest.reproducer
    return reproducer is None or not reproducer["reproduced"], size(kind.smallest)


def _key(kind: Kind) -> object:
    by_title = kind.verdict in ("violates", "missing error", *OPEN)
    return kind.verdict, title(kind) if by_title else script(kind) or title(kind)
