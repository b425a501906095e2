"""The table of cases that every engine must pass: calls on NumPy arrays with the results of the reference.

Each engine runs the cases through its `Adapter` in engine_adapters.py. Other tests cover features of a single engine.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import FLOATS, STORED, assert_same_bits, distinct, mixed, of_words, pool, pool_words
from helpers.engine_adapter import Adapter
from maxops import dtypes, errors, reference, spec
from maxops.dtypes import DType
from maxops.engines.base import as_tuple
from maxops.errors import MaxopsError
from maxops.plan import Array


@dataclass(frozen=True, eq=False)
class Case:
    """One call: the arrays to convert for the engine, the other arguments, and the expected outcome.

    `expected` contains the results in order, or the type of an error and a part of its message.
    """

    name: str
    function: str
    arrays: dict[str, Array] | tuple[Array, ...]
    options: dict[str, Any]
    expected: tuple[Array, ...] | tuple[type[Exception], str]
    dtype: DType = field(default=dtypes.FLOAT32)

    @property
    def is_error(self) -> bool:
        """True if the call must raise an error."""
        return isinstance(self.expected[0], type)


def as_dtype(dtype: DType, values: Any) -> Array:
    """Convert small integers to an array of a dtype."""
    return np.array(values).astype(dtype.numpy)


# ------------------------------------------------------------------------------------------------------ Max


def _max_cases() -> Iterator[Case]:
    def case(name: str, *arrays: Array, dtype: DType, **options: Any) -> Case:
        expected = reference.maximum(*arrays, nan=options.get("nan", "propagate"))
        return Case(f"maximum-{name}-{dtype}", "maximum", arrays, options, (expected,), dtype)

    for dtype in STORED:
        values = np.random.default_rng(1).permutation(pool(dtype))[:300]
        yield case("pool", values, np.roll(values, 1), dtype=dtype)
        yield case("three", *(mixed(dtype, (5, 4), seed) for seed in range(3)), dtype=dtype)
        yield case("pool-ignoring-nan", values, np.roll(values, 1), dtype=dtype, nan="ignore")
        nans = [mixed(dtype, (5, 4), seed, nans=0.5) for seed in range(3)]
        yield case("three-ignoring-nan", *nans, dtype=dtype, nan="ignore")
        yield case("one-ignoring-nan", nans[0], dtype=dtype, nan="ignore")
    for dtype in (dtypes.FLOAT32, dtypes.INT64, dtypes.BFLOAT16):
        one = mixed(dtype, (2, 1, 3), 7)
        yield case("one", one, dtype=dtype)
        yield case("broadcast", one, mixed(dtype, (4, 1), 8), mixed(dtype, (), 9), dtype=dtype)
        yield case("rank-0", mixed(dtype, (), 3), mixed(dtype, (), 4), dtype=dtype)
        yield case("no-elements", mixed(dtype, (0, 3)), mixed(dtype, (1, 3)), dtype=dtype)
        yield case("zero-against-one", mixed(dtype, (2, 0)), mixed(dtype, (2, 1)), dtype=dtype)
        yield case("rank-6", mixed(dtype, (2, 1, 2, 1, 2, 1), 5), mixed(dtype, (1, 2, 1, 2, 1, 2), 6), dtype=dtype)
    for dtype in FLOATS:
        words = [word for word in pool_words(dtype) if word & ~(1 << dtype.bits - 1) <= 1 << dtype.mantissa_bits]
        yield case("subnormals-and-zeros", of_words(dtype, words), of_words(dtype, words[::-1]), dtype=dtype)

    def refused(name: str, error: type[Exception], words: str, *arrays: Array, **options: Any) -> Case:
        return Case(f"maximum-refused-{name}", "maximum", arrays, options, (error, words))

    a = np.zeros((2, 3), np.float32)
    yield refused("types", errors.DTypeError, "input 1 is int32, but input 0 is float32", a, np.zeros((2, 3), np.int32))
    yield refused("shapes", errors.ShapeError, "axis -1 has size 2, expected 3", a, np.zeros((2, 2), np.float32))
    yield refused("ties", errors.AttributeValueError, "ties must be 'first' or 'even', got 'last'", a, a, ties="last")
    yield refused(
        "nan", errors.AttributeValueError, "nan must be 'propagate' or 'ignore', got 'omit'", a, a, nan="omit"
    )
    yield refused(
        "nan-none", errors.AttributeValueError, "nan must be 'propagate' or 'ignore', got None", a, a, nan=None
    )


# ------------------------------------------------------------------------------------------------ ReduceMax


def _reduce_case(
    name: str, data: Array, axes: Any = None, dtype: DType = dtypes.FLOAT32, initial: Any = None, **options: Any
) -> Case:
    taken = () if axes is None else tuple(int(axis) % data.ndim for axis in np.ravel(axes))
    identity = bool(options.get("noop_with_empty_axes")) and not taken
    first = None if initial is None else as_dtype(dtype, initial)
    values = reference.reduce_max(
        data,
        taken,
        keepdims=options.get("keepdims", True),
        identity=identity,
        initial=first,
        nan=options.get("nan", "propagate"),
    )
    expected = [values]
    if options.get("return_indices"):
        expected.append(np.zeros(data.shape, np.int64) if identity else reference.first_in_axes(data, taken, values))
    given = options | {"axes": axes} | ({} if initial is None else {"initial": initial})
    return Case(f"reduce_max-{name}-{dtype}", "reduce_max", {"data": data}, given, tuple(expected), dtype)


def _axis_case(data: Array, axis: Any, dtype: DType, **options: Any) -> Case:
    """Return a case in NumPy's convention: reduced axes are dropped, and empty axes reduce nothing."""
    same = _reduce_case(
        "-".join(["axis", str(axis), *options]),
        data,
        axis,
        dtype,
        **{"keepdims": False, "noop_with_empty_axes": np.size(axis) == 0 and axis is not None, **options},
    )
    return replace(same, options={"axis": axis, **options})


