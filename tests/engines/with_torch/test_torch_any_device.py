# ruff: noqa: E402 - imports that require torch follow the check that it is installed
"""The code path of devices other than the CPU, run on the CPU: torch operators with the reference's bits.

`only_torch_operators` selects this path. The tables of all engines also test it, as the adapter "torch-any-device".
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import maxops as mo
from helpers.bits import assert_same_bits, each_type, fast_maximum, mixed, of_words, pool, ranks, spread
from maxops import dtypes, errors, reference
from maxops.dtypes import DType
from maxops.engines import torch as engine
from maxops.engines.torch import dispatch
from maxops.engines.torch.memory import tensor_of
from maxops.engines.torch.memory import view as array_of
from maxops.plan import Array

F32 = dtypes.FLOAT32


@pytest.fixture(autouse=True)
def _way() -> Iterator[None]:
    with engine.only_torch_operators():
        yield


@contextmanager
def core() -> Iterator[None]:
    """Select the CPU's own path in a context."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "_core_is_off", False)
        yield


@pytest.mark.parametrize("device", ["CPU", "CUDA", "HIP", "MPS", "XPU", "PrivateUse1"])
@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_every_device_has_a_kernel(name: str, device: str) -> None:
    assert torch._C._dispatch_has_computed_kernel_for_dispatch_key(f"maxops::{name}", device)


