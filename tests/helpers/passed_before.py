"""A pytest plugin for .ci/run: tests that passed in one environment do not run again in the next.

The plugin adds the ids of passing tests to the file that MAXOPS_TESTS_PASSED names, and deselects tests in the file. It
does not add tests that are skipped because a framework is missing.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

FILE = Path(os.environ["MAXOPS_TESTS_PASSED"])
_before = frozenset(FILE.read_text(encoding="utf-8").splitlines()) if FILE.exists() else frozenset()
_passed: list[str] = []


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that passed before."""
    again = [item for item in items if item.nodeid in _before]
    if again:
        items[:] = [item for item in items if item.nodeid not in _before]
        config.hook.pytest_deselected(items=again)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record passing tests. The main process receives the reports of workers, and writes the file."""
    if report.when == "call" and report.passed and "\n" not in report.nodeid:
        _passed.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the ids of the passing tests."""
    if not hasattr(session.config, "workerinput"):
        with FILE.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}\n" for name in _passed)
