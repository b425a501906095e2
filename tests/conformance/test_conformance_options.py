"""Invalid options of `maxops conform`: a one-line error, and nothing runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.conformance_runs import careful, swift
from maxops.cli.app import app
from maxops.conformance import saved
from maxops.conformance.matrix import matrix


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


def test_a_baseline_of_another_runtime_is_told(tmp_path: Path) -> None:
    saved.write(tmp_path / "new.json", [swift()])
    saved.write(tmp_path / "known.json", [careful()])
    given = ["conform", "--from", str(tmp_path / "new.json"), "--baseline", str(tmp_path / "known.json")]
    result = CliRunner().invoke(app, [*given, "--format", "text"])
    assert result.exit_code == 1
    assert "the baseline has no run of swiftmax, so all faults of swiftmax are new" in result.stderr
    assert matrix([swift()]).title in result.stdout
