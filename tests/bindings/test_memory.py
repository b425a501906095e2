"""The cache of large outputs: its limit, its reuse of memory, and results that do not depend on it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.programs import run
from maxops import _native
from maxops.engines.native import _configure
from maxops.errors import ConfigurationError
from maxops.plan import LARGEST_OUTPUT

LARGE = (4 << 20) // 4  # float32 elements: the smallest output that the cache serves


@pytest.fixture(autouse=True)
def emptied() -> Iterator[None]:
    """Empty the cache and set its limit to 64 MiB. Restore the limit afterwards."""
    before = mo.memory_info().limit
    _native.set_cache_limit(0)
    _native.set_cache_limit(64 << 20)
    yield
    _native.set_cache_limit(0)
    _native.set_cache_limit(before)


def test_a_freed_output_is_used_again() -> None:
    data = np.arange(LARGE, dtype=np.float32)
    first = mo.maximum(data, data)
    place = first.ctypes.data
    before = mo.memory_info()
    del first
    assert mo.memory_info().blocks == before.blocks + 1
    assert mo.memory_info().kept >= data.nbytes
    second = mo.maximum(data, data[::-1])
    assert second.ctypes.data == place
    assert mo.memory_info().reused == before.reused + 1
    assert_same_bits(second, np.maximum(data, data[::-1]))
    del second
    assert [_native.empty_cache(), _native.empty_cache()] == [True, False]


def test_an_output_in_use_is_never_handed_out_again() -> None:
    data = np.arange(LARGE, dtype=np.float32)
    results = [mo.maximum(data, np.float32(bound)) for bound in range(10)]
    views = [result[1:] for result in results]
    del results
    for bound, view in enumerate(views):
        assert_same_bits(view, np.maximum(data, np.float32(bound))[1:])


@pytest.mark.parametrize("elements", [LARGE - 1, LARGE, LARGE + 1, 3 * LARGE])
def test_the_threshold(elements: int) -> None:
    data = np.arange(elements, dtype=np.float32)
    before = mo.memory_info()
    result = mo.maximum(data, data)
    asked = mo.memory_info().reused + mo.memory_info().fresh - before.reused - before.fresh
    assert asked == (elements >= LARGE)
    assert_same_bits(result, data)


def test_the_limit_holds() -> None:
    """Test that the oldest blocks are released first, and that a block above the limit is never kept."""
    data = np.zeros(LARGE * 10, np.float32)
    results = [mo.maximum(data[: LARGE * size], np.float32(0)) for size in (1, 2, 3, 4, 5, 6, 7)]
    del results
    info = mo.memory_info()
    assert 0 < info.kept <= info.limit
    _native.set_cache_limit(8 << 20)
    assert mo.memory_info().kept <= 8 << 20
    del data
    large = mo.maximum(np.zeros(LARGE * 3, np.float32), np.float32(1))
    del large
    assert mo.memory_info().kept <= 8 << 20


def test_without_the_cache() -> None:
    _native.set_cache_limit(0)
    before = mo.memory_info()
    data = np.arange(LARGE * 2, dtype=np.float32)
    assert_same_bits(mo.maximum(data, data[::-1]), np.maximum(data, data[::-1]))
    assert mo.memory_info() == before


def test_every_operator_and_layout() -> None:
    data = np.arange(LARGE * 2, dtype=np.float32).reshape(2048, -1)
    ids = np.arange(2048)
    for _ in range(2):  # the second time, in cached blocks with old values
        assert_same_bits(mo.maximum(data.T, data.T), data.T)
        assert_same_bits(mo.reduce_max(data[None], (0,)), data[None])
        assert_same_bits(mo.segment_max(data, ids, 4096, fill_mode="LOWEST")[:2048], data)


def test_resize() -> None:
    """Test NumPy's methods that reallocate an array's memory."""
    data = np.arange(LARGE, dtype=np.float32)
    result = mo.maximum(data, data)
    result.resize(LARGE * 3, refcheck=False)
    assert_same_bits(result[:LARGE], data)
    assert not result[LARGE:].any()
    result.resize(5, refcheck=False)
    with pytest.raises(MemoryError):
        result.resize(1 << 50, refcheck=False)
    assert_same_bits(result, data[:5])


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        *(("0", 0), ("1000000", 1_000_000), ("64k", 64 << 10), ("256M", 256 << 20), ("1G", 1 << 30)),
        ("", min(LARGEST_OUTPUT // 16, 1 << 30)),
    ],
)
def test_the_limit_from_the_environment(text: str, limit: int) -> None:
    _configure({"MAXOPS_OUTPUT_CACHE": text, "MAXOPS_NUM_THREADS": str(mo.get_num_threads())})
    assert mo.memory_info().limit == limit


@pytest.mark.parametrize("text", ["x", "-1", "1.5G", "M", "1T", "9999999999G", "٣"])
def test_a_wrong_limit_is_an_error(text: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^MAXOPS_OUTPUT_CACHE must be .*, got {text!r}$"):
        _configure({"MAXOPS_OUTPUT_CACHE": text})


def test_an_import_reads_the_limit() -> None:
    code = "import maxops; print(maxops.memory_info().limit)"
    assert run(code, MAXOPS_OUTPUT_CACHE="64k") == f"{64 << 10}\n"


MIB = 1 << 20


def output_of(mebibytes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """Return an output of this size, from an input of one element."""
    return mo.maximum(np.broadcast_to(np.int8(3), (mebibytes * MIB,)), np.int8(5))


@pytest.mark.parametrize("kept", [4, 8, 10, 16, 20, 40])
def test_a_kept_block_serves_outputs_up_to_its_size_and_no_much_smaller_ones(kept: int) -> None:
    for asked in (4, 6, 8, 10, 12, 14, 16, 18, 20, 32, 40):
        _native.set_cache_limit(0)
        _native.set_cache_limit(kept * MIB)
        output_of(kept)
        before = mo.memory_info()
        assert before.kept == kept * MIB
        output = output_of(asked)
        is_reused = asked <= kept <= asked * 5 // 4
        assert mo.memory_info().reused - before.reused == is_reused, asked
        assert mo.memory_info().kept == (0 if is_reused else before.kept)
        assert (output == 5).all()
        del output


def test_a_block_past_the_limit_takes_the_place_of_none() -> None:
    outputs = [output_of(4) for _ in range(3)]
    large = output_of(80)
    outputs.clear()
    before = mo.memory_info()
    del large
    assert mo.memory_info() == before
    assert before.blocks == 3


def mapped() -> int:
    """Return the size of the process's address space in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * os.sysconf("SC_PAGESIZE")


