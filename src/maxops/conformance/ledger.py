"""The ledger of what the kit found in the runtimes that it was run on, and the pages that are made from it: of all of
them docs/findings.md, and of each runtime one in docs/findings.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from maxops.conformance import bounds, saved
from maxops.conformance.causes import Cause, causes
from maxops.conformance.ids import clause_name
from maxops.conformance.kinds import Kind, kinds
from maxops.conformance.matrix import by_standard
from maxops.conformance.result import FAULTS, OPEN, VERDICTS, Reproducer, Run, Verdict
from maxops.conformance.wording import WORDS, runtime_label, shortened, sides
from maxops.counted import counted
from maxops.errors import RunFileError

REFUSES: Verdict = "refuses"  # told by itself: what is missing is no wrong answer
INTRODUCTION = """\
# Findings of the conformance kit

`maxops conform` judged each runtime by cases derived from the clauses of [the operators](operators.md), on the machine
that its page names. Other versions and machines may differ, most often for 16-bit floats, which some processors compute
with native instructions. `maxops conform RUNTIME --only CASE` repeats a case; see
[Judging a runtime](integrations/conform.md). `docs/generate.py` generates these pages from
[conformance/known](../conformance/README.md).

Each result is judged by each standard, including standards that a runtime does not claim (none claims SONNX). Standards
without applicable cases are omitted. Each runtime has a page with its results, and scripts that reproduce them.
"""
ABOUT_A_PAGE = """\
[About the findings, and other runtimes](../findings.md). Findings with the same cause share a heading, with the values,
their bits and one script: the smallest call that reproduces the finding, without maxops. Each script was run. For
scripts of other cases, run `maxops conform RUNTIME --only CASE --json FILE`.
"""
MAX_TEXT = 80  # letters of a runtime's own words in a cell


def file_name(run: Run) -> str:
    """The name of a run's file: the runtime and its version, without what a file's name cannot have everywhere.

    >>> file_name({"runtime": "maxops:onnxruntime", "version": "0.1.0 in onnxruntime 1.31.1"})
    'maxops-onnxruntime-0.1.0-in-onnxruntime-1.31.1.json'
    """
    return f"{_in_files(run['runtime'])}-{_in_files(run['version'])}.json"


def read(folder: Path) -> list[Run]:
    """The runs of a folder, in the order of the files' names; each name must match its run."""
    runs = []
    for path in sorted(folder.glob("*.json")):
        run, *more = saved.read(path)
        if more:
            raise RunFileError(f"{path}: holds {1 + len(more)} runs; expected one in each file")
        if path.name != file_name(run):
            raise RunFileError(f"{path}: holds a run of {runtime_label(run)}; expected the name {file_name(run)}")
        runs.append(run)
    return runs


def abridged(run: Run) -> Run:
    """A run as the ledger keeps it: of each kind of finding, the smallest call alone has its inputs and its script.

    The page shows no other. The others are most of a run's bytes, and `maxops conform RUNTIME --only CASE` makes them
    again.
    """
    shown = {kind.smallest.number for kind in kinds(run)}
    reproducers: list[Reproducer] = [
        each if number in shown else {**each, "inputs": {}, "script": "", "output": ""}
        for number, each in enumerate(run["reproducers"])
    ]
    return {**run, "reproducers": reproducers}


def pages(runs: Sequence[Run]) -> dict[str, str]:
    """The pages as Markdown: findings.md, of all runtimes, and findings/RUNTIME.md, of all runs of one."""
    made = {"findings.md": _text([INTRODUCTION, *_summary(runs)])}
    for runtime in dict.fromkeys(run["runtime"] for run in runs):
        own = [run for run in runs if run["runtime"] == runtime]
        lines = [f"# Findings: {_plain(runtime)}", "", ABOUT_A_PAGE]
        for run in own:
            lines += _of_runtime(run, f", in {run['version']}" if len(own) > 1 else "")
        made[page_name(runtime)] = _text(lines)
    return made


def page_name(runtime: str) -> str:
    """The page of a runtime, beside findings.md.

    >>> page_name("maxops:onnxruntime")
    'findings/maxops-onnxruntime.md'
    """
    return f"findings/{_in_files(runtime)}.md"


def _in_files(name: str) -> str:
    return name.replace(":", "-").replace(" ", "-").replace("/", "-")


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"


def _summary(runs: Sequence[Run]) -> list[str]:
    verdicts = [each for each in VERDICTS if any(each in run["cases"].values() for run in runs)]
    rows = [
        (
            f"[{_plain(runtime_label(run))}]({page_name(run['runtime'])})",
            standard,
            counts.total(),
            *(counts[each] or "" for each in verdicts),
        )
        for run in runs
        for standard, counts in by_standard(run).items()
        if counts["not applicable"] < counts.total()
    ]
    means = [f"- *{WORDS[each].many}*: {WORDS[each].means}" for each in verdicts if each != "conforms"]
    return [*means, "", *_table(("runtime", "by", "cases", *(WORDS[each].many for each in verdicts)), rows), ""]


