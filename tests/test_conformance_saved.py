"""Runs in files: what is written is read, and what is no run is one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance_runs import HOSTILE, careful, swift
from maxops.conformance import saved
from maxops.conformance.result import Run
from maxops.errors import OutputError, RunFileError


@pytest.mark.parametrize("runs", [[swift()], [swift(), careful()]], ids=["one", "two"])
def test_what_is_written_is_read(tmp_path: Path, runs: list[Run]) -> None:
    path = tmp_path / "run.json"
    saved.write(path, runs)
    assert saved.read(path) == runs
    before = path.read_bytes()
    saved.write(path, saved.read(path))
    assert path.read_bytes() == before


def test_a_file_has_a_line_for_each_case_and_each_finding(tmp_path: Path) -> None:
    run = swift()
    saved.write(tmp_path / "run.json", [run])
    lines = (tmp_path / "run.json").read_text().splitlines()
    assert sum(line.startswith('{"case":') for line in lines) == len(run["findings"])
    assert len(lines) < len(run["cases"]) + len(run["clauses"]) + len(run["findings"]) + len(run["reasons"]) + 40


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


WRONG = {
    "a number": (7, "is not a run of maxops conform"),
    "an empty object": ({}, 'expected an object with "schema": 2'),
    "an empty list": ([], "is an empty list"),
    "another file's list": ([{"name": "x"}], "run 0: is not a run of maxops conform"),
    "the second of two": ([swift(), edited(schema=7)], "run 1: has schema 7, this maxops reads 2"),
    "without cases": (without("cases"), "cases is missing"),
    "a runtime that is not a text": (edited(runtime=3), "runtime is 3; expected a text"),
    "seconds that are true": (edited(seconds=True), "seconds is true; expected a number"),
    "cases as a list": (edited(cases=[]), r"cases is \[\]; expected an object"),
    "findings as an object": (edited(findings={}), "findings is {}; expected a list"),
    "an unknown verdict": (
        edited(cases={"ONNX.Max-13.T/int8/x": "fine"}),
        'x\'] is "fine"; expected one of conforms, ',
    ),
    "a case without a type": (edited(cases={"ONNX.Max-13.T": "conforms"}), "is not an id of a case"),
    "a run of the first schema": (edited(schema=1), "has schema 1, this maxops reads 2; run maxops conform again"),
    "a clause without a standard": (edited(clauses={"value": "?"}), "'value' is not an id of a clause"),
    "a finding of an unnamed clause": (with_finding(clause="value"), r"findings\[0\].clause is 'value', which clauses"),
    "a finding without a message": (with_finding(message=None), r"findings\[0\].message is null; expected a text"),
    "a result of neither kind": (with_finding(actual={"a": 1}), r"findings\[0\].actual.text is missing"),
    "a reproducer past the end": (with_finding(reproducer=99), r"findings\[0\].reproducer is 99, there are 4"),
    "bits of another shape": (
        with_finding(actual={"type": "int8", "shape": [2], "values": ["1"], "bits": ["01"]}),
        r"findings\[0\].actual has shape \[2\] with 1 values",
    ),
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
        (b"", "is not JSON: Expecting value"),
        (b"{", "is not JSON"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "is not JSON"),
        (b'{"schema": NaN}', "NaN is not a JSON number"),
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
