"""Formats verdicts, expected results and actual results for reports, in one line each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maxops.conformance.result import Elements, Message, Run, Verdict

MAX_ELEMENTS = 4  # maximum number of elements of an array in a line
MAX_TEXT = 160  # maximum number of characters of a result in a cell


class Words(NamedTuple):
    """The wording of a verdict: for many cases ("12 violate"), for a narrow cell, and its meaning."""

    many: str
    mark: str
    means: str


# The most harmful first: crashes, memory errors, then silently wrong results.
WORDS: dict[Verdict, Words] = {
    "crashes": Words("crash", "X", "the process ended"),
    "uninitialized memory": Words(
        "uninitialized memory",
        "U",
        "two runs on the same inputs differ, and a result is wrong, because it depends on uninitialized memory or on a "
        "race condition",
    ),
    "corrupted state": Words("corrupted state", "C", "after this call, valid calls fail or return different results"),
    "hangs": Words("hang", "H", "no result before the timeout"),
    "violates": Words("violate", "V", "a result other than the one that the clause specifies"),
    "missing error": Words("missing errors", "M", "a result for an invalid call"),
    "refuses": Words("refuse", "R", "an error for a valid call"),
    "permitted": Words("permitted", "\N{ALMOST EQUAL TO}", "another result that the standard permits (not a fault)"),
    "not the same twice": Words(
        "not the same twice",
        "2",
        "two runs on the same inputs differ, and the standard permits each result (not a fault)",
    ),
    "conforms": Words("conform", "\N{CHECK MARK}", "the result that the clause specifies, bit for bit"),
    "not applicable": Words("not applicable", "\N{EN DASH}", "the runtime does not support calls of this kind"),
}
BY_SEVERITY = tuple(WORDS)


class Table(NamedTuple):
    """A heading, columns, and rows of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def runtime_label(run: Run) -> str:
    """Return the runtime and its version, as in reports."""
    return f"{run['runtime']} {run['version']}".strip()


def shortened(text: str, max_text: int = MAX_TEXT) -> str:
    """Shorten a runtime's message. Reports in files have the full text."""
    return text if len(text) <= max_text else f"{text[: max_text - 3]}..."


def one_line(result: Elements | Message) -> str:
    """Return a result in one line.

    >>> one_line({"type": "float32", "shape": [], "values": ["-0.0"], "bits": ["80000000"]})
    'float32 -0.0 (80000000)'
    """
    if "text" in result:
        return " ".join(result["text"].split())
    if not result["values"]:
        return f"{_type(result)}, empty"
    more = ", ..." if len(result["values"]) > MAX_ELEMENTS else ""
    bits = f" ({', '.join(result['bits'][:MAX_ELEMENTS])}{more})" if result["bits"] else ""
    return f"{_type(result)} {', '.join(result['values'][:MAX_ELEMENTS])}{more}{bits}"


def expected_to_actual(expected: Elements | Message, actual: Elements | Message) -> str:
    """Return the expected and the actual result or, for long arrays of one shape, the first element that differs."""
    return " -> ".join(sides(expected, actual))


def sides(
    expected: Elements | Message, actual: Elements | Message, max_elements: int = MAX_ELEMENTS
) -> tuple[str, str]:
    """Return the expected and the actual result separately. An array with more than `max_elements` is long."""
    if "text" not in expected and "text" not in actual and len(expected["values"]) > max_elements:
        number = first_difference(expected, actual)
        if number is not None:
            return f"{_type(expected)}, element {number}: {_element(expected, number)}", _element(actual, number)
    return one_line(expected), one_line(actual)


def first_difference(expected: Elements, actual: Elements) -> int | None:
    """Return the row-major index of the first element that differs, or None.

    None means that all elements are equal, or that the types or shapes differ.
    """
    if (expected["type"], expected["shape"]) != (actual["type"], actual["shape"]):
        return None
    kind = "bits" if expected["bits"] else "values"
    pairs = zip(expected[kind], actual[kind], strict=True)  # type: ignore[literal-required]
    return next((number for number, (one, other) in enumerate(pairs) if one != other), None)


def _type(result: Elements) -> str:
    return result["type"] + (f"[{','.join(map(str, result['shape']))}]" if result["shape"] else "")


def _element(result: Elements, number: int) -> str:
    return result["values"][number] + (f" ({result['bits'][number]})" if result["bits"] else "")
