"""`maxops rewrite`: a model with its max operators moved to our domain."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from maxops.cli.files import errors_of, written_whole
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
    if output.exists() and output.samefile(model):
        raise OutputError(f"{output}: is the model itself; give another file")
    data = external.files(proto, model.parent, str(model))
    result = moved(proto)
    external.copy_files(data, output.parent)
    with written_whole([output]) as partial, errors_of(output):
        partial[output].write_bytes(result.SerializeToString())
    listed = ", ".join(f"{count} {operator}" for operator, count in counts(result).items()) or "no max operators"
    print(f"{output}: {listed} in the domain maxops")
    if counts(result):
        print("a session that runs it needs maxops.onnxruntime.register(session_options)")
