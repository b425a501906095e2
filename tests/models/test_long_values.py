"""Errors about long values: integers that Python does not print, long lists, and sizes beyond the range of a float."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from maxops.errors import MaxopsError, OutputTooLargeError

BYTES = np.ones((2, 2), np.int8)
SEGMENT: dict[str, Any] = {"segment_ids": [0, 1], "fill_mode": "ZERO"}


class Unwritten:
    def __repr__(self) -> str:
        raise ZeroDivisionError("no repr")

    __str__ = __repr__


VALUES: dict[str, Any] = {
    "integer": 10**5000,
    "negative": -(10**5000),
    "in a list": [10**5000],
    "in lists": [[10**5000]],
    "long list": [7] * 100_000,
    "text": "7" * 100_000,
    "no repr": Unwritten(),
    "no repr, in a list": [Unwritten()],
}
ENTRIES: dict[str, Callable[[Any], object]] = {
    "maximum": lambda value: mo.maximum(BYTES, value),
    "maximum, first": lambda value: mo.maximum(value, BYTES),
    "ties": lambda value: mo.maximum(BYTES, BYTES, ties=value),
    "out": lambda value: mo.maximum(BYTES, BYTES, out=value),
    "axes": lambda value: mo.reduce_max(BYTES, axes=value),
    "axis": lambda value: mo.reduce_max(BYTES, axis=value),
    "axes and axis": lambda value: mo.reduce_max(BYTES, axes=value, axis=value),
    "keepdims": lambda value: mo.reduce_max(BYTES, keepdims=value),
    "initial": lambda value: mo.reduce_max(BYTES, initial=value),
    "initial of floats": lambda value: mo.reduce_max(BYTES.astype(np.float32), initial=value),
    "dim": lambda value: mo.reduce_max(BYTES, dim=value),
    "segment_ids": lambda value: mo.segment_max(BYTES, value, fill_mode="ZERO"),
    "offsets": lambda value: mo.segment_max(BYTES, offsets=value, fill_mode="ZERO"),
    "num_segments": lambda value: mo.segment_max(BYTES, **SEGMENT, num_segments=value),
    "fill_mode": lambda value: mo.segment_max(BYTES, [0, 1], fill_mode=value),
    "fill_value": lambda value: mo.segment_max(BYTES, [0, 1], fill_value=value),
    "sorted": lambda value: mo.segment_max(BYTES, **SEGMENT, sorted=value),
    "out_of_range": lambda value: mo.segment_max(BYTES, **SEGMENT, out_of_range=value),
    "return_empty": lambda value: mo.segment_max(BYTES, **SEGMENT, return_empty=value),
    "ReduceMax-13's axes": lambda value: mo.operator("ONNX", "ReduceMax", 13)(BYTES, axes=value),
    "ReduceMax-18's axes": lambda value: mo.operator("ONNX", "ReduceMax", 18)(BYTES, value),
    "standard": lambda value: mo.operator(value, "Max", 13),
    "operator": lambda value: mo.operator("ONNX", value, 13),
    "version": lambda value: mo.operator("ONNX", "Max", value),
    "set_num_threads": mo.set_num_threads,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_long_values_in_errors(entry: str) -> None:
    for value in VALUES.values():
        with pytest.raises((MaxopsError, TypeError)) as caught:
            ENTRIES[entry](value)
        assert 0 < len(str(caught.value)) < 1200


def test_outputs_past_the_largest_float() -> None:
    """Test twenty axes of 2**60 elements, whose size in bytes is above the maximum of a float."""
    shapes = np.where(np.eye(20, dtype=bool), 2**60, 1).tolist()
    inputs = [np.broadcast_to(np.int8(0), shape) for shape in shapes]
    with pytest.raises(OutputTooLargeError, match=r"1\.604e\+352 GiB"):
        mo.maximum(*inputs)
