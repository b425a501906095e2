"""The keys of `maxops.order`, compared with the reference: every 8-bit and 16-bit value, and a pool of wider values."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from helpers.bits import STORED, assert_same_bits, of_words, pool_words
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops import dtypes, order, reference
from maxops.dtypes import DType
from maxops.plan import Array


def values_by_rank(dtype: DType) -> Array:
    """Return the values in ascending order. Values that are equal in the order are adjacent."""
    words = range(1 << dtype.bits) if dtype.bits <= 16 and dtype.kind != "bool" else pool_words(dtype)
    return of_words(dtype, sorted(words, key=lambda word: reference.order(dtype, word)))


def canonical(array: Array) -> Array:
    """Return the values with the canonical NaN."""
    return reference.maximum(array)


class _NumPy:
    """NumPy with the dtype bfloat16, which NumPy itself lacks."""

    bfloat16 = dtypes.BFLOAT16.numpy

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


MODULES = {"numpy": None, "torch": "torch", "jax": "jax.numpy"}


@pytest.fixture(params=MODULES)
def library(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Adapter]]:
    """Yield each library with its adapter."""
    adapter = next(each for each in ADAPTERS if each.name == request.param)
    adapter.need()
    name = MODULES[request.param]
    with adapter.around():
        yield _NumPy() if name is None else import_module(name), adapter


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_keys_are_in_the_order_of_the_values(library: tuple[Any, Adapter], dtype: DType) -> None:
    module, adapter = library
    values = values_by_rank(dtype)
    ranks = [reference.order(dtype, int(word)) for word in values.view(dtype.word)]
    keys = adapter.take(order.keys_of(module, adapter.give(values), dtype))
    assert keys.dtype == np.dtype(f"i{dtype.bits // 8}")
    assert (keys[1:] >= keys[:-1]).all()
    assert (keys[1:] == keys[:-1]).tolist() == [before == after for before, after in pairwise(ranks)]
    back = order.values_of(module, adapter.give(keys), dtype)
    assert_same_bits(adapter.take(back), canonical(values))


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_arrays_of_one_value(library: tuple[Any, Adapter], dtype: DType) -> None:
    module, adapter = library
    for word in pool_words(dtype):
        got = adapter.take(order.filled(module, (2,), word, dtype))
        assert_same_bits(got, of_words(dtype, [word, word]))


def test_any_byte_but_0_is_true() -> None:
    bools = np.array([0, 1, 2, 255], np.uint8).view(np.bool)
    assert order.keys_of(np, bools, dtypes.BOOL).tolist() == [0, 1, 1, 1]
