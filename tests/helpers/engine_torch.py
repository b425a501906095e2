"""The tests' adapters for PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import pytest

from helpers.engine_adapter import Adapter
from maxops.dtypes import BFLOAT16
from maxops.plan import Array


def _to_torch(array: Array) -> Any:
    from maxops.engines.torch import memory  # noqa: PLC0415 - optional

    return memory.tensor_of(np.array(array))


def _from_torch(tensor: Any) -> Array:
    import torch  # noqa: PLC0415

    assert type(tensor) is torch.Tensor
    if tensor.dtype is torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy()).view(BFLOAT16.numpy)
    return np.asarray(tensor.numpy())


def _only_torch_operators() -> AbstractContextManager[object]:
    from maxops.engines import torch as engine  # noqa: PLC0415

    return engine.only_torch_operators()


@contextmanager
def traced() -> Iterator[None]:
    """Route calls to the functions that compilers trace, and run them immediately."""
    from maxops.engines import torch as engine  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "is_tracing", lambda: True)
        yield


# These messages do not name the axis, because a graph moves the rows to the first axis.
_TRACED_WORDS = {f"segment_max-refused-axis-{name}": "segment_ids must have shape" for name in ("length", "rank")}
TENSORS = Adapter("torch", "torch", _to_torch, _from_torch)
ADAPTERS = (
    TENSORS,
    Adapter("torch-any-device", "torch", _to_torch, _from_torch, around=_only_torch_operators),
    Adapter("torch-traced", "torch", _to_torch, _from_torch, words=_TRACED_WORDS, around=traced, knows_no_types=True),
)
