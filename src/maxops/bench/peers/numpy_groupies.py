"""numpy_groupies: aggregate, compiled by Numba or on NumPy."""

from __future__ import annotations

from maxops.bench.peers.peer import Peer
from maxops.bench.way import Way, Work


class NumpyGroupies(Peer):
    """It does not know that ids are sorted."""

    name = "numpy_groupies"

    def segment_max(self, work: Work) -> list[Way]:
        """Both of its fast implementations."""
        options = {"func": "max", "size": work.num_segments, "axis": 0, "fill_value": work.lowest}
        if work.data.ndim == 1:
            del options["axis"]
        ways = []
        for name in ("aggregate_nb", "aggregate_np"):
            function = getattr(self.module, name, None)
            if function is not None:
                ways.append(Way(name, function, (work.ids, work.data), options))
        return ways


PEER = NumpyGroupies
