"""Outputs that overlap inputs or themselves, for every small layout and every byte offset.

The core's decisions, based on extents and strides, are compared with the bytes of every element. Then each operator
writes to outputs at any position in the memory of each argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array
from maxops import _native

Shape = tuple[int, ...]


def laid_out(memory: Array, dtype: Any, offset: int, shape: Shape, strides: Shape) -> Array:
    """Return an array in the memory, with strides in bytes."""
    return np.ndarray(shape, dtype, memory, offset, strides)


def bytes_of(offset: int, itemsize: int, shape: Shape, strides: Shape) -> list[set[int]]:
    """Return the set of bytes of each element."""
    places = [offset + sum(i * s for i, s in zip(at, strides, strict=True)) for at in np.ndindex(*shape)]
    return [set(range(place, place + itemsize)) for place in places]


def layouts(itemsize: int, rank: int) -> Iterator[tuple[Shape, Shape]]:
    """Yield shapes and strides of a rank: all small strides for one and two axes, and some for three."""
    lengths = {1: range(4), 2: (1, 2, 3), 3: (1, 2)}[rank]
    steps = {
        1: range(-3 * itemsize, 3 * itemsize + 1),
        2: range(-2 * itemsize - 1, 2 * itemsize + 2),
        3: sorted({sign * step for step in (0, 1, itemsize, 2 * itemsize, 4 * itemsize) for sign in (1, -1)}),
    }[rank]
    yield from product(product(lengths, repeat=rank), product(steps, repeat=rank))


def first_place(shape: Shape, strides: Shape) -> int:
    """Return the offset of an array's lowest byte from its first element."""
    return sum((size - 1) * -stride for size, stride in zip(shape, strides, strict=True) if stride < 0 < size)


@pytest.mark.parametrize(("itemsize", "rank"), [(1, 1), (2, 1), (4, 1), (8, 1), (1, 2), (2, 2), (4, 2), (2, 3)])
def test_an_output_that_overlaps_itself_is_known(itemsize: int, rank: int) -> None:
    """Test that an output whose elements share bytes is never accepted, and one with nested strides always is."""
    memory, elsewhere = np.zeros(400, np.uint8), np.zeros(1, f"u{itemsize}")
    found = {True: 0, False: 0}
    for shape, strides in layouts(itemsize, rank):
        out = laid_out(memory, f"u{itemsize}", 100 + first_place(shape, strides), shape, strides)
        elements = bytes_of(0, itemsize, shape, strides)
        is_free = sum(map(len, elements)) == len(set().union(*elements))
        says = _native.can_write_through(out, elsewhere, False)
        assert is_free or not says, (shape, strides)
        if not says:
            within = itemsize  # the extent of the axes inside; nested strides are at least as large
            for stride, size in sorted(
                (abs(stride), size) for size, stride in zip(shape, strides, strict=True) if size > 1
            ):
                if stride < within:
                    break
                within += stride * (size - 1)
            else:
                pytest.fail(f"shape {shape} with strides {strides} has no overlap, but one is reported")
        found[says] += 1
    assert min(found.values()) > 0


