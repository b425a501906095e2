"""The operators as torch knows them: `torch.ops.maxops.maximum`, `reduce_max`, `segment_max`, and `scalar`.

Each is a schema, and what it does on a CPU, on a GPU, without data, backwards and over a batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from maxops import spec
from maxops.engines.torch import argmax, fake, gradients, kernels, schemas, vmap
from maxops.engines.torch.memory import DTYPES, tensor_of
from maxops.plan.values import scalar_as


def _operator(name: str, kernel: Any, schema: str) -> Any:
    return custom_op(f"maxops::{name}", kernel, mutates_args=(), device_types="cpu", schema=schema)


maximum: Any = _operator("maximum", kernels.maximum, schemas.schema(schemas.MAXIMUM, 1))
reduce_max: Any = _operator("reduce_max", kernels.reduce_max, schemas.schema(schemas.REDUCE_MAX, 2))
segment_max: Any = _operator("segment_max", kernels.segment_max, schemas.schema(schemas.SEGMENT_MAX, 3))

for _op, _on_gpu, _abstract, _save, _backward, _batch in (
    (maximum, kernels.maximum_on_gpu, fake.maximum, argmax.save_maximum, gradients.maximum, vmap.maximum),
    (
        reduce_max,
        kernels.reduce_max_on_gpu,
        fake.reduce_max,
        argmax.save_reduce_max,
        gradients.reduce_max,
        vmap.reduce_max,
    ),
    (
        segment_max,
        kernels.segment_max_on_gpu,
        fake.segment_max,
        argmax.save_segment_max,
        gradients.segment_max,
        vmap.segment_max,
    ),
):
    _op.register_kernel("cuda")(_on_gpu)
    _op.register_fake(_abstract)
    _op.register_autograd(_backward, setup_context=_save)
    _op.register_vmap(_batch)


ROWS = {row.name: row for row in (spec.MAXIMUM, spec.REDUCE_MAX, spec.SEGMENT_MAX)}


def _scalar(like: Tensor, value: Any, operator: str, name: str, beside: str) -> Tensor:
    """A Python scalar in the type and on the device of a tensor, if that type holds it exactly."""
    return tensor_of(scalar_as(ROWS[operator], name, value, DTYPES[like.dtype], beside)).to(like.device)


# In graphs only: elsewhere the planner makes arrays of scalars.
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
