"""Builds the matrix of clauses: the code, conformance cases, tests, proofs and assumptions of each clause.

Most entries are derived: the rows from the spec table, the cases from the conformance kit, the functions of the planner
and the rules of the checker from their source, the tests for errors from cited.json, and the proofs from evidence.json.
matrix.toml contains the other entries. Every name in it must exist, and each empty cell requires a reason.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT / "tests"))

from helpers.all_cases import ALL, UNCOVERED  # noqa: E402
from maxops import spec  # noqa: E402
from maxops.checker.report import RULES  # noqa: E402
from maxops.spec import Clause, Spec  # noqa: E402

Json = dict[str, Any]
FILE = ROOT / "src" / "maxops" / "evidence" / "matrix.json"
HERE = Path(__file__).resolve().parent
COLUMNS = ("code", "cases", "tests", "proofs", "assumed")
FAMILIES = {"maximum": "Max", "reduce_max": "ReduceMax", "segment_max": "SegmentMax"}
# The operators that each file of the planner checks. Files that are not listed check all operators.
PLANNERS = {
    "max": ("Max",),
    "reduce": ("ReduceMax",),
    "segment": ("SegmentMax",),
    "faults": ("SegmentMax",),
    "scatter": spec.SCATTERS,
}


class MatrixError(Exception):
    """Raised for missing entries and unknown names in the matrix. The message lists them, one per line."""


# ------------------------------------------------------------------------------------------------ derived entries


def _calls_of(function: ast.AST) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("clause", "flag", "choice", "scalar_of", "output_of"):
                yield node


@cache
def planners() -> dict[tuple[str, str], list[str]]:
    """Return the planner functions that raise the errors of each clause, keyed by operator and short clause name."""
    found = defaultdict(list)
    for path in sorted((ROOT / "src" / "maxops" / "plan").glob("*.py")):
        families = PLANNERS.get(path.stem, sorted({family for each in PLANNERS.values() for family in each}))
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            named = [word for call in _calls_of(function) for word in ast.walk(call)]
            named += [
                word
                for node in ast.walk(function)
                if isinstance(node, ast.Assign) and any("clause" in ast.unparse(to) for to in node.targets)
                for word in ast.walk(node.value)
            ]
            shorts = {word.value for word in named if isinstance(word, ast.Constant) and isinstance(word.value, str)}
            for short in shorts:
                for family in families:
                    found[family, short].append(f"{path.relative_to(ROOT)}:{function.name}")
    return found


@cache
def defined(path: str) -> frozenset[str]:
    """Return the names of the functions that a Python or C++ file defines."""
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".py"):
        return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
    return frozenset(re.findall(r"\b(\w+)\([^;{}]*\)(?: const)?(?: -> [\w:]+)?\s*\{", text))


def exists(name: str) -> bool:
    """Return whether a file exists and, if the name is "file:name" or "file::name", defines the function or test."""
    path, function = re.fullmatch(r"([^:]+)(?:::?(.+?))?(?:\[.*)?", name, re.DOTALL).groups()  # type: ignore[union-attr]
    return (ROOT / path).is_file() and (function is None or function in defined(path))


# ------------------------------------------------------------------------------------------------ the matrix


def _family(row: Spec) -> str:
    return FAMILIES.get(row.operator, row.operator)


def _keys(row: Spec, short: str) -> list[str]:
    """Return the keys in matrix.toml that name a clause, from the most general to the most specific."""
    kind = "maxops" if row in spec.PLAIN else "standards"
    return ["*", kind, short, f"{_family(row)}.{short}", row.clause(short)]


class Matrix:
    """The matrix, built from matrix.toml, evidence.json and cited.json. Collects all problems in ``problems``."""

    def __init__(self, facts: Json, evidence: Json, cited: Json) -> None:
        self.facts, self.claims, self.cited = facts, {claim["id"]: claim for claim in evidence["claims"]}, cited
        self.used: set[tuple[str, str]] = set()
        self.problems: list[str] = []
        self.cases: dict[str, list[str]] = defaultdict(list)
        for case in ALL:
            self.cases[case.clause.id].append(case.id)
        for table in ("code", "tests"):
            self._check(table, [name for names in facts[table].values() for name in names], exists)
        self._check("assumed", [name for names in facts["assumed"].values() for name in names],
                    lambda name: name in facts["assumptions"])  # fmt: skip
        self._check("cited.json", [example for _, example in cited.values()], exists)
        self._check("proofs", facts["proofs"], lambda pattern: any(fnmatch(claim, pattern) for claim in self.claims))
        for claim in self.claims:
            if not any(fnmatch(claim, pattern) for pattern in facts["proofs"]):
                self.problems.append(f"proofs: the claim {claim} has no clauses")
        self.rows = [self._row(row, short) for row in (*spec.ALL, *spec.PLAIN) for short, _ in row.rules]
        known = {key for row in (*spec.ALL, *spec.PLAIN) for short, _ in row.rules for key in _keys(row, short)}
        self._check(
            "proofs", [name for names in facts["proofs"].values() for name in names.split()], known.__contains__
        )
        for table in ("code", "tests", "assumed", *(f"reasons.{column}" for column in COLUMNS)):
            for key in self._table(table):
                for name in key.split():
                    if (table, name) not in self.used:
                        self.problems.append(f"{table}: {name} is not a clause")

    def _check(self, table: str, names: Any, is_there: Any) -> None:
        self.problems += [f"{table}: {name} does not exist" for name in names if not is_there(name)]

    def _table(self, table: str) -> Json:
        facts = self.facts
        for part in table.split("."):
            facts = facts.get(part, {})
        return facts

    def _said(self, table: str, row: Spec, short: str) -> list[Any]:
        """Return the entries for a clause in a table of matrix.toml, with the most specific entry last."""
        found = []
        for key in _keys(row, short):
            self.used.add((table, key))
            found += [said for names, said in self._table(table).items() if key in names.split()]
        return found

    def _row(self, row: Spec, short: str) -> Json:
        clause = row.rule(short)
        code = [name for names in self._said("code", row, short) for name in names]
        code += planners().get((_family(row), short), [])
        if row not in spec.PLAIN:
            rule = RULES[row.operator][short]
            code.append(f"{rule.__module__.replace('.', '/').replace('maxops', 'src/maxops', 1)}.py:{rule.__name__}")
        cells = {
            "code": list(dict.fromkeys(code)),
            "cases": self._cases(clause),
            "tests": self._tests(row, short),
            "proofs": self._proofs(row, short),
            "assumed": [name for names in self._said("assumed", row, short) for name in names],
        }
        reasons = {column: self._reason(column, row, short) for column, cell in cells.items() if not cell}
        return {"id": clause.id, **cells, "reasons": reasons}

    def _cases(self, clause: Clause) -> list[str]:
        """Return the number of conformance cases for a clause, or for the clause that it cites as "as ID"."""
        whose = clause.source.removeprefix("as ")
        of = whose if whose in self.cases else clause.id
        found = self.cases.get(of, [])
        said = "" if of == clause.id else f" of {of}"
        return [f"{len(found)}{said}"] if found else []

    def _tests(self, row: Spec, short: str) -> list[str]:
        found = [name for names in self._said("tests", row, short) for name in names]
        if cited := self.cited.get(row.clause(short)):
            found.append(f"{cited[0]} that cite it, as {cited[1]}")
        return list(dict.fromkeys(found))

    def _proofs(self, row: Spec, short: str) -> list[str]:
        keys = set(_keys(row, short))
        patterns = [pattern for pattern, of in self.facts["proofs"].items() if keys & set(of.split())]
        return [claim for claim in self.claims if any(fnmatch(claim, pattern) for pattern in patterns)]

    def _reason(self, column: str, row: Spec, short: str) -> str:
        if column == "cases" and short in UNCOVERED and row not in spec.PLAIN:
            return str(UNCOVERED[short])
        said = self._said(f"reasons.{column}", row, short)
        if not said:
            self.problems.append(f"{row.clause(short)}: {column} is empty without a reason")
        return str(said[-1]) if said else ""

    def as_json(self) -> Json:
        """Return the content of matrix.json. Raise MatrixError if there are problems."""
        if self.problems:
            raise MatrixError("\n".join(dict.fromkeys(self.problems)))
        names: dict[str, int] = {}  # the index of each distinct text

        def numbered(row: Json) -> Json:
            of = {column: [names.setdefault(name, len(names)) for name in row[column]] for column in COLUMNS}
            reasons = {column: names.setdefault(reason, len(names)) for column, reason in row["reasons"].items()}
            return {name: value for name, value in (of | {"reasons": reasons}).items() if value}

        rows = {row["id"]: numbered(row) for row in self.rows}
        return {"format": 2, "assumptions": self.facts["assumptions"], "names": list(names), "rows": rows}


def facts() -> tuple[Json, Json, Json]:
    """Return the content of matrix.toml, evidence.json and cited.json."""
    by_hand = tomllib.loads((HERE / "matrix.toml").read_text(encoding="utf-8"))
    evidence = json.loads(FILE.with_name("evidence.json").read_text(encoding="utf-8"))
    return by_hand, evidence, json.loads((HERE / "cited.json").read_text(encoding="utf-8"))
