"""Random inputs of a model. The same seed, name, type and shape always give the same array."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import typer

from maxops.dtypes import BOOL, DType
from maxops.errors import ModelInputError
from maxops.model import Value
from maxops.plan import Array

IN_SEQUENCE = 3  # arrays
OPEN_SIZE = 4  # of each axis whose size the model leaves open, so that they broadcast together
ONE_IN = 8  # elements is a special value
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def sizes(given: Iterable[str]) -> dict[str, int]:
    """Return sizes by their names in the model, from words such as batch=8 and x.0=8."""
    found: dict[str, int] = {}
    for text in given:
        name, _, number = text.partition("=")
        if not name or not number.isascii() or not number.isdigit() or len(number) > 18:
            raise typer.BadParameter(f"{text!r} is not a name and a size, such as batch=8", param_hint="--size")
        if found.setdefault(name, int(number)) != int(number):
            raise typer.BadParameter(f"{name!r} is given twice", param_hint="--size")
    return found


def _names(value: Value) -> list[int | str]:
    """Return the known sizes of an input, and names for the others, such as x.0 for a size without a name."""
    return [f"{value.name}.{axis}" if size is None else size for axis, size in enumerate(value.dims or ())]


def sizes_of(values: Iterable[Value], arrays: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes, by name, of the given inputs; the run checks if they are consistent."""
    return {
        name: size
        for value in values
        if value.name in arrays and not value.container
        for name, size in zip(value.dims or (), arrays[value.name].shape, strict=False)
        if isinstance(name, str)
    }


def check_sizes(values: Iterable[Value], given: Mapping[str, int], source: str) -> None:
    """Refuse a size with a name that no random input has."""
    names = list(dict.fromkeys(size for value in values for size in _names(value) if isinstance(size, str)))
    for name in given:
        if name not in names:
            raise ModelInputError(
                f"{source}: --size {name}={given[name]}: no input that is drawn has an axis of that name; there are "
                f"{', '.join(names) or 'none'}"
            )


def draw(value: Value, seed: int, sizes_by_name: Mapping[str, int], source: str, *, special: bool) -> Any:
    """Return an array for an input, with integers of every magnitude or normally distributed floats.

    For a sequence, return a list of arrays.
    """
    if not isinstance(value.dtype, DType):
        raise ModelInputError(
            f"{source}: input {value} cannot be drawn at random; give it as --input {value.name}=FILE"
        )
    if value.container.endswith("sequence"):
        dims = tuple(_names(value))  # by the sequence's own name
        members = [
            replace(value, name=f"{value.name}[{number}]", dims=dims, container="") for number in range(IN_SEQUENCE)
        ]
        return [draw(member, seed, sizes_by_name, source, special=special) for member in members]
    generator = np.random.default_rng([seed, crc32(value.name.encode())])
    shape = tuple(size if isinstance(size, int) else sizes_by_name.get(size, OPEN_SIZE) for size in _names(value))
    if value.dtype is BOOL:
        return generator.integers(0, 2, shape).astype(bool)
    if value.dtype.kind != "float":
        limits = np.iinfo(value.dtype.numpy)
        whole = generator.integers(limits.min, limits.max, shape, value.dtype.numpy, endpoint=True)
        # drawn from the whole range alone, hardly one is near a narrower type's limits, where runtimes go wrong
        return np.asarray(whole >> generator.integers(0, limits.bits, shape).astype(value.dtype.numpy))
    drawn = np.asarray(generator.standard_normal(shape))
    if special:
        chosen = np.where(generator.integers(0, ONE_IN, shape) == 0, generator.choice(SPECIAL, shape), drawn)
        drawn = np.asarray(chosen)
    return drawn.astype(value.dtype.numpy)
