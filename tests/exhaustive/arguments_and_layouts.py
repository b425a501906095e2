"""Tests how calls are checked and prepared: shapes, axes, layouts, types of ids, and every fault of ids and offsets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

import numpy as np

import maxops as mo
from maxops import _native, maximum, reduce_max, segment_max
from maxops.errors import MaxopsError
from maxops.plan import LARGEST_OUTPUT

from .reduce import LAYOUTS
from .states import Array, counted, fail, made, threads

RANK = 64  # NumPy's own limit


def _as(array: Array, layout: str) -> Array:
    """Return a 0-D or 1-D array in a layout: contiguous, byte-swapped, strided or backwards."""
    if layout == "backwards":
        return array[::-1].copy()[::-1]
    if layout == "strided":
        return np.repeat(array, 2)[::2] if array.ndim else array
    return array.astype(array.dtype.newbyteorder("S")) if layout == "swapped" else array


# ---------------------------------------------------------------------------- Max


def fewer_axes(dtype: Any = np.float32) -> None:
    """Test inputs of every rank up to that of the output, including scalars. Each input in turn has the maxima."""
    for full in ((), (3,), (2, 2), (3, 2), (1, 3), (0, 2), (2, 3, 2)):
        tails = [full[start:] for start in range(len(full) + 1)]
        for count in (2, 3):
            for shapes in itertools.product(tails, repeat=count):
                for winner, swapped in itertools.product(range(count), (False, True)):
                    inputs = []
                    for number, shape in enumerate(shapes):
                        low = 50 * number + (1000 if number == winner else 0)
                        array = np.arange(low, low + int(np.prod(shape))).astype(dtype).reshape(shape)
                        inputs.append(_as(array, "swapped" if swapped and array.ndim == 0 else ""))
                    expected = np.asarray(inputs[0], dtype)
                    for other in inputs[1:]:
                        expected = np.asarray(np.maximum(expected, other))
                    got = mo.maximum(*inputs)
                    if got.shape != expected.shape or (got != expected).any():
                        fail("maximum, fewer axes", expected, got, inputs=inputs)
                    counted["maximum: fewer axes"] += 1


def part_of_output(dtype: Any = np.float32) -> None:
    """Test an input that is a broadcast part of the output: it must not be written before it is read."""
    for count in (1, 2):
        with threads(count):
            for shape in ((3,), (9,), (40,), (2, 3), (4, 5), (3, 8)):
                for part in (
                    [slice(1)] * len(shape),
                    [0] * (len(shape) - 1) + [slice(1)],
                    [slice(1)],
                    [0] * len(shape),
                ):
                    out = np.zeros(shape, dtype)
                    first = out[(*part, ...)]
                    other = np.arange(out.size, 0, -1).reshape(shape).astype(dtype)
                    mo.maximum(first, other, out=out)
                    if (out != other).any():
                        fail("maximum, a part of the output", other, out, part=part)
                    counted["maximum: a part of the output"] += 1


def _within(limit: int, *inputs: Any, out: Array) -> Array:
    """Compute Max with a limit on the bytes of new arrays."""
    _native.set_largest_output(limit)
    try:
        maximum(*inputs, out=out)
    finally:
        _native.set_largest_output(LARGEST_OUTPUT)
    return out


def in_place(dtype: Any = np.float32) -> None:
    """Test that an output that is also an input needs no new array."""
    for shape in ((3,), (2, 3), ()):
        for place in (0, 1):
            out = np.arange(6).astype(dtype)[: int(np.prod(shape))].reshape(shape)
            inputs = [out, np.full(shape, 1, dtype)]
            expected = np.maximum(*inputs)
            made(mo, _within, 1, *inputs[:: 1 - 2 * place], out=out)
            if (out != expected).any():
                fail("maximum, in place", expected, out, place=place)
            counted["maximum: in place"] += 1


def _refused(function: Callable[..., Any], *inputs: Any, **options: Any) -> Array:
    """Return the result of a call, or the name and the message of its error."""
    try:
        return np.asarray(function(*inputs, **options))
    except MaxopsError as error:
        return np.array(f"{type(error).__name__}: {error}")


class _AskedError(MaxopsError):
    """Raised if the core passes a clearly valid call to Python."""


def _asked(*inputs: Any, **options: Any) -> NoReturn:
    raise _AskedError("the core did not take this call")


def _core(operator: str, **rules: Any) -> Callable[..., Any]:
    return partial(_refused, _native.Entry(_asked, operator, **rules))


def broadcast_rules(dtype: Any = np.float32) -> None:
    """Test the three rules of broadcasting: equal shapes, NumPy's, and NumPy's without size 0 against size 1."""
    same, numpy, strict = (_core("maximum", broadcast=rule) for rule in ("none", "numpy", "strict"))
    shapes = [(), *((size,) for size in range(3)), *itertools.product(range(3), repeat=2), (1, 0, 2)]
    for count in (1, 2, 3):
        for chosen in itertools.product(shapes[:: 1 if count < 3 else 2], repeat=count):
            try:
                whole: tuple[int, ...] | None = np.broadcast_shapes(*chosen)
            except ValueError:
                whole = None
            rank = max(map(len, chosen))
            aligned = [(1,) * (rank - len(shape)) + shape for shape in chosen]
            mixed = any({0, 1} <= set(sizes) for sizes in zip(*aligned, strict=True))
            for layout in ("contiguous", "fortran", "backwards"):
                inputs = [LAYOUTS[layout](np.full(shape, number, dtype)) for number, shape in enumerate(chosen)]
                for function, allowed in (
                    (same, len(set(chosen)) == 1),
                    (numpy, whole is not None),
                    (strict, whole is not None and not mixed),
                ):
                    got = made(mo, function, *inputs)
                    if (got.dtype == dtype) != allowed or (allowed and got.shape != whole):
                        fail(f"{function}", whole if allowed else "no result", got, shapes=chosen, layout=layout)
                    counted["maximum: rules of broadcasting"] += 1


def every_rank() -> None:
    """Test 64 axes, NumPy's maximum."""
    ones = np.ones((1,) * RANK, np.float32)
    swapped = np.array(2, np.dtype(np.float32).newbyteorder("S"))
    for inputs in ((ones, swapped), (swapped, ones), (ones, ones), (ones[..., 0], ones)):
        got = mo.maximum(*inputs)
        if got.shape != ones.shape or (got != max(map(np.max, inputs))).any():
            fail("maximum of 64 axes", (ones.shape, 2), got)
        counted["maximum: 64 axes"] += 1
    data = np.arange(8, dtype=np.float32).reshape((2, 2, 2) + (1,) * (RANK - 3))
    for layout in (data, data.T, data[::-1]):
        for axes in ((0,), (RANK - 1,), (0, 2, RANK - 1), tuple(range(RANK)), None):
            got = mo.reduce_max(layout, axes, keepdims=True)
            expected = layout.max(axes, keepdims=True)
            if got.shape != expected.shape or (got != expected).any():
                fail("reduce_max of 64 axes", expected, got, axes=axes)
            counted["reduce_max: 64 axes"] += 1


