"""Common mistakes with files, options and values: each error is one line with the problem and the next step."""

from __future__ import annotations

import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
import typer
from onnx import TensorProto
from rich.text import Text

from command_output import maxops, npy
from helpers.models import model, node, tensor, value
from maxops.cli.app import COMMANDS, app
from test_cli import _header, _on_terminal

ROOT = Path(__file__).resolve().parents[2]
X = np.arange(4, dtype=np.float32)


def header(text: str, version: tuple[int, int] = (1, 0), data: bytes = bytes(16)) -> bytes:
    length = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + length + text.encode() + data


def npz() -> bytes:
    stream = io.BytesIO()
    np.savez(stream, x=X)
    return stream.getvalue()


MODEL = model([node("Max", ["x"], "y")], ["x"]).SerializeToString()
GOOD = npy(X)
DATA_AT = GOOD.index(b"\n") + 1
STRUCTURE = [("a", "f4"), ("b", "i4")]

# The content of a file, and the text of its error.
WRONG_NPY: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "empty": (b"", ("the file is empty", "np.save")),
    "text": (b"1,2,3\n", ("not a .npy file (it is text)", "np.loadtxt")),
    "pickle": (pickle.dumps([1, 2]), ("it is a pickle", "np.save")),
    "old pickle": (pickle.dumps([1], protocol=2), ("it is a pickle", "np.save")),
    "objects": (
        npy(np.array([None], object)),
        ("contains pickled Python objects", "np.save"),
    ),
    "npz": (npz(), ("it is a .npz or zip archive", "np.load(NPZ)[NAME]")),
    "onnx": (MODEL, ("it is an ONNX model", "maxops run")),
    "tensor": (tensor("x", X).SerializeToString(), ("an ONNX tensor, as in a .pb file", "--input")),
    "gzip": (b"\x1f\x8b\x08\x00abc", ("is compressed", "decompress")),
    "xml": (b"<?xml version='1.0'?><net/>", ("it is XML", "maxops run")),
    "noise": (b"\xff\xfe\x00\x01", ("not a .npy file; it starts with b'\\xff\\xfe", "np.save")),
    "zeros": (bytes(200), ("not a .npy file; it starts with", "np.save")),
    "future version": (header(_header((4,)), (4, 0)), ("version (4, 0)", "expected (1, 0), (2, 0), (3, 0)")),
    "trailing bytes": (GOOD + b"zz", ("unexpected data after the array", "ends at byte 144")),
    "two arrays": (GOOD + GOOD, ("unexpected data after the array", "only one array")),
    "negative shape": (header(_header((-4,))), ("invalid header", "(-4,)")),
    "too many axes": (header(_header((1,) * 65)), ("invalid header", "at most 64 axes")),
    "a shape past 64 bits": (header(_header((1 << 70, 0))), ("invalid header", "the shape (1180")),
    "a shape of a number": (header(_header(4)), ("invalid header", "shape is not valid")),
    "a huge shape": (header(_header((1 << 40, 1 << 20))), ("the file is truncated", "got")),
    "a shape of no array": (
        header(_header((1 << 62, 1 << 62, 0)), data=b""),
        ("invalid header", "NumPy rejects the shape"),
    ),
    "an unknown type": (header(_header((4,), "zz")), ("invalid header", "not a valid dtype")),
    "no dictionary": (header("{"), ("invalid header", "cannot parse b'{'")),
    "no keys": (header("{}"), ("invalid header", "correct keys")),
    "a long header": (header(" " * 20_000), ("invalid header", "at most 10000")),
    "truncated data": (
        npy(np.zeros(100, np.float32))[:-1],
        ("is truncated", "(100,)", "expected 528 bytes", "got 527"),
    ),
    "objects of one byte less": (npy(np.array([{}, None], object))[:-1], ("pickled Python objects", "never read")),
    "a deep header": (header("-" * 9000 + "1"), ("invalid header",)),
    "an open header": (header("[" * 150), ("invalid header",)),
    "an indented header": (header("\n  {"), ("invalid header",)),
    "a number": (header("3"), ("invalid header",)),
    "a broken type": (header(_header((1,), "f4,,")), ("invalid header",)),
    "a broken fortran_order": (header(_header((4,)).replace("False", "2")), ("invalid header", "fortran_order")),
}
WRONG_TYPES: dict[str, tuple[bytes, tuple[str, ...]]] = {
    "structure": (npy(np.zeros(4, STRUCTURE)), ("unsupported dtype [('a', '<f4')", "array['a']")),
    "strings": (npy(np.array(["a"] * 4)), ("unsupported dtype <U1", "astype")),
    "dates": (npy(np.zeros(4, "M8[D]")), ("unsupported dtype datetime64[D]", 'array.view("int64")')),
    "durations": (npy(np.zeros(4, "m8[s]")), ("unsupported dtype timedelta64[s]", 'array.view("int64")')),
    "complex": (npy(np.zeros(4, np.complex64)), ("unsupported dtype complex64", "array.real")),
    "void": (npy(np.zeros(4, "V3")), ("unsupported dtype |V3", "array.view")),
    "float128": (npy(np.zeros(4, np.longdouble)), ("unsupported dtype float128", "astype")),
}
READERS = {
    "maximum": "maximum {}",
    "maximum, second": "maximum {x} {}",
    "reduce-max": "reduce-max {}",
    "segment-max": "segment-max {} {ids} --fill-mode ZERO",
    "segment-max, ids": "segment-max {x} {} --fill-mode ZERO",
    "segment-max, offsets": "segment-max {x} --offsets {} --fill-mode ZERO",
    "run": "run {model} --input x={}",
}
OF_DATA = [name for name in READERS if "," not in name and name != "run"]