def _reduce_cases() -> Iterator[Case]:
    for dtype in STORED:
        data = mixed(dtype, (3, 5, 4), 11, nans=0.1)
        for axis in (0, -1, (0, 2), None, ()):
            yield _axis_case(data, axis, dtype, return_indices=True)
        yield _reduce_case("all", data, dtype=dtype)
        yield _reduce_case("last", data, -1, dtype=dtype)
        yield _reduce_case("first-indices", data, 0, dtype=dtype, keepdims=False, return_indices=True)
        few = as_dtype(dtype, np.random.default_rng(2).integers(0, 2, (4, 6)))
        yield _reduce_case("ties-indices", few, 1, dtype=dtype, return_indices=True)
        yield _reduce_case("empty-set", mixed(dtype, (0, 2)), 0, dtype=dtype)
    for dtype in (dtypes.FLOAT32, dtypes.FLOAT64, dtypes.INT32, dtypes.UINT8):
        data = mixed(dtype, (3, 4, 5), 12, nans=0.1)
        yield _reduce_case("middle", data, (1,), dtype=dtype, keepdims=False)
        yield _reduce_case("outer-indices", data, (2, 0), dtype=dtype, return_indices=True)
        yield _reduce_case("all-indices", data, dtype=dtype, keepdims=False, return_indices=True)
        yield _reduce_case("rank-0", mixed(dtype, (), 3), dtype=dtype, return_indices=True)
        arrays = (np.array([1, 2], np.int8), np.array([1], np.uint64), np.array(1))
        for spelled in ([2], range(2), deque([0, -1]), *arrays):
            kind = f"{type(spelled).__name__}-{getattr(spelled, 'ndim', 1)}-{np.asarray(spelled).dtype}"
            yield _reduce_case(f"axes-{kind}", data, spelled, dtype=dtype)
        yield _reduce_case("noop-pool", pool(dtype)[np.newaxis], dtype=dtype, noop_with_empty_axes=True)
        yield _reduce_case("noop-indices", data, dtype=dtype, noop_with_empty_axes=True, return_indices=True)
        few = as_dtype(dtype, np.random.default_rng(3).integers(0, 4, (4, 6)))
        yield _reduce_case("initial", few, 1, dtype=dtype, initial=3, return_indices=True)
        yield _reduce_case("initial-above", few, 1, dtype=dtype, initial=9, return_indices=True)
        yield _reduce_case("initial-empty-set", mixed(dtype, (2, 0)), 1, dtype=dtype, initial=7, return_indices=True)
        yield _reduce_case("empty-set-indices", mixed(dtype, (2, 0)), 1, dtype=dtype, return_indices=True)
        yield _reduce_case("no-outputs", mixed(dtype, (0, 2)), 1, dtype=dtype, return_indices=True)
        yield _reduce_case("ignoring-nan", data, 1, dtype=dtype, return_indices=True, nan="ignore")
    yield _axis_case(data, (2, 0), dtype)
    yield _axis_case(data, 1, dtype, keepdims=True)
    for dtype in FLOATS:
        between = 1 + 2.0**-dtype.mantissa_bits * 1.25  # rounds down to the next lower value of the dtype
        few = as_dtype(dtype, np.random.default_rng(3).integers(0, 2, (4, 6)))
        rounded = _reduce_case("initial-rounded", few, 1, dtype=dtype, initial=1 + 2.0**-dtype.mantissa_bits)
        yield replace(rounded, options=rounded.options | {"initial": between})
        nans = mixed(dtype, (6, 8), 13, nans=0.5)
        yield _reduce_case("nans-indices", nans, 1, dtype=dtype, return_indices=True)
        yield from _reductions_that_ignore_nan(dtype)
        zeros = of_words(dtype, [[0, 1 << dtype.bits - 1, 0], [1 << dtype.bits - 1, 0, 0]])
        yield _reduce_case("zeros-indices", zeros, 1, dtype=dtype, return_indices=True)
        lowest = of_words(dtype, np.full((2, 3), dtype.lowest_bits))
        yield _reduce_case("all-lowest-indices", lowest, 1, dtype=dtype, return_indices=True)
    yield _reduce_case("long-indices", mixed(dtypes.FLOAT32, (3, 1000), 14, nans=0.0), 1, return_indices=True)


