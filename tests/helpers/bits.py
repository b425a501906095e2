"""Bitwise comparison, pools of boundary values, memory layouts, and a fast oracle.

This module does not import the native core or the reference, so the oracle is independent of both. test_bits.py
compares the oracle with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxops import dtypes
from maxops.dtypes import DType

Array = np.ndarray[Any, np.dtype[Any]]

STORED = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL)
FLOATS = tuple(dtype for dtype in STORED if dtype.kind == "float")
INTEGERS = tuple(dtype for dtype in STORED if dtype.kind in ("int", "uint"))
each_type = pytest.mark.parametrize("dtype", STORED, ids=str)
each_float = pytest.mark.parametrize("dtype", FLOATS, ids=str)
# One type of each number of bytes, for code that depends only on the size.
each_width = pytest.mark.parametrize("dtype", [dtypes.UINT8, dtypes.FLOAT16, dtypes.FLOAT32, dtypes.INT64], ids=str)

# ------------------------------------------------------------------------------------------------- comparing


def words(array: Array) -> Array:
    """Return the elements' bits as native unsigned integers of the same shape, without a conversion to float."""
    size = array.dtype.itemsize
    looked_at = array.view(np.dtype(f"{'>' if array.dtype.byteorder == '>' else '='}u{size}"))
    return looked_at.astype(np.dtype(f"u{size}"), order="C", copy=True)


def of_words(dtype: DType, bits: Any) -> Array:
    """Return a writable array in C order and native byte order with these bits."""
    return np.array(bits, dtype.word, order="C").view(dtype.numpy)


def _bytes(array: Array) -> bytes:
    """Return the bytes of an array in C order. Before NumPy 2.3, `tobytes` rejects other orders above 32 dimensions."""
    return np.ascontiguousarray(array).tobytes()


def assert_same_bits(got: Any, expected: Array) -> None:
    """Raise unless both are arrays with the same dtype, shape and bits, in native byte order."""
    assert type(got) is np.ndarray, f"got a {type(got).__name__}, not an array"
    got_type, expected_type = (array.dtype.newbyteorder("=") for array in (got, expected))
    assert got_type == expected_type, f"dtype {got.dtype} is not {expected.dtype}"
    assert got.shape == expected.shape, f"shape {got.shape} is not {expected.shape}"
    if got.dtype == expected.dtype and _bytes(got) == _bytes(expected):
        return
    got_words, expected_words = words(got), words(expected)
    if _bytes(got_words) == _bytes(expected_words):
        return
    wrong = np.argwhere(got_words != expected_words)
    place = tuple(int(axis) for axis in wrong[0])
    digits = 2 * got.dtype.itemsize
    raise AssertionError(
        f"{len(wrong)} of {got.size} elements of {got.dtype} {got.shape} differ, first at {place}: "
        f"{int(got_words[place]):0{digits}X} ({got[place]!r}) is not {int(expected_words[place]):0{digits}X} "
        f"({expected[place]!r})"
    )


def assert_new(result: Array) -> None:
    """Raise unless an array may be a new result: in native byte order, writable, and with its own memory."""
    assert result.dtype.isnative
    assert result.flags.writeable
    assert result.flags.owndata


# --------------------------------------------------------------------------------------------------- values


def nan_words(dtype: DType) -> list[int]:
    """Return the bits of NaNs of both signs, quiet and signaling, with payloads of one bit, all bits, and others."""
    payloads = {1 << bit for bit in range(dtype.mantissa_bits)}
    payloads |= {(1 << dtype.mantissa_bits) - 1, (1 << dtype.mantissa_bits - 1) - 1, (1 << dtype.mantissa_bits - 1) + 1}
    return sorted(sign << dtype.bits - 1 | dtype.infinity_bits | payload for sign in (0, 1) for payload in payloads)


