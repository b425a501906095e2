"""Generates the calls that verify each claim, and the results that the rules allow for each call.

If a call breaks several rules, any of their errors is allowed, because no clause defines an order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise, product
from math import isinf, isnan, prod
from typing import Any

import numpy as np

from planner.rows import (
    ARRAY,
    AXES,
    AXES_RANGE,
    AXES_UNIQUE,
    COUNT,
    EMPTY,
    EMPTY_SEGMENT,
    EVERY,
    FLOATS,
    FOREIGN,
    IDS,
    IDS_SHAPE,
    INDEX_TYPE,
    INTEGERS,
    MAX,
    MAXIMUM,
    NO_ATTRIBUTE,
    NOOP,
    NUM_SEGMENTS,
    OBJECTS,
    OFFSETS,
    OUT,
    OUT_OF_RANGE,
    RANK,
    REDUCE,
    REDUCE_MAX,
    SCALAR,
    SEGMENT,
    SEGMENT_AXIS,
    SEGMENT_MAX,
    SHAPE,
    TYPE,
    ZERO_SIZE,
    Row,
    Rule,
    Seen,
    Shape,
    Trial,
    bits_of,
    dtype_of,
    forms,
    gives,
    zeros,
)

# ------------------------------------------------------------------------------------------------ Max


def shape_of_max(row: Row, shapes: Sequence[Shape]) -> Shape | frozenset[Seen]:
    """Return the shape of the result of Max, or the errors of the broken rules.

    Max-1 and Max-6 require equal shapes. The other versions follow NumPy's broadcasting rules. SONNX rejects broadcasts
    between sizes 0 and 1.
    """
    if row.standard == "ONNX" and row.version in (1, 6):
        return shapes[0] if len({*shapes}) == 1 else row.breaks(SHAPE)
    rank = max(map(len, shapes))
    sizes = [{*column} for column in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True)]
    broken = [SHAPE] if any(len(along - {1}) > 1 for along in sizes) else []
    broken += [ZERO_SIZE] if row.standard.startswith("SONNX") and any(along >= {0, 1} for along in sizes) else []
    return row.breaks(*broken) if broken else tuple(max(along - {1}, default=1) for along in sizes)


def shapes_up_to(rank: int, sizes: Iterable[int]) -> list[Shape]:
    """Return all shapes with up to `rank` axes of these sizes."""
    return [shape for r in range(rank + 1) for shape in product(sizes, repeat=r)]


def broadcasting() -> Iterator[Trial]:
    """Yield calls of Max with one to three inputs of up to two axes, and with two inputs of up to three axes."""
    few, many = shapes_up_to(2, range(4)), shapes_up_to(3, range(4))
    for shapes in chain(product(few), product(many, repeat=2), product(few, repeat=3)):
        for row in MAX:
            expected = shape_of_max(row, shapes)
            # The planner computes the shape for all types, and the core for all types except rationals.
            for name in ("float32", "real") if "real" in row.types else ("float32",):
                allowed = expected if isinstance(expected, frozenset) else gives(name, expected)
                yield row, tuple(zeros(shape, name) for shape in shapes), {}, allowed


# The number of bits in the significand of each float format, and the lowest and highest exponents of normal numbers.
FORMATS = {"float16": (11, -14, 15), "bfloat16": (8, -126, 127), "float32": (24, -126, 127)}
FORMATS["float64"] = (53, -1022, 1023)


def holds(name: str, value: Any) -> bool:
    """Return whether a type can represent a Python scalar exactly. Bools are not numbers."""
    if name == "real":
        return isinstance(value, (int, Fraction)) and not isinstance(value, bool)
    if isinstance(value, bool) or name == "bool":
        return isinstance(value, bool) and name == "bool"
    if isinstance(value, Fraction):
        return False
    if name in INTEGERS:
        bits, low = int(name.rpartition("t")[2]), 0 if name.startswith("u") else -1
        return isinstance(value, int) and (low << bits - 1) <= value < 1 << (bits + low)
    if value == 0 or (isinstance(value, float) and (isnan(value) or isinf(value))):
        return True
    precision, lowest, highest = FORMATS[name]
    exact = abs(Fraction(value))
    steps = exact * Fraction(2) ** (precision - 1 - lowest)  # multiples of the smallest subnormal
    odd: int = steps.numerator // (steps.numerator & -steps.numerator)
    return steps.denominator == 1 and exact < Fraction(2) ** (highest + 1) and odd.bit_length() <= precision


def takes(row: Row, name: str, value: Any) -> bool:
    """Return whether an operator accepts a Python scalar for a type. Plain functions round floats within its range."""
    if row.is_plain and name in FORMATS and type(value) is float and not (isnan(value) or isinf(value)):
        precision, _, highest = FORMATS[name]
        return abs(Fraction(value)) < 2**highest * (2 - Fraction(1, 2**precision))
    return row.standard != "SONNX" and holds(name, value)


def scalars() -> list[Any]:
    """Return integers and floats near the limits of each type, and other Python scalars."""
    powers = (*range(68), 127, 128, 129, 1023, 1024, 1025)
    integers = {sign * (2**k + d) for k in powers for d in (-1, 0, 1) for sign in (1, -1)}
    floats = {0.0, float("inf"), 2.0**1023 * (2 - 2.0**-52)}
    for precision, low, high in FORMATS.values():
        subnormals = range(low - precision - 1, low + 3)
        for k in (*subnormals, -1, 0, 1, 15, 30, 31, 32, high - 1, high, high + 1):
            for parts in (0, 1, precision - 2, precision - 1, precision, 52):
                if -1074 <= k <= 1023:
                    floats.add(2.0**k * (1 + (2.0**-parts if parts else 0)))
                    floats.add(2.0**k * (2 - 2.0**-parts))
    signed = [sign * value for value in floats if not isinf(value) or value > 0 for sign in (1, -1)]
    others = [True, False, Fraction(1, 2), Fraction(3), -0.0, float("nan")]
    return [*sorted(integers), *sorted(value for value in signed if abs(value) < float("inf")), *others, float("inf")]


def python_scalars() -> Iterator[Trial]:
    """Yield calls with Python scalars, NumPy scalars and arrays: as an input, as initial, and as fill_value."""
    values, ids = scalars(), zeros((2,), "int64")
    for row in MAX:
        shape: Shape = () if row.version in (1, 6) else (2,)  # versions 1 and 6 do not broadcast
        for name, value in product(row.types, values):
            allowed = gives(name, shape) if takes(row, name, value) else row.breaks(SCALAR)
            yield row, (zeros(shape, name), value), {}, allowed
        for value in (1, 1.0, True, Fraction(1)):
            only = row.breaks(SCALAR, *([TYPE] if row.standard == "SONNX" else []))
            yield row, (value,), {}, only
            yield row, (value, value), {}, only
    calls: list[tuple[Row, str, Callable[[str], tuple[Any, ...]], Shape]] = [
        (REDUCE_MAX, "initial", lambda name: (zeros((2,), name),), (1,)),
        (SEGMENT_MAX, "initial", lambda name: (zeros((2,), name), ids), (1,)),
        (SEGMENT_MAX, "fill_value", lambda name: (zeros((2,), name), ids), (1,)),
    ]
    for row, option, args, result_shape in calls:
        for name in EVERY:
            result = gives(name, result_shape)
            for value in values:
                yield row, args(name), {option: value}, result if takes(row, name, value) else row.breaks(SCALAR)
            for other in (*EVERY, *FOREIGN):
                wrong = row.breaks(("DTypeError", option), *([TYPE] if other in FOREIGN else []))
                for form in forms(other):
                    shaped = row.breaks(("ShapeError", option))
                    allowed = shaped if np.ndim(form) else result
                    yield row, args(name), {option: form}, allowed if name == other else wrong | (shaped & {*allowed})
            for form in OBJECTS[1:]:
                yield row, args(name), {option: form}, row.breaks(ARRAY)


# ------------------------------------------------------------------------------------------------ types


def types() -> Iterator[Trial]:
    """Yield calls with each type of data, ids and num_segments, as an array and as a scalar."""
    every = (*EVERY, *FOREIGN)
    for row in MAX:
        for a, b in product(every, repeat=2):
            allowed = gives(a, (2,)) if a == b and a in row.types else row.breaks(TYPE)
            yield row, (zeros((2,), a), zeros((2,), b)), {}, allowed
            for c in every:
                whole = allowed if b == c else row.breaks(TYPE)
                yield row, (zeros((2,), a), zeros((2,), b), zeros((2,), c)), {}, whole
        for name in every:
            for form in forms(name):
                yield row, (form,), {}, gives(name, np.shape(form)) if name in row.types else row.breaks(TYPE)
                if np.ndim(form) == 0:
                    continue
                for other in forms(name):
                    takes = row.version not in (1, 6) or np.ndim(other) == 1
                    allowed = gives(name, (2,)) if takes else row.breaks(SHAPE)
                    yield row, (form, other), {}, allowed if name in row.types else row.breaks(TYPE)
        for value in OBJECTS:
            yield row, (zeros((2,)), value), {}, row.breaks(ARRAY)
    for row in REDUCE:
        for name in every:
            for form in forms(name):
                allowed = gives(name, (1,) * np.ndim(form)) if name in row.types else row.breaks(TYPE)
                yield row, (form,), {}, allowed
        for value in OBJECTS:
            yield row, (value,), {}, row.breaks(ARRAY)
    for row in SEGMENT:
        for name, index in product(every, repeat=2):
            rules = [TYPE] * (name not in row.types) + [INDEX_TYPE] * (index not in row.index_types)
            allowed = row.breaks(*rules) if rules else gives(name, (1,))
            yield row, (zeros((2,), name), zeros((2,), index)), {"fill_mode": "ZERO"}, allowed
        for index in every:
            for form in forms(index):
                rules = [INDEX_TYPE] * (index not in row.index_types) + [NUM_SEGMENTS] * (np.ndim(form) > 0)
                allowed = row.breaks(*rules) if rules else gives("float32", (0,))
                yield row, (zeros((2,)), zeros((2,), "int64"), form), {"fill_mode": "ZERO"}, allowed
                if row.is_plain:
                    rules = [INDEX_TYPE] * (index not in INTEGERS) + [OFFSETS] * (np.ndim(form) != 1)
                    allowed = row.breaks(*rules) if rules else gives("float32", (1,))
                    yield row, (zeros((0,)),), {"fill_mode": "ZERO", "offsets": form}, allowed
        for number in (True, 1.0, -1, "1", [1], Fraction(1), -(2**70)):
            wrong = row.breaks(NUM_SEGMENTS)
            yield row, (zeros((2,)), zeros((2,), "int64"), number), {"fill_mode": "ZERO"}, wrong


# ------------------------------------------------------------------------------------------------ ReduceMax


def reduced(row: Row, shape: Shape, axes: Sequence[int], keepdims: bool, noop: bool) -> Shape | frozenset[Seen]:
    """Return the shape of the result of ReduceMax, or the errors of the broken rules.

    Axes must be unique and in the range -r..r-1, or 0..r-1 in version 1. If there are no axes, all axes are reduced or,
    with `noop`, none.
    """
    rank = len(shape)
    lowest = 0 if row.version == 1 else -rank
    named = [axis + rank if axis < 0 else axis for axis in axes]
    broken = [AXES_RANGE] if any(not lowest <= axis < rank for axis in axes) else []
    broken += [AXES_UNIQUE] if len({*named}) < len(named) else []
    if broken:
        return row.breaks(*broken)
    taken = named or ([] if noop else range(rank))
    return tuple(1 if axis in taken else size for axis, size in enumerate(shape) if keepdims or axis not in taken)


def reduction(row: Row, data: Any, axes: Any, options: dict[str, Any], name: str = "axes") -> Any:
    """Return the arguments of a call of ReduceMax. Axes are an input from version 18 on, and an attribute before."""
    return ((data, axes), options) if row.version in (18, 20) else ((data,), {**options, name: axes})


def spelled(axes: Sequence[int]) -> list[Any]:
    """Return axes in each accepted form, such as a list, a tuple and an array."""
    ways: list[Any] = [[*axes], tuple(axes), np.array(axes, np.int64), [np.int8(axis) for axis in axes]]
    ways += [axes[0], np.int16(axes[0])] if len(axes) == 1 else []
    ways += [None] if not axes else []
    return ways


def axes() -> Iterator[Trial]:
    """Yield calls with every list of up to three axes and each option, and with axes of every type and rank."""
    shapes: list[Shape] = [(), (2,), (0,), (2, 3), (0, 3), (2, 3, 4), (2, 0, 1)]
    for shape in shapes:
        rank = len(shape)
        for listed in chain.from_iterable(product(range(-rank - 1, rank + 1), repeat=n) for n in range(4)):
            ways = spelled(listed)
            for row in REDUCE:
                flags: list[dict[str, Any]] = [{}, {"keepdims": 0}, {"keepdims": 1}]
                if row.version in (18, 20, None):
                    flags += [{**more, "noop_with_empty_axes": noop} for more in flags for noop in (0, 1)]
                for options in flags:
                    noop = bool(options.get("noop_with_empty_axes", 0))
                    expected = reduced(row, shape, listed, bool(options.get("keepdims", 1)), noop)
                    allowed = expected if isinstance(expected, frozenset) else gives("float32", expected)
                    for way in ways:
                        yield row, *reduction(row, zeros(shape), way, options), allowed
                    if row.is_plain:
                        by_axis = reduced(row, shape, listed, bool(options.get("keepdims", 0)), True)
                        as_numpy = by_axis if isinstance(by_axis, frozenset) else gives("float32", by_axis)
                        as_numpy = row.breaks(NOOP) if noop else as_numpy  # noop_with_empty_axes requires `axes`
                        yield row, *reduction(row, zeros(shape), ways[0], options, "axis"), as_numpy
                        if 0 not in shape:
                            rational = expected if isinstance(expected, frozenset) else gives("real", expected)
                            yield row, *reduction(row, zeros(shape, "real"), ways[0], options), rational
    for row in REDUCE:
        for name, shape in product((*EVERY, *FOREIGN), ((), (0,), (1,), (1, 1), (0, 1))):
            is_list = len(shape) == 1 or (row.is_plain and shape == ())
            allowed = gives("float32", (1, 1) if 0 in shape else (1, 3))  # an empty list means all axes
            is_valid = name in row.index_types and is_list
            call = reduction(row, zeros((2, 3)), zeros(shape, name), {})
            yield row, *call, allowed if is_valid else row.breaks(AXES)
        for value in (0.0, "0", b"0", True, object(), Fraction(0), np.float32(0), np.True_, np.timedelta64(0)):
            yield row, *reduction(row, zeros((2, 3)), value, {}), row.breaks(AXES)
            yield row, *reduction(row, zeros((2, 3)), [1, value], {}), row.breaks(AXES)
        for far in (2**31, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70)):
            yield row, *reduction(row, zeros((2, 3)), [far], {}), row.breaks(AXES_RANGE)
            yield row, *reduction(row, zeros((2, 3)), far, {}), row.breaks(AXES_RANGE)
    for value in (0, None, ()):
        yield REDUCE_MAX, (zeros((2, 3)), 0), {"axis": value}, REDUCE_MAX.breaks(AXES)
    for keepdims in (None, True, False):
        shape = (1, 1) if keepdims else ()
        options = {"axis": None, "keepdims": keepdims}
        yield REDUCE_MAX, (zeros((2, 3)),), options, gives("float32", shape)
        yield REDUCE_MAX, (zeros((2, 3)),), {**options, "noop_with_empty_axes": True}, REDUCE_MAX.breaks(NOOP)
    yield from _segment_axes()


def _segment_axes() -> Iterator[Trial]:
    """Yield calls of segment_max along each axis of arrays with up to three axes, with ids and with offsets."""
    for shape, count in product(shapes_up_to(3, range(3)), range(3)):
        rank = len(shape)
        for axis in range(-rank - 1, rank + 1):
            rules = [RANK] * (rank == 0) + [SEGMENT_AXIS] * (not -rank <= axis < rank)
            along = 0 if rules else shape[axis]
            of_ids = rules + [IDS_SHAPE] * (not rules and count != along)
            result = [3 if axis % rank == place else size for place, size in enumerate(shape)] if not rules else []
            for named, dtype in product((axis, np.int8(axis), np.array(axis)), ("float32", "real")):
                allowed = gives(dtype, tuple(result))
                options = {"fill_mode": "ZERO", "axis": named}
                ids = (zeros(shape, dtype), zeros((count,), "int64"), 3)
                yield SEGMENT_MAX, ids, options, SEGMENT_MAX.breaks(*of_ids) if of_ids else allowed
                bounds = {"offsets": np.array([0, 0, 0, along]), **options}
                yield SEGMENT_MAX, (zeros(shape, dtype),), bounds, SEGMENT_MAX.breaks(*rules) if rules else allowed
    args, options, _ = valid_call(SEGMENT_MAX, (2, 3))
    others = (np.array([1]), np.array(1.0), np.array(True), np.float32(1), object())
    for value in (None, True, 1.0, "1", b"1", [1], (1,), *others):
        yield SEGMENT_MAX, args, {**options, "axis": value}, SEGMENT_MAX.breaks(SEGMENT_AXIS)
    for far in (2**31, 2**63 - 1, 2**63, 2**64, 2**70, -(2**63), -(2**70)):
        yield SEGMENT_MAX, args, {**options, "axis": far}, SEGMENT_MAX.breaks(SEGMENT_AXIS)


LOWEST: dict[str, Any] = {"bool": False}
LOWEST |= {name: -float("inf") for name in (*FLOATS, "bfloat16")} | {name: np.iinfo(name).min for name in INTEGERS}
LOWEST_FINITE = LOWEST | {name: np.finfo(name).min for name in FLOATS}
LOWEST_FINITE["bfloat16"] = -(2 - 2.0**-7) * 2.0**127


def filled(name: str, shape: Shape, value: Any) -> frozenset[Seen]:
    """Return the allowed result of a call: an array that contains `value`, broadcast to its shape."""
    array = np.empty(shape, dtype_of(name))
    array[...] = value
    return frozenset([(array.dtype, array.shape, bits_of(array))])


def empty_sets() -> Iterator[Trial]:
    """Yield calls of ReduceMax with each shape of up to three axes, each set of axes and each type.

    The maximum of no elements is the lowest value of the type. For rationals, it is an error.
    """
    for shape in shapes_up_to(3, range(3)):
        rank = len(shape)
        for taken in chain.from_iterable(combinations(range(rank), n) for n in range(rank + 1)):
            axes = taken or range(rank)
            is_empty = prod(shape[axis] for axis in axes) == 0
            for row, keepdims in product(REDUCE, (0, 1)):
                sizes = reduced(row, shape, taken, bool(keepdims), False)
                assert isinstance(sizes, tuple)
                for name in row.types:
                    call = reduction(row, zeros(shape, name), taken, {"keepdims": keepdims})
                    if name == "real" and is_empty and 0 not in sizes:
                        yield row, *call, row.breaks(EMPTY)
                    else:
                        yield row, *call, filled(name, sizes, LOWEST[name] if is_empty and name != "real" else 0)
                    if row.is_plain:
                        one = name == "bool" or 1
                        yield row, call[0], {**call[1], "initial": one}, filled(name, sizes, one)


# ------------------------------------------------------------------------------------------------ SegmentMax


def is_increasing(values: Sequence[int]) -> bool:
    """Return whether values are non-decreasing."""
    return all(a <= b for a, b in pairwise(values))


def segments_of_ids(
    row: Row, ids: Sequence[int], given: int | None, *, is_sorted: bool, outside: str | None, checks: bool
) -> tuple[list[Rule], range]:
    """Return the rules that a call of SegmentMax breaks, and the range of allowed numbers of segments.

    Ids must be non-negative and, if `is_sorted`, non-decreasing. `outside` determines whether negative ids and ids that
    are not less than num_segments are errors or are dropped. By default, ids that are not less than num_segments are
    dropped if they are sorted.
    """
    broken = [NUM_SEGMENTS] if given is not None and given < 0 else []
    negative, past = any(i < 0 for i in ids), given is not None and any(i >= given for i in ids)
    is_error = outside == "error" or (outside is None and not is_sorted)
    is_valid = not (negative and outside != "drop") and not (is_sorted and not is_increasing(ids))
    if checks:
        broken += [] if is_valid else [IDS]
        broken += [OUT_OF_RANGE] if past and is_error else []
    number = max(ids, default=-1) if max(ids, default=-1) >= 0 else -1
    if given is not None:
        return broken, range(max(given, 0), max(given, 0) + 1)
    # If ids are invalid but not checked, the number of segments may be wrong.
    return broken, range(number + 1 if is_valid else 0, number + 2)


def ids() -> Iterator[Trial]:
    """Yield calls with every list of up to four ids from -2 to 3, without num_segments and with values from -1 to 4."""
    numbers = (None, *range(-1, 5))
    for listed in chain.from_iterable(product(range(-2, 4), repeat=n) for n in range(5)):
        n, is_short = len(listed), len(listed) < 4
        kinds = ["int64"] + ["int32"] * is_short
        kinds += ["int8", "int16"] * is_short + ["uint8", "uint16", "uint32", "uint64"] * (min(listed, default=0) >= 0)
        for kind in kinds:
            array = np.array(listed, kind)
            others = [array.astype(array.dtype.newbyteorder()), np.repeat(array, 2)[::2]] if is_short else []
            for given, spelling in product(numbers, (array, *others)):
                for row in SEGMENT:
                    if kind not in row.index_types:
                        continue
                    choices: Iterable[Any] = [(True, None, True)]
                    if row.is_plain and spelling is array and kind in ("int64", "int32", "uint64"):
                        choices = product((True, False), (None, "error", "drop"), (True, False))
                    for is_sorted, outside, checks in choices:
                        broken, counts = segments_of_ids(
                            row, listed, given, is_sorted=is_sorted, outside=outside, checks=checks
                        )
                        options: dict[str, Any] = {"fill_mode": "ZERO"}
                        if row.is_plain:
                            options |= {"sorted": is_sorted, "out_of_range": outside, "check_ids": checks}
                        number = () if given is None else (given,)
                        for width in ((), (2,), (0,)) if kind == "int64" else ((),):
                            result = gives("float32", *((count, *width) for count in counts))
                            allowed = row.breaks(*broken) if broken else result
                            yield row, (zeros((n, *width)), spelling, *number), options, allowed
                            if row.is_plain and is_short and spelling is array:
                                rational = (
                                    row.breaks(*broken)
                                    if broken
                                    else gives("real", *((count, *width) for count in counts))
                                )
                                yield row, (zeros((n, *width), "real"), spelling, *number), options, rational
                            if is_short and len(counts) == 1:
                                # With `out`, the core checks all ids before it writes the result.
                                out = np.empty((counts[0], *width), np.float32)
                                yield row, (zeros((n, *width)), spelling, *number), {**options, "out": out}, allowed
    yield from _ids_of_uint64()
    yield from _shapes_of_ids()


def _ids_of_uint64() -> Iterator[Trial]:
    """Yield calls with ids above 2^63 - 1, which exceed every num_segments, because no output is so large."""
    too_large = SEGMENT_MAX.breaks(("OutputTooLargeError", "shape"))
    for listed in chain.from_iterable(product((0, 1, 2**63 - 1, 2**63, 2**64 - 1), repeat=n) for n in (1, 2)):
        for given, is_sorted, outside in product((None, 0, 1, 2), (True, False), (None, "error", "drop")):
            broken, counts = segments_of_ids(
                SEGMENT_MAX, listed, given, is_sorted=is_sorted, outside=outside, checks=True
            )
            allowed = too_large if counts[0] > 2 else gives("float32", (counts[0],))
            options = {"fill_mode": "ZERO", "sorted": is_sorted, "out_of_range": outside}
            args = (zeros((len(listed),)), np.array(listed, np.uint64), *(() if given is None else (given,)))
            yield SEGMENT_MAX, args, options, SEGMENT_MAX.breaks(*broken) if broken else allowed


def _shapes_of_ids() -> Iterator[Trial]:
    """Yield calls with each pair of small shapes, for data with ids and for data with offsets."""
    shapes = shapes_up_to(2, range(4))
    for row, data, index in product(SEGMENT, shapes, shapes):
        rules = [RANK] * (data == ()) + [IDS_SHAPE] * (len(index) != 1 or index != data[:1])
        allowed = row.breaks(*rules) if rules else gives("float32", (min(index[0], 1), *data[1:]))
        yield row, (zeros(data), zeros(index, "int64")), {"fill_mode": "ZERO"}, allowed
    for data, index in product(shapes, shapes):
        rules = [RANK] * (data == ()) + [OFFSETS] * (len(index) != 1 or index == (0,) or data[:1] not in ((), (0,)))
        allowed = SEGMENT_MAX.breaks(*rules) if rules else gives("float32", (index[0] - 1, *data[1:]))
        yield SEGMENT_MAX, (zeros(data),), {"fill_mode": "ZERO", "offsets": zeros(index, "int64")}, allowed


def offsets() -> Iterator[Trial]:
    """Yield calls with every list of up to four offsets from -1 to 4. Valid ones rise from 0 to the number of rows."""
    for listed in chain.from_iterable(product(range(-1, 5), repeat=n) for n in range(5)):
        for rows, kind in product(range(4), ("int64", "int32", "uint8", "uint64")):
            if (kind.startswith("u") and min(listed, default=0) < 0) or (kind != "int64" and len(listed) > 3):
                continue
            is_valid = bool(listed) and listed[0] == 0 and listed[-1] == rows and is_increasing(listed)
            for given, checks, width in product((None, *range(-1, 5)), (True, False), ((), (2,), (0,))):
                broken = [NUM_SEGMENTS] if given is not None and given < 0 else []
                broken += [OFFSETS] if not (is_valid if checks else listed) else []
                number = given if given is not None else len(listed) - 1
                result = gives("float32", (number, *width))
                options = {"fill_mode": "ZERO", "offsets": np.array(listed, kind), "check_ids": checks}
                options |= {} if given is None else {"num_segments": given}
                yield SEGMENT_MAX, (zeros((rows, *width)),), options, SEGMENT_MAX.breaks(*broken) if broken else result
    ids, bounds = zeros((2,), "int64"), np.array([0, 2])
    named: tuple[dict[str, Any], ...] = ({}, {"segment_ids": ids}, {"offsets": bounds})
    both = {"segment_ids": ids, "offsets": bounds}
    for given, is_sorted, outside in product((*named, both), (True, False), (None, "error", "drop")):
        broken = [COUNT] if len(given) != 1 else []
        about_ids = not is_sorted or outside is not None
        broken += [("AttributeValueError", "offsets")] if "offsets" in given and about_ids else []
        more = {"fill_mode": "ZERO", "sorted": is_sorted, "out_of_range": outside}
        allowed = SEGMENT_MAX.breaks(*broken) if broken else gives("float32", (1,))
        yield SEGMENT_MAX, (zeros((2,)),), {**given, **more}, allowed


def fills() -> Iterator[Trial]:
    """Yield calls with each type, each combination of fill options, and each list of up to two ids."""
    modes: tuple[Any, ...] = (None, "ZERO", "LOWEST", "zero", "Lowest", "ZEROS", "", 0, b"ZERO")
    for row, mode, has_value, has_initial in product(SEGMENT, modes, (False, True), (False, True)):
        if not row.is_plain and (has_value or has_initial):
            continue
        word = mode.upper() if isinstance(mode, str) else mode
        wrong: Rule = ("AttributeValueError", "fill_mode")
        broken = [wrong] if word not in (None, "ZERO", "LOWEST") else []
        if mode is not None and (has_value or has_initial):  # only one of the three fill options is allowed
            broken += [wrong, ("AttributeValueError", "initial" if has_initial else "fill_value")]
        broken += [wrong] if mode is None and not (has_value or has_initial) else []
        broken += [("AttributeValueError", name) for name in ("fill_value", "initial") if has_value and has_initial]
        for name, listed in product(row.types, chain.from_iterable(product(range(3), repeat=n) for n in range(3))):
            if list(listed) != sorted(listed):
                continue
            one = name == "bool" or 1
            options = {"fill_mode": mode} if mode is not None else {}
            options |= ({"fill_value": one} if has_value else {}) | ({"initial": one} if has_initial else {})
            lowest = LOWEST_FINITE[name] if name != "real" else None
            value = one if has_value or has_initial else 0 if word == "ZERO" else lowest
            held = [one if has_initial else 0 if segment in listed else value for segment in range(3)]
            rules = broken or ([EMPTY_SEGMENT] if None in held else [])
            data, ids = zeros((len(listed),), name), np.array(listed, np.int32)
            allowed = row.breaks(*rules) if rules else filled(name, (3,), held)
            yield row, (data, ids, 3), options, allowed
            if row.is_plain:
                yield row, (data,), {**options, "offsets": bounds_of(listed)}, allowed
    yield from _fills_of_floats()


def bounds_of(listed: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the offsets of three segments that are given by sorted ids."""
    return np.array([sum(i < segment for i in listed) for segment in range(4)])


