"""Runs the test suites of other libraries with their maxima replaced by those of `maxops.compat`.

    python conformance/originals.py [SUITE ...]

SUITE: numpy, torch, torch_scatter, flox, jax or array_api; the default is all. The suites of NumPy and PyTorch are part
of their packages. The other suites are in checkouts of their repositories (pytorch_scatter, flox, jax,
array-api-tests), in the folder that the environment variable ORIGINALS names. Only tests that call a replaced function
count.

The script prints the failures. If every suite ran, it writes the counts and the reasons to docs/reference/compat.md. It
exits with 1 if a test fails for a reason that is not in EXCEPTIONS.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Generator, Iterable
from copy import copy
from fnmatch import fnmatch
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

from maxops.compat import numpy as compat_numpy

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "compat.md"
BEGIN, END = "<!-- the table of conformance/originals.py -->\n", "<!-- its end -->\n"
# Reasons for known failures, by suite and a pattern of the tests' names.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "numpy": {},
    "torch": {},
    "torch_scatter": {},
    "jax": {"*complex*": "complex numbers"},
    "array_api": {},
    "flox": {
        "*test_groupby_reduce_all[[]*-nanmax-True-*-True]": "flox's `nanmax` of sparse arrays, with labels that are NaN"
    },
}


class Found(NamedTuple):
    """The results of a suite's tests that call a replaced function: the number of passes, and the failures by name."""

    suite: str
    version: str
    passed: int
    failed: dict[str, str]

    @property
    def row(self) -> str:
        """The suite's row in the table."""
        count = self.passed + len(self.failed)
        return f"| `maxops.compat.{self.suite}` | {self.suite} {self.version} | {self.passed:,} of {count:,} |"


class Watched:
    """A function that records calls and attribute lookups."""

    def __init__(self, function: Any, note: Callable[[], None]) -> None:
        self._function, self._note = function, note

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Record the call, and call the function."""
        self._note()
        return self._function(*args, **options)

    def __getattr__(self, name: str) -> Any:
        self._note()
        return getattr(self._function, name)


class Replacing:
    """A pytest plugin that replaces functions of a module, and keeps the outcomes of tests that call one of them."""

    def __init__(self, module: ModuleType, functions: dict[str, Any]) -> None:
        self.module, self.functions = module, functions
        self.reached: set[str] = set()
        self.outcomes: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Replace the functions during a test, and restore them afterwards."""
        own = {name: getattr(self.module, name) for name in self.functions}
        for name, function in self.functions.items():
            setattr(self.module, name, Watched(function, lambda: self.reached.add(item.nodeid)))
        try:
            return (yield)
        finally:
            for name, function in own.items():
                setattr(self.module, name, function)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Skip tests for other reductions."""
        try:
            return (yield)
        except ValueError as error:
            if "for other reductions" in str(error):
                pytest.skip(str(error))
            raise

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep a test's outcome: "" for a pass, otherwise the last line of its report."""
        if report.when == "call" and report.passed:
            self.outcomes[report.nodeid] = ""
        elif report.failed:
            self.outcomes[report.nodeid] = str(report.longreprtext).strip().splitlines()[-1]


def run_pytest(module: ModuleType, functions: dict[str, Any], folder: Path, tests: Iterable[str]) -> Replacing:
    """Run the tests of a folder with little output."""
    plugin = Replacing(module, functions)
    options = ["-q", "--no-header", "--tb=line", "-Wignore", "-oaddopts=", "-pno:cacheprovider", f"--rootdir={folder}"]
    pytest.main([*options, "-c", os.devnull, *tests], plugins=[plugin])
    return plugin


def numpy() -> Found:
    """Run NumPy's own tests, except those that also fail with NumPy's functions, such as tests for object identity."""
    folder = Path(np.__file__).parent
    ours = {name: getattr(compat_numpy, name) for name in compat_numpy.__all__}
    theirs = {name: getattr(np, name) for name in ours}
    names = sorted(str(path) for path in folder.rglob("tests/test_*.py") if not {"f2py", "distutils"} & {*path.parts})
    plugin = run_pytest(np, ours, folder, names)
    outcomes = {name: text for name, text in plugin.outcomes.items() if name in plugin.reached}
    return counted("numpy", np.__version__, without_theirs("numpy", np, folder, outcomes, theirs))


def without_theirs(
    suite: str, module: ModuleType, folder: Path, outcomes: dict[str, str], theirs: dict[str, Any] | None = None
) -> dict[str, str]:
    """Return the outcomes without the tests that also fail with the library's own functions."""
    if again := [str(folder / name) for name, text in outcomes.items() if text]:
        for name, text in run_pytest(module, theirs or {}, folder, again).outcomes.items():
            if text:
                del outcomes[name]
                print(f"{suite}: {name}: skipped: also fails with the functions of {suite}")
    return outcomes


