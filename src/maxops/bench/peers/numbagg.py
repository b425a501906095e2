"""numbagg: nanmax and group_nanmax, compiled by Numba."""

from __future__ import annotations

from maxops.bench.peers.peer import Peer
from maxops.bench.way import Way, Work


class Numbagg(Peer):
    """It skips NaN by design; its threads come from NUMBA_NUM_THREADS."""

    name = "numbagg"

    def reduce_max(self, work: Work) -> list[Way]:
        """Nanmax."""
        axes = None if len(work.case.axes) == work.data.ndim else work.case.axes
        return [Way("nanmax", self.module.nanmax, (work.data,), {} if axes is None else {"axis": axes})]

    def segment_max(self, work: Work) -> list[Way]:
        """group_nanmax, along the first axis; it moves the groups last."""
        options = {"num_labels": work.num_segments, "axis": 0}
        return [
            Way(
                "group_nanmax",
                self.module.group_nanmax,
                (work.data, work.ids),
                options,
                to_numpy=lambda found: found.reshape(-1, work.num_segments).T.reshape(work.case.shape),
            )
        ]


PEER = Numbagg
