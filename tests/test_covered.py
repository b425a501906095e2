"""The count of what tests reach, and the list of what they miss (proofs/covered.py, proofs/coverage.toml)."""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "proofs"), str(ROOT / "native")]

import covered  # type: ignore[import-not-found]  # noqa: E402
import covered_native  # type: ignore[import-not-found]  # noqa: E402
import covered_python  # type: ignore[import-not-found]  # noqa: E402

TEXT = ["int f(int a, int b) {", "    if (a > 0 && b > 0) return g(a);", "    return 0;", "}"]
BODY, A, BOTH, B, CALL = (1, 21, 4, 2), (2, 9, 2, 14), (2, 9, 2, 23), (2, 18, 2, 23), (2, 25, 2, 36)


def function(file: str = "native/f.cpp", **counts: Any) -> dict[str, Any]:
    """As llvm-cov exports it: a region's count, a branch's two, and which conditions were shown."""
    regions = {BODY: 9, A: 9, BOTH: 9, B: 4, CALL: 4} | counts.get("regions", {})
    branches = {A: (4, 5), B: (4, 0)} | counts.get("branches", {})
    return {
        "name": "_Z1fii",
        "filenames": [str(ROOT / file)],
        "regions": [[*span, count, 0, 0, covered_native.CODE] for span, count in regions.items()],
        "branches": [[*span, *both, 0, 0, covered_native.MCDC_BRANCH] for span, both in branches.items() if both],
        "mcdc_records": [[*BOTH, 0, 5, counts.get("shown", [True, False])]],
    }


def read(*functions: dict[str, Any]) -> Any:
    return covered_native.read([{"data": [{"functions": [*functions]}]}], ROOT, lambda names: dict.fromkeys(names, "f"))


def test_what_was_reached_is_counted() -> None:
    (found,) = read(function()).values()
    assert covered_native.counts(found) == {"regions": (5, 5), "branches": (3, 4), "MC/DC": (1, 2)}
    assert [*covered_native.missed(found, TEXT)] == [(TEXT[1].strip(), "never false: b > 0")]


def test_what_one_instantiation_reaches_is_reached() -> None:
    (found,) = read(function(), function(branches={B: (0, 1)}, shown=[False, True])).values()
    assert covered_native.counts(found)["branches"] == (4, 4)
    assert covered_native.counts(found)["MC/DC"] == (2, 2)
    assert [*covered_native.missed(found, TEXT)] == []


def test_a_condition_that_never_decided_alone() -> None:
    (found,) = read(function(branches={B: (4, 1)}, shown=[True, False])).values()
    assert [*covered_native.missed(found, TEXT)] == [(TEXT[1].strip(), "never alone: b > 0")]


def test_a_folded_condition_is_none() -> None:
    (found,) = read(function(branches={A: None, B: (4, 1)}, shown=[False, True])).values()
    assert covered_native.counts(found) == {"regions": (5, 5), "branches": (2, 2), "MC/DC": (1, 1)}


def test_what_follows_from_another_miss_is_not_told() -> None:
    (found,) = read(function(regions={B: 0, CALL: 0}, branches={A: (0, 9), B: (0, 0)}, shown=[False, False])).values()
    assert covered_native.counts(found) == {"regions": (3, 5), "branches": (1, 4), "MC/DC": (0, 2)}
    told = [what for _, what in covered_native.missed(found, TEXT)]
    assert told == ["never true: a > 0"]


def test_other_files_are_not_looked_at() -> None:
    assert read(function("/usr/include/f.h")) == {}


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("maxops::x86_64_v4::(anonymous namespace)::rows<maxops::FloatOrder<short, (short)31744> >(void*)", "rows"),
        ("maxops::Fold::operator()(unsigned long, unsigned long) const", "operator"),
        ("maxops::plan(int)::{lambda(int)#1}::operator()(int) const", "plan"),
        ("auto maxops::Pieces<int>::with<maxops::f(void*)::{lambda(auto:1)#1}>(unsigned long, int const&)", "with"),
        ("maxops::(anonymous namespace)::Help::~Help()", "~Help"),
        ("_ZZN6maxops12_GLOBAL__N_116find_index_faultERKNS_12SegmentationEENK3$_0clIiEEDaT_", "find_index_fault"),
    ],
)
def test_a_functions_name(demangled: str, name: str) -> None:
    assert covered_native._base(demangled) == name


