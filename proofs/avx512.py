"""Short segments by AVX-512, whose kernel is written in intrinsics: its own text, on vectors whose lanes are terms.

Three programs share the models of the intrinsics (avx512_terms.h). segments_avx512.cpp: which lanes' maximum is stored
where, for small ids and any keys. lanes_avx512.cpp: what a lane is, for every value, by Z3. avx512_models.cpp: each
model against the processor, and against the emulated intrinsics. Only the last takes a processor with AVX-512, for the
first of the two.
"""

from __future__ import annotations

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from claims import Claim, Method, included, run
from solver import claim_of_types
from walks import missing

SEGMENTS = (
    "short segments by AVX-512: each output is the maximum of its segment's keys, whatever these are, by the header "
    "that ships; no other row is written, and the walk goes on where it ended"
)
SEGMENTS_BOUNDS = (
    "of each type, with the ordinary constants: parts of a vector and whole ones with some of the next, from no "
    "segment and from one that goes on, empty ones filled before or not; all ids that rise by up to 2 in up to 5 "
    "rows, all places where segments end in 8 rows, gaps of up to 90 at two places, ids out of order and outside. Of "
    "int32 and float64, with ids of either width, also all ids that rise by up to 2 in 7 rows and all places where "
    "segments end in a whole vector of int32; in one of float64 all ids that rise by up to 2. The key that is "
    "carried in, and the fill value, are one value each. Not: ids that change meanwhile"
)
LANES = "each type: its lane in AVX-512's short segments is its key, and is stored as its key's value, for every value"
MODELS = "each model of an intrinsic of AVX-512 gives, lane by lane, what the intrinsic gives"
MODELS_BOUNDS = (
    "300 rounds of drawn vectors, often of small or equal lanes and of lowest and highest ones; keys of numbers and "
    "terms in Z3's words: all values of 8 and 16 bits, others drawn"
)
ASSUMES = "avx512.models.*; order, of keys; a maximum of lanes may be taken in any order, and more than once"
# How a model's check is compiled, and the instruction set that it takes.
CHECKS = {
    "avx512.models.processor": (("-march=skylake-avx512",), "x86-64-v4"),
    "avx512.models.emulated": (("-mavx2", "-Wno-psabi"), "x86-64-v3"),
}
COMPILE = ("g++", "-std=c++17", "-O1", "-w")


def claims() -> list[Claim]:
    """One of all walks, one of the lanes, and what is here to hold the models against."""
    checks = [partial(_models, name) for name in CHECKS if name not in absent()]
    with ThreadPoolExecutor(2) as pool:
        return [claim for found in pool.map(lambda show: show(), (segments, lanes, *checks)) for claim in found]


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {name: needed for name, (_, isa) in CHECKS.items() if (needed := missing(isa))}


def segments() -> list[Claim]:
    """Of all walks."""
    flags = ("-fsanitize=address", "-fno-sanitize-recover=all")
    return [_counted("avx512.segments", SEGMENTS, "exhaustive", "proofs/segments_avx512.cpp", flags, SEGMENTS_BOUNDS)]


def _models(name: str) -> list[Claim]:
    return [_counted(name, MODELS, "test", "proofs/avx512_models.cpp", CHECKS[name][0], MODELS_BOUNDS)]


def _counted(name: str, says: str, method: Method, source: str, flags: tuple[str, ...], bounds: str) -> Claim:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        run([*COMPILE, *flags, source, "-o", f"{folder}/program"])
        done = run([f"{folder}/program"], check=False)
    # where an address is wrong the program ends without its line
    found = json.loads(done.stdout or '{"states":0,"wrong":1}')
    wrong = (f"{found['wrong']} wrong: {done.stderr[:400]}",) if found["wrong"] or done.returncode else ()
    figures = {"states": found["states"], "bounds": bounds, "assumes": ASSUMES}
    tool, seconds = run(["g++", "--version"]).stdout.splitlines()[0], time.perf_counter() - began
    return Claim(name, says, method, tool, included(source), 1, wrong, seconds, figures)


def lanes() -> list[Claim]:
    """Of the lanes of all types."""
    return [claim_of_types("proofs/lanes_avx512.cpp", "avx512.lanes", LANES, {"assumes": ASSUMES})]
