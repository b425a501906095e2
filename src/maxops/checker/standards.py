"""Finds the specification of an operator in a standard."""

from __future__ import annotations

from maxops import spec
from maxops.errors import UnknownOperatorError
from maxops.spec import Spec

# The names of standards on the command line and in `check`, and their names in `maxops.spec`.
STANDARDS = {"onnx": "ONNX", "sonnx": "SONNX", "sonnx-draft": "SONNX draft", "openvino": "OpenVINO"}


def known(standard: str | None) -> str | None:
    """Return the name in `maxops.spec` of a standard, or None if no standard is requested."""
    if standard is None or standard in [*STANDARDS]:  # not every object can be a key
        return None if standard is None else STANDARDS[standard]
    raise UnknownOperatorError(f"standard must be one of {', '.join(STANDARDS)}, got {standard!r}")


def unversioned(standard: str, operator: str) -> tuple[Spec | None, str]:
    """Return the newest specification of an operator in a standard, or None and the reason."""
    rows = [row for row in spec.ALL if (row.standard, row.operator) == (standard, operator)]
    if rows:
        return rows[-1], ""
    # OpenVINO has these operators, but their specifications are not in `maxops.spec`
    known = standard != "OpenVINO"
    return (
        None,
        f"{standard} has no {operator}" if known else f"maxops has no clauses for {standard}'s {operator}",
    )
