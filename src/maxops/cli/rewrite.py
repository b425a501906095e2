"""`maxops rewrite`: moves the max operators of a model to the domain `maxops`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from maxops.atomic_files import atomic_write, errors_of
from maxops.cli import streams
from maxops.counted import counted
from maxops.errors import MaxopsError, ModelError, OutputError
from maxops.shown import printable


def rewrite(
    model: Annotated[Path, typer.Argument(metavar="IN", help="A .onnx file; - is stdin.")],
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write; - is stdout.")],
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Move the max nodes of an ONNX model to the domain "maxops", so that ONNX Runtime runs them with maxops."""
    from maxops.onnx import external  # noqa: PLC0415  (onnx takes longer to import than most commands to run)
    from maxops.onnx.load import parse, read, to_bytes  # noqa: PLC0415
    from maxops.onnx.rewrite import counts, inlined_functions  # noqa: PLC0415
    from maxops.onnx.rewrite import rewrite as moved  # noqa: PLC0415

    streams.check_outputs([output], [model], overwrite=overwrite, parents=parents)
    is_streamed = streams.is_stream(model)
    proto = parse(streams.read_model(model), streams.STDIN) if is_streamed else read(model)
    if (is_streamed or streams.is_stream(output)) and any(external.external_tensors(proto)):
        raise ModelError(f"{streams.name_of(model)}: a model with external data requires files, got -")
    data = {} if is_streamed else external.files(proto, model, str(model))
    try:
        result = moved(proto)
    except MaxopsError as error:
        raise error.at(streams.name_of(model)) from error
    content = to_bytes(result, streams.name_of(model))
    kept = streams.stdout_kept_for([output])
    if streams.is_stream(output):
        streams.write_stdout(content)
    else:
        for path in data.values():
            if output.exists() and output.samefile(path):
                raise OutputError(f"{output} is a data file of the model; choose another output file")
        if os.path.realpath(output) in (os.path.realpath(output.parent / location) for location in data):
            raise OutputError(f"{output} is reserved for data of the model; choose another output file")
        copied = external.copies(data, output.parent)
        with atomic_write(make_folders=True) as temporary:
            for target, path in copied.items():
                with errors_of(target):
                    shutil.copyfile(path, temporary(target))
            with errors_of(output):
                temporary(output).write_bytes(content)
        streams.say_written([output, *copied])
    with kept:
        found = [counted(count, f"{operator} node") for operator, count in counts(result).items()]
        listed = ", ".join(found) or "no max nodes"
        print(f"{streams.STDOUT if streams.is_stream(output) else printable(str(output))}: {listed} in domain maxops")
        if inlined := inlined_functions(proto, result):
            names = ", ".join(map(printable, inlined))
            print(f"inlined these functions, because ONNX Runtime does not infer types in them: {names}")
        if counts(result):
            print("to run the model, call maxops.onnxruntime.register(session_options)")
