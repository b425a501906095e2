"""Gradients of tensors in reverse and forward mode, alone and in batches, for the first maximum or split evenly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.engine_transforms import HALF_CALLS, HALF_TYPES
from maxops import errors
from maxops.typing import Ties

torch = pytest.importorskip("torch")

from maxops.engines.torch import any_device, eager, functions, gradients, kernels, operators, plain  # noqa: E402 - after the skip
from maxops.engines.torch.dispatch import core_is_off  # noqa: E402

# Torch's own forward gradients start by compiling a script.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning"),
    pytest.mark.usefixtures("torch_way"),
]

TIES = pytest.mark.parametrize("ties", ["first", "even"])
SORTED, MIXED, OFFSETS = [0, 0, 2, 2, 2, 5], [5, 0, 2, 0, -2, 2], [0, 2, 2, 5, 5, 5, 6]


def _of_ids(x: Any, **options: Any) -> Any:
    return mo.segment_max(x, torch.tensor(SORTED), fill_mode="ZERO", **options)


def _dropped(x: Any, **options: Any) -> Any:
    ids = torch.tensor(MIXED)
    return mo.segment_max(x, ids, 4, sorted=False, out_of_range="drop", fill_mode="ZERO", **options)


def _of_offsets(x: Any, **options: Any) -> Any:
    return mo.segment_max(x, offsets=torch.tensor(OFFSETS), num_segments=5, initial=0.3, **options)


# Each call takes a tensor of shape (6, 2) and `ties`.
CALLS: dict[str, Callable[..., Any]] = {
    "maximum": lambda x, **o: mo.maximum(x[:2, None], x[2:3], 0.25, x[3:5, None] * 0.5, **o),
    "reduce-all": mo.reduce_max,
    "reduce-first": lambda x, **o: mo.reduce_max(x, 0, keepdims=False, **o),
    "reduce-outer": lambda x, **o: mo.reduce_max(x.reshape(3, 2, 2), (2, 0), **o),
    "reduce-indices": lambda x, **o: mo.reduce_max(x, -1, return_indices=True, **o)[0],
    "reduce-initial": lambda x, **o: mo.reduce_max(x, 1, initial=0.5, **o),
    "reduce-noop": lambda x, **o: mo.reduce_max(x, noop_with_empty_axes=True, **o),
    "reduce-rank-0": lambda x, **o: mo.reduce_max(x[0, 0], **o),
    "reduce-no-elements": lambda x, **o: mo.reduce_max(x[:, :0], 0, **o),
    "segments": _of_ids,
    "segments-of-numbers": lambda x, **o: _of_ids(x[:, 0], **o),
    "segments-of-rows": lambda x, **o: _of_ids(x.reshape(6, 1, 2), **o),
    "offsets-of-rows": lambda x, **o: mo.segment_max(
        x.reshape(6, 1, 2), offsets=torch.tensor(OFFSETS), fill_value=-9, **o
    ),
    "segments-indices": lambda x, **o: _of_ids(x, return_indices=True, return_empty=True, **o)[0],
    "segments-dropped": _dropped,
    "segments-offsets": _of_offsets,
}


def _distinct() -> Any:
    generator = torch.Generator().manual_seed(3)
    return (torch.randperm(12, generator=generator).reshape(6, 2).double() - 5.5) / 7


@TIES
@pytest.mark.parametrize("call", CALLS)
def test_gradients_are_those_of_differences(call: str, ties: Ties) -> None:
    """Test gradients of first and second order in all modes against differences, also in torch's own batches."""

    def function(x: Any) -> Any:
        return CALLS[call](x, ties=ties)

    x = _distinct().requires_grad_()
    batches = call != "reduce-no-elements"
    assert torch.autograd.gradcheck(
        function, (x,), check_forward_ad=True, check_batched_grad=batches, check_batched_forward_grad=batches
    )
    assert torch.autograd.gradgradcheck(function, (x,))


# ------------------------------------------------------------------------------------------------------ ties

