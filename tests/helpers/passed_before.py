"""A plugin of pytest for .ci/run: what passed in one environment does not run again in the next.

The ids of tests that pass are added to the file that MAXOPS_TESTS_PASSED names, and those in it are deselected. A test
that was skipped because a framework is missing is not among them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = Path(os.environ["MAXOPS_TESTS_PASSED"])
_before = frozenset(FILE.read_text(encoding="utf-8").splitlines()) if FILE.exists() else frozenset()
_passed: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what passed before."""
    again = [item for item in items if item.nodeid in _before]
    if again:
        items[:] = [item for item in items if item.nodeid not in _before]
        config.hook.pytest_deselected(items=again)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what passes; a worker's reports reach the process that started it, which writes them."""
    if report.when == "call" and report.passed and "\n" not in report.nodeid:
        _passed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write them."""
    if not hasattr(session.config, "workerinput"):
        with FILE.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in _passed)
