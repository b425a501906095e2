"""Tests for type checkers: results have the kind of the arguments, for frameworks that maxops does not import.

`make lint` runs mypy on this file together with all others, because reading the types of frameworks takes a minute.
test_types.py runs pyright on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

import numpy as np

import maxops as mo

if TYPE_CHECKING:
    from dask.array import Array as OfDask
    from jax import Array as OfJax
    from torch import Tensor
    from xarray import DataArray

x = np.zeros(3, np.float32)
ids = np.zeros(3, np.int64)


def of_dask(k: OfDask, n: OfDask) -> None:
    assert_type(mo.maximum(k, 1), OfDask)
    assert_type(mo.maximum(0.0, k, x), OfDask)
    assert_type(mo.reduce_max(k, 0), OfDask)
    assert_type(mo.reduce_max(k, 0, return_indices=True), tuple[OfDask, OfDask])
    assert_type(mo.segment_max(k, n, fill_mode="ZERO"), OfDask)
    assert_type(mo.segment_max(k, ids, 2, fill_mode="ZERO", return_empty=True), tuple[OfDask, OfDask])
    assert_type(
        mo.segment_max(k, n, 2, initial=0, return_indices=True, return_empty=True), tuple[OfDask, OfDask, OfDask]
    )


def of_jax(k: OfJax, n: OfJax) -> None:
    assert_type(mo.maximum(k, 1), OfJax)
    assert_type(mo.maximum(0.0, k, x), OfJax)
    assert_type(mo.reduce_max(k, 0), OfJax)
    assert_type(mo.reduce_max(k, 0, return_indices=True), tuple[OfJax, OfJax])
    assert_type(mo.segment_max(k, n, fill_mode="ZERO"), OfJax)
    assert_type(mo.segment_max(k, ids, 2, fill_mode="ZERO", return_empty=True), tuple[OfJax, OfJax])
    assert_type(mo.segment_max(k, n, 2, initial=0, return_indices=True, return_empty=True), tuple[OfJax, OfJax, OfJax])


def of_torch(k: Tensor, n: Tensor) -> None:
    assert_type(mo.maximum(k, 1), Tensor)
    assert_type(mo.maximum(0.0, k, x), Tensor)
    assert_type(mo.reduce_max(k, 0), Tensor)
    assert_type(mo.reduce_max(k, 0, return_indices=True), tuple[Tensor, Tensor])
    assert_type(mo.segment_max(k, n, fill_mode="ZERO"), Tensor)
    assert_type(mo.segment_max(k, ids, 2, fill_mode="ZERO", return_empty=True), tuple[Tensor, Tensor])
    assert_type(
        mo.segment_max(k, n, 2, initial=0, return_indices=True, return_empty=True), tuple[Tensor, Tensor, Tensor]
    )


def of_xarray(k: DataArray, n: DataArray) -> None:
    assert_type(mo.maximum(k, 1), DataArray)
    assert_type(mo.maximum(0.0, k, x), DataArray)
    assert_type(mo.reduce_max(k, 0), DataArray)
    assert_type(mo.reduce_max(k, 0, return_indices=True), tuple[DataArray, DataArray])
    assert_type(mo.segment_max(k, n, fill_mode="ZERO"), DataArray)
    assert_type(mo.segment_max(k, ids, 2, fill_mode="ZERO", return_empty=True), tuple[DataArray, DataArray])
    assert_type(
        mo.segment_max(k, n, 2, initial=0, return_indices=True, return_empty=True),
        tuple[DataArray, DataArray, DataArray],
    )
