"""`maxops run`: runs a model on files, on random inputs, or on the data of its test folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import typer

from maxops import dtypes
from maxops.cli import random_inputs, streams
from maxops.cli.compare import difference, different
from maxops.cli.files import as_bfloat16, file_name, read_npy, read_npz, write_npy
from maxops.cli.progress import progress
from maxops.cli.table import VERDICTS, Cell, describe, first_values, show, show_json, verdict
from maxops.counted import counted
from maxops.errors import MaxopsError, ModelError, ModelInputError, OutputError
from maxops.model import Other, Value, flat, type_name
from maxops.plan import Array
from maxops.program import FAILED, print_line
from maxops.shown import printable
from maxops.spec import Spec

if TYPE_CHECKING:  # onnx takes longer to import than most commands to run
    from maxops.onnx import Model
    from maxops.onnx.suite import DataSet

OURS = "maxops"  # in comparisons with another runtime

Compare = Callable[[Mapping[str, Array], Mapping[str, Array]], "Compared"]


@dataclass(frozen=True)
class Compared:
    """The comparison with another runtime or with expected outputs: the first difference in each output or max node.

    The difference is "" if the output or node agrees. `other` is the name of the other runtime, or "" for the expected
    outputs.
    """

    other: str
    differences: Mapping[str, str]
    of: Literal["outputs", "nodes"] = "outputs"
    tolerance: float = 0.0

    @property
    def agree(self) -> int:
        """The number of outputs or nodes that agree."""
        return sum(not text for text in self.differences.values())


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
            min=0,
            metavar="X",
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
    named = [_split(argument) for argument in given or []]
    file = model / suite.MODEL if model.is_dir() else model
    streams.check_inputs([model, *(path for _, path in named)])
    content = streams.read_model(model) if streams.is_pipe(model) else file
    loaded = _load(content, streams.name_of(model), on)
    folders = suite.data_set_folders(model) if model.is_dir() and not given and seed is None else []
    places = {folder: Path() if len(folders) == 1 else Path(folder.name) for folder in folders} or {model: Path()}
    if output is not None:
        files = _files(output, places.values(), loaded)
        sources = chain(streams.model_files(file), (path for _, path in named))
        _check_output(output, files, len(folders), sources, overwrite, parents)
    compare = None
    if against is not None:
        compare = _compare_with(against, content, loaded, seconds, tolerance, whole=whole or is_ir)
    if folders:
        results = [_on_data_set(loaded, suite.read_data_set(folder, loaded), compare) for folder in folders]
    else:
        inputs = _inputs(loaded, named, seed, random_inputs.sizes(size or []), special=special)
        try:
            outputs = _compute(loaded, inputs)
        except MaxopsError as error:
            if seed is None:
                raise
            raise error.at(
                f"the run with random inputs (--seed {seed}) failed; use --input to pass inputs with special "
                "requirements, such as indices"
            ) from error
        results = [Results("", outputs, (compare(inputs, outputs),) if compare else ())]
    with streams.stdout_kept_for([output]):
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
        said = str(error).partition("; --on onnx")[0]
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
        streams.check_outputs(list(arrays), inputs, overwrite=overwrite, parents=parents, folder=output)
        write_npy(arrays, make_folders=True)
    elif len(arrays) == 1:
        write_npy({output: next(iter(arrays.values()))}, make_folders=False)
    else:
        raise OutputError(f"stdout can receive only one array, got {len(arrays)}; use --output FOLDER")


def _check_tensors(model: Model) -> None:
    for value in (*model.inputs, *model.outputs):
        if value.container:
            raise ModelInputError(f"{model.source}: --against supports only tensors, but the model has {value}")


def _compare_with(
    name: str, model: Path | bytes, loaded: Model, seconds: float | None, tolerance: float, *, whole: bool
) -> Compare:
    from maxops.conformance import limits, whole_model  # noqa: PLC0415  (see above)

    _check_tensors(loaded)
    seconds = limits.check_seconds(whole_model.SECONDS if seconds is None else seconds)
    if whole:
        return _comparison(name, model, loaded, seconds, tolerance)
    return _judgement(name, model, loaded, seconds)


def _judgement(name: str, model: Path | bytes, loaded: Model, seconds: float) -> Compare:
    """Return a function that runs another runtime, and compares each max node with maxops on the same inputs."""
    from maxops.conformance import whole_model  # noqa: PLC0415  (see above)
    from maxops.onnx.exposed import expose  # noqa: PLC0415

    whole_model.check(name, model)
    shown = expose(model, loaded.source)
    if shown.inside:
        print_line(
            f"maxops: warning: {loaded.source}: skipped {counted(shown.inside, 'max node')} in subgraphs, because "
            "runtimes do not expose values in subgraphs"
        )

    labels: list[str] = []
    for _, step in shown.nodes:
        labels.append(step.label if step.label not in labels else f"{step.label} with output {step.output!r}")

    def judge(inputs: Mapping[str, Array], _: Mapping[str, Array]) -> Compared:
        try:
            with progress(f"{loaded.source} on {name}"):
                found = whole_model.run(name, shown.model, inputs, len(shown.outputs), seconds)
        except whole_model.RuntimeDiedError as error:
            return Compared(name, dict.fromkeys(labels, str(error)), "nodes")
        values = {**shown.constants, **inputs, **dict(zip(shown.outputs, found.outputs, strict=True))}
        sides = (f"{found.runtime} gives", f"{OURS} gives")
        differences = {}
        for key, (row, step) in zip(labels, shown.nodes, strict=True):
            ours = step.compute([values[each] if each else None for each in step.inputs])
            text = difference(ours, values[step.output], sides)
            differences[key] = f"{text} [{_rule(row, ours, values[step.output])}]" if text else ""
        return Compared(found.runtime, differences, "nodes")

    return judge


_SHAPE = "shape", "C2", "C1", "keepdims"  # clauses about the shape of a result; an operator has at least one


def _rule(row: Spec, ours: Array, theirs: Array) -> str:
    """Return the id of the clause about the first difference between two results of a node."""
    short = "value"
    if ours.dtype != theirs.dtype:
        short = "T"
    elif ours.shape != theirs.shape:
        short = next((each for each in _SHAPE if each in dict(row.rules)), "value")
    else:
        first = different(ours, theirs)[0]
        pair = np.array([array.reshape(-1)[first] for array in (ours, theirs)])
        if np.isnan(pair).any() or not pair.any():  # zeros of both signs
            short = "nan"
    rule = row.rule(short)
    return f"{rule.id}, decided by {OURS}" if rule.level == "undecided" else rule.id


def _comparison(name: str, model: Path | bytes, loaded: Model, seconds: float, tolerance: float) -> Compare:
    """Return a function that runs another runtime, and compares its outputs with the outputs of maxops."""
    from maxops.conformance import whole_model  # noqa: PLC0415  (see above)

    whole_model.check(name, model)

    def compare(inputs: Mapping[str, Array], outputs: Mapping[str, Array]) -> Compared:
        try:
            with progress(f"{loaded.source} on {name}"):
                found = whole_model.run(name, model, inputs, len(outputs), seconds)
        except whole_model.RuntimeDiedError as error:
            return Compared(name, dict.fromkeys(outputs, str(error)), tolerance=tolerance)
        sides = (f"{found.runtime} gives", f"{OURS} gives")
        return Compared(
            found.runtime,
            {
                key: difference(array, other, sides, tolerance)
                for (key, array), other in zip(outputs.items(), found.outputs, strict=True)
            },
            tolerance=tolerance,
        )

    return compare


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


def _inputs(
    model: Model, named: list[tuple[str, Path]], seed: int | None, sizes: Mapping[str, int], *, special: bool
) -> dict[str, Array]:
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


def _split(argument: str) -> tuple[str, Path]:
    """Split the value of --input into the name, which may be "", and the file.

    The name and the file may contain "=". Therefore, the value is split at the first "=" before the name of an existing
    file.
    """
    parts = argument.split("=")
    splits = [("=".join(parts[:number]), Path("=".join(parts[number:]))) for number in range(len(parts))]
    there = (split for split in splits if os.path.isfile(split[1]) or streams.is_pipe(split[1]))
    return next(there, splits[min(1, len(splits) - 1)])


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