@cache
def pool_words(dtype: DType) -> tuple[int, ...]:
    """Return the bits of boundary values of the format and of its underlying integers."""
    top = (1 << dtype.bits) - 1
    if dtype.kind == "bool":
        return 0, 1
    around = {power + step for bit in range(dtype.bits) for power in [1 << bit] for step in (-1, 0, 1)}
    chosen = around | {top - word for word in around}  # integers around every power of two, and their complements
    half = dtype.bits // 2
    ends = {0, 1, (1 << half - 1) - 1, 1 << half - 1, (1 << half) - 1}
    chosen |= {high << half | low for high in ends for low in ends}  # boundary values in both halves
    if dtype.kind == "float":
        smallest_normal = 1 << dtype.mantissa_bits
        one = ((1 << dtype.exponent_bits - 1) - 1) << dtype.mantissa_bits
        magnitudes = {0, 1, smallest_normal - 1, smallest_normal, smallest_normal + 1, one - 1, one, one + 1}
        magnitudes |= {dtype.infinity_bits - 1, dtype.infinity_bits, smallest_normal >> 1}
        chosen |= {sign << dtype.bits - 1 | magnitude for sign in (0, 1) for magnitude in magnitudes}
        chosen |= set(nan_words(dtype))
    return tuple(sorted(word for word in chosen if 0 <= word <= top))


@cache
def _pool(dtype: DType) -> Array:
    return np.array(pool_words(dtype), dtype.word)


def pool(dtype: DType) -> Array:
    """Return the boundary values of a dtype as an array."""
    return of_words(dtype, _pool(dtype))


def spread(dtype: DType, count: int) -> Array:
    """Return `count` values from all parts of the pool, because its first values are all small and positive."""
    return np.take(pool(dtype), np.linspace(0, len(_pool(dtype)) - 1, count).astype(int))


def mixed(dtype: DType, shape: int | tuple[int, ...], seed: int = 0, nans: float = 0.02) -> Array:
    """Return random bits and values of the pool in equal parts. Each NaN is kept with the probability `nans`."""
    random = np.random.default_rng(seed)
    if dtype.kind == "bool":
        return of_words(dtype, random.integers(0, 2, shape, np.uint8))
    bits = random.integers(0, 1 << dtype.bits, shape, np.uint64).astype(dtype.word)
    bits = np.where(random.random(shape) < 0.5, random.choice(_pool(dtype), shape), bits)
    if dtype.kind == "float":
        ordinary = dtype.word.type((1 << dtype.bits) - 1 - (1 << dtype.mantissa_bits))  # clears a bit of the exponent
        is_nan = (bits & dtype.word.type((1 << dtype.bits - 1) - 1)) > dtype.word.type(dtype.infinity_bits)
        bits = np.where(is_nan & (random.random(shape) >= nans), bits & ordinary, bits)
    return of_words(dtype, bits)


