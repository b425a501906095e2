"""numpy: the maximum ufunc, its reduction, and its unbuffered in-place form for segments."""

from __future__ import annotations

from functools import reduce

from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library, lowest


class NumPy(Library):
    """The arrays' own package; rational numbers are Python objects to it."""

    name = "numpy"
    missing_types = frozenset()

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """np.maximum, from the first to the last."""
        return [f"actual = np.asarray({reduce(lambda made, name: f'np.maximum({made}, {name})', names)})"]

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """np.max."""
        return [f"actual = np.asarray(np.max({data}, axis={axis}, keepdims={keepdims}))"]

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """np.maximum.at, then what has no ids is filled."""
        return [
            f"actual = np.full(({count}, *{data}.shape[1:]), {lowest(call.dtype)}, {data}.dtype)",
            f"np.maximum.at(actual, {ids}, {data})",
            f"actual[np.bincount({ids}, minlength={count}) == 0] = {fill}",
        ]
