"""The command line: results, files, exit codes, and one-line errors."""

from __future__ import annotations

import json
import os
import pickle
import pty
import re
import shutil
import signal
import subprocess
import sys
import tomllib
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import maxops as mo
from command_output import maxops, npy
from helpers.bits import assert_same_bits
from helpers.models import BAD_MODELS, MAX, BadModel, model, node, tensor, value
from maxops import _native, cli, reference
from maxops.cli import files, table
from maxops.cli.compare import difference
from maxops.dtypes import short_names
from maxops.errors import ModelInputError

ROOT = Path(__file__).resolve().parents[2]
X = np.array([1, -0.0, np.nan, -np.inf], np.float32)
Y = np.array([2, 0.0, 1, -3], np.float32)
TWO = model([node("Max", ["x", "z"], "y", "top")], ["x", "z"])


def succeeds(*arguments: object) -> str:
    """Return the output of a command that must exit with 0 and report only the files that it wrote."""
    result = maxops(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    assert all(line.startswith("maxops: wrote ") for line in result.stderr.splitlines()), result.stderr
    return result.stdout


def fails(*arguments: object) -> str:
    """Return the one-line error of a command that must exit with 2 and print nothing else."""
    result = maxops(*arguments)
    assert result.exit_code == 2, (result.output, result.exception)
    assert result.stdout == ""
    assert result.stderr.startswith("maxops: error: ")
    assert result.stderr.count("\n") == 1
    assert result.stderr.endswith("\n")
    return result.stderr


def process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "maxops", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **options)  # type: ignore[call-overload,no-any-return]