def line_of(*words: object, data: bytes = b"") -> str:
    """Return the one-line error of a command that must exit with 2."""
    result = maxops(*words, stdin=data)
    assert (result.exit_code, result.stdout) == (2, ""), (result.output, result.exception)
    assert re.fullmatch(r"maxops: error: [^\n]+\n", result.stderr), result.stderr
    return str(result.stderr).removeprefix("maxops: error: ").rstrip("\n")


def assert_says(line: str, name: str, words: tuple[str, ...]) -> None:
    assert [word for word in words if word not in line] == [], line
    assert line.startswith((f"{name}: ", f"{name} "))
    assert line.count(f"{name}: ") + line.count(f"{name} ") == 1, "the file is named once"
    assert "; " in line, "the next step"


@pytest.fixture
def filled(tmp_path: Path) -> dict[str, Path]:
    files = {"x": GOOD, "ids": npy(np.array([0, 0, 1, 1])), "model": MODEL}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    return {name: tmp_path / name for name in files}


def words_of(reader: str, path: object, filled: dict[str, Path]) -> list[str]:
    return [word.format(path, **filled) for word in READERS[reader].split(" ")]


# Each content is read from a file and from stdin, by `run` and by one of the commands that share a reader.
READ = [
    (place, reader, message)
    for number, message in enumerate(WRONG_NPY)
    for place in ("file", "stdin")
    for reader in ([*READERS][number % 6], "run")
]


@pytest.mark.parametrize(("place", "reader", "message"), READ)
def test_a_wrong_npy_is_called_what_it_is(
    place: str, reader: str, message: str, filled: dict[str, Path], tmp_path: Path
) -> None:
    data, words = WRONG_NPY[message]
    if place == "stdin":
        assert_says(line_of(*words_of(reader, "-", filled), data=data), "stdin", words)
        return
    path = tmp_path / "wrong.npy"
    path.write_bytes(data)
    assert_says(line_of(*words_of(reader, path, filled)), str(path), words)


@pytest.mark.parametrize("message", WRONG_TYPES)
@pytest.mark.parametrize("reader", OF_DATA)
def test_a_type_that_the_operators_do_not_take_is_named_with_its_file(
    reader: str, message: str, filled: dict[str, Path], tmp_path: Path
) -> None:
    data, words = WRONG_TYPES[message]
    path = tmp_path / "wrong.npy"
    path.write_bytes(data)
    line = line_of(*words_of(reader, path, filled))
    assert_says(line, str(path), words)
    assert line.endswith(f"[maxops.{reader.replace('-', '_')}.types]")


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("place", ["file", "stdin"])
def test_a_npy_that_ends_at_any_byte_is_truncated(place: str, version: tuple[int, int], tmp_path: Path) -> None:
    whole = header(_header((4,)) + "\n", version)
    path = tmp_path / "x.npy"
    data_at = len(whole) - 16
    for end in (*range(16), *range(16, data_at - 2, 9), *range(data_at - 2, data_at + 2), len(whole) - 1):
        if place == "file":
            path.write_bytes(whole[:end])
            line = line_of("maximum", path)
        else:
            line = line_of("maximum", "-", data=whole[:end])
        assert "truncated" in line if end else "is empty" in line
        assert "save it again" in line
    path.write_bytes(whole)
    assert maxops("maximum", path).exit_code == 0


