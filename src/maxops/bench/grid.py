"""The grid of benchmark cases. A case has one operator, shape family, type and size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import isqrt, prod
from typing import Any, Literal

from maxops import dtypes, shapes
from maxops.dtypes import DType
from maxops.shapes import Shape

OperatorName = Literal["Max", "ReduceMax", "SegmentMax"]
View = Literal["whole", "transposed", "half-rows", "every-second"]

# How the call is written: plainly, with a Python scalar as an input, with axes in a list, with a NumPy integer as the
# number of segments, as an operator of a standard, or with torch tensors.
Spelling = Literal["plain", "python-scalar", "list-axes", "numpy-integer", "operator", "torch-tensors"]

OPERATORS: tuple[OperatorName, ...] = ("Max", "ReduceMax", "SegmentMax")


@dataclass(frozen=True)
class Operand:
    """An input of `shape`: a whole array in C order, or a view of another array.

    >>> Operand((3, 4), "half-rows").base_shape
    (3, 8)
    """

    shape: Shape
    view: View = "whole"

    @property
    def base_shape(self) -> Shape:
        """The shape of the array in C order from which the view is taken."""
        if self.view == "transposed":
            return self.shape[::-1]
        return self.shape if self.view == "whole" else (*self.shape[:-1], 2 * self.shape[-1])


@dataclass(frozen=True)
class Case:
    """A call to time. `size` is the nominal number of elements: of Max's output, or of the other operators' data.

    `axes` belong to ReduceMax. `lengths` (of segments), `id_type` and `check_ids` belong to SegmentMax. `out`
    indicates whether the call has an output argument, and `spelling` selects how the call is written.
    """

    operator: OperatorName
    family: str
    dtype: DType
    size: int
    operands: tuple[Operand, ...]
    shape: Shape
    axes: tuple[int, ...] = ()
    lengths: str = ""
    id_type: str = "int64"
    check_ids: bool = True
    out: bool = False
    spelling: Spelling = "plain"

    @property
    def id(self) -> str:
        """A stable name, such as ``Max/2-inputs,out/float32/1e5``."""
        return f"{self.operator}/{self.family}/{self.dtype}/{label(self.size)}"

    @property
    def bytes_read(self) -> int:
        """The size of all inputs in bytes, including ids. Each element is counted once."""
        ids = self.operands[0].shape[0] * int(self.id_type[3:]) // 8 if self.operator == "SegmentMax" else 0
        return sum(prod(operand.shape) for operand in self.operands) * self.dtype.bits // 8 + ids

    @property
    def bytes_written(self) -> int:
        """The size of the output in bytes."""
        return prod(self.shape) * self.dtype.bits // 8

    @property
    def bytes_touched(self) -> int:
        """The number of bytes read and written."""
        return self.bytes_read + self.bytes_written


def label(size: int) -> str:
    """Return a size as short text.

    >>> label(1), label(30_000_000), label(9_633_792)
    ('1', '3e7', '9633792')
    """
    digits = str(size).rstrip("0")
    return f"{digits}e{len(str(size)) - 1}" if len(digits) == 1 and size > 1 else str(size)


# ------------------------------------------------------------------------------------------------- the grid

MAX_BYTES = 10**9  # maximum total size of the arrays of a case
EVERY_SIZE = (1, 1_000, 100_000, 1_000_000, 10_000_000, 30_000_000, 100_000_000)
EIGHT_SIZES = (1, 1_000, 100_000, 1_000_000, 10_000_000, 20_000_000, 50_000_000, 100_000_000)
LARGER = (1_000, 100_000, 10_000_000, 30_000_000, 100_000_000)
ROW_SIZES = (1_000, 100_000, 30_000_000, 100_000_000)
_SPELLED: dict[str, Spelling] = {"Max": "python-scalar", "ReduceMax": "list-axes", "SegmentMax": "numpy-integer"}
SPELLED_SIZES = (1, 100, 1_000)  # the sizes of calls in other spellings, whose overhead matters most in small calls

TYPES = tuple(dtype for dtype in dtypes.ALL if dtype is not dtypes.REAL)
# The default: one type for each kind of kernel.
_DEFAULT = ("float32", "float16", "bfloat16", "float64", "int8", "int32", "int64", "uint16")
DEFAULT_TYPES = tuple(dtypes.BY_NAME[name] for name in _DEFAULT)
QUICK_TYPES = (dtypes.FLOAT32, dtypes.FLOAT16)
QUICK_SIZES = (1, 1_000, 100_000)
QUICK_FAMILIES = {
    "Max": "2-inputs 2-inputs,out 8-inputs,out row,out transposed,out python-scalar operator",
    "ReduceMax": "all last-8 first-square list-axes operator",
    "SegmentMax": "operator 1d,mean-1,int64 1d,mean-10,int64 1d,mean-10,int64,unchecked rows-16,mean-10,int64",
}

Operands = Callable[[int], tuple[Operand, ...]]


def _of(*made: Callable[[int], Shape], view: View = "whole") -> Operands:
    """Return a function that returns the operands for n elements. The view applies to the last operand."""
    return lambda n: (*(Operand(shape(n)) for shape in made[:-1]), Operand(made[-1](n), view))


def _same(count: int, shape: Callable[[int], Shape], view: View = "whole") -> Operands:
    return lambda n: (Operand(shape(n), view),) * count


def _flat(n: int) -> Shape:
    return (n,)


def _square(n: int) -> Shape:
    return (isqrt(n), isqrt(n))


def _rows(length: int) -> Callable[[int], Shape]:
    return lambda n: (n // length, length)


# By name: the inputs for an output of n elements, and the sizes n.
MAX: dict[str, tuple[Operands, tuple[int, ...]]] = {
    "2-inputs": (_same(2, _flat), EVERY_SIZE),
    "3-inputs": (_same(3, _flat), EVERY_SIZE),
    "8-inputs": (_same(8, _flat), EIGHT_SIZES),
    "row": (_of(_square, lambda n: (isqrt(n),)), LARGER),
    "column": (_of(_square, lambda n: (isqrt(n), 1)), LARGER),
    "outer": (_of(lambda n: (isqrt(n), 1), lambda n: (1, isqrt(n))), LARGER),
    "scalar": (_of(_flat, lambda n: ()), LARGER),
    "transposed": (_of(_square, _square, view="transposed"), LARGER),
    "half-rows": (_same(2, _square, "half-rows"), LARGER),
    "every-second": (_same(2, _flat, "every-second"), LARGER),
}

_IMAGES = _of(lambda n: (64, 3, 224, 224))
_IMAGE_SIZES = (64 * 3 * 224 * 224,)

# By name: data of n elements, the reduced axes, and the sizes n.
REDUCE: dict[str, tuple[Operands, tuple[int, ...], tuple[int, ...]]] = {
    "all": (_of(_flat), (0,), EVERY_SIZE),
    "last-3": (_of(_rows(3)), (1,), LARGER),
    "last-8": (_of(_rows(8)), (1,), LARGER),
    "last-80": (_of(_rows(80)), (1,), LARGER),
    "last-1000": (_of(_rows(1_000)), (1,), LARGER),
    "last-1e4": (_of(_rows(10_000)), (1,), LARGER[1:]),
    "first-narrow": (_of(_rows(8)), (0,), (1_000, 100_000, 8_000_000, 100_000_000)),
    "first-square": (_of(_square), (0,), (1, *LARGER)),
    "middle": (_of(lambda n: (round(n ** (1 / 3)),) * 3), (1,), LARGER),
    "images-last-axes": (_IMAGES, (2, 3), _IMAGE_SIZES),
    "images-first-axes": (_IMAGES, (0, 1), _IMAGE_SIZES),
    "images-by-channel": (_IMAGES, (0, 2, 3), _IMAGE_SIZES),
    "transposed-last": (_of(_square, view="transposed"), (1,), LARGER),
    "half-rows-all": (_of(_square, view="half-rows"), (0, 1), LARGER),
    "every-second-all": (_of(_flat, view="every-second"), (0,), LARGER),
}

# The average number of rows per segment; for many-empty, per nonempty segment, with one of ten segments nonempty.
LENGTHS = {"mean-1": 1, "mean-10": 10, "mean-1000": 1_000, "mean-1e6": 1_000_000, "zipf": 20, "many-empty": 10}
EMPTY_EACH = 10
ROWS: dict[str, Shape] = {"1d": (), "rows-16": (16,), "rows-64": (64,)}

# The meaning of each part of a family's name. The parts are separated by commas.
MEANINGS = {
    "2-inputs": "two arrays of one shape",
    "3-inputs": "three arrays of one shape",
    "8-inputs": "eight arrays of one shape",
    "row": "a square matrix and a row, which is broadcast",
    "column": "a square matrix and a column, which is broadcast",
    "outer": "a column and a row, which are broadcast to a square matrix",
    "scalar": "an array and a 0-D array",
    "transposed": "a square matrix and a transposed square matrix",
    "half-rows": "two matrices whose rows are halves of longer rows",
    "every-second": "two 1-D views with a step of 2",
    "out": "the call passes an `out` array",
    "all": "1-D data, reduced to a scalar",
    "last-3": "rows of 3 elements, each reduced",
    "last-8": "rows of 8 elements, each reduced",
    "last-80": "rows of 80 elements, each reduced",
    "last-1000": "rows of 1000 elements, each reduced",
    "last-1e4": "rows of 10,000 elements, each reduced",
    "first-narrow": "a matrix with 8 columns, each reduced",
    "first-square": "a square matrix, with each column reduced",
    "middle": "a 3-D array, reduced along its middle axis",
    "images-last-axes": "64 images of 3 channels: the maximum of each channel of each image",
    "images-first-axes": "64 images of 3 channels: the maximum at each position, over all images and channels",
    "images-by-channel": "64 images of 3 channels: the maximum of each channel",
    "transposed-last": "a transposed square matrix, with each row reduced",
    "half-rows-all": "a matrix whose rows are halves of longer rows, reduced to a scalar",
    "every-second-all": "a 1-D view with a step of 2, reduced to a scalar",
    "1d": "1-D data",
    "rows-16": "rows of 16 elements",
    "rows-64": "rows of 64 elements",
    "mean-1": "each segment has 1 row",
    "mean-10": "a segment has 10 rows on average",
    "mean-1000": "a segment has 1000 rows on average",
    "mean-1e6": "a segment has 1,000,000 rows on average",
    "zipf": "segment lengths follow a Zipf distribution, with a mean of 20 rows",
    "many-empty": "nine of ten segments are empty, and the others have 10 rows on average",
    "int32": "the ids are int32",
    "int64": "the ids are int64",
    "unchecked": "the call passes `check_ids=False`",
    "python-scalar": "an array and a Python scalar",
    "list-axes": "1-D data, with the axes in a list",
    "numpy-integer": "1-D data, with `num_segments` as a NumPy integer",
    "operator": "the operator of a standard, with 1-D data",
    "torch-tensors": "1-D PyTorch tensors",
}


def max_case(name: str, dtype: DType, size: int, operands: tuple[Operand, ...], *, out: bool = False) -> Case:
    """Return a case of Max."""
    return Case("Max", name, dtype, size, operands, shapes.broadcast([each.shape for each in operands]), out=out)


def reduce_case(name: str, dtype: DType, size: int, operand: Operand, axes: tuple[int, ...]) -> Case:
    """Return a case of ReduceMax, without keepdims."""
    shape = tuple(length for axis, length in enumerate(operand.shape) if axis not in axes)
    return Case("ReduceMax", name, dtype, size, (operand,), shape, axes)


def segment_case(name: str, dtype: DType, size: int, shape: Shape, lengths: str, **more: Any) -> Case:
    """Return a case of SegmentMax."""
    count = max(1, shape[0] // LENGTHS[lengths]) * (EMPTY_EACH if lengths == "many-empty" else 1)
    return Case("SegmentMax", name, dtype, size, (Operand(shape),), (count, *shape[1:]), lengths=lengths, **more)


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
            continue  # for long rows, this combination adds no information
        name = f"{rows},{lengths},{id_type}" + ("" if check else ",unchecked")
        for size in ROW_SIZES if row else (1, *LARGER) if lengths == "mean-1" else LARGER:
            count = size // (row[0] if row else 1)
            if count >= LENGTHS[lengths]:
                yield segment_case(name, dtype, size, (count, *row), lengths, id_type=id_type, check_ids=check)


def _spelled(operator: OperatorName, dtype: DType) -> Iterator[Case]:
    for spelling, size in product((_SPELLED[operator], "operator", "torch-tensors"), SPELLED_SIZES):
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
    """Return the cases of the grid, in each family from small to large. `quick` keeps a few families at small sizes.

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