def torch() -> Found:
    """Run the samples in PyTorch's OpInfo of each function, with gradients."""
    import torch  # noqa: PLC0415  (each suite needs its own library)
    from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415

    from maxops.compat import torch as compat  # noqa: PLC0415

    outcomes = {}
    for operator in op_db:
        name = operator.name.removeprefix("_").replace("segment_reduce_lengths", "segment_reduce")
        name = name.replace("segment_reduce_offsets", "segment_reduce")
        if name not in compat.__all__:
            continue
        for dtype in sorted(operator.supported_dtypes("cpu"), key=str):
            backward = dtype in operator.supported_backward_dtypes("cpu")
            for number, sample in enumerate(operator.sample_inputs("cpu", dtype, requires_grad=backward)):
                arguments = (sample.input, *sample.args)
                words = {*(each for each in (*sample.args, *sample.kwargs.values()) if isinstance(each, str))}
                if name.endswith("reduce") and not words & {"amax", "max"}:
                    continue
                key = f"{operator.formatted_name}-{dtype}-{number}"
                try:
                    ours = results(torch, getattr(compat, name), arguments, sample.kwargs)
                    theirs = results(torch, operator.op, arguments, sample.kwargs)
                    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
                    outcomes[key] = ""
                except Exception as error:  # noqa: BLE001  (any error is a failure of the test)
                    outcomes[key] = " ".join(f"{type(error).__name__}: {error}".split())
    return counted("torch", torch.__version__.partition("+")[0], outcomes)


def results(torch: Any, function: Any, arguments: Any, options: Any) -> list[Any]:
    """Return the results of a call, and the gradients of the first result."""
    given = function(*arguments, **options)
    found = [*given] if isinstance(given, tuple) else [given]
    tracked = [each for each in (*arguments, *options.values()) if getattr(each, "requires_grad", False)]
    if tracked and found[0].requires_grad:
        weights = torch.arange(found[0].numel()).reshape(found[0].shape).to(found[0].dtype)
        gradients = torch.autograd.grad(found[0], tracked, weights, allow_unused=True)
        found += [each if each is not None else torch.zeros(()) for each in gradients]
    return [each.detach() for each in found]


def checkout_of(suite: str, name: str) -> Path | None:
    """Return the folder of a suite's checkout, or None if there is none."""
    checkout = Path(os.environ.get("ORIGINALS", ""), name)
    if (checkout / ".github").is_dir():
        return checkout
    print(f"{suite}: skipped; set ORIGINALS to the folder that contains its checkout, {name}")
    return None


def flox() -> Found | None:
    """Run flox's own tests for max and nanmax from a checkout on the installed flox."""
    checkout = checkout_of("flox", "flox")
    if checkout is None:
        return None
    import flox  # noqa: PLC0415  (as above)
    from flox.aggregations import AGGREGATIONS  # noqa: PLC0415

    from maxops.compat import flox as compat  # noqa: PLC0415

    theirs = {name: AGGREGATIONS[name] for name in ("max", "nanmax")}
    for name in theirs:
        own = AGGREGATIONS[name] = copy(getattr(compat, name))
        own.fill_value, own.name = own.fill_value | {name: own.fill_value[own.name]}, name
    tests = [str(checkout / "tests" / f"test_{part}.py") for part in ("core", "xarray")]
    plugin = run_pytest(compat, {"ops": compat.ops}, checkout, ["-kmax", *tests])
    AGGREGATIONS.update(theirs)
    # failures before the first call of a replaced function also count
    outcomes = {name: text for name, text in plugin.outcomes.items() if text or name in plugin.reached}
    return counted("flox", flox.__version__, without_theirs("flox", compat, checkout, outcomes))


def jax() -> Found | None:
    """Run JAX's own tests for jax.numpy from a checkout on the installed JAX."""
    checkout = checkout_of("jax", "jax")
    if checkout is None:
        return None
    import jax  # noqa: PLC0415  (as above)
    from jax import numpy as jnp  # noqa: PLC0415

    from maxops.compat import jax as compat  # noqa: PLC0415
    from maxops.engines import jax as engine  # noqa: PLC0415

    for module in iter_modules(engine.__path__, f"{engine.__name__}."):
        import_module(module.name)  # before the replacement, so that these modules use JAX's own functions
    ours = {name: getattr(compat, name) for name in compat.__all__ if hasattr(jnp, name)}
    theirs = {name: getattr(jnp, name) for name in ours}
    tests = [str(checkout / "tests" / f"lax_numpy_{part}_test.py") for part in ("reducers", "operators")]
    tested = ModuleType("jax.numpy")  # only for the tests, because maxops calls functions of the module
    tested.__dict__.update(vars(jnp))
    jax.numpy = sys.modules["jax.numpy"] = tested  # type: ignore[misc]
    plugin = run_pytest(tested, ours, checkout, ["-kmax", *tests])
    outcomes = {name: text for name, text in plugin.outcomes.items() if name in plugin.reached}
    return counted("jax", jax.__version__, without_theirs("jax", tested, checkout, outcomes, theirs))


