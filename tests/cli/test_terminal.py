"""Terminal output: colors, words that stay whole at any width, and the modules that it imports."""

from __future__ import annotations

import fcntl
import functools
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

pytest.importorskip("onnx")

import onnx
from rich.text import Text

from maxops.cli.app import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
MODEL = """
<ir_version: 8, opset_import: ["": 18]>
g (float[batch, 3] a, float[4] b, float[3] c) => (float[batch, 3] y) { [wrong] m = Max(a, b) [right] y = Max(a, c) }"""


@functools.cache
def on_terminal(width: int, *words: str) -> str:
    """Return the output of a command on a terminal of this width, with colors."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    env = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    command = [sys.executable, "-m", "maxops", *words]
    env |= {"TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=inner, stderr=inner, env=env):
        os.close(inner)
        printed = b""
        while True:
            try:
                printed += (more := os.read(outer, 1 << 16))
            except OSError:  # Linux reports this when the last writer has closed
                break
            if not more:
                break
    os.close(outer)
    return printed.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a model that violates a clause."""
    path = tmp_path_factory.mktemp("terminal") / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return str(path)


def test_a_terminal_of_a_few_columns_loses_no_letter(model: str) -> None:
    shown = "".join(Text.from_ansi(on_terminal(12, "check", model)).plain.split())
    for words in ("ONNX.Max-13.shape", "multidirectional", "broken", "graph/node"):
        assert words in shown


@pytest.mark.parametrize("width", [120, 40])
def test_names_are_whole_at_any_width(width: int, model: str) -> None:
    shown = Text.from_ansi(on_terminal(width, "check", model)).plain
    for word in ("ONNX.Max-13.shape", "multidirectional", "broadcasting", "'wrong'", "unknown"):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= max(width, len(model) + 1)
    shown = Text.from_ansi(on_terminal(width, "run", str(ROOT / "examples" / "detector"))).plain
    for word in ("confidence_stride16", "class_scores", "float32", "-1.9700826,", "agrees"):
        assert word in shown
    assert max(map(len, shown.splitlines())) <= width


def test_a_report_has_one_layout_and_no_column_of_single_words(model: str) -> None:
    for width in (60, 100, 120):
        lines = Text.from_ansi(on_terminal(width, "check", model)).plain.splitlines()
        assert lines == [line.rstrip() for line in lines]
        blocks = [line for line in lines if line.startswith(("verdict ", "judged by "))]
        tables = [line for line in lines if line.startswith("\N{BOX DRAWINGS HEAVY DOWN AND RIGHT}")]
        assert (len(tables), bool(blocks)) == ((2, False) if width >= 120 else (0, True)), width
    assert "float16, bfloat16, float32, float64, int8 to int64" in " ".join(on_terminal(60, "operators").split())


def test_fewer_values_on_a_narrow_terminal() -> None:
    detector = str(ROOT / "examples" / "detector")
    wide, narrow = (on_terminal(width, "run", detector) for width in (240, 80))
    assert "-2.0650315, -1.6674638, ..." in wide
    assert "-2.0650315" not in narrow


def test_a_verdict_has_a_color_and_a_sign(model: str) -> None:
    shown = on_terminal(80, "check", model)
    assert re.search(r"\x1b\[[\d;]*31m\N{BALLOT X} broken", shown)
    assert re.search(r"\x1b\[[\d;]*32m\N{CHECK MARK} holds", shown)
    piped = subprocess.run(
        [sys.executable, "-m", "maxops", "check", model, "--format", "text"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert re.search(r"│ broken +│", piped)


def test_evidence_is_a_screen_and_more_if_asked() -> None:
    assert len(on_terminal(80, "evidence").splitlines()) <= 24
    assert "order.keys" not in on_terminal(80, "evidence")
    assert "order.keys" in on_terminal(80, "evidence", "-v")


def test_a_clause_is_wrapped_between_words() -> None:
    lines = on_terminal(90, "clause", "ONNX.ReduceMax-20.empty").splitlines()
    assert max(map(len, lines)) <= 90
    assert any(line.startswith("  why:      The maximum of no elements") for line in lines)


@pytest.mark.parametrize("option", ["--version", "-h"])
def test_the_first_answers_import_little(option: str) -> None:
    code = f"import sys; sys.argv = ['maxops', {option!r}]; from maxops.cli import main; main()"
    imported = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, check=True
    ).stderr
    names = set(re.findall(r"\| +([\w.]+)$", imported, re.MULTILINE))
    assert "maxops.cli.app" in names
    modules = {f"maxops.cli.{module}" for module, _ in COMMANDS.values()}
    assert names & {"rich.console", "onnx", "importlib.metadata", *modules} == set()


def test_each_command_is_listed_in_a_line_of_80_columns() -> None:
    lines = on_terminal(80, "-h").splitlines()
    for name, (_, says) in COMMANDS.items():
        assert any(line.split() == [name, *says.split()] for line in lines)
