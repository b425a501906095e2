"""What shows that maxops does what the standards say: the claims that `make verify` ran, and the matrix of clauses."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable
from functools import cache
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import maxops
from maxops import _native
from maxops.evidence.tokens import digest_of

Json = dict[str, Any]
CELLS = ("code", "cases", "tests", "proofs", "coverage", "assumed")
COLUMNS = ("id", "text", "source", "status", "decision", "verification", *CELLS)


@cache
def read(name: str) -> Json:
    """The package's "evidence" or "matrix"."""
    document: Json = json.loads((files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
    return document


def differences() -> list[str]:
    """What of this installation is not what the evidence speaks of: the native core, or files of Python."""
    evidence = read("evidence")
    found = ["the native core"] if _native.is_miniature or _native.sources() != evidence["native"] else []
    root = Path(maxops.__file__).parent
    for path, was in sorted({source for claim in evidence["claims"] for source in claim["sources"].items()}):
        name = path.removeprefix("src/maxops/")
        file = root / name
        if name != path and not (file.is_file() and digest_of(file) == was):
            found.append(name)
    return found


def by_method() -> dict[str, Counter[str]]:
    """How many claims there are of each method, and of their goals how many hold and are open."""
    counts: dict[str, Counter[str]] = {}
    for claim in read("evidence")["claims"]:
        one = {"claims": 1, "goals": claim["goals"], "hold": claim["proved"], "open": len(claim["open"])}
        counts.setdefault(claim["method"], Counter()).update(one)
    return counts


def isas() -> list[str]:
    """The instruction sets that claims name; the others are about the source, whatever it is compiled for."""
    named = (claim["figures"].get("isa", []) for claim in read("evidence")["claims"])
    return sorted({isa for each in named for isa in ([each] if isinstance(each, str) else each)})


def cell(row: Json, column: str) -> list[str]:
    """What stands in a cell of the matrix, or why nothing does."""
    if reason := row["reasons"].get(column):
        return [f"none: {reason}"]
    if column == "cases":
        cases = row["cases"]
        of = "" if cases["of"] == row["id"] else f" of {cases['of']}"
        return [f"{cases['count']}{of}, as {cases['example']}"]
    return list(row[column])


_STRENGTH = ("proof", "exhaustive", "test", "count")


def table() -> list[dict[str, str]]:
    """The matrix as requirements tools take it: a requirement a clause, with its status and how it is verified."""
    claims = {claim["id"]: claim for claim in read("evidence")["claims"]}
    rows = []
    for row in read("matrix")["rows"]:
        speaking = [claims[name] for name in row["proofs"]]
        methods = [*dict.fromkeys(claim["method"] for claim in speaking), *(["test"] if row["tests"] else [])]
        is_open = not methods or any(claim["open"] for claim in speaking)
        rows.append(
            {
                "id": row["id"],
                "text": row["statement"],
                "source": row["source"],
                "status": "open" if is_open else "claimed" if speaking else "tested",
                "decision": row["decision"],
                "verification": "; ".join(sorted(dict.fromkeys(methods), key=_STRENGTH.index)),
                **{column: "; ".join(cell(row, column)) for column in CELLS},
            }
        )
    return rows


def as_csv() -> str:
    """The matrix in RFC 4180's form."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(table())
    return text.getvalue()


def as_html() -> str:
    """The matrix as one page with a filter, which loads nothing from elsewhere."""
    template = (files(__name__) / "page.html").read_text(encoding="utf-8")
    style, script = (template.split(f"<{tag}>")[1].split(f"</{tag}>")[0] for tag in ("style", "script"))
    policy = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return Template(template).substitute(
        policy=policy, head=_line("th", COLUMNS), body="\n".join(_line("td", row.values()) for row in table())
    )


def _hash(text: str) -> str:
    """As a content security policy names what may run."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _line(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