def without(module: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that cannot import a module."""
    code = f"import sys; sys.modules[{module!r}] = None; from maxops.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def holds(text: str, *words: str) -> None:
    assert [word for word in words if word not in text] == [], text


def saved(path: Path, array: object) -> Path:
    path.write_bytes(npy(array))
    return path


def saved_model(path: Path, proto: ModelProto) -> Path:
    path.write_bytes(proto.SerializeToString())
    return path


def listing(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with the model TWO and its inputs in files of every format."""
    saved_model(tmp_path / "two.onnx", TWO)
    saved(tmp_path / "x.npy", X)
    saved(tmp_path / "z.npy", Y)
    np.savez(tmp_path / "both.npz", x=X, z=Y)
    np.savez_compressed(tmp_path / "small.npz", x=X, z=Y)
    (tmp_path / "x.pb").write_bytes(tensor("x", X).SerializeToString())
    (tmp_path / "nameless.pb").write_bytes(tensor("", Y).SerializeToString())
    return tmp_path


# ---------------------------------------------------------------------------------------------------- maxops run


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(["x=x.npy", "z=z.npy"], id="npy"),
        pytest.param(["both.npz"], id="npz"),
        pytest.param(["small.npz"], id="compressed_npz"),
        pytest.param(["x.pb", "z=z.npy"], id="named_pb"),
        pytest.param(["x=x.pb", "z=nameless.pb"], id="pb"),
    ],
)
def test_run_on_files_of_every_kind(given: list[str], place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    options = [word for argument in given for word in ("--input", argument)]
    shown = succeeds("run", "two.onnx", *options, "--output", "out", "--parents")
    holds(shown, "output", "type", "shape", "first values", "float32", "(4,)", "2.0, 0.0, nan, -3.0")
    assert listing(place / "out") == ["y.npy"]
    assert_same_bits(np.load(place / "out/y.npy"), reference.maximum(X, Y))


def test_run_writes_files_that_others_may_read(place: Path) -> None:
    succeeds("run", place / "two.onnx", "--input", place / "both.npz", "--output", place / "out", "--parents")
    ordinary = place / "ordinary"
    ordinary.touch()
    assert (place / "out/y.npy").stat().st_mode == ordinary.stat().st_mode


def test_run_reads_two_bytes_as_bfloat16_where_the_model_says_so(tmp_path: Path) -> None:
    bits = np.array([0x3F80, 0x8000, 0xFFC1, 0x0001], np.uint16)
    made = model(
        [node("Max", ["x"], "y")],
        [value("x", (4,), TensorProto.BFLOAT16)],
        [value("y", (4,), TensorProto.BFLOAT16)],
    )
    path = saved_model(tmp_path / "m.onnx", made)
    saved(tmp_path / "x.npy", bits.view(ml_dtypes.bfloat16))
    assert np.load(tmp_path / "x.npy").dtype.kind == "V"
    succeeds("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path)
    assert np.load(tmp_path / "y.npy").view(np.uint16).tolist() == [0x3F80, 0x8000, 0x7FC0, 0x0001]
    other = saved_model(tmp_path / "two.onnx", MAX)
    holds(fails("run", other, "--input", f"x={tmp_path / 'x.npy'}"), "input 'x' has dtype |V2", "float32")


@pytest.mark.parametrize("name", ["../escape", "/absolute/escape", "..", "a/b", "a%2Fb", "line\nbreak", "größe::0"])
def test_run_keeps_outputs_in_their_folder(name: str, tmp_path: Path) -> None:
    path = saved_model(tmp_path / "m.onnx", model([node("Max", ["x"], name)], outputs=(name,)))
    saved(tmp_path / "x.npy", X)
    before = listing(tmp_path)
    succeeds("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "inner/out", "--parents")
    written = [found for found in listing(tmp_path) if found not in before]
    assert len(written) == 3, "two folders and a file"
    assert written[:2] == ["inner", "inner/out"]
    assert_same_bits(np.load(tmp_path / written[2]), reference.maximum(X))


def test_different_names_make_different_files() -> None:
    names = ["a/b", "a%2Fb", "a%b", "a%25b", "a_b"]
    assert len({files.file_name(name) for name in names}) == len(names)


def test_run_shows_no_control_characters(tmp_path: Path) -> None:
    name = "y\x1b[2J[red]"
    path = saved_model(tmp_path / "m.onnx", model([node("Max", ["x"], name)], outputs=(name,)))
    saved(tmp_path / "x.npy", X)
    shown = succeeds("run", path, "--input", f"x={tmp_path / 'x.npy'}")
    assert "\x1b" not in shown
    holds(shown, "y\\x1b[2J[red]")


def test_run_of_a_model_without_inputs(tmp_path: Path) -> None:
    made = model([node("Constant", [], "y", value_int=-(2**63))], [], [value("y", (), TensorProto.INT64)])
    holds(succeeds("run", saved_model(tmp_path / "m.onnx", made)), "int64", "()", "-9223372036854775808")


def test_run_of_zero_sizes(tmp_path: Path) -> None:
    made = model(
        [node("ReduceMax", ["x"], "y", axes=[0], keepdims=0)],
        [value("x", ("n", 2))],
        [value("y", (2,)), value("x", ("n", 2))],
    )
    path = saved_model(tmp_path / "m.onnx", made)
    saved(tmp_path / "x.npy", np.zeros((0, 2), np.float32))
    # the output of the model is its input, with the same name
    line = fails("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path)
    holds(line, "x.npy is also an input; pass --overwrite")
    holds(
        succeeds("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path / "out", "-p"),
        "-inf, -inf",
        "(0, 2)",
    )
    assert_same_bits(np.load(tmp_path / "out/y.npy"), np.full(2, -np.inf, np.float32))


# ------------------------------------------------------------------------------------------- ONNX's test layout


def suite(folder: Path, outputs: dict[str, list[np.ndarray]]) -> Path:
    """Return a folder with TWO, and a data set for each list of expected outputs."""
    folder.mkdir()
    saved_model(folder / "model.onnx", TWO)
    for name, arrays in outputs.items():
        (folder / name).mkdir()
        for number, array in enumerate((X, Y)):
            (folder / name / f"input_{number}.pb").write_bytes(tensor("any name", array).SerializeToString())
        for number, array in enumerate(arrays):
            (folder / name / f"output_{number}.pb").write_bytes(tensor("", array).SerializeToString())
    return folder


GOOD = reference.maximum(X, Y)


def test_folder_that_agrees(tmp_path: Path) -> None:
    shown = succeeds(
        "run", suite(tmp_path / "s", {"test_data_set_0": [GOOD]}), "--output", tmp_path / "out", "--parents"
    )
    holds(shown, "test_data_set_0", "agrees", "1 of 1 outputs agree bit for bit")
    assert listing(tmp_path / "out") == ["y.npy"]


def _with(position: int, bits: int) -> np.ndarray:
    changed = GOOD.copy()
    changed.view(np.uint32)[position] = bits
    return changed


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        pytest.param(_with(0, 0x3FC00000), ["at (0,)", "1.5 (0x3FC00000)", "2.0 (0x40000000)"], id="value"),
        pytest.param(_with(1, 0x80000000), ["at (1,)", "-0.0 (0x80000000)", "0.0 (0x00000000)"], id="sign_of_zero"),
        pytest.param(_with(2, 0x7FC00001), ["at (2,)", "(0x7FC00001)", "(0x7FC00000)"], id="nan_payload"),
        pytest.param(GOOD.astype(np.float64), ["expected float64 (4,)", "got float32 (4,)"], id="type"),
        pytest.param(GOOD.reshape(2, 2), ["expected float32 (2, 2)", "got float32 (4,)"], id="shape"),
    ],
)
def test_folder_that_differs(expected: np.ndarray, words: list[str], tmp_path: Path) -> None:
    folder = suite(tmp_path / "s", {"test_data_set_0": [GOOD], "test_data_set_1": [expected]})
    result = maxops("run", folder, "--output", tmp_path / "out", "--parents")
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"maxops: wrote {tmp_path / 'out' / name / 'y.npy'}" for name in ("test_data_set_0", "test_data_set_1")
    ]
    holds(result.stdout, "agrees", "DIFFERS", "0 of 1 outputs agree", "1 of 1 outputs agree", *words)
    assert listing(tmp_path / "out") == [
        "test_data_set_0", "test_data_set_0/y.npy", "test_data_set_1", "test_data_set_1/y.npy",
    ]  # fmt: skip


def test_data_sets_go_by_number(tmp_path: Path) -> None:
    shown = succeeds("run", suite(tmp_path / "s", {f"test_data_set_{n}": [GOOD] for n in (10, 9, 0)}))
    assert re.findall(r"test_data_set_\d+", shown) == ["test_data_set_0", "test_data_set_9", "test_data_set_10"]


def test_folder_with_inputs_given_runs_on_them(place: Path) -> None:
    folder = suite(place / "s", {"test_data_set_0": [_with(0, 0)]})
    assert "agree" not in succeeds("run", folder, "--input", place / "both.npz")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            lambda f: (f / "output_0.pb").unlink(),
            ["expected one output_*.pb for each output ('y': float32", "got 0 files"],
            id="no_output",
        ),
        pytest.param(lambda f: (f / "input_1.pb").unlink(), ["missing inputs: 'z'"], id="input_missing"),
        pytest.param(
            lambda f: (f / "input_0.pb").unlink(), ["must be numbered from 0 without gaps, got [1]"], id="gap"
        ),
        pytest.param(
            lambda f: shutil.copy(f / "input_0.pb", f / "input_2.pb"),
            ["expected one array for each input", "got 3"],
            id="too_many",
        ),
        pytest.param(lambda f: (f / "input_0.pb").write_bytes(b"\xff\xff"), ["input_0.pb", "TensorProto"], id="noise"),
    ],
)
def test_broken_data_set_is_refused(change: Callable[[Path], object], words: list[str], tmp_path: Path) -> None:
    folder = suite(tmp_path / "s", {"test_data_set_0": [GOOD]})
    change(folder / "test_data_set_0")
    holds(fails("run", folder, "--output", tmp_path / "out", "--parents"), *words)
    assert not (tmp_path / "out").exists()


