"""`maxops run` on inputs drawn by a seed, and beside another runtime, bit by bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from typer.testing import CliRunner, Result

from command_output import save_onnx
from helpers.bits import assert_same_bits
from maxops import dtypes, reference
from maxops.cli import random_inputs
from maxops.cli.app import app
from maxops.model import Value

MODEL = "g (float[n] x, int64[n] i, float[n, m] r) => (float[n] y, int64[n] j) { y = Max(x, x) j = Max(i, i) }"
BACKEND = """
import os, signal
import numpy as np
class Prepared:
    def __init__(self, count, kind):
        self.count, self.kind = count, kind
    def run(self, inputs):
        if self.kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.kind == "refuse":
            raise ValueError("not\\ntoday")
        outputs = [np.array(inputs[0]), np.array(inputs[1])]
        if self.kind == "zero":
            outputs[1][2] += 1
        return outputs[: 1 if self.kind == "few" else 2]
class Same:
    kind = "same"
    @classmethod
    def prepare(cls, model, device="CPU"):
        return Prepared(len(model.graph.output), cls.kind)
class Crash(Same): kind = "crash"
class Refuse(Same): kind = "refuse"
class Zero(Same): kind = "zero"
class Few(Same): kind = "few"
"""
PROGRAM = """
import pathlib, sys, onnx
folder = pathlib.Path(sys.argv[-1])
for number in (0, 1):
    tensor = onnx.load_tensor(folder / f"test_data_set_0/input_{number}.pb")
    onnx.save_tensor(tensor, folder / f"test_data_set_0/output_{number}.pb")
