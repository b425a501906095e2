"""Saved runs: files round-trip, and invalid files result in a one-line error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.conformance_runs import HOSTILE, careful, swift
from maxops.conformance import saved
from maxops.conformance.result import Run, elements
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
    return with_first("findings", **changes)


def with_first(part: str, **changes: Any) -> Any:
    run: Any = swift()
    return run | {part: [run[part][0] | changes, *run[part][1:]]}


INT8 = {"type": "int8", "shape": [1], "values": ["1"], "bits": ["01"]}


def with_actual(shape: list[int], values: list[str], bits: list[str], dtype: str = "int8") -> Any:
    return with_finding(actual={"type": dtype, "shape": shape, "values": values, "bits": bits})


def with_input(bits: str) -> Any:
    return with_first("reproducers", inputs={"a": INT8 | {"bits": [bits]}})


WRONG = {
    "bounds that are a number": (edited(kit={"bounds": 5}), "json: kit.bounds is 5; expected an object"),
    "bounds without fields": (edited(kit={"bounds": {"Max": {}}}), r"json: kit.bounds\['Max'\].elements is missing"),
    "a layout that is none": (
        edited(kit={"bounds": {"Max": {"elements": 1, "rank": 1, "inputs": 1, "layouts": ["x"]}}}),
        r"layouts\[0\] is \"x\"; expected one of contiguous",
    ),
    "repeats that are a text": (edited(kit={"repeats": "2"}), 'json: kit.repeats is "2"; expected an integer'),
    "a number": (7, "is not a run of maxops conform"),
    "an empty object": ({}, 'expected an object with "schema": 2'),
    "an empty list": ([], "is an empty list"),
    "another file's list": ([{"name": "x"}], "run 0 is not a run of maxops conform"),
    "the second of two": ([swift(), edited(schema=7)], "run 1 has schema 7, but this version of maxops reads schema 2"),
    "without cases": (without("cases"), "json: cases is missing"),
    "a runtime that is not a text": (edited(runtime=3), "json: runtime is 3; expected a string"),
    "seconds that are true": (edited(seconds=True), "seconds is true; expected a number"),
    "cases as a list": (edited(cases=[]), r"cases is \[\]; expected an object"),
    "findings as an object": (edited(findings={}), "findings is {}; expected a list"),
    "an unknown verdict": (
        edited(cases={"ONNX.Max-13.T/int8/x": "fine"}),
        'x\'] is "fine"; expected one of conforms, ',
    ),
    "a case without a type": (edited(cases={"ONNX.Max-13.T": "conforms"}), "is not a case id"),
    "a run of the first schema": (
        edited(schema=1),
        "has schema 1, but this version of maxops reads schema 2; run maxops conform again",
    ),
    "a clause without a standard": (edited(clauses={"value": "?"}), "'value' is not a clause id"),
    "a finding of an unnamed clause": (
        with_finding(clause="value"),
        r"findings\[0\].clause is 'value', which is not in clauses",
    ),
    "a finding without a message": (with_finding(message=None), r"findings\[0\].message is null; expected a string"),
    "a result of neither kind": (with_finding(actual={"a": 1}), r"findings\[0\].actual.text is missing"),
    "a reproducer past the end": (
        with_finding(reproducer=99),
        r"findings\[0\].reproducer is 99, but there are 4 reproducers",
    ),
    "bits of another shape": (
        with_finding(actual={"type": "int8", "shape": [2], "values": ["1"], "bits": ["01"]}),
        r"findings\[0\].actual has shape \[2\] with 1 values",
    ),
    "fewer values than bits": (with_actual([2], ["1"], ["01", "02"]), r"\[2\] with 1 values and 2 bits; expected 2 of"),
    "fewer bits than values": (with_actual([2], ["1", "2"], ["01"]), r"\[2\] with 2 values and 1 bits; expected 2 of"),
    "bits of nothing": (
        with_actual([0], [], ["01"]),
        r"\[0\] with 0 values and 1 bits; expected 0 of each, or no bits",
    ),
    "a size below 0": (with_actual([-1, 0], [], []), r"actual has shape \[-1, 0\]; sizes must not be negative"),
    "two sizes below 0": (with_actual([-1, -1], ["1"], ["01"]), r"shape \[-1, -1\]; sizes must not be negative"),
    "bits of an unknown type": (
        with_actual([1], ["1"], ["01"], "int7"),
        "has bits of the unknown type 'int7'",
    ),
    "bits of rationals": (with_actual([1], ["1"], ["01"], "real"), "has bits of the unknown type 'real'"),
    "bits in small letters": (with_actual([1], ["1"], ["ff"]), "has bits 'ff'; expected 2 digits from 0-9 and A-F"),
    "too few bits": (with_actual([2], ["1", "2"], ["01", "2"]), "has bits '2'; expected 2 digits from 0-9 and A-F"),
    "too many bits": (
        with_actual([1], ["1"], ["001"]),
        "has bits '001'; expected 2 digits from 0-9 and A-F for int8",
    ),
    "an input's bits": (with_input("xx"), r"json: reproducers\[0\].a has bits 'xx'; expected 2 digits from 0-9"),
    "a result of a reproducer": (
        with_first("reproducers", expected=INT8 | {"shape": [3]}),
        r"json: reproducers\[0\].expected has shape \[3\] with 1 values and 1 bits",
    ),
    "a reproducer before the first": (
        with_finding(reproducer=-1),
        r"findings\[0\].reproducer is -1, but there are 4 reproducers",
    ),
    "an index that is not one": (
        with_finding(index=[True]),
        r"json: findings\[0\].index is \[true\]; expected null",
    ),
    "a case that conforms, with a finding": (
        edited(cases=swift()["cases"] | {swift()["findings"][0]["case"]: "conforms"}),
        "'conforms', but findings has an entry for it",
    ),
    "a case that is not applicable, with a finding": (
        edited(cases=swift()["cases"] | {swift()["findings"][0]["case"]: "not applicable"}),
        "'not applicable', but findings has an entry for it",
    ),
    "another verdict in the finding": (with_finding(verdict="hangs"), "verdict is 'hangs', but cases has 'permitted'"),
    "a finding of no case": (edited(cases={}), r"findings\[0\].verdict is .*cases has 'no entry' for 'ONNX"),
    "a fault without its finding": (edited(findings=[]), "but findings has no entry for it"),
    "a finding twice": (
        edited(findings=[*swift()["findings"], swift()["findings"][0]]),
        "has several entries for one case",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_file_that_is_no_run_is_one_line(tmp_path: Path, name: str) -> None:
    path, (content, message) = tmp_path / "run.json", WRONG[name]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(RunFileError, match=message) as error:
        saved.read(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("array", [np.float32(1), np.zeros((0, 3)), np.ones((2, 2), bool), np.array([1], object)])
def test_arrays_of_every_shape_and_type_are_read(array: Any) -> None:
    run = with_finding(actual=elements(np.asarray(array)), index=[0], feed=2)
    assert saved.parse(saved.as_text([run]).encode(), "run.json") == [run]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not valid JSON: Expecting value"),
        (b"{", "is not valid JSON"),
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"[" * 100_000, "is not valid JSON"),
        (b'{"schema": NaN}', "NaN is not a JSON number"),
        (b'{"schema": -Infinity}', "-Infinity is not a JSON number"),
        (b'{"schema": 2, "seconds": 1e999}', "1e999 is too large"),
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