def array_api() -> Found | None:
    """Run the tests of the array API standard from a checkout with its submodule on array_api_strict."""
    checkout = checkout_of("array_api", "array-api-tests")
    if checkout is None:
        return None
    import array_api_strict  # noqa: PLC0415  (as above)

    from maxops.compat import array_api as compat  # noqa: PLC0415

    os.environ["ARRAY_API_TESTS_MODULE"] = "array_api_strict"
    sys.path.insert(0, str(checkout))
    from array_api_tests import _array_module as tested  # noqa: PLC0415  (of the checkout)

    ours = {name: getattr(compat, name) for name in compat.__all__}
    theirs = {name: getattr(tested, name) for name in ours}
    parts = ("operators_and_elementwise", "statistical", "searching")
    tests = [str(checkout / "array_api_tests" / f"test_{part}_functions.py") for part in parts]
    tests.append(str(checkout / "array_api_tests" / "test_special_cases.py"))
    plugin = run_pytest(tested, ours, checkout, ["-kmax", *tests])
    outcomes = {name: text for name, text in plugin.outcomes.items() if name in plugin.reached}
    own = without_theirs("array_api", tested, checkout, outcomes, theirs)
    return counted("array_api", array_api_strict.__array_api_version__, own)


def torch_scatter() -> Found | None:
    """Run torch_scatter's own tests from a checkout. Skip tests for other reductions and functions."""
    checkout = checkout_of("torch_scatter", "pytorch_scatter")
    if checkout is None:
        return None
    from maxops.compat import torch_scatter as compat  # noqa: PLC0415  (as above)

    def replaced(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if not hasattr(compat, name):
            pytest.skip(f"{name} is not a maximum", allow_module_level=True)
        return getattr(compat, name)

    module = ModuleType("torch_scatter")
    module.__path__ = [str(checkout / "torch_scatter")]
    module.__getattr__ = replaced  # type: ignore[method-assign]
    sys.modules["torch_scatter"] = module
    sys.path.insert(0, str(checkout))
    plugin = run_pytest(module, {}, checkout, [str(checkout / "test")])
    setup = (checkout / "setup.py").read_text(encoding="utf-8")
    return counted("torch_scatter", setup.partition("__version__ = '")[2].partition("'")[0], plugin.outcomes)


def counted(suite: str, version: str, outcomes: dict[str, str]) -> Found:
    """Count the passes, and collect the failures."""
    failed = {name: text for name, text in outcomes.items() if text}
    return Found(suite, version, len(outcomes) - len(failed), failed)


def write(suites: list[Found]) -> None:
    """Write the counts and the reasons to the page."""
    lines = ["| module | tests from | passed |", "| --- | --- | --- |", *(found.row for found in suites)]
    reasons = [f"- `{name}`: {why}" for each in EXCEPTIONS.values() for name, why in each.items()]
    note = "The names of the tests that fail match these patterns, which are listed with the reasons:"
    text = "\n".join([*lines, *(["", note, "", *reasons] if reasons else [])])
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def reason(suite: str, name: str) -> str:
    """Return the reason for a known failure, or "" for an unknown failure."""
    return next((why for pattern, why in EXCEPTIONS[suite].items() if fnmatch(name, pattern)), "")


SUITES: dict[str, Callable[[], Found | None]] = {
    "numpy": numpy,
    "torch": torch,
    "torch_scatter": torch_scatter,
    "flox": flox,
    "jax": jax,
    "array_api": array_api,
}


def main() -> None:
    """Run the suites named on the command line, or all suites."""
    warnings.simplefilter("ignore")
    unknown, every = False, []
    for suite in sys.argv[1:] or SUITES:
        found = SUITES[suite]()
        if found is None:
            continue
        every.append(found)
        print(f"{suite}: {found.passed} of {found.passed + len(found.failed)} pass")
        for name, text in found.failed.items():
            why = reason(suite, name)
            unknown |= not why
            print(f"{suite}: {name}: {why or 'UNKNOWN'}: {text[:200]}")
        if not found.passed:
            sys.exit(f"{suite}: no test passed")
    if len(every) == len(SUITES) and not unknown:
        write(every)
    sys.exit(1 if unknown else 0)


if __name__ == "__main__":
    main()
