"""Writes a Zarr store of artificial hourly temperatures, of any size. Only a few chunks are in memory at a time.

    python examples/larger_than_memory/make_store.py heat.zarr --gigabytes 2.5

`heat` has the dimensions time, y and x. `month` contains the month of each hour, as non-decreasing numbers from 0 on.
Stores of the same size contain the same bytes.
"""

from __future__ import annotations

import argparse
from typing import Any

import dask.array as da
import numpy as np
import xarray as xr
from dask.diagnostics import ProgressBar

HOURS_OF_A_CHUNK, ROWS, COLUMNS = 16, 240, 480


def hours(block_info: Any = None) -> np.ndarray[Any, Any]:
    """Return the temperatures of a chunk, in steps of 1/8 degree. They depend on season, hour, latitude and noise."""
    first = block_info[None]["array-location"][0][0]
    time = np.arange(first, first + HOURS_OF_A_CHUNK)[:, np.newaxis, np.newaxis]
    of_time = -12 * np.cos(time * 2 * np.pi / 8766) - 5 * np.cos(time * 2 * np.pi / 24)
    of_place = 25 * np.cos(np.linspace(-np.pi / 2, np.pi / 2, ROWS))[:, np.newaxis] - 5
    noise = np.random.default_rng(first).integers(-8, 8, (HOURS_OF_A_CHUNK, ROWS, COLUMNS), np.int8)
    eighths = np.rint(8 * (of_time + of_place)).astype(np.int16)
    return ((eighths + noise) / np.float32(8)).astype(np.float32)


def dataset(gigabytes: float) -> xr.Dataset:
    """Return the content of the store as a lazy Dataset."""
    chunks = max(round(gigabytes * 1e9 / (4 * HOURS_OF_A_CHUNK * ROWS * COLUMNS)), 2)
    shape = (chunks * HOURS_OF_A_CHUNK, ROWS, COLUMNS)
    heat = da.map_blocks(hours, chunks=((HOURS_OF_A_CHUNK,) * chunks, ROWS, COLUMNS), dtype=np.float32)
    month = np.arange(shape[0]) // (24 * 30)
    return xr.Dataset(
        {"heat": (("time", "y", "x"), heat, {"units": "degree Celsius"})},
        coords={"time": np.arange(shape[0]), "month": ("time", month)},
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a Zarr store of artificial hourly temperatures.")
    parser.add_argument("path")
    parser.add_argument("--gigabytes", type=float, default=2.5)
    arguments = parser.parse_args()
    content = dataset(arguments.gigabytes)
    print(f"{content.heat.nbytes / 1e9:.2f} GB in {content.heat.data.npartitions} chunks")
    with ProgressBar():
        content.to_zarr(arguments.path, mode="w", consolidated=False)
