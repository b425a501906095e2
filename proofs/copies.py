"""Where copies put each element, and which index argmax finds: copies.cpp, on the instruction sets that are here."""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from claims import Claim, included, run
from walks import missing

SOURCE = "proofs/copies.cpp"
SAYS = (
    "copies between any layout and blocks, and transposes, put each element at its place, its bytes in order or "
    "swapped, and touch nothing beside it; each index is that of the first element that holds its result"
)
BOUNDS = (
    "items of 1, 2, 4 and 8 bytes; copies of up to 3 vectors by ten strides, and rows of up to 20 elements; "
    "transposes of up to 3 blocks and 2 rows or columns either way; streams of up to 3 lines and 5 bytes, from each "
    "place in a line; indices: every set of elements that hold their results in up to 12, sets of up to two of them "
    "in more, every ids of up to 4 rows of 2 segments"
)
ASSUMES = "a kernel that compiles for elements that can be compared with a result alone asks nothing else of them"
# The miniature cuts copies into chunks too small for a vector, and searches into blocks that small rows cross.
BUILDS = {
    "miniature": ("-DMAXOPS_MINIATURE",),
    "baseline": (),
    "x86-64-v3": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-march=skylake-avx512",),
}


def claims(only: str = "") -> list[Claim]:
    """One for each build that runs here, or for one."""
    tool, sources = run(["g++", "--version"]).stdout.splitlines()[0], included(SOURCE)
    chosen = [name for name in BUILDS if only in ("", name) and not missing(_isa(name))]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda name: _claim(name, tool, sources), chosen))


def _claim(name: str, tool: str, sources: tuple[str, ...]) -> Claim:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/copies"
        sanitized = ("-fsanitize=address", "-fno-sanitize-recover=all")
        run(["g++", "-std=c++17", "-O1", "-w", *sanitized, *BUILDS[name], SOURCE, "-o", program])
        done = run([program], check=False)
    # where an address is wrong the program ends without its line
    counted = json.loads(done.stdout or '{"states":0,"wrong":1}')
    wrong = (f"{counted['wrong']} wrong: {done.stderr[:400]}",) if counted["wrong"] or done.returncode else ()
    figures = {"states": counted["states"], "bounds": BOUNDS, "assumes": ASSUMES, "isa": _isa(name)}
    seconds = time.perf_counter() - began
    return Claim(f"copies.{name}", f"{name}: {SAYS}", "exhaustive", tool, sources, 1, wrong, seconds, figures)


def _isa(name: str) -> str:
    return "baseline" if name == "miniature" else name


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {f"copies.{name}": needed for name in BUILDS if (needed := missing(_isa(name)))}
