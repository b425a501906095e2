"""Reads the inputs of `maxops run` from files, and generates missing inputs randomly."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from maxops import dtypes
from maxops.cli import random_inputs, streams
from maxops.cli.files import as_bfloat16, read_npy, read_npz
from maxops.errors import ModelInputError
from maxops.model import Value
from maxops.plan import Array

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.onnx import Model


def read_inputs(
    model: Model, named: list[tuple[str, Path]], seed: int | None, sizes: Mapping[str, int], *, special: bool
) -> dict[str, Array]:
    """Return the arrays of the --input files by name, and with a seed also random arrays for the missing inputs."""
    declared = {value.name: value for value in model.inputs}
    arrays: dict[str, Any] = {}
    for own_name, path in named:
        if own_name in declared and declared[own_name].container:
            if own_name in arrays:
                raise ModelInputError(f"--input {_argument(own_name, path)}: input {own_name!r} is specified twice")
            arrays[own_name] = _held(declared[own_name], path)
            continue
        for name, array in _named_arrays(own_name, path):
            if name in arrays:
                raise ModelInputError(f"--input {_argument(own_name, path)}: input {name!r} is specified twice")
            bfloat16 = name in declared and declared[name].dtype is dtypes.BFLOAT16
            arrays[name] = as_bfloat16(array) if bfloat16 else array
    missing = [value for value in model.required if value.name not in arrays]
    if seed is not None:
        in_files = random_inputs.sizes_of(model.inputs, arrays)
        random_inputs.check_sizes(missing, sizes, in_files, model.source)
        known = in_files | dict(sizes)
        for value in missing:
            arrays[value.name] = random_inputs.draw(value, seed, known, model.source, special=special)
    elif missing:
        listed = ", ".join(map(str, missing))
        unknown = ", ".join(repr(name) for name in arrays if name not in declared)
        not_there = f" (the model has no input {unknown})" if unknown else ""
        raise ModelInputError(
            f"{model.source}: missing inputs {listed}{not_there}; pass --input NAME=FILE for each, or --seed N to "
            "generate them randomly"
        )
    return arrays


def _held(value: Value, path: Path) -> Any:
    """Return the value of a sequence or an optional from its file: a list of arrays, or an array."""
    from maxops.onnx.tensors import read_held_file  # noqa: PLC0415  (see above)

    kind = path.suffix.lower()
    if kind == ".pb":
        return read_held_file(path, value.container)
    is_list = value.container.endswith("sequence")
    if kind != (".npz" if is_list else ".npy") and not streams.is_pipe(path):
        file = "a .npz file of its arrays" if is_list else "a .npy file"
        raise ModelInputError(f"--input {value.name}={path}: input {value} requires {file} or a .pb file")
    arrays = [*read_npz(path).values()] if is_list else [read_npy(path)]
    arrays = [as_bfloat16(array) if value.dtype is dtypes.BFLOAT16 else array for array in arrays]
    return arrays if is_list else arrays[0]


def split_argument(argument: str) -> tuple[str, Path]:
    """Split the value of --input into the name, which may be "", and the file.

    The name and the file may contain "=". Therefore, the value is split at the first "=" before the name of an existing
    file.
    """
    parts = argument.split("=")
    splits = [("=".join(parts[:number]), "=".join(parts[number:])) for number in range(len(parts))]
    there = (split for split in splits if os.path.isfile(split[1]) or streams.is_pipe(Path(split[1])))
    name, file = next(there, splits[min(1, len(splits) - 1)])
    if not file:
        raise typer.BadParameter(f"expected NAME=FILE or a file name, got {argument!r}", param_hint="--input")
    return name, Path(file)


def _argument(name: str, path: Path) -> str:
    return f"{name}={path}" if name else str(path)


def _named_arrays(name: str, path: Path) -> Iterator[tuple[str, Array]]:
    from maxops.onnx.tensors import read_tensor_file  # noqa: PLC0415  (see above)

    argument = _argument(name, path)
    if streams.is_pipe(path):
        if name:
            yield name, read_npy(path)
        else:
            yield from read_npz(path).items()
        return
    kind = path.suffix.lower()
    if kind not in (".npy", ".npz", ".pb"):
        raise ModelInputError(f"--input {argument}: expected a file name ending in .npy, .npz or .pb")
    if kind == ".npz":
        if name:
            raise ModelInputError(f"--input {argument}: a .npz file contains the input names; pass --input {path}")
        yield from read_npz(path).items()
    elif kind == ".npy":
        if not name:
            raise ModelInputError(f"--input {argument}: a .npy file contains no input name; pass --input NAME={path}")
        yield name, read_npy(path)
    else:
        own_name, array = read_tensor_file(path, any_type=True)
        if not name and not own_name:
            raise ModelInputError(f"--input {argument}: the tensor has no name; pass --input NAME={path}")
        yield name or own_name, array
