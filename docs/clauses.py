"""Generates the site's pages about clauses. A page such as clauses/ONNX.Max.shape.md covers all versions of a clause.

`docs/site.py` adds the pages to the site. The statements are taken from spec.py, the reasons and examples from
clauses.toml, the messages from runs of the examples, and the findings from the saved conformance runs in
conformance/known.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import onnx.parser

from maxops import evidence, spec
from maxops.checker import check, rules_common
from maxops.checker.report import RULES
from maxops.conformance.kinds import kinds
from maxops.conformance.result import FAULTS, Verdict
from maxops.conformance.wording import WORDS, runtime_label
from maxops.errors import MaxopsError
from maxops.explanations import explanations, without_version
from maxops.spec import Clause, Spec

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "conformance"))

import ledger  # noqa: E402

STANDARDS = {"ONNX": "onnx", "SONNX": "sonnx", "SONNX draft": "sonnx-draft", "OpenVINO": "openvino"}
Versions = list[tuple[Spec, Clause]]


def by_name() -> dict[str, Versions]:
    """Return the versions of each clause, oldest first, keyed by the clause id without the version."""
    found: dict[str, Versions] = defaultdict(list)
    for row in (*spec.ALL, *spec.PLAIN):
        for clause in row.clauses:
            found[without_version(clause.id)].append((row, clause))
    return dict(found)


def page_of(clause: str) -> str:
    """Return the path of a clause's page in the site's source folder.

    >>> page_of("ONNX.Max-13.shape")
    'clauses/ONNX.Max.shape.md'

    Page names never differ only by case, because the file systems of macOS and Windows ignore case:

    >>> page_of("SONNX.Max.NaN"), page_of("SONNX.Max.nan")
    ('clauses/SONNX.Max.NaN.md', 'clauses/SONNX.Max.nan-2.md')
    """
    return _page_names()[without_version(clause)]


@cache
def _page_names() -> dict[str, str]:
    """Return the page of each clause. If two names differ only by case, a number is added to the second name."""
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for name in by_name():
        seen[name.casefold()] += 1
        number = seen[name.casefold()]
        names[name] = f"clauses/{name}{f'-{number}' if number > 1 else ''}.md"
    return names


def pages() -> dict[str, str]:
    """Return the Markdown of each page, keyed by its path in the site's source folder."""
    return {page_of(name): _page(name, versions) for name, versions in by_name().items()}


def _page(name: str, versions: Versions) -> str:
    row, newest = versions[-1]
    explained = explanations()[name]
    texts: dict[tuple[str, str], list[str]] = defaultdict(list)
    for _, clause in reversed(versions):
        texts[clause.statement, clause.source.removeprefix("decided: ")].append(
            f'<a id="{clause.id}"></a>`{clause.id}`'
        )
    lines = ["| clause | text | section |", "| --- | --- | --- |"]
    lines += [f"| {', '.join(ids)} | {statement} | {source} |" for (statement, source), ids in texts.items()]
    by = f"of [{row.standard} {row.operator}]({row.url})" if row.url else f"of `maxops.{row.operator}`"
    parts = [f"# {newest.id}", f"A rule {by}: **{newest.statement}**.", "\n".join(lines)]
    if row.url and RULES[row.operator][newest.id.partition(f"{row.name}.")[2]] is rules_common.value:
        parts.append("A model cannot break this clause; a runtime's result can.")
    if newest.level == "undecided":
        parts.append("The specification leaves this question open, and [maxops decides it](../semantics.md).")
    parts += ["## Why", explained.why, "## Example", *_example(name, row, newest)]
    if found := _findings().get(name):
        lines = []
        for (runtime, page), counts in found.items():
            said = ", ".join(f"{count} {WORDS[verdict].many}" for verdict, count in counts.items())
            lines.append(f"- [{runtime}](../{page}): {said}")
        parts += [
            "## Results of runtimes",
            "The conformance kit judges each runtime against every standard, even if the runtime does not claim to "
            "implement that standard. The kit found these faults:",
            "\n".join(lines),
        ]
    verified = {row["id"]: row["verification"] for row in evidence.table()}[newest.id]
    parts += [
        "## Verification",
        f"Method: {verified}. `maxops clause {newest.id}` explains the clause on a terminal, and "
        "`maxops evidence --csv -` lists its code, cases and tests. See [Evidence](../evidence.md) for the methods.",
        "All clauses: [Operators and clauses](../operators.md).",
        "*Generated from `src/maxops/spec.py` and `src/maxops/clauses.toml`.*",
    ]
    return "\n\n".join(parts) + "\n"


@cache
def _findings() -> dict[str, dict[tuple[str, str], Counter[Verdict]]]:
    """Count the faults in the saved runs by clause, by runtime (with the page of its findings), and by verdict."""
    found: dict[str, dict[tuple[str, str], Counter[Verdict]]] = defaultdict(dict)
    for run in ledger.read(ROOT / "conformance" / "known"):
        for kind in kinds(run):
            if kind.verdict in FAULTS and kind.verdict != ledger.REFUSES:
                name = without_version(kind.groups[0].clause)
                key = runtime_label(run), ledger.page_name(run["runtime"])
                found[name].setdefault(key, Counter())[kind.verdict] += len(kind.findings)
    return found


def _example(name: str, row: Spec, newest: Clause) -> list[str]:
    explained = explanations()[name]
    if explained.is_model:
        standard = STANDARDS[row.standard]
        return [
            "This model breaks the clause:",
            f"```text\n{explained.example}\n```",
            f"`maxops check model.onnx --standard {standard}` reports:",
            *(f"> {each.node}: {each.message}" for each in broken(explained.example, newest)),
        ]
    session, error = transcript(explained.code(row))
    raises = [f"raises `errors.{type(error).__name__}`:", f"> {error}"] if error else []
    return [f"```pycon\n{session}\n```", *raises]


def broken(model: str, clause: Clause) -> list[Any]:
    """Check a model in ONNX's text format, and return the findings for the given clause if it is broken."""
    standard = STANDARDS[clause.id.partition(".")[0].replace("-", " ")]
    report = check(onnx.parser.parse_model(model), standard)
    return [each for each in report.findings if each.verdict == "broken" and each.clause == clause.id]


def transcript(code: str) -> tuple[str, MaxopsError | None]:
    """Run an example. Return its interpreter session, and the error that ended it, which the session omits."""
    names: dict[str, Any] = {}
    shown: list[str] = []
    for statement in ast.parse(code).body:
        text = ast.get_source_segment(code, statement) or ""
        shown += [f"{'>>>' if number == 0 else '...'} {line}" for number, line in enumerate(text.splitlines())]
        printed = StringIO()
        try:
            with redirect_stdout(printed):
                exec(compile(ast.Interactive([statement]), "<example>", "single"), names)
        except MaxopsError as error:
            return "\n".join(shown), error
        shown += printed.getvalue().splitlines()
    return "\n".join(shown), None
