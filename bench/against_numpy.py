"""How much faster than NumPy, for each operator, type and size: contiguous arrays, one process, interleaved.

    python bench/against_numpy.py [--operators maximum ...] [--types float32 ...] [--sizes 1 1000 ...]

Each figure is NumPy's time divided by ours, the median over pairs of runs that follow one another (A B A B ...), so
that a busy machine slows both; above 1 we are faster. In brackets, the lowest and highest quartile of the pairs.
Results are first compared bit for bit, on data for which NumPy's answer is the standards' (no NaN, no zeros of
either sign, no empty segments).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import maxops as mo
from maxops import _native, dtypes

Array = np.ndarray[Any, np.dtype[Any]]
Call = Callable[[], Array]

SIZES = (1, 1_000, 100_000, 10_000_000)
TYPES = tuple(dtype.name for dtype in dtypes.ALL if dtype is not dtypes.REAL)
SEGMENT_LENGTH = 10


def calls(size: int, name: str) -> Iterator[tuple[str, Call, Call]]:
    """Each operator as (name, NumPy's way, ours) on the same data."""
    dtype = next(row for row in dtypes.ALL if row.name == name).numpy
    random = np.random.default_rng(size)
    a, b = (random.integers(1, 2 if name == "bool" else 100, size).astype(dtype) for _ in range(2))
    out = np.empty_like(a)
    yield "maximum", lambda: np.maximum(a, b), lambda: mo.maximum(a, b)
    yield "maximum, out=", lambda: np.maximum(a, b, out=out), lambda: mo.maximum(a, b, out=out)
    yield "reduce_max", lambda: np.asarray(np.max(a)), lambda: mo.reduce_max(a, keepdims=False)
    ids = np.arange(size) // SEGMENT_LENGTH
    starts = np.arange(0, size, SEGMENT_LENGTH)
    yield (
        f"segment_max, {SEGMENT_LENGTH} each",
        lambda: np.maximum.reduceat(a, starts),  # which takes sorted starts, and trusts them
        lambda: mo.segment_max(a, ids, fill_mode="ZERO"),
    )


def ratios(theirs: Call, ours: Call, seconds: float) -> list[float]:
    """Their time over ours, for pairs of runs one after the other."""

    def timed(call: Call, times: int) -> float:
        start = time.perf_counter()
        for _ in range(times):
            call()
        return time.perf_counter() - start

    once = max(timed(theirs, 1), timed(ours, 1))
    times = max(1, int(0.002 / once))
    pairs: list[float] = []
    end = time.perf_counter() + seconds
    while len(pairs) < 5 or time.perf_counter() < end:
        pairs.append(timed(theirs, times) / timed(ours, times))
    return pairs


def main() -> None:
    """Print one table an operator."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operators", nargs="+", help="the start of each one's name; default: all")
    parser.add_argument("--types", nargs="+", choices=TYPES, default=TYPES)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each figure")
    options = parser.parse_args()

    console = Console()
    console.print(f"numpy {np.__version__}, {_native.isa()}, {mo.get_num_threads()} threads; above 1: maxops is faster")
    tables: dict[str, Table] = {}
    for name in options.types:
        cells: dict[str, list[str]] = {}
        for size in options.sizes:
            for operator, theirs, ours in calls(size, name):
                if options.operators and not operator.startswith(tuple(options.operators)):
                    continue
                if theirs().tobytes() != ours().tobytes():
                    raise SystemExit(f"{operator} of {name}, {size} elements: the results differ")
                found = sorted(ratios(theirs, ours, options.seconds))
                low, high = found[len(found) // 4], found[3 * len(found) // 4]
                cells.setdefault(operator, []).append(f"{statistics.median(found):.2f} ({low:.2f}-{high:.2f})")
        for operator, row in cells.items():
            if operator not in tables:
                tables[operator] = Table("type", *(f"{size:,}" for size in options.sizes), title=operator)
            tables[operator].add_row(name, *row)
    for table in tables.values():
        console.print(table)


if __name__ == "__main__":
    main()
