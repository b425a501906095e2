"""Max and ReduceMax of Dask arrays: chunks do not change any bit, and nothing is computed early."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maxops as mo
from dask_chunks import chunkings, computed, lazy
from helpers.bits import assert_same_bits, mixed
from maxops import _native, dtypes, errors
from maxops.typing import FillMode

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")

DTYPES = (dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.INT8)
SHAPES = ((4, 3), (1, 3), (4, 1), (3,), (1,), (), (0, 3), (0, 1), (2, 4, 3))


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_maximum_however_it_is_cut(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    shapes = data.draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    arrays = [mixed(dtype, shape, seed, nans=0.1) for seed, shape in enumerate(shapes)]
    try:
        expected = mo.maximum(*arrays)
    except errors.ShapeError:
        with pytest.raises(errors.ShapeError):
            mo.maximum(*map(lazy, arrays))
        return
    given = [lazy(array, data.draw(chunkings(array.shape))) for array in arrays]
    kept = data.draw(st.integers(0, len(arrays) - 1))  # the others may be NumPy arrays
    mixture = [one if n == kept or data.draw(st.booleans()) else arrays[n] for n, one in enumerate(given)]
    assert_same_bits(computed(mo.maximum(*mixture)), expected)


@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_reduce_max_however_it_is_cut(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(DTYPES))
    shape = data.draw(st.sampled_from([(5, 4, 3), (7,), (0, 3), (4, 0, 2), (), (6, 5)]))
    few = np.random.default_rng(data.draw(st.integers(0, 9))).integers(0, 3, shape).astype(dtype.numpy)
    array = data.draw(st.sampled_from([few, mixed(dtype, shape, 5, nans=0.2)]))
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True)) if shape else []
    options: dict[str, Any] = {
        "axes": tuple(axes),
        "keepdims": data.draw(st.booleans()),
        "initial": data.draw(st.sampled_from([None, 1])),
        "return_indices": True,
    }
    unknown = bool(shape) and data.draw(st.booleans())
    got = mo.reduce_max(lazy(array, data.draw(chunkings(shape)), unknown=unknown), **options)
    for result, expected in zip(got, mo.reduce_max(array, **options), strict=True):
        assert_same_bits(computed(result), expected)


@settings(deadline=None, max_examples=15)
@given(data=st.data())
def test_maximum_of_blocks_of_unknown_size(data: st.DataObject) -> None:
    one, two = mixed(dtypes.FLOAT32, (6, 4), 1), mixed(dtypes.FLOAT32, (6, 1), 2)
    row = mixed(dtypes.FLOAT32, (1, 4), 3)
    rows, columns = data.draw(chunkings((6, 4)))
    got = mo.maximum(lazy(one, (rows, columns), unknown=True), lazy(two, (rows, (1,)), unknown=True), row)
    assert_same_bits(computed(got), mo.maximum(one, two, row))
    got = mo.maximum(lazy(one, (rows, columns), unknown=True), lazy(one[::-1].copy(), (rows, (2, 2))))
    assert_same_bits(computed(got), mo.maximum(one, one[::-1]))


def test_blocks_of_unknown_size_that_differ_are_an_error_and_never_broadcast() -> None:
    one, two = (lazy(np.zeros(4, np.float32), (sizes,), unknown=True) for sizes in ((1, 3), (3, 1)))
    result = mo.maximum(one, two)
    with pytest.raises(
        errors.ShapeError, match=r"input 1 has a block of size [13] along axis -1, but the matching block of input 0"
    ):
        result.compute(scheduler="sync")
    with pytest.raises(errors.ShapeError, match=re.escape("input 0 has 2, input 1 has 3; call compute_chu")):
        mo.maximum(one, lazy(np.zeros(4, np.float32), ((1, 1, 2),), unknown=True))
    alone = lazy(np.zeros(4, np.float32), unknown=True)
    with pytest.raises(errors.ShapeError, match="sizes must be equal, or one must be 1"):
        mo.maximum(alone, np.zeros(3, np.float32)).compute(scheduler="sync")


def test_nothing_is_computed() -> None:
    def fail(*_: object, **__: object) -> None:
        raise AssertionError("computed")

    source = da.map_blocks(fail, chunks=((3, 3), (2, 2)), dtype=np.float32, meta=np.empty((0, 0), np.float32))
    ids = da.map_blocks(fail, chunks=((3, 3),), dtype=np.int64, meta=np.empty(0, np.int64))
    with dask.config.set(scheduler=fail):
        mo.maximum(source, source)
        mo.reduce_max(source, return_indices=True)
        for is_sorted in (True, False):
            mo.segment_max(source, ids, fill_mode="ZERO", sorted=is_sorted, return_indices=True, return_empty=True)
        mo.segment_max(source, np.arange(6), fill_mode="ZERO")
        mo.segment_max(source, offsets=da.from_array(np.array([0, 6])), fill_mode="ZERO")


def test_same_call_same_name() -> None:
    array, ids = mixed(dtypes.BFLOAT16, (6, 4)), np.array([0, 0, 1, 1, 1, 3])

    def names(fill: FillMode, beside: Any) -> list[str]:
        source = da.from_array(array, chunks=2, name="source")
        results = [mo.maximum(source, beside), mo.reduce_max(source, 0)]
        results += [mo.segment_max(source, ids, fill_mode=fill), mo.segment_max(source, ids, initial=2)]
        return [result.name for result in results]

    assert names("ZERO", array) == names("ZERO", array.copy())
    changed = names("LOWEST", array[::-1])
    assert [a == b for a, b in zip(names("ZERO", array), changed, strict=True)] == [False, True, False, True]
    assert len(set(changed)) == 4
    assert all(name.startswith(("maxops-maximum", "maxops-reduce-max", "maxops-segment-max")) for name in changed)


@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_schedulers(scheduler: str) -> None:
    array, ids = mixed(dtypes.FLOAT32, (12, 3), 4), np.array([0, 0, 1, 1, 1, 3, 3, 3, 3, 3, 7, 8])
    source = lazy(array, (5, 2))
    results = [mo.maximum(source, 0.5), *mo.reduce_max(source, 0, return_indices=True)]
    results += mo.segment_max(source, lazy(ids, 4), fill_mode="ZERO", return_indices=True, return_empty=True)
    correct = [mo.maximum(array, 0.5), *mo.reduce_max(array, 0, return_indices=True)]
    correct += mo.segment_max(array, ids, fill_mode="ZERO", return_indices=True, return_empty=True)
    for got, expected in zip(dask.base.compute(*results, scheduler=scheduler, num_workers=2), correct, strict=True):
        assert_same_bits(got, expected)


def test_arrays_under_query_planning() -> None:
    """Test a setting that Dask reads only on import."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, str(Path(__file__).with_name("dask_planning.py"))], check=True, env=environment)


