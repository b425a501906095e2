"""Contracts of the walk over segments, of broadcasting and of the fold, by Frama-C/WP.

Frama-C reads no C++: each file of proofs/contracts restates functions of the core in C, and says which. The proofs are
about that text; restated.cpp holds it against the core's own, on every small input.
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from claims import ROOT, Claim, included, run
from prover_tools import call, missing, version_of, why3_config

FOLDER = "proofs/contracts"
TOOLS = ("frama-c", "why3", "cvc4", "z3")
# For a prover, of a goal; and for Frama-C, of a file. Far above what they take (1.4 and 90), so that a busy machine
# proves what an idle one does; only a goal that is not proved waits for them.
SECONDS = 120
LONGEST = 1200
# CVC4 first: it proves all goals but one in less than two seconds, where Z3 takes its whole time for some.
OPTIONS = (
    "-wp", "-wp-rte", "-warn-signed-downcast", "-warn-unsigned-overflow", "-wp-prover", "cvc4,z3", "-wp-par", "1",
    "-wp-cache", "none",
)  # fmt: skip
ASSUMES = (
    "Frama-C/WP, its typed memory model (objects of different types lie apart, and constants apart from arrays), and "
    "the provers",
    "the functions are restated in C by hand, on int32 keys and int64 ids, and simplified as each file says; what "
    "holds them to the C++ is contracts.restated",
    "one thread; nobody else writes to the arrays",
)


@dataclass(frozen=True)
class File:
    """A file of contracts: what it says, the core's files that it restates, and what it takes for granted besides."""

    name: str
    says: str
    restates: tuple[str, ...]
    assumes: tuple[str, ...] = ()


# The one that takes longest first.
FILES = (
    File(
        "segments",
        "SegmentMax of a column by the scalar walk, in blocks of any sizes: whatever the ids, nothing outside of the "
        "arrays is touched; ids that are wrong are found; of right ones each output is the maximum of its rows, or the "
        "fill value",
        ("kernels.h", "kernels/segment.h", "kernels/segment_ids.h", "kernels/segment_walk.h", "order.h", "segment.cpp"),
        ("there are at most 2^62 rows; num_segments is below 2^63 - 1", "not: wider rows, vectors, runs, threads"),
    ),
    File(
        "broadcast",
        "broadcasting: common sizes by NumPy's and by SONNX's rule, strides, and offsets that never leave an array",
        ("api.cpp", "iterate.cpp", "iterate.h"),
        ("an array's elements lie within 2^62 bytes of the first", "sizes are at most 2^62"),
    ),
    File(
        "fold",
        "Max of any number of inputs, eight at a time: each output is the maximum of its inputs, and is written once",
        ("fold.cpp", "kernels/elementwise.h"),
        ("there are at most 2^62 elements, and 2^31 - 1 inputs", "not: buffers, rows, tiles, streams, vectors"),
    ),
    File(
        "run_end",
        "where a run of equal ids ends, galloping or not: within the ids, whatever they are; right, if they are sorted",
        ("kernels/segment_ids.h",),
        ("there are at most 2^62 ids",),
    ),
)
HEADERS = {"segments": ("run_end.h",), "run_end": ("run_end.h",)}

RESTATED = "proofs/restated.cpp"
# The functions that are not called from here are left out, and with them what they would be linked with.
COMPILED = ("-std=c++17", "-O1", "-w", "-DMAXOPS_MINIATURE", "-ffunction-sections", "-Wl,--gc-sections")
BOUNDS = (
    "the miniature's parameters. Runs: 15 ids of two, 7 of three. Single functions: 3 segments, each state of a walk. "
    "Columns: 7 rows of 2 segments, 6 of 3, ids below and past them, each size of block, through all paths of "
    "segment_rows; of unsorted ids that nobody checks, short_segments and goes_on_after alone. Shapes: three of rank 2 "
    "and sizes up to 3, two with rank 3. Strides: rank 3, sizes to 3, from -2 to 2. Fold: 20 inputs of 9 elements"
)


