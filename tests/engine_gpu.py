"""How the tests reach the GPU's kernels: on a GPU, or in Triton's interpreter where there is none."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import maxops as mo
from engine_adapter import Adapter


@dataclass(frozen=True)
class GpuAdapter(Adapter):
    """Tensors that go to the kernels alone."""

    def need(self) -> None:
        """Skip the test without torch or Triton; after it, `maxops` knows the kind."""
        pytest.importorskip("torch")
        pytest.importorskip("triton")
        mo.register_engine("held", "held:Held", "held")


def _held(function: str) -> Callable[[Any], Any]:
    """A function of held.py, which needs torch, looked up when it is called."""

    def call(value: Any) -> Any:
        return getattr(importlib.import_module("held"), function)(value)

    return call


ADAPTERS = (GpuAdapter("gpu", "triton", _held("give"), _held("take")),)