@pytest.mark.parametrize("rank", [0, 1, 2, 3])
@pytest.mark.parametrize(("written", "read"), [(1, 1), (1, 8), (8, 1), (2, 4), (4, 2), (4, 4), (8, 4)])
def test_an_output_that_shares_a_byte_with_an_input_is_known(written: int, read: int, rank: int) -> None:
    """Test each byte offset before, inside and after an input: an overlap is reported if the byte ranges overlap."""
    memory = np.zeros(300, np.uint8)
    shapes: dict[int, list[tuple[Shape, Shape]]] = {
        0: [((), ())],
        1: [((n,), (step * read,)) for n in (0, 1, 2, 3) for step in (-2, -1, 0, 1, 2)],
        2: [((2, 2), (a * read, b * read)) for a in (-3, 0, 2) for b in (-1, 1, 3)],
        3: [((2, 1, 2), (a * read, 5, b * read)) for a in (-4, 3) for b in (-1, 1)],
    }
    found = {True: 0, False: 0}
    for (shape, strides), out_shape, direction in product(shapes[rank], ((), (1,), (3,), (2, 2), (0,)), (1, -1)):
        data = laid_out(memory, f"u{read}", 100 + first_place(shape, strides), shape, strides)
        low = [min(each) for each in bytes_of(100 + first_place(shape, strides), read, shape, strides)]
        out_strides = tuple(direction * written * int(np.prod(out_shape[axis + 1 :])) for axis in range(len(out_shape)))
        for place in range(100 - 5 * written, 100 + 8 * read * max(1, rank) + 1):
            offset = place + first_place(out_shape, out_strides)
            out = laid_out(memory, f"u{written}", offset, out_shape, out_strides)
            own = [min(each) for each in bytes_of(offset, written, out_shape, out_strides)]
            if not low or not own:
                continue  # without elements, either answer is correct
            meet = min(own) < max(low) + read and min(low) < max(own) + written
            assert _native.can_write_through(out, data, False) == (not meet), (shape, strides, out_shape, place)
            found[meet] += 1
    assert min(found.values()) > 0


def test_in_place_is_the_same_array_and_no_other() -> None:
    """Test that "in place" requires the same memory, shape, strides and byte order, and no overlap with itself."""
    memory = np.zeros(64, np.uint8)
    places = [(0, (2, 2), (4, 2)), (0, (2, 2), (2, 4)), (0, (4,), (2,)), (2, (2, 2), (4, 2)), (0, (2, 1), (4, 2))]
    places += [(0, (2, 2), (2, 2)), (0, (3, 2), (0, 2)), (20, (3, 2), (-4, 2)), (0, (2,), (0,))]
    for (k, one), (n, other), kind in product(enumerate(places), enumerate(places), ("<i2", ">i2")):
        out, data = laid_out(memory, "<i2", *one), laid_out(memory, kind, *other)
        is_same = k == n and kind == "<i2"
        elements = bytes_of(one[0], 2, *one[1:])
        is_free = len(set().union(*elements)) == sum(map(len, elements))
        apart = not set().union(*elements) & set().union(*bytes_of(other[0], 2, *other[1:]))
        assert _native.can_write_through(out, data, True) == (is_free and (is_same or apart))
        assert not _native.can_write_through(out, data, False) or apart


# ---------------------------------------------------------------------------------------------------------- calls

ROWS, WIDTH = 5, 3


def _maximum(a: Array, b: Array, out: Array | None = None) -> Any:
    return mo.maximum(a, b, out=out)


def _reduce(data: Array, out: Array | None = None) -> Any:
    return mo.reduce_max(data, (0,), keepdims=False, out=out)


def _segments(data: Array, ids: Array, out: Array | None = None) -> Any:
    return mo.segment_max(data, ids, 4, fill_mode="ZERO", out=out)


def _unsorted(data: Array, ids: Array, out: Array | None = None) -> Any:
    return mo.segment_max(data, ids, 4, fill_mode="ZERO", sorted=False, out=out)


def _by_offsets(data: Array, offsets: Array, out: Array | None = None) -> Any:
    return mo.segment_max(data, offsets=offsets, fill_mode="ZERO", out=out)


CALLS: dict[str, tuple[Any, tuple[Shape, ...], tuple[tuple[int, ...] | None, ...]]] = {
    # the call, the shapes of its inputs, and the values of ids or offsets
    "maximum": (_maximum, ((ROWS, WIDTH), (ROWS, WIDTH)), (None, None)),
    "maximum of a row": (_maximum, ((ROWS, WIDTH), (1, WIDTH)), (None, None)),
    "reduce_max": (_reduce, ((ROWS, WIDTH),), (None,)),
    "segment_max": (_segments, ((ROWS, WIDTH), (ROWS,)), (None, (0, 0, 1, 3, 3))),
    "segment_max of a column": (_segments, ((ROWS,), (ROWS,)), (None, (0, 0, 1, 3, 3))),
    "ids in any order": (_unsorted, ((ROWS, WIDTH), (ROWS,)), (None, (3, 0, 1, 0, 3))),
    "by offsets": (_by_offsets, ((ROWS, WIDTH), (5,)), (None, (0, 2, 2, 3, 5))),
}


