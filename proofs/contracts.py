"""Contracts of the walk over segments, of broadcasting and of the fold, by Frama-C/WP.

Frama-C reads no C++: each file of proofs/contracts restates functions of the core in C, and says which; what they are
restated from are sources of the claim, so that it has to be looked at again when they change.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from pathlib import Path

from claims import ROOT, Claim
from prover_tools import call, require, version_of, why3_config

SECONDS = 10
# Of a file: Why3's server was seen to lose a prover, and Frama-C then waits forever.
LONGEST = 300
OPTIONS = (
    "-wp", "-wp-rte", "-warn-signed-downcast", "-warn-unsigned-overflow", "-wp-prover", "z3,cvc4", "-wp-par", "1",
    "-wp-cache", "none",
)  # fmt: skip
ASSUMES = (
    "WP's typed memory model: objects of different types lie apart",
    "the functions are restated in C by hand, and simplified as each file says",
    "one thread; nobody else writes to the arrays",
)


@dataclass(frozen=True)
class File:
    """A file of contracts: what it says, the core's files that it restates, and what it takes for granted besides."""

    name: str
    says: str
    restates: tuple[str, ...]
    assumes: tuple[str, ...] = ()


FILES = (
    File(
        "segments",
        "SegmentMax of a column, in blocks of any sizes: whatever the ids, nothing outside of the arrays is touched; ids "
        "that are wrong are found; of right ones each output is the maximum of its rows, or the fill value",
        ("kernels.h", "kernels/segment.h", "kernels/segment_ids.h", "kernels/segment_walk.h", "order.h", "segment.cpp"),
        ("run_end keeps its contract (run_end.c proves it)", "num_segments is below 2^63 - 1"),
    ),
    File(
        "run_end",
        "where a run of equal ids ends, galloping or not: within the ids, whatever they are; right, if they are sorted",
        ("kernels/segment_ids.h",),
        ("there are at most 2^62 ids",),
    ),
    File(
        "broadcast",
        "broadcasting: common sizes by NumPy's and by SONNX's rule, strides, and places that never leave an array",
        ("api.cpp", "iterate.cpp", "iterate.h"),
        ("an array's elements lie within 2^62 bytes of the first", "sizes are below 2^62"),
    ),
    File(
        "fold",
        "Max of any number of inputs, eight at a time: each output is the maximum of its inputs, and is written once",
        ("fold.cpp", "kernels/elementwise.h"),
        ("there are at most 2^62 elements",),
    ),
)


def claims() -> list[Claim]:
    """One of each file."""
    require("frama-c")
    tool = ", ".join(version_of(name) for name in ("frama-c", "why3", "z3", "cvc4"))
    with why3_config() as config:
        return [_claim(file, tool, config) for file in FILES]


def _claim(file: File, tool: str, config: Path) -> Claim:
    began = time.perf_counter()
    path = f"proofs/contracts/{file.name}.c"
    goals, proved, unproved = prove(path, config)
    return Claim(
        f"contracts.{file.name}",
        file.says,
        "proof",
        tool,
        (path, *(f"native/{name}" for name in file.restates)),
        goals,
        unproved,
        time.perf_counter() - began,
        {"assumes": [*ASSUMES, *file.assumes], "functions": _functions(path), "proved": proved},
    )


def prove(path: str, config: Path, *, seconds: int = SECONDS, function: str = "") -> tuple[int, int, tuple[str, ...]]:
    """How many goals a file has, or one of its functions, how many are proved, and the names of the others."""
    only = ["-wp-fct", function] if function else []
    command = ["frama-c", *OPTIONS, "-wp-timeout", str(seconds), *only, path]
    said = call(command, why3_config=config, timeout=LONGEST)
    counts = re.search(r"Proved goals: +(\d+) / (\d+)", said)
    if counts is None:
        raise RuntimeError(f"{path}: Frama-C counts no goals:\n{said[-4000:]}")
    proved, goals = map(int, counts.groups())
    named = re.findall(r"\[wp\] (?:\[[^]]+\] )?Goal typed_(\S+)(?: : (\w+))?", said)
    unproved = tuple(sorted({name for name, verdict in named if verdict != "Valid"}))
    if goals - proved != len(unproved):
        raise RuntimeError(f"{path}: {goals - proved} goals are not proved, but {len(unproved)} named:\n{said[-4000:]}")
    return goals, proved, unproved


def _functions(path: str) -> list[str]:
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r"^(?:static )?(?:bool|size_t|int64_t|Key|void) (\w+)\(", text, re.MULTILINE)
