"""`maxops.compat.array_api` on the arrays of each engine, compared with NumPy."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from helpers.bits import assert_same_bits, mixed
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops import dtypes, errors
from maxops.compat import array_api, at_once

each_adapter = pytest.mark.parametrize(
    "adapter", [pytest.param(each, id=each.name) for each in ADAPTERS if each.is_here and "xarray" not in each.name]
)
DATA = mixed(dtypes.FLOAT32, (3, 4, 2), 5, nans=0.0)


def given(adapter: Adapter, *arrays: Any) -> list[Any]:
    """Convert arrays to those of the engine."""
    return [adapter.given({"data": array})["data"] for array in arrays]


@each_adapter
def test_max_and_argmax(adapter: Adapter) -> None:
    with adapter.around():
        (x,) = given(adapter, DATA)
        for keepdims in (False, True):
            for axis in (None, 0, -1, 1):
                found = adapter.take(array_api.argmax(x, axis=axis, keepdims=keepdims))
                assert_same_bits(found, np.asarray(np.argmax(DATA, axis=axis, keepdims=keepdims)))
            for axes in (None, 0, -1, (0, 2), (-1, 0, 1), ()):
                found = adapter.take(array_api.max(x, axis=axes, keepdims=keepdims))
                np.testing.assert_array_equal(found, np.max(DATA, axis=axes, keepdims=keepdims))
        with pytest.raises(TypeError, match="axis must be an integer or None"):
            array_api.argmax(x, axis=(0, 1))  # type: ignore[arg-type]


@each_adapter
def test_argmax_of_no_elements(adapter: Adapter) -> None:
    with adapter.around():
        (empty,) = given(adapter, DATA[:0])
        for axis in (None, 0, -3):
            with pytest.raises(ValueError, match=r"argmax\(\) got an array of shape \((0|nan), 4, 2\), "):
                adapter.take(array_api.argmax(empty, axis=axis))
        assert adapter.take(array_api.argmax(empty, axis=1)).shape == (0, 2)
        with pytest.raises(errors.AxesError):
            array_api.argmax(empty, axis=3)


def test_only_simple_calls_are_native() -> None:
    maximum = at_once("maximum")
    assert_same_bits(maximum(DATA, DATA[:1]), np.maximum(DATA, DATA[:1]))
    assert maximum(DATA, "x") is maximum(DATA, ties="last") is None


@each_adapter
def test_maximum_of_two_types(adapter: Adapter) -> None:
    few, more = np.array([[1, -5]], np.int8), np.array([[4], [-9]], np.int16)
    with adapter.around():
        one, other = given(adapter, few, more)
        assert_same_bits(adapter.take(array_api.maximum(one, other)), np.maximum(few, more))
        assert_same_bits(adapter.take(array_api.maximum(other, one)), np.maximum(few, more))
        assert_same_bits(adapter.take(array_api.maximum(one, 2)), np.maximum(few, np.int8(2)))
        assert_same_bits(adapter.take(array_api.maximum(one, one)), few)


@pytest.mark.parametrize("library", ["dask.array", "jax.numpy", "xarray", "pandas"])
def test_numpy_arrays_follow_the_other_library(library: str) -> None:
    module = pytest.importorskip(library)
    make = {"dask.array": "from_array", "jax.numpy": "asarray", "xarray": "DataArray", "pandas": "Series"}[library]
    floats, few = np.array([1, 2.5], np.float32), getattr(module, make)(np.array([2, 1], np.int8))
    results = [array_api.maximum(floats, few), array_api.maximum(few, floats)]
    assert type(results[0]) is type(results[1])
    assert type(results[0]) is (np.ndarray if library == "pandas" else type(few))
    for result in results:
        assert_same_bits(np.asarray(result), np.array([2, 2.5], np.float32))


@pytest.mark.filterwarnings("ignore:You are comparing a array_api_strict dtype")
def test_what_no_library_promotes_raises_the_error_of_maximum() -> None:
    floats = np.array([1.0, 2.0])
    pairs: list[tuple[Any, Any]] = [(floats.astype(np.float32), 2**2000), (floats, -(2**2000))]
    if (strict := optional("array_api_strict")) is not None:
        pairs.append((floats, strict.asarray([1, 2], dtype=strict.int8)))
    if (pandas := optional("pandas")) is not None:
        pairs.append((floats, pandas.array([1, 2], dtype="Int8")))
    if (polars := optional("polars")) is not None:
        pairs.append((floats, polars.Series([1, 2], dtype=polars.Int8)))
    for one, other in pairs:
        for each in ((one, other), (other, one)):
            with pytest.raises(errors.MaxopsError):
                array_api.maximum(*each)


def optional(name: str) -> Any:
    """Return a module, or None if it is missing."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def test_arrays_of_the_standard() -> None:
    strict = pytest.importorskip("array_api_strict")
    one, other = strict.asarray([1, 5], dtype=strict.int8), strict.asarray([4, 2], dtype=strict.int32)
    result = array_api.maximum(one, other)
    assert (type(result), result.dtype, np.asarray(result).tolist()) == (type(one), strict.int32, [4, 5])
    assert int(array_api.argmax(other)) == 0
    x = np.array([1, 3e7], np.float32)
    assert_same_bits(
        array_api.maximum(x, 16777217), np.array([16777216, 3e7], np.float32)
    )  # rounded, as in other libraries


def test_two_libraries() -> None:
    torch = pytest.importorskip("torch")
    tensor, array = torch.tensor([1.0, 5.0]), np.array([4, 2], np.float32)
    assert array_api.maximum(tensor, array).tolist() == array_api.maximum(array, tensor).tolist() == [4, 5]
    for arrays in [(tensor, array.astype(np.float64)), (array.astype(np.float64), tensor)]:
        with pytest.raises(errors.DTypeError, match="float64"):
            array_api.maximum(*arrays)
    jnp = pytest.importorskip("jax.numpy")
    for arrays in [(tensor, jnp.ones(2)), (jnp.ones(2), tensor)]:
        with pytest.raises(errors.EngineError, match="torch"):
            array_api.maximum(*arrays)