NAN, INF = float("nan"), float("inf")
# Ties: the first, the third and the fourth value are equal to the maximum, and the others are not.
ROWS = {
    "ordinary": [2.0, 1.0, 2.0, 2.0],
    "nans-of-all-kinds": [NAN, INF, -NAN, NAN],
    "zeros": [0.0, -0.0, 0.0, 0.0],
    "negative-zeros": [-0.0, -1.0, -0.0, -0.0],
    "lowest": [-1.0, -INF, -1.0, -1.0],
}
WANT = {"first": [1.0, 0.0, 0.0, 0.0], "even": [1 / 3, 0.0, 1 / 3, 1 / 3]}


@TIES
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("row", ROWS)
def test_ties(row: str, dtype: str, ties: Ties) -> None:
    kind = getattr(torch, dtype)
    expected = torch.tensor(WANT[ties], dtype=torch.float64).to(kind)
    x = torch.tensor(ROWS[row], dtype=kind, requires_grad=True)
    for result in (
        mo.reduce_max(x, ties=ties),
        mo.segment_max(x, torch.zeros(4, dtype=torch.int64), fill_mode="ZERO", ties=ties),
        mo.segment_max(x, offsets=torch.tensor([0, 4]), fill_mode="ZERO", ties=ties),
        mo.maximum(*x.unbind(), ties=ties),
    ):
        (grad,) = torch.autograd.grad(result.sum(), x, grad_outputs=torch.ones((), dtype=kind))
        assert grad.dtype is kind
        assert torch.equal(grad, expected)


def test_ties_are_even_unless_told_otherwise() -> None:
    """Test that ties are even by default, as in torch.amax and torch.maximum."""
    x = torch.zeros(2, requires_grad=True)
    ids = torch.zeros(2, dtype=torch.int64)
    for result in (
        mo.reduce_max(x),
        mo.segment_max(x, ids, fill_mode="ZERO"),
        mo.maximum(x, torch.zeros(2)),
        torch.amax(x, 0, keepdim=True),
        torch.maximum(x, torch.zeros(2)),
    ):
        assert torch.autograd.grad(result.sum(), x)[0].tolist() == [0.5, 0.5]


@TIES
def test_where_initial_alone_is_the_maximum_there_is_no_gradient(ties: Ties) -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 0.0]], requires_grad=True)
    (grad,) = torch.autograd.grad(mo.reduce_max(x, 1, initial=2.5, ties=ties).sum(), x)
    assert grad.tolist() == [[0, 1], [0, 0]]
    # An element of the data that equals `initial` gets the gradient.
    (grad,) = torch.autograd.grad(mo.reduce_max(x, 1, initial=3, ties=ties).sum(), x)
    assert grad.tolist() == [[0, 1], [0, 0]]
    # The core does not take 2**70. With create_graph, the gradient is computed by operators of torch.
    for create_graph, shape in ((False, (2, 2)), (True, (2, 2)), (False, (2, 0))):
        data = torch.ones(shape, requires_grad=True)
        rows = mo.reduce_max(data, 1, initial=2**70, ties=ties), mo.segment_max(data, [0, 0], initial=2**70, ties=ties)
        for row in rows:
            assert torch.autograd.grad(row.sum(), data, create_graph=create_graph)[0].count_nonzero() == 0
    start = torch.tensor(2.5, requires_grad=True)
    mo.reduce_max(x, 1, initial=start, ties=ties).sum().backward()
    assert start.grad is None


def test_integers_have_no_gradient_and_indices_have_none() -> None:
    values, indices = mo.reduce_max(torch.ones(3, requires_grad=True), return_indices=True)
    assert values.requires_grad
    assert not indices.requires_grad
    assert not mo.maximum(torch.ones(3, dtype=torch.int64), torch.ones(3, dtype=torch.int64)).requires_grad


# ------------------------------------------------------------------------------- what is kept and computed


def _by_operator(*tensors: Any, ties: Ties) -> Any:
    return torch.ops.maxops.maximum(list(tensors), ties)


@pytest.mark.parametrize("kind", [">f4", "<f4"])
def test_scalars_of_either_byte_order(kind: str) -> None:
    data, ids, one = torch.zeros(3, requires_grad=True), torch.tensor([0, 1, 1]), np.array(1, kind)
    for result in (
        mo.maximum(data, one),
        mo.reduce_max(data, initial=one),
        mo.segment_max(data, ids, 3, initial=one),
        mo.segment_max(data + 1, ids, 3, fill_value=one),
    ):
        assert result.requires_grad
        assert result.tolist() == [1.0] * len(result)


