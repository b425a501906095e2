"""The axis of segment_max: every memory layout, and gradients, batches, names, labels and files along it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import maxops as mo
from helpers.bits import LAYOUTS, assert_same_bits, mixed
from maxops import _native, dtypes, errors
from maxops.cli.app import app
from maxops.plan import Array

PIECE, _ = _native.parameters()["kPieceElements"]
# Sizes around the minimum for separate pieces, with one row, one column, and several blocks.
SHAPES = ((5,), (PIECE,), (3, PIECE - 1), (3, PIECE), (PIECE, 3), (2, 3, 4), (3, PIECE + 1, 2), (2, 2, PIECE), (1, 9))
TYPES = (dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.INT64, dtypes.UINT8)
FILLS: tuple[dict[str, Any], ...] = ({"fill_mode": "ZERO"}, {"initial": 1}, {"fill_value": 2})


def along_first(axis: int, data: Array, *arguments: Any, **options: Any) -> tuple[Array, ...]:
    """Return the results along the first axis of a contiguous array, moved to this axis."""
    rows = np.ascontiguousarray(np.moveaxis(data, axis, 0))
    values, indices, empty = mo.segment_max(rows, *arguments, **options, return_indices=True, return_empty=True)
    return np.moveaxis(values, 0, axis), np.moveaxis(indices, 0, axis), empty


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_layout(shape: tuple[int, ...]) -> None:
    """Test each order of axes and layout, with sorted and unsorted ids, offsets, and outputs of other layouts."""
    random = np.random.default_rng([*shape])
    every = itertools.product(itertools.permutations(range(len(shape))), LAYOUTS.values(), range(len(shape)))
    for number, (order, layout, axis) in enumerate(every):
        dtype, fill = TYPES[number % len(TYPES)], FILLS[number % len(FILLS)]
        data = layout(mixed(dtype, shape, number, nans=0.1).transpose(order)).transpose(np.argsort(order))
        count = (1, 3, shape[axis] + 2)[number % 3]
        ids = np.sort(random.integers(0, count, shape[axis]))
        offsets = np.concatenate([[0], np.bincount(ids, minlength=count).cumsum()])
        calls: tuple[dict[str, Any], ...] = (
            {"segment_ids": ids, "num_segments": count},
            {"segment_ids": random.permutation(ids), "num_segments": count, "sorted": False},
            {"offsets": offsets},
            {"offsets": np.repeat(offsets, 2)[::2]},
        )
        for call in calls:
            correct = along_first(axis, data, **call, **fill)
            named = axis - len(shape) if number % 2 else axis
            got = mo.segment_max(data, **call, **fill, axis=named, return_indices=True, return_empty=True)
            for part, expected in zip(got, correct, strict=True):
                assert_same_bits(part, expected)
            assert_same_bits(mo.segment_max(data, **call, **fill, axis=named), correct[0])
            for place in (
                np.zeros(correct[0].shape, dtype.numpy),
                layout(np.zeros(correct[0].shape, dtype.numpy, order="F")),
            ):
                if place.flags.writeable:
                    assert mo.segment_max(data, **call, **fill, axis=named, out=place) is place
                    assert_same_bits(place.astype(dtype.numpy), correct[0])


def test_a_new_result_follows_the_data_in_memory() -> None:
    data = np.zeros((4, PIECE, 5), np.float32)
    ids = np.zeros(PIECE, np.int64)
    assert mo.segment_max(data, ids, 3, fill_mode="ZERO", axis=1).flags.c_contiguous
    assert mo.segment_max(data.T, ids, 3, fill_mode="ZERO", axis=1).flags.f_contiguous
    short = np.zeros((4, 3), np.float32)  # pieces that are too small: the segments are outermost
    assert mo.segment_max(short, ids[:3], 3, fill_mode="ZERO", axis=1).flags.f_contiguous == (PIECE > 3)


@pytest.mark.parametrize("rows", [70_000, 600_000])
def test_many_rows_by_several_threads(rows: int, threads: int) -> None:
    """Test pieces that are tasks, and pieces that have several tasks."""
    data = mixed(dtypes.FLOAT32, (3, rows), 5)
    ids = np.sort(np.random.default_rng(3).integers(0, rows // 5, rows))
    for call in ({"segment_ids": ids}, {"segment_ids": ids[::-1].copy(), "sorted": False}):
        correct = along_first(1, data, **call, fill_mode="ZERO")
        got = mo.segment_max(data, **call, fill_mode="ZERO", axis=1, return_indices=True, return_empty=True)
        for part, expected in zip(got, correct, strict=True):
            assert_same_bits(part, expected)


def test_rationals() -> None:
    data = np.array([[1, 5, 2], [7, 3, 9]], object)
    values, indices, empty = mo.segment_max(
        data, [0, 0, 2], fill_mode="ZERO", axis=1, return_indices=True, return_empty=True
    )
    assert values.tolist() == [[5, 0, 2], [7, 0, 9]]
    assert indices.tolist() == [[1, -1, 2], [0, -1, 2]]
    assert empty.tolist() == [False, True, False]


def test_wrong_ids_leave_out_as_it_was() -> None:
    """Test that nothing is written before all ids are validated, for any number of pieces."""
    data, out = np.zeros((3, PIECE), np.float32), np.full((3, 2), 7, np.float32)
    ids = np.zeros(PIECE, np.int64)
    ids[-2] = 1
    with pytest.raises(errors.SegmentIdsError, match=f"got 0 after 1 at position {PIECE - 1}"):
        mo.segment_max(data, ids, 2, fill_mode="ZERO", axis=1, out=out)
    assert (out == 7).all()


def test_named_standards_have_no_axis() -> None:
    with pytest.raises(errors.AttributeValueError, match="has no attribute 'axis'"):
        mo.operator("OpenVINO", "SegmentMax")(np.zeros((2, 2)), np.array([0, 0]), fill_mode="ZERO", axis=1)


# ------------------------------------------------------------------------------------------------ other arrays


@pytest.mark.parametrize(("axis", "ties"), [(1, "even"), (-1, "first")])
def test_gradients_and_batches_of_torch(axis: int, ties: Any) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("maxops.engines.torch")
    values = torch.from_numpy(np.random.default_rng(1).integers(0, 3, (2, 6, 3)).astype(np.float64))
    ids = torch.tensor([0, 0, 2, 2, 2, 3])[: values.shape[axis]]
    weights = torch.arange(1.0, 1 + 4 * values.numel()).to(torch.float64)

    def moved(data: Any) -> Any:
        rows = torch.movedim(data, axis, 0)
        return torch.movedim(mo.segment_max(rows, ids, 4, fill_mode="ZERO", ties=ties), 0, axis)

    def along(data: Any) -> Any:
        return mo.segment_max(data, ids, 4, fill_mode="ZERO", ties=ties, axis=axis)

    def grad_of(function: Any) -> Any:
        def total(data: Any) -> Any:
            result = function(data)
            return (result * weights[: result.numel()].reshape(result.shape)).sum()

        return torch.func.grad(total)

    batch = torch.stack([values, values + 1, -values])
    transforms: tuple[tuple[Any, Any], ...] = (
        (lambda function: function, values),
        (grad_of, values),
        (lambda function: torch.vmap(grad_of(function)), batch),
        (lambda function: torch.compile(function, backend="eager", fullgraph=True), values),
    )
    for transform, given in transforms:
        expected, got = transform(moved)(given), transform(along)(given)
        assert got.shape == expected.shape
        assert torch.equal(got, expected)


def test_gradients_and_batches_of_jax(lowering: str) -> None:
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    axis = 1 if lowering == "custom-calls" else -1
    values = jnp.asarray(np.random.default_rng(1).integers(0, 3, (2, 6, 3)).astype(np.float32))
    ids = jnp.array([0, 0, 2, 2, 2, 3])[: values.shape[axis]]

    def moved(data: Any) -> Any:
        return jnp.moveaxis(mo.segment_max(jnp.moveaxis(data, axis, 0), ids, 4, fill_mode="ZERO"), 0, axis)

    def along(data: Any) -> Any:
        return mo.segment_max(data, ids, 4, fill_mode="ZERO", axis=axis)

    def grad_of(function: Any) -> Any:
        def total(data: Any) -> Any:
            result = function(data)
            return (result * jnp.arange(result.size).reshape(result.shape)).sum()

        return jax.grad(total)

    batch = jnp.stack([values, values + 1, -values])
    each: tuple[Any, ...] = (lambda f: f, values), (grad_of, values), (lambda f: jax.vmap(grad_of(f)), batch)
    for transform, given in each:
        expected, got = jax.jit(transform(moved))(given), jax.jit(transform(along))(given)
        assert got.shape == expected.shape
        assert np.array_equal(got, expected)


GIVE: dict[str, Any] = {
    "torch": lambda array: pytest.importorskip("torch").from_numpy(array),
    "jax": lambda array: pytest.importorskip("jax").device_put(array),
    "dask": lambda array: pytest.importorskip("dask.array").from_array(array, chunks=-1),
}
SQUARE = np.arange(9).reshape(3, 3)
REFUSED: dict[str, Any] = {
    "none": None,
    "scalar": 1.0,
    "list": SQUARE.tolist(),
    "floats-in-objects": SQUARE.astype(np.float64).astype(object),
    "masked": np.ma.masked_array(SQUARE, SQUARE > 5),
    "complex": SQUARE.astype(complex),
    "strings": SQUARE.astype(str),
}


@pytest.mark.parametrize("kind", GIVE)
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_along_every_axis(kind: str, name: str) -> None:
    """Test NumPy data with ids of another library, which must be checked before use."""
    ids = GIVE[kind](np.array([0, 0, 1]))
    with pytest.raises(errors.DTypeError) as expected:
        mo.segment_max(REFUSED[name], [0, 0, 1], 2, fill_mode="ZERO")
    for axis in (0, 1):
        with pytest.raises(errors.DTypeError) as actual:
            mo.segment_max(REFUSED[name], ids, 2, fill_mode="ZERO", axis=axis)
        assert str(actual.value) == str(expected.value)


@pytest.mark.parametrize("kind", GIVE)
@pytest.mark.parametrize("dtype", [">f4", "f8", "i8", "u8", "i2", "f2"])
def test_arrays_of_numpy_beside_other_ids_are_not_converted(kind: str, dtype: str) -> None:
    """Test that the bits or the error for an unsupported type are those along the first axis."""
    ids, data = GIVE[kind](np.array([0, 0, 1])), SQUARE.astype(dtype)
    if "8" in dtype:
        data[0, 1] = 2**40 + 1

    def run(given: Any, axis: int) -> Any:
        try:
            return np.asarray(mo.segment_max(given, ids, 2, fill_mode="ZERO", axis=axis))
        except errors.MaxopsError as error:
            return type(error), str(error)

    expected, actual = run(np.ascontiguousarray(data.T), 0), run(data, 1)
    if isinstance(expected, tuple):
        assert actual == expected
        return
    assert expected.dtype == data.dtype.newbyteorder("=")
    assert expected[0, 0] == data[0, 1]
    assert_same_bits(np.ascontiguousarray(actual), np.ascontiguousarray(expected.T))


@pytest.mark.parametrize("kind", GIVE)
def test_errors_have_the_shapes_of_the_caller(kind: str) -> None:
    give = GIVE[kind]
    data, ids = give(np.zeros((2, 3, 4), np.float32)), np.array([0, 0, 1])
    for wrong in (np.array(0), np.zeros((3, 1), int), np.zeros(2, int)):
        with pytest.raises(errors.SegmentIdsError) as raised:
            mo.segment_max(data, give(wrong), 2, fill_mode="ZERO", axis=1)
        assert "must have shape (3,) for axis 1 of data of shape (2, 3, 4), got" in str(raised.value)
    if kind == "jax":
        with pytest.raises(errors.OutputTooLargeError, match=r"\(2, 1125899906842624, 4\)"):
            mo.segment_max(data, ids, 2**50, fill_mode="ZERO", axis=1)
    if kind == "torch":
        for given in (data, data.clone().requires_grad_()):
            with pytest.raises(errors.OutputTooLargeError, match=r"\(2, 1125899906842624, 4\)"):
                mo.segment_max(given, ids, 2**50, fill_mode="ZERO", axis=1)


def test_names_of_xarray() -> None:
    xr = pytest.importorskip("xarray")
    data = xr.DataArray(np.arange(12.0).reshape(2, 3, 2), dims=["x", "time", "y"])
    ids = np.array([0, 0, 1])
    expected = mo.segment_max(data, ids, fill_mode="ZERO", dim="time")
    for axis in (1, -2):
        xr.testing.assert_identical(mo.segment_max(data, ids, fill_mode="ZERO", axis=axis), expected)
    named = xr.DataArray(ids, dims=["time"])
    xr.testing.assert_identical(mo.segment_max(data, named, fill_mode="ZERO", axis=1), expected)
    with pytest.raises(errors.AttributeValueError, match="got both dim and axis"):
        mo.segment_max(data, ids, fill_mode="ZERO", dim="time", axis=1)
    for axis, dim in ((2, "y"), (-3, "x")):  # -3 is the first axis, but not the default
        with pytest.raises(errors.AttributeValueError, match=f"dim is '{dim}', but segment_ids has dimension"):
            mo.segment_max(data, named, fill_mode="ZERO", axis=axis)
        with pytest.raises(errors.AttributeValueError, match="got both dim and axis"):
            mo.segment_max(data, ids, fill_mode="ZERO", dim="time", axis=axis)


def test_labels_of_pandas_are_those_of_the_axis() -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame([[1.0, 5.0, 2.0], [7.0, 3.0, 9.0]], columns=["a", "b", "c"])
    ids = pd.Series([0, 0, 1], index=["a", "b", "c"])
    expected = np.array([[5.0, 2.0], [7.0, 9.0]])
    for axis in (1, -1):
        assert_same_bits(np.ascontiguousarray(mo.segment_max(table, ids, fill_mode="ZERO", axis=axis)), expected)
    with pytest.raises(errors.ShapeError, match="segment_ids and data have different labels"):
        mo.segment_max(table, ids[::-1], fill_mode="ZERO", axis=1)
    with pytest.raises(errors.AxesError, match="axis must be an integer, got 'rows' of type str"):
        mo.segment_max(table, ids, fill_mode="ZERO", axis="rows")  # type: ignore[call-overload]


def test_files(tmp_path: Path) -> None:
    data, ids, out = (tmp_path / f"{name}.npy" for name in ("data", "ids", "out"))
    np.save(data, np.array([[1.0, 5.0, 2.0], [7.0, 3.0, 9.0]]))
    np.save(ids, np.array([0, 0, 1]))
    command = ["segment-max", str(data), str(ids), "--fill-mode", "ZERO", "--axis", "1", "-o", str(out)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert_same_bits(np.ascontiguousarray(np.load(out)), np.array([[5.0, 2.0], [7.0, 9.0]]))
