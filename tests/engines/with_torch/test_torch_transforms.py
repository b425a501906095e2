"""Torch transforms: any batched arguments and dimensions, and each transform inside each other one.

A loop over the members verifies a batch. The same transforms of a formula with torch operators verify derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits, mixed
from helpers.engine_adapters import ADAPTERS
from maxops import dtypes

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
func: Any = torch.func

TENSORS = next(adapter for adapter in ADAPTERS if adapter.name == "torch")
ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}
Function = Callable[..., Any]


def results(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


# ---------------------------------------------------------------------------------------- vmap of each argument

DTYPES = (dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.INT64)
ROWS = 4
IDS = {
    "sorted": [[0, 0, 2, 4], [1, 1, 1, 1], [0, 2, 3, 3], [2, 3, 3, 3]],
    "any": [[4, 0, 2, 0], [1, 3, 1, 1], [3, 2, 3, 0], [0, 0, 4, 4]],
    "dropped": [[4, -1, 2, 9], [1, 3, -5, 1], [7, 7, 7, 7], [0, 0, 4, 4]],
    "offsets": [[0, 1, 1, 4], [0, 0, 0, 4], [0, 4, 4, 4], [0, 1, 2, 4]],
}

# name -> the call, and the shape of each argument, or a name in IDS: ids or offsets for each member of a batch.
MAPPED: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "maximum": (mo.maximum, ((2, 3), (3,))),
    "maximum-ranks": (lambda a, b, c: mo.maximum(a, 1, b, c), ((), (2, 1), (3,))),
    "maximum-ties": (lambda a, b: mo.maximum(a, b, ties="first"), ((1, 3), (2, 1))),
    "reduce": (mo.reduce_max, ((2, 3),)),
    "reduce-negative": (lambda x: mo.reduce_max(x, -2, keepdims=False, return_indices=True), ((2, 3),)),
    "reduce-two": (lambda x, i: mo.reduce_max(x, (2, 0), initial=i, return_indices=True), ((2, 3, 2), ())),
    "reduce-initial": (lambda x, i: mo.reduce_max(x, 0, keepdims=False, initial=i), ((2, 3), ())),
    "reduce-all-initial": (lambda x, i: mo.reduce_max(x, initial=i, return_indices=True), ((2, 3), ())),
    "reduce-rank-0": (lambda x, i: mo.reduce_max(x, initial=i, return_indices=True), ((), ())),
    "reduce-rank-0-alone": (lambda x: mo.reduce_max(x, keepdims=False, return_indices=True), ((),)),
    "reduce-noop": (lambda x: mo.reduce_max(x, noop_with_empty_axes=True, return_indices=True), ((2, 3),)),
    "reduce-noop-axes": (lambda x: mo.reduce_max(x, 1, noop_with_empty_axes=True), ((2, 3),)),
    "reduce-axis": (lambda x: mo.reduce_max(x, axis=-1), ((2, 3),)),
    "reduce-nothing": (lambda x: mo.reduce_max(x, 1, return_indices=True), ((2, 0),)),
    "segments": (lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="LOWEST", **ALL), ((ROWS, 2), "sorted")),
    "segments-fewer": (lambda x, ids: mo.segment_max(x, ids, 3, fill_mode="ZERO"), ((ROWS,), "sorted")),
    "segments-indices": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", return_indices=True),
        ((ROWS, 2), "sorted"),
    ),
    "segments-empty": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", return_empty=True),
        ((ROWS, 1, 2), "sorted"),
    ),
    "segments-any": (
        lambda x, ids, i: mo.segment_max(x, ids, 5, initial=i, sorted=False, **ALL),
        ((ROWS, 2), "any", ()),
    ),
    "segments-dropped": (
        lambda x, ids, f: mo.segment_max(x, ids, 5, fill_value=f, sorted=False, out_of_range="drop", **ALL),
        ((ROWS, 2), "dropped", ()),
    ),
    "segments-unchecked": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", check_ids=False, **ALL),
        ((ROWS,), "sorted"),
    ),
    "offsets": (lambda x, o: mo.segment_max(x, offsets=o, fill_mode="LOWEST", **ALL), ((ROWS, 2), "offsets")),
    "offsets-padded": (
        lambda x, o, i: mo.segment_max(x, offsets=o, num_segments=5, initial=i, **ALL),
        ((ROWS,), "offsets", ()),
    ),
    "offsets-fill": (
        lambda x, o, f: mo.segment_max(x, offsets=o, num_segments=4, fill_value=f, **ALL),
        ((ROWS, 2), "offsets", ()),
    ),
}
# Without num_segments, only if all members of a batch have equal ids.
COUNTED: dict[str, tuple[Function, tuple[Any, ...]]] = {
    "segments-counted": (lambda x, ids: mo.segment_max(x, ids, fill_mode="ZERO", **ALL), ((ROWS, 2), "sorted")),
    "segments-counted-initial": (lambda x, ids, i: mo.segment_max(x, ids, initial=i, **ALL), ((ROWS,), "sorted", ())),
}


def argument(shape: Any, sizes: tuple[int, ...], dtype: Any, seed: int) -> Any:
    """Return an argument of a call, with leading batch axes."""
    if isinstance(shape, str):
        ids = np.resize(np.array(IDS[shape]), (*sizes, len(IDS[shape][0])))
        return torch.tensor(ids, dtype=(torch.int64, torch.int32)[seed % 2])
    return TENSORS.give(mixed(dtype, (*sizes, *shape), seed, nans=0.2))


def places(shape: Any) -> list[int | None]:
    """Return the positions of the batch axis in an argument: none, first, second and last."""
    return [None, 0, -1] if shape == () else [None, 0, 1, -1]


def same(got: Any, expected: Any) -> None:
    assert got.dtype is expected.dtype
    assert_same_bits(TENSORS.take(got.contiguous()), TENSORS.take(expected.contiguous()))


def loop(function: Function, dims: tuple[int | None, ...]) -> Function:
    """Return a loop that is equivalent to torch.vmap."""

    def mapped(*arguments: Any) -> tuple[Any, ...]:
        size = next(a.shape[dim] for a, dim in zip(arguments, dims, strict=True) if dim is not None)
        members = [
            results(function(*(a if dim is None else a.select(dim, k) for a, dim in zip(arguments, dims, strict=True))))
            for k in range(size)
        ]
        return tuple(map(torch.stack, zip(*members, strict=True)))

    return mapped


def check_mapped(function: Function, one_by_one: Function, dims: tuple[int | None, ...], arguments: list[Any]) -> None:
    """Compare a batch's results with those of a loop, with the batch axis first and last."""
    correct = one_by_one(*arguments)
    first = results(torch.vmap(function, in_dims=dims)(*arguments))
    # torch accepts only 0 for a result without a batch axis, such as `empty`
    lasts = tuple(0 if part.dtype is torch.bool else -1 for part in correct)
    last = results(torch.vmap(function, in_dims=dims, out_dims=lasts if len(lasts) > 1 else lasts[0])(*arguments))
    for one, other, expected in zip(first, last, correct, strict=True):
        same(one, expected)
        same(other, expected if expected.dtype is torch.bool else expected.movedim(0, -1))


