"""OpenVINO: maxops reads and runs IRs without OpenVINO, and adds its own operators to models for OpenVINO."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from maxops.extras import needed

with needed("maxops.openvino", "openvino"):
    from maxops.openvino.ir import IRWarning, load

__all__ = ["IRWarning", "load", "register", "rewrite"]


def register(core: Any) -> None:
    """Register the operators of maxops with an `openvino.Core`, so that it can read saved models that contain them.

    `docs/integrations/openvino_extension.md` has an example. Raises ModuleNotFoundError if OpenVINO is not installed.
    """
    _module("extension").register(core)


def rewrite(model: Any) -> Any:
    """Return a copy of an `openvino.Model` in which Maximum, ReduceMax and SegmentMax run on maxops kernels.

    `docs/integrations/openvino_extension.md` has an example, and explains which results are exact. The inputs and
    outputs keep their names, types and shapes. Raises ModuleNotFoundError if OpenVINO is not installed. If a node
    violates a clause, raises the error of the clause, and its message names the node.
    """
    return _module("rewriting").rewrite(model)


def _module(name: str) -> ModuleType:
    # imported only here, because reading and running IRs does not require OpenVINO
    with needed("maxops.openvino.register, like rewrite,", "openvino"):
        return import_module(f"maxops.openvino.{name}")
