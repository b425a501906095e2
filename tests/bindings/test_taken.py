"""Calls that the core handles itself: all clearly valid calls, in each spelling, with the same result.

The planner would return the same results, but more slowly, so the tests call `_native` directly. It returns None for
calls that it does not handle.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf, nan, nextafter
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from maxops import _native, spec
from maxops.dtypes import ALL, REAL, DType
from maxops.errors import DTypeError
from maxops.plan.values import scalar_as

core: Any = _native
TYPES = [row for row in ALL if row is not REAL]
INTEGERS = [np.dtype(kind + str(size)) for kind in "iu" for size in (1, 2, 4, 8)]
X = np.array([[1, 5, 2], [4, 3, 6]], np.float32)
IDS = np.array([0, 2])


def reduce_max(*args: Any, **options: Any) -> Any:
    return core.reduce_max(X, *args, **options)


def segment_max(*args: Any, **options: Any) -> Any:
    return core.segment_max(X, *(args or (IDS,)), **({"fill_mode": "ZERO"} | options))


def same(found: Any, expected: Any) -> None:
    """Check that the core handled both calls, and that the results are equal."""
    assert found is not None
    found, expected = (each if type(each) is tuple else (each,) for each in (found, expected))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert_same_bits(one, other)


# -------------------------------------------------------------------------------------------------- numbers


def _floats() -> Iterator[float]:
    """Yield floats around the limits of each format."""
    for kind in (np.dtype(ml_dtypes.bfloat16), np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)):
        info = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
        above_half = 1 + float(info.eps) * 0.625  # the bits that rounding drops are 101
        limits = info.max, info.tiny, info.smallest_subnormal, 1 + info.eps, info.tiny - info.smallest_subnormal
        for limit in (*limits, above_half):
            value = float(limit)
            yield from (value, value / 2, value * 1.5, value * 2, nextafter(value, 0), nextafter(value, inf))
    yield from (0.0, 1.0, 2.5, 1 / 3, inf, nan)


def _integers() -> Iterator[int]:
    for bits in (0, 1, 7, 8, 11, 15, 16, 24, 31, 32, 53, 63, 64, 70):
        yield from (2**bits - 1, 2**bits, 2**bits + 1)
    yield from (65504, 65505, 65536 + 2**9, 2**63 - 512, 2**63 - 1024)


def _stored(value: Any, dtype: DType) -> Any:
    """Return a number as the planner stores it, or None if the planner rejects it or is the only one to handle it."""
    if type(value) is int and dtype.kind == "float" and not -(2**63) <= value < 2**63:
        return None
    try:
        return scalar_as(spec.MAXIMUM, "input 1", value, dtype, "input 0")
    except DTypeError:
        return None


NUMBERS = [sign * value for value in [*_floats(), *_integers()] for sign in (1, -1)] + [True, False]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda row: row.name)
def test_numbers_of_python(dtype: DType) -> None:
    """Test each parameter with Python numbers: the core stores the same value as the planner, or returns None."""
    data = np.ones((1, 1), dtype.numpy)
    for value in NUMBERS:
        calls: list[Callable[[], Any]] = [
            lambda: core.maximum(data[:0], value),  # noqa: B023
            lambda: core.maximum(value, data[:0], data[:0]),  # noqa: B023
            lambda: core.reduce_max(data[:0], initial=value),  # noqa: B023
            lambda: core.segment_max(data[:0], IDS[:0], 1, initial=value),  # noqa: B023
            lambda: core.segment_max(data[:0], IDS[:0], 1, fill_value=value),  # noqa: B023
        ]
        results = [call() for call in calls]
        if (stored := _stored(value, dtype)) is None:
            assert results == [None] * 5, value
            continue
        for result in results[2:]:
            assert result is not None, value
            assert result.reshape(()).tobytes() == stored.tobytes(), value
        assert results[0] is not None
        assert results[1] is not None


def test_numbers_of_another_kind() -> None:
    value: Any
    for value in (np.float64(2), "2", None, 2j, np.array([2.0], np.float32), np.array(2.0), [2.0], Fraction(2)):
        assert (value is None) == (reduce_max(initial=value) is not None)
        assert segment_max(fill_mode=None, fill_value=value) is None
    for value in (np.float32(2), np.array(2, np.float32), np.array(2, ">f4")):
        same(reduce_max(initial=value), reduce_max(initial=2.0))
        same(segment_max(fill_mode=None, fill_value=value), segment_max(fill_mode=None, fill_value=2.0))


# ---------------------------------------------------------------------------------------------------- flags

FLAGS = [
    *((reduce_max, name) for name in ("keepdims", "return_indices", "noop_with_empty_axes")),
    *((segment_max, name) for name in ("check_ids", "sorted", "return_indices", "return_empty")),
]


@pytest.mark.parametrize(("function", "name"), FLAGS, ids=lambda each: getattr(each, "__name__", each))
def test_flags(function: Callable[..., Any], name: str) -> None:
    # Without axes, `noop_with_empty_axes` is left to the planner.
    options = {"axes": [1]} if name == "noop_with_empty_axes" else {}
    for value in (True, False):
        expected = function(**options, **{name: value})
        same(expected, expected)
        numbers = [int(value), np.bool_(value), *(kind.type(value) for kind in INTEGERS)]
        for spelled in numbers:
            same(function(**options, **{name: spelled}), expected)
    for wrong in (2, -1, None, "1", 1.0, np.float32(1), np.array(1), np.array(True), [True], 2**64, np.int8(-1)):
        assert function(**options, **{name: wrong}) is None, wrong
    if name == "noop_with_empty_axes":
        assert reduce_max(noop_with_empty_axes=True) is None
        assert reduce_max([], noop_with_empty_axes=1) is None
        assert reduce_max(axis=[1], noop_with_empty_axes=True) is None
        same(reduce_max([], noop_with_empty_axes=0), reduce_max())


# ----------------------------------------------------------------------------------------------------- axes


@pytest.mark.parametrize("name", ["axes", "axis"])
def test_axes(name: str) -> None:
    """Test that `axes` keeps reduced axes and `axis` drops them, and that the planner gets none of these calls."""
    wrong: Any
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    is_kept = name == "axes"

    def call(axes: Any, **options: Any) -> Any:
        return core.reduce_max(data, **{name: axes}, **options)

    nothings: list[Any] = [[], (), range(0), np.array([], np.int64)]
    for nothing in nothings:
        assert (call(nothing) is None) == (not is_kept)
    for axes in ([0], [1], [2], [-1], [-3], [0, 2], [2, -3], [0, 1, 2], *([[]] if is_kept else [])):
        expected = np.max(data, axis=tuple(axes) or None, keepdims=is_kept)
        spelled: list[Any] = [axes, tuple(axes), np.array(axes, np.int64)]
        if all(axis >= 0 for axis in axes):
            spelled += [np.array(axes, kind) for kind in INTEGERS]
        spelled += [np.array(axes, np.dtype(np.int16).newbyteorder()), np.array([axes, axes], np.int64).T[:, 0]]
        spelled += [[kind.type(axis) for axis in axes] for kind in INTEGERS if kind.kind == "i"]
        if len(axes) == 1:
            spelled += [axes[0], np.int64(axes[0]), np.int8(axes[0])]
        for each in spelled:
            same(call(each), expected)
        for keepdims in (False, True):
            other = np.max(data, axis=tuple(axes) or None, keepdims=keepdims)
            same(call(axes, keepdims=keepdims), np.array(other))
    for steps in (range(3), range(2, 0, -1), range(-1, 0)):
        same(call(steps), call([*steps]))
    same(call(None), np.max(data, keepdims=True) if is_kept else np.array(23, np.int32))
    for wrong in (
        3, -4, [3], [0, 0], [0, -3], 1.0, "0", [1.0], ["0"], [True], True, [None], np.array(1), 2**70, [2**70],
    ):  # fmt: skip
        assert call(wrong) is None, wrong
    for wrong in (
        np.array([[0]]), np.array([0.0]), np.array(["0"]), np.array([True]), np.array([0], object), {0}, {0: 1},
    ):  # fmt: skip
        assert call(wrong) is None, wrong
    for size in (64, 65, 1000):
        assert call(range(size)) is None
        assert call([0] * size) is None
        assert call(np.zeros(size, np.int64)) is None
    for largest in (np.iinfo(np.uint64).max, np.iinfo(np.int64).max, np.iinfo(np.int64).min):
        assert call(np.array([largest])) is None
        assert call(np.array([largest])[0]) is None
    assert core.reduce_max(data, axes=[0], axis=[0]) is None
    assert core.reduce_max(data, axes=[0], axis=None) is None
    same(core.reduce_max(data, axes=None, axis=[0]), np.max(data, axis=0))
    for count in (sys.maxsize, 2**80):
        assert call(range(count)) is None


def test_the_axis_of_ids() -> None:
    data = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    for axis in range(-3, 3):
        ids = np.arange(data.shape[axis])
        for spelled in (axis, np.int8(axis), np.int64(axis)):
            same(core.segment_max(data, ids, axis=spelled, fill_mode="ZERO"), data)
    for wrong in (3, -4, None, 0.0, "0", [0], True, np.array(0), 2**64):
        assert core.segment_max(data, np.arange(2), axis=wrong, fill_mode="ZERO") is None, wrong
    assert core.segment_max(np.array(1), np.arange(1), fill_mode="ZERO") is None


# ------------------------------------------------------------------------------------------- ids and offsets


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_ids_and_offsets(kind: np.dtype[Any]) -> None:
    offsets = np.array([0, 1, 1, 2])
    wide = np.zeros(4, kind)
    for order in ("=", "S"):
        swapped = kind.newbyteorder(order)
        wide = np.zeros(4, swapped)
        wide[::2] = IDS
        for ids in (IDS.astype(swapped), wide[::2]):
            same(segment_max(ids), segment_max())
            same(segment_max(ids, 5), segment_max(IDS, 5))
            same(segment_max(ids, sorted=False), segment_max())
            same(segment_max(ids, out_of_range="error"), segment_max())
            if kind != np.uint64:
                same(segment_max(ids, out_of_range="drop"), segment_max())
            assert (segment_max(ids, check_ids=False) is None) == (kind == np.uint64)
        same(segment_max(None, offsets=offsets.astype(swapped)), segment_max())
    same(segment_max(IDS, kind.type(4)), segment_max(IDS, 4))
    same(core.segment_max(X[:0], IDS[:0], kind.type(0), fill_mode="ZERO"), X[:0])
    for number in (np.array(4, kind), np.array(4, kind.newbyteorder())):
        same(segment_max(IDS, number), segment_max(IDS, 4))
    if kind.kind == "i":
        assert segment_max(IDS, kind.type(-1)) is None


def test_ids_that_are_not_taken() -> None:
    wrong: Any
    for wrong in (
        None, [0, 2], (0, 2), IDS.astype(float), IDS.astype(bool), IDS[:, None], IDS[:1], np.arange(3), np.int64(0),
    ):  # fmt: skip
        assert segment_max(wrong) is None, wrong
    for wrong in (
        [0, 1], np.array([0.0, 2.0]), np.array([[0, 2]]), np.array([], np.int64), np.array([0, 1]), np.array([1, 2]),
    ):  # fmt: skip
        assert segment_max(None, offsets=wrong) is None, wrong
    for ids in ([2, 0], [0, -1]):
        assert segment_max(np.array(ids), 3) is None
    offsets = np.array([0, 2])
    assert segment_max(IDS, offsets=offsets) is None
    same(segment_max(None, offsets=offsets), np.max(X, axis=0, keepdims=True))
    assert segment_max(None, offsets=offsets, sorted=False) is None
    for word in ("drop", "error"):
        assert segment_max(None, offsets=offsets, out_of_range=word) is None
    for wrong in ("DROP", "dro", "drops", b"drop", True, 0):
        assert segment_max(out_of_range=wrong) is None, wrong
    for wrong in (-1, 2.0, "3", [3], np.array([3]), np.array(3.0), True, np.float64(3), np.True_, 2**64):
        assert segment_max(IDS, wrong) is None, wrong
    same(segment_max(IDS, None), segment_max())
    past = np.array([0, 2**63 + 2], np.uint64)
    for options in ({}, {"sorted": False}, {"out_of_range": "drop"}, {"check_ids": False}):
        assert segment_max(past, 3, **options) is None, options


# ----------------------------------------------------------------------------------------------------- words


def test_fill_modes() -> None:
    wrong: Any
    lowest = np.finfo(np.float32).min
    for word, fill in (("zero", 0.0), ("lowest", lowest)):
        expected = np.stack([X[0], np.full(3, fill, np.float32), X[1]])
        for spelled in (word, word.upper(), word.title(), word[0] + word[1:].upper(), "".join([*word])):
            same(segment_max(fill_mode=spelled), expected)
        for wrong in (
            word[:-1], word + "s", " " + word, word.encode(), word.replace("o", "\u043e"), word.replace("e", "\xc5"),
        ):  # fmt: skip
            assert segment_max(fill_mode=wrong) is None, wrong
    # The codes of upper-case and lower-case letters differ by 32, as do those of some adjacent punctuation characters.
    for wrong in ("", "\ud800", "ze\x12o", "ZER/", "zerO\0", "\x5aero\0", "[ero", "\x1aero", None, 0, "LOWER"):
        assert segment_max(fill_mode=wrong) is None, wrong
    for more in ({"fill_value": 1.0}, {"initial": 1.0}, {"fill_value": "1"}):
        assert segment_max(**more) is None, more
    assert core.segment_max(X, IDS) is None
    assert core.segment_max(X, IDS, initial=1.0, fill_value=1.0) is None
    same(core.segment_max(X, IDS, fill_value=1.0), np.stack([X[0], np.ones(3, np.float32), X[1]]))
    same(core.segment_max(X, IDS, initial=4.0), np.maximum(np.stack([X[0], X[0] * 0, X[1]]), np.float32(4)))


@pytest.mark.parametrize(
    "call", [lambda **options: core.maximum(X, **options), reduce_max, segment_max], ids=["max", "reduce", "segment"]
)
@pytest.mark.parametrize(("name", "words"), [("ties", ("even", "first")), ("nan", ("propagate", "ignore"))])
def test_words(name: str, words: tuple[str, ...], call: Callable[..., Any]) -> None:
    for word in words:
        same(call(**{name: word}), call())
        for wrong in (None, word.title(), word + "s", word.encode(), 0, [word]):
            assert call(**{name: wrong}) is None, wrong


# ------------------------------------------------------------------------------------------------ parameters


def test_parameters_by_position_and_by_name() -> None:
    same(core.reduce_max(X, [1], False, False), X.max(1))
    same(core.reduce_max(data=X, axes=[1], keepdims=False), X.max(1))
    out = np.empty(2, np.float32)
    assert core.reduce_max(X, [1], False, False, out) is out
    assert core.reduce_max(X, [1], False, False, None) is not None
    assert core.reduce_max(X, [1], False, False, None, None) is None  # one argument too many by position
    assert core.reduce_max(X, data=X) is None
    assert core.reduce_max() is None
    assert core.reduce_max(axes=[1]) is None
    same(core.segment_max(data=X, segment_ids=IDS, fill_mode="ZERO"), segment_max())
    assert core.segment_max(X, IDS, None, "ZERO") is None
    assert core.segment_max(X, IDS, segment_ids=IDS, fill_mode="ZERO") is None
    assert core.segment_max(fill_mode="ZERO") is None
    assert core.maximum() is None
    assert core.maximum(out=X) is None
    for call in (core.maximum, core.reduce_max, segment_max):
        assert call(*(() if call is segment_max else (X,)), **{"nobody": 1}) is None
    name = "".join(["keep", "dims"])  # a string that is not interned
    same(core.reduce_max(X, [1], **{name: False}), X.max(1))
    for call in (reduce_max, segment_max):
        assert call(dim=0) is None
        same(call(dim=None), call())


# --------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, 10, 40])
def test_any_number_of_inputs(count: int) -> None:
    arrays = [np.full((2, 3), -k, np.float32) for k in range(count)]
    for place in (0, count // 2, count - 1):
        mixed: list[Any] = arrays.copy()
        mixed[place] = X
        same(core.maximum(*mixed), X)
        mixed[place] = 7.0
        if count > 1:
            same(core.maximum(*mixed), np.full((2, 3), 7, np.float32))
        for wrong in (X.astype(float), X.astype(np.int32), np.ones(4, np.float32), [1.0], "1", None, X.astype(complex)):
            mixed[place] = wrong
            assert (core.maximum(*mixed) is None) == (count > 1 or not _is_alone(wrong))
    assert core.maximum(*[1.0] * count) is None


def _is_alone(array: Any) -> bool:
    """Return whether the core accepts an array as the only argument."""
    return isinstance(array, np.ndarray) and array.dtype.kind != "c"


@pytest.mark.parametrize("dtype", TYPES, ids=lambda row: row.name)
def test_scalars_of_numpy(dtype: DType) -> None:
    one, zero = dtype.numpy.type(1), dtype.numpy.type(0)
    for scalar in (one, np.array(one), np.array(one).astype(dtype.numpy.newbyteorder("S"))):
        same(core.maximum(zero, scalar), np.array(1, dtype.numpy))
        same(core.maximum(scalar, np.zeros(2, dtype.numpy)), np.ones(2, dtype.numpy))
        same(core.reduce_max(scalar), np.array(1, dtype.numpy))
        same(core.reduce_max(np.zeros(2, dtype.numpy), initial=scalar), np.ones(1, dtype.numpy))
        same(core.segment_max(np.zeros(1, dtype.numpy), IDS[:1], 2, fill_value=scalar), np.array([0, 1], dtype.numpy))


def test_arrays_that_are_not_taken() -> None:
    class Subclass(np.ndarray):
        pass

    for wrong in (
        [1.0], 1.0, None, "1", X.astype(complex), X.astype("M8[s]"), X.astype("U1"), X.astype(object),
        X.astype(np.longdouble), np.ma.masked_array(X), X.view(Subclass), np.zeros(2, [("a", "f4")]),
        memoryview(X.tobytes()), range(3),
    ):  # fmt: skip
        assert core.maximum(wrong) is None
        assert core.maximum(X, wrong) is None or type(wrong) is float
        assert core.reduce_max(wrong) is None
        assert core.segment_max(wrong, IDS, fill_mode="ZERO") is None
    same(core.maximum(np.float32(2), np.array(3, np.float32)), np.array(3, np.float32))
    same(core.reduce_max(np.float32(2)), np.array(2, np.float32))
    same(core.maximum(X, X[:1], X[:, :1]), np.maximum(np.maximum(X, X[:1]), X[:, :1]))


def test_outputs() -> None:
    calls: list[tuple[Callable[..., Any], tuple[int, ...]]] = [
        (lambda **options: core.maximum(X, X, **options), (2, 3)),
        (lambda **options: reduce_max([1], **options), (2, 1)),
        (segment_max, (3, 3)),
    ]
    for call, shape in calls:
        expected = call()
        for out in (np.empty(shape, np.float32), np.asfortranarray(np.empty(shape, np.float32)),
                    np.empty(shape[::-1], np.float32).T,
                    np.empty((shape[0], 2 * shape[1]), np.float32)[:, ::2]):  # fmt: skip
            assert call(out=out) is out
            same(out.copy(), expected)
        same(call(out=None), expected)
        locked = np.empty(shape, np.float32)
        locked.flags.writeable = False
        for wrong in (locked, np.empty(shape), np.empty(shape, np.int32), np.empty((*shape, 1), np.float32),
                      np.empty((4, 4), np.float32), np.empty(shape[:1], np.float32), [[0.0]], 0, "out"):  # fmt: skip
            assert call(out=wrong) is None, wrong


# ----------------------------------------------------------------------------- functions that the planner calls


def test_indices_that_are_widened() -> None:
    wrong: Any
    for kind in INTEGERS:
        for order in ("=", "S"):
            ids = np.array([0, 5, 7, 2], kind.newbyteorder(order))
            if kind.itemsize == 8 or (kind.itemsize == 4 and kind.kind == "i"):
                if order == "=" and kind != np.uint64:
                    with pytest.raises(TypeError, match="int32 or int64"):
                        core.widened(ids)
                continue
            wide = core.widened(ids[::2])
            assert wide.dtype == (np.int32 if kind.itemsize < 4 else np.int64)
            assert wide.tolist() == [0, 7]
    for wrong in (np.zeros((1, 1), np.int8), np.zeros(1), np.zeros(1, bool), [1], None, np.int8(1)):
        with pytest.raises(TypeError, match="1-D array of integers"):
            core.widened(wrong)


def test_indices_that_are_checked() -> None:
    wrong: Any
    check = core.check_indices
    assert check(IDS, False, True, True, None, 2) is None
    assert check(np.array([0, 2], np.uint64), False, True, True, 3, 2) is None
    assert check(np.array([0, 2]), True, True, True, None, 2) is None
    assert check(np.array([2, 0]), False, True, True, None, 2) == ("ids_decrease", 1, 0, 2)
    assert check(np.array([2, 0]), False, False, True, None, 2) is None
    assert check(np.array([0, 4]), False, False, True, 4, 2) == ("id_too_large", 1, 4, 4)
    assert check(np.array([0, -4]), False, False, True, 4, 2) == ("negative_id", 1, -4, 0)
    assert check(np.array([0, -4]), False, False, False, 4, 2) is None
    assert check(np.array([1, 2]), True, True, True, None, 2) == ("offsets_begin", 0, 1, 0)
    assert check(np.array([0, 3, 2]), True, True, True, None, 2) == ("offsets_decrease", 2, 2, 3)
    assert check(np.array([0, 3]), True, True, True, None, 2) == ("offsets_end", 1, 3, 2)
    right = (IDS, False, True, True, None, 2)
    for place, wrong in (
        *((0, each) for each in (None, [0], IDS[:, None], IDS.astype(float), IDS.astype(np.int16), np.int64(0))),
        *((place, each) for place in (1, 2, 3) for each in (None, 2, "no")),
        *((4, each) for each in ("no", 1.0)),
        *((5, each) for each in ("no", None)),
    ):
        with pytest.raises(TypeError, match="its rules"):
            check(*right[:place], wrong, *right[place + 1 :])
    for wrong in (right[:5], (*right, 1), (), (IDS[:0], True, *right[2:])):
        with pytest.raises(TypeError, match="its rules"):
            check(*wrong)


# ------------------------------------------------------------------------------------------- rules of an entry


def entry(operator: str, **rules: Any) -> Callable[..., Any]:
    """Return an operator with these rules. It returns "asked" for calls that the core does not handle."""
    made: Callable[..., Any] = core.Entry(lambda *_, **__: "asked", operator, **rules)
    return made


def is_taken(result: Any) -> bool:
    assert isinstance(result, (np.ndarray, str))
    return isinstance(result, np.ndarray)


def test_nobody_is_asked_about_what_the_core_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise AssertionError("the planner was asked")

    monkeypatch.setattr("maxops.engines.table.run", fail)
    same(mo.maximum(X, X), X)
    same(mo.reduce_max(X), np.full((1, 1), 6, np.float32))
    same(mo.segment_max(X, IDS, fill_mode="ZERO"), segment_max())
    same(mo.operator("ONNX", "Max", 13)(X, X), X)
    same(mo.operator("ONNX", "ReduceMax", 13)(X, axes=[0]), X.max(0, keepdims=True))
    with pytest.raises(AssertionError, match="asked"):
        mo.maximum(X, X.astype(float))


def test_types_of_rules() -> None:
    segments = {"segment_ids": np.array([0, 1]), "fill_mode": "ZERO"}
    for name, more in {"maximum": {}, "reduce_max": {}, "segment_max": segments}.items():
        for row in TYPES:
            of_one = entry(name, types=[row.name])
            for other in TYPES:
                assert is_taken(of_one(np.ones(2, other.numpy), **more)) == (other is row)
    for kind in INTEGERS:
        reduced = entry("reduce_max", index_types=[kind.name])
        segmented = entry("segment_max", index_types=[kind.name])
        for index in INTEGERS:
            assert is_taken(reduced(X, np.array([0], index))) == (index == kind)
            assert is_taken(segmented(X, IDS.astype(index), fill_mode="ZERO")) == (index == kind)


def test_other_rules() -> None:
    row, alike, zero = X[:1], X.copy(), np.ones((0, 3), np.float32)
    for broadcast, taken in (
        ("none", [True] * 2 + [False] * 3),
        ("strict", [True] * 4 + [False]),
        ("numpy", [True] * 5),
    ):
        maximum = entry("maximum", broadcast=broadcast)
        calls = [(X, alike), (X,), (X, row), (X, X[:, :1]), (row, zero)]
        assert [is_taken(maximum(*arrays)) for arrays in calls] == taken
    assert is_taken(entry("maximum")(X, 1.0))
    of_standard = entry("maximum", types=["float32"])  # the planner reads its Python numbers
    assert not is_taken(of_standard(X, 1.0))
    assert is_taken(of_standard(X, X))
    for axes in (-1, [-2], [0, -1]):
        assert is_taken(entry("reduce_max")(X, axes))
        assert not is_taken(entry("reduce_max", negative_axes=False)(X, axes))
    assert is_taken(entry("reduce_max", negative_axes=False)(X, [0, 1]))


def test_parameters_of_rules() -> None:
    given = (X, [1], False, False)
    for count in range(6):
        reduced = entry("reduce_max", positional=count)
        assert [is_taken(reduced(*given[:few])) for few in range(1, 5)] == [few <= count for few in range(1, 5)]
    names = {"axes": [1], "keepdims": False, "initial": 1.0, "return_indices": False, "ties": "even"}
    for name, value in names.items():
        reduced = entry("reduce_max", keywords=(name,))
        assert [is_taken(reduced(X, **{other: names[other]})) for other in names] == [other == name for other in names]
        assert is_taken(reduced(X, **{name: value}))
    assert is_taken(entry("maximum", positional=0)(X))


def test_only_arrays_are_written_through() -> None:
    assert core.can_write_through(X.copy(), X, False) is True
    assert core.can_write_through(X, X, False) is False
    assert core.can_write_through(X, X, True) is True
    for wrong in (None, [1.0], "x", X.astype(complex)):
        for arrays in ((wrong, X), (X, wrong)):
            with pytest.raises(TypeError, match="arrays of supported dtypes"):
                core.can_write_through(*arrays, False)
