"""`maxops.compat.numpy`, compared with NumPy."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops
from helpers.bits import STORED, Array, assert_same_bits, each_float, each_type, mixed, of_words
from maxops import dtypes, reference
from maxops.compat import numpy as compat
from maxops.dtypes import DType

X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([[2.5], [1.0]], np.float32)
VALUES: list[Any] = [
    X, Y, 3, 2.5, True, np.float64(0.5), np.int8(4), [1, 2, 3], np.array([[7], [-1]], np.int16), np.arange(3) > 1,
    np.array([1, 2, 3j]), np.array(["2020"] * 3, "M8[Y]"), np.ma.masked_array([1, 2, 3], [False, True, False]),
    np.float16(1e-5), np.array([2**63 + 1, 1, 0], np.uint64), np.array([1, 2, 3], object), np.full(3, 0.1, ">f4"),
    np.array([[1, 2, 3]]).view(np.matrix), np.arange(3).astype(ml_dtypes.bfloat16),
]  # fmt: skip


def outcome(function: Any, *args: Any, **more: Any) -> Any:
    """Return a call's result with its class, or its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = function(*args, **more)
    except Exception as error:  # noqa: BLE001  (whatever NumPy raises)
        return type(error), str(error)
    if isinstance(result, np.ma.MaskedArray):
        return type(result), str(result)
    return type(result), result.dtype, np.shape(result), np.asarray(result).tolist()


def agree(got: Any, expected: Any) -> bool:
    """Return whether two outcomes are equal. Errors only need the same kind, because NumPy has its own classes."""
    if issubclass(expected[0], Exception):
        bases = [base for base in (TypeError, ValueError) if issubclass(expected[0], base)] or [expected[0]]
        return issubclass(got[0], bases[0])
    return bool(got == expected)


def check(pair: tuple[Any, Any], *args: Any, **more: Any) -> None:
    """Raise unless a function of maxops and NumPy's function have equal outcomes."""
    got, expected = (outcome(function, *args, **more) for function in pair)
    assert agree(got, expected), (args, more, got, expected)


BOTH: list[tuple[Any, Any]] = [(compat.maximum, np.maximum), (compat.fmax, np.fmax)]


def test_maximum() -> None:
    for one, other in product(VALUES, VALUES):
        for pair in BOTH:
            check(pair, one, other)
        assert outcome(compat.maximum.outer, one, other) == outcome(np.maximum.outer, one, other)


