# ruff: noqa: E402 - what needs torch comes after the look for it
"""`maxops bench --gpu`: its cases hold the same bits at a small size, and its table says what was found."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import pytest
from typer.testing import CliRunner

torch = pytest.importorskip("torch")

from maxops import dtypes
from maxops.bench import gpu, gpu_measure
from maxops.cli.app import app

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WHERE = torch.device(DEVICE)


def wall(function: Callable[[], Any]) -> float:
    """Seconds of a call on the CPU, where there are no CUDA events."""
    begin = perf_counter()
    function()
    return perf_counter() - begin


def test_every_cell_is_right() -> None:
    for case in gpu.cases(dtypes.FLOAT32, WHERE, 1 << 11):
        found = gpu_measure.measure(case, WHERE, wall, rounds=1, warm=0)
        assert found.same_bits, case.id
        assert not [reason for reason in found.libraries.values() if isinstance(reason, str)], case.id
        assert set(found.libraries) == set(case.libraries)
        assert found.bytes > 0
        assert "float32" in found.case


def test_torch_is_no_peer_in_types_that_it_lacks() -> None:
    for case in gpu.cases(dtypes.UINT16, WHERE, 1 << 11):
        assert not [name for name in case.libraries if name.startswith("torch")], case.id


def test_wrong_bits_and_failing_peers_are_told() -> None:
    def fail() -> Any:
        raise RuntimeError("not for this type\nand more")

    x = torch.zeros(4, device=WHERE)
    case = gpu.GpuCase("a case", 32, lambda: x, lambda: gpu.as_array(x) + 1, {"library": fail})
    found = gpu_measure.measure(case, WHERE, wall, rounds=1)
    assert gpu_measure.row(found)[-2:] == ("library: RuntimeError: not for this type", "DIFFERENT")


def test_a_row_says_how_far_the_goal_is() -> None:
    found = gpu_measure.Measurement("a case", 10**9, 0.001, 0.0008, {"torch": 0.002}, True)
    assert gpu_measure.row(found) == ("a case", "1.000", "1000", "0.80 (goal 0.9)", "torch 2.00", "same")
    assert found.as_json()["of_copy"] == pytest.approx(0.8)


@pytest.mark.skipif(DEVICE == "cuda", reason="here is a GPU")
def test_without_a_gpu_nothing_is_measured() -> None:
    with pytest.raises(gpu.NoDeviceError, match=r"found no CUDA device: PyTorch .* sees none. Nothing was measured"):
        gpu.find_device()
    result = CliRunner().invoke(app, ["bench", "--gpu"])
    assert result.exit_code == 2
    assert "found no CUDA device" in result.output
