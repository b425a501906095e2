"""Commands that run the operators on .npy files: `maxops maximum`, `maxops reduce-max`, `maxops segment-max`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

import maxops
from maxops import dtypes, spec
from maxops.cli import streams
from maxops.cli.files import as_bfloat16, is_two_bytes, read_npy, write_npy, write_npz
from maxops.cli.progress import progress
from maxops.cli.table import describe, show_arrays, show_json
from maxops.errors import MaxopsError, ModelInputError, OutputError
from maxops.plan import FILL_MODES, Array
from maxops.spec import Parameter, Spec

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to this .npy file instead of printing a table. A .npz file contains each array under "
        "its name; - is stdout.",
    ),
]
BFloat16 = Annotated[
    bool, typer.Option("--bfloat16", help="Read 2-byte void as bfloat16, because NumPy saves bfloat16 as 2-byte void.")
]
_FILL_CLAUSE = "maxops.segment_max.fill_mode"
RESULT, INDICES, EMPTY = "maxima", "indices", "empty"  # names in a .npz file


# For each kind of parameter: the type of the option's value, and its placeholder in the help.
_OPTIONS: dict[str, tuple[Any, str | None]] = {
    "axes": (str | None, "AXIS,..."),
    "axis": (int, "AXIS"),
    "choice": (str | None, "MODE"),
    "count": (int | None, "N"),
    "flag": (bool, None),
    "indices": (Path | None, "FILE"),
    "scalar": (str | None, "VALUE"),
}
_SPELLED = {"sorted": "--sorted/--unsorted"}  # other options that default to True have a --no- form
# The arguments that hints of errors name, and their options.
_AS_OPTIONS = {"sorted=False": "--unsorted", "out_of_range='drop'": "--out-of-range drop"}


def _option(parameter: Parameter) -> inspect.Parameter:
    """Return the command-line option for a function's parameter."""
    name = parameter.name
    kind: Any
    kind, metavar = _OPTIONS[parameter.kind]
    names = [_SPELLED[name]] if name in _SPELLED else [] if parameter.default else [f"--{name.replace('_', '-')}"]
    if parameter.kind == "choice" and name != "fill_mode":  # fill_mode ignores case and has its own error
        kind, metavar = Literal[parameter.choices] | None, None
    annotation = Annotated[kind, typer.Option(*names, metavar=metavar, help=parameter.help)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=parameter.default, annotation=annotation)


def _with_options_of(row: Spec) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds an option to a command for each parameter of a function with a help text."""

    def make(command: Callable[..., None]) -> Callable[..., None]:
        written = inspect.signature(command, eval_str=True)
        own = [each for each in written.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        files = [each for each in own if each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        options = [_option(each) for each in row.parameters if each.help]
        command.__dict__["__signature__"] = written.replace(parameters=[*files, *options, *own[len(files) :]])
        return command

    return make


def _values(row: Spec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of options to arguments of the function."""
    kinds = {each.name: each.kind for each in row.parameters}
    read: dict[str, Callable[[str, str], Any]] = {"axes": _axes, "scalar": _scalar}
    return {
        name: value
        if value is None or kinds[name] not in read
        else read[kinds[name]](value, f"--{name.replace('_', '-')}")
        for name, value in options.items()
    }


def _results(options: Mapping[str, Any]) -> list[str]:
    """Return the names of the arrays that a call with these options returns."""
    more = {"return_indices": INDICES, "return_empty": EMPTY}
    return [RESULT, *(name for option, name in more.items() if options.get(option))]


@_with_options_of(spec.MAXIMUM)
def maximum(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help=".npy files of the same dtype with broadcastable shapes; - is stdin."),
    ],
    *,
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
    **options: Any,
) -> None:
    """Compute the element-wise maximum of .npy files, with broadcasting. NaN propagates, except with --nan ignore."""
    target = _Target("maximum", output, form, overwrite=overwrite, parents=parents)
    arrays = target.read(files, bfloat16=bfloat16)
    target.give(lambda: maxops.maximum(*arrays, **options), [RESULT])


@_with_options_of(spec.REDUCE_MAX)
def reduce_max(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .npy file; - is stdin.")],
    *,
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
    **options: Any,
) -> None:
    """Compute the maximum of a .npy file along axes. NaN propagates, except with --nan ignore."""
    target = _Target("reduce-max", output, form, overwrite=overwrite, parents=parents)
    (data,) = target.read([file], bfloat16=bfloat16)
    values = _values(spec.REDUCE_MAX, options)
    target.give(lambda: maxops.reduce_max(data, **values), _results(options))


@_with_options_of(spec.SEGMENT_MAX)
def segment_max(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .npy file of shape (n, ...); - is stdin.")],
    ids: Annotated[
        Path | None,
        typer.Argument(
            metavar="IDS",
            help="A .npy file of n segment ids of any integer dtype, sorted unless --unsorted is given. Omit IDS "
            "with --offsets.",
        ),
    ] = None,
    *,
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
    **options: Any,
) -> None:
    """Compute the maximum of each segment of rows in a .npy file. NaN propagates, except with --nan ignore."""
    target = _Target("segment-max", output, form, overwrite=overwrite, parents=parents)
    _check_segments(ids, options["offsets"])
    _check_fill(options["fill_mode"], options["fill_value"], options["initial"])
    files = {name: path for name, path in (("segment_ids", ids), ("offsets", options["offsets"])) if path is not None}
    rows, numbers = target.read([data, *files.values()], bfloat16=bfloat16, indexing=1)
    values = _values(spec.SEGMENT_MAX, options) | dict.fromkeys(files, numbers)
    target.give(lambda: maxops.segment_max(rows, **values), _results(options))


