"""numpy_groupies: aggregate, for segments."""

from __future__ import annotations

from maxops import dtypes
from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library


class NumpyGroupies(Library):
    """It groups, and nothing else; it does not know that ids are sorted."""

    name = "numpy_groupies"
    opening = ("import numpy_groupies",)
    missing_types = frozenset({dtypes.REAL})

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """Aggregate."""
        axis = ", axis=0" if len(call.inputs[0].dims if call.inputs[0] else ()) > 1 else ""
        return [
            f'actual = numpy_groupies.aggregate({ids}, {data}, func="max", size={count}, fill_value={fill}{axis})',
        ]
