"""JAX ids and offsets on a device, of each dtype: validated on the device, and copied to the host only if invalid."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import dtypes, errors, plan, spec

jax = pytest.importorskip("jax")
inputs = pytest.importorskip("maxops.engines.jax.inputs")

ROW = spec.SEGMENT_MAX
# Short lists of small ids, and the maxima of int8 and uint8. The lists have few lengths, because JAX compiles for each.
IDS = [[], [-1], [0], [127], [255], *map(list, product([-1, 0, 1, 2], repeat=3))]
COUNTS = (None, 0, 2, 127, 128, 255, 256)


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the arrays that are copied to the host, while JAX's arrays count as arrays on a device."""
    names: list[str] = []

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def check(*args: Any, **options: Any) -> None:
            names.append(name)
            function(*args, **options)

        return check

    monkeypatch.setattr(inputs, "_is_cpu", lambda _: False)
    for name in ("check_segment_ids", "check_offsets"):
        monkeypatch.setattr(plan, name, watched(name, getattr(plan, name)))
    return names


def outcome(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[type, str] | None:
    try:
        function(*args, **options)
    except errors.MaxopsError as error:
        return type(error), str(error)
    return None


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
@pytest.mark.parametrize("out_of_range", [None, "error", "drop"])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_ids_leave_a_device_only_if_they_are_wrong(
    copied: list[str], is_sorted: bool, out_of_range: Any, dtype: str
) -> None:
    check = plan.faults.check_segment_ids
    for count, listed in product(COUNTS, IDS):
        ids = np.array(listed, np.int64).astype(dtype)
        rules: Any = {"sorted": is_sorted, "out_of_range": out_of_range}
        expected = outcome(check, ROW, ids, **rules, num_segments=count)
        bounds = inputs.Bounds(ROW, "segment_ids", jax.device_put(ids), len(ids), **rules, count=count)
        copied.clear()
        assert (outcome(bounds.check), bool(copied)) == (expected, expected is not None), (count, listed)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_offsets_leave_a_device_only_if_they_are_wrong(copied: list[str], dtype: str) -> None:
    for length in (1, 2, 3):
        for listed in product([-1, 0, 1, 3], repeat=length):
            offsets = np.array(listed, np.int64).astype(dtype)
            expected = outcome(plan.faults.check_offsets, ROW, offsets, 3)
            bounds = inputs.Bounds(
                ROW, "offsets", jax.device_put(offsets), 3, sorted=True, out_of_range=None, count=length - 1
            )
            copied.clear()
            assert (outcome(bounds.check), bool(copied)) == (expected, expected is not None), listed


@pytest.mark.parametrize("give", [np.asarray, jax.device_put], ids=["NumPy", "JAX on the CPU"])
def test_ids_in_memory_are_looked_at_where_they_are(monkeypatch: pytest.MonkeyPatch, give: Callable[..., Any]) -> None:
    """Test that ids in host memory are checked on the host, because JAX would compile a check for each new length."""
    for name in ("_ids_are_valid", "_offsets_are_valid"):
        monkeypatch.setattr(inputs, name, pytest.fail)
    for name in ("segment_ids", "offsets"):
        inputs.Bounds(ROW, name, give(np.array([0, 1, 2])), 2, sorted=True, out_of_range=None, count=2).check()


@pytest.mark.usefixtures("copied")
@pytest.mark.parametrize("ids", [[0, 0, 2], [2, 0, 1], [-1, 4, 0], []], ids=str)
@pytest.mark.parametrize("count", [None, 3])
@pytest.mark.parametrize("options", [{}, {"sorted": False}, {"sorted": False, "out_of_range": "drop"}], ids=str)
def test_a_call_on_a_device_is_the_call_in_memory(options: dict[str, Any], count: int | None, ids: list[int]) -> None:
    data, named = mixed(dtypes.FLOAT32, (len(ids), 2), 1), np.array(ids, np.int32)

    def call(data: Any, ids: Any) -> Any:
        return mo.segment_max(data, ids, count, fill_mode="LOWEST", **options)

    expected = outcome(call, data, named)
    assert outcome(call, jax.device_put(data), jax.device_put(named)) == expected
    if expected is None:
        assert_same_bits(np.asarray(call(jax.device_put(data), jax.device_put(named))), call(data, named))


TYPES = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("wide", "dtype"), [(wide, dtype) for wide in (False, True) for dtype in TYPES if wide or not dtype.endswith("64")]
)
def test_no_id_past_the_last_segment_comes_back_as_another(wide: bool, dtype: str, traced: bool) -> None:
    """Test that no conversion by JAX turns an id past the segments into a valid one: 2**32 does not become 0."""
    highest = int(np.iinfo(dtype).max)
    ids = np.array([0, 1, 2, highest // 2 + 1, highest - 1, highest], dtype)
    data = mixed(dtypes.FLOAT32, (6, 2), 2)

    def call(data: Any, ids: Any) -> Any:
        return mo.segment_max(data, ids, 4, fill_mode="ZERO", out_of_range=None, return_indices=True)

    function = jax.jit(lambda *args: call(*args)) if traced else call  # noqa: PLW0108 - compiled anew
    with jax.enable_x64(wide):
        got = [np.asarray(part) for part in function(jax.device_put(data), jax.device_put(ids))]
    for part, expected in zip(got, call(data, ids), strict=True):
        assert_same_bits(part.astype(expected.dtype), expected)
