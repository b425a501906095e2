"""Torch transforms: any batched arguments and dimensions, and every pair of nested transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.engine_torch import TENSORS
from helpers.engine_transforms import (
    ALL,
    IDS,
    MAPPED,
    ROWS,
    Function,
    Shapes,
    Trial,
    argument,
    batched,
    mapped,
    mapped_twice,
    nested,
    paired,
    squares,
)
from maxops import dtypes, errors
from maxops.engines.base import as_tuple

torch = pytest.importorskip("torch")

from maxops.engines.torch import vmap  # noqa: E402 - after the skip

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
func: Any = torch.func

# ---------------------------------------------------------------------------------------- vmap of each argument

DTYPES = (dtypes.FLOAT32, dtypes.BFLOAT16, dtypes.INT64)
HERE: dict[str, tuple[Function, Shapes]] = MAPPED | {
    "segments-indices": (
        lambda x, ids: mo.segment_max(x, ids, 5, fill_mode="ZERO", return_indices=True),
        ((ROWS, 2), "sorted"),
    ),
    "segments-fill": (
        lambda x, ids, f: mo.segment_max(x, ids, 5, fill_value=f, sorted=False, out_of_range="drop", **ALL),
        ((ROWS, 2), "dropped", ()),
    ),
}
# num_segments may be omitted only if all members of a batch have equal ids.
COUNTED: dict[str, tuple[Function, Shapes]] = {
    "segments-counted": (lambda x, ids: mo.segment_max(x, ids, fill_mode="ZERO", **ALL), ((ROWS, 2), "sorted")),
    "segments-counted-initial": (lambda x, ids, i: mo.segment_max(x, ids, initial=i, **ALL), ((ROWS,), "sorted", ())),
}
CALLS = HERE | COUNTED


def tensor(*arguments: Any) -> Any:
    return TENSORS.give(argument(*arguments))


def same(got: Any, expected: Any) -> None:
    assert_same_bits(TENSORS.take(got.contiguous()), np.asarray(expected, order="C"))


def check_mapped(trial: Trial) -> None:
    """Compare a batch's results with those of a loop, with the batch axis first and last."""
    function, axes, arguments, expected = trial
    given, correct = list(map(TENSORS.give, arguments)), expected(*arguments)
    first = as_tuple(torch.vmap(function, in_dims=axes)(*given))
    # torch accepts only 0 for a result without a batch axis, such as `empty`
    lasts = tuple(0 if part.dtype == np.bool else -1 for part in correct)
    last = as_tuple(torch.vmap(function, in_dims=axes, out_dims=lasts if len(lasts) > 1 else lasts[0])(*given))
    for one, other, place, part in zip(first, last, lasts, correct, strict=True):
        same(one, part)
        same(other, np.moveaxis(part, 0, place))


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_is_its_members_one_by_one(name: str) -> None:
    """Test every set of batched arguments, and every position of the batch axis in each."""
    for trial in mapped(*CALLS[name], DTYPES, same_ids=name in COUNTED):
        check_mapped(trial)


@pytest.mark.parametrize("name", CALLS)
def test_a_batch_of_batches_is_its_members_one_by_one(name: str) -> None:
    """Test each argument in the outer batch, the inner batch, both or neither."""
    for trial in mapped_twice(torch.vmap, *CALLS[name], DTYPES, same_ids=name in COUNTED):
        check_mapped(trial)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("name", HERE)
def test_a_batch_without_members_has_the_shapes_and_types_of_one(name: str, device: str) -> None:
    function, shapes = HERE[name]
    for dims in product((None, 0), repeat=len(shapes)):
        if 0 not in dims:
            continue
        one = [
            tensor(shape, () if dim is None else (1,), dtypes.FLOAT16, 1).to(device)
            for shape, dim in zip(shapes, dims, strict=True)
        ]
        none = [a if dim is None else a[:0] for a, dim in zip(one, dims, strict=True)]
        batch = torch.vmap(function, in_dims=dims)
        for got, expected in zip(as_tuple(batch(*none)), as_tuple(batch(*one)), strict=True):
            assert (got.dtype, got.shape, got.device) == (expected.dtype, (0, *expected.shape[1:]), expected.device)


def test_what_a_batch_refuses() -> None:
    ids, ones = torch.tensor(IDS["sorted"]), torch.ones(2, 4)
    with pytest.raises(errors.EngineError, match="requires num_segments if vmap batches segment_ids"):
        torch.vmap(lambda ids: mo.segment_max(ones[0], ids, fill_mode="ZERO"))(ids)
    with pytest.raises(errors.NumSegmentsError, match="num_segments must be a Python integer"):
        torch.vmap(lambda n: mo.segment_max(ones[0], ids[0], n, fill_mode="ZERO"))(torch.tensor([6, 6]))
    with pytest.raises(errors.SegmentIdsError, match="must be non-decreasing, got 1 after 2 at position 2"):
        torch.vmap(lambda x: mo.segment_max(x, torch.tensor([0, 2, 1, 1]), fill_mode="ZERO"))(ones)
    with pytest.raises(errors.AxesError, match="data of rank 1, got 1"):
        torch.vmap(lambda x: mo.reduce_max(x, 1))(ones)


