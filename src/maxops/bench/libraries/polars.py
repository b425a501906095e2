"""polars: horizontal maximum, a column's maximum, and grouping by a column known to be sorted."""

from __future__ import annotations

from typing import Any

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library, flat
from maxops.bench.libraries.pyarrow import scattered
from maxops.plan import Array


class Polars(Library):
    """Its threads come from POLARS_MAX_THREADS, set before it is imported."""

    name = "polars"

    def _series(self, work: Work, name: str, array: Array) -> Any:
        if work.case.dtype.name == "bfloat16":
            raise UnsupportedError("has no bfloat16")
        return self.module.Series(name, array)

    def maximum(self, work: Work) -> list[Candidate]:
        """max_horizontal; it has no `out=`."""
        flat(work)
        columns = [self._series(work, str(number), array) for number, array in enumerate(work.inputs.arrays)]
        frame = self.module.DataFrame(columns)
        expression = self.module.max_horizontal(self.module.all())
        return [
            Candidate(
                "max_horizontal", frame.select, (expression,), to_numpy=lambda found: found.to_series().to_numpy()
            )
        ]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """A column's maximum."""
        flat(work)
        return [Candidate("Series.max", self._series(work, "x", work.data).max)]

    def segment_max(self, work: Work) -> list[Candidate]:
        """group_by, of a column that says it is sorted."""
        flat(work)
        polars = self.module
        frame = polars.DataFrame([polars.Series("id", work.ids).set_sorted(), self._series(work, "x", work.data)])
        highest = polars.col("x").max()

        def group() -> Any:
            return frame.group_by("id").agg(highest)

        def to_numpy(groups: Any) -> Array:
            return scattered(work, groups["id"].to_numpy(), groups["x"].to_numpy())

        return [Candidate("group_by", group, to_numpy=to_numpy)]


LIBRARY = Polars