def growth(turn: Callable[[], None], turns: int) -> int:
    """Return the bytes that at least three turns leave mapped, because other threads map memory in one or two turns."""
    sizes = [mapped()]
    for _ in range(turns):
        turn()
        sizes.append(mapped())
    return sorted(after - before for before, after in pairwise(sizes))[-3]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the addresses that Linux lists")
@pytest.mark.parametrize("limit", [0, 64 * MIB])
def test_mappings_are_given_back(limit: int) -> None:
    """Test that the mappings of outputs that are made, resized and freed are released."""

    def turn(mebibytes: int) -> None:
        output = output_of(mebibytes)
        output.resize(2 * mebibytes * MIB, refcheck=False)
        output.resize(5, refcheck=False)
        output.resize(5 * MIB, refcheck=False)
        assert output[:5].tolist() == [5] * 5

    _native.set_cache_limit(limit)
    for mebibytes in (4, 5, 7, 4):
        turn(mebibytes)
    _native.empty_cache()

    def turns() -> None:
        for mebibytes in (4, 5, 7):
            turn(mebibytes)

    assert growth(turns, 10) < MIB


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped as Linux lists it")
def test_a_result_that_outlives_its_limit_is_unmapped() -> None:
    """Test a result that is freed after the limit is lowered, and one that the cache keeps until then."""
    data, limit = np.zeros(8 << 20, np.int8), mo.memory_info().limit

    def turn() -> None:
        result = mo.maximum(data, data)
        mo.maximum(data, data)
        _native.set_cache_limit(0)
        del result
        _native.set_cache_limit(limit)

    assert growth(turn, 20) < MIB