def _with_strides(function: Callable[..., Any], *inputs: Any, **options: Any) -> tuple[Array, Array]:
    """Return the result and its strides."""
    got = function(*inputs, **options)
    return got, np.array(got.strides, np.int64)


def _laid_out(shape: tuple[int, ...], order: list[int], itemsize: int) -> list[int]:
    strides = [0] * len(shape)
    for axis in order[::-1]:
        strides[axis] = itemsize
        itemsize *= max(shape[axis], 1)
    return strides


def layouts(dtype: Any = np.float32) -> None:
    """Test that new outputs have the memory layout of the inputs."""
    itemsize = np.dtype(dtype).itemsize
    for shape in ((3,), (2, 3), (3, 2), (2, 3, 4)):
        rank = len(shape)
        for order in itertools.permutations(range(rank)):
            for flip in (1, -1):
                lies = np.empty([shape[axis] for axis in order], dtype)[::flip].transpose(np.argsort(order))
                lies[...] = np.arange(lies.size).reshape(shape)
                for count in (1, 2, 8, 9, 10):
                    got, strides = made(mo, partial(_with_strides, maximum), *[lies] * count)
                    if got.tobytes() != lies.tobytes() or strides.tolist() != _laid_out(shape, [*order], itemsize):
                        fail("the layout of maximum", order, strides, shape=shape, count=count)
                    counted["maximum: layouts of new outputs"] += 1
                    if count > 1:
                        row = lies[(0,) * (rank - 1)]
                        got, strides = made(mo, partial(_with_strides, maximum), row, *[lies] * (count - 1))
                        if strides.tolist() != _laid_out(shape, [*order], itemsize):
                            fail("the layout of maximum, a row", order, strides, shape=shape, count=count)
                for size in range(1, rank + 1):
                    for axes, keepdims in itertools.product(itertools.combinations(range(rank), size), (True, False)):
                        _layout_of_reduction(lies, [*order], axes, keepdims)


