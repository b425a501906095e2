"""In an environment without extras, the error for a missing package names the extra to install."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import maxops
from maxops import _native
from maxops.extras import needed

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
PARTS = {
    "maxops.onnxruntime": ("onnx", "onnxruntime"),
    "maxops.openvino": ("defusedxml", "openvino"),
    "maxops.checker": ("onnx", "onnx"),
    "maxops.onnx": ("onnx", "onnx"),
    "maxops.onnx.load": ("onnx", "onnx"),
    "maxops.openvino.extension": ("defusedxml", "openvino"),
    "maxops.conformance.junit": ("junitparser", "onnx"),
    "maxops.engines.dask": ("dask", "dask"),
    "maxops.engines.jax": ("jax", "jax"),
    "maxops.engines.torch": ("torch", "torch"),
    "maxops.engines.xarray": ("xarray", "xarray"),
}

# Parts that errors name by their own names; for another part, the error names the package that contains it.
ENTRIES = {part for part in PARTS if part.startswith(("maxops.engines.", "maxops.conformance."))}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with maxops and its required packages, the only packages that Python finds."""
    folder = tmp_path_factory.mktemp("bare")
    for package in (np, ml_dtypes):
        assert package.__file__ is not None
        place = Path(package.__file__).parent
        for each in place.parent.glob(f"{place.name}*"):  # also numpy.libs
            (folder / each.name).symlink_to(each)
    (folder / "maxops").mkdir()
    assert maxops.__file__ is not None
    assert _native.__file__ is not None
    # two folders in an editable install
    for each in {*Path(maxops.__file__).parent.iterdir(), *Path(_native.__file__).parent.glob("*.so")}:
        if not (folder / "maxops" / each.name).exists():
            (folder / "maxops" / each.name).symlink_to(each)
    return folder


def _python(bare: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    # -S: without installed packages
    command = [sys.executable, "-S", "-B", "-W", "error", "-c", code]
    return subprocess.run(
        command, env=environment | {"PYTHONPATH": str(bare)}, capture_output=True, text=True, check=False
    )


def _says(part: str) -> str:
    package, extra = PARTS[part]
    parent = part if part in ENTRIES else ".".join(part.split(".")[:2])
    return f'{parent} requires the package {package!r}, which is not installed: pip install "maxops[{extra}]"'


IMPORTS = f"""
import importlib, maxops
maxops.operators()
for part in {[*PARTS]}:
    try:
        importlib.import_module(part)
    except ModuleNotFoundError as error:
        print(error)
"""


def test_a_part_without_its_extra_names_it(bare: Path) -> None:
    done = _python(bare, IMPORTS)
    assert (done.stdout.splitlines(), done.stderr) == ([_says(part) for part in PARTS], "")


@pytest.mark.parametrize("part", PARTS)
def test_a_part_whose_package_cannot_be_imported_names_its_extra(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    package, _ = PARTS[part]
    parent = part if part in ENTRIES else ".".join(part.split(".")[:2])
    for name in [name for name in sys.modules if f"{name}.".startswith((f"{parent}.", f"{package}."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module(part)
    assert str(caught.value) == _says(part)


def test_the_bare_folder_runs_the_functions(bare: Path) -> None:
    done = _python(bare, "import numpy as np, maxops as mo; print(mo.maximum(np.int8([1, 5]), 3).tolist())")
    assert (done.stdout.strip(), done.stderr) == ("[3, 5]", "")


def test_extras_that_are_named_are_there() -> None:
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra for _, extra in PARTS.values()} <= set(extras)


@pytest.mark.parametrize(
    ("module", "says"),
    [
        ("maxops.nothing", "No module named 'maxops.nothing'"),
        (
            "no_such.module",
            "a part requires the package 'no_such', which is not installed: pip install \"maxops[onnx]\"",
        ),
    ],
    ids=["our-own", "another-package"],
)
def test_only_packages_of_others_are_an_extra(module: str, says: str) -> None:
    with pytest.raises(ModuleNotFoundError) as caught, needed("a part", "onnx"):
        import_module(module)
    assert str(caught.value) == says
    assert caught.value.name in (module, module.partition(".")[0])


def test_a_package_that_is_there_and_broken_is_no_missing_extra() -> None:
    with pytest.raises(ImportError) as caught, needed("a part", "onnx"):
        raise ImportError("cannot import name 'nothing' from 'onnx'", name="onnx")
    assert str(caught.value) == "cannot import name 'nothing' from 'onnx'"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("found/__init__.py", "cannot import name 'nothing' from 'found'"),
        ("found.py", "No module named 'found.deep'; 'found' is not a package"),
        ("found/model.onnx", "a part requires the package 'found', which is not installed"),
    ],
    ids=["a-package", "a-file", "a-folder-of-models"],
)
def test_what_has_the_name_of_a_package(name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that a file of the user does not count as a missing package, and that a folder without modules does."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    monkeypatch.syspath_prepend(tmp_path)
    source = "import found.deep" if name == "found.py" else "from found import nothing"
    with pytest.raises(ImportError) as caught, needed("a part", "onnx"):
        exec(source, {})
    del sys.modules["found"]
    assert str(caught.value).startswith(says)
