"""Dask workers in separate processes, which may be killed or short of memory: results equal those in memory.

Each of the two workers has 400 MB, including Python and its packages.
"""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from math import ceil, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes

distributed = pytest.importorskip("distributed")
zarr = pytest.importorskip("zarr")
da = pytest.importorskip("dask.array")

LIMIT = 400_000_000
PATIENCE = 300  # seconds, for a busy machine; the tests do not wait that long otherwise
FLOAT = dtypes.FLOAT32


@contextmanager
def client_of_two(folder: Path) -> Iterator[Any]:
    settings = {
        "distributed.comm.timeouts.connect": f"{PATIENCE}s",
        "distributed.comm.timeouts.tcp": f"{PATIENCE}s",
        # A worker that is busy reading must not count as dead.
        "distributed.scheduler.worker-ttl": f"{PATIENCE}s",
        # numbagg, which Dask uses if it is installed, loads a compiler of 60 MB into each worker.
        "distributed.worker.preload": ["import sys; sys.modules['numbagg'] = None"],
    }
    with (
        import_module("dask").config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=LIMIT,
            dashboard_address=":0",
            local_directory=str(folder),
            silence_logs=logging.CRITICAL,  # killed workers log errors
        ) as cluster,
        distributed.Client(cluster, timeout=PATIENCE) as client,
    ):
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a client of two workers."""
    with client_of_two(tmp_path_factory.mktemp("workers")) as client:
        yield client


@pytest.fixture
def mortal_workers(tmp_path: Path) -> Iterator[Any]:
    """Yield a client of two workers that a test may kill: Dask does not always recover (dask/distributed#3196)."""
    with client_of_two(tmp_path) as client:
        yield client


def pids(client: Any) -> dict[str, int]:
    return client.run(os.getpid)  # type: ignore[no-any-return]


def ids_of(rows: int, segments: int) -> Any:
    return np.sort(np.random.default_rng(6).integers(0, segments, rows))


def assert_same(client: Any, lazy: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    futures = client.compute(list(lazy))
    try:
        distributed.wait(futures, timeout=PATIENCE)
    except TimeoutError:
        workers = client.scheduler_info()["workers"].values()
        states = [(worker["status"], worker["metrics"]["memory"]) for worker in workers]
        pytest.fail(f"no result after {PATIENCE} s: workers {states}, calls {client.call_stack()}")
    got = client.gather(futures)
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        assert_same_bits(one, other)


EVERYTHING: dict[str, Any] = {"fill_mode": "LOWEST", "return_indices": True, "return_empty": True}


def test_bits_are_those_in_memory(workers: Any) -> None:
    data, other = mixed(FLOAT, (1000, 30), 1), mixed(FLOAT, (30,), 2)
    ids = ids_of(1000, 40)
    lazy = da.from_array(data, chunks=(77, 16))
    lazy_ids = da.from_array(ids, chunks=100)
    assert_same(workers, (mo.maximum(lazy, other, 1.5),), (mo.maximum(data, other, 1.5),))
    assert_same(
        workers, mo.reduce_max(lazy, axes=0, return_indices=True), mo.reduce_max(data, axes=0, return_indices=True)
    )
    assert_same(workers, mo.segment_max(lazy, lazy_ids, 40, **EVERYTHING), mo.segment_max(data, ids, 40, **EVERYTHING))
    shuffled = np.random.default_rng(7).permutation(ids)
    assert_same(
        workers,
        mo.segment_max(lazy, shuffled, sorted=False, **EVERYTHING),
        mo.segment_max(data, shuffled, sorted=False, **EVERYTHING),
    )


# -------------------------------------------------------------------------------------------------- killed


def block_that_kills(block: Any, marker: str, block_info: Any = None) -> Any:
    """Return the block, but kill the first process that computes the middle block."""
    place = block_info[0]["chunk-location"]
    if place[0] == block_info[0]["num-chunks"][0] // 2:
        try:
            descriptor = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return block
        os.write(descriptor, str(os.getpid()).encode())
        os.close(descriptor)
        os.kill(os.getpid(), signal.SIGKILL)
    return block


def test_a_worker_that_is_killed_amid_its_work_costs_no_bit(mortal_workers: Any, tmp_path: Path) -> None:
    data, marker = mixed(FLOAT, (400, 50), 3), tmp_path / "killed"
    lazy = da.from_array(data, chunks=(10, 50)).map_blocks(block_that_kills, marker=str(marker), dtype=data.dtype)
    before, ids = pids(mortal_workers), ids_of(400, 25)
    assert_same(
        mortal_workers,
        (*mo.reduce_max(lazy, axes=0, return_indices=True), *mo.segment_max(lazy, ids, **EVERYTHING)),
        (*mo.reduce_max(data, axes=0, return_indices=True), *mo.segment_max(data, ids, **EVERYTHING)),
    )
    assert int(marker.read_text()) in before.values()
    mortal_workers.wait_for_workers(2, timeout=PATIENCE)
    assert int(marker.read_text()) not in pids(mortal_workers).values()


def test_a_worker_that_is_killed_with_what_it_held_costs_no_bit(mortal_workers: Any) -> None:
    """Test that killing a worker with half of the data changes no bit: the other worker computes that half again."""
    data = mixed(FLOAT, (400, 50), 4)
    lazy = mortal_workers.persist(da.from_array(data, chunks=(20, 50)) + np.float32(0))
    distributed.wait(lazy, timeout=PATIENCE)
    expected = mo.reduce_max(lazy.compute(), axes=0)
    address, pid = next(iter(pids(mortal_workers).items()))
    assert any(address in holders for holders in mortal_workers.who_has(lazy).values())
    os.kill(pid, signal.SIGKILL)
    assert_same(mortal_workers, (mo.reduce_max(lazy, axes=0),), (expected,))


# -------------------------------------------------------------------------------------------------- traffic


def moved(client: Any) -> int:
    """Return the bytes that workers transferred to each other, as Dask estimates them."""
    logs = client.run(lambda dask_worker: [entry["total"] for entry in dask_worker.transfer_incoming_log])
    return sum(map(sum, logs.values()))


@pytest.mark.parametrize("segments", [None, 8, 1000])
def test_workers_move_no_more_than_the_page_says(workers: Any, segments: int | None) -> None:
    """Test that transfers stay within the bounds of docs/integrations/clusters.md, counted in rows of the result."""
    chunks, height, width = 64, 100, 1000
    data = da.ones((chunks * height, width), chunks=(height, width), dtype=np.float32)
    if segments is None:
        lazy, bound = mo.reduce_max(data, axes=0), float(chunks)
    else:
        lazy = mo.segment_max(data, ids_of(len(data), segments), segments, fill_mode="ZERO")
        bound = ceil(log(chunks, 16)) * segments + chunks * 16 / 15
    before = moved(workers)
    distributed.wait(workers.persist(lazy), timeout=PATIENCE)
    row = width * 4 + 400  # with the segment indices
    assert moved(workers) - before <= bound * row


def test_workers_keep_no_memory_for_later_results(workers: Any) -> None:
    """Test that workers cache no memory, which counts toward their limit: a worker at its limit might wait forever."""
    before = mo.memory_info()
    data = da.ones((2, 1 << 20), chunks=(1, 1 << 20), dtype=np.float32)  # 4 MiB each, the smallest cached size
    lazy = [mo.maximum(data, 0.5), *mo.reduce_max(data, axes=0, return_indices=True)]
    lazy += mo.segment_max(data, np.arange(2), fill_mode="ZERO", return_indices=True)
    for result in lazy:
        distributed.wait(workers.persist(result), timeout=PATIENCE)
    kept = workers.run(mo.memory_info).values()
    assert sum(info.limit == info.fresh == 0 for info in kept) >= 1
    assert all(info.fresh == 0 for info in kept)
    assert mo.memory_info() == before


# ------------------------------------------------------------------------------------------- short of memory

ROWS, COLUMNS, BLOCK = 5120, 40960, 40  # 839 MB, in blocks of 6.6 MB


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a Zarr store larger than the memory of both workers, and its maxima."""
    path = str(tmp_path_factory.mktemp("store") / "large.zarr")
    array = zarr.create_array(path, shape=(ROWS, COLUMNS), chunks=(BLOCK, COLUMNS), dtype="f4")
    assert array.nbytes > 2 * LIMIT
    ids = ids_of(ROWS, 6)
    random = np.random.default_rng(8)
    # Long runs, which are fast to write and to read.
    pattern = np.repeat(random.integers(1, 64, (BLOCK, COLUMNS // 64)), 64, axis=1).astype(np.float32)
    segments = np.zeros((6, COLUMNS), np.float32)
    for start in range(0, ROWS, BLOCK):
        block = np.roll(pattern, start, axis=1)[: ROWS - start]
        block[0, random.integers(0, COLUMNS, 9)] = 99 + start
        array[start : start + BLOCK] = block
        numbers = ids[start : start + BLOCK]
        for segment in np.unique(numbers):
            # The values are positive and not NaN, so NumPy's maximum has the same bits.
            np.maximum(segments[segment], block[numbers == segment].max(axis=0), out=segments[segment])
    highest = segments.max(axis=0, keepdims=True)
    return path, ids, highest, segments


def test_a_store_larger_than_the_memory(workers: Any, store: Any) -> None:
    path, ids, highest, segments = store
    lazy = da.from_zarr(path)
    assert_same(
        workers, (mo.reduce_max(lazy, axes=0), mo.segment_max(lazy, ids, fill_mode="ZERO")), (highest, segments)
    )


def test_workers_at_their_limit_finish(workers: Any, store: Any) -> None:
    """Test results larger than the workers' memory: the workers write them to disk, and pause meanwhile."""
    path, ids, highest, segments = store
    part = slice(COLUMNS * 3 // 5)
    kept = workers.persist(da.from_zarr(path)[:, part])
    assert kept.nbytes > 0.6 * 2 * LIMIT  # above this, workers write their own results to disk
    distributed.wait(kept, timeout=PATIENCE)
    spilled = workers.run(lambda dask_worker: dask_worker.data.spilled_total.disk)
    assert sum(spilled.values()) > 0
    lazy = (mo.reduce_max(kept, axes=0), mo.segment_max(kept, ids, fill_mode="ZERO"))
    assert_same(workers, lazy, (highest[:, part].copy(), segments[:, part].copy()))
