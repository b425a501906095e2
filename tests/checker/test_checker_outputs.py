"""Every pair of verdicts of the checker, for one model and for two, in every output format."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import maxops.checker
from maxops import spec
from maxops.checker.as_json import as_json
from maxops.checker.report import Finding, JudgedNode, Report
from maxops.checker.sarif import as_sarif
from maxops.cli.app import app
from maxops.errors import ModelError

ROW = next(row for row in spec.ALL if row.name == "Max-13")
SHAPE, VALUE = ROW.clause("shape"), ROW.clause("value")
# A finding of a clause or of the model, or a node for which a standard has no rules.
ITEMS = ("holds", "broken", "unknown", "at run time", "broken model", "unknown model", "outside")
# Findings that fail a check; a node without rules fails it only if a standard is selected.
FAILS = ("broken", "broken model")
SARIF = {
    "holds": ("pass", "none"),
    "broken": ("fail", "error"),
    "unknown": ("open", "none"),
    "at run time": ("open", "none"),
    "broken model": ("fail", "error"),
    "unknown model": ("open", "none"),
}
ALWAYS_TOLD = ("broken", "unknown", "broken model", "unknown model")


def _report(source: str, items: Sequence[str], standard: str | None) -> Report:
    faults: list[Finding] = []
    nodes: list[JudgedNode] = []
    for number, item in enumerate(items):
        where = f"graph / node {number}"
        if item.endswith(" model"):
            faults.append(Finding(where, "model", item.removesuffix(" model"), f"so it is {item}"))  # type: ignore[arg-type]
        elif item == "outside":
            nodes.append(JudgedNode(where, "Max", None, "no rules for it", ()))
        else:
            at_run_time = item == "at run time"
            clause = VALUE if at_run_time else SHAPE
            verdict: Any = "unknown" if at_run_time else item
            finding = Finding(where, clause, verdict, f"so it is {item}", at_run_time)
            nodes.append(JudgedNode(where, "Max", ROW, "", (finding,)))
    return Report(source, standard, tuple(faults), tuple(nodes))


def _fails(items: Sequence[str], standard: str | None) -> bool:
    return any(item in FAILS or (item == "outside" and standard is not None) for item in items)


def _check(
    reports: dict[str, Report | str], folder: Path, monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str]:
    """Run the command on models with these reports, or errors with these texts. Return the exit code and stdout."""

    def given(path: Path, standard: str | None) -> Report:
        found = reports[path.name]
        if isinstance(found, str):
            raise ModelError(found)
        return found

    monkeypatch.setattr(maxops.checker, "check", given)
    for name in reports:
        (folder / name).write_bytes(b"")
    result = CliRunner().invoke(app, ["check", *(str(folder / name) for name in reports), *words])
    return result.exit_code, result.stdout


SETS = [*product(ITEMS), *product(ITEMS, ITEMS), ()]


@pytest.mark.parametrize("standard", [None, "SONNX"])
def test_one_model(standard: str | None) -> None:
    for items in SETS:
        report = _report("m", items, standard)
        assert report.passed is not _fails(items, standard)
        assert report.broken is any(item in FAILS for item in items)
        count = Counter(items)
        (message,) = as_json([report])["reports"]
        assert message["counts"] == {
            "nodes": sum(not item.endswith("model") for item in items),
            "outside": count["outside"],
            "holds": count["holds"],
            "broken": count["broken"] + count["broken model"],
            "unknown": count["unknown"] + count["unknown model"],
            "at_run_time": count["at run time"],
        }
        assert (message["passed"], message["broken"]) == (report.passed, report.broken)
        assert [each["message"] for each in message["faults"]] == [
            f"so it is {each}" for each in items if each.endswith("model")
        ]
        for node, item in zip(message["nodes"], [each for each in items if not each.endswith("model")], strict=True):
            assert node["judged_by"] == (None if item == "outside" else "ONNX Max-13")
            assert node["note"] == ("no rules for it" if item == "outside" else "")
            verdicts = [(each["verdict"], each["at_run_time"]) for each in node["findings"]]
            expected = {"outside": [], "at run time": [("unknown", True)]}.get(item, [(item, False)])
            assert verdicts == expected


@pytest.mark.parametrize("everything", [True, False])
@pytest.mark.parametrize("standard", [None, "SONNX"])
def test_results_of_sarif(standard: str | None, everything: bool) -> None:
    for items in SETS:
        (run,) = as_sarif([_report("m", items, standard)], "1", everything=everything)["runs"]
        found = Counter((each["ruleId"], each["kind"], each["level"]) for each in run["results"])
        expected: Counter[tuple[str, str, str]] = Counter()
        for item in items:
            if item == "outside":
                if everything or standard is not None:
                    expected["outside", *(("fail", "warning") if standard else ("notApplicable", "none"))] += 1
            elif everything or item in ALWAYS_TOLD:
                rule = "model" if item.endswith("model") else VALUE if item == "at run time" else SHAPE
                expected[rule, *SARIF[item]] += 1
        assert found == expected
        rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
        assert [rules[each["ruleIndex"]] for each in run["results"]] == [each["ruleId"] for each in run["results"]]
        assert run["invocations"] == [{"executionSuccessful": True}]


@pytest.mark.parametrize("first", range(len(ITEMS)), ids=[*ITEMS])
def test_two_models_and_one_that_cannot_be_read(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that the worst outcome of two models determines the exit code, and that JSON and SARIF agree with it."""
    for number, second in enumerate((*ITEMS, "unreadable")):
        standard = None if (first + number) % 2 else "SONNX"
        pair = {"a.onnx": [*ITEMS][first], "b.onnx": second}
        reports: dict[str, Report | str] = {
            name: "no model" if item == "unreadable" else _report(str(tmp_path / name), (item,), standard)
            for name, item in pair.items()
        }
        is_failed = any(_fails((item,), standard) for item in pair.values())
        expected = 2 if second == "unreadable" else 1 if is_failed else 0
        code, text = _check(reports, tmp_path, monkeypatch, "--format", "json")
        message = json.loads(text)
        assert code == expected
        assert message["passed"] is (expected == 0)
        assert message["broken"] is any(item in FAILS for item in pair.values())
        assert message["errors"] == ["no model"] * (second == "unreadable")
        assert [each["passed"] for each in message["reports"]] == [
            not _fails((item,), standard) for item in pair.values() if item != "unreadable"
        ]
        if second not in ("broken", "unknown", "outside", "unreadable"):
            continue
        code, text = _check(reports, tmp_path, monkeypatch, "--format", "concise")
        assert code == expected
        lines = [f"{tmp_path / name}: graph / node 0: " for name, item in pair.items() if _is_told(item, standard)]
        assert len(text.splitlines()) == len(lines)
        assert all(line.startswith(head) for line, head in zip(text.splitlines(), lines, strict=True))
        if second not in ("broken", "unreadable"):
            continue
        code, text = _check(reports, tmp_path, monkeypatch, "--format", "github")
        levels = [
            ("error" if _fails((item,), standard) else "notice") for item in pair.values() if _is_told(item, standard)
        ]
        levels += ["error"] * (second == "unreadable")
        assert [line.split(" ")[0] for line in text.splitlines()] == [f"::{level}" for level in levels]
        code, text = _check(reports, tmp_path, monkeypatch, "--format", "sarif")
        (invocation,) = json.loads(text)["runs"][0]["invocations"]
        assert invocation["executionSuccessful"] is (second != "unreadable")
        code, text = _check(reports, tmp_path, monkeypatch, "--format", "text")
        passed = sum(not _fails((item,), standard) for item in pair.values() if item != "unreadable")
        unread = ", 1 cannot be read" if second == "unreadable" else ""
        assert text.splitlines()[-1] == f"2 models: {passed} pass{'es' if passed == 1 else ''}{unread}"


def _is_told(item: str, standard: str | None) -> bool:
    return item in ALWAYS_TOLD or (item == "outside" and standard is not None)


@pytest.mark.parametrize("kept", [SHAPE, VALUE, "model", "outside", "nothing"])
def test_what_is_restricted_is_judged_alone(kept: str) -> None:
    for items in SETS:
        rule = {"at run time": VALUE, "outside": "outside", "broken model": "model", "unknown model": "model"}
        report = _report("m", items, "SONNX").restricted(lambda clause: clause == kept)
        left = [item for item in items if rule.get(item, SHAPE) == kept]
        assert report.passed is not _fails(left, "SONNX")
        assert len(report.findings) + len(report.outside) == len(left)
