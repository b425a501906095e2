"""What the proofs take for granted of the processor, held against it: instructions.cpp, on its instruction sets."""

from __future__ import annotations

import json
import tempfile
import time

from claims import Claim, included, run
from walks import missing

SOURCE = "proofs/instructions.cpp"
SAYS = (
    "comparisons of floats are as the proofs of the order take them, and keys in the wider lanes of short segments are "
    "in the order of keys"
)
BUILDS = {
    "baseline": (),
    "x86-64-v3": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-march=skylake-avx512",),
}
BOUNDS = (
    "comparisons: all pairs of values around every power of two and every kind of value, and 20 million drawn ones, "
    "of float32 and float64; lanes: every value of 8 and 16 bits, 2 million drawn ones and those around every power of "
    "two of 32 and 64 bits"
)


def claims() -> list[Claim]:
    """One for each instruction set that is here."""
    tool, sources = run(["g++", "--version"]).stdout.splitlines()[0], included(SOURCE)
    found = []
    for name, flags in BUILDS.items():
        if missing(name):
            continue
        began = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            program = f"{folder}/instructions"
            run(["g++", "-std=c++17", "-O2", "-w", *flags, SOURCE, "-o", program])
            done = run([program], check=False)
        counted = json.loads(done.stdout or '{"states":0,"wrong":1}')
        wrong = (f"{counted['wrong']} are not so",) if counted["wrong"] or done.returncode else ()
        figures = {"states": counted["states"], "bounds": BOUNDS, "isa": name}
        seconds = time.perf_counter() - began
        found.append(
            Claim(f"instructions.{name}", f"{name}: {SAYS}", "test", tool, sources, 1, wrong, seconds, figures)
        )
    return found


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {f"instructions.{name}": needed for name in BUILDS if (needed := missing(name))}