def _of_runtime(run: Run, where: str) -> list[str]:
    """A run's part of its page; `where` makes headings differ that would be the same in another run's."""
    every = kinds(run)
    wrong = causes([kind for kind in every if kind.verdict in FAULTS and kind.verdict != REFUSES])
    lines = [f"## {_plain(runtime_label(run))}", "", _circumstances(run), ""]
    lines += [f"- {_plain(sentence)}" for sentence in bounds.sentences(run)] + [""] * bool(bounds.sentences(run))
    if wrong:
        lines += ["### What the standards forbid", "", *_contents(wrong, where), ""]
        lines += [line for cause in wrong for line in _section(cause, where)]
    if refused := [kind for kind in every if kind.verdict == REFUSES]:
        lines += ["### What it refuses", "", *_refused(refused), ""]
    if permitted := causes([kind for kind in every if kind.verdict in OPEN]):
        count = sum(cause.count for cause in permitted)
        title = f"What differs from maxops, and is permitted: {count} case{'s' * (count != 1)}"
        lines += _folded(title, _permitted(permitted))
    if not every:
        lines += ["Every case that applies conforms.", ""]
    if run["notes"]:
        lines += ["Seen besides, and part of no case:", "", *(f"- {_plain(note)}" for note in run["notes"]), ""]
    if reasons := Counter(run["reasons"].values()):
        title = f"Cases that are not applicable: {reasons.total()}"
        lines += _folded(title, [f"- {count}: {_plain(shortened(reason))}" for reason, count in reasons.most_common()])
    return lines


def _circumstances(run: Run) -> str:
    machine, kit = run["machine"], run["kit"]
    which = "of a quick run" if kit.get("quick") else "of a full run"
    if kit.get("only"):
        which = f"that fit {kit['only']}"
    where = [machine.get("cpu"), machine.get("isa"), machine.get("system"), f"Python {machine.get('python')}"]
    here = ", ".join(_plain(str(each)) for each in where if each)
    return f"{counted(len(run['cases']), 'case')} {which}, on {here}; by maxops {_plain(str(kit.get('maxops')))}."


def _contents(found: Sequence[Cause], where: str) -> list[str]:
    rows = []
    for cause in found:
        standards = ", ".join(dict.fromkeys(kind.row.standard for kind in cause.kinds))
        heading = f"{cause.title}{where}"
        anchor = re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")  # as Markdown on the web makes it
        rows.append((f"[{_plain(heading)}](#{anchor})", cause.count, standards))
    return _table(("what", "cases", "by"), rows)


def _section(cause: Cause, where: str) -> list[str]:
    columns = ("clause", "versions", "types", "cases", "expected", "actual")
    rows = [(*_whose(kind), *_extent(kind), *_answers(kind)) for kind in cause.kinds]
    lines = [f"#### {_plain(cause.title)}{where}", ""]
    if cause.kinds[0].verdict != "violates":  # else the title says more than the clause
        lines += [f"- {each}" for each in dict.fromkeys(map(_says, cause.kinds))] + [""]
    lines += [*_table(columns, rows), ""]
    return [*lines, *(_script(cause.shown) if cause.shown else [])]


def _refused(found: Sequence[Kind]) -> list[str]:
    columns = ("clause", "versions", "types", "cases", "its words")
    return _table(columns, [(*_whose(kind), *_extent(kind), _answers(kind)[1]) for kind in found])


def _permitted(found: Sequence[Cause]) -> list[str]:
    columns = ("what", "clause", "versions", "types", "cases", "maxops", "it")
    rows = [
        (cause.title if kind is cause.kinds[0] else "", *_whose(kind), *_extent(kind), *_answers(kind))
        for cause in found
        for kind in cause.kinds
    ]
    return _table(columns, rows)


def _whose(kind: Kind) -> tuple[str, str]:
    """A clause, and the versions of its operator that the row speaks of, if it is not alone."""
    clause = max((group.clause for group in kind.groups), key=lambda name: clause_name(name).version or 0)
    return f"`{clause}`", ", ".join(map(str, kind.versions)) if len(kind.versions) > 1 else ""


def _says(kind: Kind) -> str:
    return f"{kind.row.standard}, `{kind.row.short}`: {_plain(kind.smallest.statement)}"


def _extent(kind: Kind) -> tuple[str, int]:
    return ", ".join(kind.types), len(kind.findings)


def _answers(kind: Kind) -> tuple[str, str]:
    expected, actual = sides(kind.smallest.expected, kind.smallest.actual, max_elements=1)
    # the text of the clause beside it says which error is expected
    return "an error" if "text" in kind.smallest.expected else _code(expected), _code(actual)


def _script(kind: Kind) -> list[str]:
    group = kind.smallest
    reproducer = group.reproducer
    assert reproducer is not None
    fence = _fence(reproducer)
    said = "It was run, and shows it" if reproducer["reproduced"] else "It was run, and does not show it each time"
    return _folded(
        f"A script that shows it: {kind.row.standard} {kind.row.operator}, {group.types[0]}",
        [
            f"`{group.findings[0]['case']}`. {said}:",
            "",
            f"{fence}python",
            reproducer["script"].rstrip(),
            fence,
            "",
            f"{fence}text",
            reproducer["output"].rstrip(),
            fence,
        ],
    )


# ------------------------------------------------------------------------------------------------- Markdown


def _table(columns: Iterable[str], rows: Iterable[Sequence[object]]) -> list[str]:
    head = list(columns)
    return [
        f"| {' | '.join(head)} |",
        f"| {' | '.join('---' for _ in head)} |",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def _folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that a reader can unfold."""
    return ['<details markdown="1">', f"<summary>{html.escape(title)}</summary>", "", *lines, "", "</details>", ""]


def _code(text: str) -> str:
    """A runtime's own words, or an array, in a cell."""
    return f"`{shortened(text, MAX_TEXT).replace('`', chr(39))}`".replace("|", "\\|")


def _plain(text: str) -> str:
    text = " ".join(text.split())
    for sign in "\\`*_<|[":
        text = text.replace(sign, f"\\{sign}")
    return text


def _fence(reproducer: Reproducer) -> str:
    fence = "```"
    while fence in reproducer["script"] + reproducer["output"]:
        fence += "`"
    return fence
