"""`torch.vmap`: a batch returns the results of its members, for any batched arguments and dimensions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import maxops as mo
from maxops import errors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("torch_way")

IDS = torch.tensor([[0, 0, 2, 5], [1, 1, 1, 1], [0, 2, 3, 4]])
ALL: dict[str, Any] = {"return_indices": True, "return_empty": True}

# name -> the function of one member and, for each argument, its shape and the position of the batch axis, or None.
CALLS: dict[str, tuple[Callable[..., Any], list[tuple[tuple[int, ...], int | None]]]] = {
    "maximum-both": (mo.maximum, [((4, 5), 0), ((5,), 1)]),
    "maximum-one": (lambda a, b: mo.maximum(a, b, 0.5), [((1, 5), 2), ((4, 1), None)]),
    "maximum-ranks": (mo.maximum, [((), 0), ((2, 2), -1)]),
    "reduce-all": (lambda x: mo.reduce_max(x, return_indices=True), [((4, 5), 1)]),
    "reduce-last": (lambda x: mo.reduce_max(x, -1, keepdims=False, return_indices=True), [((4, 5), 2)]),
    "reduce-outer": (lambda x: mo.reduce_max(x, (2, 0), initial=0.5, return_indices=True), [((2, 4, 5), 0)]),
    "reduce-rank-0": (lambda x: mo.reduce_max(x, return_indices=True), [((), 0)]),
    "reduce-noop": (lambda x: mo.reduce_max(x, noop_with_empty_axes=True, return_indices=True), [((4, 5), 1)]),
    "reduce-initial": (lambda x, i: mo.reduce_max(x, 0, initial=i, return_indices=True), [((4,), None), ((), 0)]),
    "segments": (lambda x: mo.segment_max(x, IDS[0], fill_mode="ZERO", **ALL), [((4, 5), 1)]),
    "segments-rows": (lambda x: mo.segment_max(x, IDS[0], 3, fill_mode="LOWEST", **ALL), [((4,), 1)]),
    "segments-offsets": (
        lambda x: mo.segment_max(x, offsets=torch.tensor([0, 1, 4]), initial=0.5, **ALL),
        [((4, 2), 0)],
    ),
}


def _argument(shape: tuple[int, ...], place: int | None, seed: int) -> Any:
    values = torch.randn((*shape, 3) if place is not None else shape, generator=torch.Generator().manual_seed(seed))
    return values if place is None else values.movedim(-1, place)


def _tuple(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("call", CALLS)
def test_vmap(call: str) -> None:
    function, shapes = CALLS[call]
    places = [place for _, place in shapes]
    arguments = [_argument(*shape, seed) for seed, shape in enumerate(shapes)]
    got = _tuple(torch.vmap(function, in_dims=tuple(places))(*arguments))
    for member in range(3):
        alone = [a if place is None else a.select(place, member) for a, place in zip(arguments, places, strict=True)]
        for part, expected in zip(got, _tuple(function(*alone)), strict=True):
            assert part.dtype is expected.dtype
            assert torch.equal(part[member], expected)


@pytest.mark.parametrize("data", [None, 0])
def test_vmap_over_the_segments_themselves(data: int | None) -> None:
    x = _argument((4, 2), data, 1)

    def by_ids(x: Any, ids: Any) -> Any:
        return mo.segment_max(x, ids, 5, fill_mode="ZERO", **ALL)

    got = torch.vmap(by_ids, in_dims=(data, 0))(x, IDS)
    offsets = torch.tensor([[0, 2, 4], [0, 0, 4], [0, 4, 4]])
    bounds = torch.vmap(lambda x, o: mo.segment_max(x, offsets=o, fill_mode="ZERO"), in_dims=(data, 0))(x, offsets)
    for member in range(3):
        alone = x if data is None else x[member]
        for part, expected in zip(got, by_ids(alone, IDS[member]), strict=True):
            assert torch.equal(part[member], expected)
        assert torch.equal(bounds[member], mo.segment_max(alone, offsets=offsets[member], fill_mode="ZERO"))


def test_vmap_in_vmap() -> None:
    x = torch.randn(2, 3, 4, 5)
    got = torch.vmap(torch.vmap(lambda row: mo.maximum(mo.reduce_max(row, 0, keepdims=False), row), in_dims=1))(x)
    expected = torch.stack([torch.stack([mo.maximum(mo.reduce_max(y, 0), y) for y in row.unbind(1)]) for row in x])
    assert torch.equal(got, expected)


def test_ids_of_a_batch_need_a_number_of_segments() -> None:
    with pytest.raises(errors.EngineError, match="requires num_segments if vmap batches segment_ids"):
        torch.vmap(lambda ids: mo.segment_max(torch.ones(4), ids, fill_mode="ZERO"))(IDS)


@pytest.mark.parametrize(
    "x", [torch.ones(4), torch.ones(4, requires_grad=True), torch.ones(4, device="meta")], ids=["cpu", "grad", "meta"]
)
def test_a_batch_without_members(x: Any) -> None:
    initials = torch.ones(0, device=x.device)
    values, places = torch.vmap(lambda i: mo.reduce_max(x, initial=i, return_indices=True))(initials)
    assert (values.shape, values.dtype, places.shape) == ((0, 1), torch.float32, (0, 1))
    assert values.device == places.device == x.device
    none = IDS[:0].to(x.device)
    values, places, empty = torch.vmap(lambda ids: mo.segment_max(x, ids, 6, fill_mode="ZERO", **ALL))(none)
    assert (values.shape, places.dtype, empty.shape) == ((0, 6), torch.int64, (0, 6))
    bounds = torch.vmap(lambda o: mo.segment_max(x, offsets=o, fill_mode="ZERO"))(none)
    assert (bounds.shape, bounds.device) == ((0, 3), x.device)


def test_a_batch_has_one_number_of_segments() -> None:
    with pytest.raises(errors.NumSegmentsError, match="num_segments must be a Python integer"):
        torch.vmap(lambda n: mo.segment_max(torch.ones(4), IDS[0], n, fill_mode="ZERO"))(torch.tensor([6, 6]))


def test_errors_of_a_batch_are_those_of_its_members() -> None:
    with pytest.raises(errors.SegmentIdsError, match="must be non-decreasing, got 1 after 2 at position 2"):
        torch.vmap(lambda x: mo.segment_max(x, torch.tensor([0, 2, 1]), fill_mode="ZERO"))(torch.ones(2, 3))
    with pytest.raises(errors.AxesError, match="data of rank 1, got 1"):
        torch.vmap(lambda x: mo.reduce_max(x, 1))(torch.ones(2, 3))
