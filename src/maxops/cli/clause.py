"""The command `maxops clause`, which explains clauses, and the options --select and --ignore of other commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Any

import typer

from maxops import evidence, spec
from maxops.cli import streams
from maxops.cli.table import say, show_json
from maxops.errors import UnknownOperatorError
from maxops.explanations import IMPORTS, explanations, without_version
from maxops.shown import printable
from maxops.spec import Spec

MAX_NEAR = 3


@cache
def _rows() -> dict[str, tuple[Spec, str]]:
    """Return the `Spec` and the short name of each clause, keyed by clause id."""
    return {row.clause(short): (row, short) for row in (*spec.ALL, *spec.PLAIN) for short, _ in row.rules}


@cache
def _of_models() -> dict[str, str]:
    """Return the ids in reports of `maxops check` that are not clauses of an operator, with their descriptions."""
    from maxops.checker.report import MODEL, OUTSIDE  # noqa: PLC0415  (onnx takes longer to import than most commands)

    return {
        MODEL: "a model error that no clause covers, such as a cycle or a duplicate name",
        OUTSIDE: "a max operator that the selected standard does not cover",
    }


def complete(incomplete: str) -> list[str]:
    """Return the clause ids that start with a prefix, for shell completion."""
    return [name for name in (*_rows(), *_of_models()) if name.casefold().startswith(incomplete.casefold())]


Select = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLAUSE,...",
        autocompletion=complete,
        help="Report only these clauses: an id, a prefix (SONNX, ONNX.Max, ONNX.Max-13), or a pattern with *.",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CLAUSE,...", autocompletion=complete, help="Do not report these clauses; same form as --select."
    ),
]


def _fits(name: str, text: str) -> bool:
    """Return whether the text of an option selects a clause id.

    >>> [_fits("ONNX.Max-13.shape", text) for text in ("ONNX", "onnx.max", "ONNX.Max-13", "ONNX.Max.shape", "*.shape")]
    [True, True, True, True, True]
    >>> [_fits("SONNX-draft.Max.value", text) for text in ("ONNX", "SONNX", "SONNX-draft.M", "value")]
    [False, False, False, False]
    """
    name, text = name.casefold(), text.casefold()
    if "*" in text:
        return fnmatchcase(name, text)
    return any(each == text or each.startswith(f"{text}.") for each in (name, without_version(name)))


def _named(text: str) -> list[str]:
    """Return the ids that a text selects. Raises UnknownOperatorError if there are none."""
    every = (*_rows(), *_of_models())
    if found := [name for name in every if _fits(name, text)]:
        return found
    folded = {name.casefold(): name for name in every}
    near = get_close_matches(text.casefold(), folded, n=MAX_NEAR, cutoff=0.5)
    hint = f"; similar ids are {', '.join(folded[name] for name in near)}" if near else ""
    raise UnknownOperatorError(f"unknown clause {text!r}{hint}; list all with `maxops operators --clauses`")


def selection(select: Sequence[str] | None, ignore: Sequence[str] | None) -> Callable[[str], bool]:
    """Return a predicate for selected clause ids. Raises UnknownOperatorError for a text that matches no clause."""
    chosen, ignored = (
        _parts(given, option) if given else [] for given, option in ((select, "--select"), (ignore, "--ignore"))
    )
    for text in (*chosen, *ignored):
        _named(text)

    def keeps(name: str) -> bool:
        is_chosen = not chosen or any(_fits(name, text) for text in chosen)
        return is_chosen and not any(_fits(name, text) for text in ignored)

    return keeps


def _parts(given: Sequence[str], option: str) -> list[str]:
    """Split texts at commas. Reject empty texts, because `--select "$EMPTY"` would otherwise select all clauses."""
    if parts := [part.strip() for text in given for part in text.split(",") if part.strip()]:
        return parts
    raise typer.BadParameter("expected at least one clause, got an empty string", param_hint=option)


def clause(
    ids: Annotated[
        list[str],
        typer.Argument(
            metavar="ID",
            autocompletion=complete,
            help="Clause ids, as shown in errors and reports (such as ONNX.Max-13.shape), prefixes, or patterns "
            "with * (such as ONNX.*.shape).",
        ),
    ],
    form: streams.Format = "text",
) -> None:
    """Explain clauses: the statement, its source, the reason, an example, and how the clause is verified."""
    names = list(dict.fromkeys(name for part in _parts(ids, "ID") for name in _named(part)))
    shown = {row["id"]: row for row in evidence.table()}
    documents = [_document(name, shown) for name in names]
    if form == "json":
        show_json(documents)
        return
    for number, each in enumerate(documents):
        if number:
            print()
        for line in _lines(each):
            if line.startswith(("  page:", "  example:", " " * 12)):  # unwrapped, for copying
                print(line)
            else:
                say(line, 12)


def _document(name: str, shown: dict[str, dict[str, str]]) -> dict[str, Any]:
    if name in _of_models():
        return {"id": name, "statement": _of_models()[name], "source": "maxops check", "level": "must"}
    row, short = _rows()[name]
    alike = [
        other
        for other, (its_row, its_short) in _rows().items()
        if (its_row.standard, its_row.operator, its_short) == (row.standard, row.operator, short)
    ]
    explained = explanations()[without_version(name)]
    return {
        **vars(row.rule(short)),
        "why": explained.why,
        "example": explained.code(_rows()[alike[-1]][0]),
        "example_is_a_model": explained.is_model,
        "example_raises": explained.breaks,
        "standard": row.standard,
        "operator": row.name,
        "url": row.url or None,
        "types": [str(dtype) for dtype in row.dtypes],
        "also": [other for other in alike if other != name],
        "shown_by": shown[name]["verification"] if name in shown else "",
    }


def _example(document: dict[str, Any]) -> list[str]:
    """Return the lines of the example, without the imports that all examples share."""
    lines = document["example"].splitlines()
    if document["example_is_a_model"]:
        lines = ["a model that breaks the clause:", *lines]
    else:
        lines = [line for line in lines if not line.startswith(IMPORTS)]
        lines += ["raises an error"] * document["example_raises"]
    return [f"{'            ' if number else '  example:  '}{line}" for number, line in enumerate(lines)]


def _lines(document: dict[str, Any]) -> list[str]:
    lines = [f"{document['id']}: {printable(document['statement'])}", f"  source:   {document['source']}"]
    if document.get("url"):
        lines.append(f"  page:     {document['url']}")
    if document["level"] == "undecided":
        lines.append("  level:    decided by maxops, because the specification leaves the question open")
    if "why" in document:
        lines.append(f"  why:      {document['why']}")
        lines += _example(document)
    if "operator" in document:
        lines.append(f"  operator: {document['standard']} {document['operator']}, on {', '.join(document['types'])}")
    if document.get("also"):
        lines.append(f"  also:     {', '.join(document['also'])}")
    if document.get("shown_by"):
        lines.append(f"  verified: {document['shown_by']} (for details, run `maxops evidence --csv -`)")
    return lines