# The bits of a quiet and of a signaling NaN of each float type.
QUIET = {"float16": 0x7E00, "bfloat16": 0x7FC0, "float32": 0x7FC00000, "float64": 0x7FF8000000000000}
SIGNALLING = {"float16": 0x7C01, "bfloat16": 0x7F81, "float32": 0x7F800001, "float64": 0x7FF0000000000001}


def _fills_of_floats() -> Iterator[Trial]:
    """Yield calls with -0 and NaNs as fill values. -0 keeps its bits, and each NaN becomes the canonical quiet NaN."""
    for name, quiet in QUIET.items():
        dtype = dtype_of(name)
        word, sign = np.dtype(f"u{dtype.itemsize}"), 1 << 8 * dtype.itemsize - 1
        nans = [each | place for each in (quiet, quiet | 5, SIGNALLING[name]) for place in (0, sign)]
        for bits, argument in product((sign, *nans), ("fill_value", "initial")):
            array = np.array([bits], word).view(dtype)
            one = np.array([bits if bits == sign else quiet], word).view(dtype)[0]
            for listed, scalar in product(([], [0], [0, 2]), (array[0], array.reshape(()))):
                held = one if argument == "initial" and bits != sign else [0 if s in listed else one for s in range(3)]
                options = {argument: scalar, "num_segments": 3}
                for route in (
                    {"segment_ids": np.array(listed, np.int32)},
                    {"segment_ids": np.array(listed[::-1], np.int64), "sorted": False},
                    {"offsets": bounds_of(listed)},
                ):
                    allowed = filled(name, (3,), held)
                    yield SEGMENT_MAX, (zeros((len(listed),), name),), {**options, **route}, allowed