ERRORS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, errors.MaxopsError)]


@pytest.mark.parametrize("kind", ERRORS)
def test_errors_of_workers_come_back_whole(kind: type[errors.MaxopsError]) -> None:
    """Test each error as workers of Dask send it: tblib, which Dask and distributed use, has its own pickles."""
    pickling_support = pytest.importorskip("tblib.pickling_support")
    error = kind("position 4", "OpenVINO.SegmentMax-16.ids")
    pickling_support.install(error)
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.clause, again.message, type(again)) == (str(error), error.clause, error.message, kind)


def test_rationals() -> None:
    array = np.array([[Fraction(1, 3), 2], [Fraction(7, 2), 1], [0, 5]], object)
    source = lazy(array, ((0, 1, 2, 0), 1))
    assert mo.reduce_max(source, 0, keepdims=False).compute(scheduler="sync").tolist() == [Fraction(7, 2), 5]
    values, places = dask.base.compute(*mo.reduce_max(source, return_indices=True), scheduler="sync")
    assert (values.tolist(), places.tolist()) == ([[5]], [[5]])
    values, places = dask.base.compute(*mo.reduce_max(source, axis=None, return_indices=True), scheduler="sync")
    assert (values.tolist(), places.tolist()) == (5, 5)
    got = mo.segment_max(source, lazy(np.array([0, 0, 2]), 1), fill_mode="ZERO").compute(scheduler="sync")
    assert got.tolist() == [[Fraction(7, 2), 2], [0, 0], [0, 5]]
    with pytest.raises(errors.EmptyReductionError, match="no lowest value"):
        mo.segment_max(source, lazy(np.array([0, 0, 2])), fill_mode="LOWEST").compute(scheduler="sync")
    with pytest.raises(errors.EmptyReductionError, match="rationals have no lowest value"):
        mo.reduce_max(lazy(array[:0], unknown=True)).compute(scheduler="sync")


