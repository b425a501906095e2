"""The order, for every value: order.cpp's goals, by Z3."""

from __future__ import annotations

import json
import tempfile
import time
from collections import defaultdict
from importlib.metadata import version

from claims import Claim, include_flags, included, isa_here, link_flags, run

SOURCE = "proofs/order.cpp"
SAYS = "keys, maxima of two and of any number of elements are the sentence of the specification, for every value"


def claims() -> list[Claim]:
    """By proof for each type, and for each pair of the 16-bit floats."""
    return [*_proofs(), *_pairs()]


def _proofs() -> list[Claim]:
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/order"
        run(["g++", "-std=c++17", "-O1", *include_flags(), SOURCE, "-o", program, *link_flags()])
        done = run([program], check=False)
        if done.returncode not in (0, 1):  # 1: a goal stands open
            raise RuntimeError(f"order.cpp ended with {done.returncode}: {done.stderr}")
        found = [json.loads(line) for line in done.stdout.splitlines()]
    by_type = defaultdict(list)
    for goal in found:
        by_type[goal["goal"].partition(":")[0].partition(",")[0]].append(goal)
    tool, sources = f"Z3 {version('z3-solver')}", included(SOURCE)
    return [
        Claim(
            f"order.{name}", f"{name}: {SAYS}", "proof", tool, sources, len(goals),
            tuple(goal["goal"] for goal in goals if goal["verdict"] != "proved"),
            sum(goal["seconds"] for goal in goals),
        )
        for name, goals in by_type.items()
    ]  # fmt: skip


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