@TIES
@pytest.mark.parametrize("maximum", [mo.maximum, _by_operator], ids=["function", "operator"])
@pytest.mark.parametrize("needed", [(True, False, False), (False, True, False), (True, False, True)], ids=str)
def test_gradients_are_computed_for_those_who_need_them(
    maximum: Callable[..., Any], needed: tuple[bool, ...], ties: Ties, monkeypatch: pytest.MonkeyPatch
) -> None:
    shapes: list[tuple[int, ...]] = []
    compared: list[Any] = []
    sum_to, holds = gradients.sum_to, gradients.holds

    def compare(elements: Any, maxima: Any) -> Any:
        compared.append(elements)
        return holds(elements, maxima)

    def add(grad: Any, tensor: Any) -> Any:
        shapes.append(tuple(tensor.shape))
        return sum_to(grad, tensor)

    monkeypatch.setattr(gradients, "holds", compare)
    monkeypatch.setattr(gradients, "sum_to", add)
    inputs = [torch.zeros(shape, requires_grad=need) for shape, need in zip([(2, 1), (3,), ()], needed, strict=True)]
    maximum(*inputs, ties=ties).sum().backward()
    assert shapes == [tuple(tensor.shape) for tensor in inputs if tensor.requires_grad]
    last = max(number for number, need in enumerate(needed, 1) if need)
    by_torch = last if ties == "first" else len(inputs)  # the first equal elements precede the others
    is_native = maximum is mo.maximum and not core_is_off()
    assert len(compared) == (0 if is_native else by_torch)
    everybody = [torch.zeros_like(tensor, requires_grad=True) for tensor in inputs]
    maximum(*everybody, ties=ties).sum().backward()
    for tensor, other in zip(inputs, everybody, strict=True):
        assert tensor.grad is None if not tensor.requires_grad else torch.equal(tensor.grad, other.grad)


@TIES
@pytest.mark.parametrize("call", CALLS)
def test_what_is_kept_is_read_once_and_is_not_a_result(call: str, ties: Ties) -> None:
    """Test results that change in place before the backward pass.

    Test also `torch.utils.checkpoint`, which computes saved values again and allows only one read.
    """
    gradients = []
    for in_place, checkpoint in ((False, False), (True, False), (False, True)):
        x = _distinct().requires_grad_()
        run = torch.utils.checkpoint.checkpoint if checkpoint else lambda function, x, **_: function(x)
        result = run(lambda x: CALLS[call](x, ties=ties), x, use_reentrant=False)
        result = result.mul_(2).add_(1) if in_place else result * 2 + 1
        gradients.append(torch.autograd.grad((result**2).sum(), x)[0])
    assert all(torch.equal(each, gradients[0]) for each in gradients)


@TIES
def test_indices_may_be_changed_in_place_before_backward(ties: Ties) -> None:
    x = _distinct().requires_grad_()
    reduced, places = mo.reduce_max(x, 0, return_indices=True, ties=ties)
    segments, rows, _ = _of_ids(x, return_indices=True, return_empty=True, ties=ties)
    places += 1
    rows += 1
    expected = mo.reduce_max(x, 0, ties=ties).sum() + _of_ids(x, ties=ties).sum()
    got = reduced.sum() + segments.sum()
    assert torch.equal(torch.autograd.grad(got, x)[0], torch.autograd.grad(expected, x)[0])


# Each call takes a tensor of shape (4,) that requires a gradient, an array that may change later, and `ties`.
BESIDE: dict[str, tuple[Callable[..., Any], Any]] = {
    "maximum": (mo.maximum, [0.0, 9, 0, 9]),
    "segment_ids": (lambda x, a, **o: mo.segment_max(x, a, 4, fill_mode="ZERO", **o), [0, 0, 1, 1]),
    "offsets": (lambda x, a, **o: mo.segment_max(x, offsets=a, fill_mode="ZERO", **o), [0, 2, 2, 4]),
    "fill_value": (lambda x, a, **o: mo.segment_max(x, [0, 0, 2, 2], 3, fill_value=a, **o), 9.0),
    "segment_max initial": (lambda x, a, **o: mo.segment_max(x, [0, 0, 1, 1], initial=a, **o), 2.5),
    "reduce_max initial": (lambda x, a, **o: mo.reduce_max(x, initial=a, **o), 2.5),
}


