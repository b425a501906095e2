"""Errors for invalid segment ids and offsets. The native core detects these faults for every engine.

>>> import numpy as np
>>> check_segment_ids(SEGMENT_MAX, np.array([0, 2, 1], np.int8))
Traceback (most recent call last):
    ...
maxops.errors.SegmentIdsError: segment_max segment_ids must be non-decreasing, got 1 after 2 at position 2; \
pass sorted=False to accept unsorted ids [maxops.segment_max.ids]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from maxops import _native, dtypes
from maxops.errors import MaxopsError, OffsetsError, SegmentIdsError
from maxops.plan.values import Array, widened
from maxops.spec import SEGMENT_MAX, Spec

# The treatment of ids that are negative or >= num_segments. None means that negative ids are an error, and that rows
# with ids >= num_segments are dropped, as in OpenVINO.
OutOfRange = Literal["error", "drop"]
_PAST = 2**63 - 1  # the core's limit: more segments than fit in any memory
# The core checks ids in blocks of this size. Within a block, it checks one rule after another, so an id before the
# reported one may break a rule that the core checks later.
CHECKED_TOGETHER = 1 << 20  # equals kBlock of find_id_fault in native/api_segments.cpp


def check_segment_ids(
    spec: Spec,
    ids: Array,
    *,
    sorted: bool = True,
    out_of_range: OutOfRange | None = None,
    num_segments: int | None = None,
    start: int = 0,
) -> None:
    """Raise an error for the first invalid id. `start` is the position of ``ids[0]`` in the whole array."""
    limit = _limit(out_of_range, num_segments)
    if sorted or out_of_range != "drop":
        _raise_first(spec, ids, (False, sorted, out_of_range != "drop", limit, len(ids)), start)


def _limit(out_of_range: OutOfRange | None, num_segments: int | None) -> int | None:
    return min(num_segments, _PAST) if out_of_range == "error" and num_segments is not None else None


class IdFault(NamedTuple):
    """An invalid id. `kind` is the native core's name for the rule that the id breaks."""

    kind: str
    position: int
    value: int
    previous: int


def first_id_faults(
    ids: Array, *, sorted: bool, out_of_range: OutOfRange | None, num_segments: int | None
) -> list[IdFault]:
    """Return the first fault of each kind in a block of consecutive ids, for `raise_first_id_fault`."""
    found = []

    def look(kind: str, wrong: Array, shift: int = 0) -> None:
        if wrong.any():
            position = int(wrong.argmax()) + shift
            found.append(IdFault(kind, position, int(ids[position]), int(ids[position - shift])))

    limit = _limit(out_of_range, num_segments)
    if out_of_range != "drop":
        look("negative_id", ids < 0)
    if limit is not None:
        look("id_too_large", ids >= limit)
    if sorted:
        look("ids_decrease", ids[1:] < ids[:-1], 1)
    return found


_ID_RULES = ("negative_id", "id_too_large", "ids_decrease")  # in the order in which the core checks them


def raise_first_id_fault(spec: Spec, faults: Iterable[IdFault], num_segments: int | None) -> None:
    """Raise the error that `check_segment_ids` would raise for all ids, given the first fault of each kind."""

    def turn(fault: IdFault) -> tuple[int, int]:
        pair = fault.kind == "ids_decrease"  # the core detects this fault at the first of the two ids
        return (fault.position - pair) // CHECKED_TOGETHER, _ID_RULES.index(fault.kind)

    if first := min(faults, key=turn, default=None):
        raise error_of(spec, *first, num_segments)


def check_offsets(spec: Spec, offsets: Array, rows: int) -> None:
    """Raise an error unless the offsets are non-decreasing and run from 0 to the number of rows."""
    _raise_first(spec, offsets, (True, True, True, None, rows), 0)


def are_offsets(offsets: Array, rows: int) -> bool:
    """Return whether int32 or int64 offsets are non-decreasing and run from 0 to the number of rows."""
    return _native.check_indices(offsets, True, True, True, None, rows) is None


def _raise_first(spec: Spec, indices: Array, rules: tuple[Any, ...], start: int) -> None:
    known = indices if dtypes.of(indices.dtype) is dtypes.UINT64 else widened(indices)
    fault = _native.check_indices(known, *rules)
    if fault is None:
        return
    kind, position, _, previous = fault
    if not kind:
        raise _changed(spec, offsets=rules[0])
    if kind in ("ids_decrease", "offsets_decrease"):
        previous = int(indices[position - 1])
    raise error_of(spec, kind, start + position, int(indices[position]), previous, rules[3])


def error_of(spec: Spec, kind: str, position: int, value: int, previous: int, num_segments: int | None) -> MaxopsError:
    """Return the error for a fault that the native core reports (`Fault` in native/api.h)."""
    found = f"got {value} at position {position}"
    after = f"got {value} after {previous} at position {position}"
    drops = "; pass out_of_range='drop' to drop such rows" if spec.has("out_of_range") else ""
    in_any_order = "; pass sorted=False to accept unsorted ids" if spec.has("sorted") else ""
    ids, offsets = f"{spec.name} segment_ids must", f"{spec.name} offsets must"
    match kind:
        case "negative_id":
            return SegmentIdsError(f"{ids} not be negative, {found}{drops}", spec.clause("ids"))
        case "id_too_large":
            return SegmentIdsError(
                f"{ids} be less than num_segments ({num_segments}), {found}{drops}",
                spec.clause("out_of_range"),
            )
        case "ids_decrease":
            return SegmentIdsError(f"{ids} be non-decreasing, {after}{in_any_order}", spec.clause("ids"))
        case "offsets_begin":
            ways = f"; prepend 0, or pass only the rows from {value} and offsets - {value}" if value > 0 else ""
            return OffsetsError(f"{offsets} start with 0, {found}{ways}", spec.clause("offsets"))
        case "offsets_decrease":
            return OffsetsError(f"{offsets} be non-decreasing, {after}", spec.clause("offsets"))
    return OffsetsError(
        f"{offsets} end with the number of rows ({previous}), {found}; append {previous}",
        spec.clause("offsets"),
    )


def _changed(spec: Spec, *, offsets: bool) -> MaxopsError:
    """Return the error for ids or offsets that were invalid, but are valid when read again."""
    name, error = ("offsets", OffsetsError) if offsets else ("segment_ids", SegmentIdsError)
    return error(
        f"{spec.name} {name} were changed by another thread during the call; pass a copy, {name}.copy()",
        spec.clause("offsets" if offsets else "ids"),
    )


def message(kind: str, position: int, value: int, previous: int, num_segments: int) -> str:
    """Return the message for a fault that an XLA custom call detects. JAX raises its own error with this message."""
    return str(error_of(SEGMENT_MAX, kind, position, value, previous, num_segments))