def distinct(dtype: DType, shape: tuple[int, ...], seed: int = 0) -> Array:
    """Return distinct values without NaN in random order. Values repeat if the type has too few."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype.kind == "float":  # ranks from -Inf to +Inf are consecutive
        lowest, values = (1 << dtype.bits - 1) - 1 - dtype.infinity_bits, 2 * dtype.infinity_bits + 2
    else:
        lowest, values = 0, 2 if dtype.kind == "bool" else 1 << dtype.bits
    step = max(values // max(count, 2), 1)
    places = np.arange(count, dtype=np.uint64) % np.uint64(min(values, 1 << 63)) * np.uint64(step)
    np.random.default_rng(seed).shuffle(places)
    return of_words(dtype, _words_of_ranks(dtype, places + np.uint64(lowest))).reshape(shape)


# -------------------------------------------------------------------------------------------------- layouts


def _apart(values: Array, steps: Sequence[int]) -> Array:
    """Return the values in a larger buffer, `steps[axis]` elements apart, reversed if the step is negative."""
    room = [max(size * abs(step), 1) for size, step in zip(values.shape, steps, strict=True)]
    buffer = np.full(room, 0xA5, np.dtype("u1"))[..., np.newaxis].repeat(values.dtype.itemsize, axis=-1)
    whole = buffer.reshape(-1).view(values.dtype).reshape(room)
    for axis, (size, step) in enumerate(zip(values.shape, steps, strict=True)):
        along = np.moveaxis(whole, axis, 0)[:: abs(step)][:size]
        whole = np.moveaxis(along[::-1] if step < 0 else along, 0, axis)
    whole[...] = values
    return whole


def contiguous(values: Array) -> Array:
    return values.copy()


def strided(values: Array) -> Array:
    return _apart(values, [2 + axis % 2 for axis in range(values.ndim)])


def pitched(values: Array) -> Array:
    """Return contiguous rows with gaps between them."""
    return _apart(values, [2] * (values.ndim - 1) + [1] * min(values.ndim, 1))


def negative(values: Array) -> Array:
    return _apart(values, [-1] * values.ndim)


def negative_apart(values: Array) -> Array:
    return _apart(values, [-3 if axis % 2 else 2 for axis in range(values.ndim)])


def fortran(values: Array) -> Array:
    return values.copy(order="F")


def transposed(values: Array) -> Array:
    """Return the values with the first axis innermost in memory, and the other axes in order."""
    return np.moveaxis(np.moveaxis(values, 0, -1).copy(), -1, 0) if values.ndim else values.copy()


def swapped(values: Array) -> Array:
    """Return the values in the other byte order. One-byte types are unchanged."""
    other = np.empty(values.shape, values.dtype.newbyteorder("S"))
    other.view(values.dtype)[...] = values.copy().view(f"u{values.dtype.itemsize}").byteswap().view(values.dtype)
    return other


def swapped_strided(values: Array) -> Array:
    return _apart(swapped(values), [-2] * values.ndim)


def unaligned(values: Array) -> Array:
    return at_offset(values, 1)


def read_only(values: Array) -> Array:
    result = values.copy()
    result.flags.writeable = False
    return result


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    layout.__name__: layout
    for layout in (
        contiguous,
        strided,
        pitched,
        negative,
        negative_apart,
        fortran,
        transposed,
        swapped,
        swapped_strided,
        unaligned,
        read_only,
    )
}


def at_offset(values: Array, offset: int) -> Array:
    """Return the values in a contiguous array that begins `offset` bytes after a 64-byte cache line."""
    buffer = np.zeros(values.nbytes + 128, np.uint8)
    start = -buffer.ctypes.data % 64 + offset
    result = buffer[start : start + values.nbytes].view(values.dtype).reshape(values.shape)
    result[...] = values
    return result


class Guarded:
    """An array between guard bytes. `check` raises an error if they have changed."""

    MARGIN = 256

    def __init__(self, dtype: DType, shape: tuple[int, ...]) -> None:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.numpy.itemsize
        self._buffer = np.full(size + 2 * self.MARGIN, 0xC3, np.uint8)
        self.array: Array = self._buffer[self.MARGIN : self.MARGIN + size].view(dtype.numpy).reshape(shape)

    def check(self) -> None:
        before, after = self._buffer[: self.MARGIN], self._buffer[len(self._buffer) - self.MARGIN :]
        assert (before == 0xC3).all(), "bytes before the array were written"
        assert (after == 0xC3).all(), "bytes past the array were written"


# --------------------------------------------------------------------------------------------------- oracle

_NAN_RANK = np.uint64(2**64 - 1)


def ranks(array: Array) -> Array:
    """Return an integer for each element that orders the values. Every NaN has the same, highest integer."""
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    bits = words(array).astype(np.uint64)
    if dtype.kind in ("uint", "bool"):
        return bits
    sign = np.uint64(1 << dtype.bits - 1)
    if dtype.kind == "int":
        return bits ^ sign
    magnitude = bits & ~sign
    place = np.where(bits >= sign, sign - np.uint64(1) - magnitude, sign + magnitude)
    return np.where(magnitude > np.uint64(dtype.infinity_bits), _NAN_RANK, place)


def _words_of_ranks(dtype: DType, places: Array) -> Array:
    if dtype.kind in ("uint", "bool"):
        return places.astype(dtype.word)
    sign = np.uint64(1 << dtype.bits - 1)
    if dtype.kind == "int":
        return (places ^ sign).astype(dtype.word)
    bits = np.where(places >= sign, places - sign, sign + (sign - np.uint64(1) - places))
    return np.where(places == _NAN_RANK, np.uint64(dtype.nan_bits), bits).astype(dtype.word)


def _of_ranks(dtype: DType, places: Array) -> Array:
    return of_words(dtype, _words_of_ranks(dtype, places.reshape(-1))).reshape(places.shape)


def _type_of(array: Array) -> DType:
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    return dtype


def fast_maximum(*arrays: Array) -> Array:
    """Compute Max as NumPy's maximum of ranks."""
    result = ranks(arrays[0])
    for array in arrays[1:]:
        result = np.maximum(result, ranks(array))
    return _of_ranks(_type_of(arrays[0]), result)


