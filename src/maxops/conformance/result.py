"""The JSON schema of a run of the kit. Every report is generated from this JSON."""

from __future__ import annotations

from typing import Any, Literal, TypedDict, final, get_args

import numpy as np

from maxops import dtypes
from maxops.plan import Array

SCHEMA = 2

# In the order in which reports list them.
Verdict = Literal[
    "conforms",
    "violates",  # a result other than the one that the clause specifies
    "refuses",  # an error for a valid call
    "missing error",  # a result for an invalid call
    "crashes",
    "hangs",
    "uninitialized memory",  # runs differ and a result is wrong, because of uninitialized memory or a race
    "corrupted state",  # after this call, valid calls fail or return different results
    "permitted",  # a different result that the standard permits
    "not the same twice",  # runs on the same inputs differ, and the standard allows each result
    "not applicable",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
# Verdicts that a conforming runtime never gets.
FAULTS: tuple[Verdict, ...] = VERDICTS[1:8]
# Verdicts on results that a standard permits: findings, but not faults.
OPEN: tuple[Verdict, ...] = ("permitted", "not the same twice")
# Verdicts without a finding.
NO_FINDING: tuple[Verdict, ...] = ("conforms", "not applicable")


@final
class Elements(TypedDict):
    """An array as numbers and as bits (hexadecimal, with the type's width), in row-major order."""

    type: str
    shape: list[int]
    values: list[str]
    bits: list[str]


@final
class Message(TypedDict):
    """An expected or actual result that is not an array: an error's text, or how a process ended."""

    text: str


class Finding(TypedDict):
    """A case that does not conform, with the first element that differs (or the whole result, if it is small).

    `clause` is the broken or open clause, which may differ from the clause of the case. `index` is the index of the
    first element that differs, in the result of the feed with the number `feed`.
    """

    case: str
    clause: str
    verdict: Verdict
    message: str
    expected: Elements | Message
    actual: Elements | Message
    feed: int
    index: list[int] | None
    reproducer: int | None


class Reproducer(TypedDict):
    """The smallest call that still shows a finding, and a script that shows it with only the runtime.

    `output` is the script's output, and `reproduced` indicates whether it matches the observation. `inputs`, `script`
    and `output` are empty in an abridged run, as in maxops's own ledger, if a smaller call shows this kind of finding.
    """

    inputs: dict[str, Elements | Message]
    attributes: dict[str, Any]
    expected: Elements | Message
    actual: Elements | Message
    script: str
    reproduced: bool
    output: str


class Run(TypedDict):
    """A run of the kit against one runtime: the top level of the JSON."""

    schema: int
    runtime: str
    version: str  # the version of the runtime
    kit: dict[str, Any]  # "maxops", "cases" (the number of cases), "quick", "only", "repeats" and "bounds"
    machine: dict[str, Any]
    seconds: float  # wall-clock time
    cases: dict[str, Verdict]  # the cases of the run, by id
    clauses: dict[str, str]  # the statements of the clauses of findings, by id
    reasons: dict[str, str]  # why cases are not applicable, by id
    notes: list[str]  # observations of the runtime's processes that belong to no case
    findings: list[Finding]  # one for each case that is applicable and does not conform
    reproducers: list[Reproducer]  # findings name their reproducer by its index


def elements(array: Array) -> Elements:
    """Return an array for the JSON.

    >>> elements(np.float32([-0.0]))
    {'type': 'float32', 'shape': [1], 'values': ['-0.0'], 'bits': ['80000000']}
    """
    dtype = dtypes.of(array.dtype)
    has_bits = dtype is not None and dtype is not dtypes.REAL
    return {
        "type": str(dtype if has_bits else array.dtype),
        "shape": list(array.shape),
        "values": [str(array[index]) for index in np.ndindex(array.shape)],
        "bits": [f"{int(word):0{2 * array.itemsize}X}" for word in words(array)] if has_bits else [],
    }


def words(array: Array) -> Array:
    """Return the elements' bits, in row-major order and in this machine's byte order."""
    dtype = dtypes.of(array.dtype)
    assert dtype is not None
    return array.astype(dtype.numpy, order="C", copy=True).reshape(-1).view(dtype.word)
