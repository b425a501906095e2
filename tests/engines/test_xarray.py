"""Features of xarray arrays beyond the common table: names, coordinates, attributes, labels, Datasets, Variables."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from importlib import import_module
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import errors

xr = pytest.importorskip("xarray")

IDS = [0, 0, 2, 2]


@pytest.fixture
def heat() -> Any:
    """Return temperatures with labels along both dimensions, a coordinate of each kind, a name and attributes."""
    return xr.DataArray(
        np.array([[3.0, -0.0, np.nan], [1.0, 0.0, 7.0], [-1.0, 2.0, 2.0], [5.0, 2.0, -9.0]]),
        dims=("time", "x"),
        coords={
            "time": [10, 20, 30, 40],
            "x": ["a", "b", "c"],
            "height": ("x", [1.5, 2.5, 3.5], {"units": "m"}),
            "season": ("time", ["w", "w", "s", "s"]),
            "station": 7,
        },
        name="heat",
        attrs={"units": "K"},
    )


def regions(**more: Any) -> Any:
    return xr.DataArray(np.array(IDS), **({"dims": "time", "name": "region"} | more))


# ------------------------------------------------------------------------------------------------- maximum


def test_maximum_keeps_what_xarray_keeps(heat: Any) -> None:
    got = mo.maximum(heat, 2.0, heat - 1)
    xr.testing.assert_identical(got.copy(data=heat.data), heat)
    assert_same_bits(got.data, mo.maximum(heat.data, 2.0, heat.data - 1))


def test_maximum_broadcasts_by_name(heat: Any) -> None:
    first = heat.isel(time=0, drop=True)
    other = xr.DataArray(np.arange(2.0), dims="run")
    got = mo.maximum(first, other, heat)
    assert got.dims == ("x", "run", "time")
    expected = mo.maximum(first.data[:, None, None], other.data[:, None], heat.data.T[:, None, :])
    assert_same_bits(got.data, np.ascontiguousarray(expected))
    xr.testing.assert_equal(got.coords["height"], heat.coords["height"])


def test_name_and_attributes_are_kept_where_inputs_agree(heat: Any) -> None:
    other = heat.rename("other").assign_attrs(units="C", source="s")
    got = mo.maximum(heat, other)
    assert (got.name, got.attrs) == (None, {"source": "s"})
    with xr.set_options(keep_attrs=False):
        assert mo.maximum(heat, other).attrs == {}
        assert mo.reduce_max(heat, dim="x").attrs == {}
    assert mo.maximum(heat, np.zeros((4, 3))).name == "heat"


def test_arrays_without_names_take_the_others(heat: Any) -> None:
    row = np.array([0.0, 9.0, 1.0])
    for got in (mo.maximum(heat, row), mo.maximum(row, heat), mo.maximum(np.float64(1), heat, row)):
        assert got.dims == heat.dims
    assert_same_bits(mo.maximum(row, heat).data, mo.maximum(heat.data, row))


@pytest.mark.parametrize("shape", [(2, 4, 3), (4,), (5, 3)])
def test_arrays_without_names_do_not_enlarge_the_others(heat: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(errors.ShapeError, match=re.escape(f"input 1 has shape {shape} and no dimension names")):
        mo.maximum(heat, np.zeros(shape))
    with pytest.raises(errors.ShapeError, match="and no dimension names"):
        mo.maximum(heat.isel(time=[0]), np.zeros((4, 3)))


def test_labels_that_differ_are_an_error(heat: Any) -> None:
    """Test different labels, for which xarray itself would silently drop three of four elements here."""
    later = heat.assign_coords(time=[40, 50, 60, 70])
    assert (heat + later).sizes["time"] == 1
    with pytest.raises(errors.ShapeError, match=r"different labels.*xarray\.align.*'time'"):
        mo.maximum(heat, later)
    with pytest.raises(errors.ShapeError, match="different labels"):
        mo.maximum(heat, heat.isel(time=[1, 0, 2, 3]))
    left, right = xr.align(heat, later, join="inner")
    assert mo.maximum(left, right).sizes["time"] == 1


def test_sizes_that_differ_are_an_error(heat: Any) -> None:
    expected = "does not match input 0 in dimension 'time': axis -2 has size 1, expected 4"
    with pytest.raises(errors.ShapeError, match=re.escape(expected)):
        mo.maximum(heat, heat.isel(time=[0]))


def test_types_are_never_converted(heat: Any) -> None:
    with pytest.raises(errors.DTypeError, match="input 1 is float32, but input 0 is float64"):
        mo.maximum(heat, heat.astype("f4"))
    with pytest.raises(errors.DTypeError, match="input 0 has unsupported dtype <U1"):
        mo.maximum(heat.season, heat.season)
    for dtype in (ml_dtypes.bfloat16, np.float16, np.uint64, ">i2"):
        assert mo.maximum(heat.fillna(0).astype("i1").astype(dtype), 3).dtype == np.dtype(dtype).newbyteorder("=")


def test_rationals_stay_exact() -> None:
    thirds = xr.DataArray(np.array([Fraction(1, 3), 2], object), dims="x")
    assert mo.maximum(thirds, Fraction(1, 2)).data.tolist() == [Fraction(1, 2), 2]
    assert mo.reduce_max(thirds, dim="x").item() == 2


# ------------------------------------------------------------------------------------------------ reductions


@pytest.mark.parametrize("dim", ["time", ["time"], ("x", "time"), ...])
def test_named_dimensions_go(heat: Any, dim: Any) -> None:
    got = mo.reduce_max(heat, dim=dim)
    expected = heat.max(dim, skipna=False)
    assert (got.dims, got.name, got.attrs) == (expected.dims, "heat", {"units": "K"})
    xr.testing.assert_identical(got.coords.to_dataset(), expected.coords.to_dataset())
    np.testing.assert_array_equal(got, expected)


def test_named_dimensions_are_kept_on_request(heat: Any) -> None:
    got = mo.reduce_max(heat, dim="time", keepdims=True)
    xr.testing.assert_identical(got, mo.reduce_max(heat, axes=0))
    xr.testing.assert_identical(mo.reduce_max(heat, dim="time", keepdims=False), mo.reduce_max(heat, axis=0))


def test_axes_are_kept_as_elsewhere(heat: Any) -> None:
    got = mo.reduce_max(heat, axes=(0,))
    assert (got.dims, got.shape) == (("time", "x"), (1, 3))
    assert set(got.coords) == {"x", "height", "station"}
    assert mo.reduce_max(heat, axes=-1, keepdims=False).dims == ("time",)
    assert mo.reduce_max(heat).shape == (1, 1)
    xr.testing.assert_identical(mo.reduce_max(heat.fillna(0), noop_with_empty_axes=True), heat.fillna(0))


def test_several_indexes_of_one_dimension_are_no_obstacle() -> None:
    stacked = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("y", "x")).stack(point=("y", "x"))
    assert mo.reduce_max(stacked, dim="point").item() == 5.0
    both = mo.maximum(stacked, xr.DataArray([1.0, 2.0], dims="z"))
    assert set(both.coords) == {"point", "y", "x"}


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"dim": "q"}, errors.AttributeValueError, "dim must be a dimension of data ('time', 'x'), got 'q'"),
        ({"dim": ("x", "x")}, errors.AxesError, "must not repeat a dimension"),
        ({"dim": "x", "axes": 1}, errors.AttributeValueError, "dim and axes"),
        ({"dim": []}, errors.AttributeValueError, "dim must name at least one dimension"),
        ({"dim": "x", "keepdims": 2}, errors.AttributeValueError, "keepdims must be True, False, 1 or 0, got 2"),
        ({"axes": 2}, errors.AxesError, "axes must be between -2 and 1"),
        ({"dim": "x", "out": np.zeros(4)}, errors.OutputError, "out= is not supported"),
    ],
)
def test_bad_reductions(heat: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        mo.reduce_max(heat, **options)


# -------------------------------------------------------------------------------------------------- segments


def test_segments_have_the_name_of_the_ids(heat: Any) -> None:
    values, indices, empty = mo.segment_max(heat, regions(), fill_mode="ZERO", return_indices=True, return_empty=True)
    expected = mo.segment_max(heat.data, np.array(IDS), fill_mode="ZERO", return_indices=True, return_empty=True)
    for got, correct in zip((values, indices, empty), expected, strict=True):
        assert_same_bits(got.data, correct)
    assert values.dims == indices.dims == ("region", "x")
    assert empty.dims == ("region",)
    assert set(values.coords) == set(indices.coords) == {"x", "height", "station"}
    assert (values.name, values.attrs, indices.attrs) == ("heat", {"units": "K"}, {})
    assert_same_bits(values.sel(region=2).data, expected[0][2])


def test_segments_agree_with_groupby(heat: Any) -> None:
    whole = heat.fillna(0)
    with xr.set_options(use_flox=False, use_numbagg=False):  # flox and numbagg would first compile code
        grouped = whole.groupby(regions()).max()
    got = mo.segment_max(whole, regions(), fill_mode="ZERO").isel(region=grouped.region.data)
    assert got.dims == grouped.dims
    assert (got.data == grouped.data).all()


@pytest.mark.parametrize("ids", [np.array(IDS), regions(name=None), xr.Variable("time", IDS), regions(name="time")])
def test_segments_without_a_name_keep_that_of_the_rows(heat: Any, ids: Any) -> None:
    got = mo.segment_max(heat, ids, fill_mode="ZERO")
    assert got.dims == ("time", "x")
    assert got.shape == (3, 3)
    assert set(got.coords) == {"x", "height", "station"}


def test_rows_lie_where_they_are_named(heat: Any) -> None:
    across = heat.transpose("x", "time").assign_coords(region=("time", IDS))
    expected = mo.segment_max(heat.data, np.array(IDS), fill_mode="ZERO").T
    for got in (
        mo.segment_max(across, across.region, fill_mode="ZERO"),
        mo.segment_max(across, np.array(IDS), dim="time", fill_mode="ZERO").rename(time="region"),
        mo.segment_max(across, offsets=xr.DataArray([0, 2, 2, 4]), dim="time", fill_mode="ZERO").rename(time="region"),
    ):
        assert got.dims == ("x", "region")
        assert_same_bits(np.ascontiguousarray(got.data), np.ascontiguousarray(expected))


def test_segments_of_the_first_dimension_without_a_name(heat: Any) -> None:
    got = mo.segment_max(heat, np.array([1, 0, 1, 0]), sorted=False, initial=0)
    assert_same_bits(got.data, mo.segment_max(heat.data, np.array([1, 0, 1, 0]), sorted=False, initial=0))


@pytest.mark.parametrize(
    ("ids", "options", "error", "words"),
    [
        (regions(), {"dim": "x"}, errors.AttributeValueError, "dim is 'x', but segment_ids has dimension 'time'"),
        (regions(name="x"), {}, errors.AttributeValueError, "dimension or coordinate 'x'"),
        (regions(name="height"), {}, errors.AttributeValueError, "dimension or coordinate 'height'"),
        (regions(dims="t"), {}, errors.ShapeError, "segment_ids has dimension 't', but data has 'time', 'x'"),
        (
            np.array(IDS),
            {"dim": "t"},
            errors.AttributeValueError,
            "dim must be a dimension of data ('time', 'x'), got 't'",
        ),
        (regions().isel(time=[0, 1]), {}, errors.SegmentIdsError, ", got (2,)"),
        (regions(coords={"time": [1, 2, 3, 4]}), {}, errors.ShapeError, "data and segment_ids have different labels"),
        (regions()[::-1], {}, errors.SegmentIdsError, "got 0 after 2 at position 2"),
        (regions(), {"out": np.zeros((3, 3))}, errors.OutputError, "out= is not supported"),
    ],
)
def test_bad_segments(heat: Any, ids: Any, options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=re.escape(words)):
        mo.segment_max(heat, ids, **({"fill_mode": "ZERO"} | options))


def test_data_beside_named_ids_needs_names(heat: Any) -> None:
    with pytest.raises(errors.EngineError, match=r"data must be an xarray object if .*got ndarray"):
        mo.segment_max(heat.data, regions(), fill_mode="ZERO")


# ----------------------------------------------------------------------------------------------- other kinds


def test_datasets_are_mapped_by_their_own_functions(heat: Any) -> None:
    dataset = xr.Dataset({"heat": heat, "cold": -heat})
    calls: list[Callable[[], Any]] = [
        lambda: mo.maximum(dataset, 1.0),
        lambda: mo.maximum(heat, dataset),
        lambda: mo.reduce_max(dataset, dim="x"),
        lambda: mo.segment_max(dataset, regions(), fill_mode="ZERO"),
    ]
    for call in calls:
        with pytest.raises(errors.DTypeError, match=r"must be a single array, got a Dataset; .*dataset\.map"):
            call()
    with pytest.raises(errors.DTypeError, match="got a DataTree"):
        mo.reduce_max(xr.DataTree(dataset))
    highest = dataset.map(mo.reduce_max, dim="x")
    xr.testing.assert_identical(highest["cold"], mo.reduce_max(dataset["cold"], dim="x"))
    both = xr.apply_ufunc(mo.maximum, dataset, dataset * 2, dask="allowed")
    assert_same_bits(both["heat"].data, mo.maximum(heat.data, heat.data * 2))


def test_elements_of_pandas_are_refused() -> None:
    pandas = pytest.importorskip("pandas")
    held = xr.Variable("x", pandas.array([1, None], dtype="Int64"))
    with pytest.raises(errors.DTypeError, match=r"got Int64; convert it with .astype\(...\), or pass its .data"):
        mo.reduce_max(held)


def test_data_of_a_file_is_read_once(heat: Any) -> None:
    """Test that coordinates of results are made without reading the data again."""
    reads = []
    base: Any = import_module("xarray.backends").BackendArray

    class Counted(base):  # type: ignore[misc]
        shape, dtype = heat.shape, heat.dtype

        def __getitem__(self, key: Any) -> Any:
            reads.append(key)
            return heat.data[key.tuple]

    lazy = xr.DataArray(xr.Variable(heat.dims, import_module("xarray.core.indexing").LazilyIndexedArray(Counted())))
    assert reads == []
    values, indices = mo.reduce_max(lazy, dim="x", return_indices=True)
    assert len(reads) == 1
    assert_same_bits(values.data, mo.reduce_max(heat.data, axes=1, keepdims=False))
    assert_same_bits(indices.data, np.array([2, 2, 1, 0]))


# ------------------------------------------------------------------------------------------------------ Dask


@pytest.fixture
def lazy(heat: Any) -> Any:
    pytest.importorskip("dask.array")
    return heat.chunk(time=3, x=2)


def test_arrays_of_dask_stay_lazy(heat: Any, lazy: Any) -> None:
    calls: list[Callable[[Any], Any]] = [
        lambda data: mo.maximum(data, 1.0, heat.isel(x=0, drop=True).drop_vars("season")),
        lambda data: mo.reduce_max(data, dim="x", return_indices=True)[1],
        mo.reduce_max,
        lambda data: mo.segment_max(data, regions(), fill_mode="ZERO"),
        lambda data: mo.segment_max(data, regions(), fill_mode="ZERO", return_indices=True)[1],
        lambda data: mo.segment_max(data, regions(), fill_mode="ZERO", return_empty=True)[1],
    ]
    for call in calls:
        with dask_computes_nothing():
            got = call(lazy)
        assert got.chunks is not None
        xr.testing.assert_identical(got.compute(), call(heat))


def test_segments_of_lazy_ids_need_their_number(heat: Any, lazy: Any) -> None:
    ids = regions().chunk(time=2)
    with pytest.raises(errors.NumSegmentsError, match="xarray does not support dimensions of unknown size"):
        mo.segment_max(lazy, ids, fill_mode="ZERO")
    with dask_computes_nothing():
        got = mo.segment_max(lazy, ids, 3, fill_mode="ZERO")
    xr.testing.assert_identical(got.compute(), mo.segment_max(heat, regions(), fill_mode="ZERO"))
    with pytest.raises(errors.SegmentIdsError, match="got 0 after 2 at position 2"):
        mo.segment_max(lazy, ids[::-1], 3, fill_mode="ZERO").compute()


def test_keys_of_dask_are_no_names(heat: Any, lazy: Any) -> None:
    """Test that results do not get the key of a Dask array as their name, which xarray would use."""
    ids = xr.DataArray(regions().chunk(time=2).data, dims="time")
    assert ids.name is not None
    values, empty = mo.segment_max(lazy, ids, 3, fill_mode="ZERO", return_empty=True)
    assert (values.dims, empty.dims, empty.name) == (("time", "x"), ("time",), None)


@contextmanager
def dask_computes_nothing() -> Iterator[None]:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("something was computed")

    with import_module("dask").config.set(scheduler=refuse):
        yield


def test_a_repeated_dimension_is_an_error() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # xarray warns, but creates the array
        square = xr.DataArray(np.ones((2, 2)), dims=("x", "x"))
    calls: list[Callable[[], Any]] = [
        lambda: mo.maximum(1.0, square),
        lambda: mo.reduce_max(square, axis=0),
        lambda: mo.segment_max(square, [0, 1], fill_mode="ZERO"),
        lambda: mo.segment_max(xr.DataArray(np.ones((2, 2))), square, fill_mode="ZERO"),
    ]
    for call in calls:
        with pytest.raises(errors.ShapeError, match=r" has dimensions \('x', 'x'\), but dimensions must be unique; "):
            call()
