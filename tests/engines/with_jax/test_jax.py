"""JAX arrays under jit, vmap, loops and donation: both lowerings return the reference's bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import FLOATS, STORED, assert_same_bits, mixed, of_words, pool
from maxops import dtypes, errors, reference
from maxops.dtypes import DType
from maxops.plan import Array

jax = pytest.importorskip("jax")
engine = pytest.importorskip("maxops.engines.jax")
jnp, lax = jax.numpy, jax.lax
IDS = np.array([0, 0, 2, 2, 2, 5], np.int64)


pytestmark = pytest.mark.usefixtures("lowering")


@pytest.fixture(autouse=True)
def _64_bits() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def fresh(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that JAX compiles again, because a compiled function is specific to a lowering."""
    compiled: Callable[..., Any] = jax.jit(lambda *args: function(*args))  # noqa: PLW0108 - a new one is the point
    return compiled


def give(array: Array) -> Any:
    return jax.device_put(array)


def same(got: Any, expected: Array) -> None:
    assert isinstance(got, jax.Array)
    assert_same_bits(np.asarray(got), expected)


# ------------------------------------------------------------------------------------------------------ jit


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_every_type_under_jit(dtype: DType) -> None:
    """Test subnormals, zeros and NaNs: XLA's threads flush subnormals, which must not change any bit."""
    values = np.resize(np.random.default_rng(0).permutation(pool(dtype)), (6, 16))
    other = values[::-1].copy()

    def everything(x: Any, y: Any, ids: Any) -> Any:
        return mo.maximum(x, y), mo.reduce_max(x, 1), mo.segment_max(x, ids, 6, fill_mode="ZERO")

    high, rows, segments = fresh(everything)(values, other, IDS)
    same(high, reference.maximum(values, other))
    same(rows, reference.reduce_max(values, (1,)))
    same(segments, reference.segment_max(values, IDS, 6, "ZERO"))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_subnormals_between_operations_of_xla(dtype: DType) -> None:
    smallest = of_words(dtype, [1, 1 << dtype.bits - 1 | 1, 0])
    transposed = fresh(lambda x: mo.maximum(x[::-1], -jnp.inf)[::-1])(smallest)
    same(transposed, smallest)


@pytest.mark.parametrize("out_of_range", [None, "error", "drop"])
@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("ids", [[0, 1, 5], [-2, 0, 1], [-2, 1, 5]], ids=str)
def test_traced_ids_out_of_range(ids: list[int], in_order: bool, out_of_range: Any, lowering: str) -> None:
    """Test that traced ids have the same faults, and are dropped in the same way, as known ids."""
    x, given = np.arange(3, dtype=np.float32), np.array(ids)

    def call(x: Any, ids: Any) -> Any:
        return mo.segment_max(x, ids, 4, fill_mode="ZERO", sorted=in_order, out_of_range=out_of_range)

    past = out_of_range == "error" or (out_of_range is None and not in_order)
    if (out_of_range != "drop" and min(ids) < 0) or (past and max(ids) >= 4):
        if lowering == "custom-calls":  # integer keys drop them, because no XLA operator can raise
            with pytest.raises(Exception, match="segment_ids"):
                jax.block_until_ready(fresh(call)(x, given))
    else:
        same(fresh(call)(x, given), reference.segment_max(x, given, 4, "ZERO"))


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "maximum": lambda x: mo.maximum(x, x),
    "reduce_max": lambda x: mo.reduce_max(x[None], 0, keepdims=False),
    "reduce_max, indices": lambda x: mo.reduce_max(x[None], 0, keepdims=False, return_indices=True)[1] * 0.0 + x,
    "segment_max": lambda x: mo.segment_max(x, jnp.arange(len(x)), len(x), fill_mode="ZERO"),
    "segment_max, any order": lambda x: mo.segment_max(x, jnp.arange(len(x)), len(x), fill_mode="ZERO", sorted=False),
    "segment_max, indices": lambda x: (
        mo.segment_max(x, jnp.arange(len(x)), len(x), fill_mode="ZERO", return_indices=True)[1] * 0.0 + x
    ),
}


