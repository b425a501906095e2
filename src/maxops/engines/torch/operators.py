"""Registers the operators with torch: `torch.ops.maxops.maximum`, `reduce_max`, `segment_max`, and `scalar`.

Each operator has a schema, and implementations for the CPU, other devices, fake tensors and vmap. All except `scalar`
support gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from maxops import spec
from maxops.engines.torch import any_device, fake, gradients, kernels, schemas, vmap
from maxops.engines.torch.dispatch import core_is_off
from maxops.engines.torch.memory import DTYPES, tensor_of
from maxops.plan.values import scalar_as


def _operator(name: str, fields: dict[str, str], results: int) -> Any:
    on_cpu, anywhere = getattr(kernels, name), getattr(any_device, name)

    def unless_off(*inputs: Any) -> Any:
        return (anywhere if core_is_off() else on_cpu)(*inputs)

    made: Any = custom_op(f"maxops::{name}", anywhere, mutates_args=(), schema=schemas.schema(fields, results))
    made.register_kernel("cpu")(unless_off)
    made.register_fake(getattr(fake, name))
    made.register_autograd(getattr(gradients, name), setup_context=getattr(gradients, f"save_{name}"))
    made.register_vmap(getattr(vmap, name))
    return made


maximum: Any = _operator("maximum", schemas.MAXIMUM, 1)
reduce_max: Any = _operator("reduce_max", schemas.REDUCE_MAX, 2)
segment_max: Any = _operator("segment_max", schemas.SEGMENT_MAX, 3)

ROWS = {row.name: row for row in (spec.MAXIMUM, spec.REDUCE_MAX, spec.SEGMENT_MAX)}


def _scalar(like: Tensor, value: Any, operator: str, name: str, beside: str) -> Tensor:
    """Convert a Python scalar to the dtype and device of a tensor. Floats are rounded. Other values must be exact."""
    return tensor_of(scalar_as(ROWS[operator], name, value, DTYPES[like.dtype], beside)).to(like.device)


# Used only in graphs. In eager calls, the planner converts scalars to arrays.
scalar: Any = custom_op(
    "maxops::scalar",
    _scalar,
    mutates_args=(),
    schema="(Tensor like, Scalar value, str operator, str name, str beside) -> Tensor",
)


def _abstract_scalar(like: Tensor, value: Any, operator: str, name: str, beside: str) -> Tensor:
    if isinstance(value, (bool, int, float)):  # not a symbol
        _scalar(torch.empty(0, dtype=like.dtype), value, operator, name, beside)
    return like.new_empty(())


scalar.register_fake(_abstract_scalar)
scalar.register_vmap(vmap.scalar)