def _reductions_that_ignore_nan(dtype: DType) -> Iterator[Case]:
    nans = mixed(dtype, (4, 6, 3), 15, nans=0.6)
    nans[1], nans[:, 2], nans[:, :, 0] = (of_words(dtype, dtype.infinity_bits + 1) for _ in range(3))
    nans[2, 1, 1] = -np.inf
    rule: dict[str, Any] = {"nan": "ignore", "return_indices": True}
    for axis in (0, 1, -1, (0, 2), (1, 2), None):
        yield _axis_case(nans, axis, dtype, **rule)
        yield _axis_case(nans, axis, dtype, nan="ignore")
    for initial in (np.nan, -np.inf, 1):
        yield _reduce_case(f"ignoring-nan-initial-{initial}", nans, 1, dtype=dtype, initial=initial, **rule)
        empty = mixed(dtype, (2, 0))
        yield _reduce_case(f"ignoring-nan-empty-{initial}", empty, 1, dtype=dtype, initial=initial, **rule)
    yield _reduce_case("ignoring-nan-empty", empty, 1, dtype=dtype, **rule)
    yield _reduce_case("ignoring-nan-noop", nans, dtype=dtype, noop_with_empty_axes=True, **rule)
    yield _reduce_case("ignoring-nan-long", mixed(dtype, (3, 1000), 16, nans=0.9), 1, dtype=dtype, **rule)


