"""ReduceMax: axes and attributes that must be refused."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxops import dtypes
from maxops.conformance import pool
from maxops.conformance.case import Call, Case, Input
from maxops.conformance.cases.family import Refused, refuse
from maxops.conformance.cases.reduce_axes import dynamic, form, int64
from maxops.conformance.cases.reduce_max import reducing
from maxops.plan import Array
from maxops.spec import Spec

DTYPE = dtypes.FLOAT32
# What stands for its kind in a short run, as axes of a rank; -1 says nothing against versions that take negative axes.
QUICK = [(0, [0]), (1, [1]), (1, [-2]), (1, [0, 0]), (3, [1, -2])]
# The rank of the data, and axes that are out of its range, or that name an axis twice.
OUTSIDE: list[tuple[int, list[int]]] = [(1, [1]), (2, [0, 2]), (3, [2**31]), (0, [0])]
BELOW: list[tuple[int, list[int]]] = [(1, [-2]), (2, [0, -3]), (3, [-(2**63)]), (0, [-1])]
TWICE: list[tuple[int, list[int]]] = [(1, [0, 0]), (3, [1, 0, 1])]
TWICE_BY_SIGN: list[tuple[int, list[int]]] = [(1, [0, -1]), (3, [1, -2])]


def cases(row: Spec) -> Iterator[Case]:
    """The cases of a row."""
    below = BELOW if row.negative_axes else [(1, [-1]), (2, [0, -1]), *BELOW]
    for meaning, sets in (
        ("axes.range", [*OUTSIDE, *below]),
        ("axes", TWICE + (TWICE_BY_SIGN if row.negative_axes else [])),
    ):
        for rank, axes in sets:
            quick: Refused | None = "once" if (rank, axes) in QUICK else None
            if axes == [-1] and not row.negative_axes and rank:  # the version's own
                quick = "each row"
            data = pool.distinct(DTYPE, (2,) * rank)
            label = f"{axes} of rank {rank}"
            call = reducing(row, DTYPE, (None,) * rank, axes, 1)
            yield from refuse(row, meaning, DTYPE, f"{form(row)} {label}", call, (data,), quick=quick)
            if row.axes_input:
                coming = dynamic(row, DTYPE, rank, 0, 1)
                sentence = f"axes that come with the data, {label}"
                yield from refuse(
                    row, meaning, DTYPE, sentence, coming, (data, int64(axes)), quick=quick if rank < 2 else None
                )
    if row.axes_input:
        yield from _no_list(row)
    data = pool.distinct(DTYPE, (2,))
    for value in (2, -1):
        call = reducing(row, DTYPE, (None,), [0], value)
        yield from refuse(
            row, "keepdims", DTYPE, f"keepdims {value}", call, (data,), quick="once" if value == 2 else None
        )
        if "noop_with_empty_axes" in row.attributes:
            call = reducing(row, DTYPE, (None,), None, 1, noop_with_empty_axes=value)
            yield from refuse(
                row, "noop_with_empty_axes", DTYPE, str(value), call, (data,), quick="once" if value == 2 else None
            )


def _no_list(row: Spec) -> Iterator[Case]:
    """Axes that are no list of int64."""
    data = pool.distinct(DTYPE, (2, 2))
    lists: dict[str, Array] = {
        "float32": np.zeros(1, np.float32),
        "int32": np.zeros(1, np.int32),
        "of rank 2": np.zeros((1, 1), np.int64),
        "a scalar": np.array(0, np.int64),
    }
    for words, axes in lists.items():
        dtype = dtypes.of(axes.dtype)
        assert dtype is not None
        inputs = Input("data", DTYPE, (None, None)), Input("axes", dtype, (None,) * axes.ndim)
        call = Call(row, inputs, (("keepdims", 1),), 2)
        quick: Refused | None = "once" if words == "int32" else None
        sentence = f"axes that come with the data, {words}"
        yield from refuse(row, "axes", DTYPE, sentence, call, (data, axes), quick=quick)
        constant = Input("axes", dtype, axes.shape, axes)
        call = Call(row, (inputs[0], constant), (("keepdims", 1),), 2)
        quick = "once" if words == "of rank 2" else None
        yield from refuse(row, "axes", DTYPE, f"constant axes, {words}", call, (data,), quick=quick)
