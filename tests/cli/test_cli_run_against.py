"""`maxops run` on random inputs with a seed, and the bitwise comparison with another runtime."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]
from onnx import parser
from typer.testing import Result

from command_output import maxops, save_onnx
from helpers.bits import assert_same_bits
from maxops import dtypes, reference
from maxops.cli import random_inputs
from maxops.cli.compare import different
from maxops.conformance.resource_limits import memory_limit
from maxops.errors import ModelError
from maxops.model import Value
from maxops.onnx.load import to_bytes

MODEL = "g (float[n] x, int64[n] i, float[n, m] r) => (float[n] y, int64[n] j) { y = Max(x, x) j = Max(i, i) }"
BACKEND = """
import os, signal, time
import numpy as np
class Prepared:
    def __init__(self, count, kind):
        self.count, self.kind = count, kind
    def run(self, inputs):
        if self.kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.kind == "exit":
            os._exit(3)
        if self.kind == "hang":
            time.sleep(600)
        if self.kind == "refuse":
            raise ValueError("not\\ntoday")
        outputs = [np.array(inputs[0]), np.array(inputs[1])]
        if self.kind == "zero":
            outputs[1][2] += 1
        if self.kind == "none":
            outputs[1] = None
        if self.kind == "shape":
            outputs[1] = outputs[1][:-1]
        if self.kind == "type":
            outputs[1] = outputs[1].astype(np.int8)
        return outputs[: 1 if self.kind == "few" else 2]
class Same:
    kind = "same"
    @classmethod
    def prepare(cls, model, device="CPU"):
        return Prepared(len(model.graph.output), cls.kind)
class Crash(Same): kind = "crash"
class Exit(Same): kind = "exit"
class Hang(Same): kind = "hang"
class Limits(Same):
    @classmethod
    def prepare(cls, model, device="CPU"):
        import resource
        raise ValueError(resource.getrlimit(resource.RLIMIT_DATA)[0])
class Refuse(Same): kind = "refuse"
class Zero(Same): kind = "zero"
class Few(Same): kind = "few"
class Nothing(Same): kind = "none"
class Shape(Same): kind = "shape"
class Type(Same): kind = "type"
"""
PROGRAM = """
import pathlib, sys, onnx
folder = pathlib.Path(sys.argv[-1])
for number in (0, 1):
    tensor = onnx.load_tensor(folder / f"test_data_set_0/input_{number}.pb")
    onnx.save_tensor(tensor, folder / f"test_data_set_0/output_{number}.pb")