MASKED: dict[str, Any] = {
    "NumPy's": lambda array: np.ma.masked_array(array, False),
    "in blocks": lambda array: da.from_array(np.ma.masked_array(array, False), asarray=False),
    "made by Dask": lambda array: da.ma.masked_array(da.from_array(array)),
}
CALLS_WITH_MASKS: dict[str, Any] = {
    "input 0": lambda mask, plain, ids: mo.maximum(mask(plain), lazy(plain)),
    "input 1": lambda mask, plain, ids: mo.maximum(lazy(plain), mask(plain)),
    "data": lambda mask, plain, ids: mo.segment_max(mask(plain), lazy(ids), fill_mode="ZERO"),
    "segment_ids": lambda mask, plain, ids: mo.segment_max(lazy(plain), mask(ids), fill_mode="ZERO"),
    "offsets": lambda mask, plain, ids: mo.segment_max(lazy(plain), offsets=mask(ids), fill_mode="ZERO"),
}


@pytest.mark.parametrize("kind", MASKED)
@pytest.mark.parametrize("name", CALLS_WITH_MASKS)
def test_masked_arrays_are_an_error_of_the_call(name: str, kind: str) -> None:
    with pytest.raises(errors.DTypeError, match=f"{name} must be .*, got MaskedArray; fill masked elements"):
        CALLS_WITH_MASKS[name](MASKED[kind], np.arange(3.0), np.array([0, 0, 3]))
    with pytest.raises(errors.DTypeError, match=r"data must be .*, got MaskedArray"):
        mo.reduce_max(MASKED[kind](np.arange(3.0)))


def test_blocks_of_a_kind_that_no_engine_takes_are_an_error_of_the_call() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(errors.DTypeError, match=r"data must be .*, got csr_array"):
        mo.reduce_max(lazy(np.zeros((2, 2))).map_blocks(sparse.csr_array))


@pytest.mark.parametrize("name", ["segment_ids", "offsets"])
@pytest.mark.parametrize("check_ids", [True, False])
def test_ids_in_blocks_of_another_dtype_are_an_error(name: str, check_ids: bool) -> None:
    """Test blocks that do not have the dtype of their array, such as those from a function with a wrong `meta`."""
    for other in (np.float64, object):
        named = lazy(np.array([0, 1, 3]), 2).map_blocks(np.ndarray.astype, other, meta=np.empty(0, np.int64))
        result = mo.segment_max(lazy(np.arange(3.0), 2), fill_mode="ZERO", check_ids=check_ids, **{name: named})
        with pytest.raises(errors.DTypeError, match=f"{name} must have dtype .*, got {np.dtype(other)}; "):
            result.compute(scheduler="sync")


def test_byte_order_and_layout() -> None:
    array = mixed(dtypes.FLOAT64, (4, 6), 3)
    swapped = lazy(array.astype(array.dtype.newbyteorder(">")), 3)
    assert_same_bits(computed(mo.maximum(swapped, array.T.copy().T)), mo.maximum(array))
    assert_same_bits(computed(mo.reduce_max(swapped, noop_with_empty_axes=True)), array)


def test_arrays_of_nothing_in_several_blocks() -> None:
    """Test empty arrays in several blocks, which Dask's rechunk does not change."""
    nothing = np.zeros((0,), np.float32)
    three, two = lazy(nothing, ((0, 0, 0),)), lazy(nothing, ((0, 0),))
    assert_same_bits(computed(mo.maximum(three, two)), nothing)
    assert_same_bits(computed(mo.maximum(three, nothing, two)), nothing)
    square = np.zeros((0, 0), np.float32)
    got = mo.maximum(lazy(square, ((0, 0), (0,))), two)
    assert_same_bits(computed(got), square)


@pytest.mark.parametrize(
    ("on_worker", "expected", "after"), [(True, "", 0), (True, "64M", 64 << 20), (False, "", 64 << 20)]
)
def test_the_cache_of_outputs_is_off_on_workers(
    monkeypatch: pytest.MonkeyPatch, on_worker: bool, expected: str, after: int
) -> None:
    def get_worker() -> object:
        if not on_worker:
            raise ValueError("No worker found")
        return object()

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(get_worker=get_worker))
    monkeypatch.setenv("MAXOPS_OUTPUT_CACHE", expected)
    before = mo.memory_info().limit
    _native.set_cache_limit(64 << 20)
    try:
        mo.maximum(lazy(np.zeros(3, np.float32)), 1).compute(scheduler="sync")
        assert mo.memory_info().limit == after
    finally:
        _native.set_cache_limit(before)
