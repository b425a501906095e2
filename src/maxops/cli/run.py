"""`maxops run`: runs a model on files, on random inputs, or on the data of its test folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from maxops.cli import random_inputs, run_inputs, streams
from maxops.cli.compare import difference
from maxops.cli.files import file_name, write_npy
from maxops.cli.progress import progress
from maxops.cli.run_against import Compare, Compared, compare_with
from maxops.cli.table import VERDICTS, Cell, describe, first_values, show, show_json, verdict
from maxops.errors import MaxopsError, ModelError, OutputError
from maxops.model import Other, flat, type_name
from maxops.plan import Array
from maxops.program import FAILED, print_line
from maxops.shown import printable

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.onnx import Model
    from maxops.onnx.suite import DataSet


@dataclass(frozen=True)
class Results:
    """The outputs of a run, keyed by name, for a data set or for the given inputs."""

    data_set: str
    outputs: Mapping[str, Array]
    compared: tuple[Compared, ...] = field(default=())

    @property
    def agree(self) -> bool:
        """Whether no comparison found a difference."""
        return all(each.agree == len(each.differences) for each in self.compared)


def _complete_runtime(incomplete: str) -> list[str]:
    from maxops.conformance import whole_model  # noqa: PLC0415  (see above)

    return [name for name in whole_model.known() if name.startswith(incomplete)]


def _check_tolerance(tolerance: float) -> float:
    if not 0 <= tolerance < inf:
        raise typer.BadParameter(f"expected a finite number of at least 0, got {tolerance}")
    return tolerance


def run(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A .onnx file (- is stdin), an OpenVINO IR (.xml), or a folder with model.onnx and "
            "test_data_set_*/{input,output}_*.pb, whose data is used unless --input or --seed is given.",
        ),
    ],
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="NAME=FILE",
            help="Read an input from a .npy or .pb file. Omit NAME= for a .npz file or a .pb file with a named tensor. "
            "NAME=- reads a .npy file from stdin, and - reads a .npz file; the same applies to other pipes. For a "
            "sequence, pass its arrays as NAME=FILE.npz.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Write each output to NAME.npy in this folder, with a subfolder for each data set if there are "
            "several; - writes a single output to stdout.",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Generate missing inputs randomly with this seed.")
    ] = None,
    size: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=N",
            help="With --seed, the size of a named axis of random inputs, or INPUT.AXIS=N for an axis without a name. "
            f"Default: the size in the other inputs, or {random_inputs.OPEN_SIZE}.",
        ),
    ] = None,
    special: Annotated[
        bool, typer.Option("--special-values", help="With --seed, include NaN, infinities and both zeros.")
    ] = False,
    on: Annotated[
        Other | None,
        typer.Option(
            help="Runtime for operators that maxops does not implement: onnxruntime, or onnx, whose "
            "reference evaluator is slower but supports more models. Default: onnxruntime if it is installed and "
            "loads the model, otherwise onnx.",
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RUNTIME",
            autocompletion=_complete_runtime,
            help="Also run the model on another runtime, and compare each max node (Max, ReduceMax, scatter) bit for "
            "bit with maxops on the same inputs. RUNTIME is onnxruntime, openvino, onnx-reference, or a backend or "
            "program as for `maxops conform`.",
        ),
    ] = None,
    whole: Annotated[
        bool,
        typer.Option("--whole", help="With --against, compare model outputs instead of nodes; always on for an IR."),
    ] = False,
    tolerance: Annotated[
        float,
        typer.Option(
            metavar="X",
            callback=_check_tolerance,
            help="With --whole, treat floats as equal if they differ by at most X, or by X "
            "times their magnitude if the magnitude is above 1.",
        ),
    ] = 0.0,
    seconds: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            help="With --against, the timeout of the other runtime for each data set. Default: 600.",
        ),
    ] = None,
    form: streams.Format = "text",
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """Run an ONNX model or an OpenVINO IR, and compare its outputs bit for bit with any expected outputs.

    The expected outputs are in the test data sets of the model's folder. --against also compares the max nodes with
    another runtime. Exits with 1 if anything differs, or if the other runtime crashes or hangs.
    """
    from maxops.onnx import suite  # noqa: PLC0415  (see above)

    is_ir = model.suffix.lower() == ".xml"
    if whole and against is None:
        raise typer.BadParameter("--whole has no effect without --against")
    if tolerance and (against is None or not (whole or is_ir)):
        needed = "--against" if is_ir else "--against and --whole"
        raise typer.BadParameter(f"--tolerance has no effect without {needed}")
    if seconds is not None and against is None:
        raise typer.BadParameter("--timeout has no effect without --against")
    if on and is_ir:
        raise typer.BadParameter("--on applies only to ONNX models; maxops runs every operator of an IR")

    if seed is None and (size or special):
        raise typer.BadParameter(f"{'--size' if size else '--special-values'} has no effect without --seed")
    named = [run_inputs.split_argument(argument) for argument in given or []]
    file = model / suite.MODEL if model.is_dir() else model
    streams.check_inputs([model, *(path for _, path in named)])
    content = streams.read_model(model) if streams.is_pipe(model) else file
    loaded = _load(content, streams.name_of(model), on)
    folders = suite.data_set_folders(model) if model.is_dir() and not given and seed is None else []
    places = {folder: Path() if len(folders) == 1 else Path(folder.name) for folder in folders} or {model: Path()}
    files = [] if output is None else _files(output, places.values(), loaded)
    sources = chain(streams.model_files(file), (path for _, path in named))
    if output is None:
        streams.check_outputs([], sources, overwrite=overwrite, parents=parents)
    else:
        _check_output(output, files, len(folders), sources, overwrite, parents)
    compare = None
    if against is not None:
        compare = compare_with(against, content, loaded, seconds, tolerance, whole=whole or is_ir)
    if folders:
        results = [_on_data_set(loaded, suite.read_data_set(folder, loaded), compare) for folder in folders]
    else:
        inputs = run_inputs.read_inputs(loaded, named, seed, random_inputs.sizes(size or []), special=special)
        try:
            outputs = _compute(loaded, inputs)
        except MaxopsError as error:
            if seed is None:
                raise
            raise error.at(
                f"--seed {seed} (to pass inputs that cannot be random, such as indices, use --input)"
            ) from error
        results = [Results("", outputs, (compare(inputs, outputs),) if compare else ())]
    with streams.stdout_kept_for([output, *files]):
        _show(loaded, results, form)
    if output is not None:
        by_place = dict(zip(places.values(), (each.outputs for each in results), strict=True))
        sources = chain(streams.model_files(file), (path for _, path in named))
        has_sequence = any(value.container for value in loaded.outputs)
        _write(output, by_place, sources if has_sequence else (), overwrite, parents)
    if not all(each.agree for each in results):
        raise typer.Exit(FAILED)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each warning as one line on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):  # a second load repeats its warnings
        print_line(f"maxops: warning: {printable(message)}")


@_warnings_as_lines()
def _load(model: Path | bytes, source: str, on: Other | None) -> Model:
    from maxops.onnx import load  # noqa: PLC0415  (see above)
    from maxops.onnx.load import from_proto, parse  # noqa: PLC0415

    if isinstance(model, Path) and model.suffix.lower() == ".xml":
        from maxops.openvino import load as load_ir  # noqa: PLC0415

        return load_ir(model)

    def loaded(on: Other) -> Model:
        return from_proto(parse(model, source), source, on=on) if isinstance(model, bytes) else load(model, on=on)

    if on or not find_spec("onnxruntime"):
        return loaded(on or "onnx")
    try:
        return loaded("onnxruntime")
    except ModelError as error:
        try:
            model_there = loaded("onnx")
        except MaxopsError:
            raise error from None
        said = str(error).partition("; use --on onnx")[0]
        print_line(f"maxops: warning: {printable(said)}; using onnx's reference evaluator instead")
        return model_there


def _files(output: Path, places: Iterable[Path], model: Model) -> list[Path]:
    """Return the output files. For a sequence, return only the first file, because its length is not yet known."""
    names = [f"{each.name}[0]" if each.container.endswith("sequence") else each.name for each in model.outputs]
    return [output / place / file_name(name) for place in places for name in names]


def _check_output(
    output: Path, files: list[Path], data_sets: int, inputs: Iterable[Path], overwrite: bool, parents: bool
) -> None:
    if not streams.is_stream(output):
        is_file = os.path.isfile(output)
        if is_file or (output.suffix.lower() in (".npy", ".npz") and not os.path.isdir(output)):
            why = "Not a directory" if is_file else "expected a folder, got a file name"
            raise OutputError(
                f"{output} cannot be written: {why}; pass a folder, in which each output is written to NAME.npy, or - "
                "for stdout"
            )
        streams.check_outputs(files or [output], inputs, overwrite=overwrite, parents=parents, folder=output)
    elif len(files) != 1 or data_sets > 1:
        raise OutputError(f"stdout can receive only one array, got {len(files)}; use --output FOLDER")


def _write(
    output: Path, by_place: Mapping[Path, Mapping[str, Array]], inputs: Iterable[Path], overwrite: bool, parents: bool
) -> None:
    """Write the outputs to their folders. First check the file names, because those of sequences are known only now."""
    arrays = {output / place / file_name(name): each for place, of in by_place.items() for name, each in of.items()}
    if not streams.is_stream(output):
        streams.check_outputs(list(arrays) or [output], inputs, overwrite=overwrite, parents=parents, folder=output)
        write_npy(arrays, make_folders=True)
    elif len(arrays) == 1:
        write_npy({output: next(iter(arrays.values()))}, make_folders=False)
    else:
        raise OutputError(f"stdout can receive only one array, got {len(arrays)}; use --output FOLDER")


def _on_data_set(model: Model, data: DataSet, compare: Compare | None) -> Results:
    outputs = _compute(model, data.inputs)
    expected = flat(data.expected)
    own = Compared("", {name: _beside(outputs.get(name), expected.get(name)) for name in {**outputs, **expected}})
    return Results(data.name, outputs, (own, compare(data.inputs, outputs)) if compare else (own,))


def _beside(result: Array | None, expected: Array | None) -> str:
    """Return the first difference between a result and the expected array. None means that an array is missing."""
    if result is None or expected is None:
        sides = (("expected", expected), ("got", result))
        return ", ".join(
            f"{side} {'nothing' if each is None else f'{each.dtype} {each.shape}'}" for side, each in sides
        )
    return difference(result, expected)


def _compute(model: Model, inputs: dict[str, Array]) -> dict[str, Array]:
    with progress(model.source) as stage, _warnings_as_lines():
        return flat(
            model.run(
                inputs, progress=lambda number, count, label: stage(f"{number + 1} of {count}: {printable(label)}")
            )
        )


def _show(model: Model, results: list[Results], form: str) -> None:
    if form == "json":
        show_json(
            {
                "model": model.source,
                "runs": [_as_json(each) | {"empty": _empty(model, each.outputs)} for each in results],
                "placements": [vars(row) for row in model.placements],
            }
        )
        return
    for each in results:
        _show_results(each)
        for name in _empty(model, each.outputs):
            print(f"{printable(name)}: empty")
    if model.placements:
        print()
        show(("operator", "nodes", "ran on"), [(row.operator, str(row.nodes), row.runs_on) for row in model.placements])


def _empty(model: Model, outputs: Mapping[str, Array]) -> list[str]:
    """Return the names of empty sequences and optionals."""
    held = [value.name for value in model.outputs if value.container]
    return [name for name in held if name not in outputs and f"{name}[0]" not in outputs]


def _as_json(results: Results) -> dict[str, Any]:
    return {
        "data_set": results.data_set or None,
        "agree": results.agree,
        "outputs": [
            describe(name, array)
            | {
                "compared": [
                    {
                        "with": each.other or "expected",
                        "difference": each.differences[name] or None,
                        "tolerance": each.tolerance,
                    }
                    for each in results.compared
                    if each.of == "outputs"
                ]
            }
            for name, array in results.outputs.items()
        ],
        "nodes": [
            {"node": name, "with": each.other, "difference": text or None}
            for each in results.compared
            if each.of == "nodes"
            for name, text in each.differences.items()
        ],
    }


def _show_results(results: Results) -> None:
    """Print the outputs, the result of each comparison, and the number of outputs or nodes that agree."""
    if results.data_set:
        print(f"{printable(results.data_set)}:")
    of_outputs = [each for each in results.compared if each.of == "outputs"]
    titles = [f"against {each.other}" if each.other else "bit for bit" for each in of_outputs]
    show(
        ("output", "type", "shape", "first values", *titles),
        [
            (name, *_described(results.outputs.get(name)), *(_verdict(each.differences[name]) for each in of_outputs))
            for name in {**results.outputs, **{name: None for each in of_outputs for name in each.differences}}
        ],
    )
    for each in results.compared:
        if each.of == "nodes":
            print()
            show(("node", f"against {each.other}"), [(name, _verdict(text)) for name, text in each.differences.items()])
        beside = f" with {each.other}" if each.other else ""
        how = f"within {each.tolerance:g}" if each.tolerance else "bit for bit"
        print(f"{each.agree} of {len(each.differences)} {each.of} agree {how}{beside}")


def _described(array: Array | None) -> tuple[str, str, str]:
    return ("", "", "nothing") if array is None else (type_name(array), str(array.shape), first_values(array))


def _verdict(difference: str) -> Cell:
    if difference.partition(":")[0] in VERDICTS:  # the other runtime crashes or hangs
        return verdict(difference)
    return verdict(f"DIFFERS: {difference}" if difference else "agrees")
