"""The kernels of the operators for CPU tensors, which call the NumPy engine.

Results that are not requested are empty tensors, because a torch operator has a fixed number of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from maxops import _native
from maxops.calls import MaxCall
from maxops.engines import numpy as engine
from maxops.engines.base import as_tuple, check_ties
from maxops.engines.torch.memory import elementwise, view
from maxops.engines.torch.memory import result as contiguous
from maxops.engines.torch.schemas import is_identity, reduce_call, segment_call
from maxops.plan import Array


def nothing(like: Tensor, dtype: torch.dtype = torch.int64) -> Tensor:
    """Return an empty tensor, as a placeholder for a result that was not requested."""
    return like.new_empty((0,), dtype=dtype)


def _view(name: str, tensor: Tensor) -> Array:
    return view(tensor, name)


def maximum(tensors: Sequence[Tensor], ties: str, nan: str = "propagate") -> Tensor:
    """Compute Max on the CPU."""
    views = [view(tensor, f"input {place}") for place, tensor in enumerate(tensors)]
    call = MaxCall(views, ties=ties, nan=nan)
    check_ties(call)
    done = _native.maximum(*views, nan=nan)
    return elementwise(engine.run(call) if done is None else done, *tensors)


def reduce_max(*inputs: Any) -> tuple[Tensor, Tensor]:
    """Compute ReduceMax on the CPU."""
    call = reduce_call(*inputs)
    check_ties(call)
    values, *indices = as_tuple(engine.run(call.map(_view, _view)))
    return (
        elementwise(values, call.data) if is_identity(call) else contiguous(values),
        contiguous(*indices) if indices else nothing(call.data),
    )


def segment_max(*inputs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Compute SegmentMax on the CPU."""
    call = segment_call(*inputs)
    check_ties(call)
    parts = map(contiguous, as_tuple(engine.run(call.map(_view, _view))))
    return (
        next(parts),
        next(parts) if call.return_indices else nothing(call.data),
        next(parts) if call.return_empty else nothing(call.data, torch.bool),
    )
