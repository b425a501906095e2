"""The planner: calls on NumPy arrays that the native core plans, and calls on other arrays."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import dtypes, reference, spec
from maxops.calls import Call, MaxCall, ReduceCall, SegmentCall
from maxops.errors import AttributeValueError, AxesError, EmptyReductionError, MaxopsError
from maxops.plan import (
    Array,
    abstract,
    bits_of,
    default_num_segments,
    plan,
    plan_max,
    plan_reduce_max,
    plan_segment_max,
    widened,
    widened_dtype,
)
from maxops.plan.faults import check_segment_ids, message

DATA, IDS, OFFSETS = np.zeros((2, 3), np.float32), np.array([0, 1]), np.array([0, 2])
RATIONALS = np.array([Fraction(1, 2), Fraction(1, 3)], object)


@pytest.mark.parametrize(
    ("options", "clause"),
    [
        ({"segment_ids": IDS, "offsets": IDS}, "inputs"),
        ({}, "inputs"),
        ({"offsets": OFFSETS, "sorted": False}, "offsets"),
        ({"offsets": OFFSETS, "out_of_range": "drop"}, "offsets"),
        ({"offsets": OFFSETS.astype(np.float32)}, "index_types"),
        ({"offsets": IDS[:0]}, "offsets"),
        ({"offsets": IDS.reshape(1, 2)}, "offsets"),
        ({"segment_ids": IDS, "fill_value": 1}, "fill_mode"),
        ({"segment_ids": IDS, "fill_mode": None, "fill_value": 1, "initial": 2}, "fill_value"),
        ({"segment_ids": IDS, "out_of_range": "wrap"}, "out_of_range"),
        ({"segment_ids": IDS, "sorted": 2}, "sorted"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": np.zeros(1, np.float32)}, "initial"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": np.float64(1)}, "initial"),
        ({"segment_ids": IDS, "fill_mode": None, "initial": Fraction(1, 2)}, "scalars"),
    ],
    ids=str,
)
def test_calls_of_segments_that_break_a_clause(options: dict[str, Any], clause: str) -> None:
    with pytest.raises(MaxopsError) as raised:
        plan_segment_max(SegmentCall(DATA, **{"fill_mode": "ZERO", **options}))
    assert raised.value.clause == f"maxops.segment_max.{clause}"


def test_the_identity_has_no_initial() -> None:
    with pytest.raises(MaxopsError) as raised:
        plan_reduce_max(ReduceCall(DATA, noop_with_empty_axes=True, initial=1))
    assert raised.value.clause == "maxops.reduce_max.noop_with_empty_axes"


@pytest.mark.parametrize("axis", [None, 0, -1, (), (0, 1), [], [1], np.array([0]), np.array([], np.int64)], ids=repr)
def test_axis_in_the_function_without_its_native_entry(axis: Any) -> None:
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    expected = np.max(data, axis=axis if axis is None or isinstance(axis, int) else tuple(axis))
    function: Any = mo.reduce_max
    assert_same_bits(function.__wrapped__(data, axis=axis), np.asarray(expected))


@pytest.mark.parametrize("axis", [None, 0, ()], ids=repr)
def test_axis_beside_what_it_replaces(axis: Any) -> None:
    others: list[tuple[str, Any]] = [("axes", ()), ("axes", 0), ("dim", "x")]
    for name, value in others:
        with pytest.raises(AxesError) as raised:
            mo.reduce_max(DATA, axis=axis, **{name: value})
        assert str(raised.value) == (
            f"reduce_max got both {name} {value!r} and axis {axis!r}; pass only one of them [maxops.reduce_max.axes]"
        )
    flags: list[tuple[Any, str]] = [(True, f"got both noop_with_empty_axes and axis {axis!r};"), (2, "1 or 0, got 2")]
    for noop, text in flags:
        with pytest.raises(AttributeValueError, match=re.escape(text)) as refused:
            mo.reduce_max(DATA, axis=axis, noop_with_empty_axes=noop)
        assert refused.value.clause == "maxops.reduce_max.noop_with_empty_axes"


@pytest.mark.parametrize(
    ("options", "bits"),
    [
        ({"fill_mode": "ZERO"}, 0),
        ({"fill_mode": "LOWEST"}, dtypes.FLOAT32.lowest_finite_bits),
        ({"fill_value": -1}, 0xBF800000),
        ({"fill_value": float("nan")}, dtypes.FLOAT32.nan_bits),
        ({"fill_value": np.array([0xFFFFFFFF], np.uint32).view(np.float32)[0]}, dtypes.FLOAT32.nan_bits),
    ],
    ids=str,
)
def test_the_bits_of_empty_segments(options: dict[str, Any], bits: int) -> None:
    fill = plan_segment_max(SegmentCall(DATA, IDS, **options)).call.fill_value
    assert (fill.shape, bits_of(fill, dtypes.FLOAT32)) == ((), bits)


def test_without_values_ids_are_not_looked_at() -> None:
    plan = plan_segment_max(
        SegmentCall(abstract((5,), DATA.dtype), abstract((5,), np.dtype(np.int8)), fill_mode="ZERO"), values_known=False
    )
    assert plan.call.num_segments == 0
    assert plan.call.segment_ids.dtype == np.int32


def test_a_scalar_as_an_array_of_rank_0() -> None:
    assert plan_reduce_max(ReduceCall(DATA, initial=np.zeros((), np.float32))).call.initial.shape == ()


def test_a_memory_map_is_planned_as_an_array(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(2, 3))
    assert type(plan_reduce_max(ReduceCall(mapped)).call.data) is np.ndarray


def test_the_reference_finds_no_index_of_what_is_not_there() -> None:
    assert reference.first_in_axes(DATA, (1,), np.ones((2, 1), np.float32)).tolist() == [[-1], [-1]]


def test_default_num_segments() -> None:
    assert [default_num_segments(np.array(ids), False) for ids in ([], [3, 1], [-2])] == [0, 4, 0]


def test_every_fault_in_words() -> None:
    """Test the error texts for XLA's custom calls, which know only num_segments."""
    kinds = ("negative_id", "id_too_large", "ids_decrease", "offsets_begin", "offsets_decrease", "offsets_end")
    texts = [message(kind, 4, 7, 9, 5) for kind in kinds]
    assert len({*texts}) == len(kinds)
    assert all("at position 4" in text and "got 7" in text for text in texts)


