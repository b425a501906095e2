"""Launches on ids and offsets. Only one number comes to the host, the first wrong position; then, the error's ids."""

from __future__ import annotations

import torch
import triton

from maxops.engines.gpu import device
from maxops.engines.gpu.ids_kernels import bounds, first_wrong
from maxops.engines.gpu.tensors import new
from maxops.plan import check_offsets, check_segment_ids
from maxops.plan.faults import CHECKED_TOGETHER, OutOfRange
from maxops.spec import Spec

BLOCK = 1024
# Starts that one lane writes by itself; past that, all lanes of the block write together.
SHORT = 16
_TOGETHER = CHECKED_TOGETHER


def check_ids(row: Spec, ids: torch.Tensor, *, is_sorted: bool, outside: OutOfRange | None, count: int | None) -> None:
    """Raise planning's own error if an id is not allowed."""
    if len(ids) == 0:
        return
    limit = count if outside == "error" else None
    wrong = _first_wrong(ids, takes_negative=outside == "drop", limit=limit, is_sorted=is_sorted)
    _raise_wrong(row, ids, wrong, is_sorted=is_sorted, outside=outside, count=count)


def _first_wrong(indices: torch.Tensor, *, takes_negative: bool, limit: int | None, is_sorted: bool) -> torch.Tensor:
    """The first position that holds what it must not, or the length: one number on the device."""
    wrong = torch.full((1,), len(indices), dtype=torch.int64, device=indices.device)
    with device.on(indices.device):
        first_wrong[(triton.cdiv(len(indices), BLOCK),)](
            indices,
            indices.stride(0),
            len(indices),
            0 if limit is None else limit,
            wrong,
            NEGATIVE=not takes_negative,
            PAST=limit is not None,
            SORTED=is_sorted,
            BLOCK=BLOCK,
            **device.LAUNCH,
        )
    return wrong


def starts_of(row: Spec, ids: torch.Tensor, count: int, *, check: bool, outside: OutOfRange | None) -> torch.Tensor:
    """Where each of `count` segments of sorted ids begins, and where the last ends, after a check of the ids."""
    narrow = len(ids) < device.NARROW
    starts = new(row, (count + 1,), torch.int32 if narrow else torch.int64, ids.device)
    wrong = torch.full((1,), len(ids), dtype=torch.int64, device=ids.device) if check else None
    with device.on(ids.device):
        bounds[(triton.cdiv(len(ids) + 1, BLOCK),)](
            ids,
            ids.stride(0),
            len(ids),
            count,
            wrong,
            starts,
            CHECK=check,
            NEGATIVE=outside != "drop",
            PAST=outside == "error",
            SHORT=SHORT,
            BLOCK=BLOCK,
            **device.LAUNCH,
        )
    if wrong is not None:
        _raise_wrong(row, ids, wrong, is_sorted=True, outside=outside, count=count)
    return starts


def _raise_wrong(
    row: Spec,
    ids: torch.Tensor,
    wrong: torch.Tensor,
    *,
    is_sorted: bool,
    outside: OutOfRange | None,
    count: int | None,
) -> None:
    """Raise planning's error for the first wrong position, if there is one."""
    position = int(wrong.item())
    if position == len(ids):
        return
    begin = max(position - 1, 0) // _TOGETHER * _TOGETHER
    part = ids[begin : begin + 2 * _TOGETHER + 1].cpu().numpy()
    check_segment_ids(row, part, sorted=is_sorted, out_of_range=outside, num_segments=count, start=begin)
    raise AssertionError(f"position {position} of the ids was found wrong on the device, and right on the host")


def without_rows_if_wrong(offsets: torch.Tensor, rows: int) -> torch.Tensor:
    """Unchecked offsets; zeros, so that every segment is empty, if these are not valid. The host waits for nothing."""
    valid = (offsets[0] == 0) & (offsets[-1] == rows) & (offsets[1:] >= offsets[:-1]).all()
    return offsets * valid


def check_bounds(row: Spec, offsets: torch.Tensor, rows: int) -> None:
    """Raise planning's own error if offsets are not allowed."""
    wrong = _first_wrong(offsets, takes_negative=True, limit=None, is_sorted=True)
    ends = torch.stack([wrong[0], offsets[0].to(torch.int64), offsets[-1].to(torch.int64)]).tolist()
    if ends != [len(offsets), 0, rows]:
        check_offsets(row, offsets.cpu().numpy(), rows)
