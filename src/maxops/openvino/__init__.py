"""OpenVINO: its IR, read and run without OpenVINO; and our operators inside its compiled models, with it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from maxops.extras import needed

with needed("maxops.openvino", "openvino"):
    from maxops.openvino.ir import IRWarning, load

__all__ = ["IRWarning", "load", "register", "rewrite"]


def register(core: Any) -> None:
    """Tell an `openvino.Core` of our operators, so that it reads models in which `rewrite` put them.

    `docs/integrations/openvino_extension.md` has an example. Raises ModuleNotFoundError where OpenVINO is not
    installed.
    """
    _module("extension").register(core)


def rewrite(model: Any) -> Any:
    """Return a copy of an `openvino.Model` whose Maximum, ReduceMax and SegmentMax run on our kernels.

    `docs/integrations/openvino_extension.md` has an example, and says what stays exact. The inputs and outputs keep
    their names, types and shapes. Raises ModuleNotFoundError where OpenVINO is not installed; what breaks a clause
    raises that clause's error, with the node before it.
    """
    return _module("rewriting").rewrite(model)


def _module(name: str) -> ModuleType:
    with needed("maxops.openvino.register, as rewrite,", "openvino"):  # all else here needs no OpenVINO
        return import_module(f"maxops.openvino.{name}")
