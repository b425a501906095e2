"""Runs OpenVINO IRs without OpenVINO, and runs the max operators of OpenVINO models on maxops."""

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

    See the example in `docs/integrations/openvino_extension.md`. Raises ModuleNotFoundError if OpenVINO is not
    installed.
    """
    _module("extension").register(core)


def rewrite(model: Any) -> Any:
    """Return a copy of an `openvino.Model` in which Maximum, ReduceMax and SegmentMax run on maxops kernels.

    The inputs and outputs of the model keep their names, types and shapes. See
    `docs/integrations/openvino_extension.md` for an example, and for the cases in which results are exact.

    Raises ModuleNotFoundError if OpenVINO is not installed. If a node violates a clause of a specification, raises the
    error for this clause, with a message that names the node.
    """
    return _module("rewriting").rewrite(model)


def _module(name: str) -> ModuleType:
    # imported only here, because reading and running IRs does not require OpenVINO
    with needed("maxops.openvino.register, like rewrite,", "openvino"):
        return import_module(f"maxops.openvino.{name}")
