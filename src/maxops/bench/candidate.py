"""A candidate: a function and its arguments, which are timed, and the conversion of its result to NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxops.bench.case import Case
from maxops.bench.inputs import Inputs
from maxops.plan import Array


class UnsupportedError(Exception):
    """What a library does not support, with a reason for the table."""


@dataclass(frozen=True)
class Work:
    """A case with its inputs, as a library gets it."""

    case: Case
    inputs: Inputs
    threads: int

    @property
    def data(self) -> Array:
        """The first input."""
        return self.inputs.arrays[0]

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The axes that are reduced; None for all."""
        return None if len(self.case.axes) == self.data.ndim else self.case.axes

    @property
    def ids(self) -> Array:
        """The segment ids."""
        assert self.inputs.ids is not None
        return self.inputs.ids

    @property
    def num_segments(self) -> int:
        """How many segments the result has."""
        assert self.case.segments is not None
        return self.case.segments.count

    @property
    def lowest(self) -> Any:
        """What empty segments hold, as a NumPy scalar."""
        dtype = self.case.dtype
        return np.array(dtype.lowest_finite_bits, dtype.word).view(dtype.numpy)[()]


@dataclass(frozen=True)
class Candidate:
    """`function(*args, **kwargs)` is timed; `to_numpy` of what it returns is not.

    `other_input` names what the function is given that is not the operator's own input: then it is shown, and not
    compared with, since it does less.
    """

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    to_numpy: Callable[[Any], Any] = np.asarray
    other_input: str = ""

    def result(self, case: Case) -> Array:
        """Run it once: the result as an array of the case's type, if it has one of as many elements."""
        array = np.asarray(self.to_numpy(self.function(*self.args, **self.kwargs)))
        if array.ndim == 0 and array.dtype != case.dtype.numpy:
            array = array.astype(case.dtype.numpy)  # a Python scalar, which held the value exactly
        # copied, since the next run may write over it
        return array.reshape(case.shape).copy() if array.size == np.prod(case.shape, dtype=int) else array.copy()