# ------------------------------------------------------------------------------------------------ options

NO_FLAGS: tuple[Any, ...] = (2, -1, 2**70, None, 0.0, 1.0, "1", b"", [1])
NO_FLAGS += (np.float32(1), np.array(1), np.array([1]), np.timedelta64(1, "s"))
FLAGS: list[tuple[Any, bool]] = [(value, True) for value in (1, True, np.True_, np.int8(1), np.uint64(1))]
FLAGS += [(value, False) for value in (0, False, np.False_, np.int64(0), np.uint8(0))]


def valid_call(row: Row, data: Shape) -> tuple[tuple[Any, ...], dict[str, Any], Shape]:
    """Return the arguments and options of a valid call, and the shape of its result."""
    if row in MAX:
        return (zeros(data),), {}, data
    if row in REDUCE:
        return (zeros(data),), {}, (1,) * len(data)
    return (zeros(data), zeros(data[:1], "int64")), {"fill_mode": "ZERO"}, (min(data[0], 1), *data[1:])


def flags() -> Iterator[Trial]:
    """Yield calls with valid and invalid values of each flag, and of each option whose values are a few words."""
    for row in REDUCE:
        for name in ("keepdims", "noop_with_empty_axes") if row.version in (18, 20, None) else ("keepdims",):
            for value, is_set in FLAGS:
                shape: Shape = ((1, 1) if is_set else ()) if name == "keepdims" else (2, 3) if is_set else (1, 1)
                yield row, (zeros((2, 3)),), {name: value}, gives("float32", shape)
            for value in NO_FLAGS:
                # None is the default value of the plain function's keepdims.
                is_default = value is None and name == "keepdims" and row.is_plain
                allowed = gives("float32", (1, 1)) if is_default else row.breaks(("AttributeValueError", name))
                yield row, (zeros((2, 3)),), {name: value}, allowed
    # Flags that request additional results.
    indices, empty = np.dtype(np.int64), (np.dtype(bool), (1,))
    for row, names in (
        (REDUCE_MAX, ("return_indices",)),
        (SEGMENT_MAX, ("return_indices", "return_empty", "sorted", "check_ids")),
    ):
        args, options, shape = valid_call(row, (2, 3))
        maxima = (dtype_of("float32"), shape)
        for name in names:
            both = {"return_indices": (maxima, (indices, shape)), "return_empty": (maxima, empty)}.get(name, maxima)
            for value, is_set in FLAGS:
                yield row, args, {**options, name: value}, frozenset([both if is_set else maxima])
            for value in NO_FLAGS:
                yield row, args, {**options, name: value}, row.breaks(("AttributeValueError", name))
    args, options, shape = valid_call(SEGMENT_MAX, (2, 3))
    asked = {**options, "return_indices": 1, "return_empty": 1}
    yield SEGMENT_MAX, args, asked, frozenset([((dtype_of("float32"), shape), (indices, shape), empty)])
    for name, choices, rows in (
        ("ties", ("even", "first"), (MAXIMUM, REDUCE_MAX, SEGMENT_MAX)),
        ("nan", ("propagate", "ignore"), (MAXIMUM, REDUCE_MAX, SEGMENT_MAX)),
        ("out_of_range", (None, "error", "drop"), (SEGMENT_MAX,)),
        ("dim", (None,), (REDUCE_MAX, SEGMENT_MAX)),  # the axes of NumPy arrays have no names
    ):
        for row, value in product(rows, (*choices, "Even", "last", "", "x", 0, True, None)):
            args, options, shape = valid_call(row, (2, 3))
            allowed = gives("float32", shape) if value in choices else row.breaks(("AttributeValueError", name))
            yield row, args, {**options, name: value}, allowed
    for axes, noop, first in product((None, (), (0,)), (0, 1), (None, 1.0)):
        shape = (1, 3) if axes else (2, 3) if noop else (1, 1)
        allowed = REDUCE_MAX.breaks(NOOP) if noop and not axes and first is not None else gives("float32", shape)
        more = {"axes": axes, "noop_with_empty_axes": noop, "initial": first}
        yield REDUCE_MAX, (zeros((2, 3)),), more, allowed


