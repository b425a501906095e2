"""Launches of Max."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from maxops.engines.gpu import device
from maxops.engines.gpu.axes import Axes, collapse
from maxops.engines.gpu.fold_kernels import fold
from maxops.engines.gpu.order import Order

# Inputs that one pass takes; each holds registers of every thread, and few calls have more.
FUSED = 8


def maximum(inputs: Sequence[torch.Tensor], scalar: int | None, out: torch.Tensor, order: Order) -> None:
    """Write the maximum of tensors of bits, each of `out`'s shape, and of a scalar by its key."""
    if out.numel() == 0:
        return
    with device.on(out.device):
        _pass(inputs[:FUSED], scalar, out, order)
        for begin in range(FUSED, len(inputs), FUSED - 1):  # what was found so far is the first of the next
            _pass([out, *inputs[begin : begin + FUSED - 1]], None, out, order)


def _pass(inputs: Sequence[torch.Tensor], scalar: int | None, out: torch.Tensor, order: Order) -> None:
    axes = collapse(out.shape, [out.stride(), *(array.stride() for array in inputs)])
    columns, rows = axes.sizes[0], out.numel() // axes.sizes[0]
    tall, broad = _tile(axes, rows, order.dtype.bits, len(inputs))
    wide = max(axes.furthest, out.numel()) + device.tile(8) > device.NARROW
    out_strides, *strides = (own if len(own) > 1 else (*own, 0) for own in axes.strides)
    fold[(-(-rows // tall) * -(-columns // broad),)](
        tuple(inputs),
        out,
        axes.sizes[1:] or (1,),
        tuple(strides),
        out_strides,
        rows,
        columns,
        0 if scalar is None else scalar,
        FORMAT=order.format,
        HAS_SCALAR=scalar is not None,
        WIDE=wide,
        ROWS=tall,
        COLUMNS=broad,
        **device.LAUNCH,
    )


def _tile(axes: Axes, rows: int, bits: int, count: int) -> tuple[int, int]:
    """Rows and columns of a tile: a line where all step alike; a square where some tensor lies across."""
    elements = device.tile(bits) // (1 if count <= FUSED // 2 else 2)
    across = len(axes.sizes) > 1 and any(own[0] > 1 and own[1] == 1 for own in axes.strides)
    broad = min(device.at_least(axes.sizes[0]), 32 if across else elements)
    return min(device.at_least(rows), elements // broad), broad
