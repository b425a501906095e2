"""The grid, as data: every family of shapes of every operator, with the sizes at which it is measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from math import isqrt
from typing import Literal

from maxops import dtypes
from maxops.bench.case import OPERATORS, Case, Lengths, Operand, OperatorName, Segments, Spelling, label
from maxops.dtypes import DType
from maxops.shapes import Shape

MAX_BYTES = 10**9  # of all arrays of a case together
EVERY_SIZE = (1, 1_000, 100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000)
EIGHT_SIZES = (1, 1_000, 100_000, 1_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000)
FROM_TWO_AXES = (1_000, 100_000, 10_000_000, 30_000_000, 100_000_000)
SEGMENT_SIZES = (1_000, 100_000, 10_000_000, 30_000_000, 100_000_000)
# Of calls that are written in another way, which costs whoever makes small ones.
SPELLED_SIZES = (1, 100, 1_000)
ROW_SIZES = (1_000, 100_000, 30_000_000, 100_000_000)

TYPES = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL)
# One of each kind that kernels differ by, where no types are asked for.
DEFAULT_TYPES = (
    dtypes.FLOAT32,
    dtypes.FLOAT16,
    dtypes.BFLOAT16,
    dtypes.FLOAT64,
    dtypes.INT8,
    dtypes.INT32,
    dtypes.INT64,
    dtypes.UINT16,
)
QUICK_TYPES = (dtypes.FLOAT32, dtypes.FLOAT16)
QUICK_SIZES = (1, 1_000, 100_000)
QUICK_FAMILIES: dict[str, tuple[str, ...]] = {
    "Max": ("2-inputs", "2-inputs,out", "8-inputs,out", "row,out", "transposed,out", "python-scalar", "operator"),
    "ReduceMax": ("all", "last-8", "first-square", "list-axes", "operator"),
    "SegmentMax": (
        "operator",
        "1d,mean-1,int64",
        "1d,mean-10,int64",
        "1d,mean-10,int64,unchecked",
        "rows-16,mean-10,int64",
    ),
}


@dataclass(frozen=True)
class MaxFamily:
    """Inputs of Max for an output of n elements."""

    name: str
    operands: Callable[[int], tuple[Operand, ...]]
    shape: Callable[[int], Shape]
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class ReduceFamily:
    """Data of n elements, and the axes that are reduced."""

    name: str
    operand: Callable[[int], Operand]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]


def _square(n: int) -> Shape:
    return (isqrt(n), isqrt(n))


def _flat(n: int) -> Shape:
    return (n,)


def _same(count: int) -> Callable[[int], tuple[Operand, ...]]:
    return lambda n: (Operand((n,)),) * count


MAX = (
    MaxFamily("2-inputs", _same(2), _flat, EVERY_SIZE),
    MaxFamily("3-inputs", _same(3), _flat, EVERY_SIZE),
    MaxFamily("8-inputs", _same(8), _flat, EIGHT_SIZES),
    MaxFamily("row", lambda n: (Operand(_square(n)), Operand(_square(n)[1:])), _square, FROM_TWO_AXES),
    MaxFamily("column", lambda n: (Operand(_square(n)), Operand((isqrt(n), 1))), _square, FROM_TWO_AXES),
    MaxFamily("outer", lambda n: (Operand((isqrt(n), 1)), Operand((1, isqrt(n)))), _square, FROM_TWO_AXES),
    MaxFamily("scalar", lambda n: (Operand((n,)), Operand(())), _flat, FROM_TWO_AXES),
    MaxFamily("transposed", lambda n: (Operand(_square(n)), Operand(_square(n), "transposed")), _square, FROM_TWO_AXES),
    MaxFamily("half-rows", lambda n: (Operand(_square(n), "half-rows"),) * 2, _square, FROM_TWO_AXES),
    MaxFamily("every-second", lambda n: (Operand((n,), "every-second"),) * 2, _flat, FROM_TWO_AXES),
)


def _rows(length: int) -> ReduceFamily:
    return ReduceFamily(
        f"last-{label(length) if length > 1_000 else length}",
        lambda n: Operand((n // length, length)),
        (1,),
        tuple(size for size in FROM_TWO_AXES if size >= length),
    )


IMAGES = (64, 3, 224, 224)
IMAGE_ELEMENTS = (64 * 3 * 224 * 224,)


def _cube(n: int) -> Shape:
    edge = round(n ** (1 / 3))
    return (edge, edge, edge)


REDUCE = (
    ReduceFamily("all", lambda n: Operand((n,)), (), EVERY_SIZE),
    *(_rows(length) for length in (3, 8, 80, 1_000, 10_000)),
    ReduceFamily("first-narrow", lambda n: Operand((n // 8, 8)), (0,), (1_000, 100_000, 8_000_000, 100_000_000)),
    ReduceFamily("first-square", lambda n: Operand(_square(n)), (0,), (1, *FROM_TWO_AXES)),
    ReduceFamily("middle", lambda n: Operand(_cube(n)), (1,), FROM_TWO_AXES),
    ReduceFamily("images-last-axes", lambda n: Operand(IMAGES), (2, 3), IMAGE_ELEMENTS),
    ReduceFamily("images-first-axes", lambda n: Operand(IMAGES), (0, 1), IMAGE_ELEMENTS),
    ReduceFamily("images-by-channel", lambda n: Operand(IMAGES), (0, 2, 3), IMAGE_ELEMENTS),
    ReduceFamily("transposed-last", lambda n: Operand(_square(n), "transposed"), (1,), FROM_TWO_AXES),
    ReduceFamily("half-rows-all", lambda n: Operand(_square(n), "half-rows"), (0, 1), FROM_TWO_AXES),
    ReduceFamily("every-second-all", lambda n: Operand((n,), "every-second"), (), FROM_TWO_AXES),
)

LENGTHS: dict[Lengths, int] = {
    "mean-1": 1,
    "mean-10": 10,
    "mean-1000": 1_000,
    "mean-1e6": 1_000_000,
    "zipf": 20,
    "many-empty": 10,  # of segments that have rows: one in ten
}
EMPTY_EACH = 10
ROWS: dict[str, Shape] = {"1d": (), "rows-16": (16,), "rows-64": (64,)}
ID_TYPES: tuple[Literal["int32", "int64"], ...] = ("int32", "int64")


def _max_cases(dtype: DType) -> Iterator[Case]:
    for family, out in product(MAX, (False, True)):
        name = f"{family.name},out" if out else family.name
        for size in family.sizes:
            yield Case("Max", name, dtype, size, family.operands(size), family.shape(size), out=out)
    spellings: tuple[tuple[Spelling, Shape | None], ...] = (
        ("python-scalar", ()),
        ("operator", None),
        ("torch-tensors", None),
    )
    for (spelling, second), size in product(spellings, SPELLED_SIZES):
        operands = (Operand((size,)), Operand((size,) if second is None else second))
        yield Case("Max", spelling, dtype, size, operands, (size,), spelling=spelling)


def _reduce_cases(dtype: DType) -> Iterator[Case]:
    for family in REDUCE:
        for size in family.sizes:
            operand = family.operand(size)
            axes = family.axes or tuple(range(len(operand.shape)))
            shape = tuple(length for axis, length in enumerate(operand.shape) if axis not in axes)
            yield Case("ReduceMax", family.name, dtype, size, (operand,), shape, axes)
    spellings: tuple[Spelling, ...] = ("list-axes", "operator", "torch-tensors")
    for spelling, size in product(spellings, SPELLED_SIZES):
        yield Case("ReduceMax", spelling, dtype, size, (Operand((size,)),), (), (0,), spelling=spelling)


def _segment_cases(dtype: DType) -> Iterator[Case]:
    for (rows, row), lengths, id_type, check in product(ROWS.items(), LENGTHS, ID_TYPES, (True, False)):
        name = f"{rows},{lengths},{id_type}" + ("" if check else ",unchecked")
        if row and id_type == "int32" and not check:
            continue  # rows are too long for the ids' width and check to matter both at once
        sizes = ROW_SIZES if row else (1, *SEGMENT_SIZES) if lengths == "mean-1" else SEGMENT_SIZES
        for size in sizes:
            count = size // (row[0] if row else 1)
            if count < LENGTHS[lengths]:
                continue
            segments = Segments(lengths, id_type, check, segment_count(lengths, count))
            operand, shape = Operand((count, *row)), (segments.count, *row)
            yield Case("SegmentMax", name, dtype, size, (operand,), shape, segments=segments)
    spellings: tuple[Spelling, ...] = ("numpy-integer", "operator", "torch-tensors")
    for spelling, size in product(spellings, SPELLED_SIZES):
        segments = Segments("mean-1", "int64", True, segment_count("mean-1", size))
        operand, shape = Operand((size,)), (segments.count,)
        yield Case("SegmentMax", spelling, dtype, size, (operand,), shape, segments=segments, spelling=spelling)


def segment_count(lengths: Lengths, rows: int) -> int:
    """How many segments so many rows fall into."""
    filled = max(1, rows // LENGTHS[lengths])
    return filled * EMPTY_EACH if lengths == "many-empty" else filled


_CASES: dict[OperatorName, Callable[[DType], Iterator[Case]]] = {
    "Max": _max_cases,
    "ReduceMax": _reduce_cases,
    "SegmentMax": _segment_cases,
}


def cases(
    operators: Iterable[OperatorName] = OPERATORS, types: Iterable[DType] = DEFAULT_TYPES, *, quick: bool = False
) -> list[Case]:
    """The cases of the grid, small ones first within a family; `quick` keeps a few families at small sizes.

    >>> [case.id for case in cases(["ReduceMax"], [dtypes.INT8], quick=True)][:2]
    ['ReduceMax/all/int8/1', 'ReduceMax/all/int8/1e3']
    """
    chosen = [case for operator, dtype in product(operators, types) for case in _CASES[operator](dtype)]
    return [
        case
        for case in chosen
        if case.bytes_touched <= MAX_BYTES
        and (not quick or (case.size in QUICK_SIZES and case.family in QUICK_FAMILIES[case.operator]))
    ]
