"""Libraries of columns: arrays of one axis and of one length, whose maximum of nothing is a null."""

from __future__ import annotations

from maxops import dtypes
from maxops.conformance.case import Call, Feed
from maxops.conformance.runtimes.library import Library
from maxops.conformance.runtimes.runtime import NotApplicableError, Prepared


class Columns(Library):
    """A subclass has the lines."""

    missing_types = frozenset({dtypes.REAL, dtypes.BFLOAT16})

    def prepare(self, call: Call) -> Prepared:
        """Refuse, of each feed, what is no column."""
        prepared = super().prepare(call)

        def run(feed: Feed) -> object:
            arrays = [array for array in call.whole(feed) if array is not None]
            data = arrays[: {"ReduceMax": 1, "SegmentMax": 2}.get(call.row.operator)]
            if any(array.ndim != 1 for array in data) or len({array.shape for array in data}) > 1:
                raise NotApplicableError(f"{self.name} has 1-D columns of one length only")
            if call.row.operator == "ReduceMax" and data[0].size == 0:
                raise NotApplicableError(f"{self.name} has a null, not a value, for the maximum of nothing")
            return prepared(feed)

        return run


def scattered(call: Call, count: str, fill: str, ids: str, highest: str) -> list[str]:
    """Lines that put groups, which come in any order, where the operator has them."""
    return [f"actual = np.full({count}, {fill}, np.{call.dtype})", f"actual[{ids}] = {highest}"]
