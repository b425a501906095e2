"""numbagg: nanmax and group_nanmax, compiled by Numba."""

from __future__ import annotations

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library


class Numbagg(Library):
    """It skips NaN by design; its threads come from NUMBA_NUM_THREADS."""

    name = "numbagg"

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Nanmax."""
        options = {} if work.axes is None else {"axis": work.axes}
        return [Candidate("nanmax", self.module.nanmax, (work.data,), options)]

    def segment_max(self, work: Work) -> list[Candidate]:
        """group_nanmax, along the first axis; it moves the groups last."""
        options = {"num_labels": work.num_segments, "axis": 0}
        return [
            Candidate(
                "group_nanmax",
                self.module.group_nanmax,
                (work.data, work.ids),
                options,
                to_numpy=lambda found: found.reshape(-1, work.num_segments).T.reshape(work.case.shape),
            )
        ]


LIBRARY = Numbagg
