"""What the pages say is what is there: examples, generated tables, commands and the wrong answer of a runtime."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
# What a page's examples cannot run without, past the packages that every test has.
NEEDS = {
    "columns": "pandas",
    "gpu": "triton",
    "jax": "maxops._xla",
    "onnxruntime": "onnxruntime",
    "openvino_extension": "openvino",
    "torch": "torch",
    "xarray": "xarray",
    "dask": "dask.array",
}


def test_readme_examples_run() -> None:
    """Its Python examples give what it shows."""
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 7
    assert result.failed == 0


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "integrations").glob("*.md")), ids=lambda page: page.stem)
def test_examples_of_the_integrations_run(page: Path) -> None:
    if page.stem in NEEDS:
        pytest.importorskip(NEEDS[page.stem])
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_generated_pages_are_fresh() -> None:
    """The tables are those of the spec table."""
    check = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stderr


def test_links_and_commands_name_what_exists() -> None:
    """Every file that the README names is in the repository."""
    named = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"\bexamples/[\w./]+", README)
    assert len(named) >= 6
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_wrong_answer_is_given() -> None:
    """The runtime answers as the README says, as long as it is the version that the README names."""
    onnxruntime = pytest.importorskip("onnxruntime")
    script = ROOT / "examples" / "wrong_in_onnxruntime.py"
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    version, *_ = shown.split("[")
    assert f"onnxruntime {onnxruntime.__version__}" in version
    assert shown.splitlines()[1] in README
    if f"onnxruntime {onnxruntime.__version__} " in README:
        assert shown.splitlines()[0] in README
