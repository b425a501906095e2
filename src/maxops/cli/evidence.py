"""`maxops evidence`: what shows that each clause holds, and whether it speaks of this build."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from maxops import _native
from maxops import evidence as package
from maxops.atomic_files import atomic_write, errors_of
from maxops.cli.table import show

OTHER_BUILD = 1


def evidence(
    as_json: Annotated[bool, typer.Option("--json", help="Print claims and matrix as JSON.")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="Write the matrix of clauses, for other tools.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the matrix of clauses as a page.")] = None,
) -> None:
    """What shows that each clause holds; exit code 1 if this is not the build that was looked at."""
    with atomic_write() as temporary:
        for path, text in ((csv, package.as_csv), (html, package.as_html)):
            if path is not None:
                with errors_of(path):
                    temporary(path).write_text(text(), encoding="utf-8")
    differing = package.differences()
    if as_json:
        build = {"native": _native.sources(), "isa": _native.isa(), "differs": differing}
        print(json.dumps(package.read("evidence") | {"build": build, "matrix": package.read("matrix")}, indent=1))
    else:
        _show(differing)
    if differing:
        raise typer.Exit(OTHER_BUILD)


def _show(differing: list[str]) -> None:
    claims = package.read("evidence")["claims"]
    show(
        ("claim", "method", "goals", "open", "tool", "says"),
        [
            (each["id"], each["method"], str(each["goals"]), "; ".join(each["open"]), each["tool"], each["says"])
            for each in claims
        ],
    )
    counts = package.by_method().items()
    show(("method", "claims", "goals", "hold", "open"), [(name, *map(str, of.values())) for name, of in counts])
    print(f"clauses: {len(package.read('matrix')['rows'])} (--csv and --html write what shows each)")
    named = ", ".join(package.isas()) or "none by name"
    print(f"instruction set in use: {_native.isa()}; claims about compiled code speak of: {named}")
    if differing:
        print(f"this is another build than the evidence speaks of; what differs: {', '.join(differing)}")
    else:
        print("the native sources of this build, and what else claims name, are those that the evidence speaks of")
