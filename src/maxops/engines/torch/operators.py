"""The operators as torch knows them: `torch.ops.maxops.maximum`, `reduce_max`, `segment_max`, and `scalar`.

Each is a schema, and what it does on a CPU, on a GPU, without data, backwards and over a batch. A schema's types are
torch's: what may be a Python scalar or a NumPy array is a tensor here.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.library import custom_op

from maxops import spec
from maxops.engines.torch import batches, gradients, kernels, shapes, winners
from maxops.engines.torch.memory import DTYPES, tensor_of
from maxops.plan.values import scalar_as

maximum = custom_op(
    "maxops::maximum",
    kernels.maximum,
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor[] tensors, str ties) -> Tensor",
)
reduce_max = custom_op(
    "maxops::reduce_max",
    kernels.reduce_max,
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor data, int[]? axes, bool keepdims, bool noop_with_empty_axes, "
    "Tensor? initial, bool return_indices, str ties) -> (Tensor, Tensor)",
)
segment_max = custom_op(
    "maxops::segment_max",
    kernels.segment_max,
    mutates_args=(),
    device_types="cpu",
    schema="(Tensor data, Tensor? segment_ids, Tensor? offsets, SymInt? num_segments, "
    "str? fill_mode, bool check_ids, bool sorted, str? out_of_range, Tensor? initial, "
    "bool return_indices, bool return_empty, str ties) -> (Tensor, Tensor, Tensor)",
)

for op, on_gpu, fake, save, backward, batch in (
    (
        maximum,
        kernels.maximum_on_gpu,
        shapes.maximum,
        winners.keep_maximum,
        gradients.maximum,
        batches.maximum,
    ),
    (
        reduce_max,
        kernels.reduce_max_on_gpu,
        shapes.reduce_max,
        winners.keep_reduce_max,
        gradients.reduce_max,
        batches.reduce_max,
    ),
    (
        segment_max,
        kernels.segment_max_on_gpu,
        shapes.segment_max,
        winners.keep_segment_max,
        gradients.segment_max,
        batches.segment_max,
    ),
):
    op.register_kernel("cuda")(on_gpu)
    op.register_fake(fake)
    op.register_autograd(backward, setup_context=save)
    op.register_vmap(batch)


ROWS = {row.name: row for row in (spec.MAXIMUM, spec.REDUCE_MAX, spec.SEGMENT_MAX)}


def _scalar(like: Tensor, value: Any, operator: str, name: str, beside: str) -> Tensor:
    """A Python scalar in the type and on the device of a tensor, if that type holds it exactly."""
    return tensor_of(scalar_as(ROWS[operator], name, value, DTYPES[like.dtype], beside)).to(like.device)


# In graphs only: elsewhere the planner makes arrays of scalars.
scalar = custom_op(
    "maxops::scalar",
    _scalar,
    mutates_args=(),
    schema="(Tensor like, Scalar value, str operator, str name, str beside) -> Tensor",
)


@scalar.register_fake
def _(like: Tensor, value: Any, operator: str, name: str, beside: str) -> Tensor:
    if isinstance(value, (bool, int, float)):  # not a symbol
        _scalar(torch.empty(0, dtype=like.dtype), value, operator, name, beside)
    return like.new_empty(())
