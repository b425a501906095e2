"""Converts and checks ids and offsets with torch's own operators."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from maxops.engines.torch.memory import DTYPES
from maxops.plan import widened_dtype


def or_else(mask: Tensor, tensor: Tensor, number: Any) -> Tensor:
    """Return the elements of a tensor where a mask is true, and a number elsewhere.

    `torch.where` would convert the number to a tensor, which fake tensors reject outside their mode.
    """
    return torch.where(mask, tensor, tensor.new_full((), number))


def numbered(like: Tensor, length: Any) -> Tensor:
    """Return the numbers from 0 to `length` - 1. Outside a fake mode, `torch.arange` would not return a fake tensor."""
    return like.new_ones([length], dtype=torch.int64).cumsum(0) - 1


def widened(ids: Tensor) -> Tensor:
    """Convert ids or offsets to a dtype that torch's operators accept as indices, like `maxops.plan.widened`."""
    if ids.dtype in (torch.int32, torch.int64) or DTYPES[ids.dtype].kind not in ("int", "uint"):
        return ids
    if ids.dtype is torch.uint64:  # torch cannot compare uint64
        signed = ids.view(torch.int64)
        return or_else(signed >= 0, signed, torch.iinfo(torch.int64).max)
    return ids.to(getattr(torch, str(widened_dtype(DTYPES[ids.dtype].numpy))))


def offsets_are_valid(offsets: Tensor, rows: int) -> Tensor:
    """Return whether offsets are non-decreasing from 0 to the number of rows."""
    offsets = widened(offsets)
    return (offsets[0] == 0) & (offsets[-1] == rows) & (offsets[1:] >= offsets[:-1]).all()


def sums(values: Tensor, ids: Tensor, segments: int) -> Tensor:
    """Return the sum of the rows of each segment."""
    # index_add is slower on the CPU, and fails for empty batches of vmap.
    index = ids.to(torch.int64).reshape([ids.shape[0], *(1 for _ in values.shape[1:])])
    zeros = values.new_zeros([segments, *values.shape[1:]])
    return zeros.scatter_add(0, index.expand([-1, *values.shape[1:]]), values)


def ids_of_rows(offsets: Tensor, rows: int) -> Tensor:
    """Return the segment of each row, or -1 for all rows if the offsets are invalid."""
    # Count the segments that have ended by each row. searchsorted would warn about the memory layout of vmap batches.
    ends = widened(offsets)[1:].clamp(0, rows)
    ids = sums(torch.ones_like(ends, dtype=torch.int64), ends, rows + 1).cumsum(0)[:-1]
    return or_else(offsets_are_valid(offsets, rows), ids, -1)
