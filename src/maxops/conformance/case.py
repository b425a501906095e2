"""The question of the kit to a runtime: a call, its arrays, and the expectation of each standard.

A `Call` is one operator in one model; a `Trial` runs it on one or more sets of arrays, its feeds; a `Case` is a trial
as one clause of one row of the spec table sees it. Several cases share a trial where several standards have a say.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from maxops.dtypes import BOOL, INT64, DType
from maxops.plan import Array
from maxops.spec import Clause, Spec

Feed = tuple[Array, ...]
Construct = Literal["If", "Loop", "function"]
Layout = Literal[
    "contiguous",
    "read-only",
    "every other element",
    "reversed",
    "Fortran order",
    "padded rows",
    "zero strides",
    "unaligned",
]


@dataclass(frozen=True)
class Input:
    """An input of the operator: its type, its sizes (None: open), and its value if that is part of the model."""

    name: str
    dtype: DType
    dims: tuple[int | None, ...]
    constant: Array | None = None


@dataclass(frozen=True)
class Call:
    """One operator and how its model feeds it. An input that is None is left out.

    `row` is the row whose model this is: for SONNX, which profiles ONNX, it is the ONNX row. `output` is the output's
    type where no first input shows it: such a call must be refused, but a model of it still names one. `within` names
    the constructs of a model around the operator, the outermost first.
    """

    row: Spec
    inputs: tuple[Input | None, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    rank: int | None = None  # of the output, where it is known
    output: DType | None = None
    within: tuple[Construct, ...] = ()

    @property
    def dtype(self) -> DType:
        """The type of the output: that of the first input."""
        first = self.inputs[0] if self.inputs else None
        dtype = self.output if first is None else first.dtype
        assert dtype is not None
        return dtype

    @property
    def fed(self) -> tuple[Input, ...]:
        """The inputs that a feed has arrays for, in order: the operator's, then those of the constructs around it."""
        own = tuple(each for each in self.inputs if each is not None and each.constant is None)
        return (*own, *self.controls)

    @property
    def controls(self) -> tuple[Input, ...]:
        """The inputs of the constructs around the operator: the condition, and the number of iterations."""
        flag = (Input("flag", BOOL, ()),) if {"If", "Loop"} & {*self.within} else ()
        return (*flag, *((Input("trips", INT64, ()),) if "Loop" in self.within else ()))

    @property
    def elements(self) -> int:
        """The number of elements of the largest input with sizes in the model."""
        stated = (each.dims for each in self.inputs if each is not None)
        return max((prod(size or 0 for size in dims) for dims in stated), default=0)

    @property
    def constants(self) -> dict[str, Array]:
        """The inputs whose values are part of the model."""
        return {each.name: each.constant for each in self.inputs if each is not None and each.constant is not None}

    def whole(self, feed: Feed) -> list[Array | None]:
        """All inputs of the operator: the arrays of a feed, the constants, and None for omitted inputs."""
        arrays = iter(feed)
        return [
            None if each is None else each.constant if each.constant is not None else next(arrays)
            for each in self.inputs
        ]


@dataclass(frozen=True)
class Trial:
    """A call, its feeds, and the results by the reference, one a feed; none if the call must be refused.

    `without_nan` has, for each expected result, the maximum that ignores NaN (NaN where all elements are NaN): the
    other reading, where a standard says nothing of NaN. It is empty where no feed holds a NaN. `layout` is that of the
    arrays in memory, where the runtime takes arrays and not files.
    """

    call: Call
    feeds: tuple[Feed, ...]
    expected: tuple[Array, ...] | None
    without_nan: tuple[Array, ...] = ()
    layout: Layout = "contiguous"

    @property
    def is_refusal(self) -> bool:
        """Whether the call must be refused."""
        return self.expected is None


@dataclass(frozen=True)
class Case:
    """The expectation of one clause of one row for a trial, in a sentence.

    `shared` names the trial where several rows have the same; cases that share one stand together. Trials are made
    when they are asked for: there are many, and they are large.
    """

    row: Spec
    clause: Clause
    dtype: DType
    sentence: str
    make: Callable[[], Trial]
    refusal: bool = False
    quick: bool = False
    shared: str = ""

    @property
    def id(self) -> str:
        """A name that stays, to be read as a sentence: "ONNX.Max-13.value/int64/in-every-lane-of-lengths-1-to-8"."""
        words = re.sub(r"[^0-9A-Za-z.+=-]+", "-", self.sentence).strip("-")
        return f"{self.clause.id}/{self.dtype}/{words}"

    @property
    def trial_id(self) -> str:
        """Cases with one name for it have one trial."""
        return self.shared or self.id
