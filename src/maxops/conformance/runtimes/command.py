"""A runtime for programs that read a model and its inputs from a test folder, and write the outputs there."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import onnx
from onnx import ModelProto

from maxops.conformance import folder as case_folder
from maxops.conformance import ir_model, onnx_model
from maxops.conformance.case import Call, Feed
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, GarbageError, ProcessEndedError, Runtime
from maxops.conformance.subprocesses import signal_name
from maxops.dtypes import BFLOAT16
from maxops.errors import ModelInputError
from maxops.onnx.tensors import read_tensor_file
from maxops.plan import Array

PREFIX = "command:"
_OF_SIGNAL = 128
_NAMES_OF_CRASHES = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGKILL", "SIGSEGV")
_CRASHES = tuple(getattr(signal, name) for name in _NAMES_OF_CRASHES if hasattr(signal, name))  # Windows lacks some


class CommandError(Exception):
    """Raised if the program refuses the model with a nonzero exit status."""


REFUSED = CommandError.__name__  # marks a refusal in the output of a script


class Command(Runtime):
    """A program, given as "command:./program arguments". Its last argument is the folder.

    The folder contains model.onnx, and test_data_set_N/input_K.pb for each feed. For an operator that ONNX lacks, it
    contains model.xml, model.bin and input_K.npy. The program writes output_0.pb (or output_0.npy) next to the inputs,
    and ends with status 0. Termination by a signal is a crash. Any other status means that the program refuses the
    model, and the last line of stderr is the reason.
    """

    claims: ClassVar[frozenset[str]] = frozenset({"ONNX", "OpenVINO"})
    versioned = True
    takes_arrays = False

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            self.words: list[str] = shlex.split(name.removeprefix(PREFIX))
        except ValueError as error:
            raise BrokenRuntimeError(f"{name!r} is not a valid command line: {error}") from error
        if not self.words or shutil.which(self.words[0]) is None:
            raise BrokenRuntimeError(
                f"{name!r}: the program {' '.join(self.words[:1])!r} does not exist or is not executable"
            )

    def start(self) -> None:
        """Do nothing, because a program needs no import."""

    @property
    def version(self) -> str:
        """Return no version, because a program cannot report one."""
        return ""

    def run(self, call: Call, feeds: Sequence[Feed]) -> list[Array]:
        """Run the program once, on one folder with all feeds."""
        with TemporaryDirectory(prefix="maxops-conform-") as name:
            folder = Path(name)
            for file, data in case_folder.model_files(call).items():
                (folder / file).write_bytes(data)
            for number, feed in enumerate(feeds):
                case_folder.write_data_set(_data_set(folder, number), call, feed)
            self._run(folder)
            is_ir = case_folder.is_ir(call)
            return [_output(_data_set(folder, number), is_ir=is_ir) for number in range(len(feeds))]

    def run_model(self, model: ModelProto, inputs: Mapping[str, Array], count: int) -> list[Array]:
        """Run a whole model on one set of inputs, given by name. `count` is the number of outputs."""
        with TemporaryDirectory(prefix="maxops-run-") as name:
            folder = Path(name)
            data_set = _data_set(folder, 0)
            data_set.mkdir()
            onnx.save(model, folder / "model.onnx")
            names = [each.name for each in model.graph.input if each.name in inputs]
            for number, each in enumerate(names):
                onnx.save_tensor(onnx.numpy_helper.from_array(inputs[each], each), data_set / f"input_{number}.pb")
            self._run(folder)
            return [_output(data_set, is_ir=False, number=number) for number in range(count)]

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Return lines that run the program on one feed."""
        del feed
        named = f"{{{', '.join(f'{each.name!r}: {each.name}' for each in call.fed)}}}"
        start = [
            "import pathlib, subprocess, tempfile",
            "folder = pathlib.Path(tempfile.mkdtemp())",
            '(test_data_set := folder / "test_data_set_0").mkdir()',
        ]
        # the current folder of the kit, because the command may contain relative paths
        ran = [
            f"done = subprocess.run([*{self.words!r}, str(folder)], cwd={os.getcwd()!r},",
            '    stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")',
            "if done.returncode:",
            f"    crashed = done.returncode < 0 or done.returncode - {_OF_SIGNAL} in {tuple(map(int, _CRASHES))}",
            f'    how = "crashed" if crashed else "{REFUSED}"',
            '    raise SystemExit(f"{how}: ended with status {done.returncode}: {done.stderr.strip()[-300:]}")',
        ]
        if case_folder.is_ir(call):
            text, weights = ir_model.ir(call, one_line=True)
            return [
                *start,
                f'(folder / "model.xml").write_text({text!r})',
                f'(folder / "model.bin").write_bytes({weights!r})',
                f"for number, array in enumerate({named}.values()):",
                '    np.save(test_data_set / f"input_{number}.npy", array)',
                *ran,
                'actual = np.load(test_data_set / "output_0.npy")',
                *(["actual = actual.view(ml_dtypes.bfloat16)"] if call.dtype == BFLOAT16 else []),
            ]
        return [
            *onnx_model.lines(call),
            *start,
            'onnx.save(model, folder / "model.onnx")',
            f"for number, (name, array) in enumerate({named}.items()):",
            '    onnx.save_tensor(onnx.numpy_helper.from_array(array, name), test_data_set / f"input_{number}.pb")',
            *ran,
            'actual = onnx.numpy_helper.to_array(onnx.load_tensor(test_data_set / "output_0.pb"))',
        ]

    def _run(self, folder: Path) -> None:
        command = [*self.words, str(folder)]
        done = subprocess.run(command, check=False, capture_output=True, stdin=subprocess.DEVNULL)
        # a shell whose program is killed by a signal ends with 128 plus the signal's number
        number = -done.returncode if done.returncode < 0 else done.returncode - _OF_SIGNAL
        if done.returncode < 0 or number in _CRASHES:
            raise ProcessEndedError(f"{self.words[0]} was killed by {signal_name(number)}")
        if done.returncode > 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise CommandError(said[-1] if said else f"ended with status {done.returncode} and no message")


def _data_set(folder: Path, number: int) -> Path:
    return folder / f"test_data_set_{number}"


def _output(folder: Path, *, is_ir: bool, number: int = 0) -> Array:
    path = folder / f"output_{number}.{'npy' if is_ir else 'pb'}"
    where = f"{folder.name}/{path.name}"
    if not path.is_file():
        raise GarbageError(f"the program ended with status 0, but did not write {where}")
    try:
        array = np.load(path, allow_pickle=False) if is_ir else read_tensor_file(path)[1]
    except (ModelInputError, OSError, ValueError, EOFError) as error:
        text = str(error).replace(str(path), where)
        raise GarbageError(text if text.startswith(where) else f"{where}: {text}") from error
    # NumPy saves bfloat16 as two untyped bytes
    return array.view(BFLOAT16.numpy) if array.dtype.str == "|V2" else np.asarray(array)
