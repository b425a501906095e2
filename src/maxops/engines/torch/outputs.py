"""The caller's `out`: a tensor that is written in place, which no gradient flows through."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from maxops.engines.torch.memory import view
from maxops.errors import OutputError
from maxops.plan import Array
from maxops.spec import Spec


def check(spec: Spec, out: Any, device: torch.device, *inputs: Any) -> None:
    """Raise unless out is a tensor that may be written to, where the inputs lie, or None."""
    if out is None:
        return
    if not isinstance(out, Tensor):
        raise OutputError(
            f"{spec.name} out is of type {type(out).__name__}; beside tensors it is a tensor", spec.clause("T")
        )
    if torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (out, *inputs)):
        raise OutputError(
            f"{spec.name} out is given and an argument requires a gradient; gradients flow into new results only"
        )
    if out.layout is not torch.strided or out.is_nested or out.is_quantized or out.is_neg():
        kind = "a negated view" if out.is_neg() else "of another kind than strided"
        raise OutputError(f"{spec.name} out is {kind}, which has no memory of the result's own elements")
    if out.device != device:
        raise OutputError(
            f"{spec.name} out lies on {out.device}, but the inputs on {device}; maxops copies nothing from device to "
            "device in silence"
        )
    if any(step == 0 and size > 1 for step, size in zip(out.stride(), out.shape, strict=True)):
        raise OutputError(f"{spec.name} out has several elements at one place in memory; expand() made it so")


def memory(out: Tensor | None) -> Array | None:
    """The memory of out, which is about to be written."""
    if out is None:
        return None
    increment_version(out)  # torch does not see the write, and what it kept for a gradient must not go unnoticed
    return view(out)


def copy(spec: Spec, out: Tensor | None, result: Tensor) -> Tensor:
    """The result, in out if there is one."""
    if out is None:
        return result
    if out.dtype != result.dtype:
        raise OutputError(f"{spec.name} out is {out.dtype}, but the inputs are {result.dtype}", spec.clause("T"))
    if out.shape != result.shape:
        raise OutputError(
            f"{spec.name} out has shape {tuple(out.shape)}, but the result has shape {tuple(result.shape)}"
        )
    out.copy_(result)
    return out
