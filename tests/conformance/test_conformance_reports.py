"""Reports of runs, except the page: files, tables, JUnit XML, and comparisons."""

from __future__ import annotations

import copy
import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from helpers.conformance_runs import HOSTILE, careful, found, swift, swifter
from maxops import spec
from maxops.conformance import compare, junit, matrix
from maxops.conformance.groups import groups
from maxops.conformance.ids import case_name, clause_name, row
from maxops.conformance.result import FAULTS, VERDICTS, Elements, Message, Run
from maxops.conformance.wording import BY_SEVERITY, expected_to_actual, one_line
from maxops.errors import OutputError, RunFileError


def test_every_verdict_has_its_words() -> None:
    assert sorted(BY_SEVERITY) == sorted(VERDICTS)


# ------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("each", spec.ALL, ids=lambda each: f"{each.standard}-{each.name}")
def test_the_id_of_every_clause_is_read_back(each: spec.Spec) -> None:
    for short, _ in each.rules:
        assert clause_name(each.clause(short)) == (each.standard, each.operator, each.version, short)


@pytest.mark.parametrize("name", ["", "ONNX", "ONNX.Max-13", "ONNX/Max.value"])
def test_what_names_no_clause_is_an_error(name: str) -> None:
    with pytest.raises(RunFileError, match="is not a clause id"):
        clause_name(name)


def test_what_names_no_case_is_an_error() -> None:
    with pytest.raises(RunFileError, match=r"'ONNX\.Max-13.value/int8' is not a case id"):
        case_name("ONNX.Max-13.value/int8")


# ------------------------------------------------------------------------------------------------ tables


def test_the_matrix_has_each_clause_once_and_loses_no_case() -> None:
    runs = [swift(), careful()]
    table = matrix.matrix(runs)
    assert table.columns[-2:] == ("swiftmax 2.1.0", "carefulmax 0.9")
    assert len({each[:3] for each in table.rows}) == len(table.rows)
    for column, run in enumerate(runs, 3):
        numbers = Counter[str]()
        for each in table.rows:
            for part in filter(None, each[column].split(", ")):
                if part != matrix.NOT_APPLICABLE:
                    verdict, number = part.split(" of ")[0].rsplit(" ", 1)
                    numbers[verdict] += int(number)
        asked = Counter(run["cases"].values())
        alone = asked["not applicable"] - numbers["not applicable"]
        assert numbers | Counter({"not applicable": asked["not applicable"]}) == asked
        assert alone == 0 or any(each[column] == "-" for each in table.rows)


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ({}, ""),
        ({"not applicable": 3}, "-"),
        ({"conforms": 128}, "conforms 128"),
        ({"conforms": 128, "violates": 12}, "violates 12 of 140, conforms 128"),
        ({"permitted": 4, "not applicable": 2, "crashes": 1}, "crashes 1 of 7, permitted 4, not applicable 2"),
    ],
)
def test_a_cell_says_the_worst_first_and_merges_nothing(counts: Any, text: str) -> None:
    assert matrix.cell(Counter(counts)) == text


def test_rows_stand_in_the_order_of_the_spec_table() -> None:
    rows = [tuple(each[:3]) for each in matrix.matrix([careful(), swift()]).rows]
    operators = list(dict.fromkeys((standard, operator) for standard, operator, _ in rows))
    assert operators == list(dict.fromkeys((each.standard, each.operator) for each in spec.ALL))
    assert len(operators) == len([each for each, _ in itertools.groupby(rows, key=lambda each: each[:2])])
    assert ("ONNX", "ReduceMax", "noop_with_empty_axes") in rows


def test_a_clause_that_the_table_does_not_have_is_shown_all_the_same() -> None:
    run = careful()
    run["cases"]["ONNX.Max-99.later/int8/x"] = "conforms"
    assert ("ONNX", "Max", "later", "conforms 1") in matrix.matrix([run]).rows


def test_findings_that_look_the_same_are_one_row() -> None:
    table = matrix.findings(swift())
    assert sum(int(each[3]) for each in table.rows) == len(swift()["findings"])
    zeros = [each for each in table.rows if each[1] == "SONNX Max value"]
    shown = "float32[1] 0.0 (00000000) -> float32[1] -0.0 (80000000)"
    assert zeros == [("violates", "SONNX Max value", "float16", "3", shown)]
    places = [list[str](BY_SEVERITY).index(each[0]) for each in table.rows]
    assert places == sorted(places)


def test_one_verdict_never_stands_in_for_another() -> None:
    for group in groups(swift()):
        assert {finding["verdict"] for finding in group.findings} == {group.verdict}
        assert {finding["clause"] for finding in group.findings} == {group.clause}


