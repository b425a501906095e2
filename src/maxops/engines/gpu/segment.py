"""Launches of SegmentMax: by where segments begin, for sorted ids and offsets; by atomics, for ids in any order."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import torch
import triton

from maxops.engines.gpu import device, ids
from maxops.engines.gpu.axes import collapse
from maxops.engines.gpu.order import Constant, Order
from maxops.engines.gpu.reduce import contiguous_strides
from maxops.engines.gpu.scatter_kernels import finish, scatter_indices, scatter_keys
from maxops.engines.gpu.segment_kernels import chunk_maxima, segments
from maxops.plan import SegmentPlan, default_num_segments

# Elements of a chunk: what a long segment is cut into. A power of two.
CHUNK = 8192
# Elements of a tile of segments: fewer than elsewhere, since segments seldom fill theirs.
TILE = 1024
# The work on ids that one look at the highest may cause before the ids are known to be right.
_SURELY = 1 << 20
_NOWHERE = 2**63 - 1


@dataclass(frozen=True)
class Segments:
    """`count` segments of rows: by where the `known` first of them begin and the last of those ends, or by ids."""

    count: int
    starts: torch.Tensor | None = None
    known: int = 0
    ids: torch.Tensor | None = None


def named(
    plan: SegmentPlan,
    given: torch.Tensor | None,
    offsets: torch.Tensor | None,
    count: int | None,
) -> Segments:
    """The segments that ids or offsets name, checked as the plan has it."""
    row = plan.spec
    if offsets is not None:
        if plan.check_ids:
            ids.check_bounds(row, offsets, plan.data.shape[0])
        else:
            offsets = ids.without_rows_if_wrong(offsets, plan.data.shape[0])
        known = len(offsets) - 1
        count = known if count is None else count
        return Segments(count, offsets.contiguous(), min(known, count))
    assert given is not None
    outside = plan.out_of_range
    if plan.sorted:
        check = plan.check_ids
        if count is None:
            count = default_num_segments(given, is_sorted=True)
            if check and count > len(given) + _SURELY:  # an id too many rows past may be a wrong one
                ids.check_ids(row, given, is_sorted=True, outside=outside, count=None)
                check = False
        return Segments(count, ids.starts_of(row, given, count, check=check, outside=outside), count)
    if plan.check_ids:
        ids.check_ids(row, given, is_sorted=False, outside=outside, count=count)
    if count is None:
        count = default_num_segments(given, is_sorted=False)
    return Segments(count, ids=given)


@dataclass(frozen=True)
class Rows:
    """The data as rows of `width` elements, and the steps from row to row and from column to column."""

    values: torch.Tensor
    count: int
    width: int
    row_step: int
    column_step: int

    @property
    def furthest(self) -> int:
        """The highest offset of an element."""
        return (self.count - 1) * self.row_step + (self.width - 1) * self.column_step


def _rows(data: torch.Tensor) -> Rows:
    """The data as rows; one copy on the device if its rows have more than one step."""
    packed = contiguous_strides(data.shape[1:])
    axes = collapse(data.shape[1:], [data.stride()[1:], packed], keep_order=True)
    if len(axes.sizes) > 1:
        data = data.contiguous()
        axes = collapse(data.shape[1:], [packed, packed])
    return Rows(data, len(data), prod(data.shape[1:]), data.stride(0), axes.strides[0][0])


def segment_max(
    data: torch.Tensor,
    by: Segments,
    constant: Constant,
    has_initial: bool,
    out: torch.Tensor,
    indices: torch.Tensor | None,
    empty: torch.Tensor,
    order: Order,
) -> None:
    """Write the maxima of segments of rows into `out`, their indices, and which segments are empty."""
    if by.count == 0:
        return
    if out.numel() == 0:  # no columns: one that takes no memory, to see which segments are empty
        data, out, indices = data.new_zeros(()).expand(len(data), 1), out.new_empty((by.count, 1)), None
    if len(data) == 0:
        out.fill_(constant.stored)
        empty.fill_(True)
        if indices is not None:
            indices.fill_(-1)
        return
    with device.on(out.device):
        launch = _together if by.ids is None else _apart
        launch(_rows(data), by, constant, has_initial, out, indices, empty.view(torch.int8), order)


def _tile(rows: Rows, by: Segments, outputs: int) -> tuple[int, int]:
    """Outputs and rows of a tile of segments."""
    # not above the mean, so that a segment that is shorter leaves few lanes idle
    mean = device.at_least(rows.count // max(by.known, 1) // 2 + 1)
    if rows.width > 1:
        kept = min(max(device.at_least(rows.width), 32), 128, device.at_least(outputs), TILE)
        return kept, min(mean, TILE // kept)
    reduced = min(max(mean, 4), TILE)
    return min(TILE // reduced, device.at_least(outputs)), reduced


def _together(
    rows: Rows,
    by: Segments,
    constant: Constant,
    has_initial: bool,
    out: torch.Tensor,
    indices: torch.Tensor | None,
    empty: torch.Tensor,
    order: Order,
) -> None:
    """Segments whose rows lie together."""
    assert by.starts is not None
    outputs = by.count * rows.width
    wide = max(rows.furthest, outputs, rows.count * rows.width) + 2 * CHUNK > device.NARROW
    across = rows.width > 1
    kept, reduced = _tile(rows, by, outputs)
    chunk = max(CHUNK // device.at_least(rows.width), reduced)
    shape = {"KEPT": kept, "REDUCED": reduced, "CHUNK": chunk}
    facts = device.LAUNCH | {
        "FORMAT": order.format,
        "LOWEST": order.lowest.stored,
        "NOWHERE": _NOWHERE if wide else 2**31 - 1,
        "INDICES": indices is not None,
        "WIDE": wide,
        "ACROSS": across,
    }
    part, part_indices = None, None
    chunks = rows.count // chunk if rows.count > 2 * chunk else 0
    if chunks:
        begins = torch.arange(0, chunks * chunk, chunk, dtype=by.starts.dtype, device=out.device)
        owners = torch.searchsorted(by.starts[: by.known + 1], begins, right=True) - 1
        part = torch.empty((chunks, rows.width), dtype=order.key, device=out.device)
        part_indices = None if indices is None else torch.empty(part.shape, dtype=torch.int64, device=out.device)
        broad = min(device.at_least(rows.width), 128)
        chunk_maxima[(chunks * triton.cdiv(rows.width, broad),)](
            rows.values,
            rows.row_step,
            rows.column_step,
            owners,
            by.starts,
            by.known,
            rows.count,
            rows.width,
            part,
            part_indices,
            **facts | shape | {"KEPT": broad, "REDUCED": min(chunk, max(device.tile(order.dtype.bits) // broad, 1))},
        )
    segments[(triton.cdiv(outputs, kept),)](
        rows.values,
        rows.row_step,
        rows.column_step,
        by.starts,
        by.known,
        rows.count,
        by.count,
        rows.width,
        part,
        part_indices,
        constant.key,
        out,
        indices,
        empty,
        LOWEST_KEY=order.lowest.key,
        HAS_INITIAL=has_initial,
        CHUNKED=bool(chunks),
        **facts | shape,
    )


def _apart(
    rows: Rows,
    by: Segments,
    constant: Constant,
    has_initial: bool,
    out: torch.Tensor,
    indices: torch.Tensor | None,
    empty: torch.Tensor,
    order: Order,
) -> None:
    """Segments whose rows lie anywhere."""
    assert by.ids is not None
    outputs, elements = by.count * rows.width, rows.count * rows.width
    wide = max(rows.furthest, outputs, elements) + TILE > device.NARROW
    work = torch.full((outputs,), order.lowest.key, dtype=order.key, device=out.device)
    empty.zero_()  # what is seen, until it is turned round
    facts = {"FORMAT": order.format, "WIDE": wide, "BLOCK": TILE} | device.LAUNCH
    source = (rows.values, rows.row_step, rows.column_step, by.ids, by.ids.stride(0), rows.count, rows.width, by.count)
    scatter_keys[(triton.cdiv(elements, TILE),)](*source, work, empty, **facts)
    if indices is not None:
        indices.fill_(_NOWHERE)
        scatter_indices[(triton.cdiv(elements, TILE),)](*source, work, indices, **facts)
    finish[(triton.cdiv(outputs, TILE),)](
        work,
        empty,
        indices,
        constant.key,
        out,
        outputs,
        rows.width,
        NOWHERE=_NOWHERE,
        INDICES=indices is not None,
        HAS_INITIAL=has_initial,
        **facts,
    )
    empty.bitwise_xor_(1)
