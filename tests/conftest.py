"""Fixtures of all tests: the instruction sets of this machine, and numbers of threads."""

from __future__ import annotations

import os

# NumPy's BLAS starts a thread for each core when it is imported, which costs the hundreds of processes that tests start
# as much as all the rest of NumPy; nothing here multiplies matrices.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Where set, as in many containers, it hides what a program's buffered streams do at its end.
os.environ.pop("PYTHONUNBUFFERED", None)
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
# CI looks at what a user has, too: only the packages that the README's command installs.
MAY_MISS = not IN_CI or "MAXOPS_TESTS_MAY_MISS" in os.environ

pytest_plugins = ["helpers.passed_before"] if "MAXOPS_TESTS_PASSED" in os.environ else []

# The time that an example takes says nothing here; in CI the same examples run each time.
settings.register_profile("here", deadline=None, max_examples=150)
settings.register_profile("ci", deadline=None, max_examples=150, derandomize=True, database=None)
settings.load_profile("ci" if IN_CI else "here")


# Whoever starts the tests in the background may have them ignore Ctrl-C, and the processes that they start too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _engines() -> Iterator[None]:
    """The table of engines as it was, whatever a test or an example registers."""
    before = list(table._rows)
    yield
    if table._rows != before:
        table._rows[:] = before
        table._known.clear()
        table._found.clear()


@pytest.fixture(scope="module", params=EACH)
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction set that this machine has, in use; afterwards the one that was."""
    before, name = _native.isa(), str(request.param)
    assert _native.use_isa(name)
    assert _native.isa() == name
    yield name
    assert _native.use_isa(before)


@pytest.fixture(params=[1, 2, 7], ids="{}-threads".format)
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Each number of threads, in use; afterwards the one that was."""
    before, count = mo.get_num_threads(), int(request.param)
    mo.set_num_threads(count)
    yield count
    mo.set_num_threads(before)


@pytest.fixture(params=["custom-calls", "integer-keys"])
def lowering(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the two ways in which JAX computes, in use."""
    engine = pytest.importorskip("maxops.engines.jax")

    if request.param == "integer-keys":
        with engine.only_integer_keys():
            yield request.param
    else:
        yield request.param


@pytest.fixture(params=["core", "any-device"])
def torch_way(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each of the two ways in which tensors are computed with, in use: the CPU's, and that of every other device."""
    engine = pytest.importorskip("maxops.engines.torch")
    with engine.only_torch_operators() if request.param == "any-device" else nullcontext():
        yield request.param


# How a skip says that something is missing: pytest's own words for Python's packages, and ours for programs.
MISSING = ("could not import", "not installed:")


def _look_for_a_missing_package(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI nothing may go untested because a package is not there; elsewhere it is one line for each package.

    pytest lists skips together that stand in one place, so all for a package get the place of the tests.
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
    """A test's name is the same in each process; pytest-xdist, which CI runs, refuses those that differ."""
    if named := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"these tests are named by an address, which each process has its own: {named}")
