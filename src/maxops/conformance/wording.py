"""How reports say verdicts, and what was wanted and what came, in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maxops.conformance.result import Elements, Run, Told, Verdict

FEW = 4  # elements of an array in a line

# What harms most stands first: a process that ends, memory of others, then wrong answers that nobody notices.
WORST_FIRST: tuple[Verdict, ...] = (
    "crashes",
    "leaks",
    "poisoned",
    "hangs",
    "violates",
    "accepts",
    "refuses",
    "permitted",
    "conforms",
    "not applicable",
)

# Said of several cases: "12 violate".
OF_MANY: dict[Verdict, str] = {
    "conforms": "conform",
    "violates": "violate",
    "refuses": "refuse",
    "accepts": "accept",
    "crashes": "crash",
    "hangs": "hang",
    "leaks": "leak",
    "poisoned": "poisoned",
    "permitted": "permitted",
    "not applicable": "not applicable",
}

MEANS: dict[Verdict, str] = {
    "conforms": "the answer that the clause asks for, bit for bit",
    "violates": "another answer than the clause asks for",
    "refuses": "an error, where there is an answer",
    "accepts": "an answer, where there is to be an error",
    "crashes": "the process ended",
    "hangs": "no answer in time",
    "leaks": "memory that nobody wrote is in the answer",
    "poisoned": "after its error, calls that were right go wrong",
    "permitted": "another answer, where the standard leaves it open: no fault",
    "not applicable": "the runtime has nothing that means this call",
}


class Table(NamedTuple):
    """A heading, columns, and rows of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def of_whom(run: Run) -> str:
    """The runtime and its version, as reports name it."""
    return f"{run['runtime']} {run['version']}".strip()


def told(result: Elements | Told) -> str:
    """A result in a line.

    >>> told({"type": "float32", "shape": [], "values": ["-0.0"], "bits": ["80000000"]})
    'float32 -0.0 (80000000)'
    """
    if "text" in result:
        return " ".join(result["text"].split())
    if not result["values"]:
        return f"{_type(result)}, empty"
    more = ", ..." if len(result["values"]) > FEW else ""
    bits = f" ({', '.join(result['bits'][:FEW])}{more})" if result["bits"] else ""
    return f"{_type(result)} {', '.join(result['values'][:FEW])}{more}{bits}"


def against(wanted: Elements | Told, got: Elements | Told) -> str:
    """What was wanted and what came; of long arrays of one shape only the first element that differs."""
    return " -> ".join(sides(wanted, got))


def sides(wanted: Elements | Told, got: Elements | Told) -> tuple[str, str]:
    """The same, each by itself."""
    if "text" not in wanted and "text" not in got and len(wanted["values"]) > FEW:
        number = first_difference(wanted, got)
        if number is not None:
            return f"{_type(wanted)}, element {number}: {_element(wanted, number)}", _element(got, number)
    return told(wanted), told(got)


def first_difference(wanted: Elements, got: Elements) -> int | None:
    """The number, in row-major order, of the first element that differs; None if types or shapes do, or none does."""
    if (wanted["type"], wanted["shape"]) != (got["type"], got["shape"]):
        return None
    kind = "bits" if wanted["bits"] else "values"
    pairs = zip(wanted[kind], got[kind], strict=True)  # type: ignore[literal-required]
    return next((number for number, (one, other) in enumerate(pairs) if one != other), None)


def _type(result: Elements) -> str:
    return result["type"] + (f"[{','.join(map(str, result['shape']))}]" if result["shape"] else "")


def _element(result: Elements, number: int) -> str:
    return result["values"][number] + (f" ({result['bits'][number]})" if result["bits"] else "")
