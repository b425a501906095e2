"""The keys of `maxops.order`, compared with the reference: every 8-bit and 16-bit value, and a pool of wider values."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from helpers.bits import STORED, assert_same_bits, of_words, pool_words
from maxops import dtypes, order, reference
from maxops.dtypes import DType
from maxops.plan import Array


def values_by_rank(dtype: DType) -> Array:
    """Return the values in ascending order; values that are equal in the order are adjacent."""
    words = range(1 << dtype.bits) if dtype.bits <= 16 and dtype.kind != "bool" else pool_words(dtype)
    return of_words(dtype, sorted(words, key=lambda word: reference.order(dtype, word)))


def canonical(array: Array) -> Array:
    """Return the values with the canonical NaN."""
    return reference.maximum(array)


class NumPy:
    """NumPy arrays; NumPy has no bfloat16."""

    name, package = "numpy", "numpy"
    bfloat16 = dtypes.BFLOAT16.numpy

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def give(array: Array) -> Any:
        return array

    take = give


class Torch:
    """PyTorch tensors."""

    name, package = "torch", "torch"

    @staticmethod
    def give(array: Array) -> Any:
        return import_module("maxops.engines.torch.memory").tensor_of(array)

    @staticmethod
    def take(tensor: Any) -> Array:
        array: Array = import_module("maxops.engines.torch.memory").view(tensor)
        return array

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("torch"), name)


class Jax:
    """JAX arrays."""

    name, package = "jax", "jax"

    @staticmethod
    def give(array: Array) -> Any:
        return import_module("jax.numpy").asarray(array)

    @staticmethod
    def take(array: Any) -> Array:
        return np.asarray(array)

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("jax.numpy"), name)


@pytest.fixture(params=[NumPy, Torch, Jax], ids=lambda kind: kind.name)
def library(request: pytest.FixtureRequest) -> Any:
    pytest.importorskip(request.param.package)
    if request.param is Jax:
        with import_module("jax").enable_x64(True):
            yield Jax()
        return
    yield request.param()


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_keys_are_in_the_order_of_the_values(library: Any, dtype: DType) -> None:
    values = values_by_rank(dtype)
    ranks = [reference.order(dtype, int(word)) for word in values.view(dtype.word)]
    keys = library.take(order.keys_of(library, library.give(values), dtype))
    assert keys.dtype == np.dtype(f"i{dtype.bits // 8}")
    assert (keys[1:] >= keys[:-1]).all()
    assert (keys[1:] == keys[:-1]).tolist() == [before == after for before, after in pairwise(ranks)]
    back = order.values_of(library, library.give(keys), dtype)
    assert_same_bits(library.take(back), canonical(values))


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_arrays_of_one_value(library: Any, dtype: DType) -> None:
    for word in pool_words(dtype):
        got = library.take(order.filled(library, (2,), word, dtype))
        assert_same_bits(got, of_words(dtype, [word, word]))


def test_any_byte_but_0_is_true() -> None:
    bools = np.array([0, 1, 2, 255], np.uint8).view(np.bool)
    assert order.keys_of(np, bools, dtypes.BOOL).tolist() == [0, 1, 1, 1]
