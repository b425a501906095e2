"""pyarrow: compute functions on 1-D arrays, and a grouped table for segments."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.libraries.library import Library, columns
from maxops.plan import Array


def scattered(work: Work, ids: Array, highest: Array) -> Array:
    """Groups, in any order, as the operator gives them."""
    result = np.full(work.case.shape, work.lowest, work.case.dtype.numpy)
    result[ids] = highest
    return result


class PyArrow(Library):
    """Arrow's compute functions."""

    name = "pyarrow"

    def set_threads(self, threads: int) -> None:
        """Of its pool for computing."""
        self.module.set_cpu_count(threads)
        self.compute: Any = import_module("pyarrow.compute")

    def maximum(self, work: Work) -> list[Candidate]:
        """max_element_wise; it has no `out=`."""
        columns(work)
        arrays = tuple(map(self.module.array, work.inputs.arrays))
        return [Candidate("max_element_wise", self.compute.max_element_wise, arrays, to_numpy=_numpy)]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """max of a whole column."""
        columns(work)
        return [
            Candidate("max", self.compute.max, (self.module.array(work.data),), to_numpy=lambda scalar: scalar.as_py())
        ]

    def segment_max(self, work: Work) -> list[Candidate]:
        """group_by, which does not know that ids are sorted."""
        columns(work)
        table = self.module.table({"id": self.module.array(work.ids), "x": self.module.array(work.data)})

        def group() -> Any:
            return table.group_by("id").aggregate([("x", "max")])

        def to_numpy(groups: Any) -> Array:
            return scattered(work, groups["id"].to_numpy(), groups["x_max"].to_numpy())

        return [Candidate("group_by", group, to_numpy=to_numpy)]


def _numpy(array: Any) -> Array:
    return np.asarray(array.to_numpy(zero_copy_only=False))


LIBRARY = PyArrow
