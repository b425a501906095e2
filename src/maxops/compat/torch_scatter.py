"""The maximum functions of torch_scatter 2.1, with the same signatures, results, gradients and TorchScript support.

>>> import torch
>>> from maxops.compat.torch_scatter import scatter_max
>>> scatter_max(torch.tensor([1.0, 3.0, 2.0]), torch.tensor([0, 2, 0]))
(tensor([2., 0., 3.]), tensor([2, 3, 1]))

As in torch_scatter, an empty segment has the value 0 and the index ``src.size(dim)``. The element at the returned index
receives the gradient. Differences:

- NaN is ignored, including in ``out``, unless all elements are NaN. torch_scatter returns 0 if all elements are NaN,
  and keeps NaN in ``out``. +0 is greater than -0.
- If several elements equal the maximum, the index of the first one is returned.
- An out-of-range index, or a decreasing 1-D index in `segment_max_coo` without ``out``, raises an error, but
  torch_scatter does not check the index. Neither library checks the ``indptr`` of `segment_max_csr`: if ``indptr``
  decreases or is out of range, the results are unspecified.
- bool is supported. `scatter`, `segment_coo` and `segment_csr` support only ``reduce="max"``.
"""

from __future__ import annotations

from typing import Any

from maxops.extras import needed

with needed("maxops.compat.torch_scatter", "torch"):
    import torch

import maxops.engines.torch  # noqa: F401  (registers the operators)
from maxops import ops
from maxops.compat import at_once, index_error
from maxops.errors import DTypeError, SegmentIdsError

__all__ = [
    "scatter",
    "scatter_max",
    "segment_coo",
    "segment_csr",
    "segment_max_coo",
    "segment_max_csr",
]


_segment_max = at_once("segment_max")


