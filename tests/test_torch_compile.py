"""`torch.library.opcheck`, and the public functions inside `torch.compile(fullgraph=True)` and `torch.export`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import maxops as mo
from maxops import errors

torch = pytest.importorskip("torch")

pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script(_method)?. is deprecated:DeprecationWarning"),
    # Inductor's own files, and the processes that it compiles in.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning"),
]

X, Y = torch.randn(3, 4), torch.randn(3, 4)
IDS, OFFSETS = torch.tensor([0, 0, 2]), torch.tensor([0, 2, 2, 3])
ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _compiled(function: Callable[..., Any], backend: str = "aot_eager", **options: Any) -> Any:
    return torch.compile(function, fullgraph=True, backend=backend, **options)


def _out(a: Any, b: Any) -> Any:
    out = torch.empty(3, 4)
    mo.maximum(a, b, out=out)
    return out + 1


CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "maximum": (mo.maximum, (X, Y)),
    "maximum-scalars": (lambda a, b: mo.maximum(0.5, a, b, -1), (X, Y[:1])),
    "maximum-bfloat16": (lambda a, b: mo.maximum(a, b, ties="even"), (X.bfloat16(), Y.bfloat16())),
    "maximum-numpy": (lambda a: mo.maximum(a, np.ones(4, np.float32)), (X,)),
    "maximum-out": (_out, (X, Y)),
    "maximum-transposed": (lambda a: mo.maximum(a.T, a[0, 0]), (X,)),
    "reduce": (mo.reduce_max, (X,)),
    "reduce-all-options": (
        lambda a: mo.reduce_max(a, (-1,), keepdims=False, initial=0.5, return_indices=True),
        (X,),
    ),
    "reduce-tensor-initial": (lambda a, i: mo.reduce_max(a, 1, initial=i), (X, torch.tensor(0.2))),
    "reduce-noop": (lambda a: mo.reduce_max(a, noop_with_empty_axes=True), (X,)),
    "segments": (lambda a, i: mo.segment_max(a, i, 4, fill_mode="LOWEST", **ALL), (X, IDS)),
    "segments-of-a-shape": (lambda a, i: mo.segment_max(a, i, a.shape[0] + 1, fill_mode="ZERO"), (X, IDS)),
    "segments-offsets": (lambda a, o: mo.segment_max(a, offsets=o, initial=1), (X, OFFSETS)),
    "segments-unsorted": (lambda a, i: mo.segment_max(a, i, 3, sorted=False, fill_mode="ZERO"), (X, IDS.flip(0))),
    "segments-as-many-as-there-are": (lambda a, i: mo.segment_max(a, i, fill_mode="ZERO", **ALL), (X, IDS)),
}


DYNAMIC = ("maximum-scalars", "maximum-bfloat16", "reduce-all-options", "segments-of-a-shape", "segments-offsets")


@pytest.mark.parametrize(
    ("call", "dynamic"), [*((call, False) for call in CALLS), *((call, True) for call in DYNAMIC)], ids=str
)
def test_compiled(call: str, dynamic: bool) -> None:
    function, arguments = CALLS[call]
    for got, want in zip(
        _tuple(_compiled(function, dynamic=dynamic)(*arguments)), _tuple(function(*arguments)), strict=True
    ):
        assert got.dtype is want.dtype
        assert got.stride() == want.stride()
        assert torch.equal(got, want)


@pytest.mark.parametrize("ties", ["first", "even"])
def test_compiled_gradients(ties: str) -> None:
    def loss(a: Any, b: Any) -> Any:
        rows = mo.segment_max(mo.maximum(a, b, 0.0, ties=ties), IDS, 3, fill_mode="ZERO", ties=ties)
        return (mo.reduce_max(rows, 1, ties=ties) ** 2).sum()

    grads = []
    for function in (loss, _compiled(loss, dynamic=True)):
        a, b = X.clone().requires_grad_(), Y.clone().requires_grad_()
        function(a, b).backward()
        grads.append((a.grad, b.grad))
    assert torch.equal(grads[0][0], grads[1][0])
    assert torch.equal(grads[0][1], grads[1][1])


def test_compiled_transforms() -> None:
    def loss(a: Any) -> Any:
        return (mo.reduce_max(mo.maximum(a, 0.25), 0, ties="even") ** 2).sum()

    def forwards(a: Any) -> Any:
        return torch.func.jvp(loss, (a,), (a,))[1]

    for function in (torch.vmap(torch.func.grad(loss)), forwards):
        assert torch.equal(_compiled(function)(X), function(X))


def test_inductor() -> None:
    """With kernels of its own before and after ours, backwards too, and a number of rows that only data tells."""

    def function(a: Any, b: Any, ids: Any) -> Any:
        return mo.segment_max(mo.maximum(a * 2, b + 1), ids, fill_mode="ZERO") - 1

    results = []
    for run in (function, _compiled(function, "inductor")):
        a, b = X.clone().requires_grad_(), Y.clone().requires_grad_()
        result = run(a, b, IDS)
        result.sum().backward()
        results.append((result, a.grad, b.grad))
    for got, want in zip(*results, strict=True):
        assert torch.equal(got, want)


def test_a_call_that_is_compiled_first_of_all() -> None:
    """The engine is imported while the call is being followed; the functions' native way in stays."""
    code = (
        "import torch, maxops as mo\n"
        "f = torch.compile(lambda a: mo.maximum(a, 2), fullgraph=True, backend='eager')\n"
        "print(f(torch.tensor([1, 5])).tolist(), type(mo.maximum).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[0] == "[2, 5] Entry"


def test_errors_of_shapes_come_when_the_graph_is_made() -> None:
    for function, words in (
        (lambda a: mo.maximum(a, torch.ones(3)), "input 1 has shape"),
        (lambda a: mo.maximum(a, 0.1), "input 1 is the Python float 0.1, which float32"),
        (lambda a: mo.maximum(a, a, ties="last"), "ties is 'last'"),
        (lambda a: mo.reduce_max(a, 2), "axes holds 2, but data has rank 2"),
    ):
        with pytest.raises(RuntimeError, match=words):
            _compiled(function)(X)


def test_errors_of_values_come_when_the_graph_is_run() -> None:
    function = _compiled(lambda a, i: mo.segment_max(a, i, 4, fill_mode="ZERO"))
    with pytest.raises(errors.SegmentIdsError, match="position 1 holds 0 after 2"):
        function(X, IDS.flip(0))


def test_export() -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, a: Any, b: Any) -> Any:
            return mo.maximum(a, b)

    program = torch.export.export(Model(), (X, Y))
    assert torch.equal(program.module()(X, Y), torch.maximum(X, Y))