def fast_reduce_max(data: Array, axes: tuple[int, ...] | None = None, keepdims: bool = True) -> Array:
    """Compute ReduceMax as NumPy's maximum of ranks."""
    dtype = _type_of(data)
    lowest = int(ranks(of_words(dtype, [dtype.lowest_bits]))[0])
    result = ranks(data).max(axis=axes or None, keepdims=keepdims, initial=lowest)
    return _of_ranks(dtype, np.asarray(result))


def fast_segment_max(data: Array, ids: Array, num_segments: int, fill_mode: str) -> Array:
    """Compute SegmentMax of sorted ids as NumPy's maximum of ranks."""
    dtype = _type_of(data)
    fill = dtype.lowest_finite_bits if fill_mode == "LOWEST" else 0
    result = of_words(dtype, np.full((num_segments, *data.shape[1:]), fill, dtype.word))
    native = ids.astype(np.int64)
    inside = native < num_segments
    starts = np.flatnonzero(np.diff(native, prepend=-1))
    if inside.any() and result.size:
        starts = starts[inside[starts]]
        highest = np.maximum.reduceat(ranks(data)[inside], starts, axis=0)
        result[native[starts]] = _of_ranks(dtype, highest)
    return result


def fast_unsorted_max(data: Array, ids: Array, num_segments: int, fill_mode: str) -> Array:
    """Compute SegmentMax of ids in any order. Drop ids that are out of range."""
    inside = (ids >= 0) & (ids < num_segments)
    order = np.argsort(ids[inside], kind="stable")
    return fast_segment_max(data[inside][order], ids[inside][order], num_segments, fill_mode)


def fast_first_in_axes(data: Array, axes: tuple[int, ...], keepdims: bool = True) -> Array:
    """Return the first indices of the maxima along axes, as the argmax of ranks."""
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    shape = [1 if axis in axes else size for axis, size in enumerate(data.shape) if keepdims or axis not in axes]
    if data.size == 0:
        return np.full(shape, -1, np.int64)
    rows = ranks(data).transpose(*kept, *sorted(axes)).reshape(*(data.shape[axis] for axis in kept), -1)
    return np.asarray(rows.argmax(-1), np.int64).reshape(shape)


def fast_first_in_segments(data: Array, ids: Array, result: Array) -> Array:
    """Return the first row of each segment that contains the result, or -1."""
    inside = np.flatnonzero((ids >= 0) & (ids < len(result)))
    segments = ids[inside].astype(np.int64)
    holds = ranks(data)[inside] == ranks(result)[segments]
    rows = np.full(result.shape, -1, np.int64)
    backwards, *others = (places[::-1] for places in np.nonzero(holds))
    rows[(segments[backwards], *others)] = inside[backwards]  # so that the first row overwrites the others
    return rows


# ----------------------------------------------------------------------------------------------- strategies


def elements(dtype: DType) -> st.SearchStrategy[int]:
    """Generate the bits of an element: a boundary value, or random bits."""
    if dtype.kind == "bool":
        return st.integers(0, 1)
    return st.one_of(st.sampled_from(pool_words(dtype)), st.integers(0, (1 << dtype.bits) - 1))


@st.composite
def arrays(draw: st.DrawFn, dtype: DType, shape: tuple[int, ...]) -> Array:
    """Generate an array: contiguous, strided, reversed, permuted, byte-swapped, unaligned or repeated."""
    repeated = [draw(st.integers(0, 5)) == 0 for _ in shape]
    own = tuple(min(size, 1) if repeat else size for size, repeat in zip(shape, repeated, strict=True))
    bits = draw(hnp.arrays(dtype.word, own, elements=elements(dtype)))
    values = of_words(dtype, bits)
    if draw(st.booleans()):
        values = swapped(values)
    if draw(st.integers(0, 7)) == 0:
        values = at_offset(values, draw(st.integers(1, 63)))
    elif draw(st.booleans()):
        steps = [draw(st.sampled_from((1, 2, 3, -1, -2))) for _ in own]
        memory = draw(st.permutations(range(len(own))))
        apart = _apart(values.transpose(memory), [steps[axis] for axis in memory])
        values = apart.transpose(np.argsort(memory))
    return np.broadcast_to(values, shape) if any(repeated) else values
