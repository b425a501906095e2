"""The order, for every value: order.cpp's goals, by Z3."""

from __future__ import annotations

import json
import tempfile
import time

from claims import Claim, included, isa_here, run
from solver import claims_by_type

SAYS = "keys, maxima of two and of any number of elements are the sentence of the specification, for every value"


def claims() -> list[Claim]:
    """By proof for each type, and for each pair of the 16-bit floats."""
    return [*claims_by_type("proofs/order.cpp", "order", SAYS), *_pairs()]


def _pairs() -> list[Claim]:
    source = "proofs/pairs.cpp"
    with tempfile.TemporaryDirectory() as folder:
        run(["g++", "-std=c++17", "-O3", "-march=native", source, "-o", f"{folder}/pairs"])
        began = time.perf_counter()
        wrong = json.loads(run([f"{folder}/pairs"], check=False).stdout)
    seconds = (time.perf_counter() - began) / len(wrong)
    says = "the maximum of two, on this processor's vectors, for all 2^32 pairs"
    return [
        Claim(
            f"order.{name}.pairs", f"{name}: {says}", "exhaustive", run(["g++", "--version"]).stdout.splitlines()[0],
            included(source), 1, (f"{count} pairs are wrong",) if count else (), seconds,
            {"pairs": 2**32, "isa": isa_here()},
        )
        for name, count in wrong.items()
    ]  # fmt: skip
