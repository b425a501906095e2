"""Checks the caller's `out` tensor, and writes results to it in place, without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from maxops.engines.torch.dispatch import transforming
from maxops.engines.torch.memory import name_of, unsupported_kind, view
from maxops.errors import MaxopsError, OutputError
from maxops.plan import Array
from maxops.spec import Spec


def check(spec: Spec, out: Any, device: torch.device, *inputs: Any) -> None:
    """Raise an error unless `out` is None or a writable tensor on the inputs' device."""
    if out is None:
        return
    if not isinstance(out, Tensor):
        raise OutputError(
            f"{spec.name} out must be from the same library as the inputs, got {type(out).__name__}", spec.clause("out")
        )
    if torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (out, *inputs)):
        raise OutputError(f"{spec.name} out cannot be used because an argument requires a gradient; omit out")
    if kind := unsupported_kind(out):
        raise OutputError(f"{spec.name} out must be a strided tensor, got a {kind} tensor")
    if not torch.compiler.is_compiling() and out.is_inference() and not torch.is_inference_mode_enabled():
        raise OutputError(f"{spec.name} out is an inference tensor, which is writable only in torch.inference_mode")
    if out.device != device:
        raise OutputError(
            f"{spec.name} out is on {out.device}, but the inputs are on {device}; move all tensors to one device"
        )
    if out.numel() and any(step == 0 and size > 1 for step, size in zip(out.stride(), out.shape, strict=True)):
        raise OutputError(
            f"{spec.name} out must not have internal overlap: several elements share memory, as after expand()"
        )


@contextmanager
def memory(out: Tensor | None) -> Iterator[Array | None]:
    """Yield a NumPy array that shares the memory of `out`, and afterwards mark `out` as changed."""
    written = out  # also if, for example, Ctrl-C interrupts the write
    try:
        yield None if out is None else view(out, "out")
    except MaxopsError:
        written = None
        raise
    finally:
        if written is not None:  # torch does not see the write, and may have saved `out` for a gradient
            increment_version(written)


def copy(spec: Spec, out: Tensor | None, result: Tensor) -> Tensor:
    """Copy the result to `out` and return `out`. Without `out`, return the result."""
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
            f"{spec.name} out cannot be written under a transform of torch.func: {error}; omit out",
            spec.clause("out"),
        ) from error
    return out