# ------------------------------------------------------------------------------------------------------- texts


class Odd(np.ndarray[Any, Any]):
    """An unknown subclass of ndarray."""


class Exported:
    """An array of another library, which may not be iterable."""

    def __array__(self) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Any:
        raise NotImplementedError


def segments(**options: Any) -> SegmentCall:
    return SegmentCall(DATA, **{"segment_ids": IDS, "fill_mode": "ZERO", **options})


def floats(*shapes: tuple[int, ...]) -> tuple[Array, ...]:
    return tuple(np.zeros(shape, np.float32) for shape in shapes)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        # the error names the first input that does not fit the inputs before it
        (MaxCall(floats((2,), (3,), (4,)), row=spec.MAX_6),
         "Max-6 input 1 has shape (3,), but input 0 has shape (2,); version 6 does not broadcast: all shapes must be "
         "equal [ONNX.Max-6.shape]"),
        (MaxCall(floats((2,), (2, 1), (4, 3))),
         "maximum input 2 has shape (4, 3), which does not broadcast with the inputs before it: axis -2 has size 4, "
         "expected 2; sizes must be equal, or one must be 1 [maxops.maximum.shape]"),
        (MaxCall(floats((1,), (0,)), row=spec.SONNX_MAX),
         "Max input 1 has shape (0,), which does not broadcast with the inputs before it: axis -1 has size 0, "
         "expected 1; size 0 does not broadcast with size 1 [SONNX.Max.zero-size]"),
        # objects that are not arrays, and the conversion that the error suggests
        (ReduceCall(np.ma.masked_array(DATA)),
         "reduce_max data must be a NumPy array, got MaskedArray; fill masked elements with .filled(...) or "
         "dask.array.ma.filled, or drop them with .compressed() [maxops.reduce_max.arrays]"),
        (ReduceCall(DATA.view(Odd)),
         "reduce_max data must be a NumPy array, got Odd; maxops does not support subclasses such as Odd; convert it "
         "with np.asarray(...) [maxops.reduce_max.arrays]"),
        (ReduceCall(1.0),
         "reduce_max data must be a NumPy array, got float; pass a NumPy array or scalar, such as np.float32(...) "
         "[maxops.reduce_max.arrays]"),
        (ReduceCall([1.0]),
         "reduce_max data must be a NumPy array, got list; convert it with np.asarray(...) [maxops.reduce_max.arrays]"),
        (ReduceCall(DATA, initial=Exported()),
         "reduce_max initial must be a NumPy array, got Exported; convert it with np.asarray(...) "
         "[maxops.reduce_max.arrays]"),
        (ReduceCall(np.zeros(2, np.complex64), row=spec.SONNX_MAX),
         "Max data has unsupported dtype complex64; supported dtypes: float16, float32, float64, int8, int16, int32, "
         "int64, uint8, uint16, uint32, uint64, real (object arrays of Fraction and int) [SONNX.Max.T]"),
        (ReduceCall(np.zeros(2, np.float32), row=replace(spec.REDUCE_MAX, dtypes=(dtypes.BOOL,))),
         "reduce_max data has unsupported dtype float32; supported dtypes: bool [maxops.reduce_max.types]"),
        # for rationals: the position of the first element of another type
        (ReduceCall(np.array([[1, 2], [Fraction(1, 2), 0.5]], object)),
         "reduce_max data of dtype object must contain only fractions.Fraction and int, got 0.5 of type float at "
         "position (1, 1) [maxops.reduce_max.types]"),
        (ReduceCall(np.array(0.5, object)),
         "reduce_max data of dtype object must contain only fractions.Fraction and int, got 0.5 of type float "
         "[maxops.reduce_max.types]"),
        (ReduceCall(np.broadcast_to(np.array(0.5, object), (3,))),
         "reduce_max data of dtype object must contain only fractions.Fraction and int, got 0.5 of type float at "
         "position (0,) [maxops.reduce_max.types]"),
        # axes
        (ReduceCall(np.float32(1), [0]),
         "reduce_max axes must be empty for data of rank 0, got 0 [maxops.reduce_max.axes.range]"),
        (ReduceCall(DATA, [2]),
         "reduce_max axes must be between -2 and 1 for data of rank 2, got 2 [maxops.reduce_max.axes.range]"),
        (ReduceCall(DATA, [1, -1]), "reduce_max got axis 1 twice [maxops.reduce_max.axes]"),
        (ReduceCall(DATA, np.array([[1]])),
         "reduce_max axes must be a 1-D array of integers, got int64 of shape (1, 1) [maxops.reduce_max.axes]"),
        (ReduceCall(DATA, np.array([1], np.int32), row=spec.REDUCE_MAX_18),
         "ReduceMax-18 axes must be a 1-D array of int64, got int32 of shape (1,) [ONNX.ReduceMax-18.axes]"),
        # segments
        (segments(fill_value=1, initial=2),
         "segment_max got both fill_mode 'ZERO' and fill_value; pass only one of them [maxops.segment_max.fill_mode]"),
        (segments(segment_ids=np.array([0, 1, 2])),
         "segment_max segment_ids must have shape (2,) for axis 0 of data of shape (2, 3), got (3,) "
         "[maxops.segment_max.ids.shape]"),
        (segments(segment_ids=None, offsets=np.array([0, 3])),
         "segment_max offsets must end with the number of rows (2), got 3 at position 1; append 2 "
         "[maxops.segment_max.offsets]"),
        (segments(segment_ids=np.array([2**64 - 1, 2**63], np.uint64)),
         "segment_max segment_ids must be non-decreasing, got 9223372036854775808 after 18446744073709551615 at "
         "position 1; pass sorted=False to accept unsorted ids [maxops.segment_max.ids]"),
        (segments(segment_ids=np.array([1, 0], np.int8)),
         "segment_max segment_ids must be non-decreasing, got 0 after 1 at position 1; pass sorted=False to accept "
         "unsorted ids [maxops.segment_max.ids]"),
        (segments(segment_ids=None, offsets=np.array([0, 2, 1, 2], np.uint64)),
         "segment_max offsets must be non-decreasing, got 1 after 2 at position 2 [maxops.segment_max.offsets]"),
        (segments(segment_ids=None, offsets=np.array([0, 2**64 - 1, 1], np.uint64)),
         "segment_max offsets must be non-decreasing, got 1 after 18446744073709551615 at position 2 "
         "[maxops.segment_max.offsets]"),
        (segments(segment_ids=None, offsets=np.array([0, -1, 2], np.int16)),
         "segment_max offsets must be non-decreasing, got -1 after 0 at position 1 [maxops.segment_max.offsets]"),
        (segments(segment_ids=None, offsets=np.array([1, 2])),
         "segment_max offsets must start with 0, got 1 at position 0; prepend 0, or pass only the rows from 1 "
         "and offsets - 1 [maxops.segment_max.offsets]"),
        (segments(num_segments=1, out_of_range="error"),
         "segment_max segment_ids must be less than num_segments (1), got 1 at position 1; pass out_of_range='drop' "
         "to drop such rows [maxops.segment_max.out_of_range]"),
        # the output
        (MaxCall(floats((2,)), out=np.zeros(2, object)),
         "maximum out is real, but the inputs are float32 [maxops.maximum.out]"),
        (MaxCall(floats((2,)), out=np.zeros(2, np.complex64)),
         "maximum out is complex64, but the inputs are float32 [maxops.maximum.out]"),
        (MaxCall(floats((2,)), out=np.zeros(2)),
         "maximum out is float64, but the inputs are float32 [maxops.maximum.out]"),
        (MaxCall(floats((2,)), out=np.broadcast_to(np.float32(0), 2)),
         "maximum out is read-only; pass a writeable array [maxops.maximum.out]"),
        (MaxCall(floats((2,)), out=np.broadcast_to(np.float32(0), 2), row=spec.MAX_13),
         "Max-13 out is read-only; pass a writeable array"),
    ],
    ids=lambda value: value.partition("[")[2].rstrip("]") if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_said(call: Call, text: str) -> None:
    with pytest.raises(MaxopsError) as raised:
        plan(call)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("call", "words", "clause"),
    [
        # a standard without its own clause
        (MaxCall([1.0], row=spec.MAX_13), "got only Python scalars", "ONNX.Max-13.T"),
        (MaxCall([np.zeros(2, np.int8), 1.5], row=spec.MAX_13), "input 1 is the Python float 1.5", "ONNX.Max-13.T"),
        (MaxCall(floats((2,)), out=[0, 0], row=spec.MAX_13), "out must be a NumPy array, got list", "ONNX.Max-13.T"),
        (MaxCall(floats((2,)), out=np.zeros(2), row=spec.MAX_13), "out is float64", "ONNX.Max-13.T"),
        (ReduceCall([1.0], row=spec.REDUCE_MAX_20), "data must be a NumPy array, got list", "ONNX.ReduceMax-20.T"),
        (ReduceCall(DATA, out=DATA, row=spec.REDUCE_MAX_20), "out has shape (2, 3), but", "ONNX.ReduceMax-20.value"),
        # which of the arguments
        (ReduceCall(DATA, return_indices=2), "1 or 0, got 2", "maxops.reduce_max.return_indices"),
        (ReduceCall(DATA, initial=Fraction(1, 3)),
         "but data is float32; a Python Fraction can be combined only with rationals", "maxops.reduce_max.scalars"),
        (SegmentCall([1.0]), "data must be a NumPy array, got list", "maxops.segment_max.arrays"),
        (segments(fill_value=DATA), "fill_value must be a scalar, got shape (2, 3)", "maxops.segment_max.fill_value"),
        (segments(initial=1), "and initial; pass only one of them", "maxops.segment_max.fill_mode"),
        (segments(check_ids=2), "1 or 0, got 2", "maxops.segment_max.check_ids"),
        (segments(return_indices=2), "1 or 0, got 2", "maxops.segment_max.return_indices"),
        (segments(return_empty=2), "1 or 0, got 2", "maxops.segment_max.return_empty"),
        (segments(segment_ids=[0, 1]), "max segment_ids must be a NumPy array, got", "maxops.segment_max.arrays"),
        (segments(segment_ids=None, offsets=[0, 2]), "max offsets must be a NumPy array", "maxops.segment_max.arrays"),
        (segments(segment_ids=None, offsets=OFFSETS.astype(np.float32)), "max offsets must have dtype ",
         "maxops.segment_max.index_types"),
        (segments(num_segments=np.ma.masked_array(2)), "max num_segments must be a NumPy array, got MaskedArray",
         "maxops.segment_max.arrays"),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_meant(call: Call, words: str, clause: str) -> None:
    with pytest.raises(MaxopsError) as raised:
        plan(call)
    assert words in str(raised.value)
    assert raised.value.clause == clause


# ------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.int8, 1), (np.float16, 2), (ml_dtypes.bfloat16, 2), (np.float32, 4), (np.float64, 8), (object, 8)],
    ids=str,
)
def test_an_output_fits_into_memory_to_the_byte(dtype: Any, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxops.plan.output.LARGEST_OUTPUT", 6 * 2**30)
    last = 6 * 2**30 // size
    assert plan_max(MaxCall([abstract((last,), np.dtype(dtype))])).shape == (last,)
    assert plan_max(MaxCall([abstract((2 * last,), np.dtype(dtype))]), in_memory=False).shape == (2 * last,)
    with pytest.raises(MaxopsError) as raised:
        plan_max(MaxCall([abstract((last // 2, 3), np.dtype(dtype))]))
    assert "needs 9 GiB, but this machine has 6 GiB of memory" in str(raised.value)


def test_the_longest_axis_and_one_without_a_size() -> None:
    longest = 2**63 - 1
    assert plan_max(MaxCall([abstract((longest,), DATA.dtype)]), in_memory=False).shape == (longest,)
    with pytest.raises(
        MaxopsError, match=r"shape \(9223372036854775808,\), but an axis can have at most 9223372036854775807"
    ):
        plan_max(MaxCall([abstract((longest + 1,), DATA.dtype)]), in_memory=False)
    symbolic = ReduceCall(abstract(("n", 3), DATA.dtype), 1)
    assert [*map(str, plan_reduce_max(symbolic, in_memory=False).shape)] == ["n", "1"]


def test_the_most_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxops.plan.max.MOST_INPUTS", 2)
    assert plan_max(MaxCall(floats((), ()))).shape == ()
    with pytest.raises(MaxopsError, match="maximum expects 1 to 2 inputs, got 3"):
        plan_max(MaxCall(floats((), (), ())))


# ------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("dtype", "held", "not_held"),
    [
        (np.int8, [-128, 127], [-129, 128, True, 1.0, Fraction(1)]),
        (np.uint16, [0, 65535], [-1, 65536]),
        (np.bool_, [True, False], [0, 1, 1.0]),
        (np.float16, [65504.0, 2.0**-24, -2048, np.inf, np.nan], [65505, 65520.0, -1e300, 2049, 2**2000, True]),
        (ml_dtypes.bfloat16, [-256, 2.0**-133, 2**127, -(2**63)], [257, 3.4e38, -1e39, 2**128, 10**400, False]),
        (np.float32, [0.5, -0.0, np.inf, np.nan, 2**127], [1e39, 2**24 + 1, True, Fraction(1, 2), 2**128, 10**400]),
        (np.float64, [0.1, 2**53, 2**1000, 5e-324, 10**22], [2**53 + 1, 10**23, 2**1024, -(10**400), False]),
        (object, [Fraction(1, 3), 10**400], [0.5, True]),
    ],
    ids=str,
)
def test_python_scalars_beside_arrays(dtype: Any, held: list[Any], not_held: list[Any]) -> None:
    array = np.zeros(2, dtype)
    for value in held:
        planned = plan_max(MaxCall([array, value])).call.inputs[1]
        assert (planned.shape, planned.dtype) == ((), array.dtype)
        number: Any = float(value) if issubclass(array.dtype.type, (np.floating, ml_dtypes.bfloat16)) else value
        assert repr(planned[()]) == repr(array.dtype.type(number) if dtype is not object else value)
    for value in not_held:
        with pytest.raises(MaxopsError, match=r"cannot be represented exactly|out of range|can be combined only with"):
            plan_max(MaxCall([array, value]))


def test_axes_of_one_integer() -> None:
    assert plan_reduce_max(ReduceCall(DATA, np.array(1))).call.axes == (1,)
    with pytest.raises(MaxopsError, match="of shape "):
        plan_reduce_max(ReduceCall(DATA, np.array(1), row=spec.REDUCE_MAX_18))


def test_the_identity_reduces_no_axes() -> None:
    plan = plan_reduce_max(ReduceCall(DATA, noop_with_empty_axes=True))
    assert (plan.call.noop_with_empty_axes, plan.call.axes, plan.shape) == (True, (), (2, 3))
    plan = plan_reduce_max(ReduceCall(DATA, 0, noop_with_empty_axes=True))
    assert (plan.call.noop_with_empty_axes, plan.call.axes, plan.shape) == (False, (0,), (1, 3))


def test_ids_that_are_not_checked_may_be_any() -> None:
    plan = plan_segment_max(segments(segment_ids=np.array([1, 0]), check_ids=False))
    assert (plan.call.num_segments, plan.call.check_ids) == (1, False)


def test_offsets_and_a_number_of_segments() -> None:
    def planned(**more: Any) -> Any:
        return plan_segment_max(segments(segment_ids=None, offsets=OFFSETS, **more)).call.num_segments

    assert (planned(), planned(num_segments=0), planned(num_segments=4)) == (1, 0, 4)


def test_without_values_offsets_are_not_looked_at() -> None:
    plan = plan_segment_max(segments(segment_ids=None, offsets=abstract((4,), np.dtype(np.uint8))), values_known=False)
    assert plan.call.num_segments == 3
    assert plan.call.offsets.dtype == np.int32


def rationals(**options: Any) -> SegmentCall:
    return SegmentCall(RATIONALS, fill_mode="LOWEST", **options)


@pytest.mark.parametrize(
    "options",
    [
        {"segment_ids": IDS, "num_segments": 3},
        {"segment_ids": np.array([0, 2])},
        # ids outside fill no segment
        {"segment_ids": np.array([0, 5]), "num_segments": 2},
        {"segment_ids": np.array([0, 2]), "num_segments": 2},
        {"segment_ids": np.array([-1, 0]), "num_segments": 2, "sorted": False, "out_of_range": "drop"},
        {"offsets": np.array([0, 1, 2]), "num_segments": 3},
        {"offsets": np.array([0, 2, 2])},
        {"offsets": np.array([0, 0, 2]), "num_segments": 1},
    ],
    ids=str,
)
def test_rationals_have_no_lowest_value_for_an_empty_segment(options: dict[str, Any]) -> None:
    with pytest.raises(EmptyReductionError):
        plan_segment_max(rationals(**options))


@pytest.mark.parametrize(
    "options",
    [
        {"segment_ids": IDS},
        {"segment_ids": IDS, "num_segments": 1},
        {"offsets": np.array([0, 1, 2])},
        {"offsets": np.array([0, 2, 2]), "num_segments": 1},
        {"offsets": np.array([0, 1, 2, 2]), "num_segments": 2},
    ],
    ids=str,
)
def test_rationals_of_segments_that_all_have_rows(options: dict[str, Any]) -> None:
    assert plan_segment_max(rationals(**options)).call.fill_mode == "LOWEST"


def test_rationals_elsewhere_are_not_looked_at() -> None:
    elsewhere = abstract((2,), RATIONALS.dtype)
    assert plan_reduce_max(ReduceCall(elsewhere, 0)).dtype is dtypes.REAL
    ids = abstract((2,), IDS.dtype)
    call = SegmentCall(elsewhere, ids, fill_mode="LOWEST", num_segments=3)
    assert plan_segment_max(call, values_known=False).call.num_segments == 3


def test_rationals_that_repeat_are_looked_at_once() -> None:
    repeated = np.broadcast_to(RATIONALS, (2**40, 2))
    assert plan_reduce_max(ReduceCall(repeated, 0)).shape == (1, 2)


# ------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize(
    ("given", "wide"),
    [
        *((name, np.int32) for name in ("int8", "uint8", "int16", "uint16", "int32")),
        *((name, np.int64) for name in ("uint32", "int64", "uint64")),
    ],
)
def test_types_of_ids_that_engines_have(given: str, wide: type) -> None:
    assert widened_dtype(np.dtype(given)) == wide
    last = np.array([0, np.iinfo(given).max], given)
    assert widened(last).dtype == wide
    assert widened(last).tolist() == [0, min(np.iinfo(given).max, 2**63 - 1)]
    assert (widened(last) is last) is (np.dtype(given) == wide)


def test_the_number_of_segments_of_sorted_ids_is_read_from_the_last() -> None:
    assert default_num_segments([0, 3], True) == 4


@pytest.mark.parametrize(
    ("options", "fails"),
    [
        ({"sorted": False}, True),
        ({"sorted": False, "out_of_range": "drop"}, False),
        ({"sorted": True, "out_of_range": "drop"}, False),
        ({"sorted": False, "out_of_range": "error"}, True),
    ],
    ids=str,
)
def test_negative_ids(options: dict[str, Any], fails: bool) -> None:
    if fails:
        with pytest.raises(MaxopsError, match="must not be negative, got -1 at position 7"):
            check_segment_ids(spec.SEGMENT_MAX, np.array([-1, 2]), start=7, **options)
    else:
        check_segment_ids(spec.SEGMENT_MAX, np.array([-1, 2]), start=7, **options)


@pytest.mark.parametrize("count", [2**63 - 1, 2**63, 2**70], ids=["2^63-1", "2^63", "2^70"])
def test_ids_below_a_number_of_segments_that_the_core_cannot_hold(count: int) -> None:
    check_segment_ids(spec.SEGMENT_MAX, np.array([0, 2**63 - 2]), out_of_range="error", num_segments=count)
