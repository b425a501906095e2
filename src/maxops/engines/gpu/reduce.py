"""Launches of ReduceMax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch

from maxops.engines.gpu import device
from maxops.engines.gpu.axes import Axes, collapse
from maxops.engines.gpu.order import KEY, Constant, Order
from maxops.engines.gpu.reduce_kernels import reduce

# Tiles that a program goes through at least before the reduced elements are shared out to more of them.
TILES_EACH = 4


@dataclass(frozen=True)
class Source:
    """What a pass reads: elements or keys, as `format` says, and with keys perhaps where they were found."""

    values: torch.Tensor
    indices: torch.Tensor | None
    format: int
    lowest: int


@dataclass(frozen=True)
class Target:
    """What a pass writes, and the value that every maximum begins with."""

    values: torch.Tensor
    indices: torch.Tensor | None
    format: int
    initial: Constant | None


@dataclass(frozen=True)
class Work:
    """How a pass goes through its source: `kept` elements of as many tiles as need be, `length` reduced ones each.

    `over` has the strides of the source and of the target along the kept axes, `along` those of the source along
    the reduced ones. Each of the shares has `share` reduced elements.
    """

    over: Axes
    along: Axes
    kept: int
    length: int
    share: int
    broad: int
    long: int

    @property
    def across(self) -> bool:
        """Whether kept elements lie closer in memory than reduced ones."""
        return self.kept > 1 and (self.length == 1 or self.over.strides[0][0] < self.along.strides[0][0])


def reduce_max(
    data: torch.Tensor,
    axes: Sequence[int],
    initial: Constant | None,
    out: torch.Tensor,
    indices: torch.Tensor | None,
    order: Order,
) -> None:
    """Write the maxima along axes of a tensor of bits into `out`, which is contiguous, and their indices.

    Where few elements are kept, the reduced ones are shared out to many programs, and a second pass reduces what
    they found: the same bits, whatever the shares.
    """
    if out.numel() == 0:
        return
    if data.numel() == 0:
        out.fill_((order.lowest if initial is None else initial).stored)
        if indices is not None:
            indices.fill_(-1)
        return
    source = Source(data, None, order.format, order.lowest.stored)
    target = Target(out, indices, order.format, initial)
    work = _work(data, axes, order.dtype.bits, device.programs(out.device), keep_order=indices is not None)
    shares = -(-work.length // work.share)
    with device.on(out.device):
        if shares == 1:
            _launch(source, target, work)
            return
        part = torch.empty((shares, work.kept), dtype=order.key, device=out.device)
        found = None if indices is None else torch.empty(part.shape, dtype=torch.int64, device=out.device)
        _launch(source, Target(part, found, KEY, None), work)
        _launch(Source(part, found, KEY, order.lowest.key), target, _merge(shares, work.kept, order.key_bits))


def _work(data: torch.Tensor, axes: Sequence[int], bits: int, programs: int, *, keep_order: bool) -> Work:
    kept_axes, reduced_axes = [a for a in range(data.ndim) if a not in axes], sorted(axes)
    shape = [data.shape[axis] for axis in kept_axes]
    own = [data.stride(axis) for axis in kept_axes]
    over = collapse(shape, [own, contiguous_strides(shape)])
    inner = [data.shape[axis] for axis in reduced_axes]
    along = collapse(inner, [[data.stride(axis) for axis in reduced_axes]], keep_order=keep_order)
    kept, length = prod(shape), prod(inner)
    # indices take as many registers as keys, or twice as many
    elements = min(device.tile(bits), device.THREADS * 8) if keep_order else device.tile(bits)
    work = Work(over, along, kept, length, length, 1, 1)
    if work.across:
        # lines of 16 elements or more to each thread's row, and the rest of the tile along what is reduced
        broad = min(device.at_least(kept), max(elements // 16, 1))
        long = min(device.at_least(length), elements // broad)
    else:
        long = min(device.at_least(length), elements)
        broad = min(device.at_least(kept), elements // long)
    shares = max(min(programs // -(-kept // broad), length // (long * TILES_EACH)), 1)
    share = -(-length // (shares * long)) * long
    return replace(work, share=share if shares > 1 else length, broad=broad, long=long)


def _merge(shares: int, kept: int, bits: int) -> Work:
    """What an earlier pass left for each share, one line of kept elements each."""
    broad = min(device.at_least(kept), 32)
    long = min(device.at_least(shares), device.tile(bits) // broad)
    return Work(Axes((kept,), ((1,), (1,))), Axes((shares,), ((kept,),)), kept, shares, shares, broad, long)


def contiguous_strides(shape: Sequence[int]) -> list[int]:
    """The strides of a tensor of this shape whose elements lie in C order."""
    return [prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _launch(source: Source, target: Target, work: Work) -> None:
    reach = work.over.furthest + work.along.furthest
    shares = -(-work.length // work.share)
    wide = max(reach, work.kept * shares, work.share * shares) + device.tile(8) > device.NARROW
    reduce[(-(-work.kept // work.broad), shares)](
        source.values,
        source.indices,
        target.values,
        target.indices,
        work.over.sizes,
        *work.over.strides,
        work.along.sizes,
        *work.along.strides,
        work.kept,
        work.length,
        work.share,
        0 if target.initial is None else target.initial.key,
        FORMAT=source.format,
        OUT_FORMAT=target.format,
        LOWEST=source.lowest,
        NOWHERE=2**63 - 1 if wide else 2**31 - 1,
        INDICES=target.indices is not None,
        HAS_INDICES=source.indices is not None,
        HAS_INITIAL=target.initial is not None,
        WIDE=wide,
        ACROSS=work.across,
        KEPT=work.broad,
        REDUCED=work.long,
        **device.LAUNCH,
    )
