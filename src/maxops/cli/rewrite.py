"""`maxops rewrite`: a model with its max operators moved to our domain."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from maxops.atomic_files import atomic_write, errors_of
from maxops.errors import OutputError


def rewrite(
    model: Annotated[Path, typer.Argument(metavar="IN", help="A .onnx file.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write.")],
) -> None:
    """Move an ONNX model's Max and ReduceMax to the domain "maxops", so that ONNX Runtime runs them on our kernels."""
    from maxops.onnx import external  # noqa: PLC0415  (onnx takes longer to import than most commands to run)
    from maxops.onnx.load import read  # noqa: PLC0415
    from maxops.onnx.rewrite import counts  # noqa: PLC0415
    from maxops.onnx.rewrite import rewrite as moved  # noqa: PLC0415

    proto = read(model)
    data = external.files(proto, model, str(model))
    result = moved(proto)
    for path, what in ((model, "the model itself"), *((path, "the model's data") for path in data.values())):
        if output.exists() and output.samefile(path):
            raise OutputError(f"{output}: is {what}; give another file")
    if os.path.realpath(output) in (os.path.realpath(output.parent / location) for location in data):
        raise OutputError(f"{output}: is where the model's data goes; give another file")
    copied = external.copies(data, output.parent)
    with atomic_write(make_folders=True) as temporary:
        for target, path in copied.items():
            with errors_of(target):
                shutil.copyfile(path, temporary(target))
        with errors_of(output):
            temporary(output).write_bytes(result.SerializeToString())
    listed = ", ".join(f"{count} {operator}" for operator, count in counts(result).items()) or "no max operators"
    print(f"{output}: {listed} in the domain maxops")
    if counts(result):
        print("a session that runs it needs maxops.onnxruntime.register(session_options)")
