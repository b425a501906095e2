"""Configurations of JAX: without 64-bit types, and with options that forbid implicit conversions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors, reference
from maxops.dtypes import DType
from maxops.typing import Ties

jax = pytest.importorskip("jax")
engine = pytest.importorskip("maxops.engines.jax")


pytestmark = pytest.mark.usefixtures("lowering")


def test_indices_are_int32_without_64_bits() -> None:
    with jax.enable_x64(False):
        values, indices = mo.reduce_max(jax.numpy.ones((2, 3)), 1, return_indices=True)
        assert (values.dtype, indices.dtype) == (np.float32, np.int32)


def test_64_bits_are_refused_where_jax_has_none() -> None:
    with jax.enable_x64(True):
        wide = jax.numpy.ones(3, np.float64)
    with jax.enable_x64(False):
        narrow = jax.numpy.ones(3, np.float32)
        with pytest.raises(errors.DTypeError, match="input 1 is float64, but input 0 is float32"):
            mo.maximum(narrow, np.ones(3))
        with pytest.raises(errors.DTypeError, match="input 0 is float64, which JAX supports only with jax_enable_x64"):
            mo.maximum(wide, wide)
        with pytest.raises(errors.DTypeError, match="data is int64, which JAX supports only with"):
            mo.segment_max(np.arange(3), jax.numpy.arange(3), fill_mode="ZERO")


@pytest.mark.parametrize("options", [{}, {"sorted": False}, {"out_of_range": "drop"}], ids=str)
def test_ids_of_numpy_keep_their_meaning_without_64_bits(options: dict[str, Any]) -> None:
    """Test that ids become int32 for JAX without wrapping around to another segment."""
    data = mixed(dtypes.FLOAT32, (5, 2), 1)
    ids = np.array([0, 1, 1, (1 << 32), (1 << 32) + 1])
    with jax.enable_x64(False):
        given = jax.device_put(data)
        if options == {"sorted": False}:
            with pytest.raises(errors.SegmentIdsError, match="got 4294967296 at position 3"):
                mo.segment_max(given, ids, 2, fill_mode="ZERO", **options)
            return
        got = mo.segment_max(given, ids, 2, fill_mode="ZERO", **options)
        assert_same_bits(np.asarray(got), reference.segment_max(data, ids, 2, "ZERO"))
        got = mo.segment_max(given, offsets=np.array([0, 2, 5]), fill_mode="ZERO")
        assert_same_bits(np.asarray(got), reference.segment_max(data, np.array([0, 0, 1, 1, 1]), 2, "ZERO"))


@pytest.mark.parametrize("dtype", [dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.INT8, dtypes.BOOL], ids=str)
def test_options_against_what_is_implicit(dtype: DType) -> None:
    """Test that maxops broadcasts and converts explicitly."""
    data = np.arange(8).reshape(4, 2).astype(dtype.numpy)
    ids, offsets = np.arange(4) // 2, np.array([0, 1, 4])
    both: dict[str, Any] = {"return_indices": True, "return_empty": True}

    def total(x: Any, ties: Ties) -> Any:
        segments = mo.segment_max(x, ids, 3, fill_mode="ZERO", ties=ties)
        return mo.maximum(x, x[0], x[0, 0], ties=ties).sum() + mo.reduce_max(x, ties=ties).sum() + segments.sum()

    def every(x: Any) -> Any:
        yield mo.reduce_max(x, 0, return_indices=True)
        yield mo.segment_max(x, ids, 3, fill_mode="ZERO", **both)
        yield mo.segment_max(x, offsets=offsets, fill_mode="LOWEST", **both)
        yield mo.maximum(x, x[0], x[0, 0])
        if dtype.kind == "float":
            yield jax.grad(total)(x, "first"), jax.grad(total)(x, "even")

    with jax.numpy_rank_promotion("raise"), jax.numpy_dtype_promotion("strict"), jax.debug_nans(True):
        results = jax.jit(lambda x: [*every(x)])(data)
    assert_same_bits(np.asarray(results[3]), reference.maximum(data, data[0], data[0, 0]))


@pytest.mark.parametrize("option", ["debug_nans", "debug_infs"])
def test_a_value_that_jax_is_to_report_is_reported(option: str) -> None:
    """Test options with which JAX searches a compiled function for the operation that computed a NaN or an infinity."""
    given = jax.numpy.array([np.nan if option == "debug_nans" else np.inf, 1], np.float32)
    ids = np.array([0, 0])
    calls = (
        lambda x: mo.maximum(x, x),
        mo.reduce_max,
        lambda x: mo.segment_max(x, ids, 1, fill_mode="ZERO"),
        jax.vmap(lambda x: mo.maximum(x, x)),
    )
    for call in calls:
        call(given)  # compiled without the option
        with getattr(jax, option)(True):
            for tried in (call, call, jax.jit(call)):
                with pytest.raises(FloatingPointError):
                    tried(given)