def packages() -> set[str]:
    """The Debian packages that are not installed."""
    return missing(*TOOLS)


def claims() -> list[Claim]:
    """One of each file, and one that the files are what the core does."""
    tool = ", ".join(version_of(name) for name in TOOLS)
    with why3_config() as config, ThreadPoolExecutor(2) as pool:
        return [*pool.map(lambda file: _claim(file, tool, config), FILES), _restated()]


def _claim(file: File, tool: str, config: Path) -> Claim:
    began = time.perf_counter()
    path = f"{FOLDER}/{file.name}.c"
    goals, unproved = prove(ROOT / path, config)
    own = (path, *(f"{FOLDER}/{name}" for name in HEADERS.get(file.name, ())))
    return Claim(
        f"contracts.{file.name}",
        f"restated in C: {file.says}",
        "proof",
        tool,
        (*own, *(f"native/{name}" for name in file.restates)),
        goals,
        unproved,
        time.perf_counter() - began,
        {"assumes": [*ASSUMES, *file.assumes], "functions": functions(path)},
    )


def prove(path: Path, config: Path, *, seconds: int = SECONDS, function: str = "") -> tuple[int, tuple[str, ...]]:
    """How many goals a file has, or one of its functions, and the names of those that no prover proves."""
    only = ("-wp-fct", function) if function else ()
    command = ["frama-c", *OPTIONS, "-wp-timeout", str(seconds), *only, str(path)]
    try:
        output = call(command, why3_config=config, timeout=LONGEST)
    except subprocess.TimeoutExpired:
        # Why3's server was seen to lose a prover, for which Frama-C then waits forever.
        print(f"{path.name}: Frama-C did not end within {LONGEST} s, and is run once more", flush=True)
        output = call(command, why3_config=config, timeout=LONGEST)
    counts = re.search(r"Proved goals: +(\d+) / (\d+)", output)
    if counts is None:
        raise RuntimeError(f"{path.name}: Frama-C counts no goals:\n{output[-4000:]}")
    # Such as that a function has no contract: then goals would be missing.
    if strange := re.findall(r"Warning:\s+(?!\s|Memory model hypotheses)(.*)", output):
        raise RuntimeError(f"{path.name}: {strange}")
    proved, goals = map(int, counts.groups())
    named = re.findall(r"\[wp\] (?:\[[^]]+\] )?Goal typed_(\S+)(?: : (\w+))?", output)
    unproved = tuple(sorted({name for name, verdict in named if verdict != "Valid"}))
    if goals - proved != len(unproved):
        raise RuntimeError(
            f"{path.name}: {goals - proved} goals are unproved, {len(unproved)} named:\n{output[-4000:]}"
        )
    return goals, unproved


def functions(path: str) -> list[str]:
    """The functions of a file of contracts that it has the text of."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.findall(r"^(?:static )?(?:bool|size_t|int64_t|Key|void) (\w+)\([^;]*?\) \{", text, re.MULTILINE)


def _restated() -> Claim:
    began = time.perf_counter()
    states, wrong = compare(ROOT)
    return Claim(
        "contracts.restated",
        "the C of the contracts does what the C++ of the core does, function by function, on every small input",
        "exhaustive",
        run(["g++", "--version"]).stdout.splitlines()[0],
        included(RESTATED),
        1,
        wrong,
        time.perf_counter() - began,
        {"states": states, "bounds": BOUNDS, "isa": "baseline"},
    )


def compare(root: Path) -> tuple[int, tuple[str, ...]]:
    """How many calls of a tree's core were compared with its contracts', and what differed."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/restated"
        run(["g++", *COMPILED, str(root / RESTATED), "-o", program])
        done = run([program], check=False)
    # One that crashes ends without its line.
    found = json.loads(done.stdout or '{"states":0,"wrong":1}')
    failed = found["wrong"] or done.returncode
    failed = failed or not found["states"]
    return found["states"], (f"{found['wrong']} wrong: {done.stderr[:400]}",) if failed else ()
