"""The operators on .npy files: `maxops maximum`, `maxops reduce-max`, `maxops segment-max`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
import typer

import maxops
from maxops import dtypes
from maxops.cli import streams
from maxops.cli.files import as_bfloat16, is_two_bytes, read_npy, write_npy, write_npz
from maxops.cli.progress import progress
from maxops.cli.table import describe, show_arrays, show_json
from maxops.errors import ModelInputError, OutputError
from maxops.plan import Array
from maxops.typing import FillMode

Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the result to this .npy file (.npz: each array under its name), or - for standard output, "
        "instead of a table of it.",
    ),
]
BFloat16 = Annotated[
    bool, typer.Option("--bfloat16", help="Read two-byte void as bfloat16, which NumPy saves under that type.")
]
Initial = Annotated[
    str | None, typer.Option(metavar="VALUE", help="One more element of each maximum; empty sets hold it.")
]
Indices = Annotated[bool, typer.Option("--return-indices", help="Also give the indices of the maxima (argmax).")]

FILL_MODES = get_args(FillMode)
_FILL_CLAUSE = "maxops.segment_max.fill_mode"
RESULT, INDICES, EMPTY = "maxima", "indices", "empty"  # in a .npz file


def maximum(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help=".npy files of one type, of shapes that broadcast together; - is stdin."),
    ],
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """The element-wise maximum of .npy files, broadcast; NaN propagates."""
    target = _Target("maximum", output, form, overwrite=overwrite, parents=parents)
    arrays = target.read(files, bfloat16=bfloat16)
    target.give(lambda: maxops.maximum(*arrays), [RESULT])


def reduce_max(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .npy file; - is stdin.")],
    axes: Annotated[
        str | None, typer.Option(metavar="AXIS,...", help="Axes to reduce, such as 0,-1. Default: all.")
    ] = None,
    keepdims: Annotated[bool, typer.Option(help="Keep reduced axes, with size 1.")] = True,
    noop_with_empty_axes: Annotated[
        bool, typer.Option("--noop-with-empty-axes", help="Without axes, give the input itself.")
    ] = False,
    initial: Initial = None,
    return_indices: Indices = False,
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """The maximum of a .npy file along axes; NaN propagates."""
    target = _Target("reduce-max", output, form, overwrite=overwrite, parents=parents)
    (data,) = target.read([file], bfloat16=bfloat16)
    taken = None if axes is None else _axes(axes)
    first = _scalar(initial, "--initial")
    target.give(
        lambda: maxops.reduce_max(
            data, taken, keepdims, noop_with_empty_axes, initial=first, return_indices=return_indices
        ),
        [RESULT, *([INDICES] if return_indices else [])],
    )


def segment_max(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .npy file of shape (n, ...); - is stdin.")],
    ids: Annotated[
        Path | None,
        typer.Argument(
            metavar="IDS", help="A .npy file of n segment ids of any integer type, sorted; or else --offsets."
        ),
    ] = None,
    fill_mode: Annotated[
        str | None,
        typer.Option(
            metavar="MODE", help="ZERO or LOWEST (finite): what empty segments hold. This, --fill-value or --initial."
        ),
    ] = None,
    fill_value: Annotated[
        str | None, typer.Option(metavar="VALUE", help="What empty segments hold, such as 7, nan or -inf.")
    ] = None,
    initial: Initial = None,
    offsets: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="In place of IDS: a .npy file of where segments begin, and the end."),
    ] = None,
    num_segments: Annotated[
        int | None, typer.Option(metavar="N", help="Segments in the result. Default: the last id + 1.")
    ] = None,
    are_sorted: Annotated[bool, typer.Option("--sorted/--unsorted", help="Whether the ids never decrease.")] = True,
    out_of_range: Annotated[
        Literal["error", "drop"] | None,
        typer.Option(help="What ids outside the segments are. Default: as OpenVINO has it for sorted ids; error."),
    ] = None,
    axis: Annotated[int, typer.Option(metavar="AXIS", help="The axis of DATA whose slices are the rows.")] = 0,
    check_ids: Annotated[
        bool, typer.Option(help="Validate the ids or offsets; invalid ones give wrong maxima.")
    ] = True,
    return_indices: Indices = False,
    return_empty: Annotated[bool, typer.Option("--return-empty", help="Also give which segments are empty.")] = False,
    output: Output = None,
    form: streams.Format = "text",
    bfloat16: BFloat16 = False,
    overwrite: streams.Overwrite = False,
    parents: streams.Parents = False,
) -> None:
    """The maximum of each segment of a .npy file's rows; NaN propagates."""
    target = _Target("segment-max", output, form, overwrite=overwrite, parents=parents)
    _check_segments(ids, offsets)
    _check_fill(fill_mode, fill_value, initial)
    indexing = [path for path in (ids, offsets) if path is not None]
    rows, *numbers = target.read([data, *indexing], bfloat16=bfloat16, indexing=len(indexing))
    named = dict(zip((name for name, path in (("ids", ids), ("offsets", offsets)) if path), numbers, strict=True))
    fill, first = _scalar(fill_value, "--fill-value"), _scalar(initial, "--initial")
    target.give(
        lambda: maxops.segment_max(
            rows,
            named.get("ids"),
            num_segments,
            fill_mode=cast(FillMode | None, fill_mode),  # in any case, and the function says what is none
            fill_value=fill,
            check_ids=check_ids,
            offsets=named.get("offsets"),
            sorted=are_sorted,
            out_of_range=out_of_range,
            axis=axis,
            initial=first,
            return_indices=return_indices,
            return_empty=return_empty,
        ),
        [RESULT, *([INDICES] if return_indices else []), *([EMPTY] if return_empty else [])],
    )