"""


def run(*words: object) -> Result:
    return maxops("run", *words)


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
        (["--size", "n=3"], "--size has no effect without --seed"),
        (["--special-values"], "--special-values has no effect without --seed"),
        (
            ["--seed", "1", "--size", "k=3"],
            "--size k=3: no random input has an axis named k; axes of unknown size: n, m",
        ),
        (
            ["--seed", "1", "--size", "a=k=3"],
            "--size a=k=3: no random input has an axis named a=k; axes of unknown size: n, m",
        ),
        (["--seed", "1", "--size", "n"], "expected a name and a size such as batch=8, got 'n'"),
        (["--seed", "-1"], "--seed"),
        (["--seed", "1", "--timeout", "5"], "--timeout has no effect without --against"),
        (["--seed", "1", "--against", "onnx-reference", "--timeout", "0"], "the timeout must be between 0.1 and"),
        (["--seed", "1", "--against", "numpy"], "'numpy' cannot run models; choose onnxruntime, "),
        (["--seed", "1", "--against", "onnxruntim"], "did you mean onnxruntime"),
        (
            ["--seed", "1", "--against", "maxops"],
            "--against requires a single runtime, got 'maxops'; choose onnxruntime, ",
        ),
        (["--seed", "1", "--whole"], "--whole has no effect without --against"),
        (
            ["--seed", "1", "--against", "onnx-reference", "--tolerance", "1"],
            "--tolerance has no effect without --against and --whole",
        ),
        (["--seed", "1", "--tolerance", "inf"], "expected a finite number of at least 0, got inf"),
        (["--seed", "1", "--tolerance", "nan"], "expected a finite number of at least 0, got nan"),
        (["--input", ""], "--input: expected NAME=FILE or a file name, got ''"),
        (["--input", "x="], "--input: expected NAME=FILE or a file name, got 'x='"),
        (["--seed", "1", "--output", "-"], "stdout can receive only one array, got 2"),
        ([], "pass --input NAME=FILE for each, or --seed N to generate them randomly"),
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
    assert wrong.stderr == (
        "maxops: error: m.onnx: --size n=3: the axis n has size 7 in the arrays from --input; omit --size, or pass "
        "arrays with this size\n"
    )


def test_a_current_folder_that_is_deleted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (place / "gone").mkdir()
    monkeypatch.chdir(place / "gone")
    (place / "gone").rmdir()
    for words in (["rewrite", place / "m.onnx", place / "o.onnx"], ["check", place / "m.onnx", "--format", "sarif"]):
        assert maxops(*words).exit_code == 0
    result = maxops("rewrite", place / "m.onnx", "o.onnx")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the current folder no longer exists; change to another folder" in result.stderr


def test_names_and_files_with_an_equals_sign(place: Path) -> None:
    made = onnx.load(save_onnx(place / "odd.onnx", "g (float[n] x, float[n] y) => (float[n] z) { z = Max(x, y) }"))
    for value, name in zip(made.graph.input, ("x", "x=1"), strict=True):
        value.name, value.type.tensor_type.shape.dim[0].dim_param = name, "batch=size"
    made.graph.node[0].input[1] = "x=1"
    onnx.save(made, "odd.onnx")
    one, two = np.array([[1, 5], [3, 2]], np.float32)
    np.save("a.npy", one)
    np.save("b=1.npy", two)
    for x, y in (("a.npy", "b=1.npy"), ("b=1.npy", "a.npy")):
        result = run("odd.onnx", "-i", f"x={x}", "-i", f"x=1={y}", "-o", ".", "--overwrite")
        assert result.exit_code == 0, result.output
        assert_same_bits(np.load("z.npy"), np.array([3, 5], np.float32))
    assert run("odd.onnx", "--seed", 1, "--size", "batch=size=7", "-o", ".", "--overwrite").exit_code == 0
    assert np.load("z.npy").shape == (7,)
    missing = run("odd.onnx", "-i", "x=missing=1.npy", "-i", "x=1=a.npy")
    assert "missing=1.npy cannot be read" in missing.stderr


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
    for words in ("2 of 2 nodes agree", "0.0, 1.0, 2.0", "/dev/fd/", "ONNX.Max-13.T holds"):
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
    assert f"2 of 2 nodes agree bit for bit with {name}" in result.stdout
    whole = run("m.onnx", "--seed", 1, "--against", name, "--whole")
    assert (whole.exit_code, whole.stderr) == (0, ""), whole.output
    assert f"2 of 2 outputs agree bit for bit with {name}" in whole.stdout


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
    assert "[ONNX.Max-13.value]" in result.stdout
    assert "1 of 2 nodes agree bit for bit with trial_backend:Zero" in result.stdout
    (document,) = json.loads(run(*words, "--format", "json").stdout)["runs"]
    assert document["agree"] is False
    assert [(each["node"], each["difference"] is None) for each in document["nodes"]] == [
        ("node (Max) with output 'y'", True),
        ("node (Max) with output 'j'", False),
    ]
    whole = run(*words, "--whole")
    assert whole.exit_code == 1
    assert "1 of 2 outputs agree bit for bit with trial_backend:Zero" in whole.stdout
    (document,) = json.loads(run(*words, "--whole", "--format", "json").stdout)["runs"]
    assert document["agree"] is False
    assert [each["compared"][0]["difference"] is None for each in document["outputs"]] == [True, False]


@pytest.mark.parametrize(
    ("kind", "clause"), [("Shape", "ONNX.Max-13.shape"), ("Type", "ONNX.Max-13.T"), ("Zero", "ONNX.Max-13.value")]
)
def test_a_difference_has_its_clause(kind: str, clause: str, place: Path) -> None:
    result = run("m.onnx", "--seed", 1, "--size", "n=3", "--against", f"trial_backend:{kind}")
    assert result.exit_code == 1
    assert f"[{clause}]" in result.stdout


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("Limits", f"ValueError: {memory_limit()}"),
        ("Refuse", "ValueError: not today"),
        ("Few", "returned 1 output; the model has 2"),
        ("Nothing", "run must return arrays, got None of type NoneType"),
    ],
)
def test_a_runtime_that_gives_nothing_is_a_line(kind: str, said: str, place: Path) -> None:
    result = run("m.onnx", "--seed", 1, "--against", f"trial_backend:{kind}")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"maxops: error: trial_backend:{kind}: {said}\n"


@pytest.mark.parametrize("options", [[], ["--whole"]])
@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("trial_backend:Crash", "crashes: the process was killed by SIGSEGV"),
        ("trial_backend:Exit", "crashes: the process ended with status 3"),
        ("trial_backend:Hang", "hangs: timed out after 5 s"),
        ("command:sh -c 'kill -SEGV $$'", "crashes: sh was killed by SIGSEGV"),
        ("command:sh -c 'sleep 300'", "hangs: timed out after 5 s"),
    ],
)
def test_a_runtime_that_crashes_is_in_the_table(kind: str, said: str, options: list[str], place: Path) -> None:
    limit = ["--timeout", 5] if "hangs" in said else []
    result = run("m.onnx", "--seed", 1, "--against", kind, *limit, *options)
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.count(said) == 2
    assert "DIFFERS" not in result.stdout
    assert f"0 of 2 {'outputs' if options else 'nodes'} agree" in result.stdout


def test_bfloat16_and_openvino(place: Path) -> None:
    save_onnx(place / "b.onnx", "g (bfloat16[n] x, bfloat16[n] y) => (bfloat16[n] z) { z = Max(x, y) }")
    pytest.importorskip("openvino")
    result = run("b.onnx", "--seed", 1, "--against", "openvino", "-o", ".")
    assert result.exit_code == 0, result.output
    assert "1 of 1 nodes agree bit for bit with openvino" in result.stdout
    x, y = (random_inputs.draw(Value(name, dtypes.BFLOAT16, ("n",)), 1, {}, "m", special=False) for name in "xy")
    assert_same_bits(np.load("z.npy").view(ml_dtypes.bfloat16), reference.maximum(x, y))


# -------------------------------------------------------------------------------------- models of other operators

DRIFT = """
import numpy as np
from onnx.reference import ReferenceEvaluator
class Prepared:
    def __init__(self, model, wrong):
        self.evaluator, self.wrong = ReferenceEvaluator(model), wrong
        self.names = [each.name for each in model.graph.input]
    def run(self, inputs):
        found = self.evaluator.run(None, dict(zip(self.names, inputs)))
        return [self.wrong(name, np.array(array)) for name, array in zip(self.evaluator.output_names, found)]
