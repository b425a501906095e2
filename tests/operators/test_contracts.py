"""Every version of every standard as a callable contract: valid calls, and errors with their clauses."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array, assert_same_bits, fast_maximum, fast_reduce_max, fast_segment_max, mixed, swapped
from maxops import dtypes, spec
from maxops.dtypes import FLOAT32, INT32, REAL, DType
from maxops.errors import (
    AttributeValueError,
    AxesError,
    DTypeError,
    InputCountError,
    MaxopsError,
    OutputError,
    ShapeError,
    UnknownOperatorError,
)


def name_of(operator: mo.Operator) -> str:
    return f"{operator.standard} {operator.spec.name}"


def named(name: str) -> list[mo.Operator]:
    return [operator for operator in mo.operators() if operator.name == name]


STANDARDS = [operator for operator in mo.operators() if operator.standard != "maxops"]
PLAIN = [operator for operator in mo.operators() if operator.standard == "maxops"]
each_operator = pytest.mark.parametrize("operator", STANDARDS, ids=name_of)
each_plain_function = pytest.mark.parametrize("operator", PLAIN, ids=name_of)
each_max = pytest.mark.parametrize("operator", named("Max"), ids=name_of)
each_reduce_max = pytest.mark.parametrize("operator", named("ReduceMax"), ids=name_of)
each_segment_max = pytest.mark.parametrize("operator", named("SegmentMax"), ids=name_of)


def some(dtype: DType, shape: tuple[int, ...] = (2, 3), seed: int = 0) -> Array:
    if dtype is not REAL:
        return mixed(dtype, shape, seed)
    array = np.empty(shape, object)
    array[...] = Fraction(seed - 1, 3)
    return array


# The arguments that each operator requires in addition to data.
OPTIONS: dict[str, dict[str, Any]] = {
    "SegmentMax": {"fill_mode": "ZERO"},
    "ScatterElements": {"reduction": "max"},
    "ScatterND": {"reduction": "max"},
}


def inputs_of(operator: mo.Operator, data: Array) -> tuple[Array, ...]:
    if operator.name == "SegmentMax":
        return data, np.zeros(len(data), np.int64)
    if operator.name in spec.SCATTERS:
        shape = data.shape if operator.name == "ScatterElements" else (len(data), 1)
        return data, np.zeros(shape, np.int64), data
    return (data,)


def call(operator: mo.Operator, data: Array, **more: Any) -> Array:
    result: Array = operator(*inputs_of(operator, data), **OPTIONS.get(operator.name, {}), **more)
    return result


def assert_refused(operator: mo.Operator, short: str, error: type[MaxopsError], call: Callable[[], object]) -> str:
    """Check the error of a call: the class, the operator's clause, and the operator and the clause's id in the text."""
    with pytest.raises(error) as caught:
        call()
    clause = operator.spec.clause(short)
    assert caught.value.clause == clause
    assert clause in [listed.id for listed in operator.clauses]
    assert str(caught.value).startswith(f"{operator.spec.name} ")
    assert str(caught.value).endswith(f" [{clause}]")
    return str(caught.value)


# -------------------------------------------------------------------------------------------------- the table


def test_operators_are_those_of_the_documents() -> None:
    versions = {(operator.standard, operator.name, operator.version) for operator in STANDARDS}
    assert versions == (
        {("ONNX", "Max", version) for version in (1, 6, 8, 12, 13)}
        | {("ONNX", "ReduceMax", version) for version in (1, 11, 12, 13, 18, 20)}
        | {("ONNX", name, 18) for name in spec.SCATTERS}
        | {("SONNX", "Max", None), ("SONNX draft", "Max", None), ("OpenVINO", "SegmentMax", 16)}
    )


FLOAT_NAMES = ["float16", "float32", "float64"]
WIDE_INTEGERS = ["int32", "int64", "uint32", "uint64"]
ALL_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NARROW = ["int8", "uint8"]
TYPES = {
    "ONNX Max-1": FLOAT_NAMES,
    "ONNX Max-6": FLOAT_NAMES,
    "ONNX Max-8": FLOAT_NAMES,
    "ONNX Max-12": FLOAT_NAMES + ALL_INTEGERS,
    "ONNX Max-13": [*FLOAT_NAMES, *ALL_INTEGERS, "bfloat16"],
    "SONNX Max": [*FLOAT_NAMES, *ALL_INTEGERS, "real"],
    "SONNX draft Max": [*FLOAT_NAMES, *ALL_INTEGERS, "bfloat16"],
    "ONNX ReduceMax-1": FLOAT_NAMES + WIDE_INTEGERS,
    "ONNX ReduceMax-11": FLOAT_NAMES + WIDE_INTEGERS,
    "ONNX ReduceMax-12": FLOAT_NAMES + WIDE_INTEGERS + NARROW,
    "ONNX ReduceMax-13": [*FLOAT_NAMES, *WIDE_INTEGERS, *NARROW, "bfloat16"],
    "ONNX ReduceMax-18": [*FLOAT_NAMES, *WIDE_INTEGERS, *NARROW, "bfloat16"],
    "ONNX ReduceMax-20": [*FLOAT_NAMES, *WIDE_INTEGERS, *NARROW, "bfloat16", "bool"],
    "ONNX ScatterElements-18": [*FLOAT_NAMES, *ALL_INTEGERS, "bfloat16", "bool"],
    "ONNX ScatterND-18": [*FLOAT_NAMES, *ALL_INTEGERS, "bfloat16", "bool"],
    "OpenVINO SegmentMax-16": [*FLOAT_NAMES, *ALL_INTEGERS, "bfloat16"],
}


@each_operator
def test_types_are_those_of_the_documents(operator: mo.Operator) -> None:
    assert {str(dtype) for dtype in operator.types} == set(TYPES[name_of(operator)])


@each_operator
def test_listed_types_are_taken_and_others_refused(operator: mo.Operator) -> None:
    for dtype in dtypes.ALL:
        data = some(dtype)
        if str(dtype) in TYPES[name_of(operator)]:
            assert call(operator, data).dtype == dtype.numpy
            if dtype is not REAL:
                assert call(operator, swapped(data)).dtype == dtype.numpy
            continue
        text = assert_refused(operator, "T", DTypeError, partial(call, operator, data))
        assert re.search(rf"(input 0|data) has unsupported dtype {dtype}\b", text)
        assert all(str(listed) in text for listed in operator.types)


@each_operator
def test_clauses(operator: mo.Operator) -> None:
    ids = [clause.id for clause in operator.clauses]
    assert len(ids) == len(set(ids)) > 4
    for clause in operator.clauses:
        assert clause.id.startswith(f"{operator.standard.replace(' ', '-')}.{operator.spec.name}.")
        assert clause.statement
        assert clause.source
        assert clause.level in ("must", "undecided")
    with pytest.raises(KeyError):
        operator.spec.clause("no such clause")


def test_clause_ids_are_unique_over_all() -> None:
    ids = [clause.id for operator in mo.operators() for clause in operator.clauses]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(
    ("standard", "name", "version", "message"),
    [
        ("ONNX", "Max", 7, "ONNX Max has no version 7; known versions: 1, 6, 8, 12, 13"),
        ("ONNX", "Max", None, "ONNX Max requires a version; pass version= with one of 1, 6, 8, 12, 13"),
        ("SONNX", "Max", 13, "SONNX Max has no versions, got version 13; omit it"),
        ("ONNX", "Min", 13, "unknown operator 'Min' of standard 'ONNX'; known operators: ONNX Max"),
        ("ONNXX", "Max", 13, "unknown operator 'Max' of standard 'ONNXX'"),
    ],
)
def test_unknown_operators(standard: str, name: str, version: int | None, message: str) -> None:
    with pytest.raises(UnknownOperatorError, match=re.escape(message)):
        mo.operator(standard, name, version)
    with pytest.raises(LookupError):
        mo.operator(standard, name, version)


# ------------------------------------------------------------------------------------------------- attributes

VALUES: dict[str, Any] = {
    "consumed_inputs": [0, 0],
    "axes": [0],
    "keepdims": 0,
    "noop_with_empty_axes": 1,
    "fill_mode": "LOWEST",
    "axis": 0,
    "reduction": "max",
}


@each_operator
def test_only_the_attributes_of_the_version(operator: mo.Operator) -> None:
    for attribute in (*VALUES, "no_such_attribute", "out_", "check_ids", "num_segments"):
        inputs = inputs_of(operator, some(FLOAT32))
        attributes = OPTIONS.get(operator.name, {}) | {attribute: VALUES.get(attribute, 1)}
        if attribute in operator.spec.attributes:
            operator(*inputs, **attributes)
            continue
        with pytest.raises(
            AttributeValueError, match=rf"^{operator.spec.name} has no attribute '{attribute}'"
        ) as caught:
            operator(*inputs, **attributes)
        assert caught.value.clause in {"", *(clause.id for clause in operator.clauses)}


# -------------------------------------------------------------------------------------------------------- Max


@each_max
def test_max_without_inputs(operator: mo.Operator) -> None:
    short = "L" if operator.standard.startswith("SONNX") else "inputs"
    text = assert_refused(operator, short, InputCountError, cast(Callable[[], object], operator))
    assert "inputs, got 0" in text
    assert "1 to 2147483647" in text


@each_max
@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_max_takes_one_input_and_many(operator: mo.Operator, count: int) -> None:
    inputs = [some(FLOAT32, seed=seed) for seed in range(count)]
    assert_same_bits(operator(*inputs), fast_maximum(*inputs))


@each_max
@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 3), ()), ((1, 3), (2, 1)), ((3,), (1,)), ((1,), ())], ids=str)
def test_max_broadcasts_from_version_8_on(operator: mo.Operator, shapes: tuple[tuple[int, ...], ...]) -> None:
    inputs = [some(FLOAT32, shape, seed) for seed, shape in enumerate(shapes)]
    if operator.standard == "ONNX" and (operator.version or 0) < 8:
        text = assert_refused(operator, "shape", ShapeError, lambda: operator(*inputs))
        assert f"input 1 has shape {shapes[1]}" in text
        assert str(shapes[0]) in text
    else:
        assert_same_bits(operator(*inputs), fast_maximum(*inputs))


@each_max
@pytest.mark.parametrize("shapes", [((2, 3), (2,)), ((4,), (3,)), ((2, 1), (3, 2), (4, 1)), ((0,), (2,))], ids=str)
def test_max_of_shapes_that_do_not_go_together(operator: mo.Operator, shapes: tuple[tuple[int, ...], ...]) -> None:
    short = "C1" if operator.standard.startswith("SONNX") else "shape"
    inputs = [some(FLOAT32, shape) for shape in shapes]
    text = assert_refused(operator, short, ShapeError, lambda: operator(*inputs))
    assert any(f"input {number} has shape {shape}" in text for number, shape in enumerate(shapes))


@each_max
@pytest.mark.parametrize(
    "shapes",
    [((0,), (1,)), ((1,), (0,)), ((2, 0), (2, 1)), ((0,), ()), ((1,), (0,), (0,)), ((0,), (0,), (1,))],
    ids=str,
)
def test_max_of_a_zero_size_axis_against_one_of_size_1(
    operator: mo.Operator, shapes: tuple[tuple[int, ...], ...]
) -> None:
    inputs = [some(FLOAT32, shape) for shape in shapes]
    if operator.standard.startswith("SONNX"):
        text = assert_refused(operator, "zero-size", ShapeError, lambda: operator(*inputs))
        assert "size 0" in text
    elif (operator.version or 0) < 8:
        assert_refused(operator, "shape", ShapeError, lambda: operator(*inputs))
    else:
        assert_same_bits(operator(*inputs), fast_maximum(*inputs))


@each_max
def test_max_of_two_types(operator: mo.Operator) -> None:
    inputs = (np.zeros(2, np.float32), np.zeros(2, np.float32), np.zeros(2, np.float64))
    text = assert_refused(operator, "T", DTypeError, lambda: operator(*inputs))
    assert "input 2 is float64, but input 0 is float32" in text


def test_max_1_ignores_consumed_inputs() -> None:
    data = some(FLOAT32)
    values: list[Any] = [[0], [0, 1, 2], [], None, "anything"]
    for value in values:
        assert_same_bits(mo.operator("ONNX", "Max", 1)(data, consumed_inputs=value), fast_maximum(data))


# -------------------------------------------------------------------------------------------------- ReduceMax


def with_axes(operator: mo.Operator, data: Array, axes: list[int], **attributes: Any) -> Array:
    """Call ReduceMax with axes in the form of the version: an attribute or an input."""
    if operator.spec.axes_input:
        maxima: Array = operator(data, np.array(axes, np.int64), **attributes)
    else:
        maxima = operator(data, axes=axes, **attributes)
    return maxima


@each_reduce_max
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[], [0], [1], [0, 1], [1, 0]], ids=str)
def test_reduce_max_with_axes(operator: mo.Operator, axes: list[int], keepdims: int) -> None:
    data = some(INT32)
    expected = fast_reduce_max(data, tuple(axes), bool(keepdims))
    assert_same_bits(with_axes(operator, data, axes, keepdims=keepdims), expected)


@each_reduce_max
def test_reduce_max_keeps_dimensions_by_default(operator: mo.Operator) -> None:
    assert operator(some(INT32)).shape == (1, 1)
    assert with_axes(operator, some(INT32), [1]).shape == (2, 1)


@each_reduce_max
@pytest.mark.parametrize("axes", [[-1], [-2], [0, -1]], ids=str)
def test_reduce_max_with_negative_axes(operator: mo.Operator, axes: list[int]) -> None:
    data = some(INT32)
    if operator.version == 1:
        text = assert_refused(operator, "axes.range", AxesError, lambda: with_axes(operator, data, axes))
        assert "axes must be between 0 and 1" in text
    else:
        expected = fast_reduce_max(data, tuple(axis % 2 for axis in axes))
        assert_same_bits(with_axes(operator, data, axes), expected)


@each_reduce_max
@pytest.mark.parametrize("axes", [[2], [-3], [0, 5], [2**40], [-(2**62)]], ids=str)
def test_reduce_max_with_axes_out_of_range(operator: mo.Operator, axes: list[int]) -> None:
    text = assert_refused(operator, "axes.range", AxesError, lambda: with_axes(operator, some(INT32), axes))
    assert f"for data of rank 2, got {axes[-1]}" in text


@each_reduce_max
@pytest.mark.parametrize("axes", [[0], [-1], [1]], ids=str)
def test_reduce_max_of_rank_0_has_no_axes(operator: mo.Operator, axes: list[int]) -> None:
    text = assert_refused(operator, "axes.range", AxesError, lambda: with_axes(operator, some(INT32, ()), axes))
    assert "rank 0" in text
    assert with_axes(operator, some(INT32, ()), []).shape == ()


@each_reduce_max
@pytest.mark.parametrize("axes", [[0, 0], [1, 0, 1], [1, -1]], ids=str)
def test_reduce_max_with_an_axis_twice(operator: mo.Operator, axes: list[int]) -> None:
    short = "axes.range" if operator.version == 1 and -1 in axes else "axes.unique"
    assert_refused(operator, short, AxesError, lambda: with_axes(operator, some(INT32), axes))


@each_reduce_max
def test_reduce_max_input_counts(operator: mo.Operator) -> None:
    data = some(INT32)
    most = 2 if (operator.version or 0) >= 18 else 1
    too_many = (data, np.array([0]), data)[: most + 1]
    for inputs in ((), too_many):
        text = assert_refused(operator, "inputs", InputCountError, partial(operator, *inputs))
        assert f", got {len(inputs)}" in text


@pytest.mark.parametrize("operator", [each for each in named("ReduceMax") if each.spec.axes_input], ids=name_of)
@pytest.mark.parametrize(
    "axes",
    [np.array([0], np.int32), np.array([[0]]), np.array(0), np.array([0.0]), np.array([False]), [0.5], ["0"], [True]],
    ids=repr,
)
def test_reduce_max_axes_are_a_list_of_int64(operator: mo.Operator, axes: Any) -> None:
    assert_refused(operator, "axes", AxesError, lambda: operator(some(INT32), axes))


@each_reduce_max
@pytest.mark.parametrize("value", [2, -1, "1", None, 0.0, np.array([1])], ids=repr)
def test_reduce_max_flags_are_0_or_1(operator: mo.Operator, value: Any) -> None:
    text = assert_refused(operator, "keepdims", AttributeValueError, lambda: operator(some(INT32), keepdims=value))
    assert "keepdims must be True, False, 1 or 0" in text
    if "noop_with_empty_axes" in operator.spec.attributes:
        assert_refused(
            operator,
            "noop_with_empty_axes",
            AttributeValueError,
            lambda: operator(some(INT32), noop_with_empty_axes=value),
        )


@pytest.mark.parametrize("version", [18, 20])
def test_reduce_max_noop_with_empty_axes(version: int) -> None:
    operator, data = mo.operator("ONNX", "ReduceMax", version), some(FLOAT32)
    for inputs in ((data,), (data, None), (data, np.array([], np.int64))):
        assert_same_bits(operator(*inputs, noop_with_empty_axes=1), data)
        assert_same_bits(operator(*inputs, noop_with_empty_axes=0), fast_reduce_max(data))
    result = operator(data, np.array([1]), noop_with_empty_axes=1)
    assert_same_bits(result, fast_reduce_max(data, (1,)))


# ------------------------------------------------------------------------------------------------- SegmentMax


@each_segment_max
def test_segment_max_inputs_and_attribute(operator: mo.Operator) -> None:
    data, ids = some(FLOAT32, (4, 2)), np.array([0, 0, 2, 2], np.int32)
    for mode in ("ZERO", "LOWEST", "zero", "lowest"):
        assert_same_bits(operator(data, ids, fill_mode=mode), fast_segment_max(data, ids, 3, mode.upper()))
        result = operator(data, ids, np.array(5, np.int32), fill_mode=mode)
        assert_same_bits(result, fast_segment_max(data, ids, 5, mode.upper()))


@each_segment_max
def test_segment_max_input_counts(operator: mo.Operator) -> None:
    data, ids = some(FLOAT32), np.array([0, 1])
    for inputs in ((), (data,), (data, ids, 2, 2)):
        assert_refused(operator, "inputs", InputCountError, partial(operator, *inputs, fill_mode="ZERO"))


# -------------------------------------------------------------------------------------- results and `out`


@each_operator
def test_out_is_filled_and_returned(operator: mo.Operator) -> None:
    data = some(FLOAT32, (4, 3))
    expected = call(operator, data)
    out = np.empty(expected.shape, np.float32)
    result = call(operator, data, out=out)
    assert_same_bits(out, expected)
    assert result is out


@each_max
def test_max_of_an_out_of_another_shape(operator: mo.Operator) -> None:
    """Test an `out` of another shape, for which SONNX has its own clause."""
    short = {"SONNX": "C2", "SONNX draft": "C1"}.get(operator.standard, "shape")
    assert_refused(operator, short, OutputError, lambda: operator(some(FLOAT32), out=np.empty((2, 1), np.float32)))


def test_out_may_be_a_memory_map(tmp_path: Any) -> None:
    out = np.memmap(tmp_path / "out", np.float32, "w+", shape=(2, 3))
    data = np.memmap(tmp_path / "in", np.float32, "w+", shape=(2, 3))
    data[...] = some(FLOAT32)
    result = mo.maximum(data, out=out)
    assert_same_bits(np.asarray(out), fast_maximum(some(FLOAT32)))
    assert result is out
    assert type(mo.maximum(data, data)) is np.ndarray


@each_plain_function
def test_a_plain_function_is_listed_with_its_options(operator: mo.Operator) -> None:
    function = getattr(mo, operator.name)
    assert operator.types == dtypes.ALL
    options = set(inspect.signature(function).parameters) - {"arrays", "data", "segment_ids", "num_segments", "out"}
    assert set(operator.spec.attributes) == options
    for option in options - {"axis"}:  # another name of axes
        assert operator.spec.has(option)
    assert all(clause.id.startswith(f"maxops.{operator.name}.") for clause in operator.clauses)
    assert mo.operator("maxops", operator.name) == operator
    data, ids = some(FLOAT32), np.array([0, 0])
    inputs = (data, ids) if operator.name == "segment_max" else (data,)
    more = {"initial": 2} if operator.name == "segment_max" else {"ties": "even"}
    assert_same_bits(operator(*inputs, **more), function(*inputs, **more))
    with pytest.raises(AttributeValueError, match=f"{operator.name} has no attribute 'dtype'"):
        operator(*inputs, dtype=np.float32)  # type: ignore[call-overload]


def test_a_plain_function_takes_the_same_by_position_when_listed() -> None:
    """Test that `operator` returns plain functions that accept the same positional arguments, including `out`."""
    data = some(FLOAT32)
    by_position = (data, 0, False, False, None)
    assert_same_bits(mo.operator("maxops", "reduce_max")(*by_position), mo.reduce_max(*by_position))


def test_engines_speak_of_clauses_that_plain_functions_have() -> None:
    """Test that all clauses in engines exist in plain functions, because an unknown clause would raise KeyError."""
    shorts = {short for row in spec.PLAIN for short, _ in row.rules}
    package = Path(mo.__file__).parent
    asked = [
        (path.name, literal)
        for path in (package / "engines").rglob("*.py")
        for literal in re.findall(r"\.clause\(\s*\"([^\"]+)\"", path.read_text(encoding="utf-8"))
    ]
    assert len(asked) > 30
    assert [each for each in asked if each[1] not in shorts] == []


def test_plain_functions_take_every_type() -> None:
    for dtype in dtypes.ALL:
        data = some(dtype, (3, 2))
        assert mo.maximum(data, data).dtype == dtype.numpy
        assert mo.reduce_max(data, (0,)).dtype == dtype.numpy
        assert mo.segment_max(data, np.array([0, 0, 1]), fill_mode="ZERO").dtype == dtype.numpy


def test_an_operator_does_not_change_and_is_no_method() -> None:
    max_13 = mo.operator("ONNX", "Max", 13)

    class Layer:
        combine = max_13

    data = some(FLOAT32)
    assert_same_bits(Layer().combine(data, data), data)
    with pytest.raises(AttributeError, match="is immutable"):
        max_13.spec = mo.operator("ONNX", "Max", 8).spec
    with pytest.raises(AttributeError, match="is immutable"):
        del max_13.spec
    assert pickle.loads(pickle.dumps(max_13)) == max_13 == copy.copy(max_13)
    assert {max_13: 1}[mo.operator("ONNX", "Max", 13)] == 1


def test_a_class_of_operators_may_have_a_call_of_its_own() -> None:
    class Counted(mo.Operator):
        def __call__(self, *args: object, **options: object) -> Any:
            return np.array(len(args))

    class Same(mo.Operator):
        pass

    spec = mo.operator("ONNX", "Max", 13).spec
    data = some(FLOAT32)
    assert Counted(spec)(data, data) == 2
    assert_same_bits(Same(spec)(data, data), data)
    assert type(copy.copy(Same(spec))) is Same


@each_plain_function
def test_a_plain_operator_takes_inputs_by_position_alone(operator: mo.Operator) -> None:
    data, ids = some(FLOAT32), np.array([0, 0])
    named = {"data": data} | ({"segment_ids": ids, "fill_mode": "ZERO"} if operator.name == "segment_max" else {})
    with pytest.raises(AttributeValueError, match="has no attribute 'data'"):
        operator(**named)  # type: ignore[call-overload]
