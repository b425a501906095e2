"""Records which clauses the errors in each test cite: `python tests/clauses_cited.py`.

The script runs TESTS with this file as a pytest plugin, and writes proofs/matrix/cited.json. For each clause, the file
has the number of tests with an error that cites the clause, and the test among them that cites the fewest clauses.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from maxops.errors import MaxopsError
from maxops.json_text import in_lines

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "proofs" / "matrix" / "cited.json"
FOLDER = "MAXOPS_CLAUSES_CITED"
# Tests that break the rules of clauses deliberately.
TESTS = (
    "test_bad_input.py", "test_contracts.py", "test_scalars.py", "test_offsets.py", "test_unsorted_ids.py",
    "test_indices.py", "test_id_types.py", "test_segment_ids.py", "test_reduce_max.py", "test_segment_max.py",
    "test_conformance_cases.py", "test_dispatch.py", "test_columns.py", "test_xarray.py", "test_torch.py",
    "test_segment_axis.py", "test_scatter.py",
)  # fmt: skip

_cited: dict[str, set[str]] = defaultdict(set)
_running = ""
_make = MaxopsError.__init__


def _note(self: MaxopsError, message: str, clause: str = "") -> None:
    _make(self, message, clause)
    if clause and _running:
        _cited[_running].add(clause)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    global _running  # noqa: PLW0603  (a plugin's own state)
    _running = item.nodeid
    MaxopsError.__init__ = _note  # type: ignore[method-assign]
    try:
        return (yield)
    finally:
        MaxopsError.__init__ = _make  # type: ignore[method-assign]
        _running = ""


def pytest_sessionfinish() -> None:
    if _cited and (folder := os.environ.get(FOLDER)):
        text = json.dumps({test: sorted(clauses) for test, clauses in _cited.items()})
        Path(folder, f"{os.getpid()}.json").write_text(text, encoding="utf-8")


def summary(cited: dict[str, list[str]]) -> dict[str, tuple[int, str]]:
    """Return, for each clause, the number of tests and the test that cites the fewest clauses."""
    tests = defaultdict(list)
    for test, clauses in cited.items():
        for clause in clauses:
            tests[clause].append((len(clauses), test))
    return {clause: (len(found), min(found)[1]) for clause, found in sorted(tests.items())}


def main() -> None:
    sys.path.append(str(ROOT / "proofs"))
    from claims import require_this_tree  # type: ignore[import-not-found]  # noqa: PLC0415

    require_this_tree()
    with tempfile.TemporaryDirectory() as folder:
        files = [str(path) for name in TESTS for path in (ROOT / "tests").rglob(name)]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "clauses_cited", "-p", "no:cacheprovider", *files]
        path = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]))
        environment = os.environ | {FOLDER: folder, "PYTHONPATH": path}
        subprocess.run([*command, *sys.argv[1:]], cwd=ROOT, env=environment, check=True)
        cited: dict[str, list[str]] = {}
        for file in Path(folder).iterdir():
            cited |= json.loads(file.read_text(encoding="utf-8"))
    FILE.write_text(in_lines(summary(cited)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
