"""Third-party runtimes: modules and classes that implement the `onnx.backend.base.Backend` protocol."""

from __future__ import annotations

import inspect
import os
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from maxops.conformance import onnx_model
from maxops.conformance.case import Call, Feed
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, GarbageError, Prepared, Runtime
from maxops.counted import counted

DEVICE = "CPU"


class ThirdParty(Runtime):
    """A module or class by its dotted name: "package.module", "package.module.Class" or "package.module:Class"."""

    claims: ClassVar[frozenset[str]] = frozenset({"ONNX"})
    versioned = True

    def __init__(self, name: str) -> None:
        self.name = name

    def start(self) -> None:
        """Import the module, which may be in the current folder, as with `python -m`, and find its backend."""
        add_cwd_to_path()
        try:
            found = _imported(self.name)
        except Exception as error:
            raise BrokenRuntimeError(f"{self.name} cannot be imported: {type(error).__name__}: {error}") from error
        self.backend: Any = _with_prepare(found, self.name)
        self.module: Any = import_module(getattr(self.backend, "__module__", None) or self.backend.__name__)
        supports = getattr(self.backend, "supports_device", None)
        if supports is not None and not supports(DEVICE):
            raise BrokenRuntimeError(f"{self.name}: supports_device({DEVICE!r}) is false, but the kit runs on the CPU")

    @property
    def version(self) -> str:
        """Return the version of the module or of its package."""
        package = sys.modules[self.module.__name__.partition(".")[0]]
        return str(getattr(self.module, "__version__", getattr(package, "__version__", "")))

    def prepare(self, call: Call) -> Prepared:
        """Pass the model to the backend."""
        ready = self.backend.prepare(onnx_model.model(call), DEVICE)
        if not callable(getattr(ready, "run", None)):
            raise GarbageError(f"prepare returned {_described(ready)}, which has no run method")

        def run(feed: Feed) -> object:
            return only_output(ready.run(list(feed)))

        return run

    def script(self, call: Call, feed: Feed) -> list[str]:
        """Return lines that run the call through the module or class."""
        del feed
        if ":" in self.name:
            found = [f"import pkgutil; backend = pkgutil.resolve_name({self.name!r})"]
        else:  # only an import shows whether the name is a module or a class
            found = [
                f"import pkgutil; found = pkgutil.resolve_name({self.name!r})",
                'classes = [each for each in vars(found).values() if hasattr(each, "prepare")]',
                'own = [each for each in classes if each.__module__.split(".")[0] == found.__name__.split(".")[0]]',
                'backend = found if hasattr(found, "prepare") else own[0]',
            ]
        names = ", ".join(each.name for each in call.fed)
        return [
            *onnx_model.lines(call),
            *found,
            f"actual = np.asarray(backend.prepare(model, {DEVICE!r}).run([{names}])[0])",
        ]


def is_dotted(name: str) -> bool:
    """Return whether a name could be the name of a module or class."""
    return re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*(:[^\W\d]\w*(\.[^\W\d]\w*)*)?", name) is not None


def add_cwd_to_path() -> None:
    """Make modules in the current folder importable, as `python -m` does."""
    if not {"", os.getcwd()} & set(sys.path):
        sys.path.insert(0, os.getcwd())


def only_output(outputs: object) -> object:
    """Return the output of a model with one output. Raise GarbageError for anything else."""
    if not isinstance(outputs, (list, tuple)):
        raise GarbageError(f"run must return a tuple or list of outputs, got {_described(outputs)}")
    if len(outputs) != 1:
        raise GarbageError(f"run returned {counted(len(outputs), 'output')}; the model has 1")
    (output,) = outputs
    array = array_of(output)
    if array.dtype.kind in "OUS":
        raise GarbageError(f"run returned {_described(output)}, which has the non-numeric dtype {array.dtype}")
    return array


def array_of(output: object) -> Any:
    """Return an output as an array. Raise GarbageError if it is not an array."""
    if not hasattr(output, "__array__"):
        raise GarbageError(f"run must return arrays, got {_described(output)}")
    if np.ma.is_masked(output):
        raise GarbageError("run returned an array with masked elements, which have no value")
    try:
        return np.asarray(output)
    except Exception as error:
        raise GarbageError(
            f"run returned {_described(output)}, which cannot be converted to an array: {type(error).__name__}: {error}"
        ) from error


def _imported(name: str) -> Any:
    """Import an object by name. pkgutil.resolve_name would hide the error if a module fails to load."""
    path, _, attributes = name.partition(":")
    parts = path.split(".")
    found: Any = import_module(parts[0])
    for number, part in enumerate(parts[1:], start=2):
        module = ".".join(parts[:number])
        is_module = hasattr(found, "__path__") and find_spec(module) is not None
        found = import_module(module) if is_module else getattr(found, part)
    for part in filter(None, attributes.split(".")):
        found = getattr(found, part)
    return found


def _with_prepare(found: Any, name: str) -> Any:
    """Return the module or class itself, or the only class of the module that has `prepare`."""
    if callable(getattr(found, "prepare", None)):
        return _checked(found, name)
    if not isinstance(found, ModuleType):
        raise BrokenRuntimeError(f"{name} has no prepare method; expected an ONNX backend, got {_described(found)}")
    package = found.__name__.partition(".")[0]  # ignores onnx's own base class, which the module may import
    own = [
        kind for kind in vars(found).values() if inspect.isclass(kind) and kind.__module__.partition(".")[0] == package
    ]
    backends = [kind for kind in dict.fromkeys(own) if callable(getattr(kind, "prepare", None))]
    if len(backends) > 1:
        listed = ", ".join(f"{name}:{kind.__name__}" for kind in backends)
        raise BrokenRuntimeError(f"{name} has several classes with a prepare method; choose one of {listed}")
    if not backends:
        raise BrokenRuntimeError(
            f"{name} has no prepare method and contains no class that has one; expected an onnx.backend.base.Backend, "
            "or the name of a runtime that `maxops conform` lists"
        )
    return _checked(backends[0], name)


def _checked(backend: Any, name: str) -> Any:
    """Return the backend. Raise an error if `prepare` needs an instance, because every call would fail."""
    if inspect.isclass(backend) and inspect.isfunction(inspect.getattr_static(backend, "prepare")):
        raise BrokenRuntimeError(
            f"{name}: {backend.__name__}.prepare must be a class method, as in onnx.backend.base.Backend"
        )
    return backend


def _described(value: object) -> str:
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} of type {type(value).__name__}"