"""


def run(*words: object) -> Result:
    return CliRunner().invoke(app, ["run", *map(str, words)])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    save_onnx(tmp_path / "m.onnx", MODEL)
    (tmp_path / "trial_backend.py").write_text(BACKEND)
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def test_a_seed_draws_the_same(place: Path) -> None:
    first, again, other = (run("m.onnx", "--seed", seed) for seed in (1, 1, 2))
    assert first.exit_code == 0
    assert first.stdout == again.stdout != other.stdout
    x = np.array([1, 2, 3, 4], np.float32)
    np.save(place / "x.npy", x)
    assert run("m.onnx", "--seed", 1, "-i", "x=x.npy", "-o", ".").exit_code == 0
    assert_same_bits(np.load("y.npy"), x)
    document = json.loads(first_json := run("m.onnx", "--seed", 1, "--format", "json").stdout)
    drawn = document["runs"][0]["outputs"][1]["first_values"]
    assert drawn == [str(each) for each in np.load("j.npy")], first_json
    assert json.loads(run("m.onnx", "--seed", 1, "--size", "n=7", "--format", "json").stdout)["runs"][0]["outputs"][0][
        "shape"
    ] == [7]


@pytest.mark.parametrize("dtype", [row for row in dtypes.ALL if row is not dtypes.REAL], ids=str)
def test_every_type_is_drawn_whole(dtype: dtypes.DType) -> None:
    drawn = random_inputs.draw(Value("x", dtype, (1000, "n")), 3, {"n": 2}, "m", special=True)
    assert (drawn.dtype, drawn.shape) == (dtype.numpy, (1000, 2))
    if dtype.kind == "float":
        numbers = drawn.astype(np.float64)
        zeros = numbers[numbers == 0]
        assert np.isnan(numbers).any()
        assert np.isposinf(numbers).any()
        assert {*np.signbit(zeros)} == {True, False}
        plain = random_inputs.draw(Value("x", dtype, (1000, 2)), 3, {}, "m", special=False)
        assert np.isfinite(plain.astype(np.float64)).all()
    elif dtype is not dtypes.BOOL:
        magnitudes = {int(abs(int(each))).bit_length() for each in drawn.ravel()}
        assert len(magnitudes) >= dtype.bits - 1
    else:
        assert {*drawn.ravel().tolist()} == {True, False}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--size", "n=3"], "--size: has no effect without --seed"),
        (["--special-values"], "--special-values: has no effect without --seed"),
        (
            ["--seed", "1", "--size", "k=3"],
            "--size k=3: no input that is drawn has an axis of that name; there are n, m",
        ),
        (["--seed", "1", "--size", "n"], "'n' is not a name and a size"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "1", "--against", "numpy"], "'numpy' is given operators, not models; models are for onnxruntime, "),
        (["--seed", "1", "--against", "onnxruntim"], "near it: onnxruntime"),
        (
            ["--seed", "1", "--against", "maxops"],
            "'maxops' stands for several runtimes; one takes a model: onnxruntime, ",
        ),
        (["--seed", "1", "--output", "-"], "stdout: takes one array, and there are 2"),
        ([], "give each as --input NAME=FILE, or --seed N draws them"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_one_line(words: list[str], said: str, place: Path) -> None:
    result = run("m.onnx", *words)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert said in result.stderr


def test_open_sizes_are_those_of_the_inputs_that_are_given(place: Path) -> None:
    x = np.arange(7, dtype=np.float32)
    np.save("x.npy", x)
    result = run("m.onnx", "--seed", 1, "-i", "x=x.npy", "-o", ".")
    assert result.exit_code == 0, result.output
    assert_same_bits(np.load("y.npy"), x)
    assert np.load("j.npy").shape == (7,)
    wrong = run("m.onnx", "--seed", 1, "-i", "x=x.npy", "--size", "n=3")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "on inputs drawn by --seed 1" in wrong.stderr


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="a shell makes pipes with names there")
def test_models_and_inputs_of_pipes(place: Path) -> None:
    np.save("x.npy", np.arange(3, dtype=np.float32))
    maxops = f"{sys.executable} -m maxops"
    command = (
        f"{maxops} run <(cat m.onnx) -i x=<(cat x.npy) --seed 1 --against onnx-reference && "
        f"{maxops} maximum <(cat x.npy) x.npy && {maxops} check <(cat m.onnx) --all"
    )
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for words in ("2 of 2 outputs agree", "0.0, 1.0, 2.0", "/dev/fd/", "ONNX.Max-13.T holds"):
        assert words in done.stdout


def test_modules_beside_the_model_are_not_imported(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = place / "downloaded"
    elsewhere.mkdir()
    (elsewhere / "random.py").write_text("raise SystemExit('it was imported')")
    monkeypatch.chdir(elsewhere)
    result = run(place / "m.onnx", "--seed", 1, "--against", "onnx-reference")
    assert (result.exit_code, result.stderr) == (0, ""), result.output


@pytest.mark.parametrize("runtime", ["onnxruntime", "onnx-reference", "trial_backend:Same", "program"])
def test_a_runtime_that_agrees(runtime: str, place: Path) -> None:
    name = f"command:{sys.executable} program.py" if runtime == "program" else runtime
    result = run("m.onnx", "--seed", 1, "--against", name)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert f"2 of 2 outputs agree bit for bit with {name}" in result.stdout


def test_the_first_difference_is_shown(place: Path) -> None:
    np.save("x.npy", np.array([1, 2, 3], np.float32))
    np.save("i.npy", np.array([7, 8, 9]))
    np.save("r.npy", np.zeros((3, 1), np.float32))
    words = ["m.onnx", "-i", "x=x.npy", "-i", "i=i.npy", "-i", "r=r.npy", "--against", "trial_backend:Zero"]
    result = run(*words)
    assert result.exit_code == 1
    assert (
        "1 of 3 elements differ; first at (2,): trial_backend:Zero gives 10 (0x000000000000000A), "
        "maxops gives 9 (0x0000000000000009)"
    ) in result.stdout
    assert "1 of 2 outputs agree bit for bit with trial_backend:Zero" in result.stdout
    (document,) = json.loads(run(*words, "--format", "json").stdout)["runs"]
    assert document["agree"] is False
    assert [each["compared"][0]["difference"] is None for each in document["outputs"]] == [True, False]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Crash", "its process was ended by SIGSEGV"),
        ("Refuse", "ValueError: not today"),
        ("Few", "gave 1 output; the model has 2"),
    ],
)
def test_a_runtime_that_gives_nothing_is_a_line(kind: str, said: str, place: Path) -> None:
    result = run("m.onnx", "--seed", 1, "--against", f"trial_backend:{kind}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"maxops: error: trial_backend:{kind}: {said}\n"


def test_bfloat16_and_openvino(place: Path) -> None:
    save_onnx(place / "b.onnx", "g (bfloat16[n] x, bfloat16[n] y) => (bfloat16[n] z) { z = Max(x, y) }")
    pytest.importorskip("openvino")
    result = run("b.onnx", "--seed", 1, "--against", "openvino", "-o", ".")
    assert result.exit_code == 0, result.output
    assert "1 of 1 outputs agree bit for bit with openvino" in result.stdout
    x, y = (random_inputs.draw(Value(name, dtypes.BFLOAT16, ("n",)), 1, {}, "m", special=False) for name in "xy")
    assert_same_bits(np.load("z.npy").view(ml_dtypes.bfloat16), reference.maximum(x, y))
