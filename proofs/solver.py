"""Claims of programs that prove their goals by Z3 (solver.h), and print each as a line of JSON."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from importlib.metadata import version
from typing import Any

from claims import Claim, include_flags, included, link_flags, run


def claim_of_types(source: str, name: str, says: str, figures: dict[str, Any] | None = None) -> Claim:
    """Compile and run a program whose goals begin with a type, as in "float32: ..." and "float32, ...: ..."."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        run(["g++", "-std=c++17", "-O1", "-w", *include_flags(), source, "-o", program, *link_flags()])
        done = run([program], check=False)
    if done.returncode not in (0, 1):  # 1: a goal stands open
        raise RuntimeError(f"{source} ended with {done.returncode}: {done.stderr}")
    goals = [json.loads(line) for line in done.stdout.splitlines()]
    types = Counter(goal["goal"].partition(":")[0].partition(",")[0] for goal in goals)
    return Claim(
        name, says, "proof", f"Z3 {version('z3-solver')}", included(source), len(goals),
        tuple(goal["goal"] for goal in goals if goal["verdict"] != "proved"), sum(goal["seconds"] for goal in goals),
        {"goals of each type": dict(types), **(figures or {})},
    )  # fmt: skip
