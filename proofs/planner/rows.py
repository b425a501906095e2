"""The operators according to their specifications, and the rules that a call can break, without using maxops."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

Shape = tuple[int, ...]
Rule = tuple[str, str]  # the class of the error, and the short name that its clause has in most rows
Seen = tuple[Any, ...]  # the outcome of a call: an error and the id of its clause, or the type and shape of the result
Trial = tuple["Row", tuple[Any, ...], dict[str, Any], frozenset[Seen]]

# ------------------------------------------------------------------------------------------------ the rows

FLOATS = ("float16", "float32", "float64")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
WIDE = ("int32", "int64", "uint32", "uint64")
EVERY = (*FLOATS, "bfloat16", *INTEGERS, "bool", "real")
NUMBERS = EVERY[:-2]


class Row(NamedTuple):
    """A version of an operator in a standard, with the types and attributes that its specification lists."""

    standard: str
    operator: str
    version: int | None
    types: tuple[str, ...]
    attributes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the operator with its version, such as "Max-13"."""
        return f"{self.operator}-{self.version}" if self.version else self.operator

    @property
    def is_plain(self) -> bool:
        """True for the functions of maxops, such as maxops.maximum, which accept more than the standards."""
        return self.standard == "maxops"

    @property
    def index_types(self) -> tuple[str, ...]:
        """The allowed types of ids, offsets and num_segments or, for ReduceMax, of an array of axes."""
        if self.is_plain:
            return INTEGERS
        return ("int64",) if self.operator == "ReduceMax" else ("int32", "int64")

    def breaks(self, *rules: Rule) -> frozenset[Seen]:
        """Return the error of each broken rule, with the id of its clause in this row."""
        names = SHORTS[self.standard]
        prefix = f"{self.standard.replace(' ', '-')}.{self.name}."
        return frozenset((error, prefix + names.get(short, short)) for error, short in rules)


# The rules whose clauses have other names than in most rows. In the standards, Python scalars and unsupported arrays
# violate the clause about types. SONNX requires explicit types.
SHORTS = {
    "ONNX": {"scalars": "T", "arrays": "T", "out": "T", "out.shape": "shape"},
    "OpenVINO": {"arrays": "T", "out": "T", "out.shape": "shape"},
    "SONNX": {"shape": "C1", "inputs": "L", "scalars": "GR2", "arrays": "T", "out": "T", "out.shape": "C2"},
    "maxops": {"T": "types", "T_IDX": "index_types", "out.shape": "out", "axes.unique": "axes"},
}
# The draft has no separate clause for the broadcast result: its rules are for Y, X1, ..., XN.
SHORTS["SONNX draft"] = SHORTS["SONNX"] | {"out.shape": "C1", "scalars": "T"}

MAX = (
    Row("ONNX", "Max", 1, FLOATS, ("consumed_inputs",)),
    Row("ONNX", "Max", 6, FLOATS),
    Row("ONNX", "Max", 8, FLOATS),
    Row("ONNX", "Max", 12, FLOATS + INTEGERS),
    Row("ONNX", "Max", 13, NUMBERS),
    Row("SONNX", "Max", None, (*FLOATS, *INTEGERS, "real")),
    Row("SONNX draft", "Max", None, NUMBERS),
    Row("maxops", "maximum", None, EVERY),
)
REDUCE = (
    Row("ONNX", "ReduceMax", 1, FLOATS + WIDE, ("axes", "keepdims")),
    Row("ONNX", "ReduceMax", 11, FLOATS + WIDE, ("axes", "keepdims")),
    Row("ONNX", "ReduceMax", 12, (*FLOATS, *WIDE, "int8", "uint8"), ("axes", "keepdims")),
    Row("ONNX", "ReduceMax", 13, (*FLOATS, *WIDE, "int8", "uint8", "bfloat16"), ("axes", "keepdims")),
    Row("ONNX", "ReduceMax", 18, (*FLOATS, *WIDE, "int8", "uint8", "bfloat16"), ("keepdims", "noop_with_empty_axes")),
    Row(
        "ONNX", "ReduceMax", 20, (*FLOATS, *WIDE, "int8", "uint8", "bfloat16", "bool"),
        ("keepdims", "noop_with_empty_axes"),
    ),
    Row("maxops", "reduce_max", None, EVERY),
)  # fmt: skip
SEGMENT = (
    Row("OpenVINO", "SegmentMax", 16, NUMBERS, ("fill_mode",)),
    Row("maxops", "segment_max", None, EVERY),
)
MAXIMUM, REDUCE_MAX, SEGMENT_MAX = MAX[-1], REDUCE[-1], SEGMENT[-1]

