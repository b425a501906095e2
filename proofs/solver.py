"""Claims of programs that prove their goals by Z3 (solver.h), and print each as a line of JSON."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from importlib.metadata import version
from typing import Any

from claims import Claim, include_flags, included, link_flags, run


def claims_by_type(source: str, prefix: str, says: str, figures: dict[str, Any] | None = None) -> list[Claim]:
    """Compile and run it; a claim for each type that goals begin with, as in "float32: ..." and "float32, ...: ..."."""
    with tempfile.TemporaryDirectory() as folder:
        program = f"{folder}/program"
        run(["g++", "-std=c++17", "-O1", "-w", *include_flags(), source, "-o", program, *link_flags()])
        done = run([program], check=False)
    if done.returncode not in (0, 1):  # 1: a goal stands open
        raise RuntimeError(f"{source} ended with {done.returncode}: {done.stderr}")
    by_type = defaultdict(list)
    for goal in map(json.loads, done.stdout.splitlines()):
        by_type[goal["goal"].partition(":")[0].partition(",")[0]].append(goal)
    tool, sources = f"Z3 {version('z3-solver')}", included(source)
    return [
        Claim(
            f"{prefix}.{name}", f"{name}: {says}", "proof", tool, sources, len(goals),
            tuple(goal["goal"] for goal in goals if goal["verdict"] != "proved"),
            sum(goal["seconds"] for goal in goals), figures or {},
        )
        for name, goals in by_type.items()
    ]  # fmt: skip
