"""`torch.jit.trace`: the trace contains the calls, not their results for the example."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from maxops import errors
from maxops.engines.base import as_tuple

torch = pytest.importorskip("torch")

from helpers.torch_calls import ALL, CALLS, arguments  # noqa: E402 - after the skip

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.* is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:torch.from_numpy results are registered as constants in the trace"),
]

NO: Any = "no"  # typed as Any, because type checkers reject it
HERE: dict[str, Callable[..., Any]] = CALLS | {
    "maximum-gradients": lambda leaf: mo.maximum(leaf, leaf[0] * 2),
    "reduce-array-of-axes": lambda a: mo.reduce_max(a, np.array([1]), keepdims=False),
    "segments-as-many-as-a-tensor-says": lambda a, ids, count: mo.segment_max(a, ids, count, fill_mode="LOWEST"),
    "segments-of-a-tensor-and-an-axis": lambda a, ids, count: mo.segment_max(
        a.T, ids, count, axis=-1, initial=0, **ALL
    ),
}


@pytest.mark.parametrize("call", HERE)
def test_a_trace_computes_anew(call: str) -> None:
    """Test that a trace, also if saved and loaded, computes the results for new inputs."""
    function = HERE[call]
    traced = torch.jit.trace(function, tuple(arguments(function)))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    others = arguments(function, rows=5)
    for run in (traced, torch.jit.load(file)):
        for got, expected in zip(as_tuple(run(*others)), as_tuple(function(*others)), strict=True):
            assert got.stride() == expected.stride()
            assert torch.equal(got, expected)


def test_segments_of_numpys_data_along_an_axis() -> None:
    def call(ids: Any) -> Any:
        return mo.segment_max(np.arange(6.0).reshape(2, 3), ids, 3, axis=-1, fill_mode="ZERO", **ALL)

    traced = torch.jit.trace(call, torch.tensor([0, 0, 2]))
    for got, expected in zip(traced(torch.tensor([0, 1, 1])), call(torch.tensor([0, 1, 1])), strict=True):
        assert torch.equal(got, expected)


def test_a_traced_module_has_gradients() -> None:
    class Module(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(2))

        def forward(self, x: Any) -> Any:
            return mo.maximum(x, self.weight)

    module = Module()
    torch.jit.trace(module, torch.ones(3, 2))(torch.tensor([[-1.0, 0.0]])).sum().backward()
    assert module.weight.grad.tolist() == [1.0, 0.5]


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")  # about the shape of `out`, which a trace fixes
def test_a_traced_call_has_the_errors_of_a_plain_one() -> None:
    ids = torch.tensor([2, 0, 0])
    for function, error, words in (
        (
            lambda x: mo.reduce_max(x, keepdims=NO),
            errors.AttributeValueError,
            "keepdims must be True, False, 1 or 0, got 'no'",
        ),
        (lambda x: mo.reduce_max(x, np.array([1.0])), errors.AxesError, "1-D array of integers, got float64"),
        (lambda x: mo.maximum(x, x[:2]), errors.ShapeError, "input 1 has shape"),
        (lambda x: mo.maximum(x, x, out=torch.empty(3)), errors.OutputError, "out has shape"),
        (lambda x: mo.segment_max(x, ids, fill_mode="ZERO"), errors.SegmentIdsError, "got 0 after 2 at position 1"),
    ):
        with pytest.raises(error, match=words):
            torch.jit.trace(function, torch.ones(3, 4))
