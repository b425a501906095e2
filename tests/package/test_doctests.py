"""The examples in docstrings run and print the documented output."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import maxops as mo

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(mo.__path__, "maxops.") if not module.name.endswith(".__main__")
)


class _Finder(doctest.DocTestFinder):
    """Also finds the docstrings of public functions, which are native objects around Python functions."""

    def find(self, obj: object, *args: object, **more: object) -> list[doctest.DocTest]:
        found = super().find(obj, *args, **more)  # type: ignore[arg-type]
        names = {test.name for test in found}
        if inspect.ismodule(obj):
            for name, value in vars(obj).items():
                wrapped = getattr(value, "__wrapped__", None)
                full = f"{obj.__name__}.{name}"
                if wrapped is not None and wrapped.__module__ == obj.__name__ and full not in names:
                    found += super().find(wrapped, full, module=obj)
        return found


# Parts of the package that require optional packages.
NEEDED = {
    "maxops.compat.flox": "flox",
    "maxops.compat.jax": "jax",
    "maxops.compat.torch": "torch",
    "maxops.compat.torch_scatter": "torch",
    "maxops.onnxruntime": "onnxruntime",
    "maxops.onnx.from_torch": "torch",
    "maxops.openvino.extension": "openvino",
    "maxops.engines.dask": "dask.array",
    "maxops.engines.jax": "jax",
    "maxops.engines.torch": "torch",
    "maxops.engines.xarray": "xarray",
}


def run(name: str) -> doctest.TestResults:
    for part, package in NEEDED.items():
        if name.startswith(part):
            pytest.importorskip(package)
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in _Finder(exclude_empty=True).find(module):
        runner.run(test)
    return runner.summarize(verbose=False)


@pytest.mark.parametrize("name", ["maxops", *MODULES])
def test_doctests(name: str) -> None:
    threads = mo.get_num_threads()
    try:
        assert run(name).failed == 0
    finally:
        mo.set_num_threads(threads)


def test_every_public_function_has_an_example() -> None:
    examples = {test.name for test in _Finder().find(importlib.import_module("maxops.ops")) if test.examples}
    for function in ("maximum", "reduce_max", "segment_max", "operator", "operators"):
        assert f"maxops.ops.{function}" in examples


def test_some_doctests_were_run() -> None:
    assert sum(run(name).attempted for name in MODULES if name.startswith(("maxops.ops", "maxops.spec"))) >= 20


def test_a_wrong_example_fails() -> None:
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    runner = doctest.DocTestRunner(verbose=False)
    runner.run(test, out=lambda text: None)
    assert runner.summarize(verbose=False).failed == 1