# ---------------------------------------------------------------------------------------------- opcheck


def _operators() -> dict[str, tuple[str, tuple[Any, ...]]]:
    x = X.clone().requires_grad_()
    b, initial = X.bfloat16(), torch.tensor(0.0)
    options = (None, True, True, "first")
    return {
        "maximum": ("maximum", ([x, Y[:1], x], "even")),
        "maximum-bfloat16": ("maximum", ([b, b[0]], "first")),
        "reduce": ("reduce_max", (x, [1], True, False, None, False, "first")),
        "reduce-initial": ("reduce_max", (x, None, False, False, initial, True, "even")),
        "reduce-noop": ("reduce_max", (x, None, False, True, None, True, "first")),
        "segments": ("segment_max", (x, IDS, None, 5, "ZERO", True, True, None, *options)),
        "segments-rows": ("segment_max", (x, IDS, None, None, "LOWEST", True, False, "drop", *options)),
        "segments-offsets": ("segment_max", (x, None, OFFSETS, None, None, False, True, None, initial, *options[1:])),
    }


@pytest.mark.parametrize("call", _operators())
def test_opcheck(call: str) -> None:
    import maxops.engines.torch  # noqa: F401, PLC0415 - after the skip

    name, arguments = _operators()[call]
    torch.library.opcheck(getattr(torch.ops.maxops, name).default, arguments)


def test_opcheck_of_scalars() -> None:
    import maxops.engines.torch  # noqa: F401, PLC0415 - after the skip

    torch.library.opcheck(torch.ops.maxops.scalar.default, (X, 0.5, "Max-13", "input 1", "input 0"))
