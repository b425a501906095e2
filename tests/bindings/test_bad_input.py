"""Invalid inputs: each error names the place, the actual and the expected value, and the clause; `out` is unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import maxops as mo
from helpers.bits import Array
from maxops.errors import (
    AttributeValueError,
    AxesError,
    DTypeError,
    InputCountError,
    MaxopsError,
    NumSegmentsError,
    OutputError,
    OutputTooLargeError,
    SegmentIdsError,
    ShapeError,
)


@dataclass(frozen=True)
class Bad:
    """A call that must fail, given an `out` of `shape`; the text names each of `says`."""

    id: str
    call: Callable[..., object]
    error: type[MaxopsError]
    operator: str
    clause: str
    says: tuple[str, ...]
    shape: tuple[int, ...] = (3,)


max_1, max_8, max_13 = (mo.operator("ONNX", "Max", version) for version in (1, 8, 13))
reduce_1, reduce_13, reduce_18 = (mo.operator("ONNX", "ReduceMax", version) for version in (1, 13, 18))
sonnx, draft = mo.operator("SONNX", "Max"), mo.operator("SONNX draft", "Max")
segment_16 = mo.operator("OpenVINO", "SegmentMax", 16)

f4, f8, i1 = np.ones(3, np.float32), np.ones(3), np.ones(3, np.int8)
square = np.ones((3, 3), np.float32)
ids = np.array([0, 1, 2])
rationals = np.array([Fraction(1, 2), 1, 2], object)
with_float = np.array([Fraction(1, 2), 1.5, 2], object)
read_only = np.zeros(3, np.float32)
read_only.flags.writeable = False


not_arrays: Any = [0.0, 0.0, 0.0]
not_an_array: Any = np.float32(1)


def segment(data: Any, given_ids: Any, count: Any = None, **more: Any) -> Array:
    result: Array = mo.segment_max(data, given_ids, count, **({"fill_mode": "ZERO"} | more))
    return result


def _max(id: str, call: Callable[..., object], error: type[MaxopsError], short: str, *says: str) -> Bad:
    return Bad(f"maximum-{id}", call, error, "maximum", f"maxops.maximum.{short}", says)


def _reduce(id: str, call: Callable[..., object], error: type[MaxopsError], short: str, *says: str) -> Bad:
    return Bad(f"reduce_max-{id}", call, error, "reduce_max", f"maxops.reduce_max.{short}", says)


def _segment(id: str, call: Callable[..., object], error: type[MaxopsError], short: str, *says: str) -> Bad:
    return Bad(f"segment_max-{id}", call, error, "segment_max", f"maxops.segment_max.{short}", says)


def _segment_16(id: str, call: Callable[..., object], error: type[MaxopsError], short: str, *says: str) -> Bad:
    return Bad(f"SegmentMax-16-{id}", call, error, "SegmentMax-16", f"OpenVINO.SegmentMax-16.{short}", says)


class Subclass(np.ndarray):
    pass


CASES = [
    _max("mixed_types", lambda out: mo.maximum(f4, f8, out=out), DTypeError, "types", "input 1", "float64", "float32"),
    _max("mixed_kinds", lambda out: mo.maximum(f4, f4, i1, out=out), DTypeError, "types", "input 2", "int8", "float32"),
    _max("bool_and_int", lambda out: mo.maximum(i1, i1 > 0, out=out), DTypeError, "types", "input 1", "bool", "int8"),
    _max("shapes", lambda out: mo.maximum(f4, f4[:2], out=out), ShapeError, "shape", "input 1", r"\(2,\)", "3"),
    _max(
        "shapes_inside", lambda out: mo.maximum(f4, np.ones((2, 3, 2), "f4"), out=out), ShapeError, "shape", "input 1"
    ),
    _max("no_inputs", lambda out: mo.maximum(out=out), InputCountError, "inputs", "inputs, got 0", "1 to 2147483647"),
    _max(
        "list", lambda out: mo.maximum(f4, [1.0, 2.0, 3.0], out=out), DTypeError, "arrays", "input 1", "list", "array"
    ),
    _max("list_alone", lambda out: mo.maximum([1.0], out=out), DTypeError, "arrays", "input 0", "list", "array"),
    _max("none", lambda out: mo.maximum(f4, None, out=out), DTypeError, "arrays", "input 1", "NoneType", "array"),
    _max("text", lambda out: mo.maximum(f4, "1", out=out), DTypeError, "arrays", "input 1", "str", "array"),
    _max("bytes", lambda out: mo.maximum(f4, b"1", out=out), DTypeError, "arrays", "input 1", "bytes", "array"),
    _max("complex", lambda out: mo.maximum(f4, 1j, out=out), DTypeError, "arrays", "input 1", "complex", "array"),
    _max("memoryview", lambda out: mo.maximum(f4.data, out=out), DTypeError, "arrays", "input 0", "memoryview"),
    _max(
        "masked",
        lambda out: mo.maximum(np.ma.array(f4), out=out),
        DTypeError,
        "arrays",
        "input 0",
        "MaskedArray",
        "filled",
    ),
    _max("subclass", lambda out: mo.maximum(f4.view(Subclass), out=out), DTypeError, "arrays", "input 0", "Subclass"),
    _max(
        "complex_array",
        lambda out: mo.maximum(f4 * 1j, out=out),
        DTypeError,
        "types",
        "input 0",
        "complex64",
        "float16",
    ),
    _max("record", lambda out: mo.maximum(f4.view([("a", "f4")]), out=out), DTypeError, "types", "input 0", "'a'"),
    _max("dates", lambda out: mo.maximum(np.zeros(3, "M8[s]"), out=out), DTypeError, "types", "input 0", "datetime64"),
    _max(
        "inexact_scalar", lambda out: mo.maximum(f4, 2**24 + 1, out=out), DTypeError, "scalars", "16777217", "float32"
    ),
    _max(
        "far_scalar", lambda out: mo.maximum(f4, 1e39, out=out), DTypeError, "scalars", "input 1", r"1e\+39", "float32"
    ),
    _max("big_scalar", lambda out: mo.maximum(i1, 300, out=out), DTypeError, "scalars", "input 1", "300", "int8"),
    _max(
        "float_among_rationals",
        lambda out: mo.maximum(rationals, with_float, out=out),
        DTypeError,
        "types",
        "input 1",
        "1.5",
    ),
    _max("out_type", lambda out: mo.maximum(f8, out=out), OutputError, "out", "out", "float32", "float64"),
    _max("out_shape", lambda out: mo.maximum(square, out=out), OutputError, "out", "out", r"\(3,\)", r"\(3, 3\)"),
    _max("out_broadcast", lambda out: mo.maximum(f4[:1], out=out), OutputError, "out", "out", r"\(3,\)", r"\(1,\)"),
    _max("out_rank", lambda out: mo.maximum(f4[0], out=out), OutputError, "out", "out", r"\(3,\)", r"\(\)"),
    _max("out_list", lambda out: mo.maximum(f4, out=not_arrays), OutputError, "out", "out", "list", "array"),
    _max("out_scalar", lambda out: mo.maximum(f4[0], out=not_an_array), OutputError, "out", "out", "float32", "array"),
    _max(
        "out_subclass", lambda out: mo.maximum(f4, out=f4.copy().view(Subclass)), OutputError, "out", "out", "Subclass"
    ),
    _max(
        "too_large",
        lambda out: mo.maximum(as_strided(f4, (2**40, 1), (0, 0)), as_strided(f4, (1, 2**40), (0, 0))),
        OutputTooLargeError,
        "shape",
        "1099511627776, 1099511627776",
        "memory",
    ),
    _max(
        "far_too_large",
        lambda out: mo.maximum(*(as_strided(f4, np.roll((2**60, 1, 1, 1), k), [0] * 4) for k in range(4))),
        OutputTooLargeError,
        "shape",
        "1152921504606846976",
    ),
    Bad("Max-1-shapes", lambda out: max_1(f4, f4[:1], out=out), ShapeError, "Max-1", "ONNX.Max-1.shape", ("input 1",)),
    Bad(
        "Max-8-type",
        lambda out: max_8(i1, out=out),
        DTypeError,
        "Max-8",
        "ONNX.Max-8.T",
        ("input 0", "int8", "float16"),
    ),
    Bad("Max-13-bool", lambda out: max_13(i1 > 0, out=out), DTypeError, "Max-13", "ONNX.Max-13.T", ("input 0", "bool")),
    Bad(
        "SONNX-zero_size",
        lambda out: sonnx(f4[:0], f4[:1], out=out),
        ShapeError,
        "Max",
        "SONNX.Max.zero-size",
        ("input 1",),
    ),
    Bad(
        "SONNX-zero_size_first",
        lambda out: sonnx(f4[:1], f4[:0], out=out),
        ShapeError,
        "Max",
        "SONNX.Max.zero-size",
        ("0",),
    ),
    Bad(
        "draft-zero_size",
        lambda out: draft(f4[:0], f4[:1]),
        ShapeError,
        "Max",
        "SONNX-draft.Max.zero-size",
        ("input 1",),
    ),
    Bad("SONNX-types", lambda out: sonnx(f4, 1.0, out=out), DTypeError, "Max", "SONNX.Max.GR2", ("input 1", "float")),
    Bad(
        "SONNX-rationals",
        lambda out: sonnx(with_float),
        DTypeError,
        "Max",
        "SONNX.Max.T",
        ("input 0", "1.5", "Fraction"),
    ),
    Bad(
        "SONNX-no_inputs",
        lambda out: sonnx(out=out),  # type: ignore[call-overload]
        InputCountError,
        "Max",
        "SONNX.Max.L",
        ("inputs, got 0", "1 to"),
    ),
    Bad("draft-real", lambda out: draft(rationals), DTypeError, "Max", "SONNX-draft.Max.T", ("input 0", "real")),
    _reduce(
        "axes_above",
        lambda out: mo.reduce_max(square, (2,), False, out=out),
        AxesError,
        "axes.range",
        "got 2",
        "-2 and 1",
    ),
    _reduce(
        "axes_below",
        lambda out: mo.reduce_max(square, (-3,), False, out=out),
        AxesError,
        "axes.range",
        "-3",
        "-2 and 1",
    ),
    _reduce("axis_huge", lambda out: mo.reduce_max(square, 2**70, False, out=out), AxesError, "axes.range", "-2 and 1"),
    _reduce(
        "axes_twice", lambda out: mo.reduce_max(square, (0, 0), False, out=out), AxesError, "axes", "axis 0", "twice"
    ),
    _reduce(
        "axes_twice_negative", lambda out: mo.reduce_max(square, (1, -1), False, out=out), AxesError, "axes", "twice"
    ),
    _reduce(
        "axis_and_axes", lambda out: mo.reduce_max(square, (0,), False, out, axis=0), AxesError, "axes", "and axis 0"
    ),
    _reduce("axis_above", lambda out: mo.reduce_max(square, axis=2), AxesError, "axes.range", "got 2", "-2 and 1"),
    _reduce("rank_0_axes", lambda out: mo.reduce_max(f4[0], (0,)), AxesError, "axes.range", "0", "rank 0"),
    _reduce(
        "rank_0_array_axes", lambda out: mo.reduce_max(np.array(f4[0]), -1), AxesError, "axes.range", "-1", "rank 0"
    ),
    _reduce(
        "axes_float",
        lambda out: mo.reduce_max(square, (0.0,), False, out=out),  # type: ignore[arg-type]
        AxesError,
        "axes",
        "0.0",
        "integers",
    ),
    _reduce(
        "axes_bool", lambda out: mo.reduce_max(square, (True,), False, out=out), AxesError, "axes", "True", "integers"
    ),
    _reduce("axes_text", lambda out: mo.reduce_max(square, "0", False, out=out), AxesError, "axes", "'0'", "integers"),  # type: ignore[arg-type]
    _reduce("axes_f4", lambda out: mo.reduce_max(square, np.zeros(1, "f4")), AxesError, "axes", "float32", "integers"),
    _reduce("axes_past", lambda out: mo.reduce_max(square, np.array([2**64 - 1], "u8")), AxesError, "axes.range", "2"),
    _reduce("axes_range", lambda out: mo.reduce_max(square, range(10**30)), AxesError, "axes.range", "got 2"),
    _reduce("axes_2d", lambda out: mo.reduce_max(square, np.array([[0]])), AxesError, "axes", r"\(1, 1\)", "1-D"),
    _reduce("keepdims", lambda out: mo.reduce_max(f4, keepdims=2), AttributeValueError, "keepdims", "2", "1 or 0"),  # type: ignore[call-overload]
    _reduce("list", lambda out: mo.reduce_max([1.0, 2.0], out=out), DTypeError, "arrays", "data", "list", "array"),
    _reduce("python_scalar", lambda out: mo.reduce_max(1.0, out=out), DTypeError, "arrays", "data", "float", "array"),
    _reduce("rationals", lambda out: mo.reduce_max(with_float), DTypeError, "types", "data", "1.5", "Fraction"),
    _reduce("out_shape", lambda out: mo.reduce_max(square, (0,), out=out), OutputError, "out", r"\(3,\)", r"\(1, 3\)"),
    _reduce("out_type", lambda out: mo.reduce_max(f8, out=out), OutputError, "out", "out", "float32", "float64"),
    Bad(
        "ReduceMax-1-negative",
        lambda out: reduce_1(square, axes=[-1], keepdims=0, out=out),
        AxesError,
        "ReduceMax-1",
        "ONNX.ReduceMax-1.axes.range",
        ("-1", "0 and 1"),
    ),
    Bad(
        "ReduceMax-13-bool", lambda out: reduce_13(f4 > 0), DTypeError, "ReduceMax-13", "ONNX.ReduceMax-13.T", ("bool",)
    ),
    Bad(
        "ReduceMax-18-int16",
        lambda out: reduce_18(np.ones(3, np.int16)),
        DTypeError,
        "ReduceMax-18",
        "ONNX.ReduceMax-18.T",
        ("data", "int16", "int8"),
    ),
    _segment("ids_negative", lambda out: segment(f4, np.array([-1, 0, 2]), out=out), SegmentIdsError, "ids", "0", "-1"),
    _segment(
        "ids_negative_later", lambda out: segment(f4, np.array([0, -7, 2])), SegmentIdsError, "ids", "position 1", "-7"
    ),
    _segment(
        "ids_unsorted",
        lambda out: segment(f4, np.array([0, 2, 1]), 3, out=out),
        SegmentIdsError,
        "ids",
        "2",
        "1 after 2",
    ),
    _segment(
        "ids_unsorted_int32", lambda out: segment(f4, np.array([3, 2, 4], "i4")), SegmentIdsError, "ids", "2 after 3"
    ),
    _segment(
        "ids_unsorted_swapped", lambda out: segment(f4, np.array([3, 2, 4], ">i4")), SegmentIdsError, "ids", "2 after 3"
    ),
    _segment(
        "ids_short", lambda out: segment(f4, ids[:2], 3, out=out), SegmentIdsError, "ids.shape", r"\(2,\)", r"\(3,\)"
    ),
    _segment(
        "ids_long", lambda out: segment(f4[:2], ids, 3, out=out), SegmentIdsError, "ids.shape", r"\(3,\)", r"\(2,\)"
    ),
    _segment(
        "ids_rank_0",
        lambda out: segment(f4[:1], np.array(0), 3, out=out),
        SegmentIdsError,
        "ids.shape",
        r"must have shape \(\d,\)",
    ),
    _segment(
        "ids_rank_2",
        lambda out: segment(f4, ids[:, None], 3, out=out),
        SegmentIdsError,
        "ids.shape",
        r"\(3, 1\)",
        r"must have shape \(3,\)",
    ),
    _segment_16(
        "ids_uint8",
        lambda out: segment_16(f4, ids.astype("u1"), fill_mode="ZERO", out=out),
        DTypeError,
        "T_IDX",
        "segment_ids must have dtype int32 or int64, got uint8",
    ),
    _segment_16(
        "num_uint8",
        lambda out: segment_16(f4, ids, np.uint8(3), fill_mode="ZERO", out=out),
        DTypeError,
        "T_IDX",
        "num_segments must have dtype int32 or int64, got uint8",
    ),
    _segment(
        "ids_float",
        lambda out: segment(f4, ids * 1.0, out=out),
        DTypeError,
        "index_types",
        "segment_ids",
        "float64",
        "int64",
    ),
    _segment(
        "ids_list", lambda out: segment(f4, [0, 1.0, 2], out=out), DTypeError, "index_types", "got 1.0 .* at position 1"
    ),
    _segment("data_rank_0", lambda out: segment(f4[0], ids[:1], out=out), ShapeError, "data", "rank 0", "rank 1"),
    _segment(
        "data_list", lambda out: segment([1.0, 1.0, 1.0], ids, out=out), DTypeError, "arrays", "data", "list", "array"
    ),
    _segment(
        "num_negative",
        lambda out: segment(f4, ids, -1, out=out),
        NumSegmentsError,
        "num_segments",
        "-1",
        "non-negative",
    ),
    _segment("num_negative_array", lambda out: segment(f4, ids, np.array(-5)), NumSegmentsError, "num_segments", "-5"),
    _segment(
        "num_float", lambda out: segment(f4, ids, 3.0, out=out), NumSegmentsError, "num_segments", "3.0", "integer"
    ),
    _segment(
        "num_bool", lambda out: segment(f4, ids, True, out=out), NumSegmentsError, "num_segments", "True", "integer"
    ),
    _segment(
        "num_text", lambda out: segment(f4, ids, "3", out=out), NumSegmentsError, "num_segments", "'3'", "integer"
    ),
    _segment(
        "num_list", lambda out: segment(f4, ids, [3], out=out), NumSegmentsError, "num_segments", r"\[3\]", "integer"
    ),
    _segment(
        "num_1d",
        lambda out: segment(f4, ids, np.array([3]), out=out),
        NumSegmentsError,
        "num_segments",
        r"\(1,\)",
        "scalar",
    ),
    _segment(
        "num_float_array",
        lambda out: segment(f4, ids, np.float32(3), out=out),
        DTypeError,
        "index_types",
        "num_segments must have dtype int8",
    ),
    _segment(
        "num_huge", lambda out: segment(f4, ids, 2**62), OutputTooLargeError, "shape", "4611686018427387904", "memory"
    ),
    _segment("num_huge_array", lambda out: segment(f4, ids, np.int64(2**62)), OutputTooLargeError, "shape", "memory"),
    _segment("num_past_64_bits", lambda out: segment(f4, ids, 2**70), OutputTooLargeError, "shape", "memory"),
    _segment(
        "num_past_64_bits_of_nothing",
        lambda out: segment(np.ones((3, 0), "f4"), ids, 2**70),
        OutputTooLargeError,
        "shape",
    ),
    _segment("ids_huge", lambda out: segment(f4, np.array([0, 1, 2**62])), OutputTooLargeError, "shape", "memory"),
    _segment(
        "ids_highest", lambda out: segment(f4, np.array([0, 1, 2**63 - 1])), OutputTooLargeError, "shape", "memory"
    ),
    _segment("ids_huge_unchecked", lambda out: segment(f4, ids << 61, check_ids=False), OutputTooLargeError, "shape"),
    _segment(
        "no_fill_mode", lambda out: mo.segment_max(f4, ids, out=out), AttributeValueError, "fill_mode", "ZERO", "LOWEST"
    ),
    _segment(
        "fill_mode_none",
        lambda out: segment(f4, ids, fill_mode=None, out=out),
        AttributeValueError,
        "fill_mode",
        "ZERO",
    ),
    _segment(
        "fill_mode_unknown",
        lambda out: segment(f4, ids, fill_mode="MAX", out=out),
        AttributeValueError,
        "fill_mode",
        "'MAX'",
    ),
    _segment(
        "fill_mode_number",
        lambda out: segment(f4, ids, fill_mode=0, out=out),
        AttributeValueError,
        "fill_mode",
        "0",
        "LOWEST",
    ),
    _segment(
        "fill_mode_empty", lambda out: segment(f4, ids, fill_mode="", out=out), AttributeValueError, "fill_mode", "''"
    ),
    _segment_16(
        "operator_without_fill_mode",
        lambda out: segment_16(f4, ids, out=out),
        AttributeValueError,
        "fill_mode",
        "missing",
    ),
    _segment_16(
        "bool", lambda out: segment_16(f4 > 0, ids, fill_mode="ZERO"), DTypeError, "T", "data", "bool", "float16"
    ),
    _segment_16(
        "real", lambda out: segment_16(rationals, ids, fill_mode="ZERO"), DTypeError, "T", "data", "real", "float16"
    ),
    _segment("rationals", lambda out: segment(with_float, ids), DTypeError, "types", "data", "1.5", "Fraction"),
    _segment("out_shape", lambda out: segment(f4, ids, 4, out=out), OutputError, "out", "out", r"\(3,\)", r"\(4,\)"),
    _segment("out_type", lambda out: segment(f8, ids, out=out), OutputError, "out", "out", "float32", "float64"),
]


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: bad.id)
def test_bad_input(bad: Bad) -> None:
    out = np.full(bad.shape, 7, np.float32)
    with pytest.raises(bad.error) as caught:
        bad.call(out)
    text = str(caught.value)
    assert text.startswith(f"{bad.operator} "), text
    assert text.endswith(f" [{bad.clause}]"), text
    assert caught.value.clause == bad.clause
    for part in bad.says:
        assert re.search(part, text), f"{text!r} does not say {part!r}"
    assert (out == 7).all()


@pytest.mark.parametrize(
    "call",
    [
        lambda out: mo.maximum(f4, f4, out=out),
        lambda out: mo.maximum(f4, 2.0, out=out),
        lambda out: mo.reduce_max(square, (0,), False, out=out),
        lambda out: segment(f4, ids, out=out),
        lambda out: max_13(f4, out=out),
    ],
    ids=["maximum", "maximum_scalar", "reduce_max", "segment_max", "Max-13"],
)
def test_out_is_read_only(call: Callable[[Array], object]) -> None:
    before = read_only.tobytes()
    with pytest.raises(OutputError, match=r"(maximum|reduce_max|segment_max|Max-13) out is read-only") as caught:
        call(read_only)
    assert caught.value.clause in ("maxops.maximum.out", "maxops.reduce_max.out", "maxops.segment_max.out", "")
    assert re.search(r"writ", str(caught.value)), "the text does not say what was expected"
    assert read_only.tobytes() == before


def test_out_is_a_read_only_memory_map(tmp_path: Any) -> None:
    path = tmp_path / "out"
    path.write_bytes(bytes(12))
    with pytest.raises(OutputError, match="read-only"):
        mo.maximum(f4, out=np.memmap(path, np.float32, "r"))
    assert path.read_bytes() == bytes(12)


@pytest.mark.parametrize("position", [0, 1, 2, 1022, 1023, 1024, 4095, 4096, 4097, 65_535, 65_536, (1 << 20) + 3, -1])
@pytest.mark.parametrize("layout", ["contiguous", "strided", "swapped"])
def test_every_id_is_checked(position: int, layout: str) -> None:
    """Test that a single invalid id is found and named at every position."""
    n = (1 << 20) + 70_000
    data = np.zeros(n, np.int8)
    right = np.arange(n, dtype=np.int32) // 2 + 1
    for wrong, word in ((-1, "must not be negative"), (0, "must be non-decreasing")):
        if wrong == 0 and position == 0:
            continue
        given_ids = right.copy()
        given_ids[position] = wrong
        if layout == "strided":
            given_ids = np.repeat(given_ids, 2)[::2]
        elif layout == "swapped":
            given_ids = given_ids.astype(">i4")
        with pytest.raises(SegmentIdsError, match=rf"{word}, got {wrong} (after \d+ )?at position {position % n}"):
            mo.segment_max(data, given_ids, 10, fill_mode="ZERO")
    assert mo.segment_max(data, right, 10, fill_mode="ZERO").shape == (10,)


@pytest.mark.parametrize("threads_count", [1, 7])
def test_every_id_is_checked_where_shares_meet(threads_count: int) -> None:
    before = mo.get_num_threads()
    mo.set_num_threads(threads_count)
    try:
        n = (5 << 20) // 8
        share = (256 << 10) // 8
        data, given_ids = np.zeros(n, np.int8), np.arange(n)
        for position in (share - 1, share, share + 1, 2 * share, 20 * share - 1, n - 1):
            given_ids[position] = position - 2
            with pytest.raises(
                SegmentIdsError, match=f"got {position - 2} after {position - 1} at position {position}"
            ):
                mo.segment_max(data, given_ids, 10, fill_mode="ZERO")
            given_ids[position] = position
    finally:
        mo.set_num_threads(before)


@pytest.mark.parametrize(
    ("function", "inputs", "more"),
    [
        (mo.maximum, (f4,), {"dtype": np.float32}),
        (mo.reduce_max, (), {}),
        (mo.reduce_max, (f4,), {"axises": 0}),
        (mo.reduce_max, (f4, (0,)), {"axes": (0,)}),
        (mo.segment_max, (f4, ids, 3, "ZERO"), {}),
    ],
    ids=["maximum-dtype", "nothing", "axises", "axes_twice", "fill_mode_by_position"],
)
def test_wrong_arguments_are_pythons_own_errors(
    function: Callable[..., Array], inputs: tuple[Any, ...], more: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match="argument"):
        function(*inputs, **more)


def test_errors_are_also_the_exceptions_that_one_expects() -> None:
    for error, base in [
        (DTypeError, TypeError),
        (ShapeError, ValueError),
        (AxesError, ValueError),
        (InputCountError, TypeError),
        (OutputTooLargeError, MemoryError),
    ]:
        assert issubclass(error, base)
        assert issubclass(error, MaxopsError)


def test_clauses_of_plain_functions_are_maxopss_own() -> None:
    """Test that plain functions cite clauses of maxops, and named versions those of their standard; each is listed."""
    listed = {clause.id: operator for operator in mo.operators() for clause in operator.clauses}
    for bad in CASES:
        assert listed[bad.clause].spec.name == bad.operator, bad.id
    own = {bad.clause for bad in CASES if bad.clause.startswith("maxops.")}
    assert len(own) >= 20


def test_an_error_leaves_a_usable_library() -> None:
    for bad in CASES:
        with pytest.raises(MaxopsError if bad.id != "segment_max-no_fill_mode" else Exception):
            bad.call(np.zeros(bad.shape, np.float32))
        assert mo.maximum(f4, f4 + 1).tolist() == [2, 2, 2]
