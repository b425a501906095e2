"""`maxops operators`: lists the operators and their clauses, as a table or as JSON."""

from __future__ import annotations

from typing import Annotated, Any

import typer

import maxops
from maxops.cli import streams
from maxops.cli.table import show, show_json
from maxops.dtypes import short_names


def operators(
    clauses: Annotated[bool, typer.Option("--clauses", help="Show every clause and its source.")] = False,
    form: streams.Format = "text",
    as_json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    """List the implemented operators with their standards, versions and types."""
    if as_json or form == "json":
        show_json([_row(operator) for operator in maxops.operators()])
    elif clauses:
        show(
            ("clause", "level", "statement", "source"),
            [
                (
                    clause.id,
                    "decided by maxops" if clause.level == "undecided" else clause.level,
                    clause.statement,
                    clause.source.removeprefix("decided: "),
                )
                for operator in maxops.operators()
                for clause in operator.clauses
            ],
        )
    else:
        show(
            ("standard", "operator", "version", "types"),
            [
                (
                    row.standard,
                    row.name,
                    "" if row.version is None else str(row.version),
                    short_names(row.types),
                )
                for row in maxops.operators()
            ],
        )


def _row(operator: maxops.Operator) -> dict[str, Any]:
    return {
        "standard": operator.standard,
        "operator": operator.name,
        "version": operator.version,
        "types": [str(dtype) for dtype in operator.types],
        "clauses": [vars(clause) for clause in operator.clauses],
    }