def empty_layouts(dtype: Any = np.float32) -> None:
    """Test that arrays without elements count as contiguous, whatever their strides are."""
    for shape, layout in (((3, 0), "fortran"), ((0, 3), "fortran"), ((2, 0, 3), "fortran"), ((0,), "swapped")):
        data = LAYOUTS[layout](np.empty([size + 1 for size in shape], dtype))[tuple(map(slice, shape))]
        for function in (partial(_with_strides, maximum), partial(_with_strides, reduce_max, axes=len(shape) - 1)):
            got, strides = made(mo, function, data)
            if layout == "fortran" and strides.tolist() != [*np.empty(got.shape, dtype).strides]:
                fail(
                    "the layout of no elements, maximum or reduce_max",
                    np.empty(got.shape, dtype).strides,
                    strides,
                    shape=shape,
                )
            counted["layouts of no elements"] += 1


def _layout_of_reduction(data: Array, order: list[int], axes: tuple[int, ...], keepdims: bool) -> None:
    expected = data.max(axes, keepdims=keepdims)
    kept = [axis for axis in range(data.ndim) if keepdims or axis not in axes]
    places = [kept.index(axis) for axis in order if axis in kept]
    got, strides = made(mo, partial(_with_strides, reduce_max), data, axes, keepdims=keepdims)
    correct = _laid_out(expected.shape, places, data.itemsize)
    if got.tobytes() != expected.tobytes() or strides.tolist() != correct:
        fail("the layout of reduce_max", correct, strides, shape=data.shape, axes=axes, order=order)
    counted["reduce_max: layouts of new outputs"] += 1


# ---------------------------------------------------------------------------- ReduceMax


def axes(dtype: Any = np.float32) -> None:
    """Test every list of one or two axes from -4 to 3, for every rank up to three: a maximum or an error."""
    for rank in range(4):
        data = -np.arange(int(np.prod((2, 3, 4)[:rank]))).reshape((2, 3, 4)[:rank]).astype(dtype)
        for chosen in itertools.chain(*(itertools.product(range(-4, 4), repeat=count) for count in (1, 2))):
            for negative, lowest in ((True, -rank), (False, 0)):
                named = [axis % max(rank, 1) for axis in chosen]
                allowed = all(lowest <= axis < rank for axis in chosen) and len(set(named)) == len(named)
                got = made(mo, _core("reduce_max", negative_axes=negative), data, chosen)
                if (got.dtype == dtype) != allowed:
                    fail("reduce_max", "a maximum" if allowed else "no result", got, axes=chosen, negative=negative)
                if allowed and got.tobytes() != data.max(tuple(named), keepdims=True).tobytes():
                    fail("reduce_max", data.max(tuple(named), keepdims=True), got, axes=chosen)
                counted["reduce_max: axes"] += 1


def larger(dtype: Any = np.float64) -> None:
    """Test results larger than a thread's scratch memory, from contiguous data with and without elements."""
    for shape, axis in (((1 << 17, 0), 1), ((0, 1 << 17), 0), ((1 << 16, 2), 1), ((2, 1 << 16), 0), ((1500, 2, 2), 1)):
        data = np.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
        got = mo.reduce_max(data, axis, keepdims=False)
        if got.tobytes() != data.max(axis, initial=-np.inf).tobytes():
            fail("reduce_max, many outputs", data.max(axis, initial=-np.inf), got, shape=shape)
        counted["reduce_max: many outputs"] += 1


