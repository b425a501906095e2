"""Creates calls to maxops for OpenVINO's Maximum, ReduceMax and SegmentMax, and checks OpenVINO's additional rules."""

from __future__ import annotations

from collections.abc import Sequence

from maxops import dtypes, spec
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.dtypes import DType
from maxops.errors import AttributeValueError, AxesError, ShapeError
from maxops.plan import Array

_LETTERS = {"float": "f", "int": "i", "uint": "u"}
# OpenVINO's names of the dtypes, and the names that an IR uses for the type of a port. OpenVINO has no type `real`.
NAMES: dict[DType, str] = {
    dtype: f"{_LETTERS[dtype.kind]}{dtype.bits}"
    for dtype in dtypes.ALL
    if dtype.kind in _LETTERS and dtype is not dtypes.BFLOAT16
} | {dtypes.BOOL: "boolean", dtypes.BFLOAT16: "bf16"}
PORT_NAMES: dict[DType, str] = {
    dtype: f"FP{dtype.bits}" if dtype.kind == "float" else name.upper() for dtype, name in NAMES.items()
} | {dtypes.BFLOAT16: "BF16", dtypes.BOOL: "BOOL"}
DTYPES: dict[str, DType] = {name: dtype for dtype, name in NAMES.items()}
# OpenVINO's types that maxops does not support, and its names for unknown types.
OTHER_TYPES = ("u1", "u2", "u3", "u4", "u6", "i4", "nf4", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "string")
OPEN_TYPES = ("undefined", "dynamic")
# The types by their case-insensitive names in a layer's <data>: a dtype of maxops, the name of an unsupported type, or
# None for an unknown type.
ELEMENT_TYPES: dict[str, DType | str | None] = DTYPES | {name: name for name in OTHER_TYPES} | dict.fromkeys(OPEN_TYPES)
# The types by the case-sensitive precision of a port. An empty precision, as in OpenVINO's documentation, is an unknown
# type.
PORT_TYPES: dict[str, DType | str | None] = (
    ELEMENT_TYPES
    | {name: dtype for dtype, name in PORT_NAMES.items()}
    | {name.upper(): name for name in OTHER_TYPES}
    | {"BIN": "u1", "bin": "u1", "UNSPECIFIED": None, "": None}
)
# The broadcast modes of Maximum, by their case-insensitive names in an IR.
AUTO_BROADCAST = {"numpy": "numpy", "none": "none", "explicit": "none", "pdpd": "pdpd"}


def check_auto_broadcast(kind: str) -> None:
    """Raise an error for an invalid `auto_broadcast` of Maximum."""
    if kind not in ("numpy", "none"):
        raise AttributeValueError(f"Maximum auto_broadcast must be 'numpy' or 'none', got {kind!r}")


def maximum(inputs: Sequence[Array], auto_broadcast: str) -> MaxCall:
    """Return a call of Max for Maximum. Raise ShapeError for shapes that `auto_broadcast` does not allow."""
    check_auto_broadcast(auto_broadcast)
    shapes = [array.shape for array in inputs]
    if auto_broadcast == "none" and len(set(shapes)) > 1:
        raise ShapeError(f"Maximum inputs must have equal shapes with auto_broadcast 'none', got {shapes}")
    return MaxCall(inputs)


def reduce_max(inputs: Sequence[Array], keep_dims: bool) -> ReduceCall:
    """Return a call of ReduceMax. The inputs are data and axes. With empty axes, OpenVINO returns data unchanged."""
    data, axes = inputs
    if axes.ndim > 1 or axes.dtype.kind not in "iu":
        raise AxesError(f"ReduceMax axes must be a scalar or a 1-D array of integers, got {axes.dtype} {axes.shape}")
    return ReduceCall(data, axes.reshape(-1).tolist(), keep_dims, True)


def segment_max(inputs: Sequence[Array], fill_mode: str, check_ids: bool = True) -> SegmentCall:
    """Return a call of SegmentMax. The inputs are data, segment_ids and, optionally, num_segments."""
    data, ids, count = (*inputs, None)[:3]
    return SegmentCall(data, ids, count, fill_mode, check_ids=check_ids, row=spec.SEGMENT_MAX_16)
