"""Parses the ids of cases and clauses, and sorts them for reports."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from maxops import spec
from maxops.errors import RunFileError
from maxops.spec import Clause

_CLAUSE = re.compile(r"(?P<standard>[^./]+)\.(?P<operator>\w+?)(?:-(?P<version>\d+))?\.(?P<short>[^/]+)")


class ClauseName(NamedTuple):
    """The parts of a clause's id: "ONNX.Max-13.value" is ("ONNX", "Max", 13, "value")."""

    standard: str
    operator: str
    version: int | None
    short: str


class Row(NamedTuple):
    """A clause without its version: a row of the matrix."""

    standard: str
    operator: str
    short: str


class CaseName(NamedTuple):
    """The parts of a case's id."""

    clause: str
    type: str
    sentence: str


@cache
def clause_name(clause: str) -> ClauseName:
    """Return the parts of a clause's id.

    >>> clause_name("SONNX-draft.Max.value")
    ClauseName(standard='SONNX draft', operator='Max', version=None, short='value')
    """
    found = _CLAUSE.fullmatch(clause)
    if found is None:
        raise RunFileError(f'{clause!r} is not a clause id; expected the form "ONNX.Max-13.value"')
    version = found["version"]
    standard = found["standard"].replace("-", " ")  # `Spec.clause` writes hyphens for spaces
    return ClauseName(standard, found["operator"], int(version) if version else None, found["short"])


def case_name(case: str) -> CaseName:
    """Return the parts of a case's id.

    >>> case_name("ONNX.Max-13.value/int64/in-every-lane").type
    'int64'
    """
    parts = case.split("/", 2)
    if len(parts) != 3:
        raise RunFileError(f'{case!r} is not a case id; expected the form "ONNX.Max-13.value/int64/in-every-lane"')
    return CaseName(*parts)


def row(clause: str) -> Row:
    """Return the matrix row of a clause.

    >>> row("ONNX.Max-13.value")
    Row(standard='ONNX', operator='Max', short='value')
    """
    name = clause_name(clause)
    return Row(name.standard, name.operator, name.short)


@cache
def _table() -> dict[str, Clause]:
    return {clause.id: clause for row in spec.ALL for clause in row.clauses}


@cache
def _order() -> dict[Row, int]:
    rows = dict.fromkeys(row(clause) for clause in _table())
    operators = list(dict.fromkeys((each.standard, each.operator) for each in rows))
    # grouped by operator, because a clause that a later version adds may come after other operators
    ordered = sorted(rows, key=lambda each: operators.index((each.standard, each.operator)))
    return {each: number for number, each in enumerate(ordered)}


def clause(name: str) -> Clause | None:
    """Return the clause of the spec table, or None if this version of maxops lacks the clause."""
    return _table().get(name)


def sort_key(each: Row) -> tuple[int, Row]:
    """Return the sort key of a row in reports: the order of the spec table, then all other rows."""
    return _order().get(each, len(_order())), each


def statement(clauses: list[str]) -> str:
    """Return the statement of a clause in the newest of these versions, or ""."""
    newest = clause(max(clauses, key=lambda each: clause_name(each).version or 0))
    return newest.statement if newest else ""