def _refused_reductions() -> Iterator[Case]:
    def refused(name: str, error: type[Exception], words: str, **options: Any) -> Case:
        data = np.zeros((2, 3), np.float32)
        return Case(f"reduce_max-refused-{name}", "reduce_max", {"data": data}, options, (error, words))

    yield refused("axes-range", errors.AxesError, "axes must be between -2 and 1 for data of rank 2, got 2", axes=2)
    yield refused("axis-range", errors.AxesError, "axes must be between -2 and 1 for data of rank 2, got 2", axis=2)
    for given in ("axes", "dim"):
        both = {given: 0, "axis": None}
        yield refused(
            f"{given}-and-axis", errors.AxesError, f"got both {given} 0 and axis None; pass only one of them", **both
        )
    for axis in (None, 0, ()):
        noop = {"axis": axis, "noop_with_empty_axes": True}
        yield refused(f"noop-and-axis-{axis}", errors.AttributeValueError, "; pass axis=()", **noop)
    yield refused("axes-twice", errors.AxesError, "got axis 1 twice", axes=(1, -1))
    yield refused("axes-type", errors.AxesError, "axes must be integers, got 0.5 of type float", axes=0.5)
    yield refused("keepdims", errors.AttributeValueError, "keepdims must be True, False, 1 or 0, got 2", keepdims=2)
    yield refused(
        "initial", errors.DTypeError, "initial is the Python float 1e+39, which is out of range for", initial=1e39
    )
    yield refused(
        "initial-shape", errors.ShapeError, "initial must be a scalar, got shape (1,)", initial=np.zeros(1, np.float32)
    )
    yield refused(
        "initial-type",
        errors.DTypeError,
        "initial must have the same dtype as data (float32), got int8",
        initial=np.int8(1),
    )
    yield refused(
        "noop-initial",
        errors.AttributeValueError,
        "initial cannot be combined with noop_with_empty_axes",
        initial=1,
        noop_with_empty_axes=True,
    )
    yield refused("ties", errors.AttributeValueError, "ties must be 'first' or 'even', got 'last'", ties="last")
    yield refused("nan", errors.AttributeValueError, "nan must be 'propagate' or 'ignore', got 'omit'", nan="omit")
    yield refused("dim", errors.AttributeValueError, "dim= requires xarray arrays, got dim='x'", dim="x")


# ----------------------------------------------------------------------------------------------- SegmentMax


def _segment_case(
    name: str,
    data: Array,
    ids: Array | None = None,
    num_segments: int | None = None,
    dtype: DType = dtypes.FLOAT32,
    initial: Any = None,
    offsets: Array | None = None,
    **options: Any,
) -> Case:
    if offsets is not None:
        lengths = [int(stop) - int(start) for start, stop in pairwise(offsets)]
        used = np.repeat(np.arange(len(lengths)), lengths)
        count = len(lengths) if num_segments is None else num_segments
    else:
        assert ids is not None
        used = ids
        count = max(int(ids.max(initial=-1)), -1) + 1 if num_segments is None else num_segments
    first = None if initial is None else as_dtype(dtype, initial)
    fill = options.get("fill_value")
    if initial is None and fill is None:
        options.setdefault("fill_mode", "ZERO")
    values = reference.segment_max(
        data, used, count, options.get("fill_mode"), first, nan=options.get("nan", "propagate")
    )
    if fill is not None:
        values[np.isin(np.arange(count), used, invert=True)] = reference.maximum(as_dtype(dtype, fill))
    expected = [values]
    if options.get("return_indices"):
        expected.append(reference.first_in_segments(data, used, values))
    if options.get("return_empty"):
        expected.append(np.array([segment not in used.tolist() for segment in range(count)], np.bool))
    arrays = {"data": data} | ({"segment_ids": ids} if ids is not None else {"offsets": offsets})
    given = options | {"num_segments": num_segments} | ({} if initial is None else {"initial": initial})
    return Case(f"segment_max-{name}-{dtype}", "segment_max", arrays, given, tuple(expected), dtype)  # type: ignore[arg-type]


SORTED = np.array([0, 0, 2, 2, 2, 5, 6, 6, 6, 6], np.int64)
MIXED = np.array([5, 0, 2, 6, 2, 0, 6, 2, 6, 6], np.int64)
OUTSIDE = np.array([5, -1, 2, 9, 2, 0, -7, 2, 6, 9], np.int64)
OFFSETS = np.array([0, 2, 2, 5, 5, 5, 6, 10], np.int64)
EVERYTHING: dict[str, Any] = {"return_indices": True, "return_empty": True}


def _along(axis: int, case: Case) -> Case:
    """Return a case with the rows and the resulting segments along another axis."""
    arrays = dict(case.arrays)  # type: ignore[arg-type]
    arrays["data"] = np.moveaxis(arrays["data"], 0, axis)
    expected = [
        part if part.dtype == np.bool and part.ndim == 1 else np.moveaxis(part, 0, axis)
        for part in map(np.asarray, case.expected)
    ]
    name = f"{case.name}-axis{axis}"
    return Case(name, case.function, arrays, {**case.options, "axis": axis}, tuple(expected), case.dtype)