CALLS = MAPPED | COUNTED


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_is_its_members_one_by_one(name: str) -> None:
    """Test every set of batched arguments, and every position of the batch axis in each."""
    function, shapes = CALLS[name]
    choices = [[None] if name in COUNTED and isinstance(shape, str) else places(shape) for shape in shapes]
    for count, dims in enumerate(product(*choices)):
        if not any(dim is not None for dim in dims):
            continue
        dtype, size = DTYPES[count % 3], (3, 1)[count % 5 == 4]
        arguments = [
            argument(shape, () if dim is None else (size,), dtype, seed)
            for seed, (shape, dim) in enumerate(zip(shapes, dims, strict=True), count)
        ]
        moved = [a if dim is None else a.movedim(0, dim) for a, dim in zip(arguments, dims, strict=True)]
        check_mapped(function, loop(function, dims), dims, moved)


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_of_batches_is_its_members_one_by_one(name: str) -> None:
    """Test each argument in the outer batch, the inner batch, both or neither."""
    function, shapes = CALLS[name]
    both = [(None, None), (0, None), (None, -1), (-1, 0)]
    choices = [both[:1] if name in COUNTED and isinstance(shape, str) else both for shape in shapes]
    for count, dims in enumerate(product(*choices)):
        outer, inner = tuple(dim for dim, _ in dims), tuple(dim for _, dim in dims)
        if set(outer) == {None} or set(inner) == {None}:
            continue
        dtype = DTYPES[count % 3]
        arguments = []
        for seed, (shape, (out, into)) in enumerate(zip(shapes, dims, strict=True), count):
            sizes = (2,) * (out is not None) + (3,) * (into is not None)
            value = argument(shape, sizes, dtype, seed)
            if into is not None:
                value = value.movedim(len(sizes) - 1, value.ndim - 1 if into else len(sizes) - 1)
            arguments.append(value if out is None else value.movedim(0, out))
        check_mapped(torch.vmap(function, in_dims=inner), loop(loop(function, inner), outer), outer, arguments)


