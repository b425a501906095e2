"""Finds the row of the table that judges a node."""

from __future__ import annotations

from maxops import spec
from maxops.errors import UnknownOperatorError
from maxops.spec import Spec

# As the command line and `check` have them, and as the table does.
STANDARDS = {"onnx": "ONNX", "sonnx": "SONNX", "sonnx-draft": "SONNX draft", "openvino": "OpenVINO"}


def known(standard: str | None) -> str | None:
    """Return the table's name of a standard; None means the model's own standard."""
    if standard is None or standard in STANDARDS:
        return None if standard is None else STANDARDS[standard]
    raise UnknownOperatorError(f"no standard {standard!r}; there are {', '.join(STANDARDS)}")


def unversioned(standard: str, operator: str) -> tuple[Spec | None, str]:
    """Return the newest row of an operator in a standard, or the reason why there is none."""
    rows = [row for row in spec.ALL if (row.standard, row.operator) == (standard, operator)]
    if rows:
        return rows[-1], ""
    # OpenVINO does have them, but no document of theirs is followed here
    known = standard != "OpenVINO"
    return None, f"{standard} has no {operator}" if known else f"maxops follows no {standard} document of {operator}"
