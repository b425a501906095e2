"""The order, for every value: order.cpp's goals, by Z3."""

from __future__ import annotations

import json
import tempfile
import time

from claims import Claim, included, isa_here, run
from solver import claim_of_types

SAYS = (
    "keys, and the maximum of two and of any number of elements, follow the specification for every value of every type"
)


def claims() -> list[Claim]:
    """A proof for all types, and an exhaustive run over the pairs of the 16-bit floats."""
    return [claim_of_types("proofs/order.cpp", "order.keys", SAYS), _pairs()]


def _pairs() -> Claim:
    source = "proofs/pairs.cpp"
    with tempfile.TemporaryDirectory() as folder:
        run(["g++", "-std=c++17", "-O3", "-march=native", source, "-o", f"{folder}/pairs"])
        began = time.perf_counter()
        wrong = json.loads(run([f"{folder}/pairs"], check=False).stdout)
    seconds = time.perf_counter() - began
    return Claim(
        "order.pairs", "the maximum of two, on this processor's vectors, for all 2^32 pairs of each 16-bit float",
        "exhaustive", run(["g++", "--version"]).stdout.splitlines()[0], included(source), len(wrong),
        tuple(f"{name}: {count} pairs are wrong" for name, count in wrong.items() if count), seconds,
        {"states": 2**32 * len(wrong), "isa": isa_here()},
    )  # fmt: skip