# All attributes of all operators, and some names that are not attributes of any operator.
ATTRIBUTES: dict[str, Any] = {
    "consumed_inputs": [0, 0], "axes": [0], "keepdims": 0, "noop_with_empty_axes": 0, "fill_mode": "ZERO",
    "fill_value": 1.0, "check_ids": 1, "offsets": None, "sorted": 1, "out_of_range": None, "dim": None, "axis": 0,
    "initial": 1.0, "return_indices": 0, "return_empty": 0, "ties": "even", "nan": "propagate", "data": None,
    "num_segments": 1, "none": 1,
}  # fmt: skip


INPUT_BY_NAME: Rule = ("AttributeValueError", "inputs")
INPUTS = {"Max": (), "ReduceMax": ("data", "axes"), "SegmentMax": ("data", "segment_ids", "num_segments")}


def inputs() -> Iterator[Trial]:
    """Yield calls with each number of inputs and each attribute, except for functions whose signature Python checks."""
    for row in MAX:
        for count in (0, 1, 2, 3, 7, 8, 9, 33, 1000):
            yield row, (zeros((2, 3)),) * count, {}, gives("float32", (2, 3)) if count else row.breaks(COUNT)
    for row in (*REDUCE[:-1], *SEGMENT[:-1]):
        least, most = {18: (1, 2), 20: (1, 2), 16: (2, 3)}.get(row.version or 0, (1, 1))
        (data, *_), options, shape = valid_call(row, (2, 3))
        for count in range(6):
            args = (data, np.array([0, 1]), 2, 2, 2)[:count]
            shape = (2, 3) if row in SEGMENT else (1, 1)
            yield row, args, options, gives("float32", shape) if least <= count <= most else row.breaks(COUNT)
    for row in (*MAX[:-1], *REDUCE[:-1], *SEGMENT[:-1]):
        args, options, shape = valid_call(row, (2, 3))
        for name, value in ATTRIBUTES.items():
            changed = {"axes": (1, 3), "keepdims": ()}.get(name, shape)
            allowed = gives("float32", changed) if name in row.attributes else frozenset([NO_ATTRIBUTE])
            if name in INPUTS[row.operator] and name not in (*row.attributes, *(["axes"] * ((row.version or 0) < 18))):
                allowed = row.breaks(INPUT_BY_NAME)
            yield row, args, {**options, name: value}, allowed
    for value in ([0], [0, 1, 2], [], None, "anything"):  # a legacy attribute, which is accepted and ignored
        yield MAX[0], (zeros((2, 3)),), {"consumed_inputs": value}, gives("float32", (2, 3))


