"""polars: horizontal maximum, a column's maximum, and grouping by a column known to be sorted."""

from __future__ import annotations

from typing import Any

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library, columns
from maxops.bench.libraries.pyarrow import scattered
from maxops.plan import Array


class Polars(Library):
    """Its threads come from POLARS_MAX_THREADS, set before it is imported."""

    name = "polars"

    def maximum(self, work: Work) -> list[Candidate]:
        """max_horizontal; it has no `out=`."""
        columns(work)
        frame = self.module.DataFrame({str(number): array for number, array in enumerate(work.inputs.arrays)})
        expression = self.module.max_horizontal(self.module.all())
        return [
            Candidate(
                "max_horizontal", frame.select, (expression,), to_numpy=lambda found: found.to_series().to_numpy()
            )
        ]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """A column's maximum."""
        columns(work)
        return [Candidate("Series.max", self.module.Series("x", work.data).max)]

    def segment_max(self, work: Work) -> list[Candidate]:
        """group_by, of a column that says it is sorted."""
        columns(work)
        polars = self.module
        frame = polars.DataFrame([polars.Series("id", work.ids).set_sorted(), polars.Series("x", work.data)])
        highest = polars.col("x").max()

        def group() -> Any:
            return frame.group_by("id").agg(highest)

        def to_numpy(groups: Any) -> Array:
            return scattered(work, groups["id"].to_numpy(), groups["x"].to_numpy())

        return [Candidate("group_by", group, to_numpy=to_numpy)]


LIBRARY = Polars
