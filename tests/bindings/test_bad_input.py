"""Invalid inputs: each error names the place, the actual and the expected value, and the clause. `out` is unchanged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import maxops
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
    """A call that must fail, with an `out` of three elements. Its error message must contain each of `says`."""

    id: str
    call: Callable[..., object]
    error: type[MaxopsError]
    operator: str
    clause: str
    says: tuple[str, ...]


mo: Any = maxops  # typed as Any, because the arguments are invalid
max_1, max_8, max_13 = (mo.operator("ONNX", "Max", version) for version in (1, 8, 13))
reduce_1, reduce_13, reduce_18 = (mo.operator("ONNX", "ReduceMax", version) for version in (1, 13, 18))
sonnx, draft = mo.operator("SONNX", "Max"), mo.operator("SONNX draft", "Max")
segment_16 = mo.operator("OpenVINO", "SegmentMax", 16)

f4, f8, i1 = np.ones(3, np.float32), np.ones(3), np.ones(3, np.int8)
square = np.ones((3, 3), np.float32)
ids = np.array([0, 1, 2])
far_shapes = [np.roll((2**60, 1, 1, 1), k) for k in range(4)]
rationals = np.array([Fraction(1, 2), 1, 2], object)
with_float = np.array([Fraction(1, 2), 1.5, 2], object)
read_only = np.zeros(3, np.float32)
read_only.flags.writeable = False


def segment(data: Any, given_ids: Any, count: Any = None, **more: Any) -> Array:
    result: Array = mo.segment_max(data, given_ids, count, **({"fill_mode": "ZERO"} | more))
    return result


# The error that cites each clause, by the clause's short name.
ERRORS: dict[type[MaxopsError], str] = {
    InputCountError: "inputs L",
    DTypeError: "types T GR2 arrays scalars T_IDX index_types",
    ShapeError: "shape zero-size data",
    OutputTooLargeError: "shape,too-large",
    AxesError: "axes axes.range",
    AttributeValueError: "keepdims fill_mode ties dim",
    SegmentIdsError: "ids ids.shape",
    NumSegmentsError: "num_segments",
    OutputError: "out",
}
ERROR_OF = {short: error for error, shorts in ERRORS.items() for short in shorts.split()}


def _cases(id: str, operator: str, clauses: str, rows: tuple[tuple[Any, ...], ...]) -> Iterator[Bad]:
    """Yield the cases of an operator. Each row has an id, the call, the clause's short name and parts of the text."""
    for name, call, short, *says in rows:
        clause = f"{clauses}.{short.partition(',')[0]}"
        yield Bad(f"{id}-{name}", call, ERROR_OF[short], operator, clause, tuple(says))


class Subclass(np.ndarray):
    pass


class HugeInteger(np.int64):
    """An np.int64 subclass that returns a value beyond its type."""

    def __index__(self) -> int:
        return 2**70