@TIES
@pytest.mark.parametrize("name", BESIDE)
def test_arrays_may_be_changed_in_place_before_backward(name: str, ties: Ties) -> None:
    call, values = BESIDE[name]
    gradients = []
    for changes in (False, True):
        x = torch.tensor([1.0, 2, 3, 4], requires_grad=True)
        array = np.array(values, np.int64 if name in ("segment_ids", "offsets") else np.float32)
        loss = call(x, array, ties=ties).sum()
        pulled, pull = torch.func.vjp(lambda x, array=array: call(x, array, ties=ties).sum(), x.detach())
        if changes:
            array[...] = 3
        gradients += [*torch.autograd.grad(loss, x), *pull(torch.ones_like(pulled))]
    assert all(torch.equal(each, gradients[0]) for each in gradients)


# ----------------------------------------------------------------------------------------------- calls


def test_no_call_of_tensors_alone_takes_the_long_way(torch_way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that small calls bypass the dispatcher and, on the core, the planner.

    Test also that calls without gradients bypass autograd.Function.
    """

    def fail(*_: Any, **__: Any) -> None:
        raise AssertionError("a call went the long way")

    ids, two = torch.tensor([0, 0, 1]), torch.tensor([2.0, 2.0, 1.0])
    calls: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {  # with results and gradients
        "maximum": (lambda x: mo.maximum(x, two.to(x.dtype)), [2, 5, 2], [0, 1, 1]),
        "reduce_max": (lambda x: mo.reduce_max(x, 0), [5], [0, 1, 0]),
        "segment_max": (lambda x: mo.segment_max(x, ids, fill_mode="ZERO"), [5, 2], [0, 1, 1]),
    }
    scalars: list[Callable[[Any], Any]] = [
        lambda x: mo.reduce_max(x, initial=torch.tensor(3.0)),
        lambda x: mo.segment_max(x, ids, fill_value=torch.tensor(0.0)),
    ]
    for name in calls:
        monkeypatch.setattr(operators, name, fail)
        monkeypatch.setattr(any_device if torch_way == "core" else kernels, name, fail)
    x = torch.tensor([1.0, 5.0, 2.0])
    for call in scalars:
        assert call(x.clone().requires_grad_()).tolist() == call(x).tolist()
    if torch_way == "core":
        monkeypatch.setattr(eager, "plan_max", fail)
        monkeypatch.setattr(kernels, "engine", fail)
    for dtype, (call, expected, gradient) in product((torch.float32, torch.bfloat16), calls.values()):
        leaf = x.to(dtype, copy=True).requires_grad_()
        result = call(leaf)
        result.sum().backward()
        assert (result.tolist(), leaf.grad.tolist()) == (expected, gradient)
    for function in (functions.Maximum, functions.ReduceMax, functions.SegmentMax):
        assert "__signature__" in vars(function.forward)  # the cached signature, which apply() reads on each call
        monkeypatch.setattr(function, "setup_context", staticmethod(fail))
    for name in calls:
        monkeypatch.setattr(plain, name, fail)
    for call, expected, _ in calls.values():
        assert call(x).tolist() == expected
        with pytest.raises(AssertionError, match="the long way"):
            call(x.clone().requires_grad_())


def test_a_call_that_gradients_watch_has_the_same_errors() -> None:
    x, ids = torch.ones(3), torch.zeros(3, dtype=torch.int64)
    calls: tuple[Callable[[Any], Any], ...] = (
        lambda x: mo.maximum(x, x[:2]),
        lambda x: mo.maximum(x, ids),
        lambda x: mo.segment_max(x, ids, 2**45, fill_mode="ZERO"),
        lambda x: mo.segment_max(x, ids, 2**70, fill_mode="ZERO"),
    )
    for function in calls:
        message = []
        for tensor in (x, x.clone().requires_grad_()):
            with pytest.raises(errors.MaxopsError) as error:
                function(tensor)
            message.append((type(error.value), str(error.value)))
        assert message[0] == message[1]


# --------------------------------------------------------------------------------------------- half types


@pytest.mark.parametrize("torch_way", ["core"], indirect=True)
@pytest.mark.parametrize(("dtype", "ties"), HALF_TYPES)
@pytest.mark.parametrize("call", HALF_CALLS)
def test_the_forward_gradient_is_the_mean_of_all_that_tie(call: str, dtype: str, ties: Ties) -> None:
    """Test that tangents of one give a tangent of one for any type, and that backward gradients are the shares."""
    shape, function = HALF_CALLS[call]
    x = torch.ones(shape, dtype=getattr(torch, dtype))
    values, tangent = torch.func.jvp(lambda x: function(x, ties), (x,), (x,))
    assert tangent.dtype == values.dtype == x.dtype
    assert torch.equal(tangent, values)
    _, exact = torch.func.vjp(lambda x: function(x, ties), x.double())
    _, back = torch.func.vjp(lambda x: function(x, ties), x)
    one = torch.ones_like(values)
    torch.testing.assert_close(back(one)[0].double(), exact(one.double())[0], rtol=2.0**-7, atol=2.0**-23)


@TIES
def test_unchecked_offsets_that_are_wrong_have_no_gradient(ties: Ties) -> None:
    """Test that all segments are empty, so that no element gets a gradient, even if it equals the fill value."""
    for offsets in ([0, 3, 2], [1, 2, 2], [0, 1, 3]):
        x = torch.zeros(2, requires_grad=True)
        result = mo.segment_max(x, offsets=torch.tensor(offsets), fill_mode="ZERO", check_ids=False, ties=ties)
        assert torch.autograd.grad(result.sum(), x)[0].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_shares_are_summed_before_they_are_rounded(dtype: Any) -> None:
    """Test sums along axes of size 1 and missing axes, for types in which a sum of rounded shares would differ."""
    for count in range(100, 1000, 37):
        ones = torch.ones(count, dtype=dtype)
        for shape in ((), (1,)):
            x = torch.ones(shape, dtype=dtype, requires_grad=True)
            mo.maximum(x, ones, ones, ties="even").backward(ones)
            assert x.grad is not None
            assert x.grad.item() == torch.tensor(count / 3, dtype=torch.float32).to(dtype).item()


def _one(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs: call(*inputs).sum()


def _tangent(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *rest: torch.func.jvp(lambda x: call(x, *rest), (x,), (x,))[1]


@TIES
@pytest.mark.parametrize("shape", [(3,), (3, 2)], ids=str)
def test_gradients_without_members(shape: tuple[int, ...], ties: Ties) -> None:
    """Test empty batches, empty results, and data without rows."""
    drop: dict[str, Any] = {"sorted": False, "out_of_range": "drop", "fill_mode": "ZERO", "ties": ties}
    ids, x, row = torch.zeros(0, 3, dtype=torch.int64), torch.ones(shape), shape[1:]

    def by_ids(x: Any, ids: Any) -> Any:
        return mo.segment_max(x, ids, 2, **drop)

    def by_offsets(x: Any, offsets: Any) -> Any:
        return mo.segment_max(x, offsets=offsets, fill_mode="ZERO", ties=ties)

    for call in (by_ids, by_offsets):
        for data, dims in ((torch.ones(0, *shape), (0, 0)), (x, (None, 0))):
            assert torch.vmap(torch.func.grad(_one(call)), in_dims=dims)(data, ids).shape == (0, *shape)
            assert torch.vmap(_tangent(call), in_dims=dims)(data, ids).shape == (0, 2, *row)
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        no_segments = jacobian(lambda x: mo.segment_max(x, torch.tensor([0, 1, 1]), 0, **drop))(x)
        assert no_segments.shape == (0, *row, *shape)
        no_rows = jacobian(lambda x: by_ids(x, ids[0:0, 0]))(x[:0])
        assert no_rows.shape == (2, *row, 0, *row)
