"""`maxops.compat.torch`, compared with PyTorch's functions: results, dtypes, classes, gradients, `out` and errors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from maxops.engines.base import as_tuple

torch = pytest.importorskip("torch")

from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from maxops.compat import torch as compat  # noqa: E402

FLOATS = [torch.half, torch.bfloat16, torch.float, torch.double]
DTYPES = [*FLOATS, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.bool]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (3, 5), (2, 1, 4), (2, 3, 2, 2)]
Call = Callable[[Any], Any]  # a call that takes a module

pytestmark = pytest.mark.filterwarnings("ignore:index_reduce:UserWarning", "ignore:.*segment_reduce.*beta:UserWarning")


def drawn(shape: tuple[int, ...], dtype: Any, seed: int, *, nans: bool = False) -> Any:
    """Return small integers with many ties. Some floats are infinite or NaN."""
    random = np.random.default_rng(seed)
    values = random.integers(-3, 4, shape).astype(np.float64)
    if nans and dtype.is_floating_point:
        values = np.where(random.random(shape) < 0.2, np.nan, values)
        values = np.where(random.random(shape) < 0.1, np.inf, values)
    return torch.tensor(np.abs(values) if dtype is torch.uint8 else values).to(dtype) + torch.zeros((), dtype=dtype)


def same(name: str, *args: Any, **options: Any) -> None:
    ours, theirs = (getattr(module, name)(*args, **options) for module in (compat, torch))
    assert type(ours) is type(theirs)
    for one, other in zip(as_tuple(ours), as_tuple(theirs), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)


def outcome(call: Call, module: Any) -> Any:
    try:
        return call(module)
    except Exception as error:  # noqa: BLE001  (the class is what is compared)
        return error


def dims(shape: tuple[int, ...]) -> list[int]:
    return [*range(-len(shape), len(shape))] or [0, -1]


@pytest.mark.parametrize("name", ["maximum", "fmax", "max"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_two_tensors(dtype: Any, name: str) -> None:
    for other in DTYPES:
        for one, two in [*zip(SHAPES, SHAPES, strict=True), ((3, 1), (5,)), ((), (4,)), ((0, 2), (2,)), ((0,), (1,))]:
            same(name, drawn(one, dtype, 1, nans=True), drawn(two, other, 2, nans=True))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, ...], dtype: Any) -> None:
    x = drawn(shape, dtype, 3, nans=True)
    same("max", x)
    same("amax", x)
    for keepdim in (False, True):
        same("amax", x, (), keepdim)
        for dim in dims(shape):
            same("amax", x, dim, keepdim=keepdim)
            same("max", x, dim, keepdim)
            same("max", x, dim=dim, keepdim=keepdim)
        if dtype is not torch.bool:
            for some in (None, *dims(shape)):
                same("argmax", x, some, keepdim)
        for pair in product(range(len(shape)), repeat=2):
            if pair[0] != pair[1]:
                same("amax", x, pair, keepdim)


def scattering(shape: tuple[int, ...], dim: int, dtype: Any) -> list[tuple[Any, Any, Any]]:
    """Return inputs, indices and sources of one rank. The index has the shape of the source, or is smaller."""
    cases = []
    for smaller in (0, 1):
        sizes = [max(size - smaller, 0) for size in shape]
        rows = [5 if axis == dim % len(shape) else size for axis, size in enumerate(shape)]
        index = torch.tensor(np.random.default_rng(4).integers(0, 5, sizes))
        cases.append((drawn(tuple(rows), dtype, 5, nans=True), index, drawn(shape, dtype, 6, nans=True)))
    return cases


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (0,), (0, 3)], ids=str)
def test_scatter_and_index(shape: tuple[int, ...], dtype: Any, include_self: bool) -> None:
    for dim in dims(shape):
        for given, index, src in scattering(shape, dim, dtype):
            same("scatter_reduce", given, dim, index, src, "amax", include_self=include_self)
        ids = torch.tensor(np.random.default_rng(7).integers(0, 5, shape[dim]))
        for index in (ids, ids.int()) if dtype is not torch.bool else ():  # PyTorch does not accept bool there
            same("index_reduce", given, dim, index, src, "amax", include_self=include_self)


def test_scattering_to_a_scalar() -> None:
    scalar, index = torch.tensor(1.0), torch.tensor([0])
    same("scatter_reduce", scalar, 0, index, torch.tensor([5.0]), "amax")
    same("index_reduce", scalar, 0, index, torch.tensor(5.0), "amax")


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_segments(dtype: Any) -> None:
    for shape in ((6,), (6, 3), (6, 2, 2)):
        x = drawn(shape, dtype, 8, nans=True)
        for lengths in ([6], [2, 0, 4], [0, 0, 6, 0], [1] * 6):
            given = torch.tensor(lengths)
            offsets = torch.cat([torch.zeros(1, dtype=torch.long), given.cumsum(0)])
            for initial in (None, 1.0, -5.0, 2, True, 4097, *map(torch.tensor, (3, 0.5)), np.float64(0.1), np.int8(3)):
                same("segment_reduce", x, "max", lengths=given, initial=initial)
                same("segment_reduce", x, "max", offsets=offsets, initial=initial)
    several = drawn((2, 4), dtype, 9)
    same("segment_reduce", several, "max", lengths=torch.tensor([[1, 3], [2, 2]]), axis=1)
    same("segment_reduce", several, "max", lengths=torch.tensor([1]), unsafe=True)


INDEX = torch.tensor([[0, 2, 0], [1, 1, 0]])
GRADIENTS: dict[str, tuple[int, Callable[..., Any]]] = {
    "maximum": (2, lambda m, a, b: m.maximum(a, b)),
    "maximum-broadcast": (2, lambda m, a, b: m.maximum(a, b[0])),
    "fmax": (2, lambda m, a, b: m.fmax(a, b)),
    "max-of-two": (2, lambda m, a, b: m.max(a, b)),
    "max": (1, lambda m, a: m.max(a)),
    "max-dim": (1, lambda m, a: m.max(a, 1)[0]),
    "max-scalar": (1, lambda m, a: m.max(a[0, 0], 0)[0]),
    "amax": (1, lambda m, a: m.amax(a)),
    "amax-dim": (1, lambda m, a: m.amax(a, 0, True)),
    "scatter": (2, lambda m, a, b: m.scatter_reduce(a, 1, INDEX, b, "amax")),
    "scatter-0": (2, lambda m, a, b: m.scatter_reduce(a[:, 0], 0, INDEX[1], b[0], "amax")),
    "scatter-alone": (2, lambda m, a, b: m.scatter_reduce(a + 0.5, 1, INDEX, b, "amax", include_self=False)),
    "index": (2, lambda m, a, b: m.index_reduce(a, 1, INDEX[0], b, "amax")),
    "index-alone": (2, lambda m, a, b: m.index_reduce(a + 0.5, 0, INDEX[1, :2], b, "amax", include_self=False)),
    "segments": (1, lambda m, a: m.segment_reduce(a, "max", lengths=torch.tensor([1, 1]))),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str) -> None:
    count, call = GRADIENTS[name]
    for seed, dtype in product(range(4), (torch.float, torch.double)):
        found = []
        for module in (compat, torch):
            inputs = [drawn((2, 3), dtype, 10 * seed + k, nans=name == "fmax").requires_grad_() for k in range(count)]
            result = call(module, *inputs)
            weights = torch.arange(1, result.numel() + 1, dtype=dtype).reshape(result.shape)
            found.append(torch.autograd.grad((result.nan_to_num() * weights).sum(), inputs))
        for one, other in zip(*found, strict=True):
            torch.testing.assert_close(one, other)
    distinct = [torch.randperm(6).reshape(2, 3).double() * 3 + k for k in range(count)]
    inputs = [each.requires_grad_() for each in distinct]
    assert gradcheck(lambda *given: call(compat, *given), inputs)
    assert gradgradcheck(lambda *given: call(compat, *given), inputs)


@pytest.mark.parametrize("name", GRADIENTS)
def test_transforms(name: str) -> None:
    """Test that `torch.func` returns the gradients of the backward pass, alone and in batches."""
    count, call = GRADIENTS[name]
    inputs = [drawn((2, 3), torch.double, 20 + k) for k in range(count)]
    tracked = [each.clone().requires_grad_() for each in inputs]
    expected = torch.autograd.grad(call(compat, *tracked).sum(), tracked)
    function = torch.func.grad(lambda *given: call(compat, *given).sum(), tuple(range(count)))
    batches = [torch.stack([each, each]) for each in inputs]
    for found in (function(*inputs), [each[1] for each in torch.func.vmap(function)(*batches)]):
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


def test_out_is_written_as_pytorch_writes_it() -> None:
    a, b = drawn((2, 3), torch.float, 30), drawn((2, 3), torch.float, 31)
    calls: list[tuple[str, tuple[Any, ...], Any]] = [
        *(
            (name, (a, b), torch.zeros((2, 3), dtype=kind))
            for name in ("maximum", "fmax", "max")
            for kind in FLOATS[2:]
        ),
        ("amax", (a, 0), torch.zeros(3)),
        ("max", (a,), torch.zeros(())),
        ("max", (a, 0), (torch.zeros(3), torch.zeros(3, dtype=torch.long))),
    ]
    for name, given, out in calls:
        result, expected = getattr(compat, name)(*given, out=out), getattr(torch, name)(*given)
        for one, other, right in zip(*map(as_tuple, (result, out, expected)), strict=True):
            assert one is other
            assert torch.equal(one, right.to(one.dtype))


X = torch.zeros(2, 3)
REFUSED: dict[str, Call] = {
    "a-number": lambda m: m.maximum(X, 2.0),
    "shapes": lambda m: m.maximum(X, torch.zeros(2)),
    "complex": lambda m: m.maximum(X, torch.zeros(3, dtype=torch.complex64)),
    "fmax-complex": lambda m: m.fmax(X, torch.zeros(3, dtype=torch.complex64)),
    "out-type": lambda m: m.maximum(X, X, out=torch.zeros((2, 3), dtype=torch.int)),
    "amax-out-type": lambda m: m.amax(X, out=torch.zeros((), dtype=torch.double)),
    "out-with-gradients": lambda m: m.maximum(torch.zeros(2, requires_grad=True), torch.zeros(2), out=torch.zeros(2)),
    "empty-amax": lambda m: m.amax(torch.zeros(0, 3), 0),
    "empty-max": lambda m: m.max(torch.zeros(0)),
    "empty-max-dim": lambda m: m.max(torch.zeros(0, 3), 0),
    "empty-argmax": lambda m: m.argmax(torch.zeros(0)),
    "bool-argmax": lambda m: m.argmax(torch.zeros(2, dtype=torch.bool)),
    "axis": lambda m: m.amax(X, 2),
    "axis-below": lambda m: m.max(X, -3),
    "axis-past-argmax": lambda m: m.argmax(X, 2),
    "scatter-rank": lambda m: m.scatter_reduce(X, 0, torch.tensor([0, 1, 0]), X, "amax"),
    "scatter-type": lambda m: m.scatter_reduce(X, 0, INDEX, X.double(), "amax"),
    "scatter-longer-than-src": lambda m: m.scatter_reduce(X, 1, INDEX, X[:, :2], "amax"),
    "max-dim-of-rank-1": lambda m: m.max(X, dim=torch.tensor([0])),
    "max-one-out": lambda m: m.max(X, 0, out=torch.empty(2, 2)),
    "scatter-longer-than-input": lambda m: m.scatter_reduce(X[:, :1], 0, INDEX * 0, X, "amax"),
    "scatter-axis": lambda m: m.scatter_reduce(X, 2, INDEX, X, "amax"),
    "index-sizes": lambda m: m.index_reduce(X, 0, torch.tensor([0, 1]), X[:, :1], "amax"),
    "index-rank": lambda m: m.index_reduce(X, 0, torch.tensor([0, 1]), X[0], "amax"),
    "index-length": lambda m: m.index_reduce(X, 0, torch.tensor([0]), X, "amax"),
    "index-type": lambda m: m.index_reduce(X, 0, torch.tensor([0, 1]), X.double(), "amax"),
}


def test_what_maxops_refuses() -> None:
    with pytest.raises(ValueError, match="reduce must be 'amax', got 'sum'"):
        compat.scatter_reduce(X, 0, INDEX, X, "sum")
    with pytest.raises(ValueError, match="reduce must be 'max', got 'mean'"):
        compat.segment_reduce(X, "mean", lengths=torch.tensor([2]))
    for index in (torch.tensor([0, 3, 1]), torch.tensor([0, -1, 1])):
        for function, given, dim in ((compat.scatter_reduce, torch.zeros(3), 0), (compat.index_reduce, X, 1)):
            with pytest.raises(ValueError, match=r"index must be between 0 and 2, got (3|-1) at position 1 "):
                function(given, dim, index, given, "amax")
    for lengths in ([1, -1, 2], [1, 2], [-1, 1]):
        with pytest.raises(ValueError, match=r"lengths must not be negative and must add up .* rows \(2\), got"):
            compat.segment_reduce(X, "max", lengths=torch.tensor(lengths))
    with pytest.raises(ValueError, match="offsets must end with the number of rows"):
        compat.segment_reduce(X, "max", offsets=torch.tensor([0, 1]))
    for name in ("amax", "max", "argmax"):
        with pytest.raises(IndexError, match="dim must be 0 or -1 for a tensor of rank 0, got 1 "):
            getattr(compat, name)(torch.tensor(1.0), 1)
        for more in ({"dim": 1, "axis": 1}, {"dim": 1, "keepdim": True, "keepdims": True}):
            with pytest.raises(TypeError, match="is an alias of"):
                getattr(compat, name)(X, **more)


FAR = [-(2**63), -(2**62), -(2**32) - 1, -1, 3, 2**32, 2**62, 2**63 - 1]


@pytest.mark.parametrize("place", FAR)
def test_an_index_out_of_range_never_wraps(place: int) -> None:
    for shape, dim in (((3, 2), 0), ((3, 4), 0), ((4, 3), 1), ((2, 3, 4), -2)):
        index = torch.zeros(shape, dtype=torch.long)
        index.view(-1)[5] = place
        with pytest.raises(ValueError, match=rf"index must be between 0 and 2, got {place} at position \("):
            compat.scatter_reduce(torch.zeros(shape), dim, index, torch.zeros(shape), "amax")


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8], ids=str)
def test_an_index_of_few_bits_selects_any_row(dtype: Any) -> None:
    index = torch.tensor([[255, 0], [254, 1]]).to(dtype)
    given, src = torch.zeros(300, 2), torch.ones(2, 2)
    assert torch.equal(
        compat.scatter_reduce(given, 0, index, src, "amax"), torch.scatter_reduce(given, 0, index.long(), src, "amax")
    )


@pytest.mark.parametrize("include_self", [True, False])
def test_results_of_scattering_are_contiguous(include_self: bool) -> None:
    base = torch.rand(4, 5, 12)
    index = torch.arange(4)
    for given in (base[..., :6], base[..., ::2], base[:, :, :6].permute(0, 2, 1), base[:, :1, :1].expand(4, 5, 6)):
        for dim in range(3):
            src = torch.rand(given.shape)
            each = index.reshape([4 if axis == dim else 1 for axis in range(3)])
            each = each.expand([4 if axis == dim else size for axis, size in enumerate(given.shape)])
            ours, theirs = (
                [
                    module.scatter_reduce(given, dim, each, src, "amax", include_self=include_self),
                    module.index_reduce(given, dim, index, src.narrow(dim, 0, 4), "amax", include_self=include_self),
                    module.segment_reduce(given, "max", lengths=torch.tensor([1, 3])),
                ]
                for module in (compat, torch)
            )
            for one, other in zip(ours, theirs, strict=True):
                assert torch.equal(one, other)
                assert one.stride() == other.stride()


NESTED = [torch.arange(6.0).reshape(2, 3), torch.ones(3, 3)]
UNSTRIDED: dict[str, Callable[[], Any]] = {
    "jagged": lambda: torch.nested.nested_tensor(NESTED, layout=torch.jagged),
    "nested": lambda: torch.nested.nested_tensor(NESTED),
    "coo": lambda: torch.eye(3).to_sparse(),
    "csr": lambda: torch.eye(3).to_sparse_csr(),
    "masked": lambda: torch.masked.masked_tensor(torch.eye(3), torch.eye(3) > 0),
}


def _call_of_kind(name: str, tensor: Callable[[], Any], more: tuple[Any, ...]) -> Call:
    return lambda m: getattr(m, name)(tensor(), *(each() if callable(each) else each for each in more))


RARE: dict[str, Call] = REFUSED | {
    "axis-amax": lambda m: m.amax(X, axis=(0, 1), keepdims=True),
    "axis-amax-none": lambda m: m.amax(X, axis=None),
    "axis-max": lambda m: m.max(X, axis=1, keepdims=True),
    "axis-argmax": lambda m: m.argmax(X, axis=-1, keepdims=False),
    "keepdims-amax": lambda m: m.amax(X, keepdims=True),
    "keepdims-max": lambda m: m.max(X, 1, keepdims=True),
    "keepdims-argmax": lambda m: m.argmax(X, keepdims=True),
    **{
        f"keepdim-{flag!r}-{name}": _call_of_kind(name, lambda: X, (0, flag))
        for name in ("amax", "max", "argmax")
        for flag in (None, 1, "no", np.True_)
    },
    "keepdim-max-alone": lambda m: m.max(X, keepdim=True),
    "dim-tensor-max": lambda m: m.max(X, torch.tensor(1)),
    "dim-tensor-max-keepdim": lambda m: m.max(X, torch.tensor(1), True),
    "dim-tensor-max-no-keepdim": lambda m: m.max(X, torch.tensor(1), keepdim=False),
    "dim-tensor-max-by-name": lambda m: m.max(X, dim=torch.tensor(0)),
    "dim-tensor-max-axis": lambda m: m.max(X, axis=torch.tensor(0)),
    "dim-tensor-max-out": lambda m: m.max(X, torch.tensor(0), out=(torch.empty(0), torch.empty(0, dtype=torch.int64))),
    "dim-max-twice": lambda m: m.max(X, 1, dim=0),
    "dim-max-and-other": lambda m: m.max(X, 1, other=X),
    "other-max-twice": lambda m: m.max(X, X, other=X),
    "other-max-by-name": lambda m: m.max(X, other=2 * X),
    "other-max-keepdim": lambda m: m.max(X, other=X, keepdim=True),
    "dim-tensor-index": lambda m: m.index_reduce(X, torch.tensor(1), torch.tensor([1]), torch.ones(2, 1), "amax"),
    "dim-tensor-amax": lambda m: m.amax(X, torch.tensor(0)),
    "dim-floats-amax": lambda m: m.amax(X, (1.0,)),
    "dim-tensors-amax": lambda m: m.amax(X, (torch.tensor(0), 1)),
    "dim-tensor-argmax": lambda m: m.argmax(X, torch.tensor(1)),
    "index-rank-0": lambda m: m.index_reduce(X, 1, torch.tensor(1), torch.ones(2, 1), "amax"),
    "index-rank-0-wrong": lambda m: m.index_reduce(X, 1, torch.tensor(1), X, "amax", include_self=False),
    "lengths-list": lambda m: m.segment_reduce(X, "max", lengths=[1, 1]),
    "offsets-list": lambda m: m.segment_reduce(X, "max", offsets=[0, 2]),
    "lengths-bool": lambda m: m.segment_reduce(X, "max", lengths=torch.tensor([True, True])),
    **{
        f"{name}-{kind}": _call_of_kind(name, tensor, more)
        for kind, tensor in UNSTRIDED.items()
        for name, more in {"amax": (-1,), "argmax": (-1,), "max": (), "maximum": (tensor,), "fmax": (tensor,)}.items()
    },
}


@pytest.mark.filterwarnings("ignore:.*(nested|MaskedTensors):UserWarning", "ignore:Sparse CSR:UserWarning")
@pytest.mark.parametrize("name", RARE)
def test_rare_and_refused_calls(name: str) -> None:
    ours, theirs = (outcome(RARE[name], module) for module in (compat, torch))
    assert isinstance(theirs, Exception) or name not in REFUSED
    if isinstance(theirs, Exception):
        of_maxops = name in ("shapes", "index-length", "index-rank-0-wrong", "dim-floats-amax")
        assert isinstance(ours, ValueError if of_maxops else type(theirs)), repr(ours)
        return
    assert type(ours) is type(theirs)
    for one, other in zip(as_tuple(ours), as_tuple(theirs), strict=True):
        for left, right in zip(*[each.unbind() if each.is_nested else [each] for each in (one, other)], strict=True):
            torch.testing.assert_close(left, right, rtol=0, atol=0)


def test_zeros_and_nans_are_those_of_the_order() -> None:
    zeros = torch.tensor([-0.0, 0.0, -0.0])
    assert not torch.signbit(compat.maximum(zeros, zeros.flip(0))[1])
    assert compat.argmax(zeros) == 1
    nan = torch.tensor([-torch.nan, 1.0])
    for result in (compat.maximum(nan, nan), compat.amax(nan), compat.fmax(nan, nan)[:1]):
        assert result.reshape(-1)[0].view(torch.int32) == 0x7FC00000


@pytest.mark.parametrize("name", ["maximum", "fmax", "amax", "max", "scatter", "index", "segments"])
def test_compiled(name: str) -> None:
    count, call = GRADIENTS[name]
    inputs = [drawn((2, 3), torch.float, 40 + k) for k in range(count)]
    compiled = torch.compile(lambda *given: call(compat, *given), backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs), call(compat, *inputs))
