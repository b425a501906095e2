"""`torch.ops.maxops` as exported programs call it: schemas, and equal checks and results of every kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import mixed
from maxops import dtypes, errors
from maxops.calls import ReduceCall, SegmentCall

torch = pytest.importorskip("torch")

from maxops.engines.torch import only_torch_operators  # noqa: E402
from maxops.engines.torch.schemas import arguments  # noqa: E402

# Exported programs contain these schemas: a change would break the files of users.
SCHEMAS = {
    "maximum": '(Tensor[] tensors, str ties, str nan="propagate") -> Tensor',
    "reduce_max": (
        "(Tensor data, int[]? axes, bool keepdims, bool noop_with_empty_axes, Tensor? initial, bool return_indices, "
        'str ties, str nan="propagate") -> (Tensor, Tensor)'
    ),
    "segment_max": (
        "(Tensor data, Tensor? segment_ids, Tensor? offsets, SymInt? num_segments, str? fill_mode, bool check_ids, "
        "bool sorted, str? out_of_range, Tensor? initial, bool return_indices, bool return_empty, str ties, "
        'Tensor? fill_value=None, str nan="propagate") -> (Tensor, Tensor, Tensor)'
    ),
    "scalar": "(Tensor like, Scalar value, str operator, str name, str beside) -> Tensor",
}
KERNELS: dict[str, Any] = {"core": nullcontext, "any device": only_torch_operators, "without data": nullcontext}
BOOLS = (False, True)


def call(name: str, data: Any, *others: Any, ties: Any = "even", **options: Any) -> Any:
    """Call an operator. SegmentMax has 5 segments by default."""
    if name == "maximum":
        return torch.ops.maxops.maximum([data, *others], ties)
    if name == "segment_max":
        ids = torch.tensor([0, 0, 2, 2], device=data.device)
        options = {"segment_ids": ids, "num_segments": 5, "fill_mode": "ZERO"} | options
    request: Any = ReduceCall if name == "reduce_max" else SegmentCall
    return getattr(torch.ops.maxops, name)(*arguments(request(data, ties=ties, **options)))


@pytest.fixture(params=KERNELS)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select the device whose kernel is tested."""
    with KERNELS[request.param]():
        yield "meta" if request.param == "without data" else "cpu"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_stay(name: str) -> None:
    assert str(getattr(torch.ops.maxops, name).default._schema) == f"maxops::{name}{SCHEMAS[name]}"


@pytest.mark.parametrize("options", [(), ("propagate",), ("ignore",)])
def test_gradients_with_and_without_a_default(options: tuple[str, ...]) -> None:
    """Test that backward returns enough gradients, although torch omits arguments that equal the schema's default."""
    one, two = (torch.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [3.0, 1.0]))
    for run in (torch.ops.maxops.maximum, torch.compile(torch.ops.maxops.maximum, backend="aot_eager")):
        found = torch.autograd.grad(run([one, two], "even", *options).sum(), (one, two))
        assert [part.tolist() for part in found] == [[0, 1], [1, 0]]


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_wrong_ties_are_refused(name: str, device: str) -> None:
    for ties in ("Even", "", "last"):
        with pytest.raises(errors.AttributeValueError, match="ties must be ") as raised:
            call(name, torch.ones(4, 2, device=device), ties=ties)
        assert raised.value.clause == f"maxops.{name}.ties"


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_tensors_of_other_kinds_are_refused(name: str, device: str) -> None:
    x = torch.ones(4, 2)
    for others in ([], [x.to(device)])[: 2 if name == "maximum" else 1]:
        with pytest.raises(errors.EngineError, match=r"must be a strided tensor, got a torch\.sparse_coo tensor"):
            call(name, *others, x.to_sparse().to(device))
        with pytest.raises(errors.DTypeError, match="complex64; ") as raised:
            call(name, *others, x.to(torch.complex64).to(device))
        assert raised.value.clause == f"maxops.{name}.types"


def look(results: Any) -> list[tuple[Any, ...]]:
    """Return the properties of results that do not need data. An axis of size 1 may have any stride."""
    return [
        (part.shape, [step for step, size in zip(part.stride(), part.shape, strict=True) if size != 1], part.dtype)
        for part in (results if type(results) is tuple else (results,))
    ]


def layouts(array: Any) -> Iterator[Any]:
    """Yield tensors of these values in C order, in Fortran order, and strided."""
    yield torch.from_numpy(array)
    yield torch.from_numpy(array.copy(order="F"))
    wide = np.repeat(array, 2, axis=-1)
    yield torch.from_numpy(wide)[..., ::2]