def test_a_runtime_in_a_line() -> None:
    line = matrix.summary(swift())
    assert line.startswith("swiftmax 2.1.0: ONNX: ")
    assert "; SONNX: " in line
    assert "; SONNX draft: " in line
    assert "; OpenVINO: " in line
    standards = line.removeprefix("swiftmax 2.1.0: ").split("; ")
    numbers = [int(part.split(": ")[1].split()[0]) for part in standards]
    assert sum(numbers) == len(swift()["cases"])


def result(values: list[int], shape: list[int] | None = None) -> Elements:
    texts = [str(value) for value in values]
    return {"type": "int8", "shape": shape or [len(values)], "values": texts, "bits": [f"{v:02X}" for v in values]}


TEXT: Message = {"text": "an error\n  of two lines"}


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (TEXT, "an error of two lines"),
        ({"type": "int8", "shape": [0, 2], "values": [], "bits": []}, "int8[0,2], empty"),
        ({"type": "real", "shape": [], "values": ["1/3"], "bits": []}, "real 1/3"),
        (result([1, 2, 3, 4, 5]), "int8[5] 1, 2, 3, 4, ... (01, 02, 03, 04, ...)"),
    ],
)
def test_a_result_in_a_line(one: Elements | Message, text: str) -> None:
    assert one_line(one) == text


def test_of_a_long_array_the_element_that_differs_is_shown() -> None:
    five = result([1, 2, 3, 4, 5])
    assert expected_to_actual(five, result([1, 2, 3, 4, 6])) == "int8[5], element 4: 5 (05) -> 6 (06)"
    assert expected_to_actual(five, TEXT) == f"{one_line(five)} -> an error of two lines"


# ------------------------------------------------------------------------------------------------- JUnit


def parsed(path: Path, runs: list[Run]) -> Any:
    junit.write(path, runs)
    return ElementTree.parse(path).getroot()


def test_every_case_is_a_test_and_every_fault_a_failure(tmp_path: Path) -> None:
    runs = [swift(), careful()]
    root = parsed(tmp_path / "junit.xml", runs)
    assert root.tag == "testsuites"
    assert [suite.get("name") for suite in root] == ["swiftmax 2.1.0", "carefulmax 0.9"]
    for suite, run in zip(root, runs, strict=True):
        tests = suite.findall("testcase")
        assert [test.get("name") for test in tests] == list(run["cases"])
        for test in tests:
            verdict = run["cases"][test.get("name")]
            assert (test.find("failure") is not None) == (verdict in FAULTS)
            assert (test.find("skipped") is not None) == (verdict == "not applicable")
            assert (test.find("system-out") is not None) == (verdict == "permitted")
        verdicts = Counter(run["cases"].values())
        assert int(suite.get("tests")) == len(tests)
        assert int(suite.get("failures")) == sum(verdicts[verdict] for verdict in FAULTS)
        assert int(suite.get("skipped")) == verdicts["not applicable"]
        assert suite.get("time") == "12.5"


def test_a_failure_says_what_was_expected_and_how_to_see_it(tmp_path: Path) -> None:
    root = parsed(tmp_path / "junit.xml", [swift()])
    test = next(test for test in root.iter("testcase") if test.get("name").startswith("SONNX.Max.value/float16/"))
    assert test.get("classname") == "SONNX.Max"
    failure = test.find("failure")
    assert failure.get("type") == "violates"
    assert failure.get("message").startswith("violates SONNX.Max.value: Inf > positive > 0")
    assert "expected: float16[1] 0.0 (0000)\nactual:   float16[1] -0.0 (8000)" in failure.text
    assert "import swiftmax" in failure.text
    skipped = next(test for test in root.iter("testcase") if "/real/" in test.get("name")).find("skipped")
    assert skipped.get("message") == "has no type real"


def test_foreign_words_break_no_xml(tmp_path: Path) -> None:
    run = swift()
    run["runtime"] = HOSTILE
    for finding in run["findings"]:
        finding["message"] = HOSTILE
        finding["actual"] = {"text": HOSTILE}
    root = parsed(tmp_path / "junit.xml", [run])
    escaped = HOSTILE.replace("\ud800", "\\ud800").replace("\x1b", "\\x1b").replace("\x00", "\\x00")
    assert root[0].get("name") == f"{escaped} 2.1.0"


def test_an_xml_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        junit.write(tmp_path, [swift()])


# -------------------------------------------------------------------------------------------- comparisons


def test_a_run_against_itself_has_nothing_new() -> None:
    same = compare.compare(swift(), swift())
    assert (same.new_faults, same.fixed, same.changed) == ((), (), ())
    assert same.unchanged == len(swift()["cases"])
    assert compare.tables(same) == []
    assert compare.not_in_baseline(swift(), swift()) == []


