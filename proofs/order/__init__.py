"""Claims about the order of values, which Z3 proves for all values, and which are tested on this processor."""

from __future__ import annotations

import json
from functools import partial
from tempfile import TemporaryDirectory

from claims import ISA_FLAGS, Check, Claim, Program, compiler, included, isa_here, proved, run

KEYS = (
    "for all values of every type, the order of keys and the maximum of two or more elements follow the specification"
)
INSTRUCTIONS = Program(
    "order/instructions.cpp",
    "comparison instructions for floats behave as the proofs of the order assume, and keys have the same order in the "
    "wider lanes that the kernels for short segments use",
    "comparisons: all pairs of float32 and float64 values near each power of two and of each class (such as NaN), and "
    "20 million random pairs; lanes: all values of 8 and 16 bits, and, of 32 and 64 bits, 2 million random values and "
    "the values near each power of two",
    method="test",
    optimised="-O2",
    sanitized=False,
)


def pairs() -> Claim:
    """Compute the maximum of each pair of 16-bit floats, and return the claim."""
    source = "proofs/order/pairs.cpp"
    with TemporaryDirectory() as folder:
        run(["g++", "-std=c++17", "-O3", "-march=native", source, "-o", f"{folder}/pairs"])
        wrong = json.loads(run([f"{folder}/pairs"], check=False).stdout)
    still_open = tuple(f"{name}: {count} pairs are wrong" for name, count in wrong.items() if count)
    return Claim(
        "order.pairs", "on this processor, kernels compute the correct maximum of every pair of 16-bit floats",
        "exhaustive", compiler(), included(source), len(wrong), still_open, 2**32 * len(wrong),
        "all 2^32 pairs of float16 and of bfloat16", isa=isa_here(),
    )  # fmt: skip


CHECKS = (
    Check("order.keys", partial(proved, "order/order.cpp", "order.keys", KEYS)),
    Check("order.pairs", pairs),
    *(INSTRUCTIONS.check(f"order.instructions.{isa}", flags, isa) for isa, flags in ISA_FLAGS.items()),
)