@pytest.mark.parametrize("operator", OPERATORS)
def test_modes_of_xla_are_what_they_were_after_a_call(operator: str) -> None:
    """Test that XLA treats subnormals after a call as it does without a call."""
    smallest = np.full(64, np.finfo(np.float32).smallest_normal)
    halves = fresh(lambda x: x * jnp.float32(0.5))(smallest)
    for _ in range(2):
        same(fresh(lambda x: (OPERATORS[operator](x) * 0.5).astype(jnp.float32))(smallest), np.asarray(halves))


def test_shapes_alone() -> None:
    shape = jax.ShapeDtypeStruct((3, 4), np.float16)
    ids = jax.ShapeDtypeStruct((3,), np.int32)
    got = jax.eval_shape(
        lambda x, i: mo.segment_max(x, i, 7, fill_mode="ZERO", return_indices=True, return_empty=True), shape, ids
    )
    assert [(part.shape, part.dtype) for part in got] == [((7, 4), np.float16), ((7, 4), np.int64), ((7,), np.bool)]
    assert jax.eval_shape(lambda x: mo.reduce_max(x, 1), shape).shape == (3, 1)


def test_donated_arguments() -> None:
    x, y = mixed(dtypes.FLOAT32, (64,), 1), mixed(dtypes.FLOAT32, (64,), 2)
    step = jax.jit(mo.maximum, donate_argnums=0)
    given = give(x)
    same(step(given, y), reference.maximum(x, y))
    assert given.is_deleted()


def test_loops_and_branches() -> None:
    data = mixed(dtypes.FLOAT32, (5, 8), 3)
    expected = reference.maximum(*data)
    same(fresh(lambda d: lax.scan(lambda high, row: (mo.maximum(high, row), None), d[0], d)[0])(data), expected)
    same(fresh(lambda d: lax.fori_loop(0, 5, lambda i, high: mo.maximum(high, d[i]), d[0]))(data), expected)

    def until(d: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, mo.maximum(c[1], d[c[0]])), (0, d[0]))[1]

    same(fresh(until)(data), expected)
    chosen = fresh(lambda p, a, b: lax.cond(p, lambda: mo.maximum(a, b), lambda: a))
    same(chosen(True, data[0], data[1]), reference.maximum(data[0], data[1]))


def test_python_and_numpy_beside_jax() -> None:
    x = mixed(dtypes.INT8, (2, 3), 4)
    same(mo.maximum(give(x), 5), reference.maximum(x, np.array(5, np.int8)))
    same(mo.maximum(x, give(x[0]), np.int8(5)), reference.maximum(x, x[0], np.array(5, np.int8)))
    floats = mixed(dtypes.FLOAT32, (6,), 5)
    same(mo.maximum(give(floats), floats.astype(">f4")), reference.maximum(floats, floats))
    same(mo.segment_max(floats, give(IDS), fill_mode="ZERO"), reference.segment_max(floats, IDS, 6, "ZERO"))
    same(
        mo.segment_max(give(floats), IDS.astype(">i8"), fill_mode="ZERO"), reference.segment_max(floats, IDS, 6, "ZERO")
    )


# ------------------------------------------------------------------------------------------- sub-computations

INNER: dict[str, Callable[[Any, Any], Any]] = {
    "scalars": mo.maximum,
    "scalars under jit": jax.jit(lambda a, b: mo.maximum(a, b)),  # noqa: PLW0108 - not the one of other tests
    "a scalar and Python's": lambda a, b: mo.maximum(a, b, -float("inf")),
    "reduced": lambda a, b: mo.reduce_max(mo.maximum(a, b)),
    "an array of them": lambda a, b: mo.reduce_max(jnp.stack([a, b]), keepdims=False),
    "an array of them, and where": lambda a, b: jnp.where(
        mo.reduce_max(jnp.stack([a, b]), keepdims=False, return_indices=True)[1] == 0, a, b
    ),
}


