"""numpy_groupies: aggregate, compiled by Numba or on NumPy."""

from __future__ import annotations

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library


class NumpyGroupies(Library):
    """It does not know that ids are sorted."""

    name = "numpy_groupies"

    def segment_max(self, work: Work) -> list[Candidate]:
        """Both of its fast implementations."""
        options = {"func": "max", "size": work.num_segments, "axis": 0, "fill_value": work.lowest}
        if work.data.ndim == 1:
            del options["axis"]
        candidates = []
        for name in ("aggregate_nb", "aggregate_np"):
            function = getattr(self.module, name, None)
            if function is not None:
                candidates.append(Candidate(name, function, (work.ids, work.data), options))
        return candidates


LIBRARY = NumpyGroupies
