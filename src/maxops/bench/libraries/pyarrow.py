"""pyarrow: compute functions on 1-D arrays, and a grouped table for segments."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library, flat
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

    def _array(self, work: Work, array: Array) -> Any:
        if work.case.dtype.name == "bfloat16":
            raise UnsupportedError("has no bfloat16")
        return self.module.array(array)

    def maximum(self, work: Work) -> list[Candidate]:
        """max_element_wise; it has no `out=`."""
        flat(work)
        arrays = tuple(self._array(work, array) for array in work.inputs.arrays)
        return [Candidate("max_element_wise", self.compute.max_element_wise, arrays, to_numpy=_numpy)]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """max of a whole column."""
        flat(work)
        array = self._array(work, work.data)
        return [Candidate("max", self.compute.max, (array,), to_numpy=lambda scalar: scalar.as_py())]

    def segment_max(self, work: Work) -> list[Candidate]:
        """group_by, which does not know that ids are sorted."""
        flat(work)
        table = self.module.table({"id": self.module.array(work.ids), "x": self._array(work, work.data)})

        def group() -> Any:
            return table.group_by("id").aggregate([("x", "max")])

        def to_numpy(groups: Any) -> Array:
            return scattered(work, groups["id"].to_numpy(), groups["x_max"].to_numpy())

        return [Candidate("group_by", group, to_numpy=to_numpy)]


def _numpy(array: Any) -> Array:
    return np.asarray(array.to_numpy(zero_copy_only=False))


LIBRARY = PyArrow
