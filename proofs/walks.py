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
SAYS = (
    "each output of the kernels of Max and ReduceMax, and of SegmentMax but for its indices, is the maximum of the "
    "elements that it is defined by, and of the line before and the line behind it nothing is written"
)
BOUNDS = (
    "Max: 1, 2, 3, 4 and 8 inputs of up to 3 vectors, and of where the miniature peels, at six places in a line, in "
    "place too; ReduceMax: up to 20 vectors and 19 rows; SegmentMax: all sorted ids up to 6 rows of 4 segments, runs "
    "around the lengths that switch a path, in one or two blocks; in any order: all ids up to 4 rows. Not: boundaries "
    "of ordinary constants past those; an early end at the highest value, which order shows"
)
ASSUMES = (
    "a walk that compiles for lanes without arithmetic does not depend on what they hold; keys in wider lanes, of "
    "which instructions speaks, and avx512 of those of AVX-512's short segments"
)
# What is told to the compiler for each; the miniature crosses every boundary on small inputs, the ordinary constants
# are what ships.
BUILDS = {
    "baseline": ("-DMAXOPS_MINIATURE",),
    "x86-64-v3": ("-DMAXOPS_MINIATURE", "-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v3, ordinary constants": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-DMAXOPS_MINIATURE", "-march=skylake-avx512"),
}
NEEDS = {"x86-64-v3": "avx2", "x86-64-v3, ordinary constants": "avx2", "x86-64-v4": "avx512bw"}


def claims(only: str = "") -> list[Claim]:
    """One for each build that runs here, or for one."""
    chosen = [name for name in BUILDS if only in ("", name) and not missing(name)]
    tool = run(["g++", "--version"]).stdout.splitlines()[0]
    sources = included(SOURCE)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda name: _claim(name, Path(folder), tool, sources), chosen))


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {_id(name): needed for name in BUILDS if (needed := missing(name))}


def missing(name: str) -> str:
    """What this processor lacks for a build; nothing if it runs here."""
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
    figures = {"states": found["states"], "bounds": BOUNDS, "assumes": ASSUMES, "isa": name.partition(",")[0]}
    return Claim(_id(name), f"{name}: {SAYS}", "exhaustive", tool, sources, 1, wrong, seconds, figures)