def outputs() -> Iterator[Trial]:
    """Yield calls with each type and small shape of `out`, with read-only arrays, and with other objects."""
    for row, data in product((*MAX, *REDUCE, *SEGMENT), ((2, 3), (3,), (0, 2), ())):
        if row in SEGMENT and not data:
            continue
        args, options, shape = valid_call(row, data)
        # Errors cite the clause about the shape of the result, which is the clause "value" in the standards' ReduceMax.
        misshapen: Rule = ("OutputError", "value" if row in REDUCE and not row.is_plain else "out.shape")
        for given, name in product(shapes_up_to(2, range(4)), (*EVERY, "complex64")):
            rules = [OUT] * (name != "float32") + [misshapen] * (given != shape)
            out = np.empty(given, dtype_of(name))
            yield row, args, {**options, "out": out}, row.breaks(*rules) if rules else gives("float32", shape)
        fixed = np.empty(shape, np.float32)
        fixed.flags.writeable = False
        unsaid = frozenset([("OutputError", "")])  # no clause of a standard covers read-only outputs
        yield row, args, {**options, "out": fixed}, row.breaks(OUT) if row.is_plain else unsaid
        swapped = np.empty(shape, np.dtype(np.float32).newbyteorder())
        yield row, args, {**options, "out": swapped}, frozenset([(swapped.dtype, shape)])
        for value in ([0.0], 0.0, "x", np.float32(0), np.ma.zeros(shape, np.float32)):
            yield row, args, {**options, "out": value}, row.breaks(OUT)
