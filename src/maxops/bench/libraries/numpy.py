"""numpy: ufuncs, their reductions, and reduceat for segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library
from maxops.plan import Array


def _chain(arrays: tuple[Array, ...], out: Array | None) -> Array:
    """Three inputs and more: pair by pair into one output."""
    result = np.maximum(arrays[0], arrays[1], out=out)
    for array in arrays[2:]:
        np.maximum(result, array, out=result)
    return np.asarray(result)


def _by_starts(data: Array, ids: Array, num_segments: int, lowest: Any) -> Array:
    """Starts from ids, reduceat between them, and empty segments filled."""
    starts = np.flatnonzero(ids[1:] != ids[:-1])
    starts += 1
    starts = np.concatenate(([0], starts))
    highest = np.maximum.reduceat(data, starts, axis=0)
    if len(starts) == num_segments:
        return np.asarray(highest)
    result = np.full((num_segments, *data.shape[1:]), lowest, data.dtype)
    result[ids[starts]] = highest
    return result


class NumPy(Library):
    """The arrays' own package."""

    name = "numpy"

    def maximum(self, work: Work) -> list[Candidate]:
        """np.maximum, with `out=` where the case has one."""
        arrays, out = work.inputs.arrays, work.inputs.out
        if len(arrays) > 2:
            return [Candidate("maximum, chained", _chain, (arrays, out))]
        inputs = (arrays[0], arrays[1].item()) if work.case.spelling == "python-scalar" else arrays
        return [Candidate("maximum", np.maximum, inputs, {} if out is None else {"out": out})]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """The method, which is quicker to call than the function."""
        axis = work.axes
        candidates = [
            Candidate("maximum.reduce", np.maximum.reduce, (work.data, axis)),
            Candidate("max", work.data.max, (axis,)),
        ]
        if len(work.case.axes) == 1 and axis is not None:
            candidates.append(Candidate("max, int axis", work.data.max, axis))
        return candidates

    def segment_max(self, work: Work) -> list[Candidate]:
        """reduceat, from ids; and with starts known, which is less work."""
        arguments = (work.data, work.ids, work.num_segments, work.lowest)
        candidates = [Candidate("maximum.reduceat", _by_starts, arguments)]
        starts = np.flatnonzero(np.diff(work.ids, prepend=-1))
        if len(starts) == work.num_segments:
            candidates.append(
                Candidate(
                    "maximum.reduceat, starts given",
                    np.maximum.reduceat,
                    (work.data, starts),
                    {"axis": 0},
                    other_input="starts instead of ids",
                )
            )
        return candidates


LIBRARY = NumPy
