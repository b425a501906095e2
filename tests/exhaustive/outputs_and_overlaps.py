"""Tests Max with outputs of every layout, with repeated and overlapping views, and with many inputs.

Also tests the layout of new outputs, which is NumPy's, and ids that are checked before the maxima are computed.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

import maxops as mo
from maxops.errors import SegmentIdsError

from .reduce import LAYOUTS
from .states import Array, counted, fail, threads

SHAPES = ((9,), (2, 5), (5, 2), (3, 3), (4, 6), (2, 20), (2, 3, 2), (3, 2, 4))
OUTPUTS = ("fortran", "strided", "pitched", "apart", "backwards", "swapped")


def _values(shape: tuple[int, ...], masks: tuple[tuple[bool, ...], ...], dtype: Any) -> list[Array]:
    """Return inputs of distinct values in random order, so that each input has some of the maxima."""
    sizes = [tuple(size if kept else 1 for size, kept in zip(shape, mask, strict=True)) for mask in masks]
    every = np.random.default_rng(len(masks)).permutation(sum(int(np.prod(size)) for size in sizes)) - 60
    parts = np.split(every, np.cumsum([int(np.prod(size)) for size in sizes])[:-1])
    return [part.reshape(size).astype(dtype) for part, size in zip(parts, sizes, strict=True)]


def _masks(rank: int, count: int) -> Any:
    return itertools.product(itertools.product((True, False), repeat=rank), repeat=count)


def _memory(array: Array) -> Array:
    return array if array.base is None else _memory(array.base)


def _call(inputs: list[Array], out: Array, what: str) -> None:
    """Test that Max writes `out`, and nothing else in the memory of its base."""
    expected = np.broadcast_to(np.maximum.reduce(np.broadcast_arrays(*inputs)), out.shape)
    memory = _memory(out)
    memory[...] = 5
    mo.maximum(*inputs, out=out)
    if (out != expected).any():
        fail(f"maximum, {what}", expected, out, inputs=inputs)
    out[...] = 5
    if (memory != 5).any():
        fail(f"maximum, {what}, beside the output", 5, memory, inputs=inputs)
    counted["maximum: outputs"] += 1


def outputs(counts: tuple[int, ...] = (1, 3), dtype: Any = np.float32) -> None:
    """Test one and two inputs in all ways to broadcast them, and three and five inputs of the full shape."""
    for shape in SHAPES:
        masks = [*_masks(len(shape), 1), *_masks(len(shape), 2)]
        masks += [((True,) * len(shape),) * count for count in (3, 5)]
        masks = [each for each in masks if all(map(any, zip(*each, strict=True)))]
        for count, own, layout, transposed in itertools.product(counts, masks, OUTPUTS, ("contiguous", "fortran")):
            inputs = _values(shape, own, dtype)
            inputs[0] = LAYOUTS[transposed](inputs[0])
            with threads(count):
                _call(inputs, LAYOUTS[layout](np.full(shape, 5, dtype)), f"out {layout}, {transposed}")


def repeated(dtype: Any = np.float32) -> None:
    """Test views of the full shape with stride 0 along some axes."""
    for shape in SHAPES:
        for count, masks in itertools.product((1, 3), [*_masks(len(shape), 1), *_masks(len(shape), 2)]):
            inputs = [np.broadcast_to(x, shape) for x in _values(shape, masks, dtype)]
            expected = np.maximum.reduce(inputs)
            with threads(count):
                for layout in ("contiguous", "pitched"):
                    _call(inputs, LAYOUTS[layout](np.full(shape, 5, dtype)), f"repeated, {layout}")
                got = mo.maximum(*inputs)
                if got.tobytes() != expected.tobytes():
                    fail("maximum, repeated", expected, got, inputs=inputs)


def windows(dtype: Any = np.float32) -> None:
    """Test sliding windows, which overlap, with leading axes of size 1."""
    for rows, row, ones, more, count in itertools.product((2, 3, 4), (2, 3, 5), range(4), (0, 1, 4), (1, 3)):
        shape = (1,) * ones + (rows, row)
        line = np.arange(rows + row - 1).astype(dtype)
        slid = np.lib.stride_tricks.sliding_window_view(line, row).reshape(shape)
        others = [np.full(shape, k, dtype) for k in range(more)]
        with threads(count):
            for layout in ("contiguous", "fortran", "strided"):
                _call([slid, *others], LAYOUTS[layout](np.full(shape, 5, dtype)), f"windows, {layout}")
            if more == 1:
                _new([slid, slid])


def close(dtype: Any = np.int16) -> None:
    """Test elements that share bytes, as the first and as the second input."""
    for n, step, place in itertools.product((2, 3, 5, 9), (1, 3), (0, 1)):
        memory = np.arange(1, 64, dtype=np.int8)
        near = np.ndarray((n,), dtype, memory, 0, (step,))
        inputs = [near, np.arange(n).astype(dtype)][:: 1 - 2 * place]
        for layout in ("contiguous", "strided"):
            _call(inputs, LAYOUTS[layout](np.full(n, 5, dtype)), f"close, {layout}")


def alike(dtype: Any = np.float32) -> None:
    """Test operands that are all byte-swapped, or that all have a gap of one element between rows."""
    single = LAYOUTS["swapped"](np.array(3, dtype))
    for got in (mo.reduce_max(single, ()), mo.maximum(single, single)):
        if got.tobytes() != dtype(3).tobytes():
            fail("maximum, a single element, swapped", 3, got)
        counted["of rank 0, swapped"] += 1
    for shape in SHAPES:
        for count, layout in itertools.product((1, 2, 3, 5), ("contiguous", "fortran")):
            inputs = [
                LAYOUTS["swapped"](LAYOUTS[layout](x)) for x in _values(shape, (((True,) * len(shape)),) * count, dtype)
            ]
            _call(inputs, LAYOUTS["swapped"](np.full(shape, 5, dtype)), f"all swapped, {layout}")
            longer = (*shape[:-1], shape[-1] + 1)
            inputs = [x[..., :-1] for x in _values(longer, ((True,) * len(shape),) * count, np.int8)]
            _call(inputs, np.full(longer, 5, np.int8)[..., :-1], "rows with a gap")


def in_place(dtype: Any = np.float32) -> None:
    """Test many inputs, one of which is the output or is transposed."""
    for shape in ((3,), (20,), (3, 4)):
        for count in range(3, 14):
            for place in (0, 1, count - 1):
                inputs = _values(shape, ((True,) * len(shape),) * count, dtype)
                expected = np.maximum.reduce(inputs)
                mo.maximum(*inputs, out=inputs[place])
                if (inputs[place] != expected).any():
                    fail("maximum, in place", expected, inputs[place], count=count, place=place)
                counted["maximum: in place"] += 1
                if place and len(shape) == 2:
                    inputs = _values(shape, ((True,) * len(shape),) * count, dtype)
                    inputs[place] = LAYOUTS["fortran"](inputs[place])
                    _call(inputs, np.full(shape, 5, dtype), f"one of {count} inputs across")


def streamed(dtype: Any = np.float64) -> None:
    """Test new outputs with tasks longer than one streamed piece. The other input may be a column or a row."""
    for count, shape in itertools.product(
        (1, 3), (*((rows, 2) for rows in range(9, 42, 4)), (40,), (3, 20), (2, 40), (5, 9), (3, 6, 2))
    ):
        every = (True,) * len(shape)
        for masks in (
            (every, every),
            (every, (*every[:-1], False)),
            ((*every[:-1], False), every),
            (every, (False, *every[1:])),
        ):
            with threads(count):
                for pitched in (False, True):
                    inputs = _values(shape, masks, dtype)
                    if pitched:
                        inputs[0] = LAYOUTS["pitched"](inputs[0])
                    got, expected = mo.maximum(*inputs), np.maximum(*inputs)
                    if got.tobytes() != expected.tobytes():
                        fail("maximum, streamed", expected, got, inputs=inputs)
                    counted["maximum: streamed"] += 1


def alignments(dtype: Any = np.float32) -> None:
    """Test outputs that begin at every item of a cache line, and unaligned outputs."""
    item = np.dtype(dtype).itemsize
    memory = np.empty(2048, np.uint8)
    memory = memory[-memory.ctypes.data % 64 :][:1024]
    for n, offset in itertools.product((15, 16, 17, 23, 24, 31, 32, 33, 40), (*range(0, 64, item), 2, 63)):
        inputs = [np.arange(n).astype(dtype), -np.arange(n).astype(dtype) % dtype(7), dtype(5) * np.ones(n, dtype)]
        out = np.ndarray((n,), dtype, memory, offset)
        for count in (1, 2, 3):
            expected = np.maximum.reduce(inputs[:count])
            memory[:] = 5
            mo.maximum(*inputs[:count], out=out)
            if out.tobytes() != expected.tobytes():
                fail("maximum, alignments", expected, out, n=n, offset=offset)
            out.view(np.uint8)[...] = 5
            if (memory != 5).any():
                fail("maximum, alignments, beside the output", 5, memory, n=n, offset=offset)
            counted["maximum: alignments"] += 1


def zeros(dtype: Any = np.float32) -> None:
    """Test zeros of both signs and a negative number, in every input and along every axis."""
    for count in (1, 2, 3, 4, 5, 8):
        some = (-0.0, 0.0, -1.0) if count <= 4 else (-0.0, 0.0)
        every = np.array(list(itertools.product(some, repeat=count)), dtype).T.copy()
        expected = np.array([_highest(column) for column in every.T], dtype)
        for got in (
            mo.maximum(*every),
            mo.reduce_max(every, 0),
            mo.reduce_max(every.T, 1),
            mo.reduce_max(np.repeat(every.T, 12, axis=1), 1),
        ):
            if got.tobytes() != expected.tobytes():
                fail("maximum, zeros", expected, got, inputs=every)
            counted["zeros"] += 1


def _highest(column: Array) -> float:
    if (column < 0).all():
        return -1.0
    return -0.0 if all(np.signbit(x) for x in column) else 0.0


def empty(dtype: Any = np.float32) -> None:
    """Test that empty outputs leave the memory around them unchanged."""
    for shape in ((0,), (2, 0), (0, 3)):
        memory = np.full(40, 5, dtype)
        out = memory[20:20].reshape(shape)
        for count in (1, 2, 3, 5):
            mo.maximum(*(np.zeros(shape, dtype) for _ in range(count)), out=out)
            mo.maximum(np.zeros(shape, dtype), dtype(7), out=out)
            if (memory != 5).any():
                fail("maximum, empty", 5, memory, shape=shape)
            counted["maximum: empty"] += 2


def reduced(dtype: Any = np.float32) -> None:
    """Test ReduceMax to few results of many elements, with data and outputs of every layout."""
    for shape in ((2, 20), (20, 2), (3, 33), (33, 3), (2, 2, 20), (20, 2, 2), (2, 20, 2), (5, 2, 7)):
        rank = len(shape)
        for axes in itertools.chain.from_iterable(itertools.combinations(range(rank), k) for k in range(1, rank + 1)):
            for layout in (
                "contiguous",
                "strided",
                "pitched",
                "backwards",
                "fortran",
                "swapped",
                "windows",
                "repeated",
            ):
                data = _values(shape, ((True,) * rank,), dtype)[0]
                if layout == "windows":
                    line = data.reshape(-1)[: sum(shape)].copy()
                    data = np.lib.stride_tricks.as_strided(line, shape, line.strides * rank)
                elif layout == "repeated":
                    data = np.broadcast_to(data[:1].copy(), shape)
                else:
                    data = LAYOUTS[layout](data)
                expected = data.max(axes, keepdims=True)
                for count, into in itertools.product(
                    (1, 3), ("contiguous", "strided", "apart", "backwards", "swapped")
                ):
                    out = LAYOUTS[into](np.full(expected.shape, 5, dtype))
                    memory = _memory(out)
                    with threads(count):
                        mo.reduce_max(data, axes, out=out)
                    if (out != expected).any():
                        fail(f"reduce_max, {layout}, out {into}", expected, out, data=data, axes=axes)
                    out[...] = 5
                    if (memory != 5).any():
                        fail(f"reduce_max, {layout}, beside out {into}", 5, memory, data=data, axes=axes)
                    counted["reduce_max: outputs of few"] += 1


def saturated(dtype: Any = np.float32) -> None:
    """Test one NaN, which may end the search for its own maximum, but not for any other."""
    for outputs, each, count in itertools.product((1, 2, 3), (20, 33, 50), (1, 3)):
        for output, place in itertools.product(range(outputs), (0, 1, 2, each // 2, each - 1)):
            data = np.arange(outputs * each).reshape(outputs, each).astype(dtype)
            data[output, place] = np.nan
            expected = data.max(1)
            with threads(count):
                for got in (mo.reduce_max(data, 1, keepdims=False), mo.reduce_max(data.T.copy(), 0, keepdims=False)):
                    if got.tobytes() != expected.tobytes():
                        fail("reduce_max, one NaN", expected, got, data=data)
                    counted["reduce_max: saturated"] += 1


def ids_apart() -> None:
    """Test ids that are checked before the maxima are computed: in three layouts, with one decrease or none."""
    for count, n, width, dtype in itertools.product((1, 2), range(1, 14), (1, 3, 5), (np.int32, np.int64)):
        data = np.arange(n * width, dtype=np.float32).reshape(n, width)
        for wrong in range(n + 1):
            right = np.arange(1, n + 1)
            right[wrong:] -= 2
            refused = 0 < wrong < n or (wrong == 0 and n > 0)
            with threads(count):
                for layout in ("contiguous", "strided", "swapped"):
                    _segments(data, LAYOUTS[layout](right.astype(dtype)), refused)


def _segments(data: Array, ids: Array, refused: bool) -> None:
    try:
        got = mo.segment_max(data, ids, 14, fill_mode="ZERO")
    except SegmentIdsError:
        if not refused:
            fail("segment_max, ids apart", "no error", "an error", data=data, ids=ids)
    else:
        expected = np.zeros((14, data.shape[1]), data.dtype)
        expected[ids] = data
        if refused or got.tobytes() != expected.tobytes():
            fail("segment_max, ids apart", expected, got, data=data, ids=ids)
    counted["segments: ids apart"] += 1


def _new(inputs: list[Array]) -> None:
    got, expected = mo.maximum(*inputs), np.maximum(*inputs)
    moved = [axis for axis in range(expected.ndim) if expected.shape[axis] > 1]
    strides = [[x.strides[axis] for axis in moved] for x in (expected, got)]
    if got.tobytes() != expected.tobytes() or strides[0] != strides[1]:
        fail("maximum, layout", (expected, strides[0]), (got, strides[1]), inputs=inputs)
    counted["maximum: layouts of new outputs"] += 1


def layouts(dtype: Any = np.int8) -> None:
    """Test the layout of the output of two inputs: with every order of axes, reversed axes and broadcast axes."""
    for shape in ((2, 3), (3, 2), (2, 2, 2), (3, 2, 2), (2, 3, 4), (2, 1, 3)):
        rank = len(shape)
        orders = list(itertools.permutations(range(rank)))
        turns = list(itertools.product((1, -1), repeat=rank))
        for masks in _masks(rank, 2):
            kept = [order for order in orders if masks[1] == (True,) * rank or order == orders[0]]
            for first, second in itertools.product(orders, kept):
                for turn in turns if rank == 2 or all(masks[0]) else turns[:1]:
                    given = _values(shape, masks, dtype)
                    for k, (order, step) in enumerate(((first, turn), (second, (1,) * rank))):
                        steps = tuple(slice(None, None, each) for each in step)
                        moved = np.ascontiguousarray(given[k].transpose(order))
                        given[k] = moved.transpose(np.argsort(order))[steps]
                    _new(given)
