"""numbagg: nanmax and group_nanmax, compiled by Numba."""

from __future__ import annotations

from maxops import dtypes
from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library


class Numbagg(Library):
    """It skips NaN by design, and says so in its functions' names."""

    name = "numbagg"
    opening = ("import numbagg",)
    missing_types = frozenset({dtypes.REAL, dtypes.BFLOAT16})

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """nanmax."""
        lines = [f"axis = {axis}", f"actual = np.asarray(numbagg.nanmax({data}, axis=axis))"]
        if keepdims:
            lines.append(f"actual = np.expand_dims(actual, tuple(range({data}.ndim)) if axis is None else axis)")
        return lines

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """group_nanmax along the first axis; the groups come last. Then what has no ids is filled."""
        return [
            f"found = numbagg.group_nanmax({data}, {ids}, num_labels={count}, axis=0)",
            "actual = np.moveaxis(found, -1, 0)",
            f"actual[np.bincount({ids}, minlength={count}) == 0] = {fill}",
        ]
