"""Every pair of verdicts, in every output format, compared with the lists in this module."""

from __future__ import annotations

import json
from collections import Counter
from itertools import combinations_with_replacement
from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest
from typer.testing import CliRunner

import ledger
from helpers.conformance_runs import Maker
from maxops import spec
from maxops.cli.app import app
from maxops.conformance import compare, junit, matrix, saved
from maxops.conformance.page.data import data as page_data
from maxops.conformance.result import Elements, Message, Run, Verdict, elements

# The worst verdict first.
FAULTS: tuple[Verdict, ...] = (
    "crashes",
    "uninitialized memory",
    "corrupted state",
    "hangs",
    "violates",
    "missing error",
    "refuses",
)
OPEN: tuple[Verdict, ...] = ("permitted", "not the same twice")
EVERY: tuple[Verdict, ...] = (*FAULTS, *OPEN, "conforms", "not applicable")
ONE_OF_EACH = ("crashes", "refuses", "permitted", "conforms", "not applicable")
WORDS = {
    "crashes": "crash",
    "hangs": "hang",
    "violates": "violate",
    "missing error": "missing errors",
    "refuses": "refuse",
    "conforms": "conform",
}
ZERO, ONE = (elements(np.array([value], np.float16)) for value in (0, 1))
ERROR: Message = {"text": "an error"}
# The results of each verdict: arrays or words, as similar as possible, so that only the verdict differs.
GIVES: dict[str, tuple[Elements | Message, Elements | Message]] = {
    "crashes": (ONE, ERROR),
    "hangs": (ONE, ERROR),
    "refuses": (ONE, ERROR),
    "corrupted state": (ONE, ERROR),
    "missing error": (ERROR, ZERO),
}
ROWS = tuple(row for row in spec.ALL if (row.standard, row.name) in {("ONNX", "Max-13"), ("SONNX", "Max")})
# Cases of one clause, of two clauses of an operator, and of two standards.
PLACES = {
    "one clause": ("ONNX.Max-13.value/",) * 3,
    "clauses": ("ONNX.Max-13.value/", "ONNX.Max-13.shape/", "ONNX.Max-13.inputs/"),
    "standards": ("ONNX.Max-13.value/", "SONNX.Max.value/", "ONNX.Max-13.nan/"),
}


def _run(verdicts: tuple[Verdict, ...], place: str = "one clause", runtime: str = "told") -> tuple[Run, list[str]]:
    """Return a run whose cases have these verdicts, and the cases in order."""
    maker = Maker(runtime, "1", ROWS)
    cases: list[str] = []
    for part, _ in zip(PLACES[place], verdicts, strict=False):
        cases.append(next(case for case in maker.cases(part) if "/float16/" in case and case not in cases))
    maker.run["cases"] = dict.fromkeys(cases, "conforms")
    for case, verdict in zip(cases, verdicts, strict=True):
        if verdict == "not applicable":
            maker.leave(case, "it has no such type")
        elif verdict != "conforms":
            maker.find(case, verdict, *GIVES.get(verdict, (ONE, ZERO)), message=f"so it {verdict}")
    return maker.run, cases


def _json(path: Path, *runs: Run) -> Path:
    saved.write(path, runs)
    return path


def _conform(*words: object) -> tuple[int, list[str], list[str]]:
    """Run the command. Return the exit code, and the lines of stdout and of stderr."""
    result = CliRunner().invoke(app, ["conform", *map(str, words)])
    return result.exit_code, result.stdout.splitlines(), result.stderr.splitlines()


def _by_severity(verdicts: tuple[Verdict, ...]) -> list[Verdict]:
    return [each for each in EVERY if each in verdicts]


# ---------------------------------------------------------------------------------------------------- the command


@pytest.mark.parametrize("first", EVERY)
def test_exit_codes_and_lines(first: Verdict, tmp_path: Path) -> None:
    """Test that the exit code is 1 for any fault, and that exactly the faults have a line with their verdict."""
    for second in EVERY:
        run, cases = _run((first, second), "clauses")
        path = _json(tmp_path / "run.json", run)
        faults = [(case, each) for case, each in zip(cases, (first, second), strict=True) if each in FAULTS]
        for form in ("concise", "github", "text") if second == "violates" else ("concise",):
            code, lines, said = _conform("--from", path, "--format", form)
            assert code == (1 if faults else 0)
            if form == "concise":
                heads = [f"told 1: {case}: {case.partition('/')[0]} {each}: " for case, each in faults]
            elif form == "github":
                heads = [f"::error title={case.partition('/')[0]}::told 1: {case}: {each}: " for case, each in faults]
            else:
                continue
            assert len(lines) == len(heads)
            assert all(line.startswith(head) for line, head in zip(lines, heads, strict=True))
            assert said[-1].endswith(f": 2 cases: {_spoken((first, second))}")
        if second == "violates":
            code, lines, said = _conform("--from", path, "--format", "json")
            assert code == (1 if faults else 0)
            assert json.loads("\n".join(lines)) == run