CASES = [
    *_cases("maximum", "maximum", "maxops.maximum", (
        ("mixed_types", lambda out: mo.maximum(f4, f8, out=out), "types", "input 1", "float64", "float32"),
        ("mixed_kinds", lambda out: mo.maximum(f4, f4, i1, out=out), "types", "input 2", "int8", "float32"),
        ("bool_and_int", lambda out: mo.maximum(i1, i1 > 0, out=out), "types", "input 1", "bool", "int8"),
        ("shapes", lambda out: mo.maximum(f4, f4[:2], out=out), "shape", "input 1", r"\(2,\)", "3"),
        ("shapes_inside", lambda out: mo.maximum(f4, np.ones((2, 3, 2), "f4"), out=out), "shape", "input 1"),
        ("no_inputs", lambda out: mo.maximum(out=out), "inputs", "inputs, got 0", "1 to 2147483647"),
        ("list", lambda out: mo.maximum(f4, [1.0, 2.0, 3.0], out=out), "arrays", "input 1", "list", "array"),
        ("list_alone", lambda out: mo.maximum([1.0], out=out), "arrays", "input 0", "list", "array"),
        ("none", lambda out: mo.maximum(f4, None, out=out), "arrays", "input 1", "NoneType", "array"),
        ("text", lambda out: mo.maximum(f4, "1", out=out), "arrays", "input 1", "str", "array"),
        ("bytes", lambda out: mo.maximum(f4, b"1", out=out), "arrays", "input 1", "bytes", "array"),
        ("complex", lambda out: mo.maximum(f4, 1j, out=out), "arrays", "input 1", "complex", "array"),
        ("memoryview", lambda out: mo.maximum(f4.data, out=out), "arrays", "input 0", "memoryview"),
        ("masked", lambda out: mo.maximum(np.ma.array(f4), out=out), "arrays", "input 0", "MaskedArray", "filled"),
        ("subclass", lambda out: mo.maximum(f4.view(Subclass), out=out), "arrays", "input 0", "Subclass"),
        ("complex_array", lambda out: mo.maximum(f4 * 1j, out=out), "types", "input 0", "complex64", "float16"),
        ("record", lambda out: mo.maximum(f4.view([("a", "f4")]), out=out), "types", "input 0", "'a'"),
        ("dates", lambda out: mo.maximum(np.zeros(3, "M8[s]"), out=out), "types", "input 0", "datetime64"),
        ("inexact_scalar", lambda out: mo.maximum(f4, 2**24 + 1, out=out), "scalars", "16777217", "float32"),
        ("far_scalar", lambda out: mo.maximum(f4, 1e39, out=out), "scalars", "input 1", r"1e\+39", "float32"),
        ("big_scalar", lambda out: mo.maximum(i1, 300, out=out), "scalars", "input 1", "300", "int8"),
        ("float_among_rationals", lambda out: mo.maximum(rationals, with_float, out=out), "types", "input 1", "1.5"),
        ("out_type", lambda out: mo.maximum(f8, out=out), "out", "out", "float32", "float64"),
        ("out_shape", lambda out: mo.maximum(square, out=out), "out", "out", r"\(3,\)", r"\(3, 3\)"),
        ("out_broadcast", lambda out: mo.maximum(f4[:1], out=out), "out", "out", r"\(3,\)", r"\(1,\)"),
        ("out_rank", lambda out: mo.maximum(f4[0], out=out), "out", "out", r"\(3,\)", r"\(\)"),
        ("out_list", lambda out: mo.maximum(f4, out=[0.0] * 3), "out", "out", "list", "array"),
        ("out_scalar", lambda out: mo.maximum(f4[0], out=np.float32(1)), "out", "out", "float32", "array"),
        ("out_subclass", lambda out: mo.maximum(f4, out=f4.copy().view(Subclass)), "out", "out", "Subclass"),
        ("too_large", lambda out: mo.maximum(as_strided(f4, (2**40, 1), (0, 0)), as_strided(f4, (1, 2**40), (0, 0))),
         "shape,too-large", "1099511627776, 1099511627776", "memory"),
        ("far_too_large", lambda out: mo.maximum(*(np.broadcast_to(f4[0], size) for size in far_shapes)),
         "shape,too-large", "1152921504606846976"),
        ("ties", lambda out: mo.maximum(f4, ties="last", out=out), "ties", "got 'last'"),
        ("ties_number", lambda out: mo.maximum(f4, ties=5, out=out), "ties", "got 5"),
    )),
    *_cases("Max-1", "Max-1", "ONNX.Max-1", (
        ("shapes", lambda out: max_1(f4, f4[:1], out=out), "shape", "input 1"),
    )),
    *_cases("Max-8", "Max-8", "ONNX.Max-8", (
        ("type", lambda out: max_8(i1, out=out), "T", "input 0", "int8", "float16"),
    )),
    *_cases("Max-13", "Max-13", "ONNX.Max-13", (
        ("bool", lambda out: max_13(i1 > 0, out=out), "T", "input 0", "bool"),
    )),
    *_cases("SONNX", "Max", "SONNX.Max", (
        ("zero_size", lambda out: sonnx(f4[:0], f4[:1], out=out), "zero-size", "input 1"),
        ("zero_size_first", lambda out: sonnx(f4[:1], f4[:0], out=out), "zero-size", "0"),
        ("types", lambda out: sonnx(f4, 1.0, out=out), "GR2", "input 1", "float"),
        ("rationals", lambda out: sonnx(with_float), "T", "input 0", "1.5", "Fraction"),
        ("no_inputs", lambda out: sonnx(out=out), "L", "inputs, got 0", "1 to"),
    )),
    *_cases("draft", "Max", "SONNX-draft.Max", (
        ("zero_size", lambda out: draft(f4[:0], f4[:1]), "zero-size", "input 1"),
        ("real", lambda out: draft(rationals), "T", "input 0", "real"),
    )),
    *_cases("reduce_max", "reduce_max", "maxops.reduce_max", (
        ("axes_above", lambda out: mo.reduce_max(square, (2,), False, out=out), "axes.range", "got 2", "-2 and 1"),
        ("axes_below", lambda out: mo.reduce_max(square, (-3,), False, out=out), "axes.range", "-3", "-2 and 1"),
        ("axis_huge", lambda out: mo.reduce_max(square, 2**70, False, out=out), "axes.range", "-2 and 1"),
        ("axes_twice", lambda out: mo.reduce_max(square, (0, 0), False, out=out), "axes", "axis 0", "twice"),
        ("axes_twice_negative", lambda out: mo.reduce_max(square, (1, -1), False, out=out), "axes", "twice"),
        ("axis_and_axes", lambda out: mo.reduce_max(square, (0,), False, out, axis=0), "axes", "and axis 0"),
        ("axis_above", lambda out: mo.reduce_max(square, axis=2), "axes.range", "got 2", "-2 and 1"),
        ("rank_0_axes", lambda out: mo.reduce_max(f4[0], (0,)), "axes.range", "0", "rank 0"),
        ("rank_0_array_axes", lambda out: mo.reduce_max(np.array(f4[0]), -1), "axes.range", "-1", "rank 0"),
        ("axes_float", lambda out: mo.reduce_max(square, (0.0,), False, out=out), "axes", "0.0", "integers"),
        ("axes_bool", lambda out: mo.reduce_max(square, (True,), False, out=out), "axes", "True", "integers"),
        ("axes_text", lambda out: mo.reduce_max(square, "0", False, out=out), "axes", "'0'", "integers"),
        ("axes_bytes", lambda out: mo.reduce_max(square, b"\0", False, out=out), "axes", "integers"),
        ("axes_own_huge", lambda out: mo.reduce_max(square, HugeInteger(0)), "axes.range", f"rank 2, got {2**70}"),
        ("axes_f4", lambda out: mo.reduce_max(square, np.zeros(1, "f4")), "axes", "float32", "integers"),
        ("axes_past", lambda out: mo.reduce_max(square, np.array([2**64 - 1], "u8")), "axes.range", "2"),
        ("axes_range", lambda out: mo.reduce_max(square, range(10**30)), "axes.range", "got 2"),
        ("axes_2d", lambda out: mo.reduce_max(square, np.array([[0]])), "axes", r"\(1, 1\)", "1-D"),
        ("ties", lambda out: mo.reduce_max(f4, ties="first ", out=out), "ties", "got 'first '"),
        ("dim", lambda out: mo.reduce_max(f4, dim="x", out=out), "dim", "got dim='x'"),
        ("keepdims", lambda out: mo.reduce_max(f4, keepdims=2), "keepdims", "2", "1 or 0"),
        ("list", lambda out: mo.reduce_max([1.0, 2.0], out=out), "arrays", "data", "list", "array"),
        ("python_scalar", lambda out: mo.reduce_max(1.0, out=out), "arrays", "data", "float", "array"),
        ("rationals", lambda out: mo.reduce_max(with_float), "types", "data", "1.5", "Fraction"),
        ("out_shape", lambda out: mo.reduce_max(square, (0,), out=out), "out", r"\(3,\)", r"\(1, 3\)"),
        ("out_type", lambda out: mo.reduce_max(f8, out=out), "out", "out", "float32", "float64"),
    )),
    *_cases("ReduceMax-1", "ReduceMax-1", "ONNX.ReduceMax-1", (
        ("negative", lambda out: reduce_1(square, axes=[-1], keepdims=0, out=out), "axes.range", "-1", "0 and 1"),
    )),
    *_cases("ReduceMax-13", "ReduceMax-13", "ONNX.ReduceMax-13", (
        ("bool", lambda out: reduce_13(f4 > 0), "T", "bool"),
    )),
    *_cases("ReduceMax-18", "ReduceMax-18", "ONNX.ReduceMax-18", (
        ("int16", lambda out: reduce_18(np.ones(3, np.int16)), "T", "data", "int16", "int8"),
    )),
    *_cases("segment_max", "segment_max", "maxops.segment_max", (
        ("ids_negative", lambda out: segment(f4, np.array([-1, 0, 2]), out=out), "ids", "0", "-1"),
        ("ids_negative_later", lambda out: segment(f4, np.array([0, -7, 2])), "ids", "position 1", "-7"),
        ("ids_unsorted", lambda out: segment(f4, np.array([0, 2, 1]), 3, out=out), "ids", "2", "1 after 2"),
        ("ids_unsorted_int32", lambda out: segment(f4, np.array([3, 2, 4], "i4")), "ids", "2 after 3"),
        ("ids_unsorted_swapped", lambda out: segment(f4, np.array([3, 2, 4], ">i4")), "ids", "2 after 3"),
        ("ids_short", lambda out: segment(f4, ids[:2], 3, out=out), "ids.shape", r"\(2,\)", r"\(3,\)"),
        ("ids_long", lambda out: segment(f4[:2], ids, 3, out=out), "ids.shape", r"\(3,\)", r"\(2,\)"),
        ("ids_rank_0", lambda out: segment(f4[:1], np.array(0), 3, out=out), "ids.shape", r"must have shape \(\d,\)"),
        ("ids_rank_2", lambda out: segment(f4, ids[:, None], 3, out=out),
         "ids.shape", r"\(3, 1\)", r"must have shape \(3,\)"),
        ("ids_float", lambda out: segment(f4, ids * 1.0, out=out), "index_types", "segment_ids", "float64", "int64"),
        ("ids_list", lambda out: segment(f4, [0, 1.0, 2], out=out), "index_types", "got 1.0 .* at position 1"),
        ("data_rank_0", lambda out: segment(f4[0], ids[:1], out=out), "data", "rank 0", "rank 1"),
        ("data_list", lambda out: segment([1.0, 1.0, 1.0], ids, out=out), "arrays", "data", "list", "array"),
        ("num_negative", lambda out: segment(f4, ids, -1, out=out), "num_segments", "-1", "non-negative"),
        ("num_negative_array", lambda out: segment(f4, ids, np.array(-5)), "num_segments", "-5"),
        ("num_float", lambda out: segment(f4, ids, 3.0, out=out), "num_segments", "3.0", "integer"),
        ("num_bool", lambda out: segment(f4, ids, True, out=out), "num_segments", "True", "integer"),
        ("num_text", lambda out: segment(f4, ids, "3", out=out), "num_segments", "'3'", "integer"),
        ("num_list", lambda out: segment(f4, ids, [3], out=out), "num_segments", r"\[3\]", "integer"),
        ("num_1d", lambda out: segment(f4, ids, np.array([3]), out=out), "num_segments", r"\(1,\)", "scalar"),
        ("num_float_array", lambda out: segment(f4, ids, np.float32(3), out=out),
         "index_types", "num_segments must have dtype int8"),
        ("num_huge", lambda out: segment(f4, ids, 2**62), "shape,too-large", "4611686018427387904", "memory"),
        ("num_huge_array", lambda out: segment(f4, ids, np.int64(2**62)), "shape,too-large", "memory"),
        ("num_huge_uint64", lambda out: segment(f4, ids, np.uint64(2**63)), "shape,too-large", "9223372036854775808"),
        ("num_huge_and_ids", lambda out: segment(f4, np.array([-1, 0, 2]), 2**70), "ids", "got -1 at position 0"),
        ("num_past_64_bits", lambda out: segment(f4, ids, 2**70), "shape,too-large", "memory"),
        ("num_past_64_bits_of_nothing", lambda out: segment(np.ones((3, 0), "f4"), ids, 2**70), "shape,too-large"),
        ("ids_huge", lambda out: segment(f4, np.array([0, 1, 2**62])), "shape,too-large", "memory"),
        ("ids_highest", lambda out: segment(f4, np.array([0, 1, 2**63 - 1])), "shape,too-large", "memory"),
        ("ids_huge_unchecked", lambda out: segment(f4, ids << 61, check_ids=False), "shape,too-large"),
        ("no_fill_mode", lambda out: mo.segment_max(f4, ids, out=out), "fill_mode", "ZERO", "LOWEST"),
        ("fill_mode_none", lambda out: segment(f4, ids, fill_mode=None, out=out), "fill_mode", "ZERO"),
        ("fill_mode_unknown", lambda out: segment(f4, ids, fill_mode="MAX", out=out), "fill_mode", "'MAX'"),
        ("fill_mode_number", lambda out: segment(f4, ids, fill_mode=0, out=out), "fill_mode", "0", "LOWEST"),
        ("fill_mode_empty", lambda out: segment(f4, ids, fill_mode="", out=out), "fill_mode", "''"),
        ("rationals", lambda out: segment(with_float, ids), "types", "data", "1.5", "Fraction"),
        ("out_shape", lambda out: segment(f4, ids, 4, out=out), "out", "out", r"\(3,\)", r"\(4,\)"),
        ("out_type", lambda out: segment(f8, ids, out=out), "out", "out", "float32", "float64"),
    )),
    *_cases("SegmentMax-16", "SegmentMax-16", "OpenVINO.SegmentMax-16", (
        ("ids_uint8", lambda out: segment_16(f4, ids.astype("u1"), fill_mode="ZERO", out=out),
         "T_IDX", "segment_ids must have dtype int32 or int64, got uint8"),
        ("num_uint8", lambda out: segment_16(f4, ids, np.uint8(3), fill_mode="ZERO", out=out),
         "T_IDX", "num_segments must have dtype int32 or int64, got uint8"),
        ("operator_without_fill_mode", lambda out: segment_16(f4, ids, out=out), "fill_mode", "missing"),
        ("bool", lambda out: segment_16(f4 > 0, ids, fill_mode="ZERO"), "T", "data", "bool", "float16"),
        ("real", lambda out: segment_16(rationals, ids, fill_mode="ZERO"), "T", "data", "real", "float16"),
    )),
]  # fmt: skip


@pytest.mark.parametrize("bad", CASES, ids=lambda bad: bad.id)
def test_bad_input(bad: Bad) -> None:
    out = np.full(3, 7, np.float32)
    with pytest.raises(bad.error) as caught:
        bad.call(out)
    text = str(caught.value)
    assert text.startswith(f"{bad.operator} "), text
    assert text.endswith(f" [{bad.clause}]"), text
    assert caught.value.clause == bad.clause
    for part in bad.says:
        assert re.search(part, text), f"{text!r} does not contain {part!r}"
    assert (out == 7).all()
    assert mo.maximum(f4, f4 + 1).tolist() == [2, 2, 2]  # the library still works


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
    assert re.search(r"writ", str(caught.value)), "the message does not name the expected value"
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
    """Test that a single invalid id is found at every position, and that the error names the position."""
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
    with mo.num_threads(threads_count):
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
    """Test that each error cites a clause that is listed for its function or for its version of an operator."""
    listed = {clause.id: operator for operator in mo.operators() for clause in operator.clauses}
    for bad in CASES:
        assert listed[bad.clause].spec.name == bad.operator, bad.id
    own = {bad.clause for bad in CASES if bad.clause.startswith("maxops.")}
    assert len(own) >= 20