def with_initial(dtype: Any = np.float32) -> None:
    """Test `initial` with outputs of several layouts."""
    for shape, axis in itertools.product(((2, 3), (3, 2), (4, 9), (20, 3), (2, 0), (0, 2)), (0, 1)):
        data = (np.arange(int(np.prod(shape))) - 3).reshape(shape).astype(dtype)
        expected = data.max(axis, initial=1)
        size = len(expected)
        for whole in (np.zeros(3 * size, dtype), np.zeros(3 * size, np.dtype(dtype).newbyteorder("S"))):
            for out in (whole[:size], whole[size : 2 * size], whole[: 2 * size : 2], whole[size - 1 :: -1][:size]):
                whole[:] = 77
                mo.reduce_max(data, axis, keepdims=False, out=out, initial=dtype(1))
                if (out != expected).any() or (whole == 77).sum() != 2 * size:
                    fail("reduce_max, initial, out", expected, whole, data=data, axis=axis)
                counted["reduce_max: initial, out"] += 1


# ---------------------------------------------------------------------------- ids and offsets, one by one


def _fault(indices: Array, *rules: Any) -> Array:
    """Return the first fault of ids or offsets as text."""
    return np.array(repr(_native.check_indices(indices, *rules)))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _id_fault(ids: tuple[int, ...], is_sorted: bool, negative: bool, limit: int | None) -> Any:
    """Return the first fault of ids by the definition, checking one rule after the other."""
    for place, value in enumerate(ids):
        if negative and value < 0:
            return "negative_id", place, value, 0
    for place, value in enumerate(ids):
        if limit is not None and value >= limit:
            return "id_too_large", place, _signed(value), limit
    for place in range(1, len(ids) if is_sorted else 0):
        if ids[place] < ids[place - 1]:
            return "ids_decrease", place, _signed(ids[place]), _signed(ids[place - 1])
    return None


def _offset_fault(offsets: tuple[int, ...], rows: int) -> Any:
    if offsets[0] != 0:
        return "offsets_begin", 0, _signed(offsets[0]), 0
    for place in range(1, len(offsets)):
        if offsets[place] < offsets[place - 1]:
            return "offsets_decrease", place, _signed(offsets[place]), _signed(offsets[place - 1])
    if offsets[-1] != rows:
        return "offsets_end", len(offsets) - 1, _signed(offsets[-1]), rows
    return None


VALUES: dict[Any, tuple[int, ...]] = {
    np.int32: (-1, 0, 1, 3),
    np.int64: (-2, 0, 1, 1 << 32, (1 << 63) - 1),
    np.uint64: (0, 1, 1 << 63, (1 << 64) - 1),
}


def _sequences(most: int, least: int = 0) -> Iterator[tuple[Any, tuple[int, ...], Array]]:
    """Yield sequences of each type as contiguous arrays, and short sequences in every layout."""
    for dtype, values in VALUES.items():
        for count in range(least, most + 1):
            for chosen in itertools.product(values, repeat=count):
                for layout in ("", "strided", "swapped", "backwards")[: 4 if count < 3 else 1]:
                    yield dtype, chosen, _as(np.array(chosen, dtype), layout)


def faults() -> None:
    """Test which of up to three ids or offsets is the first fault, for every set of rules that a call may have."""
    for _, chosen, given in _sequences(3):
        for is_sorted, limit in itertools.product((True, False), (None, 0, 1, 2, (1 << 63) - 1)):
            _one_fault(chosen, given, (False, is_sorted, True, limit, len(chosen)))
        _one_fault(chosen, given, (False, True, False, None, len(chosen)))
    for _, chosen, given in _sequences(3, 1):
        for rows in (0, 1, 3):
            _one_fault(chosen, given, (True, True, True, None, rows))


def _one_fault(chosen: tuple[int, ...], given: Array, rules: tuple[Any, ...]) -> None:
    by_offsets, is_sorted, negative, limit, rows = rules
    expected = _offset_fault(chosen, rows) if by_offsets else _id_fault(chosen, is_sorted, negative, limit)
    got = made(mo, _fault, given, *rules)
    if got != repr(expected):
        fail("segment_max, check_indices", expected, got, indices=given, rules=rules)
    counted["ids and offsets: faults"] += 1


# ---------------------------------------------------------------------------- SegmentMax


