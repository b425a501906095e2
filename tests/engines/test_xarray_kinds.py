"""Metadata of xarray arrays: classes are kept, and coordinates and attributes are shared without a copy."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops.engines.base import as_tuple

xr = pytest.importorskip("xarray")


class Array(xr.DataArray):  # type: ignore[name-defined, misc, unused-ignore]
    """A user-defined subclass of DataArray."""

    __slots__ = ()


class Derived(Array):
    """A subclass of Array."""

    __slots__ = ()


class Other(xr.DataArray):  # type: ignore[name-defined, misc, unused-ignore]
    """Another user-defined subclass of DataArray."""

    __slots__ = ()


class Column(xr.Variable):  # type: ignore[name-defined, misc, unused-ignore]
    """A user-defined subclass of Variable, without coordinates."""

    __slots__ = ()


class Table(xr.Dataset):  # type: ignore[name-defined, misc, unused-ignore]
    """A user-defined subclass of Dataset."""

    __slots__ = ()


class Uncopied:
    """An object that copy.deepcopy rejects, such as a lock or an open file."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


@xr.register_dataarray_accessor("maxops_test")
class Accessor:
    """A user-defined accessor."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def highest(self) -> Any:
        return mo.reduce_max(self.array, dim="x")


IDS = np.array([0, 0, 2])
SHARED = Uncopied()
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda data: mo.maximum(data, 1.0),
    "maximum-of-two": lambda data: mo.maximum(data, data),
    "reduce_max-dim": lambda data: mo.reduce_max(data, dim="x"),
    "reduce_max-dims": lambda data: mo.reduce_max(data, dim=("x", "t"), return_indices=True),
    "reduce_max-axes": lambda data: mo.reduce_max(data, axes=(0,), return_indices=True),
    "reduce_max-none": lambda data: mo.reduce_max(data, noop_with_empty_axes=True),
    "segment_max": lambda data: mo.segment_max(
        data, IDS, 3, dim="t", fill_mode="ZERO", return_indices=True, return_empty=True
    ),
    "segment_max-named": lambda data: mo.segment_max(
        data, xr.DataArray(IDS, dims="t", name="region"), fill_mode="ZERO", return_indices=True
    ),
    "segment_max-offsets": lambda data: mo.segment_max(data, offsets=np.array([0, 1, 3]), dim="t", initial=0.0),
}
CLASSES: list[Any] = [xr.DataArray, Array, Derived, xr.Variable, Column]
PLACES = ["NumPy", "Dask", "MultiIndex"]


def make(kind: Any, place: str = "NumPy") -> Any:
    array = np.arange(12.0).reshape(3, 2, 2)[..., 0] - 3
    if issubclass(kind, xr.Variable):
        data = kind(("t", "x"), array, {"owner": SHARED})
    else:
        columns = np.array([[1.5, 2.5], [0.5, 1.0], [3.0, 4.0]])
        data = kind(array, dims=("t", "x"), name="heat", attrs={"owner": SHARED})
        # Not passed to the constructor, which would copy them.
        for name, dims, values in [("x", "x", ["a", "b"]), ("height", "x", [1.0, 2.0]), ("place", ("t", "x"), columns)]:
            data = data.assign_coords({name: xr.Variable(dims, values, {"owner": SHARED})})
        if place == "MultiIndex":
            pandas = pytest.importorskip("pandas")
            index = pandas.MultiIndex.from_product([["u", "v"], [1]], names=["level", "run"])
            data = data.drop_vars("x").assign_coords(xr.Coordinates.from_pandas_multiindex(index, "x"))
    if place == "Dask":
        pytest.importorskip("dask.array")
        data = data.chunk(t=2, x=1)
    return data


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_classes_stay_and_nothing_is_copied(kind: Any, place: str, operator: str) -> None:
    data = make(kind, place)
    plain = make(xr.Variable if issubclass(kind, xr.Variable) else xr.DataArray, place)
    results, expected = as_tuple(OPERATORS[operator](data)), as_tuple(OPERATORS[operator](plain))
    assert len(results) == len(expected)
    result: Any
    for number, (result, other) in enumerate(zip(results, expected, strict=True)):
        assert type(result) is kind
        assert result.identical(other)
        assert_same_bits(np.asarray(result.data), np.asarray(other.data))
        assert (result.chunks is not None) is (place == "Dask")
        assert [*result.attrs.values()] == ([SHARED] if number == 0 else [])
        assert result.attrs is not data.attrs
        assert result.encoding == {}
        if isinstance(result, xr.Variable):
            continue
        assert result.name == ("heat" if number == 0 else None)
        assert result.indexes.keys() == other.indexes.keys()
        for name, coordinate in result.coords.items():
            if name in data.coords:
                if name in data.indexes:
                    assert result.indexes[name] is data.indexes[name]
                elif place != "Dask":
                    assert np.shares_memory(coordinate.data, data.coords[name].data)
                assert [*coordinate.attrs.values()] == [*data.coords[name].attrs.values()]


@pytest.mark.parametrize("kinds", [*permutations([xr.DataArray, Array, Derived], 2)], ids=str)
def test_of_several_classes_the_most_derived_one(kinds: Any) -> None:
    first, second = map(make, kinds)
    derived = kinds[0] if issubclass(*kinds) else kinds[1]
    assert type(mo.maximum(first, second)) is derived
    assert type(mo.maximum(first, 1.0, second.variable)) is kinds[0]
    assert type(mo.maximum(make(Column), first)) is kinds[0]


def test_of_classes_that_have_nothing_in_common_the_first() -> None:
    for first, second in permutations([Array, Other]):
        assert type(mo.maximum(make(xr.DataArray), make(first), make(second))) is first
    for first, second in permutations([xr.Variable, Column]):
        assert type(mo.maximum(make(first), make(second))) is Column


def test_accessors_and_datasets() -> None:
    assert type(make(Array).maxops_test.highest()) is Array
    table = Table({"a": ("x", [1.0, 2.0]), "b": ("x", [4.0, 3.0])}, attrs={"owner": SHARED})
    highest = table.map(mo.reduce_max, dim="x", keep_attrs=True)
    assert type(highest) is Table
    assert (highest.a.item(), highest.b.item(), highest.attrs["owner"]) == (2.0, 4.0, SHARED)


def test_variables_of_an_index_give_variables() -> None:
    index = make(Array).assign_coords(t=[3, 1, 2]).t.variable
    assert isinstance(index, xr.IndexVariable)
    for result in (mo.maximum(index, 2), mo.reduce_max(index, dim="t"), mo.segment_max(index, IDS, fill_mode="ZERO")):
        assert type(result) is xr.Variable


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("keep", ["default", True, False])
def test_each_set_of_dimensions_as_in_xarrays_own_reductions(place: str, keep: Any) -> None:
    data = make(Array, place)
    assert data.height.attrs == {"owner": SHARED}
    with xr.set_options(keep_attrs=keep):
        for dims in [*permutations(["t"]), *permutations(["x"]), *permutations(["t", "x"])]:
            for result in (mo.reduce_max(data, dim=dims), mo.reduce_max(data, dim=[*dims])):
                expected = data.max(dims, skipna=False)
                assert result.dims == expected.dims
                assert result.identical(expected)
                assert_same_bits(np.asarray(result.data), np.asarray(expected.data))


@pytest.mark.parametrize("place", ["NumPy", "Dask"])
def test_dimensions_in_every_order(place: str) -> None:
    """Test that elements and names agree for every order of dimensions, for each operator."""
    for order, other in product(permutations(["t", "x"]), permutations(["t", "x"])):
        data, second = make(Array, place).transpose(*order), (-make(xr.DataArray)).transpose(*other)
        both = mo.maximum(data, second)
        assert both.dims == order
        assert both.transpose("t", "x").identical(mo.maximum(make(Array, place), -make(xr.DataArray)))
        for result in as_tuple(OPERATORS["segment_max"](data)):
            assert result.dims in (order, ("t",))
        expected = as_tuple(OPERATORS["segment_max-named"](make(Array)))
        for result, one in zip(as_tuple(OPERATORS["segment_max-named"](data)), expected, strict=True):
            assert result.dims == tuple("region" if name == "t" else name for name in order)
            assert result.transpose(*one.dims).identical(one)