def _spoken(verdicts: tuple[Verdict, ...]) -> str:
    order: tuple[Verdict, ...] = (
        *("conforms", "violates", "refuses", "missing error", "crashes", "hangs"),
        *("uninitialized memory", "corrupted state", "permitted", "not the same twice", "not applicable"),
    )
    counts = Counter(verdicts)
    return ", ".join(f"{counts[each]} {WORDS.get(each, each)}" for each in order if counts[each])


@pytest.mark.parametrize("known", EVERY)
def test_a_baseline_and_each_verdict(known: Verdict, tmp_path: Path) -> None:
    """Test that a fault is new if the baseline lacks the case or has another verdict. Only new faults fail a check."""
    old, _ = _run((known, "conforms"), "clauses")
    baseline = _json(tmp_path / "old.json", old)
    for now in EVERY:
        run, cases = _run((now, "conforms"), "clauses")
        path = _json(tmp_path / "new.json", run)
        expected = [cases[0]] if now in FAULTS and now != known else []
        assert [each["case"] for each in compare.not_in_baseline(run, old)] == expected
        if now not in ONE_OF_EACH and now != known:
            continue
        code, lines, said = _conform("--from", path, "--baseline", baseline, "--format", "concise")
        assert code == (1 if expected else 0)
        assert [line.split(": ")[1] for line in lines] == expected
        if known != "violates":
            continue
        other, _ = _run((now, "conforms"), "standards", "another")
        code, lines, said = _conform("--from", path, _json(tmp_path / "b.json", other), "--baseline", baseline)
        assert code == (1 if expected or now in FAULTS else 0)
        assert "maxops: the baseline contains no run of another, so all faults of another are new" in said


@pytest.mark.parametrize("before", EVERY)
def test_a_comparison_of_each_verdict_with_each(before: Verdict, tmp_path: Path) -> None:
    old, cases = _run((before, "conforms", "violates"), "clauses")
    for now in EVERY:
        new, _ = _run((now, "conforms", "violates"), "clauses")
        found = compare.compare(old, new)
        if now in FAULTS and before not in FAULTS:
            kind = "new_faults"
        elif before in FAULTS and now in ("conforms", *OPEN):
            kind = "fixed"
        elif before != now:
            kind = "changed"
        else:
            kind = "unchanged"
        for name in ("new_faults", "fixed", "changed"):
            expected = [(cases[0], before, now)] if name == kind else []
            assert [(each.case, each.old, each.new) for each in getattr(found, name)] == expected
        assert found.unchanged == (3 if kind == "unchanged" else 2)
        titles = {"new_faults": "New faults", "fixed": "Fixed", "changed": "Changed"}
        assert [table.title for table in compare.tables(found)] == [titles[kind] for _ in range(kind in titles)]
        counts = [f"{int(kind == 'new_faults')} new fault{'s' * (kind != 'new_faults')}"]
        counts += [f"{int(kind == name)} {name}" for name in ("fixed", "changed")]
        assert compare.summary(found).startswith(f"told 1 -> told 1: {'; '.join(counts)}; {found.unchanged} unchanged")


@pytest.mark.parametrize("only", EVERY)
def test_a_case_of_one_run_alone(only: Verdict) -> None:
    short, _ = _run(("violates",), "clauses")
    longer, cases = _run(("violates", only), "clauses")
    now, then = compare.compare(short, longer), compare.compare(longer, short)
    assert (now.only_new, now.only_old, then.only_new, then.only_old) == ({cases[1]: only}, {}, {}, {cases[1]: only})
    assert f"1 new, including {int(only in FAULTS)} fault" in compare.summary(now)
    assert [table.title for table in compare.tables(then)] == ["Only in told 1"]
    assert [each["case"] for each in compare.not_in_baseline(longer, short)] == cases[1:] * (only in FAULTS)


# -------------------------------------------------------------------------------------------------- every report


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("first", EVERY)
def test_what_each_report_says_of_two_in_each_order_and_of_three(first: Verdict, place: str) -> None:
    pairs: list[tuple[Verdict, ...]] = [(first, second) for second in EVERY]
    several: list[tuple[Verdict, ...]] = [(first, *more) for more in combinations_with_replacement(EVERY, 2)]
    for verdicts in pairs + (several if place == "standards" else []):
        run, cases = _run(verdicts, place)
        by_case = dict(zip(cases, verdicts, strict=True))
        assert saved.parse(saved.as_text([run]).encode(), "run") == [run]
        _matrix(run, by_case)
        _findings(run, by_case)
        _junit(run, by_case)
        _page(run, by_case)


