"""polars: horizontal maximum, a column's maximum, and grouping for segments."""

from __future__ import annotations

from maxops.conformance.case import Call
from maxops.conformance.runtimes.columns import Columns, scattered


class Polars(Columns):
    """Its columns."""

    name = "polars"
    opening = ("import polars as pl",)

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """max_horizontal."""
        frame = ", ".join(f"{name!r}: {name}" for name in names)
        return [f"actual = pl.DataFrame({{{frame}}}).select(pl.max_horizontal(pl.all())).to_series().to_numpy()"]

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """max of a column, in a frame, where it keeps its type."""
        shape = "(1,)" if keepdims else "()"
        return [f'actual = pl.DataFrame({{"data": {data}}}).max().to_series().to_numpy().reshape({shape})']

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """Groups by ids."""
        return [
            f'frame = pl.DataFrame({{"ids": {ids}, "data": {data}}})',
            'groups = frame.group_by("ids").agg(pl.col("data").max())',
            *scattered(call, count, fill, 'groups["ids"].to_numpy()', 'groups["data"].to_numpy()'),
        ]
