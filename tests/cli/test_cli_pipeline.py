"""The command line in pipelines: many models, one finding per line, clauses, streams, and writable files."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from typer.testing import CliRunner

import maxops as mo
from command_output import HEAD, maxops, npy, save_onnx
from helpers import ir_models
from helpers.bits import assert_same_bits
from helpers.conformance_runs import careful, swift
from maxops import reference
from maxops.cli import arrays
from maxops.cli.app import COMMANDS, app
from maxops.cli.one_a_line import Line, show_lines
from maxops.conformance import saved

GOOD = "g (float[2,3] a, float[3] b) => (float[2,3] y) { y = Max(a, b) }"
BROKEN = (
    "g (float[2] a, float[3] b, float[n] c) => (float[p] y, float[q] z) { [top] y = Max(a, b)  [other] z = Max(a, c) }"
)
NONE = "g (float[2] a) => (float[2] y) { y = Abs(a) }"
SHAPE = "ONNX.Max-13.shape"
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with valid, invalid and other models, a subfolder with another model, and other files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m/below").mkdir(parents=True)
    (tmp_path / "m/.hidden").mkdir()
    save_onnx(tmp_path / "m/good.onnx", GOOD)
    save_onnx(tmp_path / "m/below/broken.onnx", BROKEN)
    save_onnx(tmp_path / "m/.hidden/broken.onnx", BROKEN)
    (tmp_path / "m/pom.xml").write_text("<project/>")
    ir_models.saved(tmp_path / "m", ir_models.segment_net("", (5,), count=True, out=(4,)))
    return tmp_path


# ------------------------------------------------------------------------------------------------------- check


def test_a_folder_is_all_models_in_it(models: Path) -> None:
    result = maxops("check", "m")
    assert (result.exit_code, result.stderr) == (1, "")
    lines = result.stdout.splitlines()
    where = "m/below/broken.onnx: graph / node"
    assert lines[-2:] == [
        f"{where} 'top' (Max): {SHAPE} axis -1 does not broadcast: 'a' (2,), 'b' (3,)",
        f"{where} 'other' (Max): {SHAPE} unknown: it is unknown whether axis -1 broadcasts: 'a' (2,), 'c' (n,)",
    ]
    assert {line.partition(":")[0] for line in lines[:-2]} == {"m/model.xml"}
    (models / "empty").mkdir()
    assert "the folder contains no .onnx files and no OpenVINO IRs" in maxops("check", "empty").stderr


def test_one_that_cannot_be_read_does_not_keep_others_from_being_judged(models: Path) -> None:
    (models / "bad.onnx").write_text("no model")
    result = maxops("check", "bad.onnx", "m/below", "--format", "github")
    assert result.exit_code == 2
    assert result.stderr == "maxops: error: bad.onnx is truncated or not an ONNX model\n"
    assert result.stdout.splitlines()[0] == (
        f"::error file=m/below/broken.onnx,title={SHAPE}::graph / node 'top' (Max): "
        "axis -1 does not broadcast: 'a' (2,), 'b' (3,)"
    )
    assert result.stdout.splitlines()[1].startswith("::notice file=")
    assert result.stdout.splitlines()[2].startswith("::error file=bad.onnx,title=unreadable::")
    document = json.loads(maxops("check", "bad.onnx", "m/good.onnx", "--format", "json").stdout)
    assert (document["passed"], document["broken"]) == (False, False)
    assert document["errors"] == ["bad.onnx is truncated or not an ONNX model"]
    assert [report["model"] for report in document["reports"]] == ["m/good.onnx"]
    tables = maxops("check", "bad.onnx", "m/good.onnx", "--format", "text")
    assert tables.stdout.splitlines()[-1] == "2 models: 1 passes, 1 cannot be read"
    alone = maxops("check", "bad.onnx", "--format", "json")
    assert (alone.exit_code, json.loads(alone.stdout)["errors"]) == (2, document["errors"])


def test_a_folder_that_holds_none_does_not_keep_others_from_being_judged(models: Path) -> None:
    (models / "dir.onnx").mkdir()
    (models / "m/dangling.onnx").symlink_to("nowhere")
    (models / "m/dangling.xml").symlink_to("nowhere")
    result = maxops("check", "dir.onnx", "m")
    assert result.exit_code == 2
    assert f"m/below/broken.onnx: graph / node 'top' (Max): {SHAPE} " in result.stdout
    assert result.stderr.splitlines() == [
        "maxops: error: dir.onnx: the folder contains no .onnx files and no OpenVINO IRs",
        "maxops: error: m/dangling.xml cannot be read: No such file or directory",
        "maxops: error: m/dangling.onnx cannot be read: No such file or directory",
    ]


# The capabilities with which root ignores permissions are dropped in this test.
@pytest.mark.skipif(not os.geteuid() and shutil.which("setpriv") is None, reason="root reads everything")
def test_what_must_not_be_read_does_not_keep_others_from_being_judged(models: Path) -> None:
    save_onnx(models / "locked.onnx", GOOD).chmod(0)
    (models / "m/locked").mkdir(0)
    (models / "closed").mkdir()
    save_onnx(models / "closed/m.onnx", GOOD).parent.chmod(0o600)
    command = [sys.executable, "-m", "maxops", "check", "locked.onnx", "closed/m.onnx", "m"]
    without = [] if os.geteuid() else ["setpriv", "--inh-caps=-all", "--bounding-set=-all"]
    result = subprocess.run([*without, *command], capture_output=True, text=True, check=False)
    assert f"m/below/broken.onnx: graph / node 'top' (Max): {SHAPE} " in result.stdout
    assert sorted(result.stderr.splitlines()) == [
        f"maxops: error: {name} cannot be read: Permission denied"
        for name in ("closed/m.onnx", "locked.onnx", "m/locked")
    ]


def test_sarif_of_many_models_is_one_run(models: Path) -> None:
    log = json.loads(maxops("check", "m/good.onnx", "m/below", "m/below/broken.onnx", "--format", "sarif").stdout)
    (run,) = log["runs"]
    assert [each["location"]["uri"] for each in run["artifacts"]] == ["m/good.onnx", "m/below/broken.onnx"]
    assert [run["tool"]["driver"]["rules"][each["ruleIndex"]]["id"] for each in run["results"]] == [SHAPE, SHAPE]


def test_names_and_messages_cannot_break_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("concise", "github"):
        show_lines([Line("a,b:c", "n\n::error::", "X.Y", "50%", is_fault=True)], form)
    assert capsys.readouterr().out.splitlines() == [
        "a,b:c: n\\n::error::: X.Y 50%",
        "::error file=a%2Cb%3Ac,title=X.Y::n\\n::error::: 50%25",
    ]


@pytest.mark.parametrize(
    ("words", "code", "lines"),
    [
        (["--select", SHAPE], 1, 2),
        (["--select", "onnx.max"], 1, 2),
        (["--select", "ONNX.Max.shape"], 1, 2),
        (["--select", "ONNX.Max-1"], 0, 0),
        (["--select", "SONNX"], 0, 0),
        (["--select", "*.T"], 0, 0),
        (["--ignore", "*.shape"], 0, 0),
        (["--ignore", "ONNX.Max-13.T,SONNX"], 1, 2),
        (["--ignore", "outside,SONNX.Max", "--standard", "sonnx"], 0, 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_findings_by_clause(words: list[str], code: int, lines: int, models: Path) -> None:
    result = maxops("check", "m/below/broken.onnx", *words)
    assert (result.exit_code, len(result.stdout.splitlines())) == (code, lines), result.output


def test_a_clause_that_there_is_not_is_an_error(models: Path) -> None:
    for option in ("--select", "--ignore"):
        result = maxops("check", "m", option, "ONNX.Max-13.shapes")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"'ONNX.Max-13.shapes'; similar ids are {SHAPE}" in result.stderr
        result = maxops("check", "m", option, "")
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"{option}: expected at least one clause, got an empty string" in result.stderr


def test_a_model_with_nothing_to_check_warns(models: Path) -> None:
    save_onnx(models / "none.onnx", NONE)
    for words in ([], ["--standard", "sonnx"]):
        result = maxops("check", "none.onnx", *words)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr == "maxops: warning: none.onnx: nothing was checked: the model has no max operators\n"
    assert "--select and --ignore exclude every clause" in maxops("check", "m/good.onnx", "--select", "SONNX").stderr
    assert maxops("check", "m/good.onnx", "--standard", "sonnx").stderr == ""


def test_outside_of_a_standard_is_a_line(models: Path) -> None:
    save_onnx(models / "r.onnx", "g (float[2] a) => (float[1] y) { [r] y = ReduceMax(a) }")
    result = maxops("check", "r.onnx", "--standard", "sonnx")
    assert (result.exit_code, result.stdout) == (
        1,
        "r.onnx: graph / node 'r' (ReduceMax): outside SONNX has no ReduceMax\n",
    )


def test_the_hook_runs_what_there_is() -> None:
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    hook = dict(re.findall(r"^(?:- |  )(\w+): (.*)$", text, re.MULTILINE))  # a flat list, which needs no YAML parser
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    program, command = hook["entry"].split()
    assert program in project["scripts"]
    assert command in COMMANDS
    (extra,) = re.findall(r"\.\[(\w+)\]", hook["additional_dependencies"])
    assert any(each.startswith("typer") for each in project["optional-dependencies"][extra])
    assert re.search(hook["files"], "models/a.onnx")


# ----------------------------------------------------------------------------------------------------- conform


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "known").mkdir()
    saved.write(tmp_path / "known/careful.json", [careful()])
    saved.write(tmp_path / "known/swift.json", [swift()])
    return tmp_path


def test_saved_runs_of_files_and_folders_are_a_fault_a_line(runs: Path) -> None:
    result = maxops("conform", "--from", "known")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    faults = [each for each in swift()["findings"] if each["verdict"] not in ("permitted", "not applicable")]
    of_swift = [line for line in lines if line.startswith("swiftmax")]
    assert len(of_swift) == len(faults)
    for line, finding in zip(of_swift, faults, strict=True):
        assert f": {finding['case']}: {finding['clause']} {finding['verdict']}: " in line
    assert [line for line in result.stderr.splitlines() if line.startswith("maxops: swiftmax")]
    assert maxops("conform", "--from", "known/careful.json", "known/swift.json").stdout == result.stdout
    assert maxops("conform", "--from", "known/swift.json", "--baseline", "known/swift.json").stdout == ""
    (runs / "none").mkdir()
    assert "the folder contains no .json files" in maxops("conform", "--from", "none").stderr


def test_a_run_by_clause(runs: Path) -> None:
    clauses = {each["clause"] for each in swift()["findings"]}
    result = maxops("conform", "--from", "known/swift.json", "--ignore", ",".join(clauses), "--junit", "run.xml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert 'failures="0"' in (runs / "run.xml").read_text()
    one = sorted(each["clause"] for each in swift()["findings"] if each["verdict"] == "violates")[0]
    lines = maxops("conform", "--from", "known/swift.json", "--select", one).stdout.splitlines()
    assert lines
    assert all(f" {one} " in line for line in lines)


def test_runs_through_a_pipe(runs: Path) -> None:
    text = (runs / "known/swift.json").read_bytes()
    for words in (["--json", "-"], ["--format", "json"]):
        assert maxops("conform", "--from", "-", *words, stdin=text).stdout.encode() == text
    page = maxops("conform", "--from", "known/swift.json", "--html", "-").stdout
    assert page.startswith("<!doctype html>")
    result = maxops("conform", "--from", "known/swift.json", "--junit", "-", "--html", "-")
    assert (result.exit_code, result.stdout) == (2, "")
    words = ["conform", "--from", "known/swift.json", "--json", "known/swift.json"]
    assert "is also an input; pass --overwrite" in maxops(*words).stderr
    assert "maxops: wrote known/swift.json" in maxops(*words, "--overwrite").stderr


# ------------------------------------------------------------------------------------------------------ arrays

X = np.array([1, -0.0, np.nan], np.float32)
IDS = np.array([2, 0, 2])


def loaded(data: bytes) -> Any:
    return np.load(io.BytesIO(data), allow_pickle=False)


def test_arrays_through_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "z.npy").write_bytes(npy(X[::-1]))
    result = maxops("maximum", "-", tmp_path / "z.npy", "-o", "-", stdin=npy(np.asfortranarray(X)))
    assert (result.exit_code, result.stderr) == (0, "")
    assert_same_bits(loaded(result.stdout_bytes), reference.maximum(X, X[::-1]))
    for words, said in (
        (["maximum", "-", "-"], "stdin can be read only once"),
        (["maximum", "-"], "stdin: expected a .npy file, but the file is empty"),
        (["segment-max", "-", "-", "--fill-mode", "ZERO"], "stdin can be read only once"),
    ):
        result = maxops(*words, stdin=b"")
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in result.stderr


def test_what_would_be_passed_over_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1.0]))
    for output in ("-", tmp_path / "y.npy"):
        result = maxops("maximum", tmp_path / "x.npy", "-o", output, "--format", "json")
        assert (result.exit_code, result.stdout) == (2, "")
        assert "--format: json has no effect with --output" in result.stderr


def test_truncated_stdin_is_refused() -> None:
    result = maxops("maximum", "-", stdin=npy(X)[:-1])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "stdin: the file is truncated" in result.stderr


def test_segment_max_has_the_options_of_the_function() -> None:
    """Test that the command has all options of the function, except `out`, `dim` (xarray) and `ties` (gradients)."""
    renamed = {"segment_ids": "ids"}
    expected = {renamed.get(name, name) for name in signature(mo.segment_max).parameters} - {"out", "dim", "ties"}
    assert expected <= set(signature(arrays.segment_max).parameters)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--fill-value", "nan"], {"fill_value": np.nan}),
        (["--initial", "-inf"], {"initial": -np.inf}),
        (["--initial", "2"], {"initial": 2}),
        (["--fill-mode", "lowest", "--num-segments", "2", "--out-of-range", "drop"], {
            "fill_mode": "LOWEST", "num_segments": 2, "out_of_range": "drop"}),
        (["--fill-mode", "ZERO", "--return-indices", "--return-empty"], {
            "fill_mode": "ZERO", "return_indices": True, "return_empty": True}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_segment_max(words: list[str], options: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(X))
    (tmp_path / "i.npy").write_bytes(npy(IDS))
    given = ["segment-max", tmp_path / "x.npy", tmp_path / "i.npy", "--unsorted", *words]
    result = maxops(*given, "-o", tmp_path / "m.npz")
    assert (result.exit_code, result.stderr) == (0, f"maxops: wrote {tmp_path / 'm.npz'}\n"), result.output
    expected = mo.segment_max(X, IDS, sorted=False, **options)
    expected = expected if isinstance(expected, tuple) else (expected,)
    with np.load(tmp_path / "m.npz", allow_pickle=False) as found:
        assert found.files == ["maxima", "indices", "empty"][: len(expected)]
        for name, array in zip(found.files, expected, strict=True):
            assert_same_bits(found[name], array)
    if len(expected) > 1:
        refused = maxops(*given, "-o", tmp_path / "m.npy")
        assert "can contain only one array, got maxima, indices, empty; use a .npz" in refused.stderr
        assert not (tmp_path / "m.npy").exists()


def test_segments_by_offsets_and_reduce_max_with_indices(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(X))
    (tmp_path / "o.npy").write_bytes(npy(np.array([0, 0, 3])))
    words = ["segment-max", tmp_path / "x.npy", "--offsets", tmp_path / "o.npy", "--initial", "-inf"]
    assert_same_bits(
        loaded(maxops(*words, "-o", "-").stdout_bytes), mo.segment_max(X, offsets=np.array([0, 0, 3]), initial=-np.inf)
    )
    result = maxops("reduce-max", tmp_path / "x.npy", "--initial", "5", "--return-indices", "--format", "json")
    maxima, indices = json.loads(result.stdout)["outputs"]
    assert (maxima["first_values"], maxima["first_bits"]) == (["nan"], ["7FC00000"])
    assert (indices["output"], indices["type"], indices["first_values"]) == ("indices", "int64", ["2"])
    assert "got 'x'" in maxops("reduce-max", tmp_path / "x.npy", "--initial", "x").stderr


def test_no_folder_is_made_unless_told(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(npy(X))
    words = ["maximum", tmp_path / "x.npy", "-o", tmp_path / "a/b/m.npy"]
    result = maxops(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"folder {tmp_path / 'a/b'} does not exist; pass --parents to create it" in result.stderr
    assert not (tmp_path / "a").exists()
    assert maxops(*words, "-p").exit_code == 0
    assert_same_bits(np.load(tmp_path / "a/b/m.npy"), reference.maximum(X))


# ------------------------------------------------------------------------------------------------------ models


def test_models_through_a_pipe(models: Path) -> None:
    data = (models / "m/below/broken.onnx").read_bytes()
    assert maxops("check", "-", stdin=data).stdout.startswith(f"stdin: graph / node 'top' (Max): {SHAPE} ")
    annotation = maxops("check", "-", "--format", "github", stdin=data).stdout
    assert annotation.startswith(f"::error title={SHAPE}::stdin: graph / node 'top' (Max): ")
    text = "g (float[3] x) => (float[3] y) { y = Max(x, x) }"
    moved = maxops("rewrite", "-", "-", stdin=parser.parse_model(HEAD + text).SerializeToString())
    assert moved.exit_code == 0
    (models / "x.npy").write_bytes(npy(X))
    result = maxops("run", "-", "--input", "x=x.npy", "--output", "-", stdin=moved.stdout_bytes)
    assert result.exit_code == 0, result.stderr
    assert_same_bits(loaded(result.stdout_bytes), reference.maximum(X))
    assert "stdin can be read only once" in maxops("run", "-", "--input", "x=-").stderr
    assert "stdin is truncated or not an ONNX model" in maxops("run", "-", stdin=b"x").stderr


@pytest.mark.parametrize(("output", "is_stdout"), [("/dev/stdout", True), ("out", True), ("other", False)])
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("rewrite m/good.onnx", b"1 Max node in"),
        ("evidence --csv", b"goals"),
        (f"bench --from {ROOT}/docs/speed.json --markdown", b"\nMax, by library"),
    ],
    ids=["rewrite", "evidence", "bench"],
)
def test_messages_if_stdout_is_the_output_file(
    output: str, is_stdout: bool, words: str, message: bytes, models: Path
) -> None:
    """Test that messages go to stderr if standard output is passed by its path, and are never lost."""
    with (models / "out").open("wb") as file:
        command = [sys.executable, "-m", "maxops", *words.split(), output]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=False)
    written = (models / ("out" if is_stdout else output)).read_bytes()
    if words.startswith("rewrite"):
        onnx.checker.check_model(written)
    assert (message in done.stderr) is is_stdout
    assert (message in (models / "out").read_bytes().removeprefix(written)) is not is_stdout


def test_results_if_stdout_is_a_file_of_the_output_folder(models: Path) -> None:
    with (models / "y.npy").open("wb") as file:
        command = [sys.executable, "-m", "maxops", "run", "m/good.onnx", "--seed", "1", "--output", "."]
        done = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, check=True)
    assert b"first values" in done.stderr
    assert np.load(models / "y.npy").shape == (2, 3)


def test_no_output_replaces_the_data_of_a_model(models: Path) -> None:
    model = parser.parse_model(HEAD + "g (float[3] a) => (float[3] y) { y = Max(a, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(X, "w"))
    onnx.save(model, "w.onnx", save_as_external_data=True, location="y.npy", size_threshold=0)
    (models / "m/model.bin").write_bytes(b"weights")
    before = {name: (models / name).read_bytes() for name in ("y.npy", "m/model.bin")}
    for words, output in (
        (["check", ".", "-o", "y.npy"], "y.npy"),
        (["check", "m", "w.onnx", "-o", "m/model.bin"], "m/model.bin"),
        (["run", "w.onnx", "--seed", 1, "-o", "."], "y.npy"),
    ):
        result = maxops(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        told = rf"maxops: error: {output} is also an input( \(\S+\))?; pass --overwrite"
        assert re.match(told, result.stderr), result.stderr
    assert {name: (models / name).read_bytes() for name in before} == before


def test_rewrite_replaces_its_model_only_if_told(models: Path) -> None:
    before = (models / "m/good.onnx").read_bytes()
    assert "m/good.onnx is also an input; pass --overwrite" in maxops("rewrite", "m/good.onnx", "m/good.onnx").stderr
    assert (models / "m/good.onnx").read_bytes() == before
    assert maxops("rewrite", "m/good.onnx", "m/good.onnx", "--overwrite").exit_code == 0
    assert (models / "m/good.onnx").read_bytes() != before
    assert "does not exist; pass --parents" in maxops("rewrite", "m/good.onnx", "new/m.onnx").stderr


# ----------------------------------------------------------------------------------------------- other commands


def test_help_is_short_too() -> None:
    for words in ([], ["check"], ["segment-max"]):
        short, long = maxops(*words, "-h"), maxops(*words, "--help")
        assert (short.exit_code, short.stdout) == (0, long.stdout)


def test_clause() -> None:
    shown = maxops("clause", SHAPE, "model").stdout
    assert shown == maxops("clause", f"{SHAPE},model").stdout
    for words in (f"{SHAPE}: multidirectional (NumPy-style) broadcasting", "ONNX Max-8, Summary",
                  "page:     https://onnx.ai/onnx/operators/onnx__Max.html#l-onnx-op-max-13",
                  "ONNX.Max-8.shape", "model: a model error"):  # fmt: skip
        assert words in shown
    documents = json.loads(maxops("clause", "SONNX.Max", "--format", "json").stdout)
    assert [each["id"] for each in documents] == [each.id for each in mo.operator("SONNX", "Max").clauses]
    result = maxops("clause", "ONNX.Max-13.shap")
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"similar ids are {SHAPE}" in result.stderr


def test_every_clause_can_be_explained() -> None:
    ids = [clause.id for operator in mo.operators() for clause in operator.clauses]
    documents = json.loads(maxops("clause", *ids, "--format", "json").stdout)
    assert [each["id"] for each in documents] == ids
    assert all(each["statement"] and each["source"] for each in documents)


def test_info(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAXOPS_TRIAL", "1")
    document = json.loads(maxops("info", "--format", "json").stdout)
    assert document["packages"]["numpy"] == np.__version__
    assert document["threads"]["in use"] == mo.get_num_threads()
    assert document["environment"]["MAXOPS_TRIAL"] == "1"
    text = maxops("info").stdout
    assert f"instruction set: {document['native core']['instruction set']}\n" in text
    assert "  MAXOPS_TRIAL: 1\n" in text


def test_json_of_tables() -> None:
    assert maxops("operators", "--format", "json").stdout == maxops("operators", "--json").stdout
    evidence = maxops("evidence", "--format", "json").stdout
    assert json.loads(evidence)["build"] == json.loads(maxops("evidence", "--json").stdout)["build"]
    assert maxops("evidence", "--csv", "-").stdout.startswith("id,text,source,")
    listed = json.loads(maxops("conform", "--list", "--only", "ONNX.Max-13.T/int8/two*", "--format", "json").stdout)
    assert listed == [{"case": "ONNX.Max-13.T/int8/two-short-vectors", "expects": "a result"}]
    cases = json.loads(maxops("bench", "Max", "--quick", "--list", "--format", "json").stdout)
    assert all(each["bytes_touched"] > 0 for each in cases)
    speed = ROOT / "docs/speed.json"
    assert maxops("bench", "--from", speed, "--format", "json").stdout == speed.read_text()


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [
        ("maxops cl", 1, "clause"),
        ("maxops clause SONNX.Max.C", 2, "SONNX.Max.C1"),
        ("maxops conform onnx-", 2, "onnx-reference"),
        ("maxops check m --select mod", 4, "model"),
        ("maxops check m --format json --format conc", 6, "concise"),
    ],
)
def test_shells_complete(words: str, number: int, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in {"_MAXOPS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(number)}.items():
        monkeypatch.setenv(name, text)
    result = CliRunner().invoke(app, [], prog_name="maxops")
    assert expected in result.stdout.split(), result.output


@pytest.mark.parametrize("words", ["TRUE", " true ", "False"])
def test_a_bool_may_be_spelled_in_any_case(words: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros(2, bool))
    result = maxops("reduce-max", tmp_path / "x.npy", "--initial", words, "-o", tmp_path / "m.npy")
    assert np.load(tmp_path / "m.npy").tolist() == [words.strip().lower() == "true"], result.output


def test_help_names_the_value_of_each_option() -> None:
    text = " ".join(maxops("segment-max", "--help").stdout.split()) + maxops("reduce-max", "--help").stdout
    spelled = {
        **{"--axes": "AXIS,...", "--axis": "AXIS", "--fill-mode": "MODE", "--num-segments": "N", "--offsets": "FILE"},
        **{"--fill-value": "VALUE", "--initial": "VALUE", "--out-of-range": "<error|drop>"},
    }
    assert [name for name, value in spelled.items() if not re.search(rf"{name} +{re.escape(value)} ", text)] == []


def test_a_terminal_gets_no_binary() -> None:
    """Test that a command writes no binary data to stdout if it is a terminal."""
    code = (
        "import sys\nfrom maxops.cli import streams\nfrom maxops.errors import OutputError\n"
        "sys.stdout.isatty = lambda: True\n"
        "try:\n    streams.write_stdout(b'x')\nexcept OutputError as error:\n    print(error, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr.startswith("stdout is a terminal")) == ("", True)