@pytest.mark.parametrize("initial", [None, 0, "one"], ids=str)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0)], ids=str)
def test_a_batch_of_the_operator_itself(shape: tuple[int, ...], initial: Any) -> None:
    """Test the operator as graphs call it: without axes, with negative axes, and with axes in any order."""
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
            x = tensor(shape, (3,), DTYPES[0], rank).movedim(0, place)
            got = as_tuple(torch.vmap(call, in_dims=(place, 0 if initial == 0 else None))(x, first))
            for k, member in enumerate(x.unbind(place)):
                alone = as_tuple(call(member, first[k] if first is not None and first.ndim else first))
                for part, expected in zip(got, alone, strict=True):
                    same(part[k], TENSORS.take(expected))


def test_a_batch_of_data_is_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that data with a batch axis is one call. Only other batched arguments need one call per member."""

    def fail(*_: Any) -> Any:
        raise AssertionError("one by one")

    monkeypatch.setattr(vmap, "_one_by_one", fail)
    for name, (function, shapes) in CALLS.items():
        dims = (0, *(0 if name.startswith("maximum") else None for _ in shapes[1:]))
        arguments = [
            tensor(shape, () if dim is None else (3,), DTYPES[0], 1) for shape, dim in zip(shapes, dims, strict=True)
        ]
        torch.vmap(function, in_dims=dims)(*arguments)


def test_no_operator_is_left_to_the_loop_of_torch() -> None:
    """Test that all operators have batching rules, also for scalars in a graph that all members share."""

    def scalar(x: Any) -> Any:
        return torch.ops.maxops.scalar(x, 2.5, "maximum", "input 1", "input 0")

    torch._C._functorch._set_vmap_fallback_enabled(False)
    try:
        for x in (torch.ones(3, 2), torch.ones(0, 2)):
            assert torch.equal(torch.vmap(scalar)(x), torch.full((len(x),), 2.5))
    finally:
        torch._C._functorch._set_vmap_fallback_enabled(True)


# ------------------------------------------------------------------------------------------ nested transforms

PAIRED = paired(torch, torch.from_numpy, torch.Tensor.detach)


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


def outcome(function: Function, x: Any) -> Any:
    """Return the result, or torch's error for unsupported nesting."""
    try:
        return function(x)
    except RuntimeError as error:
        return type(error), str(error)


def in_turn(names: tuple[str, ...], step: int) -> Iterator[tuple[int, str, Function, Function]]:
    """Yield the first pair of functions and, depending on the transforms, each `step`-th of the others."""
    turn = sum(map([*TRANSFORMS].index, names))
    for count, (name, pair) in enumerate(PAIRED.items()):
        if count == 0 or (count + turn) % step == 0:
            yield count, name, *pair


def check_nested(names: tuple[str, ...], step: int = 1) -> None:
    x = torch.from_numpy(batched(names))
    for count, name, ours, theirs in in_turn(names, step):
        ties = ("even", "first")[(count + len(names[0])) % 2]
        got = outcome(nested(TRANSFORMS, lambda x, f=ours, t=ties: f(x, t), names), x)
        expected = outcome(nested(TRANSFORMS, lambda x, f=theirs, t=ties: f(x, t), names), x)
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
        check_nested((*inner, outer), step=3)


def calls(names: tuple[str, ...]) -> Function:
    """Return some calls inside these transforms, because each takes a second."""

    def every(x: Any) -> list[Any]:
        return [
            nested(TRANSFORMS, lambda x, f=ours, t=("even", "first")[count % 2]: f(x, t), names)(x)
            for count, _, ours, _ in in_turn(names, 3)
        ]

    return every


# Torch cannot trace forward_ad, or a module that is created in the function. Its own [:1] fails under inference_mode.
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
    function, x = calls(names), torch.from_numpy(batched(names))
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

    x = torch.from_numpy(batched(names))
    program = torch.export.export(Model(), (x,), strict=False)
    for part, expected in zip(program.module()(x + 1), calls(names)(x + 1), strict=True):
        assert torch.equal(part, expected)


@pytest.mark.release
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_any_three_transforms_in_each_other(outer: str) -> None:
    for inner in product(THREE, repeat=2):
        check_nested((*inner, outer))
