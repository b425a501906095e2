"""Which row of the table a node is judged by."""

from __future__ import annotations

from maxops import spec
from maxops.errors import UnknownOperatorError
from maxops.spec import Spec

# As the command line and `check` have them, and as the table does.
STANDARDS = {"onnx": "ONNX", "sonnx": "SONNX", "sonnx-draft": "SONNX draft", "openvino": "OpenVINO"}


def known(standard: str | None) -> str | None:
    """The table's name of a standard; None is the model's own."""
    if standard is None or standard in STANDARDS:
        return None if standard is None else STANDARDS[standard]
    raise UnknownOperatorError(f"no standard {standard!r}; there are {', '.join(STANDARDS)}")


def unversioned(standard: str, operator: str) -> tuple[Spec | None, str]:
    """The newest row of an operator in a standard; without one, why."""
    rows = [row for row in spec.ALL if (row.standard, row.operator) == (standard, operator)]
    if rows:
        return rows[-1], ""
    # OpenVINO does have them, but no document of theirs is followed here
    known = standard != "OpenVINO"
    return None, f"{standard} has no {operator}" if known else f"maxops follows no {standard} document of {operator}"
