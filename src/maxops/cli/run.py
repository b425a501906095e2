"""`maxops run`: a model on files, or on the data of its own test folder."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from maxops import dtypes
from maxops.cli.compare import difference
from maxops.cli.files import as_bfloat16, file_name, read_npy, read_npz, write_npy
from maxops.cli.progress import progress
from maxops.cli.table import first_values, printable, show, show_arrays
from maxops.errors import ModelInputError
from maxops.model import type_name
from maxops.plan import Array

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.onnx import Model
    from maxops.onnx.suite import DataSet

DIFFERENT = 1


def run(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A .onnx file, or an OpenVINO IR (.xml); or a folder with model.onnx and "
            "test_data_set_*/{input,output}_*.pb, which runs on its own data unless inputs are given.",
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="NAME=FILE",
            help="An input from a .npy or .pb file. A .npz, or a .pb whose tensor has a name, needs no NAME=.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write each output to NAME.npy in this folder (in a folder of each data set, if there are several)."
        ),
    ] = None,
) -> None:
    """Run an ONNX model or an OpenVINO IR, its max operators on our kernels; on its own data, compare bit for bit."""
    from maxops.onnx import load, suite  # noqa: PLC0415  (see above)

    loaded = (
        _load_ir(model) if model.suffix.lower() == ".xml" else load(model / suite.MODEL if model.is_dir() else model)
    )
    folders = suite.data_set_folders(model) if model.is_dir() and not given else []
    if not folders:
        results = _compute(loaded, _inputs(loaded, given or []))
        show_arrays(results)
        _show_placements(loaded)
        if output is not None:
            write_npy({output / file_name(name): array for name, array in results.items()})
        return
    files: dict[Path, Array] = {}
    different = False
    for folder in folders:
        data = suite.read_data_set(folder, loaded)
        results = _compute(loaded, data.inputs)
        different |= _show_compared(data, results)
        place = Path() if len(folders) == 1 else Path(folder.name)
        files |= {place / file_name(name): array for name, array in results.items()}
    _show_placements(loaded)
    if output is not None:
        write_npy({output / path: array for path, array in files.items()})
    if different:
        raise typer.Exit(DIFFERENT)


def _load_ir(path: Path) -> Model:
    """An IR, with what its reader warns of as lines of their own."""
    from maxops.openvino import load  # noqa: PLC0415  (see above)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loaded = load(path)
    for warning in caught:
        print(f"maxops: warning: {warning.message}", file=sys.stderr)
    return loaded


def _compute(model: Model, inputs: dict[str, Array]) -> dict[str, Array]:
    with progress(model.source) as stage:
        return model.run(
            inputs, progress=lambda number, count, label: stage(f"{number + 1} of {count}: {printable(label)}")
        )


def _show_placements(model: Model) -> None:
    if model.placements:
        print()
        show(("operator", "nodes", "ran on"), [(row.operator, str(row.nodes), row.runs_on) for row in model.placements])


def _show_compared(data: DataSet, results: dict[str, Array]) -> bool:
    """Print a data set's outputs and whether they agree; whether any differs."""
    differences = {name: difference(array, data.expected[name]) for name, array in results.items()}
    print(f"{data.name}:")
    show(
        ("output", "type", "shape", "first values", "bit for bit"),
        [
            (
                name,
                type_name(array),
                str(array.shape),
                first_values(array),
                f"DIFFERS: {differences[name]}" if differences[name] else "agrees",
            )
            for name, array in results.items()
        ],
    )
    agree = sum(not text for text in differences.values())
    print(f"{agree} of {len(differences)} outputs agree bit for bit")
    return agree < len(differences)


def _inputs(model: Model, given: list[str]) -> dict[str, Array]:
    declared = {value.name: value for value in model.inputs}
    arrays: dict[str, Array] = {}
    for argument in given:
        for name, array in _named_arrays(argument):
            if name in arrays:
                raise ModelInputError(f"--input {argument}: input {name!r} is given twice")
            bfloat16 = name in declared and declared[name].dtype is dtypes.BFLOAT16
            arrays[name] = as_bfloat16(array) if bfloat16 else array
    if missing := [value for value in model.required if value.name not in arrays]:
        listed = ", ".join(map(str, missing))
        raise ModelInputError(f"{model.source}: no file is given for {listed}; give each as --input NAME=FILE")
    return arrays


def _named_arrays(argument: str) -> Iterator[tuple[str, Array]]:
    from maxops.onnx.tensors import read_tensor_file  # noqa: PLC0415  (see above)

    name, equals, rest = argument.partition("=")
    bare = not equals or Path(argument).is_file()
    path = Path(argument if bare else rest)
    kind = path.suffix.lower()
    if kind not in (".npy", ".npz", ".pb"):
        raise ModelInputError(f"--input {argument}: {path} is not a .npy, .npz or .pb file by its name")
    if kind == ".npz":
        if not bare:
            raise ModelInputError(f"--input {argument}: a .npz file names its arrays itself; give --input {path}")
        yield from read_npz(path).items()
    elif kind == ".npy":
        if bare:
            raise ModelInputError(f"--input {argument}: a .npy file has no name in it; give --input NAME={path}")
        yield name, read_npy(path)
    else:
        own_name, array = read_tensor_file(path)
        if bare and not own_name:
            raise ModelInputError(f"--input {argument}: the tensor has no name; give --input NAME={path}")
        yield own_name if bare else name, array