@pytest.mark.parametrize("name", MAPPED)
def test_a_batch_without_members_has_the_shapes_and_types_of_one(name: str) -> None:
    function, shapes = MAPPED[name]
    for dims in product((None, 0), repeat=len(shapes)):
        if 0 not in dims:
            continue
        one = [
            argument(shape, () if dim is None else (1,), dtypes.FLOAT16, 1)
            for shape, dim in zip(shapes, dims, strict=True)
        ]
        none = [a if dim is None else a[:0] for a, dim in zip(one, dims, strict=True)]
        mapped = torch.vmap(function, in_dims=dims)
        for got, expected in zip(results(mapped(*none)), results(mapped(*one)), strict=True):
            assert (got.dtype, got.shape, got.device) == (expected.dtype, (0, *expected.shape[1:]), expected.device)


@pytest.mark.parametrize("initial", [None, 0, "one"], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0)], ids=str)
def test_a_batch_of_the_operator_itself(shape: tuple[int, ...], initial: Any) -> None:
    """Test operators as in graphs, with the original axes: none, negative ones, in any order."""
    import maxops.engines.torch  # noqa: F401, PLC0415 - after the skip

    rank = len(shape)
    sets: list[Any] = [None, [], *([axis] for axis in range(-rank, rank)), *[[-1, 0], [1, -2]] * (rank > 1)]
    first = None if initial is None else torch.tensor([2.0, -2.0, 0.0]) if initial == 0 else torch.tensor(0.5)
    for axes, keepdims, noop, indices in product(sets, *[(False, True)] * 3):
        if noop and not axes and initial is not None:  # rejected
            continue

        def call(x: Any, i: Any, options: tuple[Any, ...] = (axes, keepdims, noop), indices: bool = indices) -> Any:
            values, places = torch.ops.maxops.reduce_max(x, *options, i, indices, "even")
            return (values, places) if indices else values

        for place in {0, rank}:
            x = argument(shape, (3,), DTYPES[0], rank).movedim(0, place)
            dims = (place, 0 if initial == 0 else None)
            for part, expected in zip(
                results(torch.vmap(call, in_dims=dims)(x, first)), loop(call, dims)(x, first), strict=True
            ):
                same(part, expected)


