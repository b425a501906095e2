"""Compares segment_max of a Dask array with flox: time, memory, and bytes communicated between tasks.

    python examples/segments_beside_flox.py [--rows 4000000] [--width 8] [--blocks 64] [--segments 400000]
        [--any-order] [--gaps 1] [--persist] [--ids-in-memory] [--rounds 3]

The ids are sorted or, with --any-order, unsorted. With --gaps 4, only every fourth segment has rows. The ids have the
same chunks as the data. flox runs with each method and engine that supports the calculation, and the last line compares
maxops with the fastest of them. Each round runs all of them in turn, so other load on the machine affects all equally.
The data is generated during the measurement, which adds only to the time, or beforehand with --persist.
"""

from __future__ import annotations

import argparse
import threading
import time
import tracemalloc
import warnings
import weakref
from collections.abc import Callable
from functools import partial
from itertools import product
from statistics import median
from typing import Any

import dask
import dask.array as da
import flox
import numpy as np
import pandas as pd
from dask.callbacks import Callback

import maxops as mo
from maxops.engines.dask.parts import Part


def block_of_ids(*, each: float, gaps: int, any_order: bool, block_info: Any = None) -> Any:
    """Return the ids of the rows in a block: multiples of `gaps`, each of which occurs `each` times on average."""
    begin, end = block_info[None]["array-location"][0]
    whole = block_info[None]["shape"][0]
    rows = np.random.default_rng(begin).integers(0, whole, end - begin) if any_order else np.arange(begin, end)
    return (rows / (each * gaps)).astype(np.int64) * gaps


def bytes_of(result: Any) -> int:
    """Return the number of bytes in all arrays of a task's result, including arrays in containers."""
    if isinstance(result, np.ndarray):
        return result.nbytes
    if isinstance(result, Part):
        return sum(map(bytes_of, (result.ids, result.values, result.indices)))
    if isinstance(result, dict):
        return sum(map(bytes_of, result.values()))
    return sum(map(bytes_of, result)) if isinstance(result, (list, tuple)) else 0


def weighed(lazy: Any, sources: set[str]) -> tuple[float, int, int]:
    """Compute a Dask collection. Return the time in seconds, the peak memory in bytes, and the communicated bytes.

    Results of the `sources` and of the final tasks do not count as communicated.
    """
    total, lock = 0, threading.Lock()
    seen: dict[int, weakref.ref[Any]] = {}
    results = {str(key) for key in dask.core.flatten(lazy.__dask_keys__())}

    def weigh(key: Any, result: Any, *_: Any) -> None:
        nonlocal total
        name = key[0] if isinstance(key, tuple) else key
        if name not in sources and str(key) not in results:
            with lock:
                # Count an object only once if a task returns it unchanged.
                known = seen.get(id(result))
                if known is None or known() is not result:
                    total += bytes_of(result)
                    if isinstance(result, (np.ndarray, Part)):
                        seen[id(result)] = weakref.ref(result)

    begin = time.perf_counter()
    lazy.compute(scheduler="threads", num_workers=2)
    seconds = time.perf_counter() - begin
    tracemalloc.start()
    with Callback(posttask=weigh):
        lazy.compute(scheduler="threads", num_workers=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak, total


def with_flox(data: Any, ids: Any, segments: int, method: Any, engine: Any) -> Any:
    """Compute the maxima with flox, which groups along the last axis."""
    groups, fill = pd.RangeIndex(segments), float(np.finfo(data.dtype).min)  # for a range, flox omits the lookup of ids
    result: Any = flox.groupby_reduce(
        data.T, ids, func="max", expected_groups=groups, method=method, engine=engine, fill_value=fill
    )[0]
    return result.T


def ways(data: Any, ids: Any, segments: int, *, is_sorted: bool) -> dict[str, Callable[[], Any]]:
    """Return the functions to compare, by name."""
    own = partial(mo.segment_max, data, ids, segments, fill_mode="LOWEST", sorted=is_sorted)
    calls: dict[str, Callable[[], Any]] = {"maxops": own}
    for method, engine in product(("map-reduce", "cohorts", "blockwise"), ("numpy", "flox", "numbagg")):
        calls[f"flox {method}, {engine}"] = partial(with_flox, data, ids, segments, method, engine)
    return calls


def main() -> None:
    """Measure all functions, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (
        ("rows", 4_000_000),
        ("width", 8),
        ("blocks", 64),
        ("segments", 400_000),
        ("gaps", 1),
        ("rounds", 3),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--any-order", action="store_true", help="use unsorted ids")
    parser.add_argument("--persist", action="store_true", help="generate the data before the measurement")
    parser.add_argument("--ids-in-memory", action="store_true", help='keep the ids in memory, as "cohorts" requires')
    asked = parser.parse_args()
    chunk = -(-asked.rows // asked.blocks)
    data = da.random.default_rng(1).random((asked.rows, asked.width), dtype=np.float32, chunks=(chunk, asked.width))
    ids = da.map_blocks(
        block_of_ids,
        each=asked.rows / asked.segments,
        gaps=asked.gaps,
        any_order=asked.any_order,
        chunks=(data.chunks[0],),
        dtype=np.int64,
        meta=np.empty(0, int),
    )
    if asked.persist:
        data, ids = dask.base.persist(data, ids)
    sources = {data.name, ids.name}
    if asked.ids_in_memory:
        ids = ids.compute()
    calls = ways(data, ids, asked.segments, is_sorted=not asked.any_order)
    expected = calls["maxops"]().compute()
    found: dict[str, list[tuple[float, int, int]]] = {}
    for name, call in list(calls.items()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                same = np.array_equal(np.asarray(call().compute()), expected)
        except (ValueError, NotImplementedError, TypeError, AssertionError) as error:
            print(f"{name:28} raises an error: {str(error).splitlines()[0][:80]}")
            del calls[name]
            continue
        if not same:
            print(f"{name:28} returns a different result")
            del calls[name]
    for _ in range(asked.rounds):
        for name, call in calls.items():
            found.setdefault(name, []).append(weighed(call(), sources))
    middle = {name: tuple(median(column) for column in zip(*rows, strict=True)) for name, rows in found.items()}
    size = asked.segments * asked.width * 4
    order = "in any order" if asked.any_order else "sorted"
    print(
        f"{asked.rows} rows of {asked.width} in {asked.blocks} blocks, {asked.segments} segments, {order}, gaps of "
        f"{asked.gaps}: {size / 1e6:.1f} MB"
    )
    for name, (seconds, peak, moved) in middle.items():
        print(f"{name:28} {seconds:8.3f} s   peak {peak / 1e6:8.1f} MB   communicated {moved / 1e6:9.1f} MB")
    others = {name: row for name, row in middle.items() if name != "maxops"}
    if others:
        best = min(others, key=lambda name: others[name][0])
        ratios = [other / max(own, 1e-9) for other, own in zip(others[best], middle["maxops"], strict=True)]
        print(f"ratio of {best} to maxops: time {ratios[0]:.2f}, peak {ratios[1]:.2f}, communicated {ratios[2]:.2f}")


if __name__ == "__main__":
    main()