@pytest.mark.parametrize("inner", INNER)
def test_within_the_function_of_a_reduction(inner: str) -> None:
    """Test calls inside a reduction's function, where a custom call would crash XLA."""
    data = mixed(dtypes.FLOAT32, (9, 6), 11)
    function, lowest = INNER[inner], np.float32(-np.inf)

    def everywhere(d: Any) -> Any:
        yield lax.reduce(d, lowest, function, (0,))
        yield lax.reduce_window(d, lowest, function, (3, 1), (3, 1), "VALID")
        yield jax.vmap(lambda row: lax.reduce(row, lowest, function, (0,)))(d)

    columns, windows, rows = fresh(lambda d: [*everywhere(d)])(data)
    same(columns, reference.reduce_max(data, (0,), keepdims=False))
    same(windows, reference.reduce_max(data.reshape(3, 3, 6), (1,), keepdims=False))
    same(rows, reference.reduce_max(data, (1,), keepdims=False))


def test_within_the_function_of_a_scatter() -> None:
    data = mixed(dtypes.BFLOAT16, (4, 5), 12)
    for function in (lambda v: mo.maximum(v, 0.5), lambda v: mo.reduce_max(jnp.full(2, mo.maximum(v, 0.5)))[0]):
        got = give(data).at[np.array([2, 0])].apply(function)
        expected = data.copy()
        expected[[2, 0]] = reference.maximum(data[[2, 0]], np.array(0.5, data.dtype))
        same(got, expected)


def test_beside_a_reduction_calls_are_what_they_were(lowering: str) -> None:
    """Test the same call inside and outside a reduction's function, and in control flow."""

    def both(d: Any) -> Any:
        high = lax.reduce(d, np.float32(0), mo.maximum, (0,))
        return lax.cond(d[0, 0] > 0, lambda: mo.maximum(d, high), lambda: mo.maximum(high, d))

    text = jax.jit(both).lower(np.zeros((3, 4), np.float32)).as_text()
    assert ("custom_call @maxops_maximum" in text) == (lowering == "custom-calls")


# -------------------------------------------------------------------------------------------- JAX's own checks