class Drift:
    @classmethod
    def prepare(cls, model, device="CPU"):
        return Prepared(model, cls.wrong)
    def wrong(name, array):
        return array * np.float32(1.000001)
class Zeros(Drift):
    def wrong(name, array):
        return np.where(array == 0, np.float32(-0.0), array) if name == "m" else array
class Nans(Drift):
    def wrong(name, array):
        return np.where(np.isnan(array), np.float32(3), array) if name == "z" else array
"""
CHAIN = """g (float[n, 4] x, bool b) => (float[n, 1] z)
    <float[4] w = {0, 2, -3, -1}, int64[1] axes = {1}> {
        s = Sqrt(x)
        m = Max(s, w)
        r = Add(m, x)
        z = ReduceMax<keepdims = 1>(r, axes)
    }"""
BRANCH = """g (float[n] x, bool b) => (float[n] y) {
        m = Max(x, x)
        y = If(b) <
            then_branch = t () => (float[n] a) { a = Max(m, m) },
            else_branch = e () => (float[n] c) { c = Abs(m) }
        >
    }"""


@pytest.fixture
def chain(place: Path) -> Path:
    save_onnx(place / "chain.onnx", CHAIN.replace(", bool b", ""))
    (place / "drift.py").write_text(DRIFT)
    np.save(place / "x.npy", np.array([[0, 0, 0, 0], [np.nan, 9, 1, 4], [1, 2, 3, 4]], np.float32))
    return place


@pytest.mark.parametrize(
    ("kind", "wrong", "rule"),
    [("Zeros", "m", "ONNX.Max-13.nan, decided by maxops"), ("Nans", "z", "ONNX.ReduceMax-18.nan, decided by maxops")],
)
def test_a_node_that_differs_is_named_with_its_rule(kind: str, wrong: str, rule: str, chain: Path) -> None:
    result = run("chain.onnx", "-i", "x=x.npy", "--against", f"drift:{kind}", "--format", "json")
    assert result.exit_code == 1, result.output
    (document,) = json.loads(result.stdout)["runs"]
    found = {each["node"]: each["difference"] for each in document["nodes"]}
    assert [name for name, difference in found.items() if difference] == [
        next(name for name in found if name.endswith(f"with output '{wrong}'"))
    ]
    (difference,) = filter(None, found.values())
    assert difference.endswith(f"[{rule}]")


def test_outputs_within_a_tolerance(chain: Path) -> None:
    whole = ["chain.onnx", "-i", "x=x.npy", "--against", "drift:Drift", "--whole"]
    assert run(*whole).exit_code == 1
    result = run(*whole, "--tolerance", "1e-5")
    assert result.exit_code == 0, result.output
    assert "1 of 1 outputs agree within 1e-05 with drift:Drift" in result.stdout
    assert run(*whole, "--tolerance", "1e-9").exit_code == 1


def test_nodes_in_subgraphs_are_not_judged(place: Path) -> None:
    save_onnx(place / "branch.onnx", BRANCH)
    result = run("branch.onnx", "--seed", 1, "--against", "onnx-reference")
    assert result.exit_code == 0, result.output
    assert "warning: branch.onnx: skipped 1 max node in subgraphs" in result.stderr
    assert "1 of 1 nodes agree" in result.stdout
    save_onnx(place / "inside.onnx", BRANCH.replace("m = Max(x, x)", "m = Abs(x)"))
    inside = run("inside.onnx", "--seed", 1, "--against", "onnx-reference")
    assert inside.exit_code == 2
    assert "has no max operator outside of subgraphs, whose values runtimes do not expose" in inside.stderr
    assert "use --whole to compare its outputs" in inside.stderr


def test_other_operators_run_in_onnxruntime(chain: Path) -> None:
    pytest.importorskip("onnxruntime")
    for words, other in (([], "onnxruntime"), (["--on", "onnxruntime"], "onnxruntime"), (["--on", "onnx"], "onnx's")):
        result = run("chain.onnx", "-i", "x=x.npy", *words, "--parents", "-o", other, "--format", "json")
        assert result.exit_code == 0, result.output
        places = {each["operator"]: each["runs_on"] for each in json.loads(result.stdout)["placements"]}
        assert (places["Max"], places["ReduceMax"], places["Sqrt"].split()[0]) == ("maxops", "maxops", other)
    assert_same_bits(np.load("onnxruntime/z.npy"), np.load("onnx's/z.npy"))


def test_what_onnxruntime_cannot_run_names_the_other_way(place: Path) -> None:
    pytest.importorskip("onnxruntime")
    save_onnx(place / "big.onnx", "g (bfloat16[n] x) => (bfloat16[n] y) { s = Sin(x) y = Max(s, s) }")
    result = run("big.onnx", "--seed", 1, "--on", "onnxruntime")
    assert result.exit_code == 2
    assert "big.onnx: onnxruntime " in result.stderr
    assert "cannot run the model: " in result.stderr
    assert "--on onnx" in result.stderr
    save_onnx(place / "fails.onnx", "g (float[n] x, float[m] b) => (float[k] y) { s = Add(x, b) y = Max(s, s) }")
    result = run("fails.onnx", "--seed", 1, "--size", "n=2", "--size", "m=3")
    assert result.exit_code == 2
    assert "fails.onnx: onnxruntime " in result.stderr
    assert " failed: " in result.stderr


def test_without_on_the_reference_evaluator_runs_what_onnxruntime_does_not_load(place: Path) -> None:
    pytest.importorskip("onnxruntime")
    save_onnx(place / "twice.onnx", "g (float[n] x) => (float[n] y) { [a] s = Sin(x) [a] y = Max(s, s) }")
    for more in ([], ["--against", "onnx-reference"]):
        result = run("twice.onnx", "--seed", 1, "--format", "json", *more)
        assert result.exit_code == 0, result.output
        (line,) = result.stderr.splitlines()
        assert line.startswith("maxops: warning: twice.onnx: onnxruntime ")
        assert line.endswith("; using onnx's reference evaluator instead")
        assert "--on onnx" not in line  # which was just done
        places = {each["operator"]: each["runs_on"] for each in json.loads(result.stdout)["placements"]}
        assert places == {"Max": "maxops", "Sin": "onnx's reference evaluator"}
    save_onnx(place / "nobody.onnx", "g (float[n] x) => (float[n] y) { s = of.nobody.Op(x) y = Max(s, s) }")
    result = run("nobody.onnx", "--seed", 1)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)


WITH_DEFAULT = "g (float[n] x, float[2] w) => (float[n] y) <float[2] w = {1, 9}> { s = Abs(x) y = Max(s, w) }"


@pytest.mark.parametrize("version", [3, 8])
def test_a_default_that_is_given_is_what_every_runtime_takes(version: int, place: Path) -> None:
    """Test defaults: models of IR version 3 list weights as inputs, and OpenVINO treats all defaults as constants."""
    proto = onnx.load(save_onnx(place / "default.onnx", WITH_DEFAULT))
    proto.ir_version = version
    onnx.save(proto, place / "default.onnx")
    np.save("x.npy", np.array([5, -6], np.float32))
    for name, weights in (("same", [1, 9]), ("other", [7, 3])):
        np.save(f"{name}.npy", np.array(weights, np.float32))
    given = ["default.onnx", "-i", "x=x.npy", "--on", "onnx", "--format", "json"]
    for runtime, words, how, expected in (
        ("openvino", [], [], [5, 9]),
        ("openvino", ["-i", "w=other.npy"], [], [7, 6]),
        ("openvino", ["-i", "w=other.npy"], ["--whole"], [7, 6]),
        ("onnxruntime", ["-i", "w=same.npy"], ["--whole"], [5, 9]),
        ("onnxruntime", ["-i", "w=other.npy"], ["--whole"], [7, 6]),
        ("onnx-reference", ["-i", "w=other.npy"], ["--whole"], [7, 6]),
    ):
        pytest.importorskip(runtime.partition("-")[0])
        result = run(*given, *words, "--against", runtime, *how)
        assert result.exit_code == 0, result.output
        (output,) = json.loads(result.stdout)["runs"][0]["outputs"]
        assert [float(each) for each in output["first_values"]] == expected
    for words in ([], ["-i", "w=same.npy"]):
        assert run("default.onnx", "-i", "x=x.npy", "--on", "onnxruntime", *words).exit_code == 0
    result = run("default.onnx", "-i", "x=x.npy", "--on", "onnxruntime", "-i", "w=other.npy", "--format", "json")
    if version == 3:
        assert result.exit_code == 2
        assert "default.onnx: input 'w' has a default, which ONNX Runtime treats as a constant" in result.stderr
    else:
        assert [float(each) for each in json.loads(result.stdout)["runs"][0]["outputs"][0]["first_values"]] == [7, 6]


@pytest.mark.parametrize(
    ("one", "other", "is_near"),
    [
        (np.inf, np.inf, True),
        (np.inf, 1.0, False),
        (1.0, np.inf, False),
        (np.inf, -np.inf, False),
        (np.nan, -np.nan, True),
        (np.nan, 1.0, False),
        (np.nan, np.inf, False),
        (0.0, -0.0, True),
        (1.0, 1.09, True),
        (1.0, 1.2, False),
        (100.0, 109.0, True),
        (100.0, 120.0, False),
    ],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_what_lies_within_a_tolerance(one: float, other: float, is_near: bool, dtype: type) -> None:
    first: Any = np.array([one, 1]).astype(dtype)
    second: Any = np.array([other, 1]).astype(dtype)
    assert different(first, second, 0.1).tolist() == ([] if is_near else [0])


def save_with_data(proto: onnx.ModelProto, folder: Path) -> None:
    for tensor in proto.graph.initializer:  # onnx writes only raw data to separate files
        tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), tensor.name))
    folder.mkdir()
    onnx.save(proto, folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    assert (folder / "m.data").exists()


def test_data_beside_the_model(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Test that the model's process and the other runtime find the external data, and print nothing."""
    text = "g (float[n] x) => (float[n] y) <float[4] w = {1, 9, 3, 4}> { s = Abs(x) y = Max(s, w) }"
    proto = onnx.load(save_onnx(place / "inline.onnx", text))
    folder = place / "model"
    save_with_data(proto, folder)
    for runtime, *how in (["onnx-reference"], ["onnxruntime"], ["onnxruntime", "--whole"]):
        pytest.importorskip(runtime.partition("-")[0])
        result = run(folder / "m.onnx", "--seed", 1, "--against", runtime, *how)
        assert (result.exit_code, result.stderr) == (0, ""), result.output
        assert capfd.readouterr() == ("", "")  # output of libraries and processes