def _segment_cases() -> Iterator[Case]:  # noqa: PLR0915 - a table
    for dtype in STORED:
        whole = mixed(dtype, (10, 2, 3), 25, nans=0.1)
        for axis in (1, -1):
            yield _along(axis, _segment_case("sorted", whole, SORTED, 9, dtype=dtype, **EVERYTHING))
        yield _along(2, _segment_case("unsorted", whole, MIXED, dtype=dtype, sorted=False, **EVERYTHING))
        yield _along(-2, _segment_case("offsets", whole, offsets=OFFSETS, dtype=dtype, **EVERYTHING))
        yield _along(1, _segment_case("unsorted-values", whole[:, 0], MIXED, dtype=dtype, sorted=False))
        data = mixed(dtype, (10, 3), 21, nans=0.1)
        if dtype is not dtypes.BOOL:  # for bool, LOWEST is the same as ZERO
            yield _segment_case("lowest", data, SORTED, dtype=dtype, fill_mode="LOWEST")
        yield _segment_case("sorted", data[:, 0].copy(), SORTED, 9, dtype=dtype, **EVERYTHING)
        yield _segment_case("unsorted", data, MIXED, dtype=dtype, sorted=False, **EVERYTHING)
        yield _segment_case("offsets", data, offsets=OFFSETS, dtype=dtype, **EVERYTHING)
        fill = -np.nan if dtype.kind == "float" else dtype is dtypes.BOOL or 2
        yield _segment_case("fill-value", data, SORTED, 9, dtype=dtype, fill_value=fill, **EVERYTHING)
    for dtype in (dtypes.FLOAT32, dtypes.INT64, dtypes.FLOAT16):
        data = mixed(dtype, (10, 2, 3), 22, nans=0.1)
        few = as_dtype(dtype, np.random.default_rng(4).integers(0, 4, (10, 2)))
        yield _segment_case("int32-ids", data, SORTED.astype(np.int32), dtype=dtype)
        yield _segment_case("fewer", data, SORTED, 3, dtype=dtype, **EVERYTHING)
        yield _segment_case("none", data, SORTED, 0, dtype=dtype, **EVERYTHING)
        yield _segment_case("unchecked", data, SORTED, dtype=dtype, check_ids=False)
        yield _segment_case("one-segment", data, np.zeros(10, np.int64), dtype=dtype, **EVERYTHING)
        yield _segment_case("each-its-own", data, np.arange(10), dtype=dtype, **EVERYTHING)
        yield _segment_case("ties", few, SORTED, dtype=dtype, **EVERYTHING)
        yield _segment_case("initial", few, SORTED, 9, dtype=dtype, initial=2, **EVERYTHING)
        yield _segment_case("initial-unsorted", few, MIXED, 9, dtype=dtype, initial=2, sorted=False, **EVERYTHING)
        yield _segment_case("fill-value-unsorted", few, MIXED, 9, dtype=dtype, fill_value=5, sorted=False, **EVERYTHING)
        yield _segment_case("fill-value-offsets", few, offsets=OFFSETS, dtype=dtype, fill_value=0, **EVERYTHING)
        yield _segment_case("initial-offsets", few, offsets=OFFSETS, dtype=dtype, initial=2, **EVERYTHING)
        yield _segment_case("drop", few, OUTSIDE, 7, dtype=dtype, sorted=False, out_of_range="drop", **EVERYTHING)
        yield _along(1, _segment_case("initial", few, SORTED, 9, dtype=dtype, initial=2, **EVERYTHING))
        yield _along(1, _segment_case("fill-value", few, MIXED, 9, dtype=dtype, fill_value=5, sorted=False))
        drops: dict[str, Any] = {"sorted": False, "out_of_range": "drop"}
        yield _along(1, _segment_case("drop", few, OUTSIDE, 7, dtype=dtype, **drops, **EVERYTHING))
        yield _along(1, _segment_case("no-rows", few[:0], SORTED[:0], 2, dtype=dtype, **EVERYTHING))
        yield _along(0, _segment_case("first", few, SORTED, dtype=dtype))
        yield _along(-2, _segment_case("first", few, SORTED, dtype=dtype))
        yield _segment_case("drop-all", few, OUTSIDE - 99, dtype=dtype, sorted=False, out_of_range="drop", **EVERYTHING)
        yield _segment_case("drop-sorted", few, np.sort(OUTSIDE), 7, dtype=dtype, out_of_range="drop", **EVERYTHING)
        yield _segment_case("no-rows", mixed(dtype, (0, 3)), SORTED[:0], dtype=dtype, **EVERYTHING)
        yield _segment_case("no-rows-padded", mixed(dtype, (0, 3)), SORTED[:0], 2, dtype=dtype, **EVERYTHING)
        yield _segment_case("no-columns", mixed(dtype, (10, 0)), SORTED, dtype=dtype, **EVERYTHING)
        yield _segment_case("offsets-of-no-rows", mixed(dtype, (0, 3)), offsets=OFFSETS[:1], dtype=dtype, **EVERYTHING)
        yield _segment_case("offsets-int32", few, offsets=OFFSETS.astype(np.int32), dtype=dtype, **EVERYTHING)
        yield _segment_case("offsets-fewer", few, num_segments=3, offsets=OFFSETS, dtype=dtype, **EVERYTHING)
        yield _segment_case("offsets-padded", few, num_segments=9, offsets=OFFSETS, dtype=dtype, **EVERYTHING)
    for dtype in FLOATS:
        yield from _segments_that_ignore_nan(dtype)
    few = mixed(dtypes.FLOAT32, (10, 2), 24, nans=0.1)
    for index in spec.SEGMENT_MAX.index_dtypes:
        past = np.iinfo(index.numpy).max
        beyond = np.where(OUTSIDE < 0, index.numpy.type(past), OUTSIDE.astype(index.numpy))
        yield _segment_case(f"{index}-ids-past", few, np.sort(beyond), 7, **EVERYTHING)
        yield _segment_case(f"{index}-ids-dropped", few, beyond, 7, **drops, **EVERYTHING)
        yield _segment_case(f"{index}-offsets", few, offsets=OFFSETS.astype(index.numpy), **EVERYTHING)
    yield _segment_case("infinite-initial", mixed(dtypes.FLOAT32, (10,), 23), SORTED, 9, initial=-np.inf, **EVERYTHING)
    long = np.sort(np.random.default_rng(5).integers(0, 40, 1000))
    yield _segment_case("long", distinct(dtypes.FLOAT32, (1000,)), long, **EVERYTHING)


