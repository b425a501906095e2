"""NumPy scalars, and Python scalars with arrays: floats are rounded to nearest, all other numbers are exact."""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import FLOATS, assert_same_bits, each_float, each_type, of_words, pool, spread, words
from maxops import reference, spec
from maxops.dtypes import ALL, BFLOAT16, FLOAT16, FLOAT32, FLOAT64, DType
from maxops.errors import DTypeError
from maxops.plan.values import scalar_as

pytestmark = pytest.mark.usefixtures("isa")


@each_type
def test_numpy_scalars_are_arrays_of_rank_0(dtype: DType) -> None:
    array = spread(dtype, 5)
    for scalar in pool(dtype):
        assert isinstance(scalar, np.generic)
        assert_same_bits(mo.maximum(array, scalar), reference.maximum(array, np.asarray(scalar)))
        assert_same_bits(mo.maximum(scalar, array), reference.maximum(array, np.asarray(scalar)))
        assert_same_bits(mo.maximum(scalar), reference.maximum(np.asarray(scalar)))
        assert_same_bits(mo.reduce_max(scalar), reference.maximum(np.asarray(scalar)))


# The two conversions from a Python float to the array's type: by the core, and by the planner.
LOWEST = {dtype: of_words(dtype, [dtype.lowest_bits]) for dtype in FLOATS}
WAYS: dict[str, Callable[[DType, float], int]] = {
    "core": lambda dtype, number: int(words(mo.maximum(LOWEST[dtype], number))[0]),
    "planner": lambda dtype, number: int(words(scalar_as(spec.MAXIMUM, "x", number, dtype, "data").reshape(1))[0]),
}
each_way = pytest.mark.parametrize("way", WAYS)


@each_way
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_floats_beside_two_bytes_are_rounded_to_nearest(dtype: DType, way: str) -> None:
    """Test each number of a 16-bit type, each midpoint between two numbers, and the floats next to these."""
    bits_of = WAYS[way]
    finite = np.arange(dtype.infinity_bits, dtype=np.uint16)
    numbers = finite.view(dtype.numpy).astype(np.float64)
    step = 1 if way == "core" else 97
    for bits, number in zip(finite.tolist()[::step], numbers.tolist()[::step], strict=True):
        assert bits_of(dtype, number) == bits
        assert bits_of(dtype, -number) == bits | 1 << 15
        if number == int(number):
            assert float(mo.maximum(LOWEST[dtype], int(number))[0]) == number
    past = 2 * numbers[-1] - numbers[-2]  # the next number if the range were larger
    middles = (numbers + np.append(numbers[1:], past)) / 2
    for bits, middle in zip(finite.tolist()[:-1:step], middles.tolist()[:-1:step], strict=True):
        below, above = np.nextafter(middle, 0), np.nextafter(middle, np.inf)
        for sign in (0, 1 << 15):
            signed = 1.0 if sign == 0 else -1.0
            assert bits_of(dtype, signed * middle) == sign | bits + bits % 2
            assert bits_of(dtype, signed * float(below)) == sign | bits
            assert bits_of(dtype, signed * float(above)) == sign | bits + 1
    assert bits_of(dtype, float(np.nextafter(middles[-1], 0))) == dtype.infinity_bits - 1
    for factor in (1.0, -1.0):
        with pytest.raises(DTypeError, match=f"out of range for {dtype}"):
            bits_of(dtype, factor * float(middles[-1]))


@each_way
def test_floats_around_every_power_of_two_in_float32(way: str) -> None:
    with np.errstate(all="ignore"):
        for exponent in range(-152, 128):
            for factor in (1.0, 1 + 2**-23, 1 + 2**-24, 1 + 2**-24 + 2**-50, 2 - 2**-23, 2 - 2**-24, 1 + 3 * 2**-24):
                for number in (factor * 2.0**exponent, -factor * 2.0**exponent):
                    if np.isinf(rounded := np.float32(number)):
                        with pytest.raises(DTypeError, match="out of range for float32"):
                            WAYS[way](FLOAT32, number)
                    else:
                        assert WAYS[way](FLOAT32, number) == int(rounded.view(np.uint32))


@each_float
def test_integers_out_of_range_have_the_message_of_floats(dtype: DType) -> None:
    limit = int(float(of_words(dtype, [dtype.infinity_bits - 1])[0]))
    for sign in (1, -1):
        for value, message in (
            (limit + 1, "cannot be represented exactly"),  # would round to the limit
            (2 * limit, rf"out of range for {dtype}, .*limit {sign * float(limit)!r}".replace("+", r"\+")),
            (10**400, rf"write float\('{sign * float('inf')}'\)"),
        ):
            with pytest.raises(DTypeError, match=message):
                mo.maximum(LOWEST[dtype], sign * value)


@each_float
def test_named_standards_round_nothing(dtype: DType) -> None:
    operator, draft = mo.operator("ONNX", "Max", 13), mo.operator("SONNX draft", "Max")
    for each in (operator, draft):
        assert_same_bits(each(LOWEST[dtype], 0.5), of_words(dtype, words(mo.maximum(LOWEST[dtype], 0.5))))
        assert words(each(LOWEST[dtype], float("nan"))).tolist() == [dtype.nan_bits]
        if dtype is not FLOAT64:
            with pytest.raises(DTypeError, match="cannot be represented exactly"):
                each(LOWEST[dtype], 0.1)


