"""Writes a case to a folder for other tools: an ONNX test folder, or an IR with its arrays.

model.onnx                                   or model.xml and model.bin
test_data_set_N/input_K.pb, output_0.pb      or input_K.npy, output_0.npy
refusal.txt                                  replaces the outputs if the model must be refused
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onnx import numpy_helper

from maxops.atomic_files import TemporaryPath, errors_of, save_npy
from maxops.conformance import onnx_model
from maxops.conformance.case import Call, Case, Feed, Trial
from maxops.conformance.ir_model import ir
from maxops.conformance.runtimes.runtime import NotApplicableError
from maxops.errors import OutputError
from maxops.plan import Array

REFUSAL = "refusal.txt"
MAX_ELEMENTS = 100_000  # per array, so that all folders fit on a disk
MAX_DATA_SETS = 50  # per folder, because tools read each data set from its own files


def folder_name(case: Case) -> str:
    """Return the folder name of a case. It has no path separators, because other tools do not search subfolders.

    >>> from maxops.conformance.cases import cases
    >>> folder_name(next(cases()))
    'ONNX.Max-1.T__float16__two-short-vectors'
    """
    return case.id.replace("/", "__")


def spread(count: int, most: int = MAX_DATA_SETS) -> list[int]:
    """Return the numbers of at most `most` evenly spaced feeds out of `count`, including the first and the last.

    >>> spread(9, 3)
    [0, 4, 8]
    """
    return list(range(count)) if count <= most else [number * (count - 1) // (most - 1) for number in range(most)]


def write(case: Case, directory: Path, temporary: TemporaryPath, numbers: Sequence[int] | None = None) -> Path:
    """Write a case to a new folder in a directory, and return the path of the folder.

    The files are written to the path that `temporary` returns, so that a command writes all cases or none. Each feed
    is a data set. `numbers` selects some feeds, which keep their order and are renumbered. Raises NotApplicableError,
    before anything is written, for a trial that the files cannot contain. Raises OutputError if the folder exists or
    cannot be written.
    """
    trial = case.make()
    _check_that_files_hold_it(trial)
    files = model_files(trial.call)
    final = directory / folder_name(case)
    with errors_of(final):
        if final.exists():
            raise OutputError(f"{final} already exists; pass an empty folder")
        folder = temporary(final)
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)
        for position, number in enumerate(range(len(trial.feeds)) if numbers is None else sorted(numbers)):
            expected = None if trial.expected is None else trial.expected[number]
            write_data_set(folder / f"test_data_set_{position}", trial.call, trial.feeds[number], expected)
        if case.refusal:
            clause = case.clause
            text = f"{case.id}\n\nThe model must be refused: {clause.statement}\n({clause.source}) [{clause.id}]\n"
            (folder / REFUSAL).write_text(text, encoding="utf-8")
    return final


def _check_that_files_hold_it(trial: Trial) -> None:
    if trial.layout != "contiguous":
        raise NotApplicableError("files can hold only contiguous arrays")
    if any(array.size > MAX_ELEMENTS for feed in trial.feeds for array in feed):
        raise NotApplicableError(f"an array has more than {MAX_ELEMENTS} elements")


def is_ir(call: Call) -> bool:
    """Return whether a call's model is an OpenVINO IR. Its arrays are then saved as .npy files."""
    return call.row.standard == "OpenVINO"


def model_files(call: Call) -> dict[str, bytes]:
    """Return the files of a call's model. Raise NotApplicableError for a call that a model cannot express."""
    if not is_ir(call):
        return {"model.onnx": onnx_model.model(call).SerializeToString(deterministic=True)}
    text, weights = ir(call)
    return {"model.xml": text.encode(), "model.bin": weights}


def write_data_set(folder: Path, call: Call, feed: Feed, expected: Array | None = None) -> None:
    """Write a folder with a feed, and with the expected result if there is one."""
    folder.mkdir()
    arrays = {
        f"input_{number}": (each.name, array) for number, (each, array) in enumerate(zip(call.fed, feed, strict=True))
    }
    if expected is not None:
        arrays["output_0"] = onnx_model.OUTPUT, expected
    for file, (name, array) in arrays.items():
        if is_ir(call):
            save_npy(folder / f"{file}.npy", array)
        else:
            data = numpy_helper.from_array(array, name).SerializeToString(deterministic=True)
            (folder / f"{file}.pb").write_bytes(data)
