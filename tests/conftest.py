"""Fixtures and settings of all tests, such as the instruction sets of this machine and numbers of threads."""

from __future__ import annotations

import os

# On import, NumPy's BLAS starts a thread for each core. In the hundreds of processes that tests start, this would take
# as long as the rest of NumPy's import, and no test multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# If set, as in many containers, it would hide how programs flush buffered streams at exit.
os.environ.pop("PYTHONUNBUFFERED", None)
import gc
import re
import signal
from collections.abc import Generator, Iterator
from contextlib import nullcontext

import pytest
from hypothesis import settings

import maxops as mo
from helpers.instruction_sets import EACH
from maxops import _native
from maxops.engines import table

IN_CI = os.environ.get("CI", "").lower() in ("1", "true")
# CI also runs the tests with only the packages that the README's command installs.
MAY_MISS = not IN_CI or "MAXOPS_TESTS_MAY_MISS" in os.environ

pytest_plugins = ["helpers.passed_before"] if "MAXOPS_TESTS_PASSED" in os.environ else []

# Examples have no deadline, because machines differ. In CI, the same examples run each time.
settings.register_profile("here", deadline=None, max_examples=150)
settings.register_profile("ci", deadline=None, max_examples=150, derandomize=True, database=None)
settings.load_profile("ci" if IN_CI else "here")


# Processes that a shell starts in the background may ignore Ctrl-C, as may their children. The tests need it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _engines() -> Iterator[None]:
    """Restore the table of engines after each test, because tests and examples may register engines."""
    before = list(table._rows)
    yield
    if table._rows != before:
        table._rows[:] = before
        table._known.clear()
        table._found.clear()


@pytest.fixture
def unsandboxed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check models in the process of the tests, which is faster, for models that are known to be harmless."""
    from helpers import in_process  # noqa: PLC0415  # which imports onnx

    monkeypatch.setattr("maxops.checker.sandbox.sandboxed", in_process.sandboxed)


@pytest.fixture(params=["onnx", "onnxruntime"])
def on(request: pytest.FixtureRequest) -> str:
    """Return each evaluator of operators other than maxops's, for the argument `on` of functions that load models."""
    pytest.importorskip(request.param)
    return str(request.param)


@pytest.fixture(scope="module", params=EACH)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select each instruction set of this machine in turn, and restore the previous one afterwards."""
    before, name = _native.isa(), str(request.param)
    assert _native.use_isa(name)
    assert _native.isa() == name
    yield name
    assert _native.use_isa(before)


@pytest.fixture(params=[1, 2, 7], ids="{}-threads".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set each number of threads in turn, and restore the previous one afterwards."""
    before, count = mo.get_num_threads(), int(request.param)
    mo.set_num_threads(count)
    yield count
    mo.set_num_threads(before)


@pytest.fixture(params=["custom-calls", "integer-keys"])
def lowering(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select each of the two lowerings for JAX in turn."""
    engine = pytest.importorskip("maxops.engines.jax")

    if request.param == "integer-keys":
        with engine.only_integer_keys():
            yield request.param
    else:
        yield request.param


@pytest.fixture(params=["core", "any-device"])
def torch_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Select each of the two implementations for PyTorch in turn: the core on the CPU, and the one for any device."""
    engine = pytest.importorskip("maxops.engines.torch")
    with engine.only_torch_operators() if request.param == "any-device" else nullcontext():
        yield request.param


# The reason of a skip if something is missing: pytest's text for Python packages, and ours for programs.
MISSING = ("could not import", "not installed:")


def _look_for_a_missing_package(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI, fail a test that is skipped because a package is missing. Elsewhere, report one line for each package.

    pytest merges skips with the same location and reason, so all skips for a package get the location "tests".
    """
    if not (report.skipped and any(words in str(report.longrepr) for words in MISSING)):
        return
    if not MAY_MISS:
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
    elif isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped: ")
        package = re.search(r"could not import '((?:maxops\.)?\w+)", reason)
        report.longrepr = ("tests", None, reason if package is None else f"not installed: {package[1]}")  # type: ignore[assignment]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _look_for_a_missing_package(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _look_for_a_missing_package(report)
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Reject test names that contain an address, because pytest-xdist requires the same names in every process."""
    if named := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"these tests are named by an address, which each process has its own: {named}")


def pytest_collection_finish() -> None:
    """Freeze the objects of collected tests, so that the garbage collector skips them and forks do not copy them."""
    gc.collect()
    gc.freeze()