def test_a_batch_of_data_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that data with a batch axis is one call; only other batched arguments need one call per member."""
    from maxops.engines.torch import vmap  # noqa: PLC0415 - after the skip

    def fail(*_: Any) -> Any:
        raise AssertionError("one by one")

    monkeypatch.setattr(vmap, "_one_by_one", fail)
    for name, (function, shapes) in CALLS.items():
        dims = (0, *(0 if name.startswith("maximum") else None for _ in shapes[1:]))
        arguments = [
            argument(shape, () if dim is None else (3,), DTYPES[0], 1) for shape, dim in zip(shapes, dims, strict=True)
        ]
        torch.vmap(function, in_dims=dims)(*arguments)


def test_no_operator_is_left_to_the_loop_of_torch() -> None:
    """Test that all operators have batching rules, also for scalars in a graph that all members share."""
    import maxops.engines.torch  # noqa: F401, PLC0415 - after the skip

    def scalar(x: Any) -> Any:
        return torch.ops.maxops.scalar(x, 2.5, "maximum", "input 1", "input 0")

    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        for x in (torch.ones(3, 2), torch.ones(0, 2)):
            assert torch.equal(torch.vmap(scalar)(x), torch.full((len(x),), 2.5))
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)


# ------------------------------------------------------------------------------------- each transform in each other

# Values with ties of two and of four elements, so that even shares are exact.
X = torch.tensor([[3.0, 1.0, 3.0], [1.0, 5.0, -1.0], [2.0, 5.0, 0.0], [2.0, 4.0, 6.0]], dtype=torch.float64)
ROW = torch.tensor([2.0, 5.0, -2.0], dtype=torch.float64)
SORTED, MIXED, BOUNDS = torch.tensor([0, 0, 2, 2]), torch.tensor([2, -1, 2, 0]), torch.tensor([0, 1, 1, 4])


def held(elements: Any, mask: Any, axis: Any, ties: str, start: Any = -torch.inf, empty: float = -torch.inf) -> Any:
    """Return the maxima of the masked elements along an axis, and their indices, by torch operators.

    Each maximum is a constant, to which the elements that are equal to it add their derivatives.
    """
    elements = torch.where(mask, elements, -torch.inf) if mask is not None else elements
    fixed = elements.detach()
    top = fixed.amax(axis, keepdim=True)
    holds = (fixed == top) & (top >= start) & (top > -torch.inf)
    first = holds & (holds.cumsum(axis) == 1)
    share = holds / holds.sum(axis, keepdim=True).clamp(min=1) if ties == "even" else first.to(elements.dtype)
    moved = (torch.where(holds, elements - fixed, 0) * share).sum(axis)
    top = top.squeeze(axis)
    value = torch.maximum(torch.where(top == -torch.inf, empty, top), torch.as_tensor(start, dtype=top.dtype)) + moved
    places = torch.arange(elements.shape[axis]).reshape([-1] + [1] * (elements.ndim - axis - 1))
    index = torch.where(first, places, 0).sum(axis) - (~first.any(axis)).to(torch.int64)
    return value, index


def in_segments(x: Any, ids: Any, count: int, **how: Any) -> Any:
    mask = ids[None] == torch.arange(count)[:, None]
    return held(x[None].expand(count, *x.shape), mask.reshape(*mask.shape, *[1] * (x.ndim - 1)), 1, **how)


def both(pair: Any) -> Any:
    """Combine a value and an index in one tensor."""
    value, index = pair
    return value + index.to(value.dtype) / 8


def own_ids(x: Any) -> Any:
    """Return ids of the rows that depend on their values and differ between members of a batch."""
    return (x[:, 0] > 1.5).to(torch.int64)


def own_offsets(x: Any) -> Any:
    """Return offsets that depend on the values and differ between members of a batch."""
    count = own_ids(x).sum()
    return torch.stack([count * 0, count, count * 0 + 4])


def of_maximum(*tensors: Any, ties: str) -> Any:
    return held(torch.stack(torch.broadcast_tensors(*tensors)), None, 0, ties)[0]


# name -> the call of a tensor of shape (4, 3), and the same with torch operators.
PAIRED: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = {
    "maximum": (
        lambda x, ties: mo.maximum(x, ROW, 2.0 * x[:1], 0.5, ties=ties),
        lambda x, ties: of_maximum(x, ROW, 2.0 * x[:1], torch.tensor(0.5), ties=ties),
    ),
    "reduce": (
        lambda x, ties: both(mo.reduce_max(x, 0, keepdims=False, return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 0, ties)),
    ),
    "reduce-initial": (
        lambda x, ties: both(mo.reduce_max(x, -1, keepdims=True, initial=3.0, return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 1, ties, start=3.0))[:, None],
    ),
    "reduce-own-initial": (
        lambda x, ties: both(mo.reduce_max(x, 1, keepdims=False, initial=x[0, 0], return_indices=True, ties=ties)),
        lambda x, ties: both(held(x, None, 1, ties, start=x[0, 0].detach())),
    ),
    "segments-own-ids": (
        lambda x, ties: both(
            mo.segment_max(x, own_ids(x), 3, fill_mode="ZERO", sorted=False, return_indices=True, ties=ties)
        ),
        lambda x, ties: both(in_segments(x, own_ids(x), 3, ties=ties, empty=0.0)),
    ),
    "own-offsets": (
        lambda x, ties: both(
            mo.segment_max(x, offsets=own_offsets(x), initial=x[1, 1], return_indices=True, ties=ties)
        ),
        lambda x, ties: both(
            in_segments(x, (torch.arange(4) >= own_offsets(x)[1]).long(), 2, ties=ties, start=x[1, 1].detach())
        ),
    ),
    "reduce-all": (
        lambda x, ties: both(mo.reduce_max(x, ties=ties, return_indices=True)),
        lambda x, ties: both(held(x.reshape(12), None, 0, ties)).reshape(1, 1),
    ),
    "noop": (
        lambda x, ties: mo.reduce_max(x, noop_with_empty_axes=True, ties=ties),
        lambda x, ties: x * 1,
    ),
    "segments": (
        lambda x, ties: both(mo.segment_max(x, SORTED, 4, fill_mode="ZERO", return_indices=True, ties=ties)),
        lambda x, ties: both(in_segments(x, SORTED, 4, ties=ties, empty=0.0)),
    ),
    "segments-dropped": (
        lambda x, ties: both(
            mo.segment_max(
                *(x, MIXED, 3), sorted=False, out_of_range="drop", initial=2.5, return_indices=True, ties=ties
            )
        ),
        lambda x, ties: both(in_segments(x, MIXED, 3, ties=ties, start=2.5)),
    ),
    "offsets": (
        lambda x, ties: both(mo.segment_max(x, offsets=BOUNDS, fill_value=-7.0, return_indices=True, ties=ties)),
        lambda x, ties: both(in_segments(x, torch.tensor([0, 2, 2, 2]), 3, ties=ties, empty=-7.0)),
    ),
}


def squares(function: Function) -> Function:
    """Return a scalar whose second derivatives are not all zero."""
    return lambda x: (function(x) ** 2).sum()


def backwards(function: Function) -> Function:
    """Return the gradient of a leaf by autograd."""

    def gradient(x: Any) -> Any:
        leaf = x.clone().requires_grad_()
        result = squares(function)(leaf)
        return torch.autograd.grad(result, leaf)[0] if result.requires_grad else torch.zeros_like(x)

    return gradient


def forwards(function: Function) -> Function:
    from torch.autograd import forward_ad  # noqa: PLC0415

    def tangent(x: Any) -> Any:
        with forward_ad.dual_level():
            result, moved = forward_ad.unpack_dual(function(forward_ad.make_dual(x, x + 1)))
            return torch.zeros_like(result) if moved is None else moved

    return tangent


def functional_call(function: Function) -> Function:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(()))

        def forward(self, x: Any) -> Any:
            return function(x + self.weight)

    model = Model()
    return lambda x: torch.func.functional_call(model, {"weight": torch.ones((), dtype=x.dtype)}, (x,))


def within(context: Callable[[], Any]) -> Callable[[Function], Function]:
    def transform(function: Function) -> Function:
        def run(x: Any) -> Any:
            with context():
                return function(x)

        return run

    return transform


TRANSFORMS: dict[str, Callable[[Function], Function]] = {
    "vmap": func.vmap,
    "vmap-last": lambda function: func.vmap(function, in_dims=-1, out_dims=1),
    "grad": lambda function: func.grad(squares(function)),
    "vjp": lambda function: lambda x: func.vjp(function, x)[1](function(x).detach() + 1)[0],
    "jvp": lambda function: lambda x: func.jvp(function, (x,), (x + 1,))[1],
    "jacrev": func.jacrev,
    "jacfwd": func.jacfwd,
    "hessian": lambda function: func.hessian(squares(function)),
    "functional_call": functional_call,
    "no_grad": within(torch.no_grad),
    "autocast": within(lambda: torch.autocast("cpu", torch.bfloat16)),
    "checkpoint": lambda function: lambda x: torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False),
    "autograd": backwards,
    "forward_ad": forwards,
    "inference_mode": within(torch.inference_mode),
    "dlpack": lambda function: lambda x: function(torch.from_dlpack(x)),
}
# Transforms on whole tensors, not on those that torch.func wraps.
OUTERMOST = ("checkpoint", "autograd", "forward_ad", "inference_mode", "dlpack")


def nested(function: Function, names: tuple[str, ...]) -> Function:
    """Apply transforms to a function; the first one is the innermost."""
    for name in names:
        function = TRANSFORMS[name](function)
    return function


def batched(x: Any, names: tuple[str, ...]) -> Any:
    """Return a tensor with a batch axis for each vmap."""
    for name in names:
        if name.startswith("vmap"):
            x = torch.stack([x, x.roll(1, 0), 1 - x], -1 if name == "vmap-last" else 0)
    return x


def outcome(function: Function, x: Any) -> Any:
    """Return the result, or torch's error for unsupported nesting."""
    try:
        return function(x)
    except RuntimeError as error:
        return type(error), str(error)


