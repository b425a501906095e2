"""The operators on .npy files: `maxops maximum`, `maxops reduce-max`, `maxops segment-max`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

import maxops
from maxops.cli.files import as_bfloat16, is_two_bytes, read_npy, write_npy
from maxops.cli.progress import progress
from maxops.cli.table import show_arrays
from maxops.errors import ModelInputError
from maxops.plan import Array

Output = Annotated[Path | None, typer.Option(help="Write the result to this .npy file, instead of a table of it.")]
BFloat16 = Annotated[
    bool, typer.Option("--bfloat16", help="Read two-byte void as bfloat16, which NumPy saves under that type.")
]


def maximum(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help=".npy files of one type, of shapes that broadcast together."),
    ],
    output: Output = None,
    bfloat16: BFloat16 = False,
) -> None:
    """The element-wise maximum of .npy files, broadcast; NaN propagates."""
    arrays = [_read(file, bfloat16=bfloat16) for file in files]
    _give(lambda: maxops.maximum(*arrays), "maximum", output)


def reduce_max(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .npy file.")],
    axes: Annotated[str | None, typer.Option(help="Axes to reduce, such as 0,-1. Default: all.")] = None,
    keepdims: Annotated[bool, typer.Option(help="Keep reduced axes, with size 1.")] = True,
    noop_with_empty_axes: Annotated[
        bool, typer.Option("--noop-with-empty-axes", help="Without axes, give the input itself.")
    ] = False,
    output: Output = None,
    bfloat16: BFloat16 = False,
) -> None:
    """The maximum of a .npy file along axes; NaN propagates."""
    data = _read(file, bfloat16=bfloat16)
    taken = None if axes is None else _axes(axes)
    _give(lambda: maxops.reduce_max(data, taken, keepdims, noop_with_empty_axes), "reduce-max", output)


def segment_max(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="A .npy file of shape (n, ...).")],
    ids: Annotated[
        Path, typer.Argument(metavar="IDS", help="A .npy file of n segment ids, sorted, of any integer type.")
    ],
    fill_mode: Annotated[str, typer.Option(help="ZERO or LOWEST (finite): what empty segments hold.")],
    num_segments: Annotated[int | None, typer.Option(help="Segments in the result. Default: the last id + 1.")] = None,
    output: Output = None,
    bfloat16: BFloat16 = False,
) -> None:
    """The maximum of each segment of a .npy file's rows; NaN propagates."""
    rows, segment_ids = _read(data, bfloat16=bfloat16), _read(ids, bfloat16=False)
    _give(lambda: maxops.segment_max(rows, segment_ids, num_segments, fill_mode=fill_mode), "segment-max", output)


def _read(file: Path, *, bfloat16: bool) -> Array:
    array = read_npy(file)
    if bfloat16:
        return as_bfloat16(array)
    if is_two_bytes(array):
        raise ModelInputError(f"{file}: is void of two bytes, as NumPy saves bfloat16; say --bfloat16 to read it so")
    return array


def _axes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(axis) for axis in text.split(",")) if text.strip() else ()
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a list of integers such as 0,-1", param_hint="--axes") from None


def _give(compute: Callable[[], Array], name: str, output: Path | None) -> None:
    with progress(name):
        result = compute()
    if output is None:
        show_arrays({name: result})
    else:
        write_npy({output: result})