@pytest.mark.parametrize("kind", ["int8", "uint16", "float32", "int64"])
@pytest.mark.parametrize("index", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("name", CALLS)
def test_an_output_anywhere_in_the_memory_of_an_argument(name: str, index: str, kind: str) -> None:
    """Test that the result equals that of a call on copies, and that no other memory changes."""
    call, shapes, indices = CALLS[name]
    if index != "int64" and indices == (None,) * len(indices):
        return
    random = np.random.default_rng(5)
    dtypes = [kind if listed is None else index for listed in indices]
    sizes = [int(np.prod(shape)) * np.dtype(of).itemsize for shape, of in zip(shapes, dtypes, strict=True)]
    begins = [40, *(40 + np.cumsum(sizes)).tolist()]
    start = random.integers(0, 256, begins[-1] + 60, np.uint8)
    if kind == "float32":
        start &= 0x3F  # finite numbers
    for begin, size, listed, of in zip(begins, sizes, indices, dtypes, strict=False):
        if listed is not None:
            start[begin : begin + size] = np.array(listed, of).view(np.uint8)

    def given(memory: Array) -> list[Array]:
        return [np.ndarray(shape, of, memory, begin) for shape, of, begin in zip(shapes, dtypes, begins, strict=False)]

    correct = call(*(each.copy() for each in given(start)))
    for offset in range(len(start) - correct.nbytes + 1):
        for back in (False, True):
            memory, expected = start.copy(), start.copy()
            strides = tuple(-each for each in correct.strides) if back else correct.strides
            last = sum((size - 1) * each for size, each in zip(correct.shape, correct.strides, strict=True))
            place = offset + (last if back else 0)
            np.ndarray(correct.shape, kind, expected, place, strides)[...] = correct
            out = np.ndarray(correct.shape, kind, memory, place, strides)
            assert call(*given(memory), out=out) is out
            assert memory.tobytes() == expected.tobytes(), (offset, back)


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
@pytest.mark.parametrize("kind", ["uint8", "int16"])
def test_an_output_that_overlaps_itself_holds_a_result_in_each_place(name: str, kind: str) -> None:
    """Test that a result overwrites an output of two axes with any strides as if elements were assigned one by one."""
    itemsize = np.dtype(kind).itemsize
    data = np.arange(1, 13, dtype=kind).reshape(2, 2, 3)
    calls: dict[str, Any] = {
        "maximum": lambda **more: mo.maximum(data[0], data[1], **more),
        "reduce_max": lambda **more: mo.reduce_max(data, (0,), keepdims=False, **more),
        "segment_max": lambda **more: mo.segment_max(data.reshape(4, 3), [0, 0, 1, 1], fill_mode="ZERO", **more),
    }
    expected = calls[name]()
    assert expected.shape == (2, 3)
    steps = range(-3 * itemsize, 3 * itemsize + 1, itemsize)
    for strides in product(steps, repeat=2):
        memory = np.zeros(60 * itemsize, np.uint8)
        place = 30 * itemsize
        calls[name](out=np.ndarray(expected.shape, kind, memory, place, strides))
        fits: dict[int, set[int]] = {}
        for at in np.ndindex(2, 3):
            element = (place + at[0] * strides[0] + at[1] * strides[1]) // itemsize
            fits.setdefault(element, set()).add(int(expected[at]))
        for element, value in enumerate(memory.view(kind).tolist()):
            assert value in fits.get(element, {0}), (strides, element)