def check_nested(names: tuple[str, ...]) -> None:
    x = batched(X, names)
    for count, (name, (ours, theirs)) in enumerate(PAIRED.items()):
        ties = ("even", "first")[(count + len(names[0])) % 2]
        got = outcome(nested(lambda x, f=ours, t=ties: f(x, t), names), x)
        expected = outcome(nested(lambda x, f=theirs, t=ties: f(x, t), names), x)
        if isinstance(expected, tuple):
            assert got == expected, name
        else:
            assert (got.dtype, got.shape) == (expected.dtype, expected.shape), name
            assert torch.equal(got, expected), name


@pytest.mark.parametrize("outer", TRANSFORMS)
def test_each_transform_in_each_other(outer: str) -> None:
    for inner in TRANSFORMS:
        if inner not in OUTERMOST:
            check_nested((inner, outer))


THREE = ("vmap", "vmap-last", "grad", "vjp", "jvp", "jacrev", "jacfwd")


@pytest.mark.parametrize("outer", ["vmap", "jvp", "jacrev"])
def test_three_transforms_in_each_other(outer: str) -> None:
    for inner in product(("vmap-last", "grad", "jvp"), repeat=2):
        check_nested((*inner, outer))


def calls(names: tuple[str, ...]) -> Function:
    """Return the first and every third call, in turn, inside these transforms; each compiles for a second."""
    turn = sum(map(list(TRANSFORMS).index, names))

    def every(x: Any) -> list[Any]:
        return [
            nested(lambda x, f=ours, t=("even", "first")[place % 2]: f(x, t), names)(x)
            for place, (ours, _) in enumerate(PAIRED.values())
            if place == 0 or (place + turn) % 3 == 0
        ]

    return every


