"""The engine for PyTorch tensors, with support for `torch.compile`, gradients and `torch.vmap`.

>>> import torch
>>> import maxops as mo
>>> mo.maximum(torch.tensor([1.0, -0.0, torch.nan]), torch.tensor([3.0, 0.0, 1.0]))
tensor([3., 0., nan])

Importing this module registers the operators `torch.ops.maxops.*`, which exported programs contain. maxops imports it
at the first call with a tensor.

Calls use the threads of maxops (`maxops.set_num_threads`), not torch's threads.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from maxops.extras import needed

with needed("maxops.engines.torch", "torch"):
    import torch

from maxops.calls import Call, MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import Engine, loaded
from maxops.engines.torch import eager, operators
from maxops.engines.torch.dispatch import is_tracing, only_torch_operators

__all__ = ["only_torch_operators", "operators", "run"]

_EAGER: dict[type, Any] = {MaxCall: eager.maximum, ReduceCall: eager.reduce_max, SegmentCall: eager.segment_max}


def run(call: Call) -> Any:
    """Run a call, or add it to the traced graph."""
    if torch.compiler.is_compiling() or is_tracing():
        from maxops.engines.torch import traced  # noqa: PLC0415 - slow to import

        return traced.run(call)
    return _EAGER[type(call)](call)


loaded[__name__] = cast(Engine, sys.modules[__name__])  # Dynamo can trace neither an import by name nor `sys.modules`
