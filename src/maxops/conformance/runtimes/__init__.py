"""The runtimes that the kit knows, and their lookup by name."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path

from maxops import _native
from maxops.conformance.runtimes.backend import ThirdParty, add_cwd_to_path, is_dotted
from maxops.conformance.runtimes.command import PREFIX, Command
from maxops.conformance.runtimes.libraries import Jax, Numbagg, NumPy, NumpyGroupies, Polars, PyArrow, TensorFlow, Torch
from maxops.conformance.runtimes.maxops_operators import MaxopsOnnx, MaxopsOperators
from maxops.conformance.runtimes.onnx_reference import OnnxReference
from maxops.conformance.runtimes.onnxruntime import MaxopsOnnxRuntime, OnnxRuntime
from maxops.conformance.runtimes.openvino import MaxopsOpenVino, OpenVino
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, Runtime, UnknownRuntimeError
from maxops.shown import shown

# The constructors import no third-party package; `start` does.
CLASSES: dict[str, Callable[[], Runtime]] = {
    each.name: each
    for each in (
        MaxopsOnnx,
        MaxopsOnnxRuntime,
        MaxopsOpenVino,
        NumPy,
        OnnxReference,
        OnnxRuntime,
        OpenVino,
        Torch,
        Jax,
        TensorFlow,
        PyArrow,
        Polars,
        Numbagg,
        NumpyGroupies,
    )
}
GROUPS = ("maxops", "all")


def known() -> list[str]:
    """Return the names of all runtimes that the kit knows, installed or not."""
    return [*(f"maxops:{isa}" for isa in _native.isas()), *CLASSES]


def installed() -> list[str]:
    """Return the names of the installed runtimes, without importing them."""
    return [name for name in known() if _is_installed(_make(name))]


def expand(name: str) -> list[str]:
    """Return the names of the installed runtimes in a group ("all" or "maxops"). Return any other name in a list."""
    if name not in GROUPS:
        return [name]
    return [each for each in installed() if name == "all" or each.startswith("maxops:")]


def resolve(name: str) -> Runtime:
    """Return the named runtime, without importing it.

    Raises UnknownRuntimeError for a group or an unknown name, and BrokenRuntimeError for a missing runtime or program.
    """
    if not isinstance(name, str):
        raise UnknownRuntimeError(f"the name of a runtime must be a string, got {shown(name)}")
    if name in GROUPS:
        raise UnknownRuntimeError(f"expected a single runtime, got the group {name!r}; choose {', '.join(known())}")
    if name.startswith(PREFIX):
        return Command(name)
    if name in known():
        runtime = _make(name)
        if not _is_installed(runtime):
            package = runtime.distribution or runtime.package or runtime.name
            raise BrokenRuntimeError(f"the runtime {name!r} is not installed: pip install {package}")
        return runtime
    if "/" in name and Path(name).is_dir():
        raise UnknownRuntimeError(
            f"{name} is a folder, not a runtime; to run a program on test folders, pass '{PREFIX}PROGRAM'"
        )
    add_cwd_to_path()
    package = name.partition(":")[0].partition(".")[0]
    if is_dotted(name) and not name.startswith("maxops:") and find_spec(package) is not None:
        return ThirdParty(name)
    names = [*GROUPS, *known()]
    near = get_close_matches(name, names, n=3)
    hint = f" (did you mean {' or '.join(near)}?)" if near else ""
    raise UnknownRuntimeError(
        f"unknown runtime {name!r}{hint}; choose {', '.join(names)}, a module or class that implements the "
        f"onnx.backend.base.Backend protocol, such as mypackage.mybackend, or a program such as '{PREFIX}./program'"
    )


def load(name: str) -> Runtime:
    """Start the named runtime and return it. Raises the same errors as `resolve`."""
    runtime = resolve(name)
    try:
        runtime.start()
    except BrokenRuntimeError:
        raise
    except Exception as error:
        raise BrokenRuntimeError(f"the runtime {name!r} cannot be imported: {type(error).__name__}: {error}") from error
    return runtime


def _make(name: str) -> Runtime:
    return CLASSES[name]() if name in CLASSES else MaxopsOperators(name.removeprefix("maxops:"))


def _is_installed(runtime: Runtime) -> bool:
    return find_spec(runtime.package or runtime.name) is not None