@pytest.mark.parametrize("runtime", ["onnx-reference", "onnxruntime", "openvino"])
@pytest.mark.parametrize("calls", ["Abs(x)", "own.f(x)"])
def test_links_to_the_model_and_its_data(calls: str, runtime: str, place: Path) -> None:
    """Test links as in Hugging Face's cache, which some runtimes do not follow."""
    pytest.importorskip(runtime.partition("-")[0])
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17, "own": 1]> g (float[4] x) => (float[4] y)
        <float[4] w = {{1, 9, 3, 4}}> {{ s = {calls} y = Max(s, w) }}
        <domain: "own", opset_import: ["": 17]> f (a) => (b) {{ b = Neg(a) }}"""
    )
    (place / "links").mkdir()
    save_with_data(proto, place / "blobs")
    for name in ("m.onnx", "m.data"):
        (place / "blobs" / name).rename(place / f"blobs/{name} blob")
        (place / "links" / name).symlink_to(place / f"blobs/{name} blob")
    result = run("links/m.onnx", "--seed", 1, "--against", runtime, "--whole")
    assert result.exit_code == 0, result.output


def test_data_that_no_message_holds_is_a_line(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_long(_: onnx.ModelProto) -> bytes:
        raise EncodeError("Failed to serialize proto")

    monkeypatch.setattr(onnx.ModelProto, "SerializeToString", too_long)
    with pytest.raises(ModelError, match="has 2147483648 bytes or more, but a protobuf message has at most 2147483647"):
        to_bytes(onnx.ModelProto(), "m.onnx")


def test_an_open_size_without_a_name(place: Path) -> None:
    path = save_onnx(place / "open.onnx", "g (float[k, 2] x, float[n] y) => (float[m, 2] z) { z = Max(x, x) }")
    made = onnx.load(path)
    made.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    onnx.save(made, path)
    assert run("open.onnx", "--seed", 1, "--size", "x.0=3", "-o", ".").exit_code == 0
    assert np.load("z.npy").shape == (3, 2)
    wrong = run("open.onnx", "--seed", 1, "--size", "x.1=3")
    assert wrong.exit_code == 2
    assert "; axes of unknown size: x.0, n" in wrong.stderr
