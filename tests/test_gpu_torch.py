# ruff: noqa: E402 - what needs torch comes after the look for it
"""What PyTorch's operators call on a GPU: the shapes of their results, with the kernels interpreted where none is."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from bits import assert_same_bits, mixed
from held import array_of, tensor_of
from maxops import dtypes, errors, reference
from maxops.engines.torch import kernels

DATA = mixed(dtypes.FLOAT32, (4, 3), 1)


def test_maximum() -> None:
    x = tensor_of(DATA)
    got = kernels.maximum_on_gpu([x.t(), x.t()], "first")
    assert got.stride() == x.t().stride()  # as of torch.maximum
    assert_same_bits(array_of(got.t()), reference.maximum(DATA, DATA))


@pytest.mark.parametrize("indices", [False, True])
def test_reduce_max(indices: bool) -> None:
    values, places = kernels.reduce_max_on_gpu(tensor_of(DATA), [0], False, False, None, indices, "first")
    want = reference.reduce_max(DATA, (0,), keepdims=False)
    assert_same_bits(array_of(values), want)
    assert places.numel() == (3 if indices else 0)


def test_reduce_max_refuses_axes_that_are_not_there() -> None:
    with pytest.raises(errors.AxesError, match="axes holds 2, but data has rank 2"):
        kernels.reduce_max_on_gpu(tensor_of(DATA), [2], True, False, None, False, "first")


@pytest.mark.parametrize("indices", [False, True])
def test_reduce_max_of_no_axes(indices: bool) -> None:
    x = tensor_of(DATA).t()
    values, places = kernels.reduce_max_on_gpu(x, None, True, True, None, indices, "first")
    assert values.stride() == x.stride()
    assert_same_bits(array_of(values.t()), DATA)
    assert places.numel() == (x.numel() if indices else 0)
    values, _ = kernels.reduce_max_on_gpu(x, [], False, False, None, False, "first")
    assert_same_bits(array_of(values), reference.reduce_max(DATA, keepdims=False))


@pytest.mark.parametrize("indices", [False, True])
@pytest.mark.parametrize("empty", [False, True])
def test_segment_max(indices: bool, empty: bool) -> None:
    ids = np.array([0, 0, 2, 2])
    values, places, none = kernels.segment_max_on_gpu(
        tensor_of(DATA), tensor_of(ids), None, None, "ZERO", True, True, None, None, indices, empty, "first"
    )
    assert_same_bits(array_of(values), reference.segment_max(DATA, ids, 3, "ZERO"))
    assert (places.numel(), none.numel()) == (9 if indices else 0, 3 if empty else 0)