def test_decisions_that_the_compiler_does_not_count_are_named() -> None:
    said = f"{ROOT}/native/item.h:1:9: warning: unsupported MC/DC boolean expression; contains an operation"
    other = f"{ROOT}/native/item.h:2:9: warning: unused variable"
    first = (ROOT / "native" / "item.h").read_text(encoding="utf-8").splitlines()[0]
    assert covered.uncounted(f"[1/2] Building\n{said}\n{other}\n{said}\n") == {f"native/item.h | {first}"}


def test_python_counts_by_function() -> None:
    summary = {"covered_lines": 2, "num_statements": 3, "covered_branches": 1, "num_branches": 4}
    one = {"summary": summary, "missing_lines": [3], "missing_branches": [[2, 3], [2, 4], [1, -1]]}
    report = {"files": {"/there/src/f.py": {"functions": {"C.f": one, "": {"summary": {"num_statements": 0}}}}}}
    ((file, name, function),) = covered_python.functions(report, "/there/")
    assert (file, name) == ("src/f.py", "f")
    assert covered_python.counts(function) == {"lines": (2, 3), "branches": (1, 4)}
    told = [*covered_python.missed(function, ["if a:", "  if b:", "    c()", "  d()"])]
    assert told == [("c()", "not reached"), ("if b:", "never on to: d()"), ("if a:", "never to the end")]


def test_a_place_with_several_records_is_reached_by_any() -> None:
    """As macros inside macros have them: clang counts the innermost as never reached."""
    place, outer = (1, 5, 1, 5), (1, 1, 1, 9)
    regions = [[*outer, 2, 0, 0, 0], [*place, 2, 0, 0, 0], [*place, 0, 0, 0, 0]]
    function = {"name": "f", "filenames": ["/there/native/f.cpp"], "regions": regions, "branches": []}
    export = {"data": [{"functions": [function | {"mcdc_records": []}]}]}
    found = covered_native.read([export], Path("/there"), names=lambda all: {name: name for name in all})
    assert found["native/f.cpp", "f"].regions == {outer: True, place: True}


# --------------------------------------------------------------------------------------------------- the list


def judged(*missed: str, **groups: Any) -> Any:
    of = covered.Coverage()
    of.add("native/f.cpp", "f", {"branches": (1, 1 + len(missed))})
    of.missed.update(missed)
    document = {"reasons": [{"because": "so it is", "missed": misses} | more for misses, more in groups.values()]}
    claim = covered.Claim("coverage.native", "", "count", "", (), 0)
    return covered.judged(claim, of, covered.Reasons(document))


MISS = "native/f.cpp:f | if (a) | never true: a"


def test_a_miss_without_a_reason_is_open() -> None:
    assert judged(MISS).open == (f"native/f.cpp: missed, and has no reason: {MISS}",)
    assert judged(MISS, MISS, a=([MISS], {})).open == (f"native/f.cpp: missed, and has no reason: {MISS}",)


def test_a_miss_with_a_reason_is_counted() -> None:
    claim = judged(MISS, a=([MISS], {}))
    assert claim.holds
    counted = {"branches": [1, 2], "missed": 1, "listed": 1}
    assert claim.figures == {
        "totals": counted,
        "files": {"native/f.cpp": counted},
        "functions": {"native/f.cpp:f": "branches 1/2"},
        "without": [],
    }


def test_a_reason_whose_miss_is_gone_is_open() -> None:
    assert judged(a=([MISS], {})).open == (f"native/f.cpp: has a reason, and is not missed: {MISS}",)
    assert judged(a=([MISS], {"varies": True})).holds


def test_a_reason_is_said() -> None:
    with pytest.raises(ValueError, match="no reason is given"):
        covered.Reasons({"reasons": [{"because": "", "missed": [MISS]}]})


def test_what_is_listed_is_there() -> None:
    """Each line as it stands: one that was edited is found here, before the next count."""
    reasons = covered.Reasons(tomllib.loads(covered.LISTED.read_text(encoding="utf-8")))
    lines: dict[str, set[str]] = {}
    gone = []
    for miss in Counter({**reasons.fixed, **reasons.varying}):
        where, _, rest = miss.partition(" | ")
        file = where.partition(":")[0]
        lines.setdefault(file, {text.strip() for text in (ROOT / file).read_text(encoding="utf-8").splitlines()})
        if not any(rest.startswith(f"{text} | ") for text in lines[file]):
            gone.append(miss)
    assert gone == []