def test_difference_can_tell_and_can_agree() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 9, (3, 4, 5)).astype(np.int16)
    b = a.copy()
    assert difference(a, b) == ""
    assert difference(a, np.asfortranarray(b)) == ""
    b[1, 2, 3] ^= 1
    b[2, 0, 0] ^= 1
    holds(difference(a, b), "2 of 60", "first at (1, 2, 3)", f"got {a[1, 2, 3]}", f"expected {b[1, 2, 3]}")
    assert difference(np.array(1.0), np.array(1.0)) == ""
    holds(difference(np.array(1.0), np.array(2.0)), "first at ()")
    assert difference(np.zeros((0, 3)), np.zeros((0, 3))) == ""


def test_types_of_other_operators_are_compared_by_bits_too() -> None:
    nan = np.array([1 + 1j, complex(np.nan, -0.0)], np.complex64)
    assert difference(nan, nan.copy()) == ""
    zero = nan.copy()
    zero[1] = complex(np.nan, 0.0)
    holds(
        difference(nan, zero), "1 of 2 elements differ; first at (1,)", "(0x000000007FC00000)", "(0x800000007FC00000)"
    )
    eighths = np.array([np.nan, 1], ml_dtypes.float8_e4m3fn)
    assert difference(eighths, eighths.copy()) == ""
    strings = np.array(["ab", "c"], object)
    assert difference(strings, np.array(["ab", "c"])) == ""
    assert difference(strings, np.array(["ab", "d"])) == "1 of 2 elements differ; first at (1,): expected d, got c"


# -------------------------------------------------------------------------------------------------- bad models


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.id) for bad in BAD_MODELS])
def test_broken_model_is_one_line_and_2(bad: BadModel, tmp_path: Path) -> None:
    path = bad.write(tmp_path)
    line = fails("run", path, "--output", tmp_path / "out", "--parents")
    holds(line, str(path), *bad.words)
    assert not (tmp_path / "out").exists()


# --------------------------------------------------------------------------------------------- bad input files


def _npy_of_header(header: str, data: bytes = b"") -> Callable[[Path], object]:
    text = header.encode()
    start = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    return lambda path: path.write_bytes(start + data)


def _header(shape: object, descr: object = "<f4") -> str:
    return repr({"descr": descr, "fortran_order": False, "shape": shape})


