"""Generates random inputs for a model. The same seed, name, type and shape always produce the same array."""

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

IN_SEQUENCE = 3  # number of arrays in a sequence
OPEN_SIZE = 4  # the size of each axis that the model leaves open; all are equal, so that inputs broadcast
ONE_IN = 8  # on average, one in 8 elements is a special value
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0)


def sizes(given: Iterable[str]) -> dict[str, int]:
    """Parse values of --size, such as batch=8 and x.0=8, and return the sizes by name."""
    found: dict[str, int] = {}
    for text in given:
        name, _, number = text.rpartition("=")
        if not name or not number.isascii() or not number.isdigit() or len(number) > 18:
            raise typer.BadParameter(f"expected a name and a size such as batch=8, got {text!r}", param_hint="--size")
        if found.setdefault(name, int(number)) != int(number):
            raise typer.BadParameter(f"the sizes for {name!r} conflict", param_hint="--size")
    return found


def _names(value: Value) -> list[int | str]:
    """Return the size or the name of each axis of an input. An axis without a name gets a name such as x.0."""
    return [f"{value.name}.{axis}" if size is None else size for axis, size in enumerate(value.dims or ())]


def sizes_of(values: Iterable[Value], arrays: Mapping[str, Array]) -> dict[str, int]:
    """Return the sizes of the named axes in the given arrays. The run checks whether the sizes are consistent."""
    return {
        name: size
        for value in values
        if value.name in arrays and not value.container
        for name, size in zip(value.dims or (), arrays[value.name].shape, strict=False)
        if isinstance(name, str)
    }


def check_sizes(values: Iterable[Value], given: Mapping[str, int], in_files: Mapping[str, int], source: str) -> None:
    """Raise an error if --size names an axis that no random input has, or contradicts a given array."""
    names = list(dict.fromkeys(size for value in values for size in _names(value) if isinstance(size, str)))
    for name in given:
        if name not in names:
            raise ModelInputError(
                f"{source}: --size {name}={given[name]}: no random input has an axis named {name}; axes of unknown "
                f"size: {', '.join(names) or 'none'}"
            )
        if (size := in_files.get(name, given[name])) != given[name]:
            raise ModelInputError(
                f"{source}: --size {name}={given[name]}: the axis {name} has size {size} in the arrays from --input; "
                "omit --size, or pass arrays with this size"
            )


def draw(value: Value, seed: int, sizes_by_name: Mapping[str, int], source: str, *, special: bool) -> Any:
    """Return a random array for an input: integers of every magnitude, or normally distributed floats.

    With `special`, some floats are NaN, infinities or zeros. For a sequence, return a list of arrays.
    """
    if not isinstance(value.dtype, DType):
        raise ModelInputError(f"{source}: input {value} cannot be generated randomly; pass --input {value.name}=FILE")
    if value.container.endswith("sequence"):
        dims = tuple(_names(value))  # axes without names are named after the sequence
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
        # shifted, because few values of the full range are near the limits of narrower types, where runtimes fail
        return np.asarray(whole >> generator.integers(0, limits.bits, shape).astype(value.dtype.numpy))
    drawn = np.asarray(generator.standard_normal(shape))
    if special:
        chosen = np.where(generator.integers(0, ONE_IN, shape) == 0, generator.choice(SPECIAL, shape), drawn)
        drawn = np.asarray(chosen)
    return drawn.astype(value.dtype.numpy)