TRANSFORMED: dict[str, Callable[[Callable[..., Any]], Callable[..., Any]]] = {
    "jit": jax.jit,
    "vmap": jax.vmap,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: jax.linearize(f, x)[1](x),
    "gradient of vmap": lambda f: jax.grad(lambda x: jax.vmap(f)(x).sum()),
    "vmap of gradient": lambda f: jax.vmap(jax.grad(lambda x: f(x).sum())),
    "checkpoint": lambda f: jax.grad(lambda x: jax.checkpoint(f)(x).sum()),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
def test_nothing_leaks_out_of_a_trace(transformed: str) -> None:
    """Test that no rule keeps a tracer, which would be invalid in the next trace."""
    x = mixed(dtypes.FLOAT32, (4, 4, 3), 14, nans=0.0)

    def every(x: Any) -> Any:
        even, at = mo.reduce_max(x, 0, return_indices=True, ties="even")
        first = mo.segment_max(x, np.zeros(len(x), np.int32), 1, initial=0.0, ties="first")
        return mo.maximum(even, first, 0.5) * mo.reduce_max(x, 0, ties="first") + at

    with jax.checking_leaks():
        jax.eval_shape(TRANSFORMED[transformed](every), x)


@pytest.mark.parametrize("length", [1, 8, 9])
@pytest.mark.parametrize("dtype", [dtypes.BOOL, dtypes.UINT8, dtypes.BFLOAT16, dtypes.FLOAT32], ids=str)
def test_indices_along_short_axes(dtype: DType, length: int) -> None:
    """Test lengths for which XLA, instead of the native core, finds the indices."""
    x = mixed(dtype, (5, 2000, length), length)
    for axes in (2, (1, 2), 0):
        for nan in ("propagate", "ignore"):
            results = mo.reduce_max(give(x), axes, return_indices=True, nan=nan)
            expected = mo.reduce_max(x, axes, return_indices=True, nan=nan)
            same(results[0], expected[0])
            assert np.array_equal(results[1], expected[1])


@pytest.mark.parametrize("lowering", ["custom-calls"], indirect=True)
def test_few_short_axes_are_reduced_by_the_native_core(lowering: str) -> None:
    """Test that a few results do not use XLA's loop, which takes up to five times as long."""
    assert lowering == "custom-calls"
    lowered = jax.jit(lambda x: mo.reduce_max(x, axis=1, return_indices=True)).lower(jnp.zeros((300, 8)))
    assert "maxops_argmax" in lowered.as_text()


def test_without_compiling() -> None:
    data = mixed(dtypes.FLOAT32, (3, 4), 15)
    with jax.disable_jit():
        high, row = mo.maximum(give(data), data[:1]), mo.reduce_max(give(data), 0, return_indices=True)
        mapped = jax.vmap(lambda d: mo.segment_max(d, np.array([0, 0, 1, 1]), 2, fill_mode="ZERO"))(give(data))
    same(high, reference.maximum(data, data[:1]))
    same(row[0], reference.reduce_max(data, (0,)))
    same(mapped, reference.reduce_max(data.reshape(3, 2, 2), (2,), keepdims=False))


# --------------------------------------------------------------------------------------------------- errors


def test_what_jax_arrays_cannot_do() -> None:
    x = give(np.zeros((2, 3), np.float32))
    with pytest.raises(errors.OutputError, match="not supported by the jax engine, which always returns new arrays"):
        mo.maximum(x, x, out=np.zeros((2, 3), np.float32))
    with pytest.raises(errors.DTypeError, match="input 1 is float64, but input 0 is float32"):
        mo.maximum(x, np.zeros(3))
    with pytest.raises(errors.DTypeError, match="data has dtype real, but JAX does not support rationals"):
        mo.segment_max(np.array([1, 2], object), give(np.array([0, 1])), fill_mode="ZERO")
    with pytest.raises(errors.DTypeError, match="float8_e4m3fn"):
        mo.maximum(jnp.zeros(3, jnp.float8_e4m3fn), 1)
    with pytest.raises(errors.OutputTooLargeError, match="GiB of memory"):
        mo.segment_max(x, give(np.array([0, 1 << 50])), fill_mode="ZERO")


def test_shapes_and_types_are_refused_while_tracing() -> None:
    x, ids = np.zeros((6, 3), np.float32), IDS
    with pytest.raises(errors.ShapeError, match="axis -1 has size 2, expected 3"):
        fresh(mo.maximum)(x, x[:, :2].copy())
    with pytest.raises(errors.AxesError, match=r"axes must be between .*, got 2"):
        fresh(lambda d: mo.reduce_max(d, 2))(x)
    with pytest.raises(errors.NumSegmentsError, match=r"requires num_segments .* segment_ids are traced"):
        fresh(lambda d, i: mo.segment_max(d, i, fill_mode="ZERO"))(x, ids)
    with pytest.raises(errors.NumSegmentsError, match=r"num_segments must be known under jax.*static_argnames"):
        fresh(lambda d, i, n: mo.segment_max(d, i, n, fill_mode="ZERO"))(x, ids, 6)
    with pytest.raises(errors.AxesError, match=r"axes must be known under jax.*static_argnames"):
        fresh(mo.reduce_max)(x, 1)
    with pytest.raises(errors.AttributeValueError, match=r"keepdims must be known under jax.*static_argnames"):
        fresh(lambda d, keep: mo.reduce_max(d, 1, keepdims=keep))(x, True)
    # ids that are not traced are known, as are their number and their faults
    known, wrong = give(ids), give(ids[::-1].copy())
    assert fresh(lambda d: mo.segment_max(d, known, fill_mode="ZERO"))(x).shape == (6, 3)
    with pytest.raises(errors.SegmentIdsError, match="got 2 after 5 at position 1"):
        fresh(lambda d: mo.segment_max(d, wrong, 6, fill_mode="ZERO"))(x)


WRONG: dict[str, tuple[list[int], dict[str, Any]]] = {
    "decreasing": ([0, 1, 2, 1, 4, 5], {}),
    "negative": ([-4, 1, 2, 3, 4, 5], {}),
    "past": ([0, 1, 2, 3, 4, 6], {"out_of_range": "error"}),
    "any-negative": ([0, 4, -2, 1, 4, 5], {"sorted": False}),
    "any-past": ([0, 7, 2, 1, 4, 5], {"sorted": False}),
    "decreasing-drop": ([-1, -2, 0, 1, 4, 9], {"out_of_range": "drop"}),
    "begin": ([1, 2, 6], {}),
    "down": ([0, 3, 2, 6], {}),
    "end": ([0, 2, 7], {}),
}


@pytest.mark.parametrize("name", WRONG)
def test_bad_ids_under_jit_have_the_same_text(name: str, lowering: str) -> None:
    """Test the text of errors. Other devices do not check ids, and return an unspecified result of the right shape."""
    values, options = WRONG[name]
    ids, data = np.array(values), np.zeros((6, 2), np.float32)
    where = "offsets" if name in ("begin", "down", "end") else "segment_ids"

    def call(d: Any, i: Any) -> Any:
        return mo.segment_max(d, num_segments=6, fill_mode="ZERO", **{where: i}, **options)

    with pytest.raises((errors.SegmentIdsError, errors.OffsetsError)) as on_numpy:
        call(data, ids)
    with pytest.raises(type(on_numpy.value), match=re.escape(str(on_numpy.value))):
        call(give(data), give(ids))
    if lowering == "integer-keys":
        assert fresh(call)(data, ids).shape == (6, 2)
        return
    with pytest.raises(jax.errors.JaxRuntimeError, match=re.escape(str(on_numpy.value))):
        fresh(call)(data, ids).block_until_ready()


@pytest.mark.parametrize("ids", [[9, -5, 1 << 40, 0, -(1 << 40), 5], [5, 4, 3, 2, 1, 0]], ids=str)
@pytest.mark.parametrize("where", ["segment_ids", "offsets"])
def test_unchecked_ids_harm_nothing(ids: list[int], where: str) -> None:
    data, named = np.zeros((6, 2), np.float32), {where: np.array(ids)}

    def call(d: Any, named: Any) -> Any:
        return mo.segment_max(d, num_segments=6, fill_mode="ZERO", check_ids=False, **named)

    assert call(give(data), named).shape == (6, 2)
    assert fresh(call)(data, named).shape == (6, 2)


# ----------------------------------------------------------------------------------------------------- vmap


def test_a_mapped_call_stays_one(lowering: str) -> None:
    """Test that vmap adds an axis to the operator, without a loop around it."""
    text = jax.jit(jax.vmap(lambda d: mo.reduce_max(d, 0))).lower(np.zeros((9, 5), np.float32)).as_text()
    assert text.count("custom_call @maxops_reduce_max") == (lowering == "custom-calls")
    assert "while" not in text


def test_many_large_arrays_at_once() -> None:
    """Test calls that use the core's threads from several of XLA's threads."""
    data = mixed(dtypes.FLOAT32, (4, 300_000), 5, nans=0.0)
    highs = fresh(lambda d: [mo.reduce_max(d[k], keepdims=False) for k in range(4)])(data)
    for k, high in enumerate(highs):
        same(high, mo.reduce_max(data[k], keepdims=False))
    same(fresh(mo.maximum)(data[0], data[1]), mo.maximum(data[0], data[1]))
