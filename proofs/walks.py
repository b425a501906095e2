"""Which elements each output of a kernel is the maximum of: walks.cpp, on each instruction set that this machine has.

A kernel moves lanes and takes their maximum; of lanes that are sets of colours, for which nothing else compiles, the
output tells which elements it is the maximum of. With `order`, which shows that a maximum may be taken in any order
and more than once, that is the result for every value.
"""

from __future__ import annotations

import json
import platform
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from claims import Claim, included, run

SOURCE = "proofs/walks.cpp"
SAYS = "each output of the kernels is the maximum of the elements that it is defined by, and no byte beside is touched"
BOUNDS = (
    "Max: 1 to 8 inputs of up to 3 vectors, at every alignment, in place; ReduceMax: up to 20 vectors and 19 rows; "
    "SegmentMax: all sorted ids up to 6 rows of 4 segments, runs around every parameter, in one or two blocks; "
    "in any order: all ids up to 4 rows"
)
# What is told to the compiler for each; the miniature crosses every boundary on small inputs, the ordinary constants
# are what ships.
BUILDS = {
    "baseline": ("-DMAXOPS_MINIATURE",),
    "x86-64-v2": ("-DMAXOPS_MINIATURE", "-msse4.2", "-mpopcnt"),
    "x86-64-v3": ("-DMAXOPS_MINIATURE", "-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v3, ordinary constants": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-DMAXOPS_MINIATURE", "-march=skylake-avx512"),
}
NEEDS = {"x86-64-v3": "avx2", "x86-64-v3, ordinary constants": "avx2", "x86-64-v4": "avx512bw"}
# Its kernel of short segments is written by hand, and so for no other lanes than its own: what shows that one are the
# exhaustive tests of the miniature (tests/exhaustive), on the types that there are.
LEFT_OUT = {"x86-64-v4": "SegmentMax of ids in order"}


def claims() -> list[Claim]:
    """One for each build that runs here."""
    chosen = [name for name in BUILDS if not _missing(name)]
    tool = run(["g++", "--version"]).stdout.splitlines()[0]
    sources = included(SOURCE)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda name: _claim(name, Path(folder), tool, sources), chosen))


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {_id(name): missing for name in BUILDS if (missing := _missing(name))}


def _missing(name: str) -> str:
    if platform.machine() != "x86_64":
        return "" if name == "baseline" else "x86-64"
    needed = NEEDS.get(name, "")
    return "" if needed in {"", *Path("/proc/cpuinfo").read_text(encoding="utf-8").split()} else needed


def _id(name: str) -> str:
    return f"walks.{name.replace(', ', '-').replace(' ', '-')}"


def _claim(name: str, folder: Path, tool: str, sources: tuple[str, ...]) -> Claim:
    began = time.perf_counter()
    program = str(folder / _id(name))
    sanitized = ("-fsanitize=address", "-fno-sanitize-recover=all")
    run(["g++", "-std=c++17", "-O1", "-w", *sanitized, *BUILDS[name], SOURCE, "-o", program])
    done = run([program], check=False)
    # where an address is wrong the program ends without its line
    found = json.loads(done.stdout or '{"states":0,"wrong":1}')
    wrong = (f"{found['wrong']} wrong: {done.stderr[:400]}",) if found["wrong"] or done.returncode else ()
    seconds = time.perf_counter() - began
    return Claim(
        _id(name), f"{name}: {SAYS}", "exhaustive", tool, sources, 1, wrong, seconds,
        {"states": found["states"], "bounds": BOUNDS, "isa": name.partition(",")[0], "without": LEFT_OUT.get(name, "")},
    )  # fmt: skip