def test_pickle_is_never_run(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (open, (str(tmp_path / "ran"), "w"))

    header = _header((1,), "|O")
    _npy_of_header(header, pickle.dumps(np.array([Trap()], object), protocol=2))(tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.write(tmp_path / "x.npy", "x.npy")
    path = saved_model(tmp_path / "m.onnx", MAX)
    fails("run", path, "--input", f"x={tmp_path / 'x.npy'}")
    fails("run", path, "--input", tmp_path / "x.npz")
    fails("maximum", tmp_path / "x.npy")
    assert not (tmp_path / "ran").exists()


def _npz(**members: bytes) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)

    return write


def _truncated_npz(path: Path) -> None:
    np.savez(path, x=X)
    os.truncate(path, 60)


def _corrupt_npz(path: Path) -> None:
    np.savez(path, x=np.arange(1000, dtype=np.float32))
    data = bytearray(path.read_bytes())
    data[2000] ^= 255
    path.write_bytes(data)


MEMBERS = {
    "pickled_objects": (npy(np.array([None], object)), "the array contains pickled Python objects"),
    "a_pickle": (pickle.dumps([1]), "not a .npy file (it is a pickle"),
    "text": (b"text", "not a .npy file"),
    "nothing": (b"", "expected a .npy file, but the file is empty"),
    "a_piece": (npy(X)[:-1], "the file is truncated"),
    "half_a_header": (npy(X)[:20], "the file is truncated within its header"),
    "version_9": (npy(X).replace(b"\x01\x00", b"\x09\x00", 1), "unsupported .npy version (9, 0)"),
}


@pytest.mark.parametrize("member", MEMBERS)
def test_a_faulty_member_of_a_npz_is_called_what_it_is(member: str, tmp_path: Path) -> None:
    """Test that the error names the member and its actual format, not the file that contains it."""
    data, words = MEMBERS[member]
    _npz(**{"x.npy": data})(tmp_path / "x.npz")
    with pytest.raises(ModelInputError) as caught:
        files.read_npz(tmp_path / "x.npz")
    assert str(caught.value).startswith(f"{tmp_path / 'x.npz'}: 'x.npy': {words}")


@pytest.mark.parametrize(
    ("write", "words"),
    [
        pytest.param(lambda path: None, ["cannot be read"], id="missing"),
        pytest.param(lambda path: path.touch(), ["not a .npz file"], id="empty"),
        pytest.param(_truncated_npz, ["not a .npz file"], id="truncated"),
        pytest.param(_corrupt_npz, ["broken"], id="corrupt"),
        pytest.param(
            _npz(**dict.fromkeys(["x", "x.npy"], npy(X))),
            ["two arrays named 'x'", "np.savez"],
            id="two_of_a_name",
        ),
        pytest.param(lambda path: np.savez(path, w=X), ["input 'w' is unknown", "'x': float32 (4,)"], id="other_name"),
    ],
)
def test_broken_npz_is_one_line_and_2(write: Callable[[Path], object], words: list[str], tmp_path: Path) -> None:
    write(tmp_path / "x.npz")
    path = saved_model(tmp_path / "m.onnx", model([node("Max", ["x"], "y")]))
    if "'w'" in words[0]:
        holds(fails("run", path, "--input", tmp_path / "x.npz"), "missing inputs 'x'")
        saved(tmp_path / "x.npy", X)
        line = fails("run", path, "--input", tmp_path / "x.npz", "--input", f"x={tmp_path / 'x.npy'}")
    else:
        line = fails("run", path, "--input", tmp_path / "x.npz")
    holds(line, *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param([], ["'x': float32 (4,), 'z': float32 (4,)", "--input NAME=FILE"], id="none"),
        pytest.param(["x=x.npy"], ["missing inputs 'z': float32 (4,)"], id="one_missing"),
        pytest.param(["x=x.npy", "Z=z.npy"], ["missing inputs 'z'", "has no input 'Z'"], id="misspelled"),
        pytest.param(["x=x.npy", "z=z.npy", "q=z.npy"], ["input 'q' is unknown", "'x': float32"], id="unknown"),
        pytest.param(["x=x.npy", "both.npz"], ["input 'x' is specified twice"], id="twice"),
        pytest.param(["x.npy"], ["a .npy file contains no input name", "NAME=x.npy"], id="nameless_npy"),
        pytest.param(["nameless.pb"], ["the tensor has no name", "NAME=nameless.pb"], id="nameless_pb"),
        pytest.param(["x=both.npz"], ["a .npz file contains the input names"], id="named_npz"),
        pytest.param(["x=x.txt"], ["expected a file name ending in .npy, .npz or .pb"], id="other_file"),
        pytest.param(["x"], ["expected a file name ending in .npy, .npz or .pb"], id="name_only"),
        pytest.param(["x=f8.npy", "z=z.npy"], ["input 'x' has dtype float64", "float32 (4,)"], id="wrong_type"),
        pytest.param(["x=long.npy", "z=z.npy"], ["input 'x' has shape (5,)", "float32 (4,)"], id="wrong_shape"),
        pytest.param(["x=flat.npy", "z=z.npy"], ["input 'x' has rank 0"], id="wrong_rank"),
        pytest.param(["x=strings.npy", "z=z.npy"], ["<U1", "float32"], id="strings"),
        pytest.param(["x=structure.npy", "z=z.npy"], ["('a', '<f4')", "float32"], id="structure"),
    ],
)
def test_wrong_inputs_are_one_line_and_2(
    arguments: list[str], words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(place / "f8.npy", X.astype(np.float64))
    saved(place / "long.npy", np.zeros(5, np.float32))
    saved(place / "flat.npy", np.float32(1))
    saved(place / "strings.npy", np.array(["a"] * 4))
    saved(place / "structure.npy", np.zeros(4, [("a", "f4")]))
    monkeypatch.chdir(place)
    options = [word for argument in arguments for word in ("--input", argument)]
    holds(fails("run", "two.onnx", *options, "--output", "out", "--parents"), *words)
    assert not (place / "out").exists()


def test_clause_reaches_the_line(tmp_path: Path) -> None:
    made = model([node("ReduceMax", ["x"], "y", "top", axes=[5])])
    saved(tmp_path / "x.npy", X)
    line = fails("run", saved_model(tmp_path / "m.onnx", made), "--input", f"x={tmp_path / 'x.npy'}")
    holds(line, "m.onnx: node 'top' (ReduceMax): ReduceMax-13 axes must be between", "[ONNX.ReduceMax-13.axes.range]\n")


# ------------------------------------------------------------------------------------------------ writing files


def test_nothing_is_left_when_one_output_cannot_be_written(tmp_path: Path) -> None:
    made = model([node("Max", ["x"], "a"), node("Max", ["x"], "b")], outputs=("a", "b"))
    path, given = saved_model(tmp_path / "m.onnx", made), saved(tmp_path / "x.npy", X)
    out = tmp_path / "out"
    (out / "b.npy").mkdir(parents=True)
    holds(fails_with_table("run", path, "--input", f"x={given}", "--output", out), "b.npy", "is a folder")
    assert listing(out) == ["b.npy"]


def fails_with_table(*arguments: object) -> str:
    """Like fails(), for errors after the results are shown."""
    result = maxops(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("maxops: error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_nothing_is_left_when_writing_ends_early(tmp_path: Path) -> None:
    made = model([node("Max", ["x"], "a"), node("Max", ["x"], "b")], outputs=("a", "b"))
    path, given = saved_model(tmp_path / "m.onnx", made), saved(tmp_path / "x.npy", X)
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.npy").write_bytes(b"older")
    (out / "b.npy").symlink_to("/dev/full")
    line = fails_with_table("run", path, "--input", f"x={given}", "--output", out)
    holds(line, "b.npy cannot be written: No space left on device")
    assert listing(out) == ["a.npy", "b.npy"]
    assert (out / "a.npy").read_bytes() == b"older"


def test_output_in_a_file_s_place_is_refused(place: Path) -> None:
    line = fails_with_table("run", place / "two.onnx", "--input", place / "both.npz", "--output", place / "x.npy")
    holds(line, "cannot be written", "x.npy")


def test_output_may_replace_an_input_if_told(place: Path) -> None:
    words = ["maximum", place / "x.npy", place / "z.npy", "--output", place / "x.npy"]
    before = (place / "x.npy").read_bytes()
    holds(fails(*words), "x.npy is also an input; pass --overwrite to replace it")
    (place / "link.npy").symlink_to("x.npy")
    holds(fails(*words[:-1], place / "link.npy"), f"link.npy is also an input ({place / 'x.npy'})")
    assert (place / "x.npy").read_bytes() == before
    succeeds(*words, "--overwrite")
    assert_same_bits(np.load(place / "x.npy"), reference.maximum(X, Y))


# ----------------------------------------------------------------------------------------- operators on arrays


def test_maximum(place: Path) -> None:
    holds(succeeds("maximum", place / "x.npy", place / "z.npy"), "float32", "(4,)", "2.0, 0.0, nan, -3.0")
    holds(succeeds("maximum", place / "x.npy", place / "z.npy", "--nan", "ignore"), "2.0, 0.0, 1.0, -3.0")
    assert succeeds("maximum", place / "x.npy", place / "z.npy", "--output", place / "m.npy") == ""
    assert_same_bits(np.load(place / "m.npy"), reference.maximum(X, Y))


DATA = np.arange(24, dtype=np.int16).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param([], reference.reduce_max(DATA), id="all"),
        pytest.param(["--axes", "0,-1"], reference.reduce_max(DATA, (0, 2)), id="two_axes"),
        pytest.param(["--axes", "-1"], reference.reduce_max(DATA, (2,)), id="negative_axis"),
        pytest.param(["--axes", "1", "--no-keepdims"], reference.reduce_max(DATA, (1,), keepdims=False), id="dropped"),
        pytest.param(["--axes", "", "--no-keepdims"], reference.reduce_max(DATA, keepdims=False), id="empty"),
        pytest.param(["--noop-with-empty-axes"], DATA, id="noop"),
    ],
)
@pytest.mark.parametrize("order", ["C", "F"])
def test_reduce_max(options: list[str], expected: np.ndarray, order: str, tmp_path: Path) -> None:
    path = saved(tmp_path / "x.npy", np.asarray(DATA, order=order))  # type: ignore[call-overload]
    assert succeeds("reduce-max", path, *options, "--output", tmp_path / "m.npy") == ""
    assert_same_bits(np.load(tmp_path / "m.npy"), expected)


def test_segment_max(tmp_path: Path) -> None:
    data, ids = saved(tmp_path / "d.npy", DATA[0]), saved(tmp_path / "i.npy", np.array([0, 2, 2]))
    succeeds("segment-max", data, ids, "--fill-mode", "lowest", "--num-segments", 4, "--output", tmp_path / "m.npy")
    assert_same_bits(np.load(tmp_path / "m.npy"), reference.segment_max(DATA[0], np.array([0, 2, 2]), 4, "LOWEST"))
    holds(succeeds("segment-max", data, ids, "--fill-mode", "ZERO"), "int16", "(3, 4)", "0, 1, 2, 3, 0, 0, ...")


def test_bfloat16_files(tmp_path: Path) -> None:
    data = np.array([1, -2], ml_dtypes.bfloat16)
    path = saved(tmp_path / "x.npy", data)
    holds(fails("maximum", path), "2-byte void", "--bfloat16")
    holds(succeeds("maximum", path, "--bfloat16"), "bfloat16", "1, -2")
    succeeds("reduce-max", path, "--bfloat16", "--no-keepdims", "--output", tmp_path / "m.npy")
    assert_same_bits(np.load(tmp_path / "m.npy").view(ml_dtypes.bfloat16), data[:1].reshape(()))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<i8", ">u2", "?"])
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3, 4)])
def test_npy_files_are_read_as_they_are(dtype: str, shape: tuple[int, ...], order: str, tmp_path: Path) -> None:
    data = np.asarray(np.random.default_rng(0).integers(0, 2, shape).astype(dtype), order=order)  # type: ignore[call-overload]
    read = files.read_npy(saved(tmp_path / "x.npy", data))
    assert (read.dtype, read.shape, read.tobytes()) == (data.dtype, data.shape, data.tobytes())
    assert type(read) is np.ndarray
    assert data.size == 0 or not read.flags.writeable


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["maximum", "x.npy", "i.npy"], ["input 1 is int64", "[maxops.maximum.types]"], id="mixed_types"),
        pytest.param(["maximum", "x.npy", "long.npy"], ["(5,)", "[maxops.maximum.shape]"], id="no_broadcast"),
        pytest.param(["maximum"], ["FILES", "maximum --help"], id="no_files"),
        pytest.param(["reduce-max", "x.npy", "--axes", "7"], ["7", "[maxops.reduce_max.axes.range]"], id="axes_range"),
        pytest.param(["reduce-max", "x.npy", "--axes", "0,0"], ["twice"], id="axes_twice"),
        pytest.param(["reduce-max", "x.npy", "--axes", "a"], ["'a'", "--axes", "0,-1"], id="axes_text"),
        pytest.param(["reduce-max", "x.npy", "x.npy"], ["reduce-max --help"], id="two_files"),
        pytest.param(
            ["segment-max", "x.npy", "down.npy", "--fill-mode", "ZERO"],
            ["got 0 after 3 at position 2", "pass --unsorted to accept", "[maxops.segment_max.ids]"],
            id="ids_unsorted",
        ),
        pytest.param(
            ["segment-max", "x.npy", "i.npy"], ["no value for empty segments is specified"], id="fill_mode_missing"
        ),
        pytest.param(
            ["segment-max", "x.npy", "i.npy", "--fill-mode", "NONE"], ["'NONE'", "'ZERO' or 'LOWEST'"], id="fill_mode"
        ),
        pytest.param(
            ["segment-max", "x.npy", "i.npy", "--fill-mode", "ZERO", "--num-segments", "-1"],
            ["num_segments must be non-negative, got -1"],
            id="num_segments_negative",
        ),
        pytest.param(
            ["segment-max", "x.npy", "i.npy", "--fill-mode", "ZERO", "--num-segments", str(2**62)],
            ["this machine has", "GiB"],
            id="num_segments_huge",
        ),
        pytest.param(
            ["segment-max", "x.npy", "i.npy", "--fill-mode", "ZERO", "--num-segments", "many"],
            ["--num-segments", "valid integer"],
            id="num_segments_text",
        ),
        pytest.param(["maximise"], ["maximise", "--help"], id="unknown_command"),
        pytest.param(["operators", "--yaml"], ["--yaml", "operators --help"], id="unknown_option"),
        pytest.param(["run"], ["MODEL", "run --help"], id="no_model"),
    ],
)
def test_bad_use_is_one_line_and_2(
    arguments: list[str], words: list[str], place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved(place / "i.npy", np.array([0, 1, 1, 3]))
    saved(place / "down.npy", np.array([0, 3, 0, 3]))
    saved(place / "long.npy", np.zeros(5, np.float32))
    monkeypatch.chdir(place)
    before = listing(place)
    holds(fails(*arguments), *words)
    assert listing(place) == before


# ----------------------------------------------------------------------------------------------------- operators


def test_operators_shows_every_row_of_the_spec() -> None:
    shown = succeeds("operators")
    for operator in mo.operators():
        line = next(
            line
            for line in shown.splitlines()
            if [cell.strip() for cell in line.strip("│").split("│")][:3]
            == [operator.standard, operator.name, str(operator.version or "")]
        )
        holds(line, short_names(operator.types) + " ")


def test_operators_as_json() -> None:
    rows = json.loads(succeeds("operators", "--json"))
    assert [(row["standard"], row["operator"], row["version"]) for row in rows] == [
        (operator.standard, operator.name, operator.version) for operator in mo.operators()
    ]
    for row, operator in zip(rows, mo.operators(), strict=True):
        assert row["types"] == [dtype.name for dtype in operator.types]
        assert [clause["id"] for clause in row["clauses"]] == [clause.id for clause in operator.clauses]
        assert all(set(clause) == {"id", "statement", "source", "level"} for clause in row["clauses"])


def test_operators_with_clauses() -> None:
    shown = succeeds("operators", "--clauses")
    for operator in mo.operators():
        for clause in operator.clauses:
            assert any(clause.id in line and clause.statement in line for line in shown.splitlines())
    assert "undecided" not in shown
    assert "decided by maxops" in shown


# ------------------------------------------------------------------------------------------------ real processes


def test_process_reports_an_error_in_one_line(tmp_path: Path) -> None:
    done = process("run", tmp_path / "nowhere.onnx")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"maxops: error: {tmp_path}/nowhere.onnx cannot be read: No such file or directory\n"


def test_version_and_help() -> None:
    done = process("--version")
    assert (done.returncode, done.stderr) == (0, "")
    holds(done.stdout, "maxops ", _native.isa())
    assert process("--help").returncode == 0
    done = process()
    assert (done.returncode, done.stdout) == (2, "")
    holds(done.stderr, "Usage", "segment-max")


def test_a_narrow_ascii_terminal_gets_every_name(tmp_path: Path) -> None:
    name = "größe_" + "long_" * 100
    path = saved_model(tmp_path / "m.onnx", model([node("Max", ["x"], name)], outputs=(name,)))
    environment = os.environ | {"COLUMNS": "40", "PYTHONIOENCODING": "ascii"}
    done = process("run", path, "--input", f"x={saved(tmp_path / 'x.npy', X)}", env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    holds(done.stdout, name.replace("ö", "\\xf6").replace("ß", "\\xdf"), "float32", "1.0, -0.0, nan, -inf")


@pytest.mark.parametrize("words", [["operators", "--clauses"], ["check", "--help"]], ids=" ".join)
def test_closed_pipe_is_quiet(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "maxops", *words]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("redirected", "code", "stderr"),
    [
        (">/dev/full", 2, "maxops: error: stdout: No space left on device\n"),
        (">&-", 2, "maxops: error: stdout: Bad file descriptor\n"),
        ("2>/dev/full", 0, ""),
        ("<&- 2>&-", 0, ""),
    ],
)
def test_standard_streams_that_take_nothing(redirected: str, code: int, stderr: str) -> None:
    command = f"{sys.executable} -m maxops operators {redirected}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (code, stderr)
    assert ("SegmentMax" in done.stdout) is (code == 0)


@pytest.mark.parametrize("package", ["typer", "rich", "onnx"])
def test_missing_package_is_one_line(package: str, tmp_path: Path) -> None:
    done = without(package, "run", saved_model(tmp_path / "m.onnx", MAX))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"maxops: error: the maxops command requires '{package}'; run pip install \"maxops[onnx]\"\n"


BROKEN = {
    "a broken package": ("onnx/__init__.py", "raise TypeError('of protobuf')", "TypeError: of protobuf"),
    "a missing library": ("onnx/__init__.py", "raise OSError('no libonnx.so')", "OSError: no libonnx.so"),
    "a package in the command's own module": ("typer/__init__.py", "raise ImportError('no click')", "ImportError: no"),
    "another version": ("onnx/__init__.py", "", "ImportError: cannot import name 'ModelProto' from 'onnx' ("),
    "a file of the user": (
        "typer.py",
        "",
        "ModuleNotFoundError: No module named 'typer.core'; 'typer' is not a package",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_package_that_cannot_be_imported_is_one_line(kind: str, place: Path, tmp_path: Path) -> None:
    file, text, reason = BROKEN[kind]
    broken = tmp_path / "broken" / file
    broken.parent.mkdir(parents=True)
    broken.write_text(text, encoding="utf-8")
    hidden = f"import sys; sys.path.insert(0, {str(tmp_path / 'broken')!r}); from maxops.cli import main; main()"
    command = [sys.executable, "-c", hidden, "check", str(place / "two.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    package = Path(file).parts[0].removesuffix(".py")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"maxops: error: the package {package!r} cannot be imported: {reason}")


def test_a_missing_dependency_of_a_package_is_named_once(place: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "onnx"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("import no_such_dependency", encoding="utf-8")
    hidden = f"import sys; sys.path.insert(0, {str(broken.parent)!r}); from maxops.cli import main; main()"
    command = [sys.executable, "-c", hidden, "check", str(place / "two.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "maxops: error: maxops.checker requires the package 'no_such_dependency', which is not installed: "
        'pip install "maxops[onnx]"\n'
    )


def test_a_fault_of_ours_is_no_broken_package() -> None:
    fault = "def main(*_): import json; json.loads('{')"
    hidden = f"from maxops.cli import app, main; exec({fault!r}, vars(app)); app.app = app.main; main()"
    done = subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 70
    holds(done.stderr, "JSONDecodeError", "maxops: error: this is a bug in maxops")


def test_what_the_command_needs_is_its_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {re.split(r"\W", each)[0] for each in extras["onnx"]} == set(cli.EXTRA) - {"google"}  # a dependency of onnx


def test_a_missing_package_of_a_report_is_told_before_anything_runs(tmp_path: Path) -> None:
    done = without("junitparser", "conform", "numpy", "--junit", tmp_path / "run.xml")
    assert (done.returncode, done.stdout, listing(tmp_path)) == (2, "", [])
    assert done.stderr == "maxops: error: the maxops command requires 'junitparser'; run pip install \"maxops[onnx]\"\n"


def test_a_broken_package_of_a_report_is_told_before_anything_runs(place: Path, tmp_path: Path) -> None:
    (tmp_path / "matplotlib.py").write_text("raise AttributeError('of it')", encoding="utf-8")
    hidden = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from maxops.cli import main; main()"
    # the missing folder would be the error of the last check before the run
    command = [sys.executable, "-c", hidden, "bench", "--quick", "--html", str(place / "missing/r.html")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("maxops: error: the package 'matplotlib' cannot be imported: AttributeError: of it")


def test_other_missing_module_is_no_message_about_extras() -> None:
    done = without("maxops.cli.app")
    assert done.returncode == 70  # 1 would mean that outputs differ
    holds(done.stderr, "Traceback", "maxops.cli.app", "maxops: error: this is a bug in maxops")


def test_arrays_need_no_onnx(place: Path) -> None:
    done = without("onnx", "maximum", place / "x.npy")
    assert (done.returncode, done.stderr) == (0, "")


SLOW = """
import sys, time
from maxops.cli import arrays, main, progress
def slow(*arrays, nan):
    print("started", flush=True)
    time.sleep({seconds})
    return arrays[0]
arrays.maxops.maximum = slow
progress.AFTER_SECONDS /= 10
main()
"""


def test_interrupt_is_one_line_and_130(place: Path) -> None:
    command = [sys.executable, "-c", SLOW.format(seconds=300), "maximum", str(place / "x.npy"), "--output", "never.npy"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=place) as started:
        assert started.stdout is not None
        assert started.stdout.readline() == "started\n"
        started.send_signal(signal.SIGINT)
        _, stderr = started.communicate(timeout=120)
    assert (started.returncode, stderr) == (130, "maxops: interrupted\n")
    assert not (place / "never.npy").exists()


INTERRUPTED_AT_IMPORT = """
import sys
class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == "maxops.cli.app":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from maxops.cli import main
main()
"""


def test_interrupt_of_an_import_is_one_line_and_130() -> None:
    command = [sys.executable, "-c", INTERRUPTED_AT_IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "maxops: interrupted\n")


def test_names_of_files_cannot_move_the_cursor(tmp_path: Path) -> None:
    result = maxops("maximum", tmp_path / "a\x1b[2J.npy")
    assert result.stderr == f"maxops: error: {tmp_path}/a\\x1b[2J.npy cannot be read: No such file or directory\n"
    result = maxops("maximum", saved(tmp_path / "x.npy", [1.0]), "-o", tmp_path / "b\x1b[2J.npy")
    assert result.stderr == f"maxops: wrote {tmp_path}/b\\x1b[2J.npy\n"


def _on_terminal(command: list[str]) -> str:
    """Return the output of a command on stderr if that is a terminal."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as started:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 4096):
                seen += part
        except OSError:  # on Linux, this means that the other side of the terminal is closed
            pass
        finally:
            os.close(ours)
    assert started.returncode == 0
    return seen.decode()


@pytest.mark.parametrize(("seconds", "bar"), [(0, False), (0.5, True)], ids=["short_work", "long_work"])
def test_progress_only_for_long_work_on_a_terminal(seconds: float, bar: bool, place: Path) -> None:
    command = [sys.executable, "-c", SLOW.format(seconds=seconds), "maximum", str(place / "x.npy")]
    seen = _on_terminal(command)
    assert ("maximum" in seen) is bar
    assert bar or seen == ""


def test_no_progress_elsewhere(place: Path) -> None:
    command = [sys.executable, "-c", SLOW.format(seconds=0.5), "maximum", str(place / "x.npy")]  # long work
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_first_values() -> None:
    assert table.first_values(np.arange(6)) == "0, 1, 2, 3, 4, 5"
    assert table.first_values(np.arange(7)) == "0, 1, 2, 3, 4, 5, ..."
    assert table.first_values(np.zeros((0, 2))) == ""
    assert table.first_values(np.array(-0.0)) == "-0.0"
    assert table.first_values(np.asfortranarray([[1, 2], [3, 4]])) == "1, 2, 3, 4"


def test_first_values_need_little_memory() -> None:
    large = np.broadcast_to(np.float32(1), (1 << 22, 3))
    tracemalloc.start()
    try:
        assert table.first_values(large) == "1.0, 1.0, 1.0, 1.0, 1.0, 1.0, ..."
        assert table.describe("y", large)["first_values"] == ["1.0"] * table.FIRST
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
