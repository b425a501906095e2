"""Gradients of plain tensors, which the core computes: the bits of torch's operators, in every layout."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import pool_words
from maxops import _native, dtypes
from maxops.errors import DTypeError
from maxops.typing import Ties

torch = pytest.importorskip("torch")

TIES = pytest.mark.parametrize("ties", ["even", "first"])
TYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
NAN = float("nan")
VALUES = -1.0, -0.0, 0.0, NAN


def _gradients(call: Callable[..., Any], tensors: Sequence[Any], grad: Any, *, graph: bool) -> list[Any]:
    """Return the gradients of tensors. With `graph`, torch's operators compute them."""
    tensors = [tensor.detach().requires_grad_() for tensor in tensors]
    result = call(*tensors)
    result = result[0] if isinstance(result, tuple) else result
    found = torch.autograd.grad(result, tensors, grad(result).requires_grad_(graph), create_graph=graph)
    assert all(each.requires_grad == graph for each in found)
    return [each.detach() for each in found]


def _odd(result: Any) -> Any:
    """Return a gradient with a different value for each element, including -0 and NaN."""
    grad = torch.arange(result.numel(), dtype=torch.float64) * 0.3 - 1
    grad[3:4], grad[4:5] = -0.0, NAN
    return grad.to(result.dtype).reshape(result.shape)


def _compare(call: Callable[..., Any], tensors: Sequence[Any], grad: Any = _odd) -> None:
    found = _gradients(call, tensors, grad, graph=False)
    expected = _gradients(call, tensors, grad, graph=True)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if one.dtype.itemsize == 2:  # torch rounds NaN to bits that depend on the machine and the size
            are_nan = one.isnan() & other.isnan()
            one, other = (each.masked_fill(are_nan, NAN) for each in (one, other))  # noqa: PLW2901
        assert torch.equal(_words(one), _words(other)), (tensors, one, other)


def _words(tensor: Any) -> Any:
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.dtype.itemsize]
    return tensor.contiguous().view(bits)