def every_id(most: int = 3) -> None:
    """Test ids of each type and layout: sorted, unsorted and dropped, with several numbers of segments."""
    core = _core("segment_max")
    planned = partial(_refused, segment_max)
    for dtype, chosen, given in _sequences(most):
        every = np.ascontiguousarray(np.arange(2 * len(chosen), dtype=np.float32).reshape(-1, 2)[::-1] - 100)
        for is_sorted, outside in itertools.product((True, False), (None, "error", "drop")):
            for count in (None, 0, 2):
                if count is None and max(chosen, default=0) > 1000:
                    continue  # the output would be too large
                options = {"sorted": is_sorted, "out_of_range": outside, "num_segments": count}
                # The core leaves a NumPy string to the planner, which then asks the core to check the ids.
                _one_of_ids(partial(planned, fill_mode=np.str_("ZERO")), every, chosen, given, options)
                # The planner handles ids that are, or may be, above the maximum of int64.
                if dtype is not np.uint64 or (outside != "drop" and max(chosen, default=0) < 1 << 63):
                    _one_of_ids(partial(core, fill_mode="ZERO"), every, chosen, given, options)
                    _one_of_ids(partial(core, fill_mode="ZERO"), every[:, :0], chosen, given, options)


def _one_of_ids(
    function: Callable[..., Any], data: Array, chosen: tuple[int, ...], given: Array, options: dict[str, Any]
) -> None:
    expected = _segments(data, chosen, **options)
    got = made(mo, partial(function, **options), data, given)
    if (got.dtype.kind == "U") != (expected is None):
        fail("segment_max", "an error" if expected is None else "maxima", got, ids=given, **options)
    if expected is not None and (got.shape != expected.shape or (got != expected).any()):
        fail("segment_max", expected, got, ids=given, **options)
    counted["ids of every type"] += 1


def _segments(data: Array, ids: tuple[int, ...], sorted: bool, out_of_range: str | None, num_segments: Any) -> Any:
    """Return the maxima by the definition, or None for an error."""
    drops = out_of_range == "drop"
    past = out_of_range == "error" or (out_of_range is None and not sorted)
    if _id_fault(ids, sorted, not drops, num_segments if past else None) is not None:
        return None
    count = max(max(ids, default=-1), -1) + 1 if num_segments is None else num_segments
    best = np.zeros((count, data.shape[1]), np.float32)
    for segment in range(count):
        rows = [place for place, value in enumerate(ids) if value == segment]
        if rows:
            best[segment] = data[rows].max(0)
    return best


def every_offset() -> None:
    """Test offsets of each type and layout: valid and invalid, checked and unchecked, with several num_segments."""
    core = _core("segment_max")
    for dtype, chosen, given in _sequences(3, 1):
        for rows in (0, 1) if dtype is not np.int32 else (0, 1, 3):
            data = -1 - np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
            fault = _offset_fault(chosen, rows)
            for count in (None, 0, 1, 4):
                size = len(chosen) - 1 if count is None else count
                expected, empty = _by_offsets(data, chosen, size) if fault is None else (np.zeros((size, 2)), None)
                got = made(mo, partial(core, fill_mode="ZERO", num_segments=count), data, offsets=given)
                if (got.dtype.kind == "U") != (fault is not None):
                    fail("segment_max by offsets", "an error" if fault else "maxima", got, offsets=given, rows=rows)
                if fault is None and (got.shape != expected.shape or (got != expected).any()):
                    fail("segment_max by offsets", expected, got, offsets=given, rows=rows, count=count)
                if empty is not None:
                    _with_mask(data, given, count, expected, empty)
                guarded = np.full((size + 2, 2), 7, np.float32)
                made(mo, partial(_unchecked, fault is None, count), data, given, out=guarded[1:-1])
                if (guarded[[0, -1]] != 7).any() or (fault is None and (guarded[1:-1] != expected).any()):
                    fail("segment_max by unchecked offsets", expected, guarded, offsets=given, rows=rows)
                counted["offsets of every type"] += 2
    for lengths in itertools.product((0, 2, 5), repeat=4):
        offsets = np.cumsum((0, *lengths))
        data = -1 - np.arange(2 * sum(lengths), dtype=np.float32).reshape(-1, 2)
        for count in (None, 2, 6):
            _with_mask(data, offsets, count, *_by_offsets(data, offsets.tolist(), 4 if count is None else count))


