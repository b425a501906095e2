"""Exported JAX functions: for every platform, with static or symbolic sizes, and deserialized from bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors

jax = pytest.importorskip("jax")
engine = pytest.importorskip("maxops.engines.jax")
export = pytest.importorskip("jax.export")


CALLS: dict[str, Callable[..., Any]] = {
    "maximum": lambda d, i, o: mo.maximum(d, d[0], -1.0, d[:1]),
    "reduce_max": lambda d, i, o: mo.reduce_max(d, 1, return_indices=True),
    "reduce_max ignoring NaN": lambda d, i, o: mo.reduce_max(jax.numpy.where(d > 1, d, np.nan), 1, nan="ignore"),
    "reduce_max over all": lambda d, i, o: mo.reduce_max(d, initial=-5.0, return_indices=True),
    "segment_max": lambda d, i, o: mo.segment_max(d, i, 7, fill_mode="LOWEST", return_indices=True, return_empty=True),
    "segment_max in any order": lambda d, i, o: mo.segment_max(d, i, d.shape[0] + 2, fill_mode="ZERO", sorted=False),
    "segment_max by offsets": lambda d, i, o: mo.segment_max(
        d, offsets=o, fill_mode="ZERO", return_indices=True, return_empty=True
    ),
    "gradient": lambda d, i, o: jax.jit(
        jax.grad(lambda d: (mo.segment_max(d, i, 3, fill_mode="ZERO") * mo.reduce_max(mo.maximum(d, d[:1]), 0)).sum())
    )(d),
}


@pytest.mark.parametrize("sizes", ["known", "symbolic"])
@pytest.mark.parametrize("name", CALLS)
def test_exported(name: str, sizes: str) -> None:
    """Test functions exported for any platform without custom calls, which run where maxops is not installed."""
    data = mixed(dtypes.FLOAT32, (5, 4), 13, nans=0.0)
    ids, offsets = np.array([0, 0, 1, 2, 2], np.int32), np.array([0, 2, 2, 5], np.int32)
    given: Any = (data, ids, offsets)
    if sizes == "symbolic":
        n, k, m = export.symbolic_shape("n, k, m")
        shapes = (n, k - 1), (n,), (m + 1,)
        given = [jax.ShapeDtypeStruct(shape, a.dtype) for shape, a in zip(shapes, given, strict=True)]
    exported = export.export(jax.jit(CALLS[name]), platforms=("cpu", "cuda", "tpu"))(*given)
    assert "custom_call @maxops" not in exported.mlir_module()
    call = export.deserialize(exported.serialize()).call
    may_be_empty = sizes == "symbolic" and name in ("reduce_max", "reduce_max ignoring NaN")
    for columns in (4, 0) if may_be_empty else (4,):  # k - 1 may be 0 at run time
        part = data[:, :columns]
        results, expected = call(part, ids, offsets), CALLS[name](part, ids, offsets)
        for got, value in zip(*map(jax.tree.leaves, (results, expected)), strict=True):
            assert_same_bits(np.asarray(got), np.asarray(value).astype(got.dtype))


def test_symbolic_sizes_that_do_not_go_together() -> None:
    n, k = export.symbolic_shape("n, k")
    rows, columns = (jax.ShapeDtypeStruct((size,), np.float32) for size in (n, k))
    ids = jax.ShapeDtypeStruct((k,), np.int32)
    with pytest.raises(errors.ShapeError, match="axis -1 has size k, expected n"):
        export.export(jax.jit(mo.maximum))(rows, columns)
    with pytest.raises(errors.SegmentIdsError, match=r"segment_ids must have shape .*, got \(k,\)"):
        export.export(jax.jit(lambda d, i: mo.segment_max(d, i, 3, fill_mode="ZERO")))(rows, ids)
