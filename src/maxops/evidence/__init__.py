"""The evidence that maxops satisfies its clauses: the claims that `make verify` checked, and the evidence matrix."""

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
from maxops import _native, spec
from maxops.evidence.tokens import digest_of

Json = dict[str, Any]
CELLS = ("code", "cases", "tests", "proofs", "assumed")
COLUMNS = ("id", "text", "source", "status", "decision", "verification", *CELLS)
_STRENGTH = ("proof", "exhaustive", "test")


@cache
def read(name: str) -> Json:
    """Read evidence.json or matrix.json from the package."""
    document: Json = json.loads((files(__name__) / f"{name}.json").read_text(encoding="utf-8"))
    return document


def rows() -> list[Json]:
    """Return the evidence matrix: one row for each clause, with its text, source and evidence."""
    matrix = read("matrix")
    names, found = matrix["names"], []
    for row in (*spec.ALL, *spec.PLAIN):
        for clause in row.clauses:
            cells = matrix["rows"][clause.id]
            found.append(
                {
                    "id": clause.id,
                    "standard": row.standard,
                    "operator": row.name,
                    "statement": clause.statement,
                    "source": clause.source,
                    "decision": "docs/semantics.md" if clause.level == "undecided" else "",
                    **{column: [names[number] for number in cells.get(column, [])] for column in CELLS},
                    "reasons": {column: names[number] for column, number in cells.get("reasons", {}).items()},
                }
            )
    return found


def differences() -> list[str]:
    """Return how this installation differs from the verified one: changed source files and build options."""
    evidence = read("evidence")
    was, now = evidence["build"], _native.build()
    found = ["the native core"] if _native.is_miniature or now["sources"] != was["sources"] else []
    found += [
        f"{name.replace('_', ' ')} {_words(now[name])} instead of {_words(was[name])}"
        for name in ("compiler", "flags", "instruction_sets")
        if now[name] != was[name]
    ]
    root = Path(maxops.__file__).parent
    for path, (was_digest, _) in sorted(evidence["files"].items()):
        name = path.removeprefix("src/maxops/")
        file = root / name
        if name != path and not (file.is_file() and digest_of(file) == was_digest):
            found.append(name)
    return found


def _words(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def by_method() -> dict[str, Counter[str]]:
    """Count the claims, goals, open goals and cases of each method."""
    counts: dict[str, Counter[str]] = {}
    for claim in read("evidence")["claims"]:
        one = {"claims": 1, "goals": claim["goals"], "open": len(claim["open"]), "cases": claim["cases"]}
        counts.setdefault(claim["method"], Counter()).update(one)
    return counts


def isas() -> list[str]:
    """Return the instruction sets that the claims about compiled code cover. All other claims are about the source."""
    return sorted({claim["isa"] for claim in read("evidence")["claims"] if "isa" in claim})


def cell(row: Json, column: str) -> list[str]:
    """Return the entries of a cell of the matrix, or the reason why it is empty."""
    reason = row["reasons"].get(column)
    return [f"none: {reason}"] if reason else list(row[column])


def verified_by(claims: list[Json], tests: list[str]) -> str:
    """Return the methods that verify a clause, the strongest first, each with its claims."""
    families: dict[str, dict[str, None]] = {}
    for claim in claims:
        of = claim["id"] if claim["method"] == "proof" else claim["id"].partition(".")[0]
        families.setdefault(claim["method"], {})[of] = None
    found = [f"{method} ({', '.join(families[method])})" for method in _STRENGTH if method in families]
    return "; ".join([*found, *(["tests"] if tests else [])])


def table() -> list[dict[str, str]]:
    """Return the matrix for requirements tools: one requirement per clause, with its status and verification."""
    claims = {claim["id"]: claim for claim in read("evidence")["claims"]}
    found = []
    for row in rows():
        speaking = [claims[name] for name in row["proofs"]]
        by = verified_by(speaking, row["tests"])
        is_open = not by or any(claim["open"] for claim in speaking)
        found.append(
            {
                "id": row["id"],
                "text": row["statement"],
                "source": row["source"],
                "status": "open" if is_open else "claimed" if speaking else "tested",
                "decision": row["decision"],
                "verification": by,
                **{column: "; ".join(cell(row, column)) for column in CELLS},
            }
        )
    return found


def as_csv() -> str:
    """Return the matrix as CSV (RFC 4180)."""
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS)
    writer.writeheader()
    writer.writerows(table())
    return text.getvalue()


def as_html() -> str:
    """Return the matrix as one self-contained HTML page with a filter."""
    template = (files(__name__) / "page.html").read_text(encoding="utf-8")
    style, script = (template.split(f"<{tag}>")[1].split(f"</{tag}>")[0] for tag in ("style", "script"))
    policy = f"style-src '{_hash(style)}'; script-src '{_hash(script)}'"
    return Template(template).substitute(
        policy=policy, head=_line("th", COLUMNS), body="\n".join(_line("td", row.values()) for row in table())
    )


def _hash(text: str) -> str:
    """Return the hash of a script or a style sheet for the content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _line(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
