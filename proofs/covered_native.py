"""What tests reached of the native core, out of llvm-cov's JSON: regions, branches, and conditions (MC/DC).

A template counts by its text: what one instantiation of a function reached is reached, and of a condition that one
instantiation showed to decide alone it is shown. Branches that the compiler folds, since a constant or a type decides
them, are none. Of several builds each adds what it reached.
"""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

Json = dict[str, Any]
# A place: from line and column to line and column, as llvm-cov has it, both from 1 and the end exclusive.
Span = tuple[int, int, int, int]

# LLVM's coverage::CounterMappingRegion::RegionKind
CODE, MCDC_BRANCH = 0, 6


@dataclass
class Function:
    """What was reached of a function's text, over all of its instantiations."""

    regions: dict[Span, bool] = field(default_factory=dict)
    branches: dict[tuple[Span, bool], bool] = field(default_factory=dict)  # by outcome; only those that can be
    conditions: dict[Span, bool] = field(default_factory=dict)  # of decisions with more than one


# By file, from the root, and name.
Functions = dict[tuple[str, str], Function]
Names = Callable[[Iterable[str]], dict[str, str]]


def demangled(mangled: Iterable[str]) -> dict[str, str]:
    """The name of each function, without its scope, its types and, of a lambda, all but what it stands in."""
    every = sorted(set(mangled))
    symbols = [name.rpartition(":")[2] for name in every]
    command = ["llvm-cxxfilt-19"]
    done = subprocess.run(command, input="\n".join(symbols), capture_output=True, text=True, check=True)
    return {name: _base(said) for name, said in zip(every, done.stdout.splitlines(), strict=True)}


@cache
def _base(said: str) -> str:
    if said.startswith("_Z"):  # a generic lambda with `auto` for its result, which no demangler knows
        scope, rest = [], said.lstrip("_ZNK")
        while digits := re.match(r"\d+", rest):
            length, rest = int(digits[0]), rest[digits.end() :]
            scope, rest = [*scope, rest[:length]], rest[length:]
        return scope[-1]
    text = said.replace("(anonymous namespace)::", "").replace("operator()", "operator")
    while (shorter := re.sub(r"<[^<>()]*>|\([^()<>]*\)", "", text)) != text:
        text = shorter
    text = re.split(r"::(?:\{lambda|\$_|'lambda)", text)[0]
    text = re.sub(r"( const| &| \[clone.*\])+$", "", text)
    return text.rpartition("::")[2].rpartition(" ")[2]


def within(inner: Span, outer: Span) -> bool:
    """Whether a place lies in another, or is the same."""
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def read(exports: Iterable[Json], root: Path, names: Names = demangled) -> Functions:
    """The functions of files below a folder, from the exports of several builds."""
    found: Functions = defaultdict(Function)
    for export in exports:
        (data,) = export["data"]
        said = names(function["name"] for function in data["functions"])
        for function in data["functions"]:
            files = [Path(name) for name in function["filenames"]]
            inside = [str(path.relative_to(root)) if path.is_relative_to(root) else "" for path in files]
            for number, name in enumerate(inside):
                if name:
                    _add(found[name, said[function["name"]]], function, number)
    return {name: each for name, each in found.items() if each.regions}


def _add(to: Function, function: Json, file: int) -> None:
    """Add one instantiation's counts; `file` is which of its files, as macros bring in others."""
    counts: dict[Span, int] = {}
    for row in function["regions"]:
        if row[7] == CODE and row[5] == file:  # a macro inside a macro has a record of its own of the same place
            counts[tuple(row[:4])] = max(counts.get(tuple(row[:4]), 0), row[4])
    for span, count in counts.items():
        to.regions[span] = to.regions.get(span, False) or count > 0
    for row in function["branches"]:  # without those that are folded
        if row[6] == file:
            span = tuple(row[:4])
            for outcome, seen in ((True, row[4] > 0), (False, row[5] > 0)):
                to.branches[span, outcome] = to.branches.get((span, outcome), False) or seen
    if file != 0:  # a decision's record does not say which file: here no macro has one
        return
    asked = [tuple(row[:4]) for row in function["branches"] if row[6] == file and row[8] == MCDC_BRANCH]
    for row in function["mcdc_records"]:
        decision, shown = tuple(row[:4]), row[6]
        conditions = [span for span in asked if within(span, decision)]
        if len(conditions) != len(shown):  # some are folded, and have no branch: they are regions beside the others
            inside = [each for each in counts if within(each, decision) and not any(meet(each, c) for c in conditions)]
            conditions += [each for each in inside if not any(o != each and within(o, each) for o in inside)]
        if len(conditions) != len(shown):
            raise ValueError(f"{function['name']}: {len(shown)} conditions, but {conditions} in {decision}")
        for span, alone in zip(sorted(conditions), shown, strict=True):
            if span in asked:
                to.conditions[span] = to.conditions.get(span, False) or alone


def meet(one: Span, other: Span) -> bool:
    """Whether two places have something in common."""
    return one[:2] < other[2:] and other[:2] < one[2:]


def counts(function: Function) -> dict[str, tuple[int, int]]:
    """Of regions, of branches' outcomes and of conditions, how many were reached or shown, of how many."""
    kinds = (("regions", function.regions), ("branches", function.branches), ("MC/DC", function.conditions))
    return {kind: (sum(of.values()), len(of)) for kind, of in kinds}


def missed(function: Function, text: list[str]) -> Iterator[tuple[str, str]]:
    """What was not reached: the line's text, and what of it; nothing that follows from another miss."""
    cold = {span for span, reached in function.regions.items() if not reached}
    never = {(span, outcome) for (span, outcome), seen in function.branches.items() if not seen}
    asked = {span for span, _ in never if not any(within(span, other) for other in cold)}
    for span in sorted(cold):
        follows = any(not at((*branch[2:], *span[:2]), text).strip(" (){&|?:") for branch, _ in never if branch < span)
        if not follows and not any(span != other and within(span, other) for other in cold):
            yield text[span[0] - 1].strip(), "not reached"
    for span, outcome in sorted(never):
        if span in asked:
            yield text[span[0] - 1].strip(), f"never {str(outcome).lower()}: {at(span, text)}"
    for span, alone in sorted(function.conditions.items()):
        if not alone and span not in asked and not any(within(span, other) for other in cold):
            yield text[span[0] - 1].strip(), f"never alone: {at(span, text)}"


def at(span: Span, text: list[str]) -> str:
    """The source of a place, its white space made one."""
    first, begin, last, end = span
    lines = text[first - 1 : last]
    lines[-1] = lines[-1][: end - 1]
    lines[0] = lines[0][begin - 1 :]
    return " ".join(" ".join(lines).split())
