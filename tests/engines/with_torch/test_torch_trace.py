"""`torch.jit.trace`: the trace contains the calls, not their results for the example."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from maxops import errors
from maxops.dtypes import FLOAT32 as F32
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


RESULTS = [(indices, empty) for indices in (False, True) for empty in (False, True)]


@pytest.mark.parametrize("way", ["trace", "graph"])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("counted", ["", "number", "tensor"])
def test_each_set_of_results(counted: str, axis: int, way: str) -> None:
    """Test the requested results in their order, along each axis, with each kind of num_segments."""
    counts: tuple[Any, ...] = (torch.tensor(4),) if counted == "tensor" else ()
    # A number from a tensor breaks the graph at each call, which takes a second.
    each_set = RESULTS[2 * abs(axis) :][:2] if counts and way == "graph" else RESULTS

    def function(x: Any, ids: Any, *count: Any) -> Any:
        number: Any = 5 if counted == "number" else (count[0] if count else None)
        return tuple(
            result
            for indices, empty in each_set
            for result in as_tuple(
                mo.segment_max(
                    x, ids, number, fill_mode="LOWEST", axis=axis, return_indices=indices, return_empty=empty
                )
            )
        )

    example = torch.from_numpy(mixed(F32, (3, 3), 1)), torch.tensor([0, 0, 2]), *counts
    if way == "trace":
        run = torch.jit.trace(function, example)
        others = torch.from_numpy(mixed(F32, (3, 3), 2)), torch.tensor([0, 1, 3]), *(each + 2 for each in counts)
    else:
        torch.compiler.reset()  # resets the limit of graphs per function
        run = torch.compile(function, backend="eager", fullgraph=not counts)
        others = example
    got, expected = run(*others), function(*others)
    assert len(got) == len(expected) == sum(1 + indices + empty for indices, empty in each_set)
    for each, right in zip(got, expected, strict=True):
        assert each.stride() == right.stride()
        assert_same_bits(each.numpy(), right.numpy())