def test_the_next_version_against_the_one_before() -> None:
    old, new = swift(), swifter()
    made = compare.compare(old, new)
    assert {change.case.split("/")[0] for change in made.new_faults} == {"ONNX.Max-8.value"}
    assert {case_name(change.case).clause.split(".")[1] for change in made.fixed} == {"SegmentMax-16", "ReduceMax-20"}
    answers = {row(case_name(change.case).clause).short for change in made.changed if change.old == change.new}
    assert answers == {"value"}
    gone = [change for change in made.changed if change.old != change.new]
    assert {(change.old, change.new) for change in gone} == {("not applicable", "conforms")}
    total = len(made.new_faults) + len(made.fixed) + len(made.changed) + made.unchanged
    assert total == len(new["cases"])
    titles = [table.title for table in compare.tables(made)]
    assert titles == ["New faults", "Fixed", "Changed"]
    assert compare.summary(made).startswith("swiftmax 2.1.0 -> swiftmax 2.2.0: 3 new faults; ")
    rows = compare.tables(made)[0].rows
    assert rows[0] == (made.new_faults[0].case, "conforms", "violates: float16[1] 1.0 (3C00)")


def changed(edit: Any) -> compare.Comparison:
    old = swift()
    new = copy.deepcopy(old)
    edit(new)
    return compare.compare(old, new)


def test_another_wrong_answer_is_a_change_and_an_errors_words_are_none() -> None:
    def words(run: Run) -> None:
        for finding in run["findings"]:
            if "text" in finding["actual"]:
                finding["actual"] = {"text": "other words at 0x7fff"}
            elif finding["verdict"] == "uninitialized memory":
                finding["actual"] = {**finding["actual"], "bits": ["12345678"]}

    def bits(run: Run) -> None:
        for finding in run["findings"]:
            if finding["verdict"] == "violates" and "text" not in finding["actual"]:
                finding["actual"] = {**finding["actual"], "bits": ["1" for _ in finding["actual"]["bits"]]}

    assert changed(words).changed == ()
    assert {change.new for change in changed(bits).changed} == {"violates"}


def test_a_fault_that_nobody_can_see_any_more_is_not_fixed() -> None:
    case = swift()["findings"][-1]["case"]

    def leave(run: Run) -> None:
        run["findings"].pop()
        run["cases"][case] = "not applicable"

    made = changed(leave)
    assert made.fixed == ()
    assert [change.case for change in made.changed] == [case]


def test_cases_of_one_run_alone_are_listed() -> None:
    made = compare.compare(swift(), careful())
    assert {case.split(".")[0] for case in made.only_old} == {"OpenVINO"}
    assert made.only_new == {}
    assert [table.title for table in compare.tables(made)][-1] == "Only in swiftmax 2.1.0"
    back = compare.compare(careful(), swift())
    faults = sum(verdict in FAULTS for verdict in back.only_new.values())
    assert compare.summary(back).endswith(f"{len(back.only_new)} new, including {faults} faults")


def test_runs_of_one_runtime_stand_side_by_side() -> None:
    old, new, other = swift(), swifter(), careful()
    assert compare.pairs([old], [other, new]) == [(None, other), (old, new)]
    assert compare.pairs([old, other], [new]) == [(old, new), (other, None)]
    with pytest.raises(
        RunFileError, match=r"expected one run for each runtime, got swiftmax 2\.1\.0 and swiftmax 2\.2\.0"
    ):
        compare.pairs([old, new], [old])


def test_news_are_the_faults_that_the_baseline_does_not_have() -> None:
    new = compare.not_in_baseline(swifter(), swift())
    assert {finding["clause"] for finding in new} == {"ONNX.Max-8.value"}
    everything = compare.not_in_baseline(swift(), None)
    assert len(everything) == sum(verdict in FAULTS for verdict in swift()["cases"].values())
    assert all(finding["verdict"] != "permitted" for finding in everything)


def test_a_case_that_the_baseline_does_not_have_is_new() -> None:
    baseline = swift()
    finding = next(finding for finding in swift()["findings"] if finding["verdict"] == "crashes")
    del baseline["cases"][finding["case"]]
    assert compare.not_in_baseline(swift(), baseline) == [finding]


def test_a_known_fault_that_is_now_a_crash_is_new() -> None:
    run = swift()
    case = next(finding["case"] for finding in run["findings"] if finding["verdict"] == "violates")
    run["cases"][case] = found(run, case)["verdict"] = "crashes"
    assert [finding["case"] for finding in compare.not_in_baseline(run, swift())] == [case]
