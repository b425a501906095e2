"""Invalid options of `maxops conform`: a one-line error, and nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from helpers.conformance_runs import careful, swift
from maxops.cli.app import app
from maxops.conformance import saved
from maxops.conformance.result import Run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["numpy", "--json", "."], ". cannot be written: it is a folder"),
        (["numpy", "--html", "nowhere/page.html"], "nowhere/page.html: folder nowhere does not exist"),
        (["numpy", "--from", "run.json"], "--from expects files or folders, but 'numpy' does not exist"),
        (["--from", "run.json", "--quick"], "--quick has no effect with --from"),
        (["--from", "run.json", "--only", "value"], "--only has no effect with --from"),
        (["--list", "--json", "run.json"], "--json has no effect with --list"),
        (["--save", "folder", "--html", "page.html"], "--html has no effect with --save"),
        (["--list", "--select", "SONNX"], "--select has no effect with --list"),
        (["--save", "folder", "--ignore", "SONNX"], "--ignore has no effect with --save"),
        (["--list", "--baseline", "known.json"], "--baseline has no effect with --list"),
        (["--list", "numpy"], "RUNTIME has no effect with --list"),
        (["--list", "--timeout", "1"], "--timeout has no effect with --list"),
        (["--list", "--save", "folder"], "--list has no effect with --save"),
        (["--save", "folder", "--format", "json"], "--format has no effect with --save"),
        (["--from", "run.json", "--timeout", "1"], "--timeout has no effect with --from"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_would_be_passed_over_is_refused(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["conform", *words])
    assert result.exit_code == 2
    assert said in result.stderr
    assert not list(tmp_path.iterdir())


def compared(folder: Path, old: list[Run], *words: str) -> Result:
    saved.write(folder / "new.json", [swift()])
    saved.write(folder / "old.json", old)
    given = ["conform", "--from", str(folder / "new.json"), "--compare", str(folder / "old.json"), *words]
    return CliRunner().invoke(app, given)


def test_a_comparison_with_a_file_of_another_runtime_is_told(tmp_path: Path) -> None:
    result = compared(tmp_path, [careful()])
    assert "the --compare file contains no run of swiftmax, so this runtime is not compared" in result.stderr


def test_a_comparison_is_of_the_selected_clauses_of_both(tmp_path: Path) -> None:
    result = compared(tmp_path, [swift()], "--select", "ONNX.Max-13")
    assert "0 new faults; 0 fixed; 0 changed; " in result.stdout
    assert "; 0 only before; 0 new, " in result.stdout


@pytest.mark.parametrize("option", ["--compare", "--baseline"])
@pytest.mark.parametrize("twice", ["old.json", "--from"])
def test_the_file_with_several_runs_of_a_runtime_is_named(
    option: str, twice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved.write(Path("old.json"), [swift()] * (2 if twice == "old.json" else 1))
    saved.write(Path("new.json"), [swift()] * (2 if twice == "--from" else 1))
    result = CliRunner().invoke(app, ["conform", "--from", "new.json", option, "old.json"])
    assert result.exit_code == 2
    text = f"maxops: error: {twice}: expected one run for each runtime, got swiftmax 2.1.0 and swiftmax 2.1.0"
    assert result.stderr.startswith(text)


def test_clauses_of_findings_are_named_if_none_is_selected(tmp_path: Path) -> None:
    run = swift()
    finding = next(each for each in run["findings"] if each["case"].startswith(f"{each['clause']}/"))
    clause = finding["clause"]
    run["cases"] = {finding["case"]: finding["verdict"]}
    run["findings"] = [finding | {"clause": "ONNX.Max-13.T"}]
    run["clauses"] = {"ONNX.Max-13.T": "the type"}
    saved.write(tmp_path / "run.json", [run])
    words = ["conform", "--from", str(tmp_path / "run.json"), "--select", clause]
    result = CliRunner().invoke(app, words)
    assert "exclude every case; the runs have cases for ONNX.Max-13.T" in result.stderr
