"""bottleneck: nanmax over all or one axis."""

from __future__ import annotations

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library


class Bottleneck(Library):
    """It skips NaN by design, and runs on one thread."""

    name = "bottleneck"

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Nanmax."""
        if work.axes is not None and len(work.axes) > 1:
            raise UnsupportedError("reduces one axis or all")
        options = {} if work.axes is None else {"axis": work.axes[0]}
        return [Candidate("nanmax", self.module.nanmax, (work.data,), options)]


LIBRARY = Bottleneck
