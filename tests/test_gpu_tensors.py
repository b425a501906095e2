# ruff: noqa: E402 - what needs torch comes after the look for it
"""The GPU's kernels on tensors as PyTorch has them: strides, `out`, places of tensors, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import held
from bits import assert_same_bits, mixed
from held import DEVICE, array_of, tensor_of
from maxops import dtypes, errors, reference

F32 = dtypes.FLOAT32


def layouts(tensor: Any) -> dict[str, Any]:
    """The same values in other places and steps."""
    shape = tuple(tensor.shape)
    apart = torch.zeros((*shape[:-1], shape[-1] * 2 + 1), dtype=tensor.dtype, device=DEVICE)[..., 1::2]
    apart.copy_(tensor)
    axes = tuple(reversed(range(tensor.ndim)))
    across = torch.empty(tuple(reversed(shape)), dtype=tensor.dtype, device=DEVICE).permute(axes)
    across.copy_(tensor)
    return {"contiguous": tensor, "apart": apart, "across": across}


@pytest.mark.parametrize("layout", ["contiguous", "apart", "across"])
@pytest.mark.parametrize("dtype", [dtypes.FLOAT16, dtypes.FLOAT64, dtypes.UINT8], ids=str)
def test_strides(dtype: dtypes.DType, layout: str) -> None:
    a, b = mixed(dtype, (5, 6, 7), 1), mixed(dtype, (5, 6, 7), 2)
    x, y = layouts(tensor_of(a))[layout], tensor_of(b)
    assert_same_bits(array_of(held.maximum(x, y)), reference.maximum(a, b))
    assert_same_bits(array_of(held.maximum(x, x)), reference.maximum(a, a))
    for axes in ((0,), (1,), (2,), (0, 2), (1, 2)):
        values, places = held.reduce_max(x, axes, keepdims=False, return_indices=True)
        want = reference.reduce_max(a, axes, keepdims=False)
        assert_same_bits(array_of(values), want)
        assert_same_bits(array_of(places), reference.first_in_axes(a, axes, want))
    ids = np.array([0, 0, 1, 1, 1])
    want = reference.segment_max(a, ids, 2, "ZERO")
    assert_same_bits(array_of(held.segment_max(x, tensor_of(ids), fill_mode="ZERO")), want)
    unsorted = tensor_of(ids[::-1].copy())
    want = reference.segment_max(a, ids[::-1], 2, "ZERO")
    assert_same_bits(array_of(held.segment_max(x, unsorted, fill_mode="ZERO", sorted=False)), want)


def test_results_keep_the_layout_that_all_tensors_have() -> None:
    x = torch.zeros(3, 4, 5, device=DEVICE).permute(2, 0, 1)
    assert held.maximum(x, x).stride() == x.stride()


def test_ids_and_offsets_may_have_steps() -> None:
    data, ids, offsets = mixed(F32, (6,)), np.array([0, 0, 1, 1, 3, 3]), np.array([0, 2, 4, 4, 6])
    want = reference.segment_max(data, ids, 4, "ZERO")
    apart = tensor_of(np.repeat(ids, 2))[::2]
    assert_same_bits(array_of(held.segment_max(tensor_of(data), apart, fill_mode="ZERO")), want)
    apart = tensor_of(np.repeat(offsets, 3))[::3]
    assert_same_bits(array_of(held.segment_max(tensor_of(data), offsets=apart, fill_mode="ZERO")), want)
    unsorted = tensor_of(np.repeat(ids, 2))[::2]
    assert_same_bits(array_of(held.segment_max(tensor_of(data), unsorted, fill_mode="ZERO", sorted=False)), want)


def test_more_inputs_than_one_pass_takes() -> None:
    arrays = [mixed(F32, (2, 9), seed) for seed in range(19)]
    want = reference.maximum(*arrays)
    assert_same_bits(array_of(held.maximum(*map(tensor_of, arrays))), want)


@pytest.mark.parametrize("scalar", [2.5, -0.0, np.nan, np.float32(np.inf)])
def test_scalars_go_into_the_kernel(scalar: Any) -> None:
    a, b = mixed(F32, (40,), 1), mixed(F32, (40,), 2)
    want = reference.maximum(a, np.array(scalar, np.float32), b)
    assert_same_bits(array_of(held.maximum(tensor_of(a), scalar, tensor_of(b))), want)


def test_initial_and_num_segments_may_lie_on_the_device() -> None:
    data = mixed(F32, (4, 3))
    first = tensor_of(np.array(1.5, np.float32))
    want = reference.reduce_max(data, (0,), initial=np.array(1.5, np.float32))
    assert_same_bits(array_of(held.reduce_max(tensor_of(data), 0, initial=first)), want)
    ids, count = np.array([0, 0, 1, 1]), tensor_of(np.array(3))
    want = reference.segment_max(data, ids, 3, "ZERO")
    assert_same_bits(array_of(held.segment_max(tensor_of(data), tensor_of(ids), count, fill_mode="ZERO")), want)


def test_out_may_overlap_the_inputs() -> None:
    a = mixed(F32, (6, 6), 1)
    x = tensor_of(a)
    assert held.maximum(x, x.t(), out=x) is x
    assert_same_bits(array_of(x), reference.maximum(a, a.T))
    x = tensor_of(a)
    assert held.reduce_max(x, 0, keepdims=False, out=x[2]).data_ptr() == x[2].data_ptr()
    assert_same_bits(array_of(x[2]), reference.reduce_max(a, (0,), keepdims=False))
    x = tensor_of(a)
    held.segment_max(x, tensor_of(np.array([0, 0, 0, 1, 1, 1])), out=x[::3], fill_mode="ZERO")
    want = reference.segment_max(a, np.array([0, 0, 0, 1, 1, 1]), 2, "ZERO")
    assert_same_bits(array_of(x[::3].contiguous()), want)


@pytest.mark.parametrize(
    ("out", "words"),
    [
        (torch.zeros(3, dtype=torch.int32, device=DEVICE), "out is torch.int32, but the inputs are torch.float32"),
        (torch.zeros(2, device=DEVICE), r"out has shape \(2,\), but the result has shape \(3,\)"),
        (np.zeros(3, np.float32), "out is of type ndarray; it is a tensor"),
    ],
)
def test_wrong_out(out: Any, words: str) -> None:
    with pytest.raises(errors.OutputError, match=words):
        held.maximum(torch.zeros(3, device=DEVICE), out=out)


def test_a_result_is_new_memory() -> None:
    """Also where it has the elements of an argument, bit for bit; with an output, that is the result."""
    x, ids = tensor_of(mixed(F32, (1, 3), 1)), torch.zeros(1, dtype=torch.int64, device=DEVICE)
    calls: list[Any] = [
        lambda out: held.maximum(x, out=out),
        lambda out: held.maximum(x, x, out=out),
        lambda out: held.reduce_max(x, noop_with_empty_axes=True, out=out),
        lambda out: held.reduce_max(x, noop_with_empty_axes=True, return_indices=True, out=out)[0],
        lambda out: held.reduce_max(x, 0, out=out),
        lambda out: held.segment_max(x, ids, fill_mode="ZERO", out=out),
        lambda out: held.segment_max(x, ids, fill_mode="ZERO", sorted=False, out=out),
    ]
    for call in calls:
        result = call(None)
        assert result.data_ptr() != x.data_ptr()
        assert_same_bits(array_of(result), array_of(x))
        out = torch.zeros_like(x)
        assert call(out) is out
        assert_same_bits(array_of(out), array_of(x))


def test_no_gradient_is_taken_through_it() -> None:
    x = torch.zeros(3, device=DEVICE, requires_grad=True)
    for result in (held.maximum(x, x), held.maximum(x, 1), held.reduce_max(x)):
        assert not result.requires_grad


def test_what_does_not_go_together() -> None:
    x = torch.zeros(3, device=DEVICE)
    with pytest.raises(errors.EngineError, match="nothing is moved there silently"):
        held.maximum(x, np.zeros(3, np.float32))
    with pytest.raises(errors.EngineError, match=r"input 1 lies on meta; the kernels take tensors"):
        held.maximum(x, torch.zeros(3, device="meta"))
    with pytest.raises(errors.EngineError, match=r"layout torch\.sparse_coo"):
        held.reduce_max(torch.zeros(3, 3, device=DEVICE).to_sparse())
    with pytest.raises(errors.DTypeError, match=r"data is torch\.complex64; the types are"):
        held.reduce_max(torch.zeros(3, dtype=torch.complex64, device=DEVICE))
    with pytest.raises(errors.EngineError, match="got no tensor"):
        held.maximum(np.float32(1))


def test_results_that_no_memory_holds() -> None:
    data, ids = torch.zeros(2, 3, device=DEVICE), torch.tensor([0, 1], device=DEVICE)
    with pytest.raises(errors.OutputTooLargeError, match="output needs a tensor of shape"):
        held.segment_max(data, ids, 2**60, fill_mode="ZERO")
