"""bottleneck: nanmax over all or one axis."""

from __future__ import annotations

from maxops.bench.peers.peer import Peer
from maxops.bench.way import RefusedError, Way, Work


class Bottleneck(Peer):
    """It skips NaN by design, and runs on one thread."""

    name = "bottleneck"

    def reduce_max(self, work: Work) -> list[Way]:
        """Nanmax."""
        axes = work.case.axes
        if len(axes) == work.data.ndim:
            return [Way("nanmax", self.module.nanmax, (work.data,))]
        if len(axes) > 1:
            raise RefusedError("reduces one axis or all")
        return [Way("nanmax", self.module.nanmax, (work.data,), {"axis": axes[0]})]


PEER = Bottleneck
