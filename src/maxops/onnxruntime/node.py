"""Prepares the nodes of an ONNX Runtime session for native code (native/bindings/onnxruntime.cpp).

Native code runs simple, valid calls itself. It passes all other calls to a `Node`, which checks and runs the call, or
raises an error that names the violated clause of the specification.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxops import ops
from maxops.calls import Call, ReduceCall, ScatterCall, of_node
from maxops.errors import AttributeValueError, DTypeError, MaxopsError
from maxops.onnx import schemas
from maxops.plan import Array, flag
from maxops.spec import Spec

# The errors that nodes raise during a run. onnxruntime reports only their texts to the caller of the session.
_raised: ContextVar[list[MaxopsError] | None] = ContextVar("_raised", default=None)


@contextmanager
def errors() -> Iterator[list[MaxopsError]]:
    """Collect the errors that nodes raise in this thread."""
    found: list[MaxopsError] = []
    token = _raised.set(found)
    try:
        yield found
    finally:
        _raised.reset(token)


@contextmanager
def _recorded() -> Iterator[None]:
    try:
        yield
    except MaxopsError as error:
        if (found := _raised.get()) is not None:
            found.append(error)
        raise


@dataclass(frozen=True)
class Node:
    """A node of a session, with the attributes that native code reads. Calling the object checks and runs a call."""

    run: Callable[..., Array]
    broadcasts: bool
    negative_axes: bool
    keepdims: bool
    noop_with_empty_axes: bool
    fill_mode: str | None

    @_recorded()
    def __call__(self, *inputs: Array | None) -> Array:
        """Run the node on the inputs, and return the result as a C-contiguous array."""
        return np.asarray(self.run(*inputs), order="C")


@_recorded()
def prepare(operator: str, type_name: str, attributes: Mapping[str, Any]) -> Node:
    """Create the `Node` for an operator and a dtype. Raise an error if the dtype or an attribute is invalid."""
    row = schemas.row(operator, attributes.get(schemas.SINCE_VERSION))
    if type_name not in map(str, row.dtypes):
        raise DTypeError(
            f"{row.name} data has unsupported dtype {type_name}; supported dtypes: {', '.join(map(str, row.dtypes))}",
            row.clause("T"),
        )
    for name in attributes:
        if name not in (schemas.SINCE_VERSION, *row.attributes):
            raise AttributeValueError(f"{row.name} has no attribute {name}")
    keepdims = flag(row, "keepdims", attributes.get("keepdims", 1))
    noop = flag(row, "noop_with_empty_axes", attributes.get("noop_with_empty_axes", 0))
    fill_mode = attributes.get("fill_mode")
    own = {name: value for name, value in attributes.items() if name != schemas.SINCE_VERSION}
    return Node(
        lambda *inputs: ops.run(_request(row, inputs, own)),
        row.broadcast == "numpy",
        row.negative_axes,
        keepdims,
        noop,
        fill_mode,
    )


def _request(row: Spec, inputs: tuple[Any, ...], attributes: dict[str, Any]) -> Call | ScatterCall:
    if row.operator == "ReduceMax":  # in the maxops domain, axes is an input in every version
        return ReduceCall(*inputs, **attributes)._replace(row=row)
    return of_node(row, inputs, attributes)
