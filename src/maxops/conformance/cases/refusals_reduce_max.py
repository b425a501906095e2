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
from maxops.spec import Spec

DTYPE = dtypes.FLOAT32
# Rank and axes of one refusal of each kind for a quick run; -1 is valid in versions with negative axes.
QUICK = [(0, [0]), (1, [1]), (1, [-2]), (1, [0, 0]), (3, [1, -2])]
# The rank of the data, and axes that are out of range or duplicated.
OUTSIDE: list[tuple[int, list[int]]] = [(1, [1]), (2, [0, 2]), (3, [2**31]), (0, [0])]
BELOW: list[tuple[int, list[int]]] = [(1, [-2]), (2, [0, -3]), (3, [-(2**63)]), (0, [-1])]
TWICE: list[tuple[int, list[int]]] = [(1, [0, 0]), (3, [1, 0, 1])]
TWICE_BY_SIGN: list[tuple[int, list[int]]] = [(1, [0, -1]), (3, [1, -2])]


def cases(row: Spec) -> Iterator[Case]:
    """Yield the refusals for a row."""
    below = BELOW if row.negative_axes else [(1, [-1]), (2, [0, -1]), *BELOW]
    wrong = [("axes.range", *each) for each in (*OUTSIDE, *below)]
    wrong += [("axes.unique", *each) for each in TWICE + (TWICE_BY_SIGN if row.negative_axes else [])]
    for meaning, rank, axes in wrong:
        quick: Refused = (rank, axes) in QUICK
        if axes == [-1] and not row.negative_axes and rank:  # only versions without negative axes refuse it
            quick = "each row"
        data, label = pool.distinct(DTYPE, (2,) * rank), f"{axes} of rank {rank}"
        call = reducing(row, DTYPE, rank, axes, 1)
        yield from refuse(meaning, f"{form(row)} {label}", call, (data,), quick=quick)
        if row.axes_input:
            call = dynamic(row, DTYPE, rank, 0, 1)
            sentence = f"axes that come with the data, {label}"
            yield from refuse(meaning, sentence, call, (data, int64(axes)), quick=rank < 2 and quick)
    if row.axes_input:
        yield from _no_list(row)
    data = pool.distinct(DTYPE, (2,))
    for value in (2, -1):
        yield from refuse(
            "keepdims", f"keepdims {value}", reducing(row, DTYPE, 1, [0], value), (data,), quick=value == 2
        )
        if "noop_with_empty_axes" in row.attributes:
            call = reducing(row, DTYPE, 1, None, 1, noop_with_empty_axes=value)
            yield from refuse("noop_with_empty_axes", str(value), call, (data,), quick=value == 2)


def _no_list(row: Spec) -> Iterator[Case]:
    """Yield cases of axes that are not a list of int64."""
    data = pool.distinct(DTYPE, (2, 2))
    for words, dtype, shape in (
        ("float32", dtypes.FLOAT32, (1,)),
        ("int32", dtypes.INT32, (1,)),
        ("of rank 2", dtypes.INT64, (1, 1)),
        ("a scalar", dtypes.INT64, ()),
    ):
        axes = np.zeros(shape, dtype.numpy)
        for how, given, feed, quick in (
            ("axes that come with the data", Input("axes", dtype, (None,) * axes.ndim), (data, axes), "int32"),
            ("constant axes", Input("axes", dtype, axes.shape, axes), (data,), "of rank 2"),
        ):
            call = Call(row, (Input("data", DTYPE, (None, None)), given), (("keepdims", 1),), 2)
            yield from refuse("axes", f"{how}, {words}", call, feed, quick=words == quick)
