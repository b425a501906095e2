"""Decides whether a call must use torch's dispatcher because a gradient is required, or a transform or mode is active.

Private functions of torch report modes and transforms. If torch lacks one of them, every call uses the dispatcher,
which is slower but always correct.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.autograd.graph import increment_version

from maxops import _native
from maxops.engines import table

PLAIN = (torch.Tensor, torch.nn.Parameter)
_modes = getattr(torch._C, "_len_torch_dispatch_stack", lambda: 1)
# True if modes of `make_fx(..., pre_dispatch=True)` are active. They are not on the dispatch stack.
_pre_dispatch = partial(
    any,
    getattr(
        getattr(torch._ops, "_mode_stack_state_for_pre_dispatch", None),
        "_ModeStackStateForPreDispatch__infra_modes",
        (True,),
    ),
)
# True if function modes are active. Even reading an attribute of a tensor would call such a mode.
_function_modes = getattr(torch._C, "_is_torch_function_mode_enabled", lambda: True)
# True inside torch.vmap or a transform of torch.func.
transforming: Callable[[], bool] = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)
_stack: Callable[[], Any] = getattr(getattr(torch._C, "_functorch", None), "get_interpreter_stack", lambda: None)


def transforms() -> set[str]:
    """Return the names of the active transforms of torch.func: Vmap, Grad, Jvp, Functionalize."""
    return {transform.key().name for transform in _stack() or ()}


_jit: Any = torch.jit
# True while `torch.jit.trace` is tracing.
is_tracing: Callable[[], bool] = getattr(torch._C, "_is_tracing", _jit.is_tracing)


def _is_lazy(tensor: torch.Tensor) -> bool:
    """Return whether the values of a tensor differ from those in its memory, so that only torch can compute them."""
    return tensor.is_neg() or tensor._is_zerotensor() or torch._is_functional_tensor(tensor)


def has_forward_gradients() -> bool:
    """Return whether forward-mode gradients are active."""
    return getattr(forward_ad, "_current_level", 0) >= 0


_core_is_off = False


@contextmanager
def only_torch_operators() -> Iterator[None]:
    """Run calls on CPU tensors as on other devices, for tests on machines without a GPU."""
    global _core_is_off  # noqa: PLW0603 - a process-wide setting, like those of torch
    before, _core_is_off = _core_is_off, True
    try:
        yield
    finally:
        _core_is_off = before


def core_is_off() -> bool:
    """Return whether the native core is disabled for CPU tensors."""
    return _core_is_off


def modes_are_active() -> bool:
    """Return whether a mode, a transform or forward-mode gradients are active."""
    return bool(_modes()) or _pre_dispatch() or transforming() or has_forward_gradients()


def needs_dispatch(*values: Any, on_core: bool = True) -> bool:
    """Return whether a call on these values must use torch's dispatcher. Values that are not tensors are ignored.

    With `on_core`, return True also for tensors that are not on the CPU, because the native core does not accept them.
    """
    if modes_are_active() or (on_core and _core_is_off):
        return True
    gradients = torch.is_grad_enabled()
    return any(
        type(value) not in PLAIN
        or (not value.is_cpu if on_core else value.is_meta)
        or _is_lazy(value)
        or (gradients and value.requires_grad)
        for value in values
        if isinstance(value, torch.Tensor)
    )


# Small calls run natively, without Python, if no mode or transform is active, and if all tensors are plain CPU tensors
# that neither require a gradient nor have the negative bit. This is False for torch before 2.10, because the core does
# not support it.
runs_natively: bool = _native.take_tensors(
    PLAIN,
    (_modes, _pre_dispatch, _function_modes, transforming, is_tracing),
    (
        (vars(forward_ad), "_current_level", -1),
        (globals(), "_core_is_off", False),
        # `register_engine` may insert a row that takes precedence over this one, so each new row causes a new lookup.
        (table._known, torch.Tensor, next((row for row in table._rows if row.engine == "maxops.engines.torch"), None)),
    ),
    torch.is_grad_enabled,
    (torch.Tensor.requires_grad,),
    (torch.Tensor.is_neg,),
    # Inference tensors may be written only in inference mode, and each write to a tensor must be reported to torch.
    (torch.Tensor.is_inference, torch.is_inference_mode_enabled, increment_version),
)
