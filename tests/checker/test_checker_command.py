"""`maxops check` for users and programs: tables, JSON, SARIF, and exit codes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, parser
from typer.testing import CliRunner

from helpers.ir_models import saved, segment_net
from maxops.checker import check
from maxops.checker.as_json import as_json, counts
from maxops.checker.sarif import as_sarif
from maxops.cli.app import app

HEAD = '<ir_version: 10, opset_import: ["": 18]> '
GOOD = "g (float[2,3] a, float[3] b) => (float[2,3] y) { y = Max(a, b) }"
BROKEN = """g (float[2] a, float[3] b, float[n] c) => (float[p] y, float[q] z) {
    [top] y = Max(a, b)  [other] z = Max(a, c)  [last] w = ReduceMax(a) }"""


def parsed(text: str) -> ModelProto:
    return parser.parse_model(HEAD + text)


def written(folder: Path, text: str) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(parsed(text).SerializeToString())
    return path


def run(*words: object) -> Any:
    return CliRunner().invoke(app, ["check", *map(str, words)])


def tables(*words: object) -> Any:
    """Run a command and return its output as on a terminal."""
    return run(*words, "--format", "text")


def lines(output: str) -> list[str]:
    return [re.sub(r"\s*[│┃]\s*", "|", line).strip("|") for line in output.splitlines()]


def test_a_model_that_holds_is_one_line(tmp_path: Path) -> None:
    result = tables(written(tmp_path, GOOD))
    assert (result.exit_code, result.stderr) == (0, "")
    (line,) = result.stdout.splitlines()
    assert line.endswith(
        "1 max node, 1 checked against its own standard: 3 clauses hold, 0 are broken, "
        "0 cannot be known statically, 2 are known only at run time"
    )


def test_what_is_broken_and_open_is_told_in_words(tmp_path: Path) -> None:
    result = tables(written(tmp_path, BROKEN))
    assert (result.exit_code, result.stderr) == (1, "")
    text = lines(result.stdout)
    assert "ONNX Max-13|2|1|0|2|graph / node 'top' (Max)" in text
    shape = "ONNX.Max-13.shape|multidirectional (NumPy-style) broadcasting"
    assert f"broken|{shape}|axis -1 does not broadcast: 'a' (2,), 'b' (3,)|graph / node 'top' (Max)" in text
    assert (
        f"unknown|{shape}|it is unknown whether axis -1 broadcasts: 'a' (2,), 'c' (n,)|graph / node 'other' (Max)"
        in text
    )
    assert not any("'last'" in line or "|value|" in line for line in text)
    everything = lines(tables(written(tmp_path, BROKEN), "--all").stdout)
    assert any(line.startswith("holds|ONNX.ReduceMax-18.keepdims|") for line in everything)
    assert any(
        line.startswith("at run time only|ONNX.Max-13.value|") and line.endswith("and 1 more") for line in everything
    )


def test_five_hundred_nodes_stay_readable(tmp_path: Path) -> None:
    body = " ".join(f"y{number} = Max(a, a)" for number in range(500))
    result = tables(written(tmp_path, f"g (float[2] a) => (float[2] y0) {{ {body} }}"))
    assert (result.exit_code, len(result.stdout.splitlines())) == (0, 1)
    strict = tables(written(tmp_path, f"g (float[n] a) => (float[n] y0) {{ {body} }}"), "--standard", "sonnx")
    assert strict.exit_code == 1
    text = lines(strict.stdout)
    assert any("SONNX.Max.static" in line and line.endswith("and 499 more") for line in text)
    types = [line for line in text if "SONNX.Max.GR2" in line]
    assert (len(types), len(text) < 30) == (11, True)
    assert types[-1].split("|")[3] == "and 489 more; show them with --all"
    everything = tables(
        written(tmp_path, f"g (float[n] a) => (float[n] y0) {{ {body} }}"), "--standard", "sonnx", "--all"
    )
    assert sum("SONNX.Max.GR2" in line for line in everything.stdout.splitlines()) > 499


def test_outside_of_a_standard(tmp_path: Path) -> None:
    path = written(tmp_path, "g (float[2] a) => (float[1] y) { [r] y = ReduceMax(a) }")
    assert run(path).exit_code == 0
    result = tables(path, "--standard", "sonnx")
    assert (result.exit_code, result.stderr) == (1, "")
    assert "nothing: SONNX has no ReduceMax|0|0|0|0|graph / node 'r' (ReduceMax)" in lines(result.stdout)
    assert result.stdout.splitlines()[-1] == "1 max node is not covered by SONNX, so the model does not pass"


def test_an_ir_and_a_folder(tmp_path: Path) -> None:
    assert run(saved(tmp_path, segment_net('fill_mode="zero"', (5,), count=True, out=(4,)))).exit_code == 0
    assert run(saved(tmp_path, segment_net("", (5,), count=True, out=(4,)))).exit_code == 1
    assert run(tmp_path).exit_code == 1
    (tmp_path / "onnx").mkdir()
    written(tmp_path / "onnx", GOOD)
    assert run(tmp_path / "onnx").exit_code == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["nowhere.onnx"], "nowhere.onnx cannot be read: No such file"),
        (["nowhere.xml"], "nowhere.xml cannot be read: No such file"),
        (["nowhere.onnx", "--standard", "iso"], "--standard"),
        (["nowhere.onnx", "--format", "xml"], "--format"),
        ([], "MODELS"),
    ],
)
def test_bad_use_is_one_line_and_2(words: list[str], text: str) -> None:
    result = run(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert text in result.stderr


@pytest.mark.parametrize("form", ["text", "concise", "github", "json", "sarif"])
def test_a_report_in_a_file(form: str, tmp_path: Path) -> None:
    path = written(tmp_path, BROKEN)
    shown = run(path, "--format", form)
    result = run(path, "--format", form, "--output", tmp_path / "report")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"maxops: wrote {tmp_path / 'report'}\n"
    assert (tmp_path / "report").read_text() == shown.stdout
    failed = run(path, "--format", form, "--output", tmp_path / "no" / "report")
    assert failed.exit_code == 2
    assert "does not exist; pass --parents" in failed.stderr
    assert run(path, "--format", form, "--output", tmp_path / "no" / "report", "--parents").exit_code == 1
    assert (tmp_path / "no" / "report").read_text() == shown.stdout
    assert "is also an input; pass --overwrite" in run(path, "--output", path).stderr


# -------------------------------------------------------------------------------------------------------- JSON


def test_json(tmp_path: Path) -> None:
    result = run(written(tmp_path, BROKEN), "--format", "json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    (text,) = document["reports"]
    assert (document["format"], document["passed"], document["broken"], document["errors"]) == (3, False, True, [])
    assert (text["standard"], text["passed"], text["broken"]) == (None, False, True)
    assert text["counts"] == {"nodes": 3, "outside": 0, "holds": 13, "broken": 1, "unknown": 1, "at_run_time": 6}
    assert [node["judged_by"] for node in text["nodes"]] == ["ONNX Max-13", "ONNX Max-13", "ONNX ReduceMax-18"]
    (broken,) = [each for node in text["nodes"] for each in node["findings"] if each["verdict"] == "broken"]
    assert broken == {
        "where": "graph / node 'top' (Max)",
        "clause": "ONNX.Max-13.shape",
        "verdict": "broken",
        "message": "axis -1 does not broadcast: 'a' (2,), 'b' (3,)",
        "at_run_time": False,
    }
    assert document["clauses"]["ONNX.Max-13.shape"]["source"] == "ONNX Max-8, Summary"


def test_counts_are_of_every_finding() -> None:
    report = check(parsed(BROKEN))
    counted = counts(report)
    assert sum(counted[kind] for kind in ("holds", "broken", "unknown", "at_run_time")) == len(report.findings)
    assert as_json([report])["reports"][0]["counts"] == counted


# ------------------------------------------------------------------------------------------------------- SARIF

# The objects of SARIF 2.1.0 that are used here: their required properties and their allowed properties.
OBJECTS: dict[str, tuple[set[str], set[str]]] = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "artifacts", "invocations"}),
    "invocation": ({"executionSuccessful"}, {"toolExecutionNotifications"}),
    "notification": ({"message"}, {"level"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": ({"id"}, {"shortDescription", "help"}),
    "result": (
        {"message"},
        {"ruleId", "ruleIndex", "kind", "level", "locations", "partialFingerprints"},
    ),
    "location": (set(), {"physicalLocation", "logicalLocations"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "logicalLocation": (set(), {"name", "fullyQualifiedName"}),
}


def assert_object(kind: str, given: dict[str, Any]) -> None:
    required, allowed = OBJECTS[kind]
    assert required <= set(given) <= required | allowed, kind


def assert_sarif(log: dict[str, Any]) -> None:
    assert_object("log", log)
    assert log["version"] == "2.1.0"
    (made,) = log["runs"]
    assert_object("run", made)
    assert_object("tool", made["tool"])
    assert_object("driver", made["tool"]["driver"])
    (invocation,) = made["invocations"]
    assert_object("invocation", invocation)
    for notification in invocation.get("toolExecutionNotifications", []):
        assert_object("notification", notification)
        assert set(notification["message"]) == {"text"}
    rules = made["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert_object("rule", rule)
        assert set(rule["shortDescription"]) == set(rule["help"]) == {"text"}
    fingerprints = set()
    for result in made["results"]:
        assert_object("result", result)
        assert set(result["message"]) == {"text"}
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["kind"] in ("pass", "open", "informational", "notApplicable", "review", "fail")
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["kind"] == "fail" or result["level"] == "none", "3.27.10"
        (location,) = result["locations"]
        assert_object("location", location)
        assert_object("physicalLocation", location["physicalLocation"])
        assert re.fullmatch(r"[\w.~%:/-]+", location["physicalLocation"]["artifactLocation"]["uri"])
        assert location["physicalLocation"]["region"] == {"startLine": 1}
        for logical in location["logicalLocations"]:
            assert_object("logicalLocation", logical)
            assert logical["fullyQualifiedName"].endswith(logical["name"])
        fingerprints.add((result["ruleId"], result["partialFingerprints"]["primaryLocationLineHash"]))
    assert len(fingerprints) == len(made["results"])


def test_sarif(tmp_path: Path) -> None:
    result = run(written(tmp_path, BROKEN), "--format", "sarif")
    assert result.exit_code == 1
    log = json.loads(result.stdout)
    assert_sarif(log)
    (broken, left_open) = log["runs"][0]["results"]
    assert (broken["ruleId"], broken["kind"], broken["level"]) == ("ONNX.Max-13.shape", "fail", "error")
    assert (left_open["ruleId"], left_open["kind"], left_open["level"]) == ("ONNX.Max-13.shape", "open", "none")
    assert broken["message"]["text"].startswith("graph / node 'top' (Max): axis -1 does not broadcast")
    assert broken["locations"][0]["logicalLocations"][0]["name"] == "node 'top' (Max)"


def test_sarif_of_a_model_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_text("no model")
    result = run(tmp_path / "bad.onnx", "--format", "sarif")
    assert result.exit_code == 2
    log = json.loads(result.stdout)
    assert_sarif(log)
    (invocation,) = log["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["message"]["text"] == f"{tmp_path / 'bad.onnx'} is truncated or not an ONNX model"


def test_sarif_of_everything() -> None:
    report = check(parsed(BROKEN), "sonnx")
    log = as_sarif([report], "1", everything=True)
    assert_sarif(log)
    kinds = [result["kind"] for result in log["runs"][0]["results"]]
    assert len(kinds) == len(report.findings) + len(report.outside)
    assert set(kinds) == {"fail", "open", "pass"}
    outside = [result for result in log["runs"][0]["results"] if result["ruleId"] == "outside"]
    assert [(result["kind"], result["level"]) for result in outside] == [("fail", "warning")]


@pytest.mark.parametrize("everything", [False, True])
@pytest.mark.parametrize("standard", [None, "sonnx"])
def test_nodes_of_one_name_have_fingerprints_of_their_own(standard: str | None, everything: bool) -> None:
    branch = "() => (float[2] {0}) {{ [twin] {0} = Max(a, b)  [twin] {0}r = ReduceMax(a) }}"
    text = f"""g (bool c, float[2] a, float[3] b) => (float[2] y) {{
        [twin] p = Max(a, b)  [twin] q = Max(a, b)  [twin] r = ReduceMax(a)  [twin] s = ReduceMax(a)
        [if] y = If(c) <then_branch = t {branch.format("t")}, else_branch = e {branch.format("e")}> }}"""
    report = check(parsed(text), standard)
    log = as_sarif([report], "1", everything=everything)
    assert_sarif(log)  # results must be unique
    names = [result["locations"][0]["logicalLocations"][0]["name"] for result in log["runs"][0]["results"]]
    assert names.count("node 'twin' (Max)") > 3
    assert as_sarif([report], "1", everything=everything) == log


def test_a_wrong_sarif_is_noticed() -> None:
    log = as_sarif([check(parsed(BROKEN))], "1")
    log["runs"][0]["results"][1]["level"] = "note"
    with pytest.raises(AssertionError, match="3\\.27\\.10"):
        assert_sarif(log)


def test_the_path_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    path = written(folder, BROKEN)
    monkeypatch.chdir(tmp_path)
    for given, uri in (
        (path, "a%20folder/model.onnx"),
        ("a folder/model.onnx", "a%20folder/model.onnx"),
        (os.path.relpath(path), "a%20folder/model.onnx"),
    ):
        assert as_sarif([check(given)], "1")["runs"][0]["artifacts"] == [{"location": {"uri": uri}}]
    monkeypatch.setattr(Path, "cwd", lambda: Path("/nowhere"))
    assert as_sarif([check(path)], "1")["runs"][0]["artifacts"][0]["location"]["uri"] == path.as_uri()


def test_the_path_of_the_model_if_the_current_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, BROKEN)
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert as_sarif([check(path)], "1")["runs"][0]["artifacts"][0]["location"]["uri"] == path.as_uri()
