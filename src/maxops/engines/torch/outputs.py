"""Handles the caller's `out`: a tensor that is written in place, without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from maxops.engines.torch.dispatch import transforming
from maxops.engines.torch.memory import name_of, view
from maxops.errors import MaxopsError, OutputError
from maxops.plan import Array
from maxops.spec import Spec


def check(spec: Spec, out: Any, device: torch.device, *inputs: Any) -> None:
    """Raise unless `out` is None or a writable tensor on the inputs' device."""
    if out is None:
        return
    if not isinstance(out, Tensor):
        raise OutputError(
            f"{spec.name} out is of type {type(out).__name__}; beside tensors it is a tensor", spec.clause("out")
        )
    if torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (out, *inputs)):
        raise OutputError(
            f"{spec.name} out is given and an argument requires a gradient; gradients flow into new results only"
        )
    if out.layout is not torch.strided or out.is_nested or out.is_quantized:
        raise OutputError(f"{spec.name} out is of another kind than strided, which has no memory of its elements")
    if not torch.compiler.is_compiling() and out.is_inference() and not torch.is_inference_mode_enabled():
        raise OutputError(f"{spec.name} out was made in torch.inference_mode, and is written to there alone")
    if out.device != device:
        raise OutputError(
            f"{spec.name} out lies on {out.device}, but the inputs on {device}; maxops copies nothing from device to "
            "device silently"
        )
    if any(step == 0 and size > 1 for step, size in zip(out.stride(), out.shape, strict=True)):
        raise OutputError(f"{spec.name} out has internal overlap: several elements share memory; expand() made it so")


@contextmanager
def memory(out: Tensor | None) -> Iterator[Array | None]:
    """Yield the memory of `out` for writing; raise if it cannot be written."""
    try:
        yield None if out is None else view(out)
    except MaxopsError:
        raise
    except BaseException:  # such as Ctrl-C, amid the write
        _was_written(out)
        raise
    _was_written(out)


def _was_written(out: Tensor | None) -> None:
    """Mark `out` as changed: torch does not see the write, and may have saved `out` for a gradient."""
    if out is not None:
        increment_version(out)


def copy(spec: Spec, out: Tensor | None, result: Tensor) -> Tensor:
    """Return the result, copied to `out` if it is given."""
    if out is None:
        return result
    if out.dtype != result.dtype:
        raise OutputError(
            f"{spec.name} out is {name_of(out.dtype)}, but the inputs are {name_of(result.dtype)}", spec.clause("out")
        )
    if out.shape != result.shape:
        expected, actual = (tuple(map(int, tensor.shape)) for tensor in (result, out))  # sizes in a trace are tensors
        raise OutputError(
            f"{spec.name} out has shape {actual}, but the result has shape {expected}", spec.clause("out")
        )
    try:
        out.copy_(result)
    except RuntimeError as error:
        if not transforming():
            raise
        raise OutputError(
            f"{spec.name} out cannot be written under a transform of torch.func: {error}; leave it out",
            spec.clause("out"),
        ) from error
    return out
