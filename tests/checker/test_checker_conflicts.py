"""Conflicts between declared and inferred types: every pair of small types, judged by the values of each type.

A type represents the set of its values in a small universe.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from onnx import TensorProto, TypeProto

from maxops.checker.onnx_values import completed, conflicts, has_type

ELEMENTS = (TensorProto.FLOAT, TensorProto.INT64)
KEYS = (TensorProto.INT64, TensorProto.STRING)
SIZES = (1, 2)
SHAPES = [dims for rank in range(3) for dims in product(SIZES, repeat=rank)]
World = frozenset[tuple[Any, ...]]


def tensor(form: str, elem_type: int, dims: tuple[int | str, ...] | None) -> TypeProto:
    """Return a tensor type. A size may be a name, or "" if it is unknown."""
    made = TypeProto()
    part = getattr(made, form)
    part.elem_type = elem_type
    if dims is not None:
        part.shape.SetInParent()
        for size in dims:
            dim = part.shape.dim.add()
            if isinstance(size, int):
                dim.dim_value = size
            elif size:
                dim.dim_param = size
    return made


def tensors(form: str, sizes: tuple[int | str, ...]) -> Iterator[TypeProto]:
    for elem_type in (0, *ELEMENTS):
        yield tensor(form, elem_type, None)
        for rank in range(3):
            for dims in product(sizes, repeat=rank):
                yield tensor(form, elem_type, dims)


def around(form: str, inner: TypeProto) -> TypeProto:
    made = TypeProto()
    getattr(made, form).elem_type.CopyFrom(inner)
    return made


def mapped(key: int, inner: TypeProto) -> TypeProto:
    made = TypeProto()
    made.map_type.key_type = key
    made.map_type.value_type.CopyFrom(inner)
    return made


PLAIN = [TypeProto(), *tensors("tensor_type", (1, 2, "n", "")), *tensors("sparse_tensor_type", (1, "n"))]
FEW = [*tensors("tensor_type", (1, 2))]
TYPES = [
    *PLAIN,
    *(around(form, inner) for form in ("sequence_type", "optional_type") for inner in FEW),
    *(mapped(key, inner) for key in KEYS for inner in FEW),
]


def values_of(info: TypeProto) -> World:
    """Return the values of the universe that have a type."""
    form = info.WhichOneof("value")
    if form is None:
        return EVERYTHING
    part = getattr(info, form)
    if form == "map_type":
        return frozenset((form, part.key_type, value) for value in values_of(part.value_type))
    if not form.endswith("tensor_type"):
        return frozenset((form, value) for value in values_of(part.elem_type))
    shapes = SHAPES
    if part.HasField("shape"):
        sizes = [[dim.dim_value] if dim.HasField("dim_value") else SIZES for dim in part.shape.dim]
        shapes = [*product(*sizes)]
    return frozenset(
        (form, elem, dims) for elem in ([part.elem_type] if part.elem_type else ELEMENTS) for dims in shapes
    )


_TENSORS = frozenset(product(("tensor_type", "sparse_tensor_type"), ELEMENTS, SHAPES))
_DENSE = frozenset(value for value in _TENSORS if value[0] == "tensor_type")
EVERYTHING: World = (
    _TENSORS
    | {(form, value) for form in ("sequence_type", "optional_type") for value in _DENSE}
    | {("map_type", key, value) for key in KEYS for value in _DENSE}
)
VALUES = [values_of(info) for info in TYPES]


def test_types_conflict_if_no_value_is_of_both() -> None:
    for (first, ours), (second, theirs) in product(zip(TYPES, VALUES, strict=True), repeat=2):
        assert conflicts(first, second) == (not ours & theirs), (first, second)


def test_what_a_type_leaves_open_another_fills() -> None:
    """Test that a merged type has only the values that both types have, and that the types themselves are unchanged."""
    for first, second in product(PLAIN, repeat=2):
        before = first.SerializeToString(), second.SerializeToString()
        result = completed(first, second)
        assert (first.SerializeToString(), second.SerializeToString()) == before
        both = values_of(first) & values_of(second)
        assert values_of(result) == (both or values_of(first)), (first, second)
    for first, second in product(TYPES[len(PLAIN) :], TYPES):
        assert completed(first, second) == first
        assert completed(TypeProto(), first) == first
    for first in TYPES:
        assert completed(first, None) == first


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(1, "n", 1), ("n", 1, 1), ("n", "m", "n"), ("", "n", "n"), ("n", "", "n"), ("", "", ""), ("", 2, 2), (2, "", 2)],
)
def test_names_of_sizes(first: int | str, second: int | str, expected: int | str) -> None:
    """Test that a number replaces a name, and that the first of two names remains."""
    made = completed(*(tensor("tensor_type", 1, (3, size)) for size in (first, second)))
    assert made == tensor("tensor_type", 1, (3, expected))


def test_a_type_that_says_nothing() -> None:
    assert not has_type(None)
    for info in TYPES:
        form = info.WhichOneof("value")
        part = None if form is None else getattr(info, form)
        says = part is not None and (form not in ("tensor_type", "sparse_tensor_type") or part.elem_type != 0)
        assert has_type(info) == says