@each_float
def test_numpys_error_state_changes_nothing(dtype: DType) -> None:
    array = of_words(dtype, [0])
    with np.errstate(all="raise"):
        assert words(mo.maximum(array, 1e-320)).tolist() == [0 if dtype is not FLOAT64 else 2024]
        for value in (1e300, 10**300):
            if dtype is not FLOAT64:
                with pytest.raises(DTypeError):
                    mo.maximum(array, value)
        assert_same_bits(mo.maximum(array, float("nan")), of_words(dtype, [dtype.nan_bits]))
        signalling = of_words(dtype, [dtype.infinity_bits | 1])
        assert_same_bits(mo.maximum(signalling, 1.0), of_words(dtype, [dtype.nan_bits]))
        assert_same_bits(mo.maximum(signalling[0], array), of_words(dtype, [dtype.nan_bits]))
        assert_same_bits(mo.reduce_max(signalling), of_words(dtype, [dtype.nan_bits]))


def test_the_scalar_takes_the_type_of_the_first_array_wherever_it_stands() -> None:
    result = mo.maximum(1, 2, np.array([0, 7], np.int16), 3)
    assert_same_bits(result, np.array([3, 7], np.int16))
    assert_same_bits(mo.maximum(0.5, np.float32(0.25)), np.array(0.5, np.float32))


@pytest.mark.parametrize("inputs", [(1,), (1, 2.0), (True, False), (float("nan"),)], ids=str)
def test_only_python_scalars_have_no_type(inputs: tuple[float, ...]) -> None:
    with pytest.raises(DTypeError, match=r"maximum got only Python scalars.*\[maxops.maximum.scalars\]"):
        mo.maximum(*inputs)


@pytest.mark.parametrize("scalar", [2.0, 2, True, float("nan")], ids=str)
def test_sonnx_requires_explicit_types(scalar: float) -> None:
    sonnx = mo.operator("SONNX", "Max")
    with pytest.raises(DTypeError, match=r"Max input 1 is a Python \w+, .*\[SONNX\.Max\.GR2\]"):
        sonnx(np.ones(1, np.float32), scalar)
    assert_same_bits(sonnx(np.array([1, 5], np.float32), np.float32(2)), np.array([2, 5], np.float32))


@pytest.mark.parametrize("of_numpy", [False, True])
def test_the_draft_of_sonnx_has_no_general_restrictions(of_numpy: bool) -> None:
    draft = mo.operator("SONNX draft", "Max")
    assert not [clause.id for clause in draft.clauses if ".GR" in clause.id]
    data = np.array([1, 5], np.float32)
    result = draft(data, np.float32(2) if of_numpy else 2.0)
    assert_same_bits(result, np.array([2, 5], np.float32))
    with pytest.raises(DTypeError, match=r"\[SONNX-draft\.Max\.T\]"):
        draft(data, 0.1)


def test_scalars_out_and_rank_0() -> None:
    out = np.zeros((), np.int32)
    mo.maximum(np.int32(3), 5, out=out)
    assert_same_bits(out, np.array(5, np.int32))
    for result in (mo.maximum(np.int32(3), 5), mo.reduce_max(np.int32(3)), mo.reduce_max(np.zeros(3), keepdims=False)):
        assert type(result) is np.ndarray
        assert result.shape == ()


# ------------------------------------------------------------------------------------------------ incompatible kinds

KINDS: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    int: ("int", "uint", "float", "real"),
    float: ("float",),
    Fraction: ("real",),
}
VALUES: list[Any] = [True, False, 0, 1, -1, 0.0, 1.0, -0.0, 2.5, np.inf, np.nan, Fraction(1), Fraction(1, 3)]
ENTRIES: dict[str, Callable[[Any, Any], Any]] = {
    "input": mo.maximum,
    "first input": lambda array, value: mo.maximum(value, array),
    "reduce_max initial": lambda array, value: mo.reduce_max(array, initial=value),
    "segment_max initial": lambda array, value: mo.segment_max(array, np.zeros(2, int), initial=value),
    "fill_value": lambda array, value: mo.segment_max(array, np.zeros(2, int), fill_value=value),
    "operator": mo.operator("ONNX", "Max", 13),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_kind_that_does_not_go_with_the_array_is_named(value: Any, entry: str) -> None:
    for dtype in ALL:
        if entry == "operator" and dtype not in mo.operator("ONNX", "Max", 13).types:
            continue  # an error of the type
        array = np.array([0, 0], dtype.numpy)
        try:
            ENTRIES[entry](array, value)
        except DTypeError as error:
            text = str(error)
        else:
            text = ""
        if dtype.kind not in KINDS[type(value)]:
            assert f"is the Python {type(value).__name__} {value!r}, but " in text
            assert f" is {dtype}; a Python {type(value).__name__} can be combined only with " in text
            if match := re.search(r"write (\w[\w.-]*) \[", text):  # the suggestion in the error works
                ENTRIES[entry](array, eval(match[1], {}))
        elif text:
            assert "cannot be represented exactly" in text
            assert entry == "operator" or type(value) is not float
