"""`maxops.compat.flox`, compared with flox: groups, dtypes, fill values, methods and labels."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

da = pytest.importorskip("dask.array")
xr = pytest.importorskip("xarray")
flox = pytest.importorskip("flox")
pd = pytest.importorskip("pandas")
from flox.xarray import xarray_reduce  # noqa: E402

from maxops.compat import flox as compat  # noqa: E402

NAMES = ("max", "nanmax")
METHODS = (None, "map-reduce", "cohorts", "blockwise")
GROUPS: Any = (None, np.arange(9), np.arange(3))


def _data(dtype: str, rng: np.random.Generator) -> Any:
    data = (rng.standard_normal((3, 40)) * 50).astype(np.int64).astype(dtype)
    if data.dtype.kind == "f":
        data[rng.random(data.shape) < 0.4] = np.nan
        data[:, :3] = np.nan
    if data.dtype.kind == "M":
        data[0, :9] = "NaT"
    return data


def _reduced(*arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flox warns about all-NaN slices
        values, *groups = flox.groupby_reduce(*arguments, **options)
    return values, groups


def _compare(name: str, *arguments: Any, **options: Any) -> None:
    expected, groups = _reduced(*arguments, func=name, **options)
    values, own = _reduced(*arguments, func=getattr(compat, name), **options)
    np.testing.assert_array_equal(np.asarray(values), np.asarray(expected), strict=True)
    assert [part.tolist() for part in own] == [part.tolist() for part in groups]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "u1", "i8", "M8[ns]", "c16"])
@pytest.mark.parametrize("name", NAMES)
def test_groups_are_as_flox_has_them(name: str, dtype: str) -> None:
    rng = np.random.default_rng(1)
    data = _data(dtype, rng)
    for by in (rng.integers(0, 7, 40), rng.choice(["a", "c", "b"], 40), np.zeros(40, int)):
        numbers = by.dtype.kind == "i"
        for groups in GROUPS if numbers else (None, np.array(["c", "a", "x"])):
            for part in (data, data[0]):
                _compare(name, part, by, expected_groups=groups, engine="numpy")
    by = rng.choice([0.0, 1.0, np.nan], 40)  # rows with NaN are in no group
    _compare(name, data, by, engine="numpy")
    _compare(name, data, rng.integers(0, 3, (3, 40)), axis=1, engine="numpy")  # different groups in each row
    if data.dtype.kind == "f":
        _compare(name, data, by, expected_groups=np.arange(4), fill_value=-1.0, engine="numpy")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", NAMES)
def test_methods_for_dask_arrays(name: str, method: str | None) -> None:
    rng = np.random.default_rng(2)
    for dtype in ("f4", "i8", "c16"):
        data, by = _data(dtype, rng), rng.integers(0, 7, 40)
        by = np.sort(by) if method == "blockwise" else by
        for columns in (13, 40):
            lazy = da.from_array(data, chunks=(2, columns))
            _compare(name, lazy, by, method=method, engine="numpy")
            _compare(name, lazy, by, method=method, expected_groups=np.arange(9), fill_value=-1, engine="numpy")


def test_results_are_maxops_own() -> None:
    """Test that results have the quiet NaN with sign 0, and +0 above -0, even with several blocks."""
    values = np.array([-0.0, 0.0, -np.nan, -np.nan, 0.0, -0.0], np.float32)
    by = np.array([0, 0, 1, 1, 2, 2])
    for data in (values, da.from_array(values, chunks=1), da.from_array(values, chunks=4)):
        for name in NAMES:
            for found in (
                flox.groupby_reduce(data, by, func=getattr(compat, name))[0],
                compat.groupby_reduce(data, by, func=name)[0],
            ):
                assert np.asarray(found).view(np.uint32).tolist() == [0, 0x7FC00000, 0]


@pytest.mark.parametrize("dtype", [int, float])
@pytest.mark.parametrize("groups", [range(3), range(1, 4), range(0, 8, 2), range(3, 0, -1)], ids=str)
def test_groups_of_a_range(dtype: type, groups: range) -> None:
    """Test that each label is in its own group, whatever the range begins with, and labels of other groups in none."""
    data = np.array([[3, 1], [2, 5]])
    by: Any = np.array([[0, 2], [7, 0]], dtype)
    largest = {label: int(data[by == label].max()) if (by == label).any() else np.iinfo(int).min for label in groups}
    for engine in (None, "numpy", "flox"):
        for expected in (pd.RangeIndex(groups), (pd.RangeIndex(groups),)):
            values, found = compat.groupby_reduce(data, by, func="max", expected_groups=expected, engine=engine)
            assert dict(zip(found.tolist(), values.tolist(), strict=True)) == largest


def test_float16_and_bool() -> None:
    halves = np.array([1, np.nan, 3], np.float16)
    (found, _) = flox.groupby_reduce(halves, np.array([0, 0, 1]), func=compat.nanmax)
    assert (found.dtype, found.tolist()) == (np.float16, [1, 3])
    found, _ = flox.groupby_reduce(halves == 1, np.array([0, 0, 1]), func=compat.max)
    assert (found.dtype, found.tolist()) == (np.int64, [1, 0])


def test_arrays_of_xarray_keep_their_labels() -> None:
    data = xr.DataArray(_data("f8", np.random.default_rng(3)), dims=("y", "t"), name="heat")
    months = xr.DataArray(np.arange(40) % 12, dims="t", name="month")
    for name in NAMES:
        expected = xarray_reduce(data, months, func=name, skipna=None if name == "nanmax" else False)
        xr.testing.assert_identical(xarray_reduce(data, months, func=getattr(compat, name)), expected)


@pytest.mark.parametrize("func", ["max", "nanmax", "sum"])
@pytest.mark.parametrize("skipna", [None, True, False])
@pytest.mark.parametrize("dtype", ["f4", "i4", "?"])
def test_the_functions_are_as_those_of_flox(func: str, skipna: bool | None, dtype: str) -> None:
    rng = np.random.default_rng(3)
    data, by = _data(dtype, rng), rng.integers(0, 5, 40)
    _assert_same(
        compat.groupby_reduce(data, by, func=func, engine="numpy"),
        flox.groupby_reduce(data, by, func=func, engine="numpy"),
    )
    array = xr.DataArray(data, dims=("a", "b"), name="x")
    labels = xr.DataArray(by, dims="b", name="by")
    both = array.to_dataset().assign(y=xr.DataArray(np.arange(40), dims="b"))
    for obj in (array, array.chunk(b=7), array.to_dataset(), both):
        if func == "nanmax" and skipna is False:
            continue  # flox treats it as nanmax
        expected = _quietly(xarray_reduce, obj, labels, func=func, skipna=skipna, engine="numpy")
        xr.testing.assert_identical(
            _quietly(compat.xarray_reduce, obj, labels, func=func, skipna=skipna, engine="numpy"), expected
        )
    whole = {"dim": ["a", "b"]} if func != "nanmax" else {"dim": "b"}
    expected = _quietly(xarray_reduce, array, labels, func=func, engine="numpy", **whole)
    xr.testing.assert_identical(
        _quietly(compat.xarray_reduce, array, labels, func=func, engine="numpy", **whole), expected
    )
    if func != "nanmax":  # along a dimension without labels, flox expects "max" and skipna
        expected = _quietly(xarray_reduce, array, labels, func=func, dim="a", skipna=skipna, engine="numpy")
        xr.testing.assert_identical(
            _quietly(compat.xarray_reduce, array, labels, func=func, dim="a", skipna=skipna, engine="numpy"), expected
        )


def test_groups_of_nan_alone_are_filled() -> None:
    data, by = np.array([np.nan, np.nan, 5.0, 1.0]), np.array([0, 0, 1, 1])
    for options in (
        {"fill_value": -1.0},
        {"fill_value": -1.0, "min_count": 0},
        {"fill_value": -1.0, "min_count": 2},
        {},
    ):
        for each in (data, da.from_array(data, chunks=2)):
            found, _ = _quietly(compat.groupby_reduce, each, by, func="nanmax", engine="numpy", **options)
            expected, _ = _quietly(flox.groupby_reduce, each, by, func="nanmax", engine="numpy", **options)
            np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), strict=True)
    with pytest.raises(ValueError, match="aligned"):
        compat.groupby_reduce(np.ones((2, 3)), by, func="max")


def _quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # flox warns about all-NaN slices
        return function(*arguments, **options)


def _assert_same(ours: Any, theirs: Any) -> None:
    for own, expected in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(own, expected, strict=True)
