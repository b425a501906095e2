"""Ids and offsets that break a rule: found by the native core, put into words here, for every engine.

>>> import numpy as np
>>> check_segment_ids(SEGMENT_MAX, np.array([0, 2, 1], np.int8))
Traceback (most recent call last):
    ...
maxops.errors.SegmentIdsError: segment_max segment_ids must not decrease: position 2 holds 1 after 2 \
[maxops.segment_max.ids]
"""

from __future__ import annotations

from typing import Any, Literal

from maxops import _native, dtypes
from maxops.errors import MaxopsError, OffsetsError, SegmentIdsError
from maxops.plan.values import Array, widened
from maxops.spec import SEGMENT_MAX, Spec

# None: past num_segments dropped if the ids are sorted, as OpenVINO has it; an error if they are in any order.
OutOfRange = Literal["error", "drop"]
_PAST = 2**63 - 1  # more segments than any memory holds: the core counts no further


def check_segment_ids(
    spec: Spec,
    ids: Array,
    *,
    sorted: bool = True,
    out_of_range: OutOfRange | None = None,
    num_segments: int | None = None,
    start: int = 0,
) -> None:
    """Raise for the first id that is not allowed; `start` is the position of the first of them all."""
    limit = min(num_segments, _PAST) if out_of_range == "error" and num_segments is not None else None
    if sorted or out_of_range != "drop":
        _raise_first(spec, ids, (False, sorted, out_of_range != "drop", limit, len(ids)), start)


def check_offsets(spec: Spec, offsets: Array, rows: int) -> None:
    """Raise unless offsets run from 0 to the number of rows and never decrease."""
    _raise_first(spec, offsets, (True, True, True, None, rows), 0)


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
    """The error of a fault as the native core reports it (`Fault` in native/api.h)."""
    holds = f"position {position} holds {value}"
    ids, offsets = f"{spec.name} segment_ids must", f"{spec.name} offsets must"
    match kind:
        case "negative_id":
            return SegmentIdsError(f"{ids} not be negative: {holds}", spec.clause("ids"))
        case "id_too_large":
            return SegmentIdsError(
                f"{ids} lie below num_segments, which is {num_segments}: {holds}; out_of_range='drop' leaves such "
                "rows out",
                spec.clause("out_of_range"),
            )
        case "ids_decrease":
            return SegmentIdsError(f"{ids} not decrease: {holds} after {previous}", spec.clause("ids"))
        case "offsets_begin":
            return OffsetsError(f"{offsets} begin with 0: {holds}", spec.clause("offsets"))
        case "offsets_decrease":
            return OffsetsError(f"{offsets} not decrease: {holds} after {previous}", spec.clause("offsets"))
    return OffsetsError(f"{offsets} end with the number of rows, which is {previous}: {holds}", spec.clause("offsets"))


def _changed(spec: Spec, *, offsets: bool) -> MaxopsError:
    """The error of ids or offsets that broke a rule, and no longer do."""
    name, error = ("offsets", OffsetsError) if offsets else ("segment_ids", SegmentIdsError)
    return error(
        f"{spec.name} {name} were changed by another thread during the call; give it a copy, {name}.copy()",
        spec.clause("offsets" if offsets else "ids"),
    )


def message(kind: str, position: int, value: int, previous: int, num_segments: int) -> str:
    """The text of a fault that XLA's custom calls report, whose errors are not ours."""
    return str(error_of(SEGMENT_MAX, kind, position, value, previous, num_segments))