def test_what_comes_without_data_looks_as_what_comes_with_it() -> None:
    """Test shapes, strides and types for each option. Reductions are contiguous, also along an axis of size 1."""
    for x in [*layouts(mixed(dtypes.FLOAT32, (4, 3), 1)), *layouts(mixed(dtypes.FLOAT32, (4, 1, 3), 1))]:
        meta = x.to("meta")
        for others in ([], [x[:1]], [x.mT.contiguous().mT, x], [x.new_ones(2, 1, 1, 3)]):
            got = call("maximum", meta, *(each.to("meta") for each in others))
            assert look(got) == look(call("maximum", x, *others))
        for axes, keepdims, noop, indices in product([None, [], [0], [1], [-1, 0]], BOOLS, BOOLS, BOOLS):
            options: dict[str, Any] = {"axes": axes, "keepdims": keepdims, "return_indices": indices}
            options["noop_with_empty_axes"] = noop
            got = call("reduce_max", x, **options)
            assert look(call("reduce_max", meta, **options)) == look(got), options
            assert got[0].is_contiguous() or (noop and not axes), options
        for count, indices, empty in product([3, 5], BOOLS, BOOLS):
            options = {"num_segments": count, "return_indices": indices, "return_empty": empty}
            assert look(call("segment_max", meta, **options)) == look(call("segment_max", x, **options)), options
            offsets = torch.tensor([0, 1, 1, 4])
            options |= {"segment_ids": None, "offsets": offsets, "num_segments": None}
            expected = look(call("segment_max", x, **options))
            assert look(call("segment_max", meta, **options | {"offsets": offsets.to("meta")})) == expected, options


def test_shapes_are_checked_on_each_device(device: str) -> None:
    x = torch.ones(4, 2, device=device)
    with pytest.raises(errors.ShapeError):
        call("maximum", x, x[:3])
    with pytest.raises(errors.AxesError, match="data of rank 2, got 2"):
        call("reduce_max", x, axes=[2])
    for length in (3, 5, 1, 0):
        with pytest.raises(errors.SegmentIdsError):
            call("segment_max", x, segment_ids=torch.zeros(length, dtype=torch.int64, device=device))
    with pytest.raises(errors.SegmentIdsError):
        call("segment_max", x, segment_ids=torch.zeros((4, 1), dtype=torch.int64, device=device))


def test_results_past_all_memory_have_shapes_without_data() -> None:
    """Test results larger than any memory, with the operators and the functions."""
    x = torch.empty(1 << 40, 1 << 10, device="meta")
    ids, graded = torch.empty(1 << 40, dtype=torch.int64, device="meta"), x.clone().requires_grad_()
    column = (1 << 40, 1)
    assert call("maximum", x).shape == mo.maximum(x, x).shape == mo.maximum(graded, 1.0).shape == x.shape
    assert call("reduce_max", x, axes=[1])[0].shape == mo.reduce_max(x, 1).shape == column
    assert call("segment_max", x, segment_ids=ids, num_segments=1 << 41)[0].shape == (1 << 41, 1 << 10)
    assert mo.segment_max(x, ids, 1 << 41, fill_mode="ZERO").shape == (1 << 41, 1 << 10)


@pytest.mark.parametrize("empty", BOOLS)
@pytest.mark.parametrize("indices", BOOLS)
def test_a_result_that_was_not_asked_for_has_no_elements(indices: bool, empty: bool, device: str) -> None:
    x = torch.ones(4, 2, device=device)
    for axes, noop in (([0], False), ([], True)):
        places = call("reduce_max", x, axes=axes, noop_with_empty_axes=noop, return_indices=indices)[1]
        assert (tuple(places.shape), places.dtype) == (((4, 2) if noop else (1, 2)) if indices else (0,), torch.int64)
    _, places, none = call("segment_max", x, return_indices=indices, return_empty=empty)
    assert (tuple(places.shape), places.dtype) == ((5, 2) if indices else (0,), torch.int64)
    assert (tuple(none.shape), none.dtype) == ((5,) if empty else (0,), torch.bool)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_scalar_that_its_type_does_not_hold_is_refused(device: str) -> None:
    like = torch.ones(2, dtype=torch.uint8, device=device)
    for name, value in (("reduce_max", 256), ("segment_max", -1), ("maximum", 1 << 40)):
        words = f"^{name} initial is the Python {type(value).__name__} {value}, which cannot be "
        with pytest.raises(errors.DTypeError, match=words) as raised:
            torch.ops.maxops.scalar(like, value, name, "initial", "data")
        assert raised.value.clause == f"maxops.{name}.scalars"
    made = torch.ops.maxops.scalar(like, 255, "reduce_max", "initial", "data")
    assert (made.shape, made.dtype, made.device) == ((), like.dtype, like.device)
    assert device == "meta" or made == 255


@pytest.mark.parametrize("keepdims", BOOLS)
@pytest.mark.parametrize("noop", BOOLS)
def test_gradients_of_the_operator_by_each_set_of_axes(noop: bool, keepdims: bool) -> None:
    """Test that each maximum has a gradient of one, because all elements differ."""
    x = torch.tensor([[4.0, 1.0, 7.0], [2.0, 9.0, 3.0]], requires_grad=True)
    for axes in (None, [], [0], [-1], [1, 0]):
        over = axes or (0, 1)
        expected = torch.ones_like(x) if noop and not axes else (x == x.amax(over, keepdim=True)).float()
        for ties in ("even", "first"):
            values, _ = call("reduce_max", x, axes=axes, noop_with_empty_axes=noop, keepdims=keepdims, ties=ties)
            assert torch.equal(torch.autograd.grad(values.sum(), x)[0], expected), axes


def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:  # type: ignore[name-defined]
    values, indices = torch.ops.maxops.reduce_max(
        torch.ops.maxops.maximum([x, y], "even"), [1], False, False, None, True, "even"
    )
    return values + indices.to(values.dtype)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_operators_in_torchscript() -> None:
    compiled = torch.jit.script(scripted)
    assert compiled(torch.tensor([[1.0, 2.0], [9.0, 3.0]]), torch.full((2, 2), 2.5)).tolist() == [2.5, 9.0]