def _segments_that_ignore_nan(dtype: DType) -> Iterator[Case]:
    rule: dict[str, Any] = {"nan": "ignore", **EVERYTHING}
    data = mixed(dtype, (10, 3), 26, nans=0.6)
    data[2:5, 0] = data[:2, 1] = of_words(dtype, dtype.infinity_bits + 1)
    data[6, 0], data[7:, 0] = -np.inf, np.nan
    for fill in ({"fill_mode": "ZERO"}, {"fill_value": np.nan}, {"fill_value": 2}, {"initial": np.nan}, {"initial": 1}):
        name = "-".join(map(str, *fill.items()))
        yield _segment_case(f"ignoring-nan-{name}", data, SORTED, 9, dtype=dtype, **fill, **rule)
        yield _segment_case(f"ignoring-nan-{name}-unsorted", data, MIXED, 9, dtype=dtype, sorted=False, **fill, **rule)
        yield _segment_case(f"ignoring-nan-{name}-offsets", data, offsets=OFFSETS, dtype=dtype, **fill, **rule)
    yield _segment_case("ignoring-nan-one-column", data[:, 0].copy(), SORTED, 9, dtype=dtype, nan="ignore")
    yield _along(1, _segment_case("ignoring-nan", data, SORTED, 9, dtype=dtype, **rule))
    ids = np.sort(np.random.default_rng(5).integers(0, 300, 1000))
    for order in (True, False):
        ids = ids if order else np.random.default_rng(6).permutation(ids)
        for width in ((), (2,)):
            long = mixed(dtype, (1000, *width), 27, nans=0.8)
            name = f"ignoring-nan-long-{len(width)}-{order}"
            yield _segment_case(name, long, ids, 300, dtype=dtype, sorted=order, **rule)