def _check_segments(ids: Path | None, offsets: Path | None) -> None:
    if ids is None and offsets is None:
        raise typer.BadParameter("what the segments are is missing; give IDS or --offsets FILE", param_hint="IDS")
    if ids is not None and offsets is not None:
        raise typer.BadParameter(f"IDS are given, too, {ids}; give one of both", param_hint="--offsets")


def _check_fill(mode: str | None, value: str | None, initial: str | None) -> None:
    """What empty segments hold, in the options' own names; the function names its parameters."""
    named = {"--fill-mode": mode, "--fill-value": value, "--initial": initial}
    given = [option for option, text in named.items() if text is not None]
    if len(given) > 1:
        raise typer.BadParameter(f"{given[1]} is given, too; give one of {', '.join(named)}", param_hint=given[0])
    clause = f"[{_FILL_CLAUSE}]"
    if not given:
        raise typer.BadParameter(
            "fill_mode is missing, which says what empty segments hold; give --fill-mode ZERO or LOWEST, --fill-value "
            f"VALUE (such as nan), or --initial VALUE {clause}",
            param_hint="--fill-mode",
        )
    if mode is not None and mode.upper() not in FILL_MODES:
        raise typer.BadParameter(
            f"{mode!r} is not 'ZERO' or 'LOWEST'; --fill-value VALUE fills with a value {clause}",
            param_hint="--fill-mode",
        )


class _Target:
    """Where a command's arrays go, and the files that they may not replace."""

    def __init__(self, command: str, output: Path | None, form: str, *, overwrite: bool, parents: bool) -> None:
        self.command, self.output, self.form = command, output, form
        self.overwrite, self.parents = overwrite, parents

    def read(self, files: Sequence[Path], *, bfloat16: bool, indexing: int = 0) -> list[Array]:
        """The arrays of the inputs, once the output is known to be none of them; the last are ids or offsets."""
        if self.form == "json" and self.output is not None:
            raise typer.BadParameter("json has no effect with --output", param_hint="--format")
        streams.check_inputs(files)
        if self.output is not None:
            streams.check_outputs([self.output], files, overwrite=self.overwrite, parents=self.parents)
        of_data = len(files) - indexing
        name = f"maxops.{self.command.replace('-', '_')}"
        return [
            _read(file, f"{name}.types", bfloat16=bfloat16) if number < of_data else read_npy(file)
            for number, file in enumerate(files)
        ]

    def give(self, compute: Callable[[], Any], names: Sequence[str]) -> None:
        """Compute, and show or write the arrays, of which there are as many as names."""
        as_npz = self.output is not None and self.output.suffix.lower() == ".npz"
        if self.output is not None and len(names) > 1 and not as_npz and not streams.is_stream(self.output):
            raise OutputError(
                f"{self.output}: takes one array, and there are {', '.join(names)}; give a name that ends with .npz"
            )
        with progress(self.command):
            result = compute()
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
            f"{streams.name_of(file)}: is void of two bytes, as NumPy saves bfloat16; say --bfloat16 to read it so"
        )
    if dtypes.of(array.dtype) is None:
        types = ", ".join(str(dtype) for dtype in dtypes.ALL if dtype is not dtypes.REAL)  # which no file holds
        raise ModelInputError(
            f"{streams.name_of(file)}: holds {array.dtype}; the types are {types}; {_next_step(array.dtype)}", clause
        )
    return array


def _next_step(dtype: np.dtype[Any]) -> str:
    """How an array of another type becomes one that the operators take."""
    if dtype.names:
        return f"save one field: np.save(FILE, array[{dtype.names[0]!r}])"
    steps = {"M": 'array.view("int64")', "m": 'array.view("int64")', "c": "array.real", "V": "array.view(DTYPE)"}
    return f"convert it: np.save(FILE, {steps.get(dtype.kind, 'array.astype(DTYPE)')})"


def _axes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(axis) for axis in text.split(",")) if text.strip() else ()
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of integers such as 0,-1", param_hint="--axes") from None


_WORDS = {"true": True, "false": False}


def _scalar(text: str | None, option: str) -> bool | int | float | None:
    """A value in words, as Python's scalar; whether the data's type holds it is for the operator to say."""
    if text is None:
        return None
    if text.strip().lower() in _WORDS:
        return _WORDS[text.strip().lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise typer.BadParameter(f"{text!r} is not a number, nan, inf, true or false", param_hint=option)