@pytest.mark.parametrize(
    ("flag", "expected"), [("False", "0.0, 1.0, 2.0, 3.0, 4.0, 5.0"), ("True", "0.0, 2.0, 4.0, 1")]
)
@pytest.mark.parametrize("place", ["file", "stdin"])
def test_the_order_of_a_file_counts(place: str, flag: str, expected: str, tmp_path: Path) -> None:
    data = header(_header((2, 3)).replace("False", flag), data=np.arange(6, dtype=np.float32).tobytes())
    (tmp_path / "x.npy").write_bytes(data)
    result = maxops("maximum", "-", stdin=data) if place == "stdin" else maxops("maximum", tmp_path / "x.npy")
    assert expected in result.stdout


PLACES = {
    "folder": (".", "is a folder"),
    "missing": ("nowhere.npy", "No such file or directory"),
    "below a file": ("x/y.npy", "Not a directory"),
    "a device without end": ("/dev/zero", "not a .npy file"),
    "a device without bytes": ("/dev/null", "is empty"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("place", PLACES)
def test_a_place_without_a_npy(
    place: str, reader: str, filled: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, words = PLACES[place]
    if reader == "run" and not name.endswith(".npy"):
        (tmp_path / "link.npy").symlink_to(name)
        name = "link.npy"
    line = line_of(*words_of(reader, name, filled))
    assert line.startswith((f"{name}: ", f"{name} "))
    assert words in line


@pytest.mark.parametrize(
    ("words", "start", "message"),
    [
        ("maximum -", b"", "not a .npy file"),
        ("segment-max {x} - --fill-mode ZERO", GOOD, "unexpected data after the array"),
        ("maximum -", header(_header((1 << 20,)), data=b""), "unexpected data after the array"),
        ("run {model} --input x=-", GOOD, "unexpected data after the array"),
        ("run {model} --input -", b"", "not a .npz file"),
    ],
)
def test_a_pipe_without_end_ends(words: str, start: bytes, message: str, filled: dict[str, Path]) -> None:
    (filled["x"].parent / "start").write_bytes(start)
    command = f"cat {filled['x'].parent / 'start'} /dev/zero | {sys.executable} -m maxops {words.format(**filled)}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(("maxops: error: stdin: ", "maxops: error: stdin "))
    assert message in done.stderr


# ----------------------------------------------------------------------------------------------- words of a command

GROUP: Any = typer.main.get_command(app)


def options(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "option"]


def _options() -> Iterator[Any]:
    """Yield each option of each command with a value."""
    for name, command in GROUP.commands.items():
        for param in options(command):
            if not param.is_flag:
                yield pytest.param(name, param, id=f"{name} {param.opts[0]}")


OPTIONS = list(_options())


@pytest.mark.parametrize(("command", "param"), OPTIONS)
def test_an_option_without_its_value_names_the_command(command: str, param: Any) -> None:
    for name in param.opts:
        line = line_of(command, name)
        assert line == f"Option '{name}' requires an argument; see maxops {command} --help"


@pytest.mark.parametrize(("command", "param"), OPTIONS)
def test_an_option_that_is_given_twice_is_not_taken_silently(command: str, param: Any) -> None:
    if param.multiple:
        return
    for first in param.opts:
        line = line_of(command, first, "1", param.opts[0], "2")
        text = f"{param.opts[0]}: specified 2 times, but can be specified only once"
        assert line == f"{text}; see maxops {command} --help"


def _files() -> Iterator[Any]:
    """Yield each parameter of each command that takes file names."""
    for name, command in GROUP.commands.items():
        module = import_module(f"maxops.cli.{COMMANDS[name][0]}")
        hints = get_type_hints(getattr(module, name.replace("-", "_")))
        for param in command.params:
            if "Path" in str(hints.get(param.name)):
                yield pytest.param(name, param, id=f"{name} {param.opts[0]}")


@pytest.mark.parametrize(("command", "param"), list(_files()))
def test_an_empty_file_name_is_not_the_current_folder(command: str, param: Any) -> None:
    """Test the empty string, which an unset shell variable leaves."""
    before = ["1" for each in GROUP.commands[command].params if each.required and each.name != param.name]
    option = [param.opts[0]] if param.param_type_name == "option" else []
    line = line_of(command, *before, *option, "")
    assert line.endswith(f": expected a file name, got an empty string; see maxops {command} --help")


OUTPUTS = {
    "run": "{model} --seed 1",
    "maximum": "{x}",
    "reduce-max": "{x}",
    "segment-max": "{x} {ids} --fill-mode ZERO",
    "check": "{model}",
    "conform": "numpy",
    "bench": "--quick",
    "evidence": "",
}


@pytest.mark.parametrize(("command", "words"), OUTPUTS.items())
def test_options_of_outputs_without_an_output_are_not_passed_over(
    command: str, words: str, filled: dict[str, Path]
) -> None:
    names = {name for param in options(GROUP.commands[command]) for name in param.opts}
    for option in names & {"--overwrite", "--parents"}:
        line = line_of(command, *words.format(**filled).split(), option)
        assert line == f"{option} has no effect without an output file; see maxops {command} --help"


def test_the_options_of_outputs_are_tested() -> None:
    found = {name for name, command in GROUP.commands.items() for param in options(command) if param.name == "parents"}
    assert {*OUTPUTS} == found - {"rewrite"}  # which always has an output


@pytest.mark.parametrize("words", ["--list --types", "--list --sizes", "--random 1 --libraries", "--list"])
def test_empty_names_of_cases_are_not_all_cases(words: str) -> None:
    assert "got an empty string" in line_of("bench", *words.split(), "")


@pytest.mark.parametrize("command", GROUP.commands)
def test_flags_that_say_both_are_not_taken_silently(command: str) -> None:
    for param in options(GROUP.commands[command]):
        if param.is_flag and param.secondary_opts:
            line = line_of(command, param.opts[0], param.secondary_opts[0])
            assert line.startswith(f"{param.opts[0]}/{param.secondary_opts[0]}: specified 2 times, ")
        elif param.is_flag and param.name != "help":  # repeating a flag is valid
            assert "specified 2 times" not in maxops(command, param.opts[0], param.opts[0], "--help").stderr


OF_A_LIBRARY = ("Input should", "Value error", "pydantic", "validation error", "unable to parse", "parse string")


def _typed() -> Iterator[Any]:
    """Yield each option that takes a number or one of several words, with invalid values."""
    for each in OPTIONS:
        command, param = each.values
        annotation = param.type_descriptor.annotation if hasattr(param, "type_descriptor") else None
        wrong = ["many", "", "1e", "\x1b[2J"] if annotation in (int, float) else []
        wrong += ["1.5", "nan"] if annotation is int else []
        wrong += ["no such word", ""] if "Literal" in str(annotation) else []
        for text in wrong:
            yield pytest.param(command, param, text, id=f"{each.id} {text!r}")
        for limit, text in ((getattr(param, "min", None), "-5"), (getattr(param, "max", None), "9" * 12)):
            if limit is not None:
                yield pytest.param(command, param, text, id=f"{each.id} {text}")


TYPED = list(_typed())


def test_there_are_numbers_and_choices() -> None:
    assert len(TYPED) > 40


@pytest.mark.parametrize(("command", "param", "text"), TYPED)
def test_a_wrong_value_is_told_in_our_words(command: str, param: Any, text: str) -> None:
    line = line_of(command, param.opts[0], text)
    assert line.startswith(f"'{param.opts[0]}': {text!r} is ")
    assert line.endswith(f"; see maxops {command} --help")
    assert [words for words in OF_A_LIBRARY if words in line] == []
    assert "\x1b" not in line


def test_a_long_value_is_not_repeated_in_full() -> None:
    assert len(line_of("run", "m.onnx", "--seed", "x" * 5000)) < 200


@pytest.mark.parametrize("command", GROUP.commands)
def test_an_unknown_option_and_a_word_too_many(command: str) -> None:
    assert line_of(command, "--no-such").startswith("No such option: --no-such")


FILL = "[maxops.segment_max.fill_mode]; see maxops segment-max --help"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            "ids",
            (
                "no value for empty segments is specified",
                "--fill-mode ZERO or LOWEST",
                "--fill-value VALUE",
                "--initial VALUE",
                FILL,
            ),
        ),
        ("ids --fill-mode nan", ("--fill-mode: expected 'ZERO' or 'LOWEST', got 'nan'", "--fill-value VALUE", FILL)),
        ("ids --fill-mode 0", ("expected 'ZERO' or 'LOWEST', got '0'", "--fill-value VALUE")),
        ("ids --fill-mode ZERO --fill-value 1", ("--fill-mode: cannot be combined with --fill-value; pass only one",)),
        ("ids --fill-mode ZERO --initial 1", ("--fill-mode: cannot be combined with --initial; pass only one",)),
        ("ids --fill-value 1 --initial 1", ("--fill-value: cannot be combined with --initial; pass only one",)),
        ("ids --fill-value no", ("--fill-value: expected a number, nan, inf, true or false, got 'no'",)),
        ("--fill-mode ZERO", ("IDS: ", "pass IDS or --offsets FILE")),
        ("ids --offsets ids --fill-mode ZERO", ("--offsets: cannot be combined with IDS", "pass only one")),
    ],
)
def test_what_segment_max_misses_is_told_by_its_options(
    words: str, message: tuple[str, ...], filled: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(filled["x"].parent)
    line = line_of("segment-max", "x", *words.split(" "))
    assert [each for each in message if each not in line] == [], line


@pytest.mark.parametrize("mode", ["ZERO", "zero", "Lowest"])
def test_a_fill_mode_in_any_case(mode: str, filled: dict[str, Path]) -> None:
    assert maxops("segment-max", filled["x"], filled["ids"], "--fill-mode", mode).exit_code == 0


@pytest.mark.parametrize("name", ["y.npy", "y.NPY", "y.npz", "x"])
@pytest.mark.parametrize("parents", [[], ["--parents"]])
def test_run_says_that_its_output_is_a_folder(
    name: str, parents: list[str], filled: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(filled["x"].parent)
    before = sorted(os.listdir())
    line = line_of("run", "model", "--seed", 1, "--output", name, *parents)
    why = "Not a directory" if name == "x" else "expected a folder, got a file name"
    assert line.startswith(f"{name} cannot be written: {why}; pass a folder")
    assert sorted(os.listdir()) == before


# ------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("command", ["", *GROUP.commands])
def test_help_is_whole_and_without_types_of_python(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("TERMINAL_WIDTH", "1000")
    shown = maxops(*filter(None, [command]), "--help").stdout
    assert re.findall(r"<(?:bool|str|int|float|path|list|file|int range|float range)\b[^>]*>", shown) == []
    plain = re.sub(r"\s+", " ", Text.from_ansi(shown).plain)
    for param in (GROUP.commands[command] if command else GROUP).params:
        assert re.sub(r"\s+", " ", param.help or "") in plain, "markup took a part of it"


# ------------------------------------------------------------------------------------------------------------ check


def checked(folder: Path, count: int = 1, nodes: int = 1) -> Path:
    body = [node("Max", ["x"], f"y{number}") for number in range(nodes)]
    proto = model(body, [value("x", (4,), TensorProto.FLOAT)], [value("y0", (4,), TensorProto.FLOAT)])
    for number in range(count):
        (folder / f"m{number}.onnx").write_bytes(proto.SerializeToString())
    return folder / "m0.onnx"


FORMS = {"sarif": '"$schema"', "json": '"reports"', "text": "max node", "concise": "", "github": ""}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a model and the output of a command in each format."""
    path = checked(tmp_path_factory.mktemp("forms"))
    return path, {form: maxops("check", path, "--format", form, "--all").stdout for form in FORMS}


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("r.sarif", "sarif"),
        ("r.SARIF", "sarif"),
        ("r.sarif.json", "sarif"),
        ("r.json", "json"),
        ("r.Json", "json"),
        ("r.txt", "concise"),
        ("r.log", "concise"),
        ("r", "concise"),
        ("sarif", "concise"),
        (".sarif", "concise"),
    ],
)
def test_check_writes_the_form_of_the_suffix(
    name: str, form: str, forms: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    path, printed = forms
    assert maxops("check", path, "--output", tmp_path / name, "--all").exit_code == 0
    assert (tmp_path / name).read_text() == printed[form]
    assert FORMS[form] in printed[form]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["r.sarif", "r.json", "r.txt"])
def test_check_writes_an_explicit_form(
    name: str, form: str, forms: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    path, printed = forms
    assert maxops("check", path, "--output", tmp_path / name, "--all", "--format", form).exit_code == 0
    assert (tmp_path / name).read_text() == printed[form]


@pytest.mark.parametrize("suffix", [".xml", ".html", ".htm", ".csv", ".md", ".yaml", ".PDF"])
def test_check_writes_no_other_form_under_a_suffix_silently(suffix: str, tmp_path: Path) -> None:
    path = checked(tmp_path)
    line = line_of("check", path, "--output", tmp_path / f"r{suffix}")
    assert line.startswith(f"--output: {tmp_path}/r{suffix}: unsupported report suffix {suffix.lower()}; ")
    assert not (tmp_path / f"r{suffix}").exists()
    assert maxops("check", path, "--output", tmp_path / f"r{suffix}", "--format", "json").exit_code == 0


@pytest.mark.parametrize("nodes", [0, 1, 2])
@pytest.mark.parametrize("standard", [[], ["--standard", "sonnx"], ["--standard", "openvino"]])
def test_numbers_agree_with_their_nouns(nodes: int, standard: list[str], tmp_path: Path) -> None:
    if nodes:
        checked(tmp_path, 1, nodes)
    else:
        proto = model([node("Identity", ["x"], "y")], ["x"])
        (tmp_path / "m0.onnx").write_bytes(proto.SerializeToString())
    shown = maxops("check", tmp_path, "--format", "text", *standard).stdout
    assert f"{nodes} max node{'s' * (nodes != 1)}, " in shown
    assert re.findall(r"\b1 (?:max nodes|clauses|are|hold|models)\b", shown) == []
    assert re.findall(r"\b(?:0|[2-9]|\d\d+) (?:max node|clause|is|holds)\b", shown) == []


SLOW_CHECK = """
import sys
from maxops.cli import main, progress
progress.AFTER_SECONDS = {after}
main()
"""


@pytest.mark.parametrize(("after", "bar"), [(-1, True), (600, False)], ids=["long", "short"])
def test_check_of_many_models_shows_how_far_it_is(after: float, bar: bool, tmp_path: Path) -> None:
    checked(tmp_path, 3)
    seen = _on_terminal([sys.executable, "-c", SLOW_CHECK.format(after=after), "check", str(tmp_path)])
    assert ("/3" in seen) is bar
    assert bar or seen == ""


def test_no_progress_of_check_in_a_pipe(tmp_path: Path) -> None:
    checked(tmp_path, 3)
    command = [sys.executable, "-c", SLOW_CHECK.format(after=-1), "check", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ----------------------------------------------------------------------------------------------------- installation


def _wheel(folder: Path, name: str, metadata: str, tag: str = "py3-none-any") -> None:
    with zipfile.ZipFile(folder / f"{name}-1.0-{tag}.whl", "w") as archive:
        archive.writestr(f"{name}.py", "")
        info = f"{name}-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}")
        archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
        archive.writestr(f"{info}/RECORD", "")


def _lines_of_wheels() -> Iterator[tuple[str, str]]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for line in re.findall(r"python -m pip install --find-links [^`\n]*", page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), line


LINES = dict(_lines_of_wheels())


def test_pages_say_how_a_wheel_is_installed() -> None:
    assert list(LINES) == ["README.md", "docs/install.md"]
    # maxops is in no package index, so pages name the extra and link to this page
    pages = sorted((ROOT / "docs").rglob("*.md"))
    assert [page.name for page in pages if 'install "maxops[' in page.read_text(encoding="utf-8")] == ["install.md"]


@pytest.mark.parametrize("shell", [*filter(shutil.which, ["sh", "bash", "dash", "zsh"])])
def test_the_line_for_a_wheel_brings_what_the_command_needs(shell: str, tmp_path: Path) -> None:
    """Test the command as documented, with wheels for maxops, for another version of Python and for a dependency."""
    _wheel(tmp_path, "maxops", "Provides-Extra: onnx\nRequires-Dist: maxops_extra ; extra == 'onnx'\n")
    _wheel(tmp_path, "maxops", "", "cp27-cp27m-win32")
    (tmp_path / "index").mkdir()
    _wheel(tmp_path / "index", "maxops_extra", "")
    settings = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "index", "PIP_TARGET": "target", "PIP_CONFIG_FILE": os.devnull}
    line = LINES["README.md" if shell in ("sh", "zsh") else "docs/install.md"]
    command = line.replace("python", f'"{sys.executable}"', 1)
    done = subprocess.run(
        [shell, "-c", command],
        cwd=tmp_path,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"maxops.py", "maxops_extra.py"} <= set(os.listdir(tmp_path / "target"))


def test_make_docs_says_what_to_install(tmp_path: Path) -> None:
    lonely = tmp_path / "python"
    lonely.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    lonely.chmod(0o755)
    command = ["make", "--no-print-directory", "docs", f"PYTHON={lonely}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    needs = f'make install && {lonely} -m pip install "pip>=25.1" && {lonely} -m pip install --group docs'
    assert done.stderr.splitlines()[0] == f"make docs needs packages that are not installed: {needs}"