def test_the_core_is_off_only_within(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.tensor([1.0, 2.0])
    calls: dict[str, Any] = {
        "maximum": lambda: torch.ops.maxops.maximum([x], "even"),
        "reduce_max": lambda: torch.ops.maxops.reduce_max(x, None, True, False, None, False, "even"),
        # Python reads this number of segments
        "segment_max": lambda: mo.segment_max(x, torch.tensor([0, 1]), torch.tensor(2), fill_mode="ZERO"),
    }

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("the core was called")

    for function in ("maxops._native.maximum", "maxops._native.segment_max", "maxops.engines.numpy.run"):
        monkeypatch.setattr(function, fail)
    for call in calls.values():
        call()
        with core(), pytest.raises(AssertionError, match="the core was called"):
            call()


# ------------------------------------------------------------------------------------------- every small input


def check_pairs(one: Array, two: Array) -> None:
    """Compare the maxima of pairs of values with those of the oracle."""
    expected, both = fast_maximum(one, two), tensor_of(np.stack([one, two]))
    got, places = mo.reduce_max(both, 0, keepdims=False, return_indices=True)
    (segment,) = mo.segment_max(both, torch.tensor([0, 0]), fill_mode="ZERO")
    results: list[Any] = [got, segment, mo.maximum(*both), mo.reduce_max(both, 0, keepdims=False)]
    for result in results:
        assert_same_bits(array_of(result), expected)
    assert_same_bits(array_of(places), (ranks(two) > ranks(one)).astype(np.int64))


@each_type
def test_every_pair_of_the_pool(dtype: DType) -> None:
    values = pool(dtype)
    if len(values) > 2000:
        values = spread(dtype, 2000)
    check_pairs(*np.broadcast_arrays(values[:, np.newaxis], values))


@pytest.mark.parametrize("dtype", [dtypes.FLOAT16, dtypes.BFLOAT16, dtypes.INT16, dtypes.UINT16], ids=str)
def test_every_value_of_16_bits(dtype: DType) -> None:
    every = of_words(dtype, np.arange(1 << 16))
    for other in spread(dtype, 4):
        check_pairs(np.full(every.shape, other), every)
    assert_same_bits(array_of(mo.maximum(tensor_of(every))), fast_maximum(every))


HARD = [0.0, -0.0, np.nan, -np.inf, 1e-45, -1e-45]  # a device may flush the last two


@pytest.mark.parametrize("flushes", [False, True], ids=["keeps-subnormals", "flushes-subnormals"])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_every_short_row(length: int, flushes: bool) -> None:
    rows = np.array(list(product(HARD, repeat=length)), np.float32)
    rows.view(np.uint32)[::2][np.isnan(rows[::2])] = 0xFFFFABCD
    x, expected = tensor_of(rows), reference.reduce_max(rows, (1,), keepdims=False)
    if not torch.set_flush_denormal(flushes):
        pytest.skip("the processor has no such mode")
    try:
        assert (torch.tensor([1e-45]) * 1).any() != flushes
        got, places = mo.reduce_max(x, 1, keepdims=False, return_indices=True)
        (segment,) = mo.segment_max(x.T, torch.zeros(length, dtype=torch.int64), fill_mode="ZERO")
        results = [got, segment, mo.reduce_max(x, 1, keepdims=False), mo.maximum(*x.unbind(1))]
    finally:
        torch.set_flush_denormal(False)
    for result in results:
        assert_same_bits(array_of(result), expected)
    assert_same_bits(array_of(places), reference.first_in_axes(rows, (1,), expected))


@pytest.mark.parametrize("length", [0, 1, 2, 3, 4])
def test_every_short_list_of_ids(length: int) -> None:
    """Test unsorted ids, some of them dropped. test_unchecked_offsets.py tests offsets."""
    data = spread(F32, 2 * length).reshape(length, 2)
    for ids in product(range(-1, 3), repeat=length):
        named = np.array(ids, np.int64)
        drops: dict[str, Any] = {"sorted": False, "out_of_range": "drop", "return_indices": True, "return_empty": True}
        got = mo.segment_max(tensor_of(data), tensor_of(named), 2, fill_mode="LOWEST", **drops)
        expected = reference.segment_max(data, named, 2, "LOWEST")
        assert_same_bits(array_of(got[0]), expected)
        assert_same_bits(array_of(got[1]), reference.first_in_segments(data, named, expected))
        assert got[2].tolist() == [segment not in ids for segment in range(2)]


# ---------------------------------------------------------------------------------------------- layouts of tensors


def layouts(tensor: Any) -> dict[str, Any]:
    """Return tensors of the same values with other offsets and strides."""
    shape = tuple(tensor.shape)
    apart = torch.zeros((*shape[:-1], shape[-1] * 2 + 1), dtype=tensor.dtype)[..., 1::2]
    across = torch.empty(tuple(reversed(shape)), dtype=tensor.dtype).permute(tuple(reversed(range(tensor.ndim))))
    return {"contiguous": tensor, "apart": apart.copy_(tensor), "across": across.copy_(tensor)}


@pytest.mark.parametrize("layout", ["contiguous", "apart", "across"])
@pytest.mark.parametrize("dtype", [dtypes.FLOAT16, dtypes.FLOAT64, dtypes.UINT8, dtypes.UINT32], ids=str)
def test_strides(dtype: DType, layout: str) -> None:
    a, b = mixed(dtype, (5, 6, 7), 1), mixed(dtype, (5, 6, 7), 2)
    x, y = layouts(tensor_of(a))[layout], tensor_of(b)
    assert_same_bits(array_of(mo.maximum(x, y)), reference.maximum(a, b))
    assert mo.maximum(x, x).stride() == torch.eq(x, x).stride()
    for axes in ((0,), (1,), (2,), (0, 2), (2, 1)):
        values, places = mo.reduce_max(x, axes, keepdims=False, return_indices=True)
        expected = reference.reduce_max(a, axes, keepdims=False)
        assert_same_bits(array_of(values), expected)
        assert_same_bits(array_of(places), reference.first_in_axes(a, axes, expected))
        assert_same_bits(array_of(mo.reduce_max(x, axes, keepdims=False)), expected)
    ids = np.array([1, 0, 1, 1, 0])
    got = mo.segment_max(x, tensor_of(ids), fill_mode="ZERO", sorted=False)
    assert_same_bits(array_of(got), reference.segment_max(a, ids, 2, "ZERO"))


def test_ids_and_offsets_may_have_steps() -> None:
    data, ids, offsets = mixed(F32, (6,)), np.array([0, 0, 1, 1, 3, 3]), np.array([0, 2, 4, 4, 6])
    expected = reference.segment_max(data, ids, 4, "ZERO")
    x = tensor_of(data)
    assert_same_bits(array_of(mo.segment_max(x, tensor_of(np.repeat(ids, 2))[::2], fill_mode="ZERO")), expected)
    apart = tensor_of(np.repeat(offsets, 3))[::3]
    assert_same_bits(array_of(mo.segment_max(x, offsets=apart, fill_mode="ZERO")), expected)


def test_many_inputs() -> None:
    arrays = [mixed(F32, (2, 9), seed) for seed in range(19)]
    assert_same_bits(array_of(mo.maximum(*map(tensor_of, arrays))), reference.maximum(*arrays))


def test_out_may_overlap_the_inputs() -> None:
    a = mixed(F32, (6, 6), 1)
    x = tensor_of(a.copy())
    assert mo.maximum(x, x.t(), out=x) is x
    assert_same_bits(array_of(x), reference.maximum(a, a.T))
    x = tensor_of(a.copy())
    mo.reduce_max(x, 0, keepdims=False, out=x[2])
    assert_same_bits(array_of(x[2]), reference.reduce_max(a, (0,), keepdims=False))
    x, ids = tensor_of(a.copy()), np.array([0, 0, 0, 1, 1, 1])
    mo.segment_max(x, tensor_of(ids), out=x[::3], fill_mode="ZERO")
    assert_same_bits(array_of(x[::3].contiguous()), reference.segment_max(a, ids, 2, "ZERO"))


@each_type
def test_a_result_is_new_memory(dtype: DType) -> None:
    """Test that a result is new memory even if it equals an argument bit for bit."""
    x, ids = tensor_of(spread(dtype, 3).reshape(1, 3)), torch.zeros(1, dtype=torch.int64)
    results = [
        mo.maximum(x),
        mo.maximum(x, x),
        mo.reduce_max(x, noop_with_empty_axes=True),
        mo.reduce_max(x, 0),
        mo.reduce_max(x, 0, return_indices=True)[0],
        mo.segment_max(x, ids, fill_mode="ZERO"),
    ]
    for result in results:
        assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


# --------------------------------------------------------------------------------------------------- ids and offsets


def test_a_wrong_last_id_takes_no_memory() -> None:
    ids = torch.tensor([3, 2, 2**62])
    with pytest.raises(errors.SegmentIdsError, match="got 2 after 3 at position 1"):
        mo.segment_max(torch.zeros(3), ids, fill_mode="ZERO")


@pytest.mark.parametrize("wrong", [[9, -5, 3, 2**40, 0], [0, 0, 4, 1, 1], [-1, -1, -1, -1, -1]])
def test_unchecked_wrong_ids_stay_within_bounds(wrong: list[int]) -> None:
    x = torch.ones(5)
    for sorted_ in (True, False):
        got = mo.segment_max(x, torch.tensor(wrong), 4, fill_mode="ZERO", check_ids=False, sorted=sorted_)
        assert got.tolist() == [float(segment in wrong) for segment in range(4)]


@pytest.mark.parametrize("options", [{}, {"num_segments": 1}, {"num_segments": 1, "sorted": False}])
def test_uint64_ids_that_no_int64_holds(options: dict[str, Any]) -> None:
    """Test that errors are those of the core, with the original ids."""
    x, ids = torch.zeros(3), tensor_of(np.array([0, 2**64 - 1, 2**63], np.uint64))
    message = []
    for way in (nullcontext, core):
        with way(), pytest.raises(errors.MaxopsError) as caught:
            mo.segment_max(x, ids, fill_mode="ZERO", **options)
        message.append((type(caught.value), str(caught.value)))
    assert message[0] == message[1]


@pytest.mark.parametrize("count", [2**60, 2**63 - 1, 2**63, 2**70])
def test_results_that_no_memory_holds(count: int) -> None:
    data, ids = torch.zeros(2, 3), torch.tensor([0, 1])
    words = "cannot allocate a tensor of shape" if count < 2**63 else "output would have shape"
    with pytest.raises(errors.OutputTooLargeError, match=words):
        mo.segment_max(data, ids, count, fill_mode="ZERO")


def test_graphs_and_batches() -> None:
    """Test graphs and batches. test_torch_gradients.py tests gradients on this path."""
    ids = torch.tensor([0, 0, 2])

    def run(x: Any) -> Any:
        reduced, indices = mo.reduce_max(x, 0, return_indices=True)
        return mo.maximum(x, -0.0), reduced, indices, mo.segment_max(x, ids, 3, fill_mode="LOWEST")

    x = tensor_of(mixed(F32, (3, 4), 1))
    with core():
        expected = run(x)
    compiled: Any = torch.compile(run, fullgraph=True, backend="aot_eager")
    for got in (compiled(x), [part[0] for part in torch.vmap(run)(x[None])]):
        for one, other in zip(got, expected, strict=True):
            assert_same_bits(array_of(one), array_of(other))