def _of_words(dtype: str, bits: Any) -> Any:
    row = dtypes.BY_NAME[dtype]
    signed = np.array(bits, row.word).view(f"i{row.bits // 8}")
    return torch.from_numpy(signed).view(getattr(torch, dtype))


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Record whether the core computed each backward pass, for tensors and arrays."""
    taken: list[bool] = []
    inner = _native.spread

    def watched(*args: Any) -> Any:
        found = inner(*args)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(_native, "spread", watched)
    return taken


@TIES
@TYPES
@pytest.mark.parametrize("count", [1, 2, 3])
def test_every_tie_of_inputs(count: int, dtype: str, ties: Ties, spread: list[bool]) -> None:
    every = torch.tensor([*itertools.product((*VALUES, float("inf")), repeat=count)], dtype=getattr(torch, dtype)).T
    _compare(lambda *tensors: mo.maximum(*tensors, ties=ties), [row.clone() for row in every])
    assert spread == [True]


@TIES
@TYPES
@pytest.mark.parametrize("other", [0.0, NAN, 2, True, torch.tensor([[-1.0]]), torch.tensor(0.0)], ids=str)
def test_one_element_beside_many(other: Any, dtype: str, ties: Ties, spread: list[bool]) -> None:
    """Test scalars and tensors, some of them longer than one block of the core."""
    data = torch.tensor(VALUES, dtype=getattr(torch, dtype)).repeat(150)
    if isinstance(other, torch.Tensor):
        other = other.to(data.dtype)
    elif other is True:
        with pytest.raises(DTypeError):
            mo.maximum(data.requires_grad_(), other, ties=ties)
        return
    _compare(lambda x: mo.maximum(x, other, ties=ties), [data])
    _compare(lambda x, y: mo.maximum(x, other, y.T, ties=ties), [data.reshape(20, 30), data.reshape(30, 20)])
    _compare(lambda x: mo.maximum(other, x, ties=ties), [data[:1]])
    _compare(lambda x: mo.maximum(other, x, 0.0, ties=ties), [data])
    assert spread == [True] * 4


@TIES
@TYPES
@pytest.mark.parametrize("axes", [None, 0, 1, 2, [0, 1], [1, 2], [0, 2], [-1], (0, 1, 2)], ids=str)
def test_every_set_of_axes(axes: Any, dtype: str, ties: Ties, spread: list[bool]) -> None:
    data = torch.tensor(VALUES, dtype=getattr(torch, dtype)).repeat(6)[torch.randperm(24)].reshape(2, 3, 4)
    for keepdims, return_indices, initial in itertools.product((True, False), (True, False), (None, 0.0, -1, NAN)):
        options: dict[str, Any] = {"keepdims": keepdims, "return_indices": return_indices, "initial": initial}
        _compare(lambda x: mo.reduce_max(x, axes, ties=ties, **options), [data])  # noqa: B023
    assert spread == [True] * 16


IDS: dict[str, dict[str, Any]] = {
    "ids": {"segment_ids": [0, 0, 2, 2, 2, 3], "num_segments": 5},
    "int32": {"segment_ids": [0, 0, 2, 2, 2, 3], "of": "int32"},
    "int8": {"segment_ids": [0, 0, 2, 2, 2, 3], "of": "int8"},
    "too large": {"segment_ids": [0, 0, 2, 2, 7, 9], "num_segments": 3},
    "in any order": {"segment_ids": [3, 0, 2, 0, 2, 3], "sorted": False},
    "dropped": {"segment_ids": [3, -1, 2, 9, 2, 3], "num_segments": 4, "sorted": False, "out_of_range": "drop"},
    "offsets": {"offsets": [0, 2, 2, 5, 6]},
    "every": {"segment_ids": [0, 0, 2, 2, 2, 3], "return_indices": True, "return_empty": True},
}


FILLS: list[dict[str, Any]] = [{"fill_mode": "LOWEST"}, {"fill_value": 2}, {"initial": 0.0}, {"initial": -1}]


@TIES
@TYPES
@pytest.mark.parametrize("name", IDS)
def test_every_kind_of_segments(name: str, dtype: str, ties: Ties, spread: list[bool]) -> None:
    """Test each kind of segments with rows of each shape, values of empty segments and axes in turn."""
    options = IDS[name].copy()
    kind = getattr(torch, options.pop("of", "int64"))
    for each in {"segment_ids", "offsets"} & options.keys():
        options[each] = torch.tensor(options[each], dtype=kind)
    for turn, values in enumerate(itertools.islice(itertools.product(VALUES, repeat=6), 0, None, 101)):
        width = ((), (1,), (3,), (2, 2))[turn // 4 % 4]
        data = torch.tensor(values, dtype=getattr(torch, dtype)).reshape(6, *(1 for _ in width)).repeat(1, *width)
        axis = (0, len(width), -1)[turn % 3]
        options |= {"axis": axis, "ties": ties}
        _compare(lambda x: mo.segment_max(x, **options, **FILLS[turn % 4]), [data.movedim(0, axis)])  # noqa: B023
    assert {*spread} == {name != "int8"}


WAYS: dict[str, Callable[..., Any]] = {
    "inputs": mo.maximum,
    "rows": lambda *tensors, ties: mo.reduce_max(torch.stack(tensors), [0], ties=ties),
    "elements": lambda *tensors, ties: mo.reduce_max(torch.stack(tensors, 1), [1], ties=ties),
    "segments": lambda *tensors, ties: mo.segment_max(
        torch.stack(tensors).flatten(),
        torch.arange(len(tensors[0])).repeat(len(tensors)),
        fill_mode="ZERO",
        sorted=False,
        ties=ties,
    ),
}


@TIES
@TYPES
@pytest.mark.parametrize("way", WAYS)
def test_the_bits_of_every_gradient(way: str, dtype: str, ties: Ties, spread: list[bool]) -> None:
    """Test all gradients of 16 bits and all pairs of boundary values against the definition.

    "first" copies the gradient bit for bit, including NaN. NaN in a division stays NaN with its payload, and is quiet.
    """
    row = dtypes.BY_NAME[dtype]
    pool = np.array(pool_words(row), row.word)
    pairs = [each.ravel() for each in np.meshgrid(pool, pool)]
    words = np.arange(1 << 16) if row.bits == 16 else pool
    gradient = np.resize(words, max(words.size, pairs[0].size)).astype(row.word)
    upstream, quiet = _of_words(dtype, gradient), row.word.type(1 << row.mantissa_bits - 1)
    for tensors in ([np.resize(each, gradient.size) for each in pairs], [np.zeros_like(gradient)] * 3):
        given = [_of_words(dtype, each).requires_grad_() for each in tensors]
        result = WAYS[way](*given, ties=ties).detach().reshape(-1)
        held = [(_words(each) == _words(result)) | (each.isnan() & result.isnan()) for each in given]
        if ties == "first":
            shares = gradient
            held = [each & ~sum(held[:place], torch.tensor(False)) for place, each in enumerate(held)]
        else:
            wide = gradient.view(row.numpy).astype(np.float64 if row.bits == 64 else np.float32)
            with np.errstate(invalid="ignore"):
                divided = wide / torch.stack(held).sum(0).numpy().astype(wide.dtype)
                shares = np.where(upstream.isnan(), gradient | quiet, divided.astype(row.numpy).view(row.word))
        found = torch.autograd.grad(WAYS[way](*given, ties=ties).reshape(-1), given, upstream)
        for one, is_held in zip(found, held, strict=True):
            expected = np.where(is_held, shares, row.word.type(0))
            np.testing.assert_array_equal(_words(one).numpy().view(row.word), expected)
    assert spread.count(True) == 2  # large calls pass tensors first, which the core rejects, and then arrays


@TIES
@TYPES
@pytest.mark.parametrize("way", ["rows", "elements", "segments"])
def test_more_ties_than_16_bits_count(way: str, dtype: str, ties: Ties, spread: list[bool]) -> None:
    """Test a count for which 1060 / count and 212 / count in float32 lie halfway between two numbers of 16 bits."""
    count, kind, axis = 66_003, getattr(torch, dtype), int(way == "elements")
    data = torch.zeros((2, count) if axis else (count, 2), dtype=kind, requires_grad=True)
    if way == "segments":
        result = mo.segment_max(data, torch.zeros(count, dtype=torch.int64), fill_mode="ZERO", ties=ties)
    else:
        result = mo.reduce_max(data, [axis], ties=ties)
    grad = torch.tensor([1060.0, 212.0], dtype=kind).reshape(result.shape)
    result.backward(grad)
    expected = (grad.to(torch.promote_types(kind, torch.float32)) / count).to(kind).expand(data.shape)
    if ties == "first":
        expected = torch.zeros(data.shape, dtype=kind)
        expected.narrow(axis, 0, 1).copy_(grad)
    assert data.grad is not None
    assert torch.equal(data.grad, expected)
    assert spread[-1]


@TIES
@TYPES
def test_layouts_and_sizes(dtype: str, ties: Ties) -> None:
    """Test layouts of data and gradients. Torch's operators handle those that the core does not, and large calls."""
    kind = getattr(torch, dtype)
    ids = torch.tensor([0, 0, 1, 3])
    random = functools.partial(torch.randn, dtype=kind)
    for data in (random(4, 6), random(6, 4).T, random(4, 12)[:, ::2], random(4, 1).expand(4, 6)):
        for grad in (_odd, torch.ones_like, lambda result: torch.ones((), dtype=kind).expand(result.shape)):
            _compare(lambda a, b: mo.maximum(a, b, ties=ties), [data, data.flip(0)], grad)
            _compare(lambda a, b: mo.maximum(a, b, ties=ties), [data, data[:1]], grad)
            _compare(lambda a: mo.reduce_max(a, [1], ties=ties), [data], grad)
            _compare(lambda a: mo.segment_max(a, ids, fill_mode="ZERO", ties=ties), [data], grad)
            _compare(lambda a: mo.segment_max(a, ids[:4] // 2, axis=0, fill_mode="ZERO", ties=ties), [data], grad)
    blocks = torch.randint(0, 3, (2, 3, 4, 5)).to(kind)
    for data in (blocks, blocks.contiguous(memory_format=torch.channels_last), blocks.permute(2, 0, 3, 1)):
        for axes in itertools.combinations(range(4), 2):
            _compare(lambda a: mo.reduce_max(a, axis=axes, ties=ties), [data])  # noqa: B023
        for other in (data[:1], data[..., :1], data.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0)):
            _compare(lambda a, b: mo.maximum(a, b, 0.5, ties=ties), [data, other])
    large = torch.randint(0, 3, (40_000,)).to(kind)
    many = torch.arange(40_000) // 3
    _compare(lambda a, b: mo.maximum(a, b, ties=ties), [large, large.flip(0)])
    _compare(lambda a: mo.reduce_max(a.reshape(10_000, 4), [1], ties=ties), [large])
    _compare(lambda a: mo.segment_max(a, many, fill_mode="ZERO", ties=ties), [large])
    for shape in ((0,), (0, 3), (3, 0)):
        empty = torch.ones(shape, dtype=kind)
        _compare(lambda a, b: mo.maximum(a, b, ties=ties), [empty, empty])
        _compare(lambda a: mo.maximum(a, 0.5, ties=ties), [empty])
        _compare(lambda a: mo.reduce_max(a, ties=ties), [empty])
        _compare(
            lambda a: mo.segment_max(a, torch.zeros(len(a), dtype=torch.int64), 2, fill_mode="ZERO", ties=ties), [empty]
        )


@TIES
def test_parameters(ties: Ties, spread: list[bool]) -> None:
    """Test that the core accepts parameters, and that results are not parameters."""
    weights = torch.nn.Parameter(torch.tensor([1.0, 5.0, 5.0]))
    ids = torch.tensor([0, 0, 0])
    for call in (
        lambda: mo.maximum(weights, weights.detach(), ties=ties),
        lambda: mo.reduce_max(weights, ties=ties),
        lambda: mo.segment_max(weights, ids, fill_mode="ZERO", ties=ties),
    ):
        weights.grad = None
        result = call()  # type: ignore[no-untyped-call]
        assert type(result) is torch.Tensor
        result.sum().backward()
        assert type(weights.grad) is torch.Tensor
        with torch.no_grad():
            assert type(call()) is torch.Tensor  # type: ignore[no-untyped-call]
    share = 0.5 if ties == "even" else 1.0
    assert weights.grad.tolist() == [0.0, share, 1 - share]
    assert spread == [True] * 3


def test_axes_that_change_until_backward() -> None:
    data, axes = torch.tensor([[5.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True), [0]
    result = mo.reduce_max(data, axes, keepdims=False)
    axes[0] = 1
    result.backward(torch.tensor([1.0, 2.0, 3.0]))
    assert data.grad is not None
    assert data.grad.tolist() == [[1.0, 0.0, 0.0], [0.0, 2.0, 3.0]]


@TIES
@pytest.mark.usefixtures("torch_way")
def test_imaginary_parts_of_conjugates(ties: Ties) -> None:
    """Test lazy conjugates, whose negation torch applies on reading."""
    for call in (
        lambda x: mo.reduce_max(x, ties=ties),
        lambda x: mo.maximum(x, x.detach().flip(0), ties=ties),
        lambda x: mo.segment_max(x, torch.zeros(2, dtype=torch.int64), fill_mode="ZERO", ties=ties),
    ):
        z = torch.tensor([1 + 2j, 3 - 4j], requires_grad=True)
        part = z.conj().imag
        assert part.is_neg()
        (found,) = torch.autograd.grad(call(part).sum(), part)
        plain = torch.tensor([-2.0, 4.0], requires_grad=True)
        (expected,) = torch.autograd.grad(call(plain).sum(), plain)
        assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("count", [8, 9])
def test_as_many_inputs_as_the_core_takes_and_more(count: int, spread: list[bool]) -> None:
    tensors = [torch.tensor([1.0, float(k)], requires_grad=True) for k in range(count)]
    mo.maximum(*tensors, ties="even").sum().backward()
    grads = [tensor.grad.tolist() for tensor in tensors if tensor.grad is not None]
    assert grads == [[torch.tensor(1 / count).item(), float(k == count - 1)] for k in range(count)]
    assert spread == [True] * (count == 8)


@TIES
@pytest.mark.parametrize("inner", [1, 3])
@pytest.mark.parametrize("way", ["lengths", "ids", "offsets"])
def test_each_set_of_gradients_that_are_needed(way: str, inner: int, ties: Ties) -> None:
    """Test two inputs by the definition: ties share the gradient, or the first one gets it."""
    cells, given = {
        "lengths": ([0, 0, 1, 1, 2, 2], None),
        "ids": ([2, -1, 0, 7, 2, 2], np.array([2, -1, 0, 7, 2, 2])),
        "offsets": ([0, 0, 0, 2, 2, 2], np.array([0, 3, 3, 6])),
    }[way]
    data = np.random.default_rng(1).integers(0, 2, (2, 6, inner)).astype(float)
    maxima, grad = np.ones((3, inner)), np.arange(1.0, 1 + 3 * inner).reshape(3, inner)
    expected = np.zeros(data.shape)
    for cell, column in np.ndindex(3, inner):
        held = [at for at in np.ndindex(2, 6) if cells[at[1]] == cell and data[at][column] == 1]
        for at in held if ties == "even" else held[:1]:
            expected[at][column] = grad[cell, column] / (len(held) if ties == "even" else 1)
    for needed in itertools.product((False, True), repeat=2):
        bits = needed[0] + 2 * needed[1]
        found = _native.spread(ties == "first", bits, 2, inner, given, way == "offsets", maxima, grad, *data)
        assert found is not None
        for is_needed, one, other in zip(needed, found, expected, strict=True):
            assert (one is not None) == is_needed
            assert one is None or np.array_equal(one, other)


def test_arrays_in_place_of_tensors() -> None:
    """Test arrays of large calls, and NumPy scalars. Python handles unaligned arrays."""
    assert _native.spread(False, 1, 1, 1, None, False, np.array(3.0), np.float64(2), np.float64(3)) == (2.0,)
    odd = np.zeros(33, np.uint8)[1:].view(np.float64)
    even = np.zeros(4)
    assert _native.spread(False, 1, 1, 4, None, False, even, even, even) is not None
    for place in range(3):
        for wrong in (odd, even.astype(">f8"), np.zeros(8)[::2], np.zeros(4, np.float32)):
            arrays = [even] * place + [wrong] + [even] * (2 - place)
            assert _native.spread(False, 1, 1, 4, None, False, *arrays) is None
    ids = np.zeros(33, np.uint8)[1:].view(np.int64)
    for given in (ids, ids.astype(">i8"), ids.astype(np.uint64), ids[:, None], np.int64(0)):
        assert _native.spread(False, 1, 1, 1, given, False, even[:1], even[:1], even) is None
    assert _native.spread(False, 1, 1, 1, ids.copy(), False, even[:1], even[:1], even) is not None


def test_what_the_core_does_not_take() -> None:
    one = torch.ones(4)
    mo.maximum(one, one)  # registers torch's classes
    with torch.no_grad():
        right = (False, 1, 1, 4, None, False, one, one, one)
        kinds = one[:3], one.double(), torch.ones(8)[::2], torch._neg_view(one), "no", None
        assert _native.spread(*right)[0].tolist() == [1.0] * 4  # type: ignore[index]
        for place, wrong in (
            *((place, each) for place in (0, 1) for each in ("no", None)),
            *((place, each) for place in (2, 3) for each in (0, -1, 3, 5, "no")),
            *((4, each) for each in (one, torch.tensor([0, 0]), torch.ones(1, 1, dtype=torch.int64), 0)),
            (5, "no"),
            *((place, each) for place in (6, 7, 8) for each in kinds),
        ):
            assert _native.spread(*right[:place], wrong, *right[place + 1 :]) is None, (place, wrong)  # type: ignore[arg-type]
        wraps = 2**62 + 1  # 4 times this wraps around to 4 in 64 bits
        assert _native.spread(False, 1, wraps, 1, None, False, one, one, one) is None
        many = torch.ones(200_000)  # calls on it release the GIL
        assert _native.spread(False, 1, 1, many.numel(), None, False, many, many, many) is None
        for length, maxima, gradient, rows in ((1, 4, 3, 4), (2, 3, 3, 4), (2, 2, 2, 5), (1, 3, 3, 4)):
            sizes = (torch.ones(size) for size in (maxima, gradient, rows))
            assert _native.spread(False, 1, length, 1, None, False, *sizes) is None
        two = torch.ones(2)
        for offsets in ([0, 5, 4], [0, 3, 3], [1, 3, 4], [0, 4, 4, 4]):
            assert _native.spread(False, 1, 1, 1, torch.tensor(offsets), True, two, two, one) is None
        assert _native.spread(False, 1, 1, 1, torch.tensor([0, 3, 4]), True, two, two, one) is not None
        for data, grad in itertools.product((torch.half, torch.bfloat16, torch.float32, torch.float64), repeat=2):
            rows, gradient = torch.zeros(3, dtype=data), torch.tensor([3.0, 1.0, 2.0]).to(grad)
            found = _native.spread(False, 1, 1, 3, None, False, rows, gradient, rows, rows)
            assert (found is not None) == (data is grad or (grad is torch.float32 and data.itemsize == 2))
            assert found is None or torch.equal(found[0], gradient / 2)
        single = one[:1].clone()
        assert _native.spread(False, 1, 1, 4, None, False, one, one, one, single)[0].tolist() == [0.5] * 4  # type: ignore[index]
        for needed, inner, maxima, others in (
            (2, 4, one, (one, single)),  # the gradient of a repeated element is a sum
            (1, 1, one, (one, single)),
            (1, 2, one, (one, single)),
            (2, 4, one, (one, one[:2])),
            (1, 4, one, (single, single)),
        ):
            assert _native.spread(False, needed, 1, inner, None, False, maxima, maxima, *others) is None
        assert _native.spread(*right[:8]) is None
        assert _native.spread(*right, *[one] * 8) is None
        for offsets in ([1, 4], [0, 3], [0, 5], [0, 4, 4], [-1, 4]):
            given = (False, 1, 1, 1, torch.tensor(offsets), True, one[:1].clone(), one[:1].clone(), one)
            assert _native.spread(*given) is None, offsets
