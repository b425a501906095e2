"""The grid of cases, as data: every family of shapes of every operator, with the sizes at which it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from math import isqrt

from maxops import dtypes, shapes
from maxops.bench.case import OPERATORS, Case, Operand, OperatorName, Segments, Spelling, View
from maxops.dtypes import DType
from maxops.shapes import Shape

MAX_BYTES = 10**9  # of all arrays of a case together
EVERY_SIZE = (1, 1_000, 100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000)
EIGHT_SIZES = (1, 1_000, 100_000, 1_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000)
FROM_TWO_AXES = (1_000, 100_000, 10_000_000, 30_000_000, 100_000_000)
# Of calls that are written in another way, which costs whoever makes small ones.
SPELLED_SIZES = (1, 100, 1_000)
ROW_SIZES = (1_000, 100_000, 30_000_000, 100_000_000)

TYPES = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL)
# One of each kind that kernels differ by, where no types are asked for.
DEFAULT_TYPES = tuple(
    dtypes.BY_NAME[name]
    for name in ("float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint16")
)  # fmt: skip
QUICK_TYPES = (dtypes.FLOAT32, dtypes.FLOAT16)
QUICK_SIZES = (1, 1_000, 100_000)
QUICK_FAMILIES = {
    "Max": "2-inputs 2-inputs,out 8-inputs,out row,out transposed,out python-scalar operator",
    "ReduceMax": "all last-8 first-square list-axes operator",
    "SegmentMax": "operator 1d,mean-1,int64 1d,mean-10,int64 1d,mean-10,int64,unchecked rows-16,mean-10,int64",
}

Operands = Callable[[int], tuple[Operand, ...]]


def _square(n: int) -> Shape:
    return (isqrt(n), isqrt(n))


def _of(*made: Callable[[int], Shape], view: View = "whole") -> Operands:
    """Operands by their shapes for n elements; the last one, or an only one, has the view."""
    return lambda n: (*(Operand(shape(n)) for shape in made[:-1]), Operand(made[-1](n), view))


def _same(count: int, view: View = "whole") -> Operands:
    return lambda n: (Operand((n,), view),) * count


# By name: the inputs for an output of n elements, and the sizes n.
MAX: dict[str, tuple[Operands, tuple[int, ...]]] = {
    "2-inputs": (_same(2), EVERY_SIZE),
    "3-inputs": (_same(3), EVERY_SIZE),
    "8-inputs": (_same(8), EIGHT_SIZES),
    "row": (_of(_square, lambda n: (isqrt(n),)), FROM_TWO_AXES),
    "column": (_of(_square, lambda n: (isqrt(n), 1)), FROM_TWO_AXES),
    "outer": (_of(lambda n: (isqrt(n), 1), lambda n: (1, isqrt(n))), FROM_TWO_AXES),
    "scalar": (_of(lambda n: (n,), lambda n: ()), FROM_TWO_AXES),
    "transposed": (_of(_square, _square, view="transposed"), FROM_TWO_AXES),
    "half-rows": (lambda n: (Operand(_square(n), "half-rows"),) * 2, FROM_TWO_AXES),
    "every-second": (_same(2, "every-second"), FROM_TWO_AXES),
}


def _rows(length: int) -> tuple[Operands, tuple[int, ...], tuple[int, ...]]:
    return _of(lambda n: (n // length, length)), (1,), tuple(size for size in FROM_TWO_AXES if size >= length)


def _images(*axes: int) -> tuple[Operands, tuple[int, ...], tuple[int, ...]]:
    return _of(lambda n: (64, 3, 224, 224)), axes, (64 * 3 * 224 * 224,)


# By name: data of n elements, the axes that are reduced, and the sizes n.
REDUCE: dict[str, tuple[Operands, tuple[int, ...], tuple[int, ...]]] = {
    "all": (_same(1), (0,), EVERY_SIZE),
    "last-3": _rows(3),
    "last-8": _rows(8),
    "last-80": _rows(80),
    "last-1000": _rows(1_000),
    "last-1e4": _rows(10_000),
    "first-narrow": (_of(lambda n: (n // 8, 8)), (0,), (1_000, 100_000, 8_000_000, 100_000_000)),
    "first-square": (_of(_square), (0,), (1, *FROM_TWO_AXES)),
    "middle": (_of(lambda n: (round(n ** (1 / 3)),) * 3), (1,), FROM_TWO_AXES),
    "images-last-axes": _images(2, 3),
    "images-first-axes": _images(0, 1),
    "images-by-channel": _images(0, 2, 3),
    "transposed-last": (_of(_square, view="transposed"), (1,), FROM_TWO_AXES),
    "half-rows-all": (_of(_square, view="half-rows"), (0, 1), FROM_TWO_AXES),
    "every-second-all": (_same(1, "every-second"), (0,), FROM_TWO_AXES),
}

# Rows to a segment, on average: of segments that have rows, where one in ten has.
LENGTHS = {"mean-1": 1, "mean-10": 10, "mean-1000": 1_000, "mean-1e6": 1_000_000, "zipf": 20, "many-empty": 10}
EMPTY_EACH = 10
ROWS: dict[str, Shape] = {"1d": (), "rows-16": (16,), "rows-64": (64,)}

SPELLINGS: dict[OperatorName, tuple[Spelling, ...]] = {
    "Max": ("python-scalar", "operator", "torch-tensors"),
    "ReduceMax": ("list-axes", "operator", "torch-tensors"),
    "SegmentMax": ("numpy-integer", "operator", "torch-tensors"),
}


def max_case(name: str, dtype: DType, size: int, operands: tuple[Operand, ...], *, out: bool = False) -> Case:
    """A case of Max."""
    return Case("Max", name, dtype, size, operands, shapes.broadcast([each.shape for each in operands]), out=out)


def reduce_case(name: str, dtype: DType, size: int, operand: Operand, axes: tuple[int, ...]) -> Case:
    """A case of ReduceMax, without keepdims."""
    shape = tuple(length for axis, length in enumerate(operand.shape) if axis not in axes)
    return Case("ReduceMax", name, dtype, size, (operand,), shape, axes)


def segment_case(
    name: str, dtype: DType, size: int, shape: Shape, lengths: str, id_type: str = "int64", *, check: bool = True
) -> Case:
    """A case of SegmentMax."""
    count = max(1, shape[0] // LENGTHS[lengths]) * (EMPTY_EACH if lengths == "many-empty" else 1)
    segments = Segments(lengths, id_type, check, count)
    return Case("SegmentMax", name, dtype, size, (Operand(shape),), (count, *shape[1:]), segments=segments)


def _max_cases(dtype: DType) -> Iterator[Case]:
    for (name, (operands, sizes)), out in product(MAX.items(), (False, True)):
        for size in sizes:
            yield max_case(f"{name},out" if out else name, dtype, size, operands(size), out=out)


def _reduce_cases(dtype: DType) -> Iterator[Case]:
    for name, (operands, axes, sizes) in REDUCE.items():
        for size in sizes:
            yield reduce_case(name, dtype, size, operands(size)[0], axes)


def _segment_cases(dtype: DType) -> Iterator[Case]:
    for (rows, row), lengths, id_type, check in product(ROWS.items(), LENGTHS, ("int32", "int64"), (True, False)):
        if row and id_type == "int32" and not check:
            continue  # rows are too long for the ids' width and check to matter both at once
        name = f"{rows},{lengths},{id_type}" + ("" if check else ",unchecked")
        for size in ROW_SIZES if row else (1, *FROM_TWO_AXES) if lengths == "mean-1" else FROM_TWO_AXES:
            count = size // (row[0] if row else 1)
            if count >= LENGTHS[lengths]:
                yield segment_case(name, dtype, size, (count, *row), lengths, id_type, check=check)


def _spelled(operator: OperatorName, dtype: DType) -> Iterator[Case]:
    for spelling, size in product(SPELLINGS[operator], SPELLED_SIZES):
        flat = Operand((size,))
        if operator == "Max":
            case = max_case(spelling, dtype, size, (flat, Operand(()) if spelling == "python-scalar" else flat))
        elif operator == "ReduceMax":
            case = reduce_case(spelling, dtype, size, flat, (0,))
        else:
            case = segment_case(spelling, dtype, size, flat.shape, "mean-1")
        yield replace(case, spelling=spelling)


_CASES = {"Max": _max_cases, "ReduceMax": _reduce_cases, "SegmentMax": _segment_cases}


def cases(
    operators: Iterable[OperatorName] = OPERATORS, types: Iterable[DType] = DEFAULT_TYPES, *, quick: bool = False
) -> list[Case]:
    """The cases of the grid, small ones first within a family; `quick` keeps a few families at small sizes.

    >>> [case.id for case in cases(["ReduceMax"], [dtypes.INT8], quick=True)][:2]
    ['ReduceMax/all/int8/1', 'ReduceMax/all/int8/1e3']
    """
    return [
        case
        for operator, dtype in product(operators, types)
        for case in (*_CASES[operator](dtype), *_spelled(operator, dtype))
        if case.bytes_touched <= MAX_BYTES
        if not quick or (case.size in QUICK_SIZES and case.family in QUICK_FAMILIES[operator].split())
    ]
