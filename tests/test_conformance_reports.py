"""What is made from runs, the page aside: files, tables, JUnit XML, comparisons."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree

from conformance_runs import careful, found, swift, swifter
from maxops import spec
from maxops.conformance import compare, junit, matrix, saved
from maxops.conformance.groups import groups
from maxops.conformance.named import case_name, clause_name, row
from maxops.conformance.result import FAULTS, VERDICTS, Elements, Run, Told
from maxops.conformance.wording import MEANS, OF_MANY, WORST_FIRST, against, told
from maxops.errors import OutputError, RunFileError

HOSTILE = "</script><img src=x onerror=alert(1)>\x1b[2J\x00\ud800]]>"


def test_every_verdict_has_its_words() -> None:
    assert sorted(WORST_FIRST) == sorted(VERDICTS) == sorted(OF_MANY) == sorted(MEANS)


# ------------------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("each", spec.ALL, ids=lambda each: f"{each.standard}-{each.name}")
def test_the_id_of_every_clause_is_read_back(each: spec.Spec) -> None:
    for short, _ in each.rules:
        assert clause_name(each.clause(short)) == (each.standard, each.operator, each.version, short)


@pytest.mark.parametrize("name", ["", "ONNX", "ONNX.Max-13", "ONNX/Max.value"])
def test_what_names_no_clause_is_an_error(name: str) -> None:
    with pytest.raises(RunFileError, match="is no id of a clause"):
        clause_name(name)


def test_what_names_no_case_is_an_error() -> None:
    with pytest.raises(RunFileError, match=r"'ONNX\.Max-13.value/int8' is no id of a case"):
        case_name("ONNX.Max-13.value/int8")


# ------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("runs", [[swift()], [swift(), careful()]], ids=["one", "two"])
def test_what_is_written_is_read(tmp_path: Path, runs: list[Run]) -> None:
    path = tmp_path / "run.json"
    saved.write(path, runs)
    assert saved.read(path) == runs
    before = path.read_bytes()
    saved.write(path, saved.read(path))
    assert path.read_bytes() == before


def test_foreign_words_survive_the_file(tmp_path: Path) -> None:
    run = swift()
    run["version"] = HOSTILE
    saved.write(tmp_path / "run.json", [run])
    assert saved.read(tmp_path / "run.json")[0]["version"] == HOSTILE


def edited(**changes: Any) -> Any:
    return swift() | changes


def without(name: str) -> Any:
    return {key: value for key, value in swift().items() if key != name}


def with_finding(**changes: Any) -> Any:
    run = swift()
    return edited(findings=[run["findings"][0] | changes, *run["findings"][1:]])


def result(values: list[int], shape: list[int] | None = None) -> Elements:
    texts = [str(value) for value in values]
    return {"type": "int8", "shape": shape or [len(values)], "values": texts, "bits": [f"{v:02X}" for v in values]}


WRONG = {
    "a number": (7, "is no run of maxops conform"),
    "an empty object": ({}, 'wanted an object with "schema": 1'),
    "an empty list": ([], "is an empty list"),
    "another file's list": ([{"name": "x"}], "run 0: is no run of maxops conform"),
    "the second of two": ([swift(), edited(schema=7)], "run 1: has schema 7, this maxops reads 1"),
    "without cases": (without("cases"), "cases is missing"),
    "a runtime that is no text": (edited(runtime=3), "runtime is 3; wanted a text"),
    "seconds that are true": (edited(seconds=True), "seconds is true; wanted a number"),
    "cases as a list": (edited(cases=[]), r"cases is \[\]; wanted an object"),
    "findings as an object": (edited(findings={}), "findings is {}; wanted a list"),
    "an unknown verdict": (edited(cases={"ONNX.Max-13.T/int8/x": "fine"}), 'x\'] is "fine"; wanted one of conforms, '),
    "a case without a type": (edited(cases={"ONNX.Max-13.T": "conforms"}), "is no id of a case"),
    "a clause without a standard": (with_finding(clause="value"), "'value' is no id of a clause"),
    "a finding without why": (with_finding(why=None), r"findings\[0\].why is null; wanted a text"),
    "a result of neither kind": (with_finding(got={"a": 1}), r"findings\[0\].got.text is missing"),
    "a reproducer past the end": (with_finding(reproducer=99), r"findings\[0\].reproducer is 99, there are 4"),
    "bits of another shape": (with_finding(got=result([1], [2])), r"findings\[0\].got has shape \[2\] with 1 values"),
    "another verdict in the finding": (with_finding(verdict="hangs"), "hangs, cases says permitted"),
    "a finding of no case": (edited(cases={}), r"findings\[0\] says 'ONNX.*cases says nothing of it"),
    "a fault without its finding": (edited(findings=[]), "and findings has not one of it"),
    "a finding twice": (edited(findings=[*swift()["findings"], swift()["findings"][0]]), "has a case twice"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_run_is_one_line(tmp_path: Path, name: str) -> None:
    path, (content, message) = tmp_path / "run.json", WRONG[name]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunFileError, match=message) as error:
        saved.read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no JSON: Expecting value"),
        (b"{", "is no JSON"),
        (b"\xff\xfe", "byte 0 is no UTF-8"),
        (b"[" * 100_000, "is no JSON"),
        (b'{"schema": NaN}', "NaN is no number of JSON"),
    ],
)
def test_what_is_no_json_is_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=message):
        saved.read(path)


def test_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(RunFileError, match="No such file"):
        saved.read(tmp_path / "none.json")
    with pytest.raises(OutputError, match="cannot be written"):
        saved.write(tmp_path, [swift()])
    with pytest.raises(OutputError, match="cannot be written"):
        junit.write(tmp_path, [swift()])


# ------------------------------------------------------------------------------------------------ tables


def test_the_matrix_has_each_clause_once_and_loses_no_case() -> None:
    runs = [swift(), careful()]
    table = matrix.matrix(runs)
    assert table.columns[-2:] == ("swiftmax 2.1.0", "carefulmax 0.9")
    assert len({each[:3] for each in table.rows}) == len(table.rows)
    for column, run in enumerate(runs, 4):
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
    assert ("ONNX", "Max", "later", "", "conforms 1") in matrix.matrix([run]).rows


def test_findings_of_one_call_are_one_row() -> None:
    table = matrix.findings([swift()])
    assert sum(int(each[4]) for each in table.rows) == len(swift()["findings"])
    zeros = [each for each in table.rows if each[2] == "SONNX.Max.value"]
    assert [each[1:] for each in zeros] == [
        ("violates", "SONNX.Max.value", "float16", "3", "float32[1] 0.0 (00000000) -> float32[1] -0.0 (80000000)")
    ]
    places = [list[str](WORST_FIRST).index(each[1]) for each in table.rows]
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


TEXT: Told = {"text": "an error\n  of two lines"}


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (TEXT, "an error of two lines"),
        ({"type": "int8", "shape": [0, 2], "values": [], "bits": []}, "int8[0,2], empty"),
        ({"type": "real", "shape": [], "values": ["1/3"], "bits": []}, "real 1/3"),
        (result([1, 2, 3, 4, 5]), "int8[5] 1, 2, 3, 4, ... (01, 02, 03, 04, ...)"),
    ],
)
def test_a_result_in_a_line(one: Elements | Told, text: str) -> None:
    assert told(one) == text


def test_of_a_long_array_the_element_that_differs_is_shown() -> None:
    assert against(result([1, 2, 3, 4, 5]), result([1, 2, 3, 4, 6])) == "int8[5], element 4: 5 (05) -> 6 (06)"
    assert against(result([1, 2, 3, 4, 5]), TEXT) == f"{told(result([1, 2, 3, 4, 5]))} -> an error of two lines"


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


def test_a_failure_says_what_was_wanted_and_how_to_see_it(tmp_path: Path) -> None:
    root = parsed(tmp_path / "junit.xml", [swift()])
    test = next(test for test in root.iter("testcase") if test.get("name").startswith("SONNX.Max.value/float16/"))
    assert test.get("classname") == "SONNX.Max"
    failure = test.find("failure")
    assert failure.get("type") == "violates"
    assert failure.get("message").startswith("violates SONNX.Max.value: Inf > positive > 0")
    assert "wanted: float16[1] 0.0 (0000)\ngot:    float16[1] -0.0 (8000)" in failure.text
    assert "import swiftmax" in failure.text
    skipped = next(test for test in root.iter("testcase") if "/real/" in test.get("name")).find("skipped")
    assert skipped.get("message") == "has no type real"


def test_foreign_words_break_no_xml(tmp_path: Path) -> None:
    run = swift()
    run["runtime"] = HOSTILE
    for finding in run["findings"]:
        finding["why"] = finding["says"] = HOSTILE
        finding["got"] = {"text": HOSTILE}
    root = parsed(tmp_path / "junit.xml", [run])
    assert root[0].get("name").startswith("</script><img src=x onerror=alert(1)>\\x1b[2J\\x00\\ud800]]>")


# -------------------------------------------------------------------------------------------- comparisons


def test_a_run_against_itself_has_nothing_new() -> None:
    same = compare.compare(swift(), swift())
    assert (same.new_faults, same.fixed, same.changed) == ((), (), ())
    assert same.unchanged == len(swift()["cases"])
    assert compare.tables(same) == []
    assert compare.news(swift(), swift()) == []


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
            if "text" in finding["got"]:
                finding["got"] = {"text": "other words at 0x7fff"}
            elif finding["verdict"] == "leaks":
                finding["got"] = {**finding["got"], "bits": ["12345678"]}

    def bits(run: Run) -> None:
        for finding in run["findings"]:
            if finding["verdict"] == "violates" and "text" not in finding["got"]:
                finding["got"] = {**finding["got"], "bits": ["1" for _ in finding["got"]["bits"]]}

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
    assert compare.summary(back).endswith(f"{len(back.only_new)} only now, {faults} of them faults")


def test_runs_of_one_runtime_stand_side_by_side() -> None:
    old, new, other = swift(), swifter(), careful()
    assert compare.pairs([old], [other, new]) == [(None, other), (old, new)]
    assert compare.pairs([old, other], [new]) == [(old, new), (other, None)]
    with pytest.raises(RunFileError, match=r"swiftmax 2\.2\.0 and swiftmax 2\.1\.0 are two runs of one runtime"):
        compare.pairs([old, new], [old])


def test_news_are_the_faults_that_the_baseline_does_not_have() -> None:
    new = compare.news(swifter(), swift())
    assert {finding["clause"] for finding in new} == {"ONNX.Max-8.value"}
    everything = compare.news(swift(), None)
    assert len(everything) == sum(verdict in FAULTS for verdict in swift()["cases"].values())
    assert all(finding["verdict"] != "permitted" for finding in everything)


def test_a_case_that_the_baseline_does_not_have_is_new() -> None:
    baseline = swift()
    finding = next(finding for finding in swift()["findings"] if finding["verdict"] == "crashes")
    del baseline["cases"][finding["case"]]
    assert compare.news(swift(), baseline) == [finding]


def test_a_known_fault_that_is_now_a_crash_is_new() -> None:
    run = swift()
    case = next(finding["case"] for finding in run["findings"] if finding["verdict"] == "violates")
    run["cases"][case] = found(run, case)["verdict"] = "crashes"
    assert [finding["case"] for finding in compare.news(run, swift())] == [case]