def _by_ids(
    src: torch.Tensor, ids: torch.Tensor, count: int | None, dim: int, is_sorted: bool, drops: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return maxima and indices along an axis, given 1-D ids. An empty segment has the maximum 0 and the index -1."""
    out_of_range = "drop" if drops else "error"
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        values, indices = ops.segment_max(  # type: ignore[call-overload]
            src, ids, count, fill_mode="ZERO", sorted=is_sorted, out_of_range=out_of_range, axis=dim,
            return_indices=True, ties="first", nan="ignore",
        )  # fmt: skip
        return values, indices
    values, indices, _ = torch.ops.maxops.segment_max(
        src.movedim(dim, 0), ids, None, count, "ZERO", True, is_sorted, out_of_range, None, True, False, "first",
        None, "ignore",
    )  # fmt: skip
    return values.movedim(0, dim).contiguous(), indices.movedim(0, dim).contiguous()


def _by_each_id(
    src: torch.Tensor, index: torch.Tensor, count: int, dim: int, drops: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return maxima and indices, given one id per element: flatten the data, and use one segment per result."""
    moved = src.movedim(dim, 0)
    others = list(moved.shape[1:])
    columns = 1
    for size in others:
        columns *= size
    places = torch.arange(columns, device=src.device)
    if index.dtype == torch.int64:  # because the products of values far out of range would overflow
        index = index.clamp(-1, count)
    ids = torch.add(places, index.movedim(dim, 0).reshape(src.size(dim), columns), alpha=columns)
    values, indices = _by_ids(moved.reshape(-1), ids.reshape(-1), count * columns, 0, False, drops)
    indices = torch.div(indices, max(columns, 1), rounding_mode="floor")  # -1 remains -1
    shape = [count] + others  # noqa: RUF005  (TorchScript does not support unpacking)
    return values.reshape(shape).movedim(0, dim).contiguous(), indices.reshape(shape).movedim(0, dim).contiguous()


def _explained(
    src: torch.Tensor, index: torch.Tensor, dim: int, out: torch.Tensor | None, dim_size: int | None, is_sorted: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Call `_along`, and rephrase errors about segment ids. TorchScript calls `_along`, because it lacks ``try``."""
    try:
        return _along(src, index, dim, out, dim_size, is_sorted)
    except SegmentIdsError as error:
        if out is not None:
            dim_size = out.size(dim)
        elif dim_size is None:
            dim_size = int(index.max()) + 1
        raise index_error(error, index, dim_size) from None


def _along(
    src: torch.Tensor, index: torch.Tensor, dim: int, out: torch.Tensor | None, dim_size: int | None, is_sorted: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maximum of each group along an axis, and its index. `index` is 1-D or has the shape of the data."""
    rows = src.size(dim)
    count = dim_size
    before = 0
    if out is not None:  # elements of out are first, because they take precedence over equal elements of src
        count = before = out.size(dim)
        own = torch.arange(before, dtype=index.dtype, device=index.device)
        if index.dim() > 1:
            shape = [1] * src.dim()
            shape[dim] = before
            own = own.reshape(shape).expand(out.shape)
        index = torch.cat([own, index], 0 if index.dim() == 1 else dim)
        src = torch.cat([out.detach(), src], dim)
        is_sorted = False
    if index.dim() == 1:
        values, indices = _by_ids(src, index, count, dim, is_sorted, False)
    else:
        if count is None:
            count = 0 if index.numel() == 0 else int(index.max()) + 1
        values, indices = _by_each_id(src, index, count, dim, False)
    indices = indices - before if before > 0 else indices
    indices.masked_fill_(indices < 0, rows)
    if out is not None:
        out.copy_(values)
        return out, indices
    return values, indices


def _check_tensors(src: Any, index: Any, out: Any, name: str = "index") -> None:
    """Raise an error for an argument that is not a tensor. TorchScript itself checks the types."""
    if (
        isinstance(src, torch.Tensor)
        and isinstance(index, torch.Tensor)
        and (out is None or isinstance(out, torch.Tensor))
    ):
        return
    for argument, value in (("src", src), (name, index), ("out", out)):
        if not isinstance(value, torch.Tensor) and not (argument == "out" and value is None):
            raise DTypeError(f"{argument} must be a torch.Tensor, got {type(value).__name__}")


def _expanded(index: torch.Tensor, src: torch.Tensor) -> torch.Tensor:
    """Expand an index to the shape of the data. The dimensions of the index are the first ones of the data."""
    while index.dim() < src.dim():
        index = index.unsqueeze(-1)
    return index.expand(src.shape)


def scatter_max(
    src: torch.Tensor, index: torch.Tensor, dim: int = -1, out: torch.Tensor | None = None, dim_size: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """For each index along an axis, return the maximum of the elements with this index, and its position.

    >>> src = torch.tensor([[1, 5, 3], [2, 4, 8]])
    >>> scatter_max(src, torch.tensor([[0, 1, 0], [0, 0, 1]]), dim=1)
    (tensor([[3, 5],
            [4, 8]]), tensor([[2, 1],
            [1, 2]]))

    Args:
        src: the source tensor.
        index: segment ids in any order: one per slice along ``dim``, or a tensor that expands to the shape of src
            after axes of size 1 are appended.
        dim: the axis to reduce.
        out: the output tensor, whose elements are included in the maxima.
        dim_size: the number of segments, by default the highest index plus one. It is ignored if ``out`` is passed.

    Returns:
        The maxima, in ``out`` if it is passed, and their positions along ``dim``. A position is ``src.size(dim)`` if no
        element of src is the maximum.

    Raises SegmentIdsError for an out-of-range index, and the same errors as `maxops.segment_max`.

    Source: torch_scatter 2.1, `scatter_max`.
    """
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        _check_tensors(src, index, out)
    dim = dim + src.dim() if dim < 0 else dim
    if index.dim() > 1:
        index = _expanded(index, src)
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        return _explained(src, index, dim, out, dim_size, False)
    return _along(src, index, dim, out, dim_size, False)


def segment_max_coo(
    src: torch.Tensor, index: torch.Tensor, out: torch.Tensor | None = None, dim_size: int | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Apply `scatter_max` along the last axis of a sorted index. The axes of index correspond to the first axes of src.

    >>> segment_max_coo(torch.tensor([[1, 8], [2, 7], [9, 3]]), torch.tensor([0, 0, 1]))
    (tensor([[2, 8],
            [9, 3]]), tensor([[1, 0],
            [2, 2]]))

    Source: torch_scatter 2.1, `segment_max_coo`.
    """
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        _check_tensors(src, index, out)
    dim = index.dim() - 1
    if dim > 0:
        index = _expanded(index.expand(src.shape[: dim + 1]), src)
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        return _explained(src, index, dim, out, dim_size, True)
    return _along(src, index, dim, out, dim_size, True)


def segment_max_csr(
    src: torch.Tensor, indptr: torch.Tensor, out: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the maximum of the rows between each two consecutive elements of indptr, and its position.

    >>> segment_max_csr(torch.tensor([[1, 8], [2, 7], [9, 3]]), torch.tensor([0, 2, 2, 3]))
    (tensor([[2, 8],
            [0, 0],
            [9, 3]]), tensor([[1, 0],
            [3, 3],
            [2, 2]]))

    The rows are along axis ``indptr.dim() - 1`` of src. The other axes of indptr must broadcast to the leading axes of
    src. ``out`` receives the maxima. As in torch_scatter, the elements of ``out`` are not included in the maxima.

    Source: torch_scatter 2.1, `segment_max_csr`.
    """
    if not torch.jit.is_scripting():  # type: ignore[attr-defined]
        _check_tensors(src, indptr, out, "indptr")
    dim = indptr.dim() - 1
    rows = src.size(dim)
    if not torch.jit.is_scripting() and dim == 0 and out is None:  # type: ignore[attr-defined]
        found = _segment_max(src, offsets=indptr, fill_mode="ZERO", return_indices=True, nan="ignore")
        if found is not None:
            found[1].masked_fill_(found[1] < 0, rows)
            return found  # type: ignore[no-any-return]
    count = max(indptr.size(dim) - 1, 0)
    leading = list(src.shape[:dim])
    # TorchScript does not support unpacking
    offsets = indptr.expand(leading + [indptr.size(dim)]).contiguous()  # noqa: RUF005
    places = torch.arange(rows, device=src.device).expand(leading + [rows])  # noqa: RUF005
    ids = torch.searchsorted(offsets, places.contiguous(), right=True) - 1
    if dim == 0:
        values, indices = _by_ids(src, ids, count, 0, True, True)
    else:
        values, indices = _by_each_id(src, _expanded(ids, src), count, dim, True)
    indices.masked_fill_(indices < 0, rows)
    if out is not None:
        out.copy_(values)
        return out, indices
    return values, indices


def _check(reduce: str) -> None:
    if reduce != "max":
        raise ValueError("reduce must be 'max'; use torch_scatter for other reductions")


def scatter(
    src: torch.Tensor,
    index: torch.Tensor,
    dim: int = -1,
    out: torch.Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> torch.Tensor:
    """Return the maxima of `scatter_max`. Raises ValueError if ``reduce`` is not "max"."""
    _check(reduce)
    return scatter_max(src, index, dim, out, dim_size)[0]


def segment_coo(
    src: torch.Tensor,
    index: torch.Tensor,
    out: torch.Tensor | None = None,
    dim_size: int | None = None,
    reduce: str = "sum",
) -> torch.Tensor:
    """Return the maxima of `segment_max_coo`. Raises ValueError if ``reduce`` is not "max"."""
    _check(reduce)
    return segment_max_coo(src, index, out, dim_size)[0]


def segment_csr(
    src: torch.Tensor,
    indptr: torch.Tensor,
    out: torch.Tensor | None = None,
    reduce: str = "sum",
) -> torch.Tensor:
    """Return the maxima of `segment_max_csr`. Raises ValueError if ``reduce`` is not "max"."""
    _check(reduce)
    return segment_max_csr(src, indptr, out)[0]
