"""The static options of a traced SegmentMax call, and functions that assign its rows to segments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.export import is_symbolic_dim


@dataclass(frozen=True)
class Segments:
    """The static options of SegmentMax. They are hashable, because JAX compiles a program for each combination.

    `order` describes the ids: "sorted", in "any" order, or "offsets" instead of ids. If `checks` is True, the ids are
    checked at run time. `fill` contains the bits of the value for empty segments, and `nan` is the rule for NaN.
    """

    count: int
    order: Literal["sorted", "any", "offsets"]
    checks: bool
    rejects_negative: bool
    rejects_past: bool
    fill: int
    nan: str

    @property
    def fill_as_int64(self) -> int:
        """The bits of `fill` as an int64, the type of XLA's attributes."""
        return self.fill - (1 << 64) if self.fill >> 63 else self.fill


def index_dtype() -> np.dtype:
    """Return the dtype of indices: int64, or int32 if JAX's configuration disables 64-bit dtypes."""
    dtype: np.dtype = np.dtype(jax.dtypes.canonicalize_dtype(np.int64))
    return dtype


def ids_of_rows(ids: jax.Array, rows: int, how: Segments) -> tuple[jax.Array, jax.Array]:
    """Return the segment of each row, and a mask of the rows in range. Rows out of range get segment 0."""
    valid: jax.Array | bool = True
    if how.order == "offsets":
        valid = offsets_are_valid(ids, rows)
        # count the segments that have ended by each row; searchsorted does not support symbolic sizes
        ids = jnp.cumsum(jnp.zeros(rows, ids.dtype).at[ids[1:]].add(1, mode="drop"), dtype=ids.dtype)
    inside = (ids >= 0) & valid
    if is_symbolic_dim(how.count) or how.count <= np.iinfo(ids.dtype).max:
        inside &= ids < how.count
    return jnp.where(inside, ids, 0), inside


def offsets_are_valid(offsets: jax.Array, rows: int) -> jax.Array:
    """Return whether offsets are non-decreasing from 0 to the number of rows."""
    return (offsets[0] == 0) & (offsets[-1] == rows) & (offsets[1:] >= offsets[:-1]).all()


def for_columns(flags: jax.Array, like: jax.Array) -> jax.Array:
    """Reshape one flag per row so that the flags broadcast to `like`."""
    return jnp.expand_dims(flags, tuple(range(1, like.ndim)))


def empty_segments(ids: jax.Array, rows: int, how: Segments) -> jax.Array:
    """Return a mask of the segments without rows."""
    if how.count == 0:
        return jnp.zeros(0, jnp.bool)
    if how.order == "offsets":
        starts, last = jnp.arange(how.count), ids.shape[0] - 1
        without = ids[jnp.minimum(starts + 1, last)] <= ids[jnp.minimum(starts, last)]
        return without | ~offsets_are_valid(ids, rows)
    segments, inside = ids_of_rows(ids, rows, how)
    return jnp.zeros(how.count, jnp.int8).at[segments].max(inside.astype(jnp.int8)) == 0
