"""Computes maxima of a store that is larger than memory: for each place, with the time, and for each month.

    python examples/larger_than_memory/maximum_of_store.py heat.zarr

The two worker processes have 300 MB of memory each, including Python. Dask's progress bar shows their progress.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
from typing import Any

import dask
import numpy as np
import psutil
import xarray as xr
from dask.utils import parse_bytes
from distributed import Client, LocalCluster, progress

import maxops as mo

DATA_BYTES = 75_000_000  # the maximum size of the chunks and maxima in a worker


def memory() -> int:
    """Return the peak memory of this process, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main(path: str, limit: str) -> None:
    """Compute the maxima of the store at `path` on two workers, each with a memory limit of `limit`."""
    heat = xr.open_zarr(path, consolidated=False)["heat"]
    month = heat["month"].load()  # the ids are small; in memory, they determine the number of segments
    empty = psutil.Process().memory_info().rss  # a worker imports the same packages
    least = (empty + DATA_BYTES) / dask.config.get("distributed.worker.memory.pause")  # a paused worker never finishes
    if parse_bytes(limit) < least:
        sys.exit(
            f"Python and its packages use {empty / 1e6:.0f} MB of the {limit} of each worker, and Dask pauses a worker "
            f'before its limit; pass --limit "{50 * math.ceil(least / 50e6)} MB" or more'
        )
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=limit, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        print(f"{heat.nbytes / 1e9:.2f} GB in {heat.data.npartitions} chunks, on two workers of {limit}")
        highest, hour = mo.reduce_max(heat, dim="time", return_indices=True)
        of_month = mo.segment_max(heat, month, fill_mode="LOWEST")

        results: Any = client.compute([highest, hour, of_month])
        progress(results, notebook=False)
        highest, hour, of_month = client.gather(results)

        place = int(np.argmax(highest.data))
        print(f"\nhighest: {mo.reduce_max(highest).item()} {highest.attrs['units']}, in hour {hour.data.flat[place]}")
        print("maximum of each month:", *mo.reduce_max(of_month, dim=("y", "x")).data)
        peaks = client.run(memory)
        print("peak memory of each worker:", *(f"{peak / 1e6:.0f} MB" for peak in peaks.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compute maxima of a Zarr store that make_store.py wrote.")
    parser.add_argument("path")
    parser.add_argument("--limit", default="300 MB", help="the memory limit of each worker")
    arguments = parser.parse_args()
    main(arguments.path, arguments.limit)