def _segment_refusals() -> Iterator[Case]:  # noqa: PLR0915 - a table
    def refused(name: str, error: type[Exception], words: str, ids: Any = SORTED, **options: Any) -> Case:
        data = np.zeros((10, 2), np.float32)
        arrays: dict[str, Any] = {"data": options.pop("data", data)}
        if ids is not None:
            arrays["segment_ids"] = np.array(ids)
        if "offsets" in options:
            arrays["offsets"] = np.array(options.pop("offsets"))
        given = {"fill_mode": "ZERO"} | options
        return Case(f"segment_max-refused-{name}", "segment_max", arrays, given, (error, words))

    bad, ids_error = SORTED.copy(), errors.SegmentIdsError
    bad[4] = 1
    yield refused("decreasing", ids_error, "segment_ids must be non-decreasing, got 1 after 2 at position 4", bad)
    yield refused("negative", ids_error, "segment_ids must not be negative, got -3 at position 0", SORTED - 3)
    yield refused("unsorted-negative", ids_error, "got -1 at position 1", OUTSIDE, num_segments=10, sorted=False)
    yield refused("unsorted-past", ids_error, "got 6 at position 3", MIXED, num_segments=6, sorted=False)
    yield refused("sorted-past", ids_error, "got 6 at position 6", num_segments=6, out_of_range="error")
    yield refused("length", ids_error, "data of shape (10, 2), got (9,)", SORTED[:9])
    yield refused("rank", ids_error, "data of shape (10, 2), got (10, 1)", SORTED[:, np.newaxis])
    yield refused(
        "id-type", errors.DTypeError, "segment_ids must have dtype int8, int16, int32", SORTED.astype(np.float32)
    )
    yield refused("int8-negative", ids_error, "got -3 at position 0", (SORTED - 3).astype(np.int8))
    yield refused("uint16-decreasing", ids_error, "got 1 after 2 at position 4", bad.astype(np.uint16))
    yield refused("uint64-decreasing", ids_error, "got 1 after 2 at position 4", bad.astype(np.uint64))
    yield refused("uint8-past", ids_error, "got 6 at position 3", MIXED.astype(np.uint8), num_segments=6, sorted=False)
    far = np.where(SORTED == 6, np.uint64(2**64 - 1), SORTED.astype(np.uint64))
    too_large = errors.OutputTooLargeError
    yield refused("uint64-past-without-num_segments", too_large, "output", far)
    yield refused(
        "data-rank",
        errors.ShapeError,
        "data must have rank 1 or more, got rank 0",
        data=np.float32(1).reshape(()),
        ids=SORTED[:1],
    )
    fill_error = errors.AttributeValueError
    yield refused("fill_value-fill_mode", fill_error, "fill_mode 'ZERO' and fill_value", fill_value=1)
    yield refused("fill_value-initial", fill_error, "fill_value and initial", fill_mode=None, fill_value=1, initial=1)
    wrong = "fill_value is the Python int 16777217, which cannot be represented exactly in float32"
    yield refused("fill_value", errors.DTypeError, wrong, fill_mode=None, fill_value=2**24 + 1)
    yield refused("no-fill_mode", errors.AttributeValueError, "fill_mode is missing", fill_mode=None)
    yield refused(
        "fill_mode", errors.AttributeValueError, "fill_mode must be 'ZERO' or 'LOWEST', got 'ONE'", fill_mode="ONE"
    )
    yield refused("fill_mode-initial", errors.AttributeValueError, "fill_mode 'ZERO' and initial", initial=1)
    yield refused("num_segments", errors.NumSegmentsError, "num_segments must be non-negative, got -1", num_segments=-1)
    yield refused("both", errors.InputCountError, "segment_ids and offsets", offsets=OFFSETS)
    yield refused("neither", errors.InputCountError, "neither segment_ids nor offsets", None)
    yield refused("offsets-begin", errors.OffsetsError, "start with 0, got 1 at position 0", None, offsets=[1, 10])
    yield refused("offsets-end", errors.OffsetsError, "rows (10), got 11 at position 2", None, offsets=[0, 2, 11])
    yield refused("offsets-down", errors.OffsetsError, "got 3 after 5 at position 2", None, offsets=[0, 5, 3, 10])
    yield refused("offsets-none", errors.OffsetsError, "elements, got shape (0,)", None, offsets=np.zeros(0, np.int64))
    yield refused("offsets-sorted", errors.AttributeValueError, "sorted=False", None, offsets=OFFSETS, sorted=False)
    yield refused(
        "out_of_range",
        errors.AttributeValueError,
        "out_of_range must be 'error' or 'drop', got 'clip'",
        out_of_range="clip",
    )
    yield refused("ties", errors.AttributeValueError, "ties must be 'first' or 'even', got 'last'", ties="last")
    yield refused("nan", errors.AttributeValueError, "nan must be 'propagate' or 'ignore', got True", nan=True)
    yield refused("dim", errors.AttributeValueError, "dim= requires xarray arrays, got dim='x'", dim="x")
    yield refused("axis", errors.AxesError, "axis must be between -2 and 1 for data of rank 2, got 2", axis=2)
    yield refused("axis-below", errors.AxesError, "axis must be between -2 and 1 for data of rank 2, got -3", axis=-3)
    yield refused("axis-type", errors.AxesError, "axis must be an integer, got 1.0 of type float", axis=1.0)
    yield refused("axis-none", errors.AxesError, "axis must be an integer, got None of type NoneType", axis=None)
    yield refused("axis-bool", errors.AxesError, "axis must be an integer, got True of type bool", axis=True)
    yield refused("axis-list", errors.AxesError, "axis must be an integer, got [1] of type list", axis=[1])
    short = "segment_ids must have shape (2,) for axis 1 of data of shape (10, 2), got (1,)"
    yield refused("axis-length", ids_error, short, SORTED[:1], axis=1)
    scalar = "segment_ids must have shape (2,) for axis 1 of data of shape (10, 2), got ()"
    yield refused("axis-rank", ids_error, scalar, np.array(0), axis=1)
    down = np.array([1, 0])
    yield refused("axis-decreasing", ids_error, "got 0 after 1 at position 1", down, axis=1)
    yield refused("axis-offsets", errors.OffsetsError, "rows (2), got 3 at position 1", None, axis=1, offsets=[0, 3])


