"""bottleneck: nanmax over all or one axis."""

from __future__ import annotations

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library


class Bottleneck(Library):
    """It skips NaN by design, and runs on one thread."""

    name = "bottleneck"

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Nanmax."""
        axes = work.case.axes
        if len(axes) == work.data.ndim:
            return [Candidate("nanmax", self.module.nanmax, (work.data,))]
        if len(axes) > 1:
            raise UnsupportedError("reduces one axis or all")
        return [Candidate("nanmax", self.module.nanmax, (work.data,), {"axis": axes[0]})]


LIBRARY = Bottleneck
