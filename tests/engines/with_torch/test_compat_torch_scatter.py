"""`maxops.compat.torch_scatter`, compared with loops that define torch_scatter's results."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from maxops.errors import SegmentIdsError

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck  # noqa: E402

from maxops.compat import torch_scatter as compat  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")

DTYPES = [torch.half, torch.bfloat16, torch.float, torch.double, torch.int, torch.long, torch.uint8]
SCRIPTED: dict[str, Any] = {}


def scripted(name: str) -> Any:
    """Return a function compiled by TorchScript, which is cached."""
    return SCRIPTED.setdefault(name, torch.jit.script(getattr(compat, name)))


def by_loops(src: Any, index: Any, dim: int, count: int, out: Any = None) -> tuple[Any, Any]:
    """Compute the results one element after the other. The index has the shape of src, with -1 for no segment."""
    shape = list(src.shape)
    shape[dim] = count
    values = torch.zeros(shape, dtype=src.dtype) if out is None else out.clone()
    places = torch.full(shape, src.size(dim), dtype=torch.long)
    is_filled = torch.full(shape, out is not None)
    for position in np.ndindex(*src.shape):
        segment = int(index[position])
        if not 0 <= segment < count:
            continue
        at = (*position[:dim], segment, *position[dim + 1 :])
        if not is_filled[at] or src[position] > values[at]:
            values[at], places[at], is_filled[at] = src[position], position[dim], True
    return values, places


def same(found: tuple[Any, Any], expected: tuple[Any, Any]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tolist() == other.tolist()


def drawn(shape: tuple[int, ...], dtype: Any, seed: int) -> Any:
    return torch.tensor(np.random.default_rng(seed).integers(0, 50, shape)).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(7,), (7, 3), (3, 7), (2, 5, 3), (0,), (4, 0), (0, 3)], ids=str)
def test_scatter_max(shape: tuple[int, ...], dtype: Any) -> None:
    for dim, with_out, each in product(range(len(shape)), (False, True), (False, True)):
        src, rows = drawn(shape, dtype, 1), shape[dim]
        index = drawn(shape if each else (rows,), torch.long, 2) % 4
        whole = index
        if not each:
            whole = index.reshape([rows if axis == dim else 1 for axis in range(len(shape))]).expand(shape)
        out = drawn((*shape[:dim], 5, *shape[dim + 1 :]), dtype, 3) if with_out else None
        expected = by_loops(src, whole, dim, 5, out)
        for function in (compat.scatter_max, scripted("scatter_max")):
            given = None if out is None else out.clone()
            found = function(src, index, dim - len(shape), given, None if with_out else 5)
            same(found, expected)
            assert given is None or found[0] is given or torch.equal(found[0], given)
        if not with_out and rows and src.numel():
            same(compat.scatter_max(src, index, dim), by_loops(src, whole, dim, int(index.max()) + 1))


@pytest.mark.parametrize("shape", [(7,), (3, 7), (2, 7, 3), (0,), (3, 0)], ids=str)
def test_segments(shape: tuple[int, ...]) -> None:
    for dims in range(1, len(shape) + 1):
        dim = dims - 1
        src, rows = drawn(shape, torch.float, 4), shape[dim]
        index = (drawn(shape[:dims], torch.long, 5) % 4).sort(dim).values
        whole = index.reshape(index.shape + (1,) * (len(shape) - dims)).expand(shape)
        for function in (compat.segment_max_coo, scripted("segment_max_coo")):
            same(function(src, index, None, 6), by_loops(src, whole, dim, 6))
            out = drawn((*shape[:dim], 6, *shape[dims:]), torch.float, 6)
            same(function(src, index, out.clone()), by_loops(src, whole, dim, 6, out))
        if rows < 2:
            continue
        for bounds in ([0, 2, 2, rows], [1, 3, rows - 1], [0, rows], [2, 2]):  # some rows are in no segment
            indptr = torch.tensor(bounds).expand((*shape[:dim], len(bounds)))
            ids = torch.searchsorted(torch.tensor(bounds), torch.arange(rows), right=True) - 1
            ids = torch.where(ids < len(bounds) - 1, ids, -1)
            each = ids.reshape((1,) * dim + (rows,) + (1,) * (len(shape) - dims)).expand(shape)
            expected = by_loops(src, each, dim, len(bounds) - 1)
            for function in (compat.segment_max_csr, scripted("segment_max_csr")):
                same(function(src, indptr), expected)
                out = torch.full_like(expected[0], 99)
                found = function(src, indptr, out)
                same(found, expected)
                assert torch.equal(out, expected[0])


def test_gradients() -> None:
    src = torch.randperm(24, dtype=torch.double).reshape(2, 4, 3).requires_grad_()
    index = torch.tensor([0, 2, 2, 0])
    assert gradcheck(lambda x: compat.scatter(x, index, 1, reduce="max"), src)
    each = torch.randint(0, 3, src.shape)
    assert gradcheck(lambda x: compat.scatter(x, each, 2, reduce="max"), src)
    assert gradcheck(lambda x: compat.segment_coo(x, index.sort().values.expand(2, 4), reduce="max"), src)
    assert gradcheck(lambda x: compat.segment_csr(x, torch.tensor([[0, 2, 2, 4]]), reduce="max"), src)
    ties = torch.tensor([3.0, 3.0, 1.0], requires_grad=True)
    values, places = compat.scatter_max(ties, torch.tensor([0, 0, 0]))
    assert (values.tolist(), places.tolist()) == ([3], [0])
    assert torch.autograd.grad(values.sum(), ties)[0].tolist() == [1, 0, 0]


def test_what_differs() -> None:
    nan = torch.tensor([1.0, torch.nan, 2.0])
    values, places = compat.scatter_max(nan, torch.tensor([0, 0, 1]))
    assert (values.tolist(), places.tolist()) == ([1, 2], [0, 2])
    for index in ([0, -1, 0], [0, 3, 0]):
        with pytest.raises(SegmentIdsError):
            compat.scatter_max(nan, torch.tensor(index), dim_size=3)
    for place in (-(2**63), -(2**62), -1, 3, 2**62, 2**63 - 1):
        for shape in ((1, 2), (4, 3)):
            index = torch.zeros(shape, dtype=torch.long)
            index[0, 1] = place
            for out in (None, torch.zeros(3, shape[1])):
                with pytest.raises(SegmentIdsError, match=rf"between 0 and 2, got {place} at position \(0, 1\)"):
                    compat.scatter_max(torch.ones(shape), index, 0, out, 3)
    with pytest.raises(SegmentIdsError, match=r"less than num_segments \(2\), got 5 at position 2;"):
        torch.vmap(lambda src, index: compat.scatter_max(src, index, dim_size=2))(
            torch.ones(2, 3), torch.tensor([[0, 1, 5], [0, 0, 0]])
        )
    with pytest.raises(SegmentIdsError, match="must be non-decreasing"):
        compat.segment_max_coo(nan, torch.tensor([1, 0, 1]))
    for function in (compat.scatter, compat.segment_coo, compat.segment_csr):
        with pytest.raises(ValueError, match="reduce must be 'max'; use torch_scatter for other reductions"):
            function(nan, torch.tensor([0, 0, 1]))
