"""What a run of the kit found, as the JSON that it writes: the one form that every report is made from.

runtime, version            of whom
kit                         {"maxops", "cases": how many were asked, "quick", "only"}
machine                     what it ran on
seconds                     how long
cases                       {case id: verdict}, every case that was asked
findings                    a list, an object for each case that neither conforms nor is not applicable
reproducers                 a list; findings name theirs by its number
reasons                     {case id: why}, of the cases that are not applicable
notes                       what was seen of the runtime's processes and belongs to no case
"""

from __future__ import annotations

from typing import Any, Literal, TypedDict, final

import numpy as np

from maxops import dtypes
from maxops.plan import Array

SCHEMA = 1

Verdict = Literal[
    "conforms",
    "violates",  # another answer than the clause's
    "refuses",  # an error, where there is an answer
    "accepts",  # an answer, where there is to be an error
    "crashes",
    "hangs",
    "leaks",  # memory that nobody wrote is in the answer
    "poisoned",  # after its error, right calls go wrong
    "permitted",  # another answer, where the standard leaves it open
    "not applicable",
]
# In the order in which reports list them; the first is what all are held to.
VERDICTS: tuple[Verdict, ...] = (
    "conforms",
    "violates",
    "refuses",
    "accepts",
    "crashes",
    "hangs",
    "leaks",
    "poisoned",
    "permitted",
    "not applicable",
)
# What a runtime that is right has none of.
FAULTS: tuple[Verdict, ...] = VERDICTS[1:8]


@final
class Elements(TypedDict):
    """An array, in numbers and in bits (hexadecimal, of the type's width), in row-major order."""

    type: str
    shape: list[int]
    values: list[str]
    bits: list[str]


@final
class Told(TypedDict):
    """What came or was wanted that is no array: an error's words, how a process ended, or which clause refuses."""

    text: str


class Finding(TypedDict):
    """A case that does not conform, with the first element (or the whole, if it is small) in which it does not.

    `clause` is the one that is broken, which need not be the one that the case is of; `says` quotes it. `place` is the
    first element that differs, in the result of the feed with the number `feed`.
    """

    case: str
    standard: str
    operator: str
    version: int | None
    type: str
    clause: str
    says: str
    verdict: Verdict
    why: str
    wanted: Elements | Told
    got: Elements | Told
    feed: int
    place: list[int] | None
    reproducer: int | None


class Reproducer(TypedDict):
    """The smallest call that still shows a finding, and a script that shows it with the runtime alone.

    `shown` is what the script printed when it was run, and `checked` whether that is what the kit saw. `inputs`,
    `script` and `shown` are empty where a run is abridged, as in maxops's own ledger: there a smaller call shows it.
    """

    inputs: dict[str, Elements]
    attributes: dict[str, Any]
    wanted: Elements | Told
    got: Elements | Told
    script: str
    checked: bool
    shown: str


class Run(TypedDict):
    """A run of the kit against one runtime: the JSON's top."""

    schema: int
    runtime: str
    version: str
    kit: dict[str, Any]
    machine: dict[str, Any]
    seconds: float
    cases: dict[str, Verdict]
    reasons: dict[str, str]
    notes: list[str]
    findings: list[Finding]
    reproducers: list[Reproducer]


def elements(array: Array) -> Elements:
    """An array for the JSON.

    >>> elements(np.float32([-0.0]))
    {'type': 'float32', 'shape': [1], 'values': ['-0.0'], 'bits': ['80000000']}
    """
    dtype = dtypes.of(array.dtype)
    flat = [array[place] for place in np.ndindex(array.shape)]
    if dtype is None or dtype is dtypes.REAL:
        return {"type": str(array.dtype), "shape": list(array.shape), "values": list(map(str, flat)), "bits": []}
    words = array.astype(array.dtype.newbyteorder("="), order="C", copy=True).reshape(-1).view(dtype.word)
    digits = dtype.bits // 4
    return {
        "type": str(dtype),
        "shape": list(array.shape),
        "values": list(map(str, flat)),
        "bits": [f"{int(word):0{digits}X}" for word in words],
    }