CASES = (*_max_cases(), *_reduce_cases(), *_refused_reductions(), *_segment_cases(), *_segment_refusals())
# The cases that differ only in their dtype, keyed by their common name.
ROWS: dict[str, list[Case]] = {}
for _case in CASES:
    ROWS.setdefault(_case.name.replace(f"-{_case.dtype}", ""), []).append(_case)


def in_turn(name: str) -> list[Case]:
    """Return every fifth case of a row, or all cases of a row with the whole pool of values.

    Each row starts with a different type. These cases suffice for code that does not depend on the type.
    """
    row, turn = ROWS[name], [*ROWS].index(name)
    return row if "pool" in name else [case for place, case in enumerate(row) if (place + turn) % min(5, len(row)) == 0]


# Errors of plain functions cite clauses of maxops, not of a standard.
OWN = {clause.id for operator in mo.operators() for clause in operator.clauses if operator.standard == "maxops"}


def hold_to_the_table(adapter: Adapter, cases: list[Case]) -> None:
    """Run cases on the arrays of an engine, and check their results or errors."""
    for case in cases:
        try:
            _hold(adapter, case)
        except BaseException as error:
            error.add_note(f"in the case {case.name}")
            raise


def _hold(adapter: Adapter, case: Case) -> None:
    if case.is_error:
        words = adapter.words.get(case.name, str(case.expected[1]))
        with pytest.raises(case.expected[0], match=re.escape(words)) as caught:  # type: ignore[arg-type]
            _results(adapter, case)
        if isinstance(caught.value, MaxopsError):  # not an error of the framework
            assert caught.value.clause in OWN
        return
    got = _results(adapter, case)
    assert len(got) == len(case.expected)
    for result, expected in zip(got, case.expected, strict=True):
        assert_same_bits(result, expected)  # type: ignore[arg-type]


def _results(adapter: Adapter, case: Case) -> list[Any]:
    function = getattr(mo, case.function)
    with adapter.around():
        rows_along = case.options.get("axis", 0) if case.function == "segment_max" else 0
        arrays = adapter.given(case.arrays, rows_along)
        result = function(*arrays, **case.options) if isinstance(arrays, tuple) else function(**arrays, **case.options)
        return [adapter.take(part) for part in as_tuple(result)]
