"""scipy: ndimage.maximum, by labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library, flat


class SciPy(Library):
    """It gives 0 for a label that is nowhere, which is put right in the timed part where a case has such."""

    name = "scipy"
    module_name = "scipy.ndimage"

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Over all."""
        flat(work)
        return [Candidate("ndimage.maximum", self.module.maximum, (work.data,))]

    def segment_max(self, work: Work) -> list[Candidate]:
        """By labels."""
        flat(work)
        names = np.arange(work.num_segments)
        has_empty = work.num_segments > len(np.unique(work.ids))

        def by_labels() -> Any:
            found = self.module.maximum(work.data, work.ids, names)
            if has_empty:
                found[np.bincount(work.ids, minlength=work.num_segments) == 0] = work.lowest
            return found

        return [Candidate("ndimage.maximum", by_labels)]


LIBRARY = SciPy