def _check_segments(ids: Path | None, offsets: Path | None) -> None:
    if ids is None and offsets is None:
        raise typer.BadParameter("no segments are specified; pass IDS or --offsets FILE", param_hint="IDS")
    if ids is not None and offsets is not None:
        raise typer.BadParameter(f"cannot be combined with IDS ({ids}); pass only one of them", param_hint="--offsets")


def _check_fill(mode: str | None, value: str | None, initial: str | None) -> None:
    """Check the fill options here, because errors of the function would name its parameters, not the options."""
    named = {"--fill-mode": mode, "--fill-value": value, "--initial": initial}
    given = [option for option, text in named.items() if text is not None]
    if len(given) > 1:
        text = f"cannot be combined with {given[1]}; pass only one of {', '.join(named)}"
        raise typer.BadParameter(text, param_hint=given[0])
    clause = f"[{_FILL_CLAUSE}]"
    if not given:
        raise typer.BadParameter(
            "no value for empty segments is specified; pass --fill-mode ZERO or LOWEST, --fill-value "
            f"VALUE (such as nan), or --initial VALUE {clause}",
            param_hint="--fill-mode",
        )
    if mode is not None and mode.upper() not in FILL_MODES:
        raise typer.BadParameter(
            f"expected 'ZERO' or 'LOWEST', got {mode!r}; for another value, pass --fill-value VALUE {clause}",
            param_hint="--fill-mode",
        )


class _Target:
    """Reads the input arrays of a command, and shows or writes its results."""

    def __init__(self, command: str, output: Path | None, form: str, *, overwrite: bool, parents: bool) -> None:
        self.command, self.output, self.form = command, output, form
        self.overwrite, self.parents = overwrite, parents

    def read(self, files: Sequence[Path], *, bfloat16: bool, indexing: int = 0) -> list[Array]:
        """Check the output options, and read the input arrays. The last `indexing` arrays are ids or offsets."""
        if self.form == "json" and self.output is not None:
            raise typer.BadParameter("json has no effect with --output", param_hint="--format")
        streams.check_inputs(files)
        outputs = [self.output] if self.output else []
        streams.check_outputs(outputs, files, overwrite=self.overwrite, parents=self.parents)
        of_data = len(files) - indexing
        name = f"maxops.{self.command.replace('-', '_')}"
        return [
            _read(file, f"{name}.types", bfloat16=bfloat16) if number < of_data else read_npy(file)
            for number, file in enumerate(files)
        ]

    def give(self, compute: Callable[[], Any], names: Sequence[str]) -> None:
        """Compute the results, and show or write one array for each name."""
        as_npz = self.output is not None and self.output.suffix.lower() == ".npz"
        if self.output is not None and len(names) > 1 and not as_npz and not streams.is_stream(self.output):
            raise OutputError(
                f"{self.output}: a .npy file can contain only one array, got {', '.join(names)}; use a .npz file name"
            )
        with progress(self.command):
            try:
                result = compute()
            except MaxopsError as error:
                text = error.message
                for argument, option in _AS_OPTIONS.items():
                    text = text.replace(argument, option)
                raise type(error)(text, error.clause) from error
        arrays = dict(zip(names, result if len(names) > 1 else [result], strict=True))
        if self.output is not None and (as_npz or len(names) > 1):
            write_npz(self.output, arrays, make_folders=self.parents)
        elif self.output is not None:
            write_npy({self.output: result}, make_folders=self.parents)
        else:
            shown = {self.command if name == RESULT else name: array for name, array in arrays.items()}
            if self.form == "json":
                show_json({"outputs": [describe(name, array) for name, array in shown.items()]})
            else:
                show_arrays(shown)


def _read(file: Path, clause: str, *, bfloat16: bool) -> Array:
    array = read_npy(file)
    if bfloat16:
        array = as_bfloat16(array)
    elif is_two_bytes(array):
        raise ModelInputError(
            f"{streams.name_of(file)}: the dtype is 2-byte void, which is how NumPy saves bfloat16; "
            "if the data is bfloat16, pass --bfloat16"
        )
    if dtypes.of(array.dtype) is None:
        types = ", ".join(
            str(dtype) for dtype in dtypes.ALL if dtype is not dtypes.REAL
        )  # .npy files cannot contain it
        raise ModelInputError(
            f"{streams.name_of(file)}: unsupported dtype {array.dtype}; expected one of {types}; "
            f"{_next_step(array.dtype)}",
            clause,
        )
    return array


def _next_step(dtype: np.dtype[Any]) -> str:
    """Return a suggestion for converting an array to a supported dtype."""
    if dtype.names:
        return f"save one field with np.save(FILE, array[{dtype.names[0]!r}])"
    steps = {"M": 'array.view("int64")', "m": 'array.view("int64")', "c": "array.real", "V": "array.view(DTYPE)"}
    return f"convert it with np.save(FILE, {steps.get(dtype.kind, 'array.astype(DTYPE)')})"


def _axes(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(axis) for axis in text.split(",")) if text.strip() else ()
    except ValueError:
        raise typer.BadParameter(f"expected integers such as 0,-1, got {text!r}", param_hint=option) from None


_WORDS = {"true": True, "false": False}


def _scalar(text: str, option: str) -> bool | int | float:
    """Convert text to a Python scalar. The operator checks whether the dtype can represent it."""
    if text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise typer.BadParameter(f"expected a number, nan, inf, true or false, got {text!r}", param_hint=option)