def _by_offsets(data: Array, offsets: Sequence[int], size: int) -> tuple[Array, Array]:
    """Return the maxima by the definition, and a mask of the empty segments."""
    best, empty = np.zeros((size, 2), np.float32), np.ones(size, bool)
    for segment in range(min(size, len(offsets) - 1)):
        begin, end = offsets[segment : segment + 2]
        if begin < end:
            best[segment], empty[segment] = data[begin:end].max(0), False
    return best, empty


def _with_mask(data: Array, offsets: Array, count: int | None, expected: Array, empty: Array) -> None:
    best, _, none = mo.segment_max(
        data, offsets=offsets, num_segments=count, fill_mode="ZERO", return_indices=True, return_empty=True
    )
    if best.tobytes() != expected.tobytes() or none.tolist() != empty.tolist():
        fail("segment_max by offsets, empty", (expected, empty), (best, none), offsets=offsets)
    counted["offsets: empty"] += 1


def _unchecked(is_valid: bool, count: int | None, data: Array, offsets: Array, out: Array) -> Array:
    """Compute with unchecked offsets. If they are invalid, the content of the output is unspecified."""
    segment_max(data, offsets=offsets, num_segments=count, fill_mode="ZERO", check_ids=False, out=out)
    if not is_valid:
        out[...] = 0
    return out


def masks() -> None:
    """Test `return_empty` and `return_indices` with every type of ids, sorted and unsorted, and without segments."""
    for _, chosen, given in _sequences(3):
        if any(value < 0 or value > 1 for value in chosen):
            continue
        for is_sorted, count in itertools.product((True, False), (None, 0, 1, 3)):
            if is_sorted and [*chosen] != sorted(chosen):
                continue
            data = -1 - np.arange(2 * len(chosen), dtype=np.float32).reshape(-1, 2)
            size = max(chosen, default=-1) + 1 if count is None else count
            best, index, empty = mo.segment_max(
                data,
                given,
                count,
                fill_mode="ZERO",
                sorted=is_sorted,
                out_of_range="drop",
                return_indices=True,
                return_empty=True,
            )
            first = [chosen.index(segment) if segment in chosen else -1 for segment in range(size)]
            if empty.tolist() != [place < 0 for place in first] or index.tolist() != [[place] * 2 for place in first]:
                fail("segment_max, indices and empty", first, (best, index, empty), ids=given, sorted=is_sorted)
            counted["ids of every type: indices, empty"] += 1


def steps_in_runs() -> None:
    """Test long runs with one lower or higher id: an error wherever ids decrease, for new and given outputs."""
    for rows in (5, 9, 17, 33):
        for place in range(1, rows):
            for other in (0, 2):
                ids = np.ones(rows, np.int64)
                ids[place] = other
                data = -np.arange(1, rows + 1, dtype=np.float32)
                out = np.full(5, 7, np.float32)
                for options, lies in itertools.product(({}, {"out": out[1:-1]}), (ids, np.repeat(ids, 2)[::2])):
                    got = made(mo, partial(_refused, segment_max, fill_mode="ZERO"), data, lies, 3, **options)
                    if (got.dtype.kind == "U") != (other == 0 or place < rows - 1) or (out[[0, -1]] != 7).any():
                        fail("segment_max of a run with a step", "an error", got, ids=ids)
                    counted["ids: steps in runs"] += 1


def guarded(dtype: Any = np.float32) -> None:
    """Test that calls write only the caller's output, and nothing before or after it."""
    for ids in itertools.chain(*(itertools.combinations_with_replacement(range(4), rows) for rows in range(4))):
        for width, count in itertools.product((1, 2), (1, 3, 4)):
            data = -1 - np.arange(len(ids) * width).reshape(len(ids), width).astype(dtype)
            memory = np.full((count + 2, width), 7, dtype)
            mo.segment_max(data, np.array(ids, np.int64), count, fill_mode="ZERO", out=memory[1:-1])
            expected = np.zeros((count, width), dtype)
            for segment in {*ids} & {*range(count)}:
                expected[segment] = data[ids.index(segment)]
            if (memory[[0, -1]] != 7).any() or (memory[1:-1] != expected).any():
                fail("segment_max, guarded", expected, memory, ids=ids, count=count)
            counted["sorted ids: guarded"] += 1
