"""Calls that the kit makes on a runtime, with their arrays and the results that each standard requires.

A `Call` is one operator in one model. A `Trial` runs a call on one or more sets of input arrays, called feeds. A `Case`
is a trial together with the clause of the spec table that judges it. A trial that several standards judge has several
cases.
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
    """An input: its name, dtype and shape (None for a dynamic size), and its value if it is a constant."""

    name: str
    dtype: DType
    dims: tuple[int | None, ...]
    constant: Array | None = None


@dataclass(frozen=True)
class Call:
    """One operator and the inputs of its model. An omitted input is None.

    `row` is the row of the spec table for which the model is built. Models for SONNX, which profiles ONNX, use the ONNX
    row. `output` is the output type of a call without a first input. A runtime must refuse such a call, but its model
    still declares a type. `within` names the model constructs around the operator, outermost first.
    """

    row: Spec
    inputs: tuple[Input | None, ...]
    attributes: tuple[tuple[str, Any], ...] = ()
    rank: int | None = None  # the rank of the output, if known
    output: DType | None = None
    within: tuple[Construct, ...] = ()

    @property
    def dtype(self) -> DType:
        """The type of the output: that of the first input, or `output` if the first input is omitted."""
        first = self.inputs[0] if self.inputs else None
        dtype = self.output if first is None else first.dtype
        assert dtype is not None
        return dtype

    @property
    def fed(self) -> tuple[Input, ...]:
        """The inputs that a feed supplies: non-constant operator inputs, then those of the surrounding constructs."""
        own = tuple(each for each in self.inputs if each is not None and each.constant is None)
        return (*own, *self.controls)

    @property
    def controls(self) -> tuple[Input, ...]:
        """The inputs of the surrounding constructs: the condition and the number of iterations."""
        flag = (Input("flag", BOOL, ()),) if {"If", "Loop"} & {*self.within} else ()
        return (*flag, *((Input("trips", INT64, ()),) if "Loop" in self.within else ()))

    @property
    def elements(self) -> int:
        """The number of elements of the largest input with a static shape."""
        stated = (each.dims for each in self.inputs if each is not None)
        return max((prod(size or 0 for size in dims) for dims in stated), default=0)

    @property
    def constants(self) -> dict[str, Array]:
        """The values of the constant inputs, by name."""
        return {each.name: each.constant for each in self.inputs if each is not None and each.constant is not None}

    def whole(self, feed: Feed) -> list[Array | None]:
        """Return all inputs of the operator: the arrays of a feed, the constants, and None for omitted inputs."""
        arrays = iter(feed)
        return [
            None if each is None else each.constant if each.constant is not None else next(arrays)
            for each in self.inputs
        ]


@dataclass(frozen=True)
class Trial:
    """A call, its feeds, and the expected result for each feed. `expected` is None if the call is invalid.

    `without_nan` contains, for each expected result, the maximum that ignores NaN (NaN if all elements are NaN). A
    runtime may return this maximum if a standard does not specify NaN. `without_nan` may be empty if no input contains
    a NaN. `layout` is the memory layout of the arrays, for runtimes that accept arrays instead of files.
    """

    call: Call
    feeds: tuple[Feed, ...]
    expected: tuple[Array, ...] | None
    without_nan: tuple[Array, ...] = ()
    layout: Layout = "contiguous"

    @property
    def is_refusal(self) -> bool:
        """True if the call is invalid, so that the runtime must refuse it."""
        return self.expected is None


@dataclass(frozen=True)
class Case:
    """A trial, the row of the spec table and the clause that judge it, and a sentence that describes it.

    `shared` is the id of the first case with the same trial, or "" for that case. Cases that share a trial are
    adjacent. Trials are built on demand, because they are numerous and large.
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
        """A stable name of the clause, the type and the sentence, such as "ONNX.Max-13.T/int64/two-short-vectors"."""
        words = re.sub(r"[^0-9A-Za-z.+=-]+", "-", self.sentence).strip("-")
        return f"{self.clause.id}/{self.dtype}/{words}"

    @property
    def trial_id(self) -> str:
        """The name of the trial. Cases with the same name share a trial."""
        return self.shared or self.id
