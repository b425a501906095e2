"""`maxops conform`: its output, its files, its exit codes, and its one-line errors."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from junitparser import JUnitXml
from typer.testing import CliRunner, Result

from helpers.all_cases import ALL
from maxops.cli.app import app

HERE = Path(__file__).parent
SHORT = ["--only", "*Max-13.T/int*/two-short-vectors,*Max.T/int*/two-short-vectors"]
ONE_STANDARD = ["--only", "*Max-13.T/int8/two-short-vectors,*Max-13.T/int64/two-short-vectors"]


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(HERE)
    monkeypatch.setattr("maxops.conformance.cases.cases", lambda: ALL)
    monkeypatch.syspath_prepend(str(HERE))


def conform(*arguments: object) -> Result:
    """Run the command, with tables as on a terminal, except with `--save`, which prints none."""
    form = [] if "--save" in arguments else ["--format", "text"]
    return CliRunner().invoke(app, ["conform", *map(str, arguments), *form])


def fails(*arguments: object) -> str:
    """Return the one-line error of a command that must exit with 2."""
    result = conform(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stderr.startswith("maxops: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_a_runtime_that_conforms(tmp_path: Path) -> None:
    result = conform("own_backend.Right", *SHORT, "--json", tmp_path / "run.json")
    assert (result.exit_code, result.stderr) == (0, f"maxops: wrote {tmp_path / 'run.json'}\n"), result.output
    assert "own_backend.Right: ONNX: 4 cases: 4 conform; SONNX: 4 cases: 4 conform" in result.stdout
    run = json.loads((tmp_path / "run.json").read_text())
    assert run["runtime"] == "own_backend.Right"
    assert run["findings"] == run["reproducers"] == run["notes"] == []
    assert run["kit"]["only"] == [SHORT[1]]
    assert run["machine"]["cpu"]


def test_a_runtime_that_does_not_and_every_report(tmp_path: Path) -> None:
    files = {kind: tmp_path / f"run.{kind}" for kind in ("json", "junit", "html")}
    result = conform(
        "own_backend.Ends", *ONE_STANDARD, *(x for kind, file in files.items() for x in (f"--{kind}", file))
    )
    assert result.exit_code == 1, result.output
    assert re.search(r"crashes +│ .*int8", result.stdout), result.stdout
    assert "1 conform, 1 crash" in result.stdout
    assert json.loads(files["json"].read_text())["findings"][0]["verdict"] == "crashes"
    suite = JUnitXml.fromfile(str(files["junit"]))
    assert (suite.tests, suite.failures) == (2, 1)
    assert "SIGSEGV" in files["html"].read_text()


def test_a_baseline_lets_known_faults_pass_and_a_comparison_shows_what_changed(tmp_path: Path) -> None:
    known, now = tmp_path / "known.json", tmp_path / "now.json"
    assert conform("own_backend.SometimesNone", *ONE_STANDARD, "--json", known).exit_code == 1
    assert conform("--from", known, "--baseline", known).exit_code == 0
    assert conform("--from", known).exit_code == 1
    assert conform("own_backend.Right", *ONE_STANDARD, "--json", now).exit_code == 0
    renamed = json.loads(known.read_text()) | {"runtime": "own_backend.Right", "version": "0"}
    (tmp_path / "old.json").write_text(json.dumps(renamed))
    result = conform("--from", now, "--compare", tmp_path / "old.json")
    assert result.exit_code == 0
    assert "Fixed" in result.stdout
    assert "0 new faults; 1 fixed" in result.stdout
    result = conform("--from", tmp_path / "old.json", "--baseline", now)
    assert result.exit_code == 1
    assert "not in the baseline: ONNX.Max-13.T/int8/two-short-vectors: violates" in result.stdout


def test_several_runtimes_are_one_file_and_one_that_cannot_run_is_told(tmp_path: Path) -> None:
    file = tmp_path / "runs.json"
    result = conform("own_backend.Right", "own_backend.GivesTwo", "numpy", *SHORT, "--json", file)
    assert result.exit_code == 2
    assert result.stderr == (
        f"maxops: wrote {file}\nmaxops: error: own_backend.GivesTwo: run returned 2 outputs; the model has 1; "
        "expected one NumPy array for each output\n"
    )
    assert [run["runtime"] for run in json.loads(file.read_text())] == ["own_backend.Right", "numpy"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nosuch"], "unknown runtime 'nosuch'; choose maxops, all, "),
        (["/tmp"], "/tmp is a folder, not a runtime"),
        (["broken_imports.raises"], "broken_imports.raises cannot be imported: "),
        (["command:true"], "the program ended with status 0, but did not write test_data_set_0/output_0.pb"),
        (["numpy", "--only", "nosuchcase"], "no case matches 'nosuchcase'; closest matches: "),
        (["numpy", "--json", "/nowhere/run.json"], "folder /nowhere does not exist"),
        (["numpy", "--baseline", __file__], "is not valid JSON"),
        (["numpy", "--compare", "/nowhere.json"], "cannot be read"),
        (["--from", "/nowhere.json"], "cannot be read"),
        (["numpy", "--timeout", "0"], "'--timeout'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(arguments: list[str], text: str) -> None:
    known = [] if {"--only", "--from"} & {*arguments} else SHORT
    assert text in fails(*arguments, *known)


def test_without_a_runtime_it_says_which_there_are() -> None:
    result = conform()
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"numpy +│ yes", result.stdout)
    listed = CliRunner().invoke(app, ["conform", "--format", "json"])
    assert listed.exit_code == 0
    assert {"runtime": "numpy", "installed": True} in json.loads(listed.stdout)
    asked = conform("--quick")
    assert asked.exit_code == 2
    assert asked.stdout == result.stdout
    assert asked.stderr == "maxops: error: no runtime specified; pass names from this list, maxops, or all\n"


def test_cases_are_listed() -> None:
    result = conform("--list", *SHORT)
    assert result.exit_code == 0
    assert "ONNX.Max-13.T/int16/two-short-vectors" in result.stdout
    assert "12 cases" in result.stdout
    some = ["--list", "--only", "*Max-13*/int8/*"]
    assert len(conform(*some, "--quick").stdout) < len(conform(*some).stdout)


def test_cases_are_saved(tmp_path: Path) -> None:
    folder = tmp_path / "cases"
    assert "does not exist; pass --parents" in fails("--save", folder, "--only", "ONNX.Max-13.T/int8/two*")
    folder.mkdir()
    result = conform("--save", folder, "--only", "ONNX.Max-13.T/int8/two*,SONNX.Max.T/real/two*")
    assert result.exit_code == 0, result.output
    assert "1 case was not written: ONNX has no type for real numbers" in result.stdout
    (case,) = folder.iterdir()
    assert (case / "model.onnx").exists()
    assert "1 of 1 outputs agree bit for bit" in CliRunner().invoke(app, ["run", str(case)]).stdout
    assert "already exists" in fails("--save", folder, "--only", "ONNX.Max-13.T/int8/two*")


def workers_of(parent: int) -> list[int]:
    """Return the process ids of the runtimes that a command has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:  # the process has already ended
            continue
        if any(b"maxops.conformance.worker" in each for each in arguments) and str(parent).encode() in arguments:
            found.append(int(path.parent.name))
    return found


def test_ctrl_c_ends_everything() -> None:
    here = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    code = f"{here}; from maxops.cli import main; main()"
    command = [sys.executable, "-c", code, "conform", "numpy"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not workers_of(process.pid):
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)  # until the command is running cases
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=30)
    assert (process.returncode, message) == (130, "maxops: interrupted\n")
    assert workers_of(process.pid) == []
