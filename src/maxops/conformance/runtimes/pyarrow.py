"""pyarrow: compute functions on columns, and a grouped table for segments."""

from __future__ import annotations

from maxops.conformance.case import Call
from maxops.conformance.runtimes.columns import Columns, scattered


class PyArrow(Columns):
    """Arrow's compute functions, which skip nulls; a NaN is none to it."""

    name = "pyarrow"
    opening = ("import pyarrow as pa, pyarrow.compute as pc",)

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """max_element_wise."""
        arrays = ", ".join(f"pa.array({name})" for name in names)
        return [f"actual = pc.max_element_wise({arrays}).to_numpy(zero_copy_only=False)"]

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """max, a scalar."""
        shape = "(1,)" if keepdims else "()"
        return [f"actual = pa.array([pc.max(pa.array({data}))]).to_numpy(zero_copy_only=False).reshape({shape})"]

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """A table, grouped by the ids."""
        return [
            f'table = pa.table({{"ids": {ids}, "data": {data}}})',
            'groups = table.group_by("ids").aggregate([("data", "max")])',
            *scattered(call, count, fill, 'groups["ids"].to_numpy()', 'groups["data_max"].to_numpy()'),
        ]
