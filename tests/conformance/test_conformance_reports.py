"""Reports of runs, except the page: files, tables, JUnit XML, and comparisons."""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from helpers.conformance_runs import HOSTILE, careful, swift, swifter
from maxops import spec
from maxops.conformance import compare, junit, matrix
from maxops.conformance.ids import case_name, clause_name, row
from maxops.conformance.result import Elements, Message, Run
from maxops.conformance.wording import BY_SEVERITY, expected_to_actual, one_line
from maxops.errors import OutputError, RunFileError

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


def test_each_runtime_is_a_suite_with_its_time(tmp_path: Path) -> None:
    root = parsed(tmp_path / "junit.xml", [swift(), careful()])
    assert (root.tag, root.get("time")) == ("testsuites", "25.0")
    assert [(suite.get("name"), suite.get("time")) for suite in root] == [
        ("swiftmax 2.1.0", "12.5"), ("carefulmax 0.9", "12.5"),
    ]  # fmt: skip


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
    run["kit"]["bounds"] = {HOSTILE: {"elements": 1, "rank": 1, "inputs": 1, "layouts": [HOSTILE]}}
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


def test_runs_of_one_runtime_stand_side_by_side() -> None:
    old, new, other = swift(), swifter(), careful()
    assert compare.pairs([old], [other, new]) == [(None, other), (old, new)]
    assert compare.pairs([old, other], [new]) == [(old, new), (other, None)]
    with pytest.raises(
        RunFileError, match=r"expected one run for each runtime, got swiftmax 2\.1\.0 and swiftmax 2\.2\.0"
    ):
        compare.pairs([old, new], [old])