def _matrix(run: Run, by_case: dict[str, Verdict]) -> None:
    other, _ = _run(("conforms",), runtime="another")  # without the clauses of the other places
    table = matrix.matrix([run, other])
    assert table.columns == ("standard", "operator", "clause", "told 1", "another 1")
    cells = {f"{row[0]}.{row[1]}.{row[2]}": row[3] for row in table.rows if row[3]}
    assert len(table.rows) == len({row[:3] for row in table.rows})
    assert {row[:3]: row[4] for row in table.rows if row[4]} == {("ONNX", "Max", "value"): "conforms 1"}
    own: dict[str, list[Verdict]] = {}
    for case, verdict in by_case.items():
        own.setdefault(case.partition("/")[0].replace("-13", ""), []).append(verdict)
    expected = {}
    for clause, verdicts in own.items():
        ranked = _by_severity(tuple(verdicts))
        words = [f"{each} {verdicts.count(each)}" for each in ranked]
        words[0] += f" of {len(verdicts)}" if len(words) > 1 else ""
        expected[clause] = "-" if ranked == ["not applicable"] else ", ".join(words)
    assert cells == expected


def _findings(run: Run, by_case: dict[str, Verdict]) -> None:
    """Check that the table has a row for each verdict and clause, with the worst verdict first."""
    message = [(verdict, clause.split(" ")[-1], count) for verdict, clause, _, count, _ in matrix.findings(run).rows]
    expected = Counter(
        (verdict, case.partition("/")[0].rpartition(".")[2])
        for case, verdict in by_case.items()
        if verdict not in ("conforms", "not applicable")
    )
    counted: Counter[tuple[str, str]] = Counter()
    for verdict, short, count in message:
        counted[verdict, short] += int(count)
    assert counted == expected
    ranks = [EVERY.index(verdict) for verdict, *_ in message]
    assert ranks == sorted(ranks)


def _junit(run: Run, by_case: dict[str, Verdict]) -> None:
    root = fromstring(junit.as_text([run]))
    (suite,) = root.findall("testsuite")
    tests = {test.get("name"): test for test in suite.findall("testcase")}
    assert list(tests) == list(by_case)
    for case, verdict in by_case.items():
        test = tests[case]
        assert [each.get("type") for each in test.findall("failure")] == [verdict] * (verdict in FAULTS)
        assert len(test.findall("skipped")) == (verdict == "not applicable")
        said = test.findtext("system-out") or ""
        assert said.startswith(f"{verdict} {case.partition('/')[0]}: ") if verdict in OPEN else not said
        for failure in test.findall("failure"):
            assert (failure.get("message") or "").startswith(f"{verdict} {case.partition('/')[0]}: ")
            assert (failure.text or "").startswith(f"so it {verdict}\nexpected: ")
    for holder in (root, suite):
        assert holder.get("tests") == str(len(by_case))
        assert holder.get("failures") == str(sum(each in FAULTS for each in by_case.values()))
        assert holder.get("skipped") == str(sum(each == "not applicable" for each in by_case.values()))
        assert holder.get("errors") == "0"


def _page(run: Run, by_case: dict[str, Verdict]) -> None:
    made = page_data([run])
    assert [each["name"] for each in made["verdicts"]] == list(EVERY)
    assert [each["name"] for each in made["verdicts"] if each["fault"]] == list(FAULTS)
    (own,) = made["runs"]
    counted = Counter(
        {
            (clause, verdict): number
            for clause, types in own["counts"].items()
            for counts in types.values()
            for verdict, number in counts.items()
        }
    )
    assert counted == Counter((case.partition("/")[0], verdict) for case, verdict in by_case.items())
    message = [(each["verdict"], each["clause"], len(each["findings"])) for each in own["groups"]]
    expected = Counter(
        (verdict, case.partition("/")[0])
        for case, verdict in by_case.items()
        if verdict not in ("conforms", "not applicable")
    )
    assert {(verdict, clause): count for verdict, clause, count in message} == expected
    ranks = [EVERY.index(verdict) for verdict, *_ in message]
    assert ranks == sorted(ranks)
    left = [case.partition("/")[0] for case, verdict in by_case.items() if verdict == "not applicable"]
    assert [each["text"] for each in own["reasons"]] == ["it has no such type"] * bool(left)
    if left:
        assert {clause: counts["float16"] for clause, counts in own["reasons"][0]["counts"].items()} == Counter(left)


@pytest.mark.parametrize("first", EVERY)
def test_what_the_ledger_says_of_two(first: Verdict) -> None:
    for second in EVERY:
        run, _ = _run((first, second), "clauses")
        pages = ledger.pages([run])
        text = pages[ledger.page_name("told")]
        verdicts = {first, second}
        assert ("### Faults" in text) is bool(verdicts & {*FAULTS} - {"refuses"})
        assert ("### Refusals" in text) is ("refuses" in verdicts)
        permitted = sum(each in OPEN for each in (first, second))
        title = f"Permitted differences from maxops: {permitted} case{'s' * (permitted != 1)}"
        assert (title in text) is bool(permitted)
        assert ("Permitted differences" in text) is bool(permitted)
        assert ("All applicable cases conform." in text) is (verdicts <= {"conforms", "not applicable"})
        skipped = sum(each == "not applicable" for each in (first, second))
        assert (f"Cases that are not applicable: {skipped}" in text) is bool(skipped)
        for each in verdicts - {"conforms"}:
            assert f"- *{WORDS.get(each, each)}*: " in pages["findings.md"]
