"""Calls for tests of the kit, with feeds and expected results. As a program, the module runs them on one runtime.

Third-party runtimes run in a separate process, because jax and torch leave threads behind, which break tests that fork.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np

from maxops import dtypes, reference, spec
from maxops.conformance import runtimes
from maxops.conformance.case import Call, Feed, Input
from maxops.conformance.runtimes.runtime import Runtime
from maxops.dtypes import DType
from maxops.plan import Array

OPERATORS = ("Max", "ReduceMax", "SegmentMax")
Asked = tuple[Call, Feed, Array]


def plain(operator: str, dtype: DType = dtypes.FLOAT32) -> Asked:
    """Return a call of the newest version of an operator with a few values."""
    values = np.array([1, 0, 1, 1, 0] if dtype is dtypes.BOOL else [3, 1, 2, 7, 5]).astype(dtype.numpy)
    if operator == "Max":
        call = Call(spec.MAX_13, (Input("a", dtype, (None,)), Input("b", dtype, (None,))), (), 1)
        other = values[::-1].copy()
        return call, (values, other), reference.maximum(values, other)
    data = Input("data", dtype, (None,))
    if operator == "ReduceMax":
        axes = Input("axes", dtypes.INT64, (1,), np.array([0]))
        call = Call(spec.REDUCE_MAX_20, (data, axes), (("keepdims", 1),), 1)
        return call, (values,), reference.reduce_max(values, (0,))
    ids = Input("segment_ids", dtypes.INT64, (None,))
    number = Input("num_segments", dtypes.INT64, ())
    call = Call(spec.SEGMENT_MAX_16, (data, ids, number), (("fill_mode", "ZERO"),), 1)
    feed = (values, np.array([0, 0, 2, 2, 9]), np.array(4))  # one segment is empty, and one id is past num_segments
    return call, feed, reference.segment_max(values, feed[1], 4, "ZERO")


def reductions() -> Iterator[tuple[str, Asked]]:
    """Yield a few ReduceMax calls with axes as attribute, constant and input. Some runtimes compile each call."""
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    given = Input("data", dtypes.FLOAT32, (None, None))
    for where, axes, keepdims in (
        ("nowhere", [], 1),
        ("attribute", [-2], 0),
        ("constant", [1], 1),
        ("fed", [0, 1], 0),
        ("fed", [], 1),
    ):
        expected = np.asarray(np.max(data, axis=tuple(axes) or None, keepdims=bool(keepdims)))
        array = np.array(axes, np.int64)
        inputs = [given]
        if where in ("constant", "fed"):
            inputs.append(Input("axes", dtypes.INT64, array.shape, array if where == "constant" else None))
        row = spec.REDUCE_MAX_13 if where == "attribute" else spec.REDUCE_MAX_20
        message = [("keepdims", keepdims), *([("axes", axes)] if where == "attribute" else [])]
        feed = (data, array) if where == "fed" else (data,)
        yield f"axes {axes}, {where}", (Call(row, tuple(inputs), tuple(message), expected.ndim), feed, expected)


def segments() -> Iterator[tuple[str, Asked]]:
    """Yield SegmentMax of rows, without num_segments."""
    data, ids = np.array([[1, -9], [4, -8], [-3, -7]], np.float32), np.array([0, 0, 2])
    inputs = (Input("data", dtypes.FLOAT32, (None, None)), Input("segment_ids", dtypes.INT64, (None,)))
    for mode in ("ZERO", "lowest"):
        call = Call(spec.SEGMENT_MAX_16, inputs, (("fill_mode", mode),), 2)
        yield f"rows, {mode}", (call, (data, ids), reference.segment_max(data, ids, 3, mode.upper()))


ASKED = {operator: plain(operator) for operator in OPERATORS} | dict(reductions()) | dict(segments())


def bits(array: object) -> list[Any]:
    """Return an array as JSON: type, shape and bytes."""
    assert isinstance(array, np.ndarray), type(array)
    return [str(array.dtype), list(array.shape), array.tobytes().hex()]


def scripted(runtime: Runtime, call: Call, feed: Feed) -> Any:
    """Return the value of `actual` after running the lines of a script."""
    known = {"np": np, "ml_dtypes": ml_dtypes, "Fraction": Fraction}
    here = known | {each.name: array for each, array in zip(call.fed, feed, strict=True)}
    exec("\n".join(runtime.script(call, feed)), here)
    return here["actual"]


def main(name: str) -> dict[str, Any]:
    """Run all calls on a runtime, twice in one run and with their scripts. Return the results or the error."""
    runtime = runtimes.load(name)
    found: dict[str, Any] = {"version": runtime.version}
    for asked, (call, feed, _) in ASKED.items():
        again = tuple(array.copy() for array in feed)
        try:
            first, second = runtime.run(call, [feed, again])
            found[asked] = [bits(first), bits(second), bits(scripted(runtime, call, feed))]
        except Exception as error:  # noqa: BLE001  (what a runtime raises is part of what is looked at)
            found[asked] = f"{type(error).__name__}: {error}"
    return found


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
