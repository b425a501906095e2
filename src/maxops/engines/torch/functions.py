"""The operators for calls that run now under gradients and transforms, forward ones and `torch.func`'s included.

`torch.library` gives its operators backward gradients alone: under `torch.func.grad` they fail, and a forward gradient
of theirs is a silent zero. An `autograd.Function` has all of it, so that the public functions have it too.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.autograd import Function

from maxops.engines.torch import gradients, operators, pushed, winners


class Maximum(Function):
    """Max: ties, then the inputs."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ties: str, *tensors: Tensor) -> Tensor:
        """Call the operator."""
        result: Tensor = operators.maximum(list(tensors), ties)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Keep what gradients need."""
        ties, *tensors = inputs
        winners.keep_maximum(ctx, (tensors, ties), output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        """See `gradients`."""
        parts, _ = gradients.maximum(ctx, grad)
        return None, *parts

    @staticmethod
    def jvp(ctx: Any, _: None, *tangents: Tensor) -> Tensor:
        """See `pushed`."""
        return pushed.maximum(ctx, tangents)


class ReduceMax(Function):
    """ReduceMax: the operator's arguments."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """Call the operator."""
        return operators.reduce_max(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        """Keep what gradients need."""
        winners.keep_reduce_max(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """See `gradients`."""
        return gradients.reduce_max(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Any:
        """See `pushed`."""
        return pushed.reduce_max(ctx, tangent), None


class SegmentMax(Function):
    """SegmentMax: the operator's arguments."""

    generate_vmap_rule = True

    @staticmethod
    def forward(*inputs: Any) -> Any:
        """Call the operator."""
        return operators.segment_max(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        """Keep what gradients need."""
        winners.keep_segment_max(ctx, inputs, output)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """See `gradients`."""
        return gradients.segment_max(ctx, *grads)

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, *_: Any) -> Any:
        """See `pushed`."""
        return pushed.segment_max(ctx, tangent), None, None


maximum: Any = Maximum.apply
reduce_max: Any = ReduceMax.apply
segment_max: Any = SegmentMax.apply
