"""Tests Max of one to four inputs in all ways to broadcast them, and with all overlaps with the output."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import maxops as mo

from .reduce import LAYOUTS
from .states import Array, counted, fail, threads

FULL = (
    (),
    (1,),
    (2,),
    (3,),
    (9,),
    (2, 2),
    (3, 2),
    (2, 5),
    (4, 4),
    (2, 1, 3),
    (2, 2, 2),
    (3, 2, 4),
    (0,),
    (2, 0),
    (2, 2, 1, 3),
)


def _inputs(full: tuple[int, ...], masks: tuple[tuple[bool, ...], ...], winner: int, dtype: Any) -> list[Array]:
    """Return inputs of distinct values, of size 1 along axes outside their mask. `winner` has the highest values."""
    made = []
    for k, mask in enumerate(masks):
        own = tuple(size if kept or size == 0 else 1 for size, kept in zip(full, mask, strict=True))
        values = np.arange(int(np.prod(own))).reshape(own) * len(masks) + k + (1000 if k == winner else -1500)
        made.append(values.astype(dtype))
    return made


LONGER = (*((size,) for size in range(10, 71)), *((2, size) for size in range(9, 41)))


def broadcasts(
    dtype: Any = np.float32,
    layouts: tuple[str, ...] = ("contiguous",),
    most: int = 4,
    of: tuple[tuple[int, ...], ...] = FULL,
) -> None:
    """Test every set of broadcast axes for every input. Each input in turn has the highest values."""
    for full in of:
        all_masks = list(itertools.product((True, False), repeat=len(full)))
        for count in range(1, most + 1):
            for masks in itertools.combinations_with_replacement(all_masks, count):
                for winner in range(count):
                    _one(full, masks, winner, dtype, layouts)


def _one(full: tuple[int, ...], masks: Any, winner: int, dtype: Any, layouts: tuple[str, ...]) -> None:
    inputs = _inputs(full, masks, winner, dtype)
    expected = inputs[0]
    for other in inputs[1:]:
        expected = np.maximum(expected, other)
    for layout in layouts:
        given = [LAYOUTS[layout](x) for x in inputs]
        got = mo.maximum(*given)
        if got.shape != expected.shape or (got != expected).any():
            fail(f"maximum, {layout}", expected, got, inputs=given)
        out = np.full(expected.shape, 5, dtype)
        mo.maximum(*given[::-1], out=out)
        if (out != expected).any():
            fail(f"maximum, out=, {layout}", expected, out, inputs=given)
        counted[f"maximum: {layout}"] += 2


def scalars(dtype: Any = np.float32) -> None:
    """Test arrays of any length with a NumPy or Python scalar, alone and with up to two more arrays."""
    for count in (1, 2, 3):
        with threads(count):
            for full in (*((size,) for size in range(71)), *((2, size) for size in range(41)), (2, 3, 4)):
                for winner, layout in itertools.product((0, 1), ("contiguous", "strided", "swapped")):
                    _beside_scalar(full, winner, dtype, layout)


def _beside_scalar(full: tuple[int, ...], winner: int, dtype: Any, layout: str) -> None:
    array, scalar = _inputs(full, ((True,) * len(full), (False,) * len(full)), winner, dtype)
    one = dtype(scalar.reshape(-1)[0]) if scalar.size else dtype(3)
    expected = np.maximum(array, one)
    given = LAYOUTS[layout](array)
    for other in (one, one.item(), np.array(one), np.array(one).astype(np.array(one).dtype.newbyteorder())):
        for inputs in ((given, other), (other, given), (given, other, given), (given, given, other, given)):
            got = mo.maximum(*inputs)
            out = given.astype(given.dtype.newbyteorder("="))  # the output is an input
            mo.maximum(out, other, out=out)
            if got.tobytes() != expected.tobytes() or out.tobytes() != expected.tobytes():
                fail(f"maximum, beside a scalar, {layout}", expected, got, inputs=inputs)
            counted["maximum: scalars"] += 2


def more_inputs(dtype: Any = np.float32) -> None:
    """Test five to nineteen inputs, more than a kernel folds in one pass. Each input in turn has the highest values."""
    for full in ((3,), (9,), (2, 3)):
        for count in range(5, 20):
            for winner in range(count):
                for masks in ([(True,) * len(full)] * count, [(bool(k % 2),) * len(full) for k in range(count)]):
                    _one(full, tuple(masks), winner, dtype, ("contiguous", "strided", "swapped"))


def threaded(dtype: Any = np.float32) -> None:
    """Test outputs that threads share."""
    for count in (2, 3):
        with threads(count):
            broadcasts(dtype, ("contiguous", "fortran"), 2)
            broadcasts(dtype, ("contiguous",), 2, LONGER)


def overlaps(dtype: Any = np.float32) -> None:
    """Test outputs that begin at, or a few elements before or after, an input: forwards, backwards and with steps."""
    for n in range(1, 24):
        for shift in range(-4, 5):
            for step, out_step in itertools.product((1, 2, -1), repeat=2):
                for place in (0, 1):
                    for fill in (np.arange(120.0), -np.arange(120.0)):
                        buffer = fill.astype(dtype)
                        own = buffer[60 : 60 + n * step : step] if step > 0 else buffer[60 : 60 - n : -1]
                        start = 60 + shift
                        out = (
                            buffer[start : start + n * out_step : out_step]
                            if out_step > 0
                            else buffer[start : start - n : -1]
                        )
                        other = np.full(n, fill[60], dtype)
                        expected = np.maximum(own, other)
                        inputs = [own, other] if place == 0 else [other, own]
                        mo.maximum(*inputs, out=out)
                        if out.tobytes() != expected.tobytes():
                            fail("maximum, overlapping", expected, out, n=n, shift=shift, step=step, out_step=out_step)
                        counted["maximum: overlaps"] += 1