def test_out_where_and_dtype() -> None:
    for pair in BOTH:
        mine, theirs = pair
        for scalars in ((-1, 2**40), (2**40, [1]), (2.5, True)):
            for type_ in (np.int16, np.float32, np.bool_):
                check(pair, *scalars, dtype=type_)
        for dtype in (np.float32, np.float64, np.float16, np.int32):
            outs = [np.full((2, 3), 9, dtype) for _ in range(2)]
            assert agree(outcome(mine, X, Y, out=outs[0]), outcome(theirs, X, Y, out=outs[1]))
            assert agree(outcome(mine, X, Y, out=(outs[0],)), outcome(theirs, X, Y, out=(outs[1],)))
            assert_same_bits(outs[0], outs[1])
            chosen = X > 2
            assert agree(
                outcome(mine, X, Y, out=outs[0], where=chosen), outcome(theirs, X, Y, out=outs[1], where=chosen)
            )
            assert_same_bits(outs[0], outs[1])
            for named in (np.dtype(dtype), np.dtype(dtype).newbyteorder()):
                check(pair, X, Y, dtype=named)
        check(pair, X, Y, casting="no")
        check(pair, X, Y, out=np.zeros((3, 3), np.float32))
    given = np.zeros((2, 3), np.float32)
    assert compat.maximum(X, Y, given) is given
    for few in ((), (X,)):
        with pytest.raises(TypeError, match=r"maximum\(\) takes from 2 to 3 positional arguments"):
            compat.maximum(*few)
    for name in ("nan", "ties", "keepdims"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            compat.maximum(X, Y, **{name: "ignore"})


def test_is_no_method_of_a_class() -> None:
    class Layer:
        activation = compat.maximum

    assert Layer().activation(1, 2) == Layer.activation(1, 2) == 2


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")  # PyTorch's
def test_arrays_of_other_libraries_are_passed_to_numpy() -> None:
    torch, pandas, dask = (pytest.importorskip(name) for name in ("torch", "pandas", "dask.array"))
    tensors = torch.tensor([1.0, 5.0]), torch.tensor([4.0, 2.0])
    assert_same_bits(maxops.maximum(*tensors).numpy(), np.array([4, 5], np.float32))  # registers the engine
    series = pandas.Series([1.0, 5.0], ["a", "b"]), pandas.Series([4.0, 2.0], ["b", "a"])
    calls: list[tuple[Any, Callable[..., Any]]] = [
        (tensors, lambda m, one, other: m.fmax(one, other)),
        (series, lambda m, one, other: m.maximum(one, other)),
        (series, lambda m, one, other: m.fmax(np.ones(2), other, dtype=np.float32)),
        (series, lambda m, one, other: m.maximum.accumulate(one)),
        (series, lambda m, one, other: m.maximum.reduce(one)),
        (series, lambda m, one, other: m.maximum(np.ones(2), 5.0, out=other)),
    ]
    lazy = dask.asarray(np.eye(2)), 2.0
    calls += [
        (lazy, lambda m, one, other: m.maximum.outer(one, other)),
        (lazy, lambda m, one, _: m.max(one)),
        (lazy, lambda m, one, _: m.argmax(one)),
        (lazy, lambda m, one, _: m.nanmax(one)),
        (lazy, lambda m, one, _: m.nanargmax(one)),
    ]
    for arrays, call in calls:
        got, expected = (call(library, *arrays) for library in (compat, np))
        assert type(got) is type(expected)
        assert np.asarray(got).tolist() == np.asarray(expected).tolist()


def test_outputs_and_masks_of_other_kinds_are_passed_to_numpy() -> None:
    class Wrapped(np.ndarray):
        def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
            return "wrapped", array.tolist()

    class Named:
        def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
            return function.__name__, method, len(inputs)

    def kinds() -> list[Any]:
        return [
            np.zeros(2).view(Wrapped),
            np.ma.array([0.0, 0.0], mask=[True, False]),
            Named(),
            "text",
            [0.0, 0.0],
            (np.zeros(2), None),
        ]

    def results(m: Any, other: Any) -> list[Any]:
        x = np.array([[3.0, 1.0], [1.0, 2.0]])
        calls: list[Callable[[], Any]] = [
            lambda: m.maximum(x[0], x[1], out=other),
            lambda: m.maximum(x[0], x[1], out=(other,)),
            lambda: m.maximum.reduce(x, 0, out=other),
            lambda: m.maximum.accumulate(x[0], out=other),
            lambda: m.maximum.reduceat(x[0], [0, 1], out=other),
            lambda: m.maximum(x[0], x[1], where=other, out=np.zeros(2)),
            lambda: m.maximum.at(other, [0], 1.0),
        ]
        found = []
        for call in calls:
            try:
                result = call()
                found.append((type(result), str(result)))
            except (TypeError, ValueError) as error:
                found.append((type(error), ""))
        return found

    for mine, theirs in zip(kinds(), kinds(), strict=True):
        assert results(compat, mine) == results(np, theirs)


@each_type
def test_bits_follow_the_order(dtype: DType) -> None:
    one, other = mixed(dtype, (3, 5), 1), mixed(dtype, (3, 5), 2)
    assert_same_bits(compat.maximum(one, other), reference.maximum(one, other))
    assert_same_bits(compat.maximum.reduce(one, 1), reference.reduce_max(one, (1,), keepdims=False))
    ends = [reference.reduce_max(one[:, : end + 1], (1,)) for end in range(5)]
    assert_same_bits(compat.maximum.accumulate(one, 1), np.concatenate(ends, 1))
    given = one.copy()
    compat.maximum.at(given, (slice(None), [0, 2, 0]), other[:, :3])
    for column, added in ((0, 0), (2, 1), (0, 2)):
        one[:, column] = reference.maximum(one[:, column], other[:, added])
    assert_same_bits(given, one)


@pytest.mark.parametrize("block", [None, 16384, 2])
@each_type
def test_mixed_types_are_converted_first(block: int | None, dtype: DType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test conversions in the core, and in Python, which converts large arrays in blocks."""
    maximum: Any = compat.maximum
    if block is not None:
        monkeypatch.setattr(compat, "_BLOCK", block)
        maximum = partial(compat._element_wise, "maximum", "propagate")
    one = mixed(dtype, (4, 3), 1)
    for kind in STORED:
        other = mixed(kind, (3, 4), 2).T
        try:
            common = np.result_type(one, other)
        except TypeError:  # for example for bfloat16 with integers, which NumPy handles
            check(BOTH[0], one, other)
            continue
        with np.errstate(all="ignore"):
            expected = reference.maximum(one.astype(common), other.astype(common))
        for left, right in (
            (one, other),
            (other, one),
            (one, other.copy()),
            (one.astype(dtype.numpy.newbyteorder()), other),
        ):
            assert_same_bits(maximum(left, right), expected)
            out = np.zeros((2, 4, 3), common)
            assert maximum(left, right, out=out) is out
            assert_same_bits(out[1], expected)
        overlapping = np.zeros(14, common)
        overlapping[:12] = one.ravel()
        maximum(overlapping[:12].reshape(4, 3), other, out=overlapping[2:].reshape(4, 3))
        assert_same_bits(overlapping[2:].reshape(4, 3), expected)


PAIRS: list[tuple[Any, Any]] = [(compat.max, np.max), (compat.amax, np.amax)]
PAIRS += [(compat.maximum.reduce, np.maximum.reduce)]
# The outputs of methods, for a result of shape (2,) or, from `reduce`, of shape ().
OUTPUTS: dict[str, Callable[[Any], Any]] = {
    "array": np.zeros,
    "none": lambda shape: None,
    "tuple": lambda shape: (np.zeros(shape),),
    "none-in-tuple": lambda shape: (None,),
    "empty-tuple": lambda shape: (),
    "list": lambda shape: [np.zeros(shape)],
    "ellipsis": lambda shape: ...,
    "matrix": lambda shape: np.zeros((1, 1)).view(np.matrix),
}


@pytest.mark.parametrize("pair", BOTH, ids=["maximum", "fmax"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i4"])
@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_methods_by_position_and_by_name(pair: tuple[Any, Any], dtype: str, kind: str) -> None:
    data = np.array([3, 5], dtype)
    for method, before, shape in (
        ("reduce", (data, 0, None), ()),
        ("reduceat", (data, [0, 1], 0, None), (2,)),
        ("accumulate", (data, 0, None), (2,)),
    ):
        functions = tuple(getattr(each, method) for each in pair)
        check(functions, *before, OUTPUTS[kind](shape))
        check(functions, *before[:-1], out=OUTPUTS[kind](shape))
        if kind != "none":  # which is a default by position
            check(functions, *before, OUTPUTS[kind](shape), out=np.zeros(shape))


INDICES: list[tuple[Any, Any]] = [(compat.argmax, np.argmax), (compat.nanargmax, np.nanargmax)]
REDUCTIONS = [*PAIRS, *INDICES, (compat.fmax.reduce, np.fmax.reduce), (compat.nanmax, np.nanmax)]
REDUCEAT = compat.maximum.reduceat, np.maximum.reduceat


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0, 3), (2, 0)], ids=str)
def test_reductions(shape: tuple[int, ...]) -> None:
    for dtype in (np.float32, np.int8, np.bool_, np.complex64):
        data = np.random.default_rng(1).integers(0, 4, shape).astype(dtype)
        axes: list[Any] = [None, 0, -1, 1, (), (0,), (0, 1), (0, 0), 5]
        for axis, keepdims in product(axes, (False, True)):
            more: dict[str, Any]
            for more in ({}, {"initial": 2}, {"initial": None}, {"where": True}, {"out": np.zeros(())}):
                for pair in PAIRS:
                    check(pair, data, **more, axis=axis, keepdims=keepdims)
            if axis is None or type(axis) is int:
                for pair in INDICES:
                    check(pair, data, axis=axis, keepdims=keepdims)
    assert compat.max(X) == 5
    assert compat.argmax(X) == 5


class Index:
    """An integer that only has ``__index__``."""

    def __index__(self) -> int:
        return 1

    def __repr__(self) -> str:
        return "Index()"


AXES: list[Any] = [
    [0], [], range(2), Index(), (Index(),), np.array(1), np.array([1]), np.int64(-1), True, (False,), 1.0,
]  # fmt: skip


@pytest.mark.parametrize("axis", AXES, ids=repr)
def test_axes_are_read_as_numpy_reads_them(axis: Any) -> None:
    for pair in REDUCTIONS:
        check(pair, X, axis=axis)
    for axes in (axis, None, (1,), (-1,), (), (0, 1)):
        for data in (X, X[0]):
            check(REDUCEAT, data, [0, 1], axes)


@pytest.mark.parametrize("keepdims", [None, np.True_, "no", [], 2, 0, 1.0, np.int64(1), np.array([True])], ids=repr)
@pytest.mark.parametrize("axis", [None, 1])
def test_flags_are_read_as_numpy_reads_them(axis: Any, keepdims: Any) -> None:
    for pair in REDUCTIONS:
        for data in (X, X.tolist(), X.astype(">f4")):
            check(pair, data, axis=axis, keepdims=keepdims)


@pytest.mark.parametrize("axis", [(), None, 0, (0, 1)], ids=str)
def test_initial(axis: Any) -> None:
    initials: list[Any] = [3, 2.5, True, np.float64(3.5), np.inf, 2**70, None, 1j, "3", [1], np.array([4])]
    initials += [np.int64(300), np.uint64(2**63), np.longdouble(300), np.array(300)]
    for initial, dtype in product(initials, (np.float16, np.float32, np.int8, np.bool_, ml_dtypes.bfloat16)):
        for keepdims in (False, True):
            for pair in [*PAIRS, (compat.fmax.reduce, np.fmax.reduce)]:
                check(pair, X.astype(dtype), axis=axis, initial=initial, keepdims=keepdims)
    for dtype in (">f4", "f4"):
        check(PAIRS[-1], X, axis, dtype)
    out = np.zeros(3, np.float32)
    assert compat.max(X, 0, out) is out
    assert out.tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16], ids=lambda kind: kind.__name__
)
def test_nan_is_left_out(dtype: Any) -> None:
    data = np.array([[np.nan, 1, 3], [np.nan, np.nan, np.nan], [-np.inf, np.nan, -np.inf]]).astype(dtype)
    for axis in (None, 0, 1):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            found, expected = compat.nanmax(data, axis=axis), np.nanmax(data.astype(np.float64), axis=axis)
        assert np.asarray(found).dtype == dtype
        np.testing.assert_array_equal(np.asarray(found, np.float64), expected)
    with pytest.warns(RuntimeWarning, match="All-NaN slice encountered"):
        compat.nanmax(data, axis=1)
    with pytest.raises(ValueError, match="All-NaN slice encountered"):
        compat.nanargmax(data, axis=1)
    assert compat.nanargmax(data) == 2
    assert compat.nanargmax(data[::2], axis=1).tolist() == [2, 0]
    canonical = np.asarray(compat.fmax(data[1], data[1]))
    row = next(each for each in dtypes.ALL if each.numpy == canonical.dtype)
    assert_same_bits(canonical, of_words(row, [row.nan_bits] * 3))


def test_reduceat() -> None:
    data = np.random.default_rng(2).integers(0, 9, (5, 6)).astype(np.float32)

    for count in range(5):
        for small in product(range(-1, 7), repeat=count):
            for axis in (0, 1, -1):
                check(REDUCEAT, data, [*small], axis)
    long = np.arange(40000.0)
    some: list[list[Any]] = [[0, 2, 3], [1, 4], [0], [0, 0, 2], [[0]]]
    for indices in some:
        for dtype in "u1", "i4", "i8", ">i8", "u8", "f8", "O":
            check(REDUCEAT, data, np.array(indices, dtype), 2)
            for other in (0, 1, np.int64(-1), -3):
                check(REDUCEAT, data.T, np.array(indices, dtype), other)
        check(REDUCEAT, data, np.repeat(np.array(indices, "i8"), 2)[::2])
        check(REDUCEAT, data, [*indices, 3.0])
        check(REDUCEAT, data, [*indices, np.int64(4)])
        check(REDUCEAT, data, [False, *indices])
        check(REDUCEAT, data, (*indices,))
        check(REDUCEAT, data.astype(complex), indices)
        check(REDUCEAT, data[0, 0], indices)
        check(REDUCEAT, long, [*range(0, 39990, 2), *indices])
    check(REDUCEAT, data, np.frombuffer(b"." + np.array([0, 2], "i8").tobytes(), "i8", offset=1))
    assert outcome(compat.maximum.accumulate, data, 1) == outcome(np.maximum.accumulate, data, 1)
    assert compat.maximum.nin == 2
    assert repr(compat.maximum) == "<maxops.compat.numpy.maximum>"


@pytest.mark.parametrize("function", [compat.maximum, compat.fmax], ids=repr)
def test_functions_are_pickled_and_copied_by_name(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is copy.copy(function) is copy.deepcopy(function) is function
    assert function.nin == np.maximum.nin


def test_fmax_and_nanmax_at_their_edges() -> None:
    scalar = np.array(np.nan)
    compat.fmax.at(scalar, (), 3.0)
    assert scalar == 3
    assert compat.nanargmax(np.array(2.0), axis=0) == 0
    halves = np.array([1, 3, 2], dtypes.BFLOAT16.numpy)
    for function in (compat.maximum, compat.fmax):
        assert function.accumulate(halves).tolist() == [1, 3, 3]
    for pair in ((halves, 2.5), (2.5, halves)):  # promoted as in NumPy, where earlier calls may change the promotion
        assert_same_bits(compat.maximum(*pair), np.array([2.5, 3, 2.5], np.float32))
    objects = np.array([Fraction(1, 2), Fraction(1, 3)], object)
    assert compat.nanmax(objects) == Fraction(1, 2)  # computed by NumPy
    assert compat.nanargmax(np.array([np.nan, -np.inf])) == 1  # NumPy returns the index of the NaN


def test_every_other_name_is_numpys() -> None:
    for name in {*vars(np)} - {*compat.__all__}:
        if not name.startswith("__") or name == "__version__":
            assert getattr(compat, name) is getattr(np, name), name
    assert set(compat.__all__) <= set(dir(compat))
    with pytest.raises(AttributeError):
        compat.no_such_name  # noqa: B018
    assert not hasattr(compat, "__path__")  # not a package
    assert {"zeros", "maximum"} <= set(dir(compat))


EACH_NAN = (("propagate", compat.maximum), ("ignore", compat.fmax))


def _unordered(dtype: DType) -> Array:
    """Return the values that NumPy does not order, and a number."""
    return of_words(dtype, [0, 1 << dtype.bits - 1, dtype.nan_bits | 1, (1 << dtype.bits) - 1, dtype.lowest_bits])


@each_float
@pytest.mark.parametrize("indices", [[0, 1, 1], (slice(None), [0, 0]), [True, False, True], 1, (..., 1), ()], ids=repr)
def test_at_orders_zeros_and_nan(dtype: DType, indices: Any) -> None:
    """Test all pairs of values that NumPy does not order."""
    values = _unordered(dtype)
    places = np.ravel(np.arange(6).reshape(3, 2)[indices])
    for (nan, function), held, given, other in product(EACH_NAN, values, values, values[1:4]):
        data = np.full((3, 2), held)
        data[1, 1] = other
        others = np.full(np.shape(data[indices]), given)
        if others.size > 1:
            others.flat[-1] = other
        expected = data.copy()
        for place, value in zip(places, others.flat, strict=True):
            pair = np.array([expected.flat[place], value], dtype.numpy)
            expected.flat[place] = reference.reduce_max(pair, (0,), keepdims=False, nan=nan)
        function.at(data, indices, others)
        assert_same_bits(data, expected)


@each_float
def test_accumulate_orders_zeros_and_nan(dtype: DType) -> None:
    """Test all triples of values that NumPy does not order."""
    for (nan, function), *triple in product(EACH_NAN, *[_unordered(dtype)] * 3):
        data = np.array([triple, triple[::-1]], dtype.numpy).T
        runs = [reference.reduce_max(data[: end + 1], (0,), nan=nan) for end in range(3)]
        assert_same_bits(function.accumulate(data), np.concatenate(runs))


LARGE = np.linspace(-1, 1, 20000)[None]  # larger than a block
WITH_UFUNC = type("WithUfunc", (), {"__array_ufunc__": lambda self, *inputs, **options: np.array(7.0)})()
BESIDE: dict[str, Any] = {
    "where-larger": lambda m: m.maximum(np.float32(2.5), 1, where=np.array([True, True])),
    "where-larger-out": lambda m: m.fmax(np.ones(2), 1, where=np.ones((3, 1), bool), out=np.zeros((3, 2))),
    "where-larger-than-out": lambda m: m.maximum(np.ones(2), 1, where=np.ones((3, 1), bool), out=np.zeros(2)),
    "where-no-shape": lambda m: m.maximum(np.ones(2), 1, where=np.ones(3, bool), out=np.zeros(2)),
    "where-scalar": lambda m: m.maximum(np.float32(2.5), 1, where=np.True_),
    "where-scalar-array": lambda m: m.fmax(np.ones(2), 1, where=np.array(True)),
    "where-type": lambda m: m.maximum(np.ones(2), 1, where=np.ones(2, int)),
    "out-rank-0": lambda m: m.maximum(np.array([1.0]), np.array([2.0]), out=np.zeros(())),
    "out-rank-1": lambda m: m.fmax(np.ones((1, 3)), np.ones(3), out=np.zeros(3)),
    "out-rank-1-mixed": lambda m: m.maximum(np.ones((1, 3)), np.ones(3, "f4"), out=np.zeros(3)),
    "out-rank-1-large": lambda m: m.maximum(LARGE, LARGE.astype("f4"), out=np.zeros(20000)),
    "out-larger": lambda m: m.maximum(np.ones((1, 3)), np.ones(3), out=np.zeros((2, 3))),
    "out-larger-large": lambda m: m.maximum(LARGE, LARGE.astype("f4"), out=np.zeros((2, 20000))),
    "empty-large": lambda m: m.maximum(np.zeros((0, 1), "f4"), np.zeros((1, 20000))),
    "empty-large-out": lambda m: m.fmax(np.zeros((0, 1), "f4"), np.zeros((1, 20000)), out=np.zeros((0, 20000))),
    "scalars": lambda m: m.maximum(1.5, 2),
    "bools": lambda m: m.maximum(True, False),
    "bool-and-int": lambda m: m.fmax(True, 2),
    "list-and-scalar": lambda m: m.maximum([1, 2, 3], 2),
    "list-and-float": lambda m: m.maximum([1, 2, 3], 2.5),
    "list-and-large": lambda m: m.maximum([1, 2, 3], 2**63),
    "list-of-large": lambda m: m.maximum([2**63, 1], 2),
    "list-of-float16": lambda m: m.maximum([np.float16(1)], 2.0000001),
    "list-of-none": lambda m: m.maximum([1, "a"], 2),
    "list-ragged": lambda m: m.maximum([[1], [1, 2]], 2),
    "list-empty": lambda m: m.maximum([], 2),
    "list-and-array": lambda m: m.maximum([1, 2, 3], np.ones(3, "f4")),
    "tuple-out": lambda m: m.maximum((1, 2), [[0.5], [3]], out=np.zeros((2, 2))),
    "out-in-tuple": lambda m: m.maximum(np.ones(3), 2, out=(np.zeros(3),)),
    "out-none-in-tuple": lambda m: m.fmax(np.ones(3), 2, out=(None,)),
    "out-in-tuple-positional": lambda m: m.maximum(np.ones(3), np.ones(3), (np.zeros(3),)),
    "out-in-tuple-large": lambda m: m.maximum(LARGE, LARGE.astype("f4"), (np.zeros(20000),)),
    "out-ellipsis-positional": lambda m: m.maximum(np.ones(3), np.ones(3), ...),
    "out-none-in-tuple-positional": lambda m: m.fmax(np.ones(3), 2, (None,)),
    "out-twice": lambda m: m.maximum(np.ones(3), np.ones(3), np.zeros(3), out=None),
    "reduce-out-twice": lambda m: m.maximum.reduce(np.ones(3), 0, None, np.zeros(()), out=np.zeros(())),
    "reduce-out-with-ufunc": lambda m: m.maximum.reduce(np.ones(3), 0, None, WITH_UFUNC),
    "accumulate-out-with-ufunc": lambda m: m.fmax.accumulate(np.ones(3), 0, None, WITH_UFUNC),
    "max-out-with-ufunc": lambda m: m.max(np.ones(3), 0, WITH_UFUNC),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:'where' used without 'out'")
@pytest.mark.parametrize("name", BESIDE)
def test_where_out_and_literals(name: str) -> None:
    def quiet(module: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # NumPy warns about `where` without `out`
            return BESIDE[name](module)

    check((partial(quiet, compat), partial(quiet, np)))


@pytest.mark.parametrize("kind", ["f4", "f8", "f2", "i2"])
def test_mixed_types_return_the_given_out(kind: str) -> None:
    data = np.random.default_rng(3).normal(0, 9, 40000)
    others = data[::-1].astype(kind)
    for start, end in ((0, 0), (0, 1), (1, 0)):  # out is the input, or is one element before or after it
        mine, theirs = data.copy(), data.copy()
        for module, each in ((compat, mine), (np, theirs)):
            one, out = each[start : each.size - end], each[end : each.size - start]
            assert module.maximum(one, others[: one.size], out=out) is out
        assert_same_bits(mine, theirs)


WITH_OUT = ("max", "nanmax", "argmax", "nanargmax")
OUTS: dict[str, Any] = {
    "max": lambda m, out: m.max(np.array([2.5, 1]), out=out),
    "max-uint64": lambda m, out: m.max(np.array([2**64 - 1, 5], np.uint64), out=out),
    "max-uint32": lambda m, out: m.max(np.array([[200], [5]], np.uint32), axis=(0, 1), out=out),
    "nanmax": lambda m, out: m.nanmax(np.array([2.5, 1]), out=out),
    "argmax": lambda m, out: m.argmax(np.array([1, 2.5]), out=out),
    "nanargmax": lambda m, out: m.nanargmax(np.array([1, 2.5]), out=out),
    "reduce": lambda m, out: m.fmax.reduce(np.array([2, 1], np.int32), out=out),
    "reduce-tuple": lambda m, out: m.maximum.reduce(np.array([2, 1], np.int32), out=(out,)),
    "reduce-none-in-tuple": lambda m, out: m.maximum.reduce(np.array([2, 1], out.dtype), out=(None,)),
    "reduce-initial-none-in-tuple": lambda m, out: m.fmax.reduce([2, 1], axis=(), initial=2, out=(None,)),
    **{
        f"{each}-tuple": lambda m, out, each=each: getattr(m, each)(np.array([2.5, 1]), out=(out,)) for each in WITH_OUT
    },
    **{f"{each}-none-in-tuple": lambda m, out, each=each: getattr(m, each)([2.5, 1], out=(None,)) for each in WITH_OUT},
    "reduceat-none-in-tuple": lambda m, out: m.maximum.reduceat(np.array([2.5, 1]), [0], out=(None,)),
    "reduceat-tuple": lambda m, out: m.maximum.reduceat(np.array([2.5, 1]), [0], out=(out[None],))[0],
    "accumulate-none-in-tuple": lambda m, out: m.maximum.accumulate(np.array([np.nan]), out=(None,)),
    "reduceat": lambda m, out: m.maximum.reduceat(np.array([2.5, 1]), [0], out=out[None])[0],
    "accumulate": lambda m, out: m.maximum.accumulate(np.array([2.5]), out=out[None])[0],
}


@pytest.mark.parametrize("name", OUTS)
@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", ">i8", ">f8"])
def test_reductions_compute_in_the_type_of_out(name: str, dtype: str) -> None:
    check((partial(OUTS[name], compat), partial(OUTS[name], np)), np.zeros((), dtype))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_bits_follow_the_order_in_either_byte_order(dtype: str) -> None:
    values = np.array([0.0, -0.0, -0.0, np.nan, -np.nan, 2, -1, 0.0], dtype)
    swapped = values.astype(np.dtype(dtype).newbyteorder())
    for function in (compat.maximum, compat.fmax):
        expected = function.accumulate(values)
        assert_same_bits(function.accumulate(swapped), expected)
        out = np.zeros_like(swapped)
        assert_same_bits(function.accumulate(swapped, out=out).astype(dtype), expected)
        for indices in ([0, 1, 1, 2, 3, 4, 0, 7], slice(None), np.arange(7, -1, -1)):
            one, other = values[::-1].copy(), swapped[::-1].copy()
            function.at(one, indices, values)
            function.at(other, indices, swapped)
            assert_same_bits(other.astype(dtype), one)


@pytest.mark.parametrize("indices", [slice(None), [0, 3, 1, 1, 2], [True, True, True, True, True]], ids=repr)
def test_at_reads_the_values_before_it_writes(indices: Any) -> None:
    values = np.array([-0.0, 0.0, np.nan, -1.0, 5.0])
    for function, order in product((compat.maximum, compat.fmax), (1, -1)):
        data, expected = values.copy(), values.copy()
        function.at(expected, indices, values[::order])
        function.at(data, indices, data[::order])
        assert_same_bits(data, expected)


def test_at_writes_nothing_if_it_fails() -> None:
    for indices, added in (([0, 9], 7.0), ([0, 1], [7.0, 7.0, 7.0]), ([0, 1], [[7.0, 7.0], [7.0, 7.0]])):
        data = np.zeros(3)
        check((compat.maximum.at, np.maximum.at), data, indices, added)
        assert_same_bits(data, np.zeros(3))
