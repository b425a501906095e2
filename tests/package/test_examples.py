"""The examples run as their README describes, are reproducible, and are small."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from helpers.bits import assert_same_bits
from maxops import reference
from maxops.cli.app import app
from maxops.cli.files import read_npy
from maxops.onnx import load
from maxops.onnx.suite import data_set_folders, read_data_set

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
CONFORM = EXAMPLES / "conform"
CONFORM_PAGE = (ROOT / "docs" / "integrations" / "conform.md").read_text(encoding="utf-8")
MADE = ("detector", "composite")
SCENES = {name: EXAMPLES / "composite" / f"{name}.npy" for name in ("april", "may", "june")}


def made_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for name in MADE
        for path in (folder / name).rglob("*")
        if path.is_file() and path.suffix != ".md"
    }


def test_make_makes_what_is_there(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLES / "make.py"), "--into", str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
    fresh, there = made_files(tmp_path), made_files(EXAMPLES)
    assert sorted(fresh) == sorted(there)
    assert [name for name in fresh if fresh[name] != there[name]] == []
    assert sum(map(len, there.values())) < 300_000


def test_commands_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (EXAMPLES / "README.md").read_text()
    block = re.search(r"```\n(.*?)```", text, re.DOTALL)
    assert block is not None
    commands = block[1].replace("\\\n", " ").replace("--output composite", f"--output {tmp_path}").splitlines()
    assert len(commands) == 2
    monkeypatch.chdir(ROOT)
    for command in commands:
        program, *arguments = shlex.split(command)
        assert program == "maxops"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, command
        assert all(line.startswith("maxops: wrote ") for line in result.stderr.splitlines()), result.stderr
    for path in (EXAMPLES / "composite" / "expected").iterdir():
        assert_same_bits(np.load(tmp_path / path.name), np.load(path))


def test_detector_agrees_with_its_data() -> None:
    result = CliRunner().invoke(app, ["run", str(EXAMPLES / "detector")])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "4 of 4 outputs agree bit for bit" in result.stdout


def test_detector_finds_what_was_put_there() -> None:
    loaded = load(EXAMPLES / "detector" / "model.onnx")
    data = read_data_set(data_set_folders(EXAMPLES / "detector")[0], loaded)
    results = loaded.run(data.inputs)
    assert set(np.argsort(results["class_scores"][0])[-3:].tolist()) == {1, 2, 16}
    assert int((results["confidence_stride32"] == 4.5).sum()) == 4


def test_one_changed_bit_of_the_detector_is_noticed(tmp_path: Path) -> None:
    for path in (EXAMPLES / "detector").rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(EXAMPLES / "detector")
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(path.read_bytes())
    expected = tmp_path / "test_data_set_0" / "output_3.pb"
    tensor = onnx.TensorProto.FromString(expected.read_bytes())
    tensor.raw_data = tensor.raw_data[:-4] + bytes([tensor.raw_data[-4] ^ 1]) + tensor.raw_data[-3:]
    expected.write_bytes(tensor.SerializeToString())
    result = CliRunner().invoke(app, ["run", str(tmp_path)])
    assert (result.exit_code, result.stderr) == (1, "")
    assert "1 of 80 elements differ; first at (0, 79)" in result.stdout


def test_composite_keeps_both_kinds_of_missing() -> None:
    scenes = {name: read_npy(path) for name, path in SCENES.items()}
    results = load(EXAMPLES / "composite" / "model.onnx").run(scenes)
    composite = results["composite"]
    assert_same_bits(composite, reference.maximum(*scenes.values()))
    stacked = np.stack(list(scenes.values()))
    np.testing.assert_array_equal(np.isnan(composite), np.isnan(stacked).any(axis=0))
    np.testing.assert_array_equal(np.isneginf(composite), np.isneginf(stacked).all(axis=0))
    assert np.isneginf(composite).any()
    assert np.isfinite(composite[0]).all(), "april missed its first pixels, and the others saw them"
    assert np.isnan(results["greenest"])


@pytest.mark.parametrize("order", [("april", "may", "june"), ("june", "april", "may"), ("may", "june", "april")])
def test_composite_does_not_depend_on_the_order(order: tuple[str, ...]) -> None:
    loaded = load(EXAMPLES / "composite" / "model.onnx")
    names = [declared.name for declared in loaded.inputs]
    shuffled = {name: read_npy(SCENES[scene]) for name, scene in zip(names, order, strict=True)}
    assert_same_bits(loaded.run(shuffled)["composite"], np.load(EXAMPLES / "composite" / "expected" / "composite.npy"))


# ------------------------------------------------------------------------------------------------- conformance


@pytest.mark.parametrize("name", ["mybackend.py", "runfolder.py"])
def test_the_page_shows_the_runtimes_as_they_are(name: str) -> None:
    assert f"```python\n{(CONFORM / name).read_text(encoding='utf-8')}```\n" in CONFORM_PAGE


def test_the_backend_gets_wrong_what_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFORM)
    command = re.search(r"cd examples/conform && maxops (.*)\n", CONFORM_PAGE)
    shown = re.search(r"```text\n(.*?)```", CONFORM_PAGE, re.DOTALL)
    assert command is not None
    assert shown is not None
    result = CliRunner().invoke(app, [*shlex.split(command[1]), "--format", "text"])  # as on a terminal
    assert (result.exit_code, result.stderr) == (1, "")
    finding, counts = (" ".join(line.split()) for line in shown[1].splitlines())
    said = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert any(finding in line for line in said)
    # the zero in NumPy's maximum depends on the machine, and with it the number of permitted cases
    expected, actual = (re.sub(r"\d+ (conform|permitted)", "", line) for line in (counts, said[-1]))
    assert actual == expected


def test_the_script_of_the_page_shows_the_finding_beside_the_module(tmp_path: Path) -> None:
    block = re.search(r"```\n(# mybackend 0\.1.*?)```", CONFORM_PAGE, re.DOTALL)
    assert block is not None
    for path in (tmp_path / "reproducer.py", tmp_path / "mybackend.py"):
        path.write_text(block[1] if path.stem == "reproducer" else (CONFORM / path.name).read_text())
    ran = subprocess.run([sys.executable, "reproducer.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    expected, actual = ran.stdout.splitlines()
    assert expected == "expected uint64 [18446744073709551615] ['FFFFFFFFFFFFFFFF']"
    assert actual == "actual   uint64 [16777216] ['0000000001000000']"


@pytest.mark.exhaustive  # test_conformance_third_party.py has faster programs
def test_the_program_is_a_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CONFORM)
    program = [sys.executable, "runfolder.py"]
    result = CliRunner().invoke(
        app,
        [
            "conform",
            f"command:{shlex.join(program)}",
            "--only",
            "ONNX.Max-13.T/int8/two-short-vectors",
            "--format",
            "text",
        ],
    )
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[-1].endswith("ONNX: 1 case: 1 conform")


def test_the_program_refuses_what_it_does_not_read(tmp_path: Path) -> None:
    program = [sys.executable, str(CONFORM / "runfolder.py"), str(tmp_path)]
    refused = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (1, "ONNX models only\n")
