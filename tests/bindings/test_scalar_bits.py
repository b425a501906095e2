"""The bits of scalar arguments: each kind of value and dtype, in each form, for each function that accepts scalars.

The result has the bits of a scalar that is the maximum or the value of an empty segment, except that NaN becomes the
canonical quiet NaN and True becomes 1.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops
from helpers.bits import Array, assert_same_bits, at_offset, each_type, of_words, strided, swapped, words
from helpers.engine_adapter import Adapter
from helpers.engine_adapters import ADAPTERS
from maxops import _native
from maxops.dtypes import BFLOAT16, BOOL, FLOAT32, FLOAT64, DType


def kinds_of_nans(dtype: DType) -> list[int]:
    """Return NaNs of both signs, quiet and signaling, with the lowest, the highest, all and no bits of the payload."""
    infinity, quiet = dtype.infinity_bits, 1 << dtype.mantissa_bits - 1
    payloads = [quiet, quiet | 1, quiet | quiet >> 1, 2 * quiet - 1, 1, quiet >> 1, quiet - 1]
    return [sign | infinity | payload for sign in (0, 1 << dtype.bits - 1) for payload in payloads]


def kinds_of_values(dtype: DType) -> list[int]:
    """Return the bits of each kind of value: zeros, subnormals, normal numbers, infinities, NaNs and integer limits."""
    sign = 1 << dtype.bits - 1
    if dtype is BOOL:
        return [0, 1]
    if dtype.kind == "float":
        smallest = 1 << dtype.mantissa_bits
        magnitudes = [
            0, 1, smallest - 1, smallest, 0x3A << dtype.bits - 8, dtype.infinity_bits - 1, dtype.infinity_bits,
        ]  # fmt: skip
        return [each | place for each in magnitudes for place in (0, sign)] + kinds_of_nans(dtype)
    half = 1 << dtype.bits // 2
    return [0, 1, sign - 1, sign, sign + 1, 2 * sign - 1, 2 * sign - 2, half - 1, half, half >> 1, 2 * sign - half]


def result_of(dtype: DType, word: int) -> int:
    """Return the bits of the maximum of this value alone."""
    is_nan = dtype.kind == "float" and word & (1 << dtype.bits - 1) - 1 > dtype.infinity_bits
    return dtype.nan_bits if is_nan else word


def forms_of(dtype: DType, word: int) -> Iterator[Any]:
    """Yield a NumPy scalar, arrays of rank 0 in each layout, and Python numbers that represent the value."""
    array = of_words(dtype, [word])[0:1].reshape(())
    yield array[()]
    yield array
    yield swapped(array)
    yield at_offset(array, 1)
    yield of_words(dtype, [0, word, 0])[::-1][1:2].reshape(())
    with np.errstate(invalid="ignore"):  # for signaling NaNs
        number = array.astype(np.float64).item()
    if dtype.kind == "float":
        yield number
        if word == dtype.nan_bits:  # a Python float keeps its payload
            yield from of_words(FLOAT64, kinds_of_nans(FLOAT64)).tolist()
    else:
        yield array.item()
    if dtype is BOOL and word:
        yield np.array([7], np.uint8).view(bool).reshape(())  # any nonzero byte is True
    if dtype.kind == "float" and number.is_integer() and word != 1 << dtype.bits - 1:  # -0 is not an integer
        yield int(number)


ROWS, SEGMENTS = 6, 5
SORTED, UNSORTED = np.array([0, 0, 2, 2, 2, 2]), np.array([2, 0, 2, 2, 0, 2])
OFFSETS, EMPTY = np.array([0, 2, 2, 6, 6, 6]), [1, 3, 4]
Function = Callable[[Array, Any], Any]
mo: Any = maxops  # typed as Any, because type checkers cannot follow the arguments


EVERYTHING: dict[str, Any] = {"return_indices": True, "return_empty": True}
ROUTES: dict[str, dict[str, Any]] = {
    "sorted": {"segment_ids": SORTED},
    "sorted, not checked": {"segment_ids": SORTED, "check_ids": False},
    "sorted, dropped": {"segment_ids": SORTED, "out_of_range": "drop"},
    "int32": {"segment_ids": SORTED.astype(np.int32)},
    "int8": {"segment_ids": SORTED.astype(np.int8)},
    "a list": {"segment_ids": SORTED.tolist()},
    "strided": {"segment_ids": np.repeat(SORTED, 2)[::2]},
    "unsorted": {"segment_ids": UNSORTED, "sorted": False},
    "unsorted, in order": {"segment_ids": SORTED, "sorted": False},
    "offsets": {"offsets": OFFSETS},
    "offsets, int32": {"offsets": OFFSETS.astype(np.int32)},
    "sorted, everything": {"segment_ids": SORTED, **EVERYTHING},
    "unsorted, everything": {"segment_ids": UNSORTED, "sorted": False, **EVERYTHING},
    "offsets, everything": {"offsets": OFFSETS, **EVERYTHING},
}
# Layouts of the data: rows of one element, of several, of none, and rows that are far apart.
LAID: dict[str, Callable[[Array], Array]] = {
    "column": lambda rows: rows[:, 0].copy(),
    "rows": lambda rows: rows,
    "columns": lambda rows: rows[:, ::2],
}


def lowest(dtype: DType, shape: tuple[int, ...]) -> Array:
    """Return an array of the lowest value."""
    return of_words(dtype, np.full(shape, dtype.lowest_bits, dtype.word))


def _first(result: Any) -> Array:
    """Return the values of a result that may include indices."""
    values: Array = result[0] if isinstance(result, tuple) else result
    return values


@each_type
def test_inputs_of_max(dtype: DType) -> None:
    """Test scalars before, after and between arrays of rank 0 to 2, with and without `out`."""
    arrays = [lowest(dtype, ()), lowest(dtype, (5,)), lowest(dtype, (2, 6))[:, ::2], lowest(dtype, (1, 40))]
    functions: list[Function] = [
        mo.maximum,
        lambda array, scalar: mo.maximum(scalar, array),
        lambda array, scalar: mo.maximum(array, scalar, scalar, array),
        lambda array, scalar: mo.maximum(*[array] * 9, scalar),
        lambda array, scalar: mo.maximum(array, scalar, out=np.empty_like(array)),
        mo.maximum.__wrapped__,
    ]
    if dtype is not BOOL:
        functions.append(mo.operator("ONNX", "Max", 13))
        functions.append(mo.operator("SONNX draft", "Max"))
    for word in kinds_of_values(dtype):
        for scalar, array, function in product(forms_of(dtype, word), arrays, functions):
            expected = of_words(dtype, np.full(array.shape, result_of(dtype, word), dtype.word))
            assert_same_bits(function(array, scalar), expected)


@each_type
def test_initial_of_reduce_max(dtype: DType) -> None:
    """Test `initial` with few, many and no elements, strided data and rank 0, and by the planner without the core."""
    arrays: list[tuple[Array, Any]] = [
        (lowest(dtype, (2, 3)), (1,)),
        (lowest(dtype, (2, 0)), (1,)),
        (lowest(dtype, (2, 8))[:, ::2], (0,)),
    ]
    arrays += [(lowest(dtype, ()), None), (np.broadcast_to(lowest(dtype, (1,)), (3, 20_000)), (1,))]
    for word in kinds_of_values(dtype):
        for scalar, (array, axes) in product(forms_of(dtype, word), arrays):
            shape = np.empty(array.shape, np.bool).max(axes, initial=False).shape
            expected = of_words(dtype, np.full(shape, result_of(dtype, word), dtype.word))
            for result in (
                mo.reduce_max(array, axes, keepdims=False, initial=scalar),
                mo.reduce_max(array, axes, keepdims=False, initial=scalar, return_indices=True),
                mo.reduce_max(array, axes, keepdims=False, initial=scalar, out=np.empty_like(expected)),
                mo.reduce_max(array, axes, keepdims=False, initial=scalar, out=swapped(expected)),
                mo.reduce_max(array, axes, keepdims=False, initial=scalar, out=at_offset(expected, 1)),
                mo.reduce_max(array, axes, keepdims=False, initial=scalar, out=strided(expected)),
                mo.reduce_max.__wrapped__(array, axes, keepdims=False, initial=scalar),
            ):
                assert_same_bits(_first(result), expected)


@pytest.mark.parametrize("name", ["fill_value", "initial"])
@each_type
def test_fill_value_and_initial_of_segment_max(dtype: DType, name: str) -> None:
    """Test each code path and layout, with and without `out`, and by the planner without the core."""
    whole = lowest(dtype, (ROWS, 6))
    for word in kinds_of_values(dtype):
        for scalar, (route, options), (layout, lay) in product(forms_of(dtype, word), ROUTES.items(), LAID.items()):
            if layout != "column" and type(scalar) is not dtype.numpy.type:
                continue
            data = lay(whole)
            held = np.full((SEGMENTS, *data.shape[1:]), dtype.lowest_bits, dtype.word)
            held[EMPTY if name == "fill_value" else slice(None)] = result_of(dtype, word)
            expected = of_words(dtype, held)
            given: dict[str, Any] = {**options, name: scalar, "num_segments": SEGMENTS}
            results = [mo.segment_max(data, **given)]
            if layout == "rows":
                results.append(mo.segment_max(data, **given, out=np.empty_like(expected)))
                results.append(mo.segment_max.__wrapped__(data, **given))
            for result in results:
                try:
                    assert_same_bits(_first(result), expected)
                except AssertionError as error:
                    error.add_note(f"{name}={scalar!r}, {route}, {layout}")
                    raise


FRAMEWORKS = [adapter for adapter in ADAPTERS if adapter.name != "numpy"]


@pytest.mark.parametrize("adapter", FRAMEWORKS, ids=lambda adapter: adapter.name)
def test_nans_by_every_engine(adapter: Adapter) -> None:
    """Test negative NaNs, quiet and signaling, and -0 as NumPy scalars, on every engine."""
    adapter.need()
    ids = np.array([0, 0, 2])
    with adapter.around():
        for dtype in (FLOAT32, BFLOAT16):
            if dtype not in adapter.types:
                continue
            sign = 1 << dtype.bits - 1
            for word in (sign | dtype.infinity_bits | 1, sign | dtype.nan_bits | 1, sign):
                array, scalar = lowest(dtype, (3,)), of_words(dtype, [word])[0]
                one = result_of(dtype, word)
                results = [
                    (mo.maximum(*adapter.given((array,)), scalar), [one] * 3),
                    (mo.reduce_max(*adapter.given((array,)), keepdims=False, initial=scalar), one),
                ]
                for name, held in (("fill_value", [dtype.lowest_bits, one] * 2), ("initial", [one] * 4)):
                    arrays = adapter.given({"data": array, "segment_ids": ids})
                    options: dict[str, Any] = {name: scalar, "num_segments": 4}
                    results.append((mo.segment_max(**arrays, **options), held))
                for result, expected in results:
                    assert words(adapter.take(result)).tolist() == expected, (dtype, hex(word))


@pytest.mark.parametrize("adapter", FRAMEWORKS, ids=lambda adapter: adapter.name)
def test_a_true_of_another_byte_by_every_engine(adapter: Adapter) -> None:
    adapter.need()
    scalar, ids = np.array([7], np.uint8).view(bool).reshape(()), np.array([0, 0, 2])
    with adapter.around():
        for name, held in (("fill_value", [0, 1, 0, 1]), ("initial", [1] * 4)):
            arrays = adapter.given({"data": np.zeros(3, bool), "segment_ids": ids})
            options: dict[str, Any] = {name: scalar, "num_segments": 4}
            assert words(adapter.take(mo.segment_max(**arrays, **options))).tolist() == held


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="where an object's bytes lie")
@pytest.mark.parametrize("kind", ["u1", "u2", "u4", "i1", "i2", "i4"])
def test_what_lies_behind_a_scalar_is_not_read(kind: str) -> None:
    count = np.dtype(kind).type(3)
    own = object.__basicsize__ + count.itemsize
    ctypes.memset(id(count) + own, 0xFF, type(count).__basicsize__ - own)
    found = _native.segment_max(np.ones(2), np.array([0, 1]), count, fill_mode="ZERO")
    assert found is not None
    assert found.tolist() == [1, 1, 0]
    assert _native.reduce_max(np.ones((2, 1, 1, 1)), count, False).shape == (2, 1, 1)
    x = np.array([1], kind)
    assert _native.maximum(x, count).tolist() == [3]