# Torch cannot trace a module that is made inside, or forward_ad; its own [:1] fails under inference_mode.
NOT_COMPILED = ("functional_call", "autograd", "forward_ad", "dlpack", "inference_mode")
COMPILED = [
    *[(name,) for name in TRANSFORMS if name not in NOT_COMPILED],
    *[("vmap-last", "jvp"), ("jvp", "vmap"), ("grad", "vmap"), ("vmap", "grad")],
]


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, marks=pytest.mark.exhaustive) if names != ("vmap-last", "jvp") else names
        for names in COMPILED
    ],
    ids="-".join,
)
@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("eager", marks=pytest.mark.release)])
def test_transforms_in_a_compiled_function(backend: str, names: tuple[str, ...]) -> None:
    function, x = calls(names), batched(X, names)
    try:
        got = torch.compile(function, fullgraph=True, backend=backend)(x)
    finally:
        torch._dynamo.reset()
    for part, expected in zip(got, function(x), strict=True):
        assert part.dtype is expected.dtype
        assert torch.equal(part, expected)


# Torch cannot export a torch.autograd.Function under torch.func.
@pytest.mark.exhaustive
@pytest.mark.parametrize("names", [("no_grad",), ("autocast",), ("checkpoint",)], ids="-".join)
def test_transforms_in_an_exported_program(names: tuple[str, ...]) -> None:
    class Model(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return calls(names)(x)

    x = batched(X, names)
    program = torch.export.export(Model(), (x,), strict=False)
    for part, expected in zip(program.module()(x + 1), calls(names)(x + 1), strict=True):
        assert torch.equal(part, expected)


@pytest.mark.release
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_any_three_transforms_in_each_other(outer: str) -> None:
    for inner in product(THREE, repeat=2):
        check_nested((*inner, outer))
