"""`torch.ops.maxops`, called as exported programs call it: schemas, and the same checks and results by every kernel."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from itertools import product
from typing import Any

import numpy as np
import pytest

from bits import mixed
from maxops import dtypes, errors

torch = pytest.importorskip("torch")

from maxops.engines.torch import only_torch_operators  # noqa: E402

# Exported programs hold these texts: a change breaks those that users have stored.
SCHEMAS = {
    "maximum": "(Tensor[] tensors, str ties) -> Tensor",
    "reduce_max": (
        "(Tensor data, int[]? axes, bool keepdims, bool noop_with_empty_axes, Tensor? initial, bool return_indices, "
        "str ties) -> (Tensor, Tensor)"
    ),
    "segment_max": (
        "(Tensor data, Tensor? segment_ids, Tensor? offsets, SymInt? num_segments, str? fill_mode, bool check_ids, "
        "bool sorted, str? out_of_range, Tensor? initial, bool return_indices, bool return_empty, str ties, "
        "Tensor? fill_value=None) -> (Tensor, Tensor, Tensor)"
    ),
    "scalar": "(Tensor like, Scalar value, str operator, str name, str beside) -> Tensor",
}
KERNELS: dict[str, Any] = {"core": nullcontext, "any device": only_torch_operators, "without data": nullcontext}
BOOLS = (False, True)


def call(name: str, data: Any, *, ties: str = "even", **options: Any) -> Any:
    """An operator on data; options in the schema's order."""
    if name == "maximum":
        return torch.ops.maxops.maximum([data, *options.get("others", [])], ties)
    if name == "reduce_max":
        given = {"axes": None, "keepdims": True, "noop": False, "initial": None, "indices": False} | options
        return torch.ops.maxops.reduce_max(data, *given.values(), ties)
    given = {"ids": torch.tensor([0, 0, 2, 2], device=data.device), "offsets": None, "num_segments": 5} | {
        "fill_mode": "ZERO", "check_ids": True, "sorted": True, "out_of_range": None, "initial": None,
        "indices": False, "empty": False,
    } | options  # fmt: skip
    return torch.ops.maxops.segment_max(data, *given.values(), ties)


@pytest.fixture(params=KERNELS)
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The device whose tensors take the kernel."""
    with KERNELS[request.param]():
        yield "meta" if request.param == "without data" else "cpu"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_stay(name: str) -> None:
    assert str(getattr(torch.ops.maxops, name).default._schema) == f"maxops::{name}{SCHEMAS[name]}"


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_wrong_ties_are_refused(name: str, device: str) -> None:
    for ties in ("Even", "", "last"):
        with pytest.raises(errors.AttributeValueError, match="ties is ") as raised:
            call(name, torch.ones(4, 2, device=device), ties=ties)
        assert raised.value.clause == f"maxops.{name}.ties"


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_tensors_of_other_kinds_are_refused(name: str, device: str) -> None:
    x = torch.ones(4, 2)
    with pytest.raises(errors.EngineError, match=r"another kind than strided: torch\.sparse_coo"):
        call(name, x.to_sparse().to(device))
    with pytest.raises(errors.DTypeError, match="complex64; the types are") as raised:
        call(name, x.to(torch.complex64).to(device))
    assert raised.value.clause == f"maxops.{name}.types"


def look(results: Any) -> list[tuple[Any, ...]]:
    """What can be seen of results without their data; an axis of one element may have any stride."""
    return [
        (part.shape, [step for step, size in zip(part.stride(), part.shape, strict=True) if size != 1], part.dtype)
        for part in (results if type(results) is tuple else (results,))
    ]


def layouts(array: Any) -> Iterator[Any]:
    """Tensors of these values: in C order, in Fortran order, and stepped."""
    yield torch.from_numpy(array)
    yield torch.from_numpy(array.copy(order="F"))
    wide = np.repeat(array, 2, axis=-1)
    yield torch.from_numpy(wide)[..., ::2]


def test_what_comes_without_data_looks_as_what_comes_with_it() -> None:
    """Each option: shapes, strides and types."""
    array = mixed(dtypes.FLOAT32, (4, 3), 1)
    for x in layouts(array):
        meta = x.to("meta")
        for others in ([], [x[:1]], [x.T.contiguous().T, x], [x.new_ones(2, 1, 3)]):
            got = call("maximum", meta, others=[each.to("meta") for each in others])
            assert look(got) == look(call("maximum", x, others=others))
        for axes, keepdims, noop, indices in product([None, [], [0], [1], [-1, 0]], BOOLS, BOOLS, BOOLS):
            options: dict[str, Any] = {"axes": axes, "keepdims": keepdims, "noop": noop, "indices": indices}
            assert look(call("reduce_max", meta, **options)) == look(call("reduce_max", x, **options)), options
        for count, indices, empty in product([3, 5], BOOLS, BOOLS):
            options = {"num_segments": count, "indices": indices, "empty": empty}
            assert look(call("segment_max", meta, **options)) == look(call("segment_max", x, **options)), options
            offsets = torch.tensor([0, 1, 1, 4])
            options |= {"ids": None, "offsets": offsets, "num_segments": None}
            want = look(call("segment_max", x, **options))
            assert look(call("segment_max", meta, **options | {"offsets": offsets.to("meta")})) == want, options


def test_shapes_are_checked_without_data() -> None:
    x = torch.ones(4, 2, device="meta")
    with pytest.raises(errors.ShapeError):
        call("maximum", x, others=[x[:3]])
    with pytest.raises(errors.AxesError, match="axes holds 2, but data has rank 2"):
        call("reduce_max", x, axes=[2])
    for length in (3, 5, 1, 0):
        with pytest.raises(errors.SegmentIdsError):
            call("segment_max", x, ids=torch.zeros(length, dtype=torch.int64, device="meta"))
    with pytest.raises(errors.SegmentIdsError):
        call("segment_max", x, ids=torch.zeros((4, 1), dtype=torch.int64, device="meta"))
