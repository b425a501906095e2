"""Converts and checks ids and offsets with torch's own operators."""

from __future__ import annotations

import torch
from torch import Tensor

from maxops.engines.torch.memory import DTYPES
from maxops.plan import widened_dtype


def widened(ids: Tensor) -> Tensor:
    """Convert ids or offsets to a dtype that torch's operators accept as indices, like `maxops.plan.widened`."""
    if ids.dtype in (torch.int32, torch.int64) or DTYPES[ids.dtype].kind not in ("int", "uint"):
        return ids
    if ids.dtype is torch.uint64:  # torch cannot compare uint64
        signed = ids.view(torch.int64)
        return torch.where(signed < 0, torch.iinfo(torch.int64).max, signed)
    return ids.to(getattr(torch, str(widened_dtype(DTYPES[ids.dtype].numpy))))


def offsets_are_valid(offsets: Tensor, rows: int) -> Tensor:
    """Return whether offsets are non-decreasing from 0 to the number of rows."""
    offsets = widened(offsets)
    return (offsets[0] == 0) & (offsets[-1] == rows) & (offsets[1:] >= offsets[:-1]).all()


def ids_of_rows(offsets: Tensor, rows: int) -> Tensor:
    """Return the segment of each row, or -1 for all rows if the offsets are invalid."""
    # Count the segments that have ended by each row. searchsorted would warn about the memory layout of vmap batches.
    ends = widened(offsets)[1:].clamp(0, rows)
    ended = torch.zeros([rows + 1], dtype=torch.int64, device=ends.device)
    ids = ended.index_add(0, ends, torch.ones_like(ends, dtype=torch.int64)).cumsum(0)[:-1]
    return torch.where(offsets_are_valid(offsets, rows), ids, -1)