# The rules that a call can break.
TYPE: Rule = ("DTypeError", "T")
ARRAY: Rule = ("DTypeError", "arrays")
SCALAR: Rule = ("DTypeError", "scalars")
INDEX_TYPE: Rule = ("DTypeError", "T_IDX")
COUNT: Rule = ("InputCountError", "inputs")
SHAPE: Rule = ("ShapeError", "shape")
ZERO_SIZE: Rule = ("ShapeError", "zero-size")
RANK: Rule = ("ShapeError", "data")
SEGMENT_AXIS: Rule = ("AxesError", "axis")
AXES: Rule = ("AxesError", "axes")
AXES_UNIQUE: Rule = ("AxesError", "axes.unique")
AXES_RANGE: Rule = ("AxesError", "axes.range")
NOOP: Rule = ("AttributeValueError", "noop_with_empty_axes")
EMPTY: Rule = ("EmptyReductionError", "empty")
EMPTY_SEGMENT: Rule = ("EmptyReductionError", "fill_mode")
IDS_SHAPE: Rule = ("SegmentIdsError", "ids.shape")
IDS: Rule = ("SegmentIdsError", "ids")
OUT_OF_RANGE: Rule = ("SegmentIdsError", "out_of_range")
OFFSETS: Rule = ("OffsetsError", "offsets")
NUM_SEGMENTS: Rule = ("NumSegmentsError", "num_segments")
OUT: Rule = ("OutputError", "out")
NO_ATTRIBUTE: Seen = ("AttributeValueError", "")  # no clause covers an unknown attribute


def gives(name: str, *shapes: Shape) -> frozenset[Seen]:
    """Return the allowed results of a call: a type in native byte order, with any of these shapes."""
    return frozenset((dtype_of(name), shape) for shape in shapes)


# ------------------------------------------------------------------------------------------------ arrays


@cache
def dtype_of(name: str) -> np.dtype[Any]:
    """Return the NumPy dtype of a type's name."""
    own: dict[str, Any] = {"real": object, "bfloat16": ml_dtypes.bfloat16}
    found: np.dtype[Any] = np.dtype(own.get(name, name))
    return found


def bits_of(array: np.ndarray[Any, Any]) -> str:
    """Return the bits of an array's elements as text. For rationals, return their values."""
    return repr(array.tolist()) if array.dtype.kind == "O" else array.tobytes().hex()


@cache
def zeros(shape: Shape, name: str = "float32") -> np.ndarray[Any, Any]:
    """Return an array of zeros. For the type "half", return an object array of floats, which no operator supports."""
    return np.full(shape, 0.5, object) if name == "half" else np.zeros(shape, dtype_of(name))


# Types that no operator supports.
FOREIGN = ("complex64", "longdouble", "S3", "U3", "M8[s]", "m8[s]", "V4", "float8_e4m3fn", "int4", "half")
OBJECTS = (None, "x", [1.0], object(), np.ma.masked_array([1.0, 2.0]), np.array([[1.0]]).view(np.matrix))


def forms(name: str) -> Iterator[Any]:
    """Yield a type's values in each form: a 1-D array, an array of rank 0, a NumPy scalar, and a byte-swapped array."""
    yield zeros((2,), name)
    yield zeros((), name)
    if name not in ("real", "half"):
        yield zeros((2,), name)[0]
        yield np.zeros(2, dtype_of(name).newbyteorder())
