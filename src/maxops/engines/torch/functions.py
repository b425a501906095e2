"""The operators as autograd functions, for eager calls with backward or forward-mode gradients, and for `torch.func`.

Operators of `torch.library` support only backward gradients: `torch.func.grad` fails, and forward-mode gradients are
silently zero. An `autograd.Function` supports all kinds of gradients.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function

from maxops.engines.torch import any_device, gradients, kernels, operators
from maxops.engines.torch.dispatch import core_is_off, has_forward_gradients, needs_dispatch, transforms
from maxops.errors import EngineError


def _run(name: str, tensors: Sequence[Any]) -> Any:
    """Return the operator or, if no dispatch is needed, its kernel for the device of the first tensor."""
    if needs_dispatch(*tensors, on_core=False):
        return getattr(operators, name)
    return getattr(kernels if tensors[0].is_cpu and not core_is_off() else any_device, name)


class Maximum(Function):
    """The autograd function of Max, with the arguments ties, nan and the inputs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ties: str, nan: str, *tensors: Tensor) -> Tensor:
        """Call the operator, or its kernel directly."""
        result: Tensor = _run("maximum", tensors)(list(tensors), ties, nan)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Save the inputs and options that gradients require."""
        ties, nan, *tensors = inputs
        gradients.save_maximum(ctx, (tensors, ties, nan), output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """Return the gradients that the module `gradients` computes."""
        return None, None, *gradients.for_inputs(ctx, grad, ctx.needs_input_grad[2:])

    @staticmethod
    def jvp(ctx: Any, ties: None, nan: None, *tangents: Tensor) -> Tensor:
        """Return the forward-mode gradient that the module `gradients` computes."""
        moved: Tensor = gradients.maximum_jvp(ctx, tangents)
        return moved


class ReduceMax(Function):
    """The autograd function of ReduceMax. `axes` is a set, because torch's vmap splits lists into arguments."""

    generate_vmap_rule = True

    @staticmethod
    def forward(data: Tensor, axes: frozenset[int] | None, *options: Any) -> Any:
        """Call the operator, or its kernel directly."""
        return _run("reduce_max", (data, *options))(data, None if axes is None else sorted(axes), *options)

    setup_context: Any = staticmethod(gradients.save_reduce_max)
    backward: Any = staticmethod(gradients.reduce_max)
    jvp: Any = staticmethod(gradients.reduce_max_jvp)


class SegmentMax(Function):
    """The autograd function of SegmentMax, with the operator's arguments."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """Call the operator, or its kernel directly."""
        return _run("segment_max", inputs)(*inputs)

    setup_context: Any = staticmethod(gradients.save_segment_max)
    backward: Any = staticmethod(gradients.segment_max)
    jvp: Any = staticmethod(gradients.segment_max_jvp)


for _function in (Maximum, ReduceMax, SegmentMax):
    # Cached, because `apply` reads the signature in every call, and computing it doubles the time of a small call.
    _forward: Any = _function.forward
    _forward.__signature__ = inspect.signature(_forward)


def _apply_reduce_max(data: Tensor, axes: Any, *options: Any) -> Any:
    apply: Any = ReduceMax.apply
    return apply(data, None if axes is None else frozenset(axes), *options)


def _applied(forward: Any, run: Any, operator: Any, name: str) -> Any:
    """Return a function that calls `run`, or `operator` under torch.func.functionalize.

    Functionalization rejects autograd.Function. Plain tensors need only `forward`, which takes half the time for small
    tensors.
    """

    def apply(*inputs: Any) -> Any:
        if not needs_dispatch(*inputs, on_core=False):
            return forward(*inputs)
        if "Functionalize" not in (active := transforms()):
            return run(*inputs)
        if "Grad" in active or has_forward_gradients():
            raise EngineError(
                f"{name} does not support torch.func.functionalize combined with torch.func gradients, because "
                "torch cannot functionalize torch.autograd.Function; remove functionalize, or use backward()"
            )
        return operator(*inputs)

    return apply


maximum: Any = _applied(
    Maximum.forward, Maximum.apply, lambda ties, nan, *tensors: operators.maximum(list(tensors), ties, nan), "maximum"
)
reduce_max: Any = _applied(ReduceMax.forward, _apply_reduce_max, operators.reduce_max, "reduce_max")
segment_max: Any = _applied(SegmentMax.forward, SegmentMax.apply, operators.segment_max, "segment_max")
