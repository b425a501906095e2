"""Imports follow the layers in CONTRIBUTING.md. The test reads the source, so imports inside functions count, too."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import maxops
from helpers.programs import run

PACKAGE = Path(maxops.__file__).parent

# Each part of the package may import the parts before it. The native core is below all of them.
LAYERS: tuple[frozenset[str], ...] = tuple(
    map(
        frozenset,
        (
            ["_version", "counted", "extras", "physical_memory", "shown", "typing"],
            ["errors", "json_text", "program", "version", "_native", "_limits", "_xla"],
            ["dtypes", "posix"],
            ["order", "spec"],
            ["shapes", "sizes", "calls"],
            ["plan"],
            ["reference", "engines"],
            ["ops", "atomic_files", "threads", "threadpool_controller"],
            [""],  # maxops itself: the public names
            ["model", "evidence", "machine", "compat", "explanations"],
            ["onnx", "openvino", "bench"],
            ["onnxruntime", "checker"],
            ["conformance"],
            ["cli"],
            ["__main__"],
        ),
    )
)
MODULES = sorted(PACKAGE.rglob("*.py"))


def layer(part: str) -> int:
    for height, parts in enumerate(LAYERS):
        if part in parts:
            return height
    raise AssertionError(f"maxops.{part} has no layer: give it one in LAYERS, above all that it may import")


def part_of(path: Path) -> str:
    """Return the part of a file: "engines" for engines/native.py, and "" for the package's __init__.py."""
    first = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    return "" if first == "__init__" else first


def imported_parts(source: str, package: tuple[str, ...] = ("maxops",)) -> Iterator[str]:
    """Yield the parts of maxops that a module of `package` imports, anywhere in its source."""
    parts = {name for names in LAYERS for name in names}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "maxops":
                    yield (*alias.name.split("."), "")[1]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            names = [*base, *(node.module.split(".") if node.module else [])]
            if names[:1] != ["maxops"]:
                continue
            if len(names) > 1:
                yield names[1]
            else:
                yield from (alias.name if alias.name in parts else "" for alias in node.names)


def wrong_imports(part: str, source: str, package: tuple[str, ...] = ("maxops",)) -> list[str]:
    """Return the imported parts that are not below a module's own part."""
    found = set(imported_parts(source, package)) - {part}
    if part == "reference":
        return sorted(name for name in found if name == "_native" or layer(name) >= layer(part))
    return sorted(name for name in found if layer(name) >= layer(part))


def test_imports_go_one_way() -> None:
    wrong: dict[str, list[str]] = {}
    for path in MODULES:
        assert layer(part_of(path)) >= 0  # each module has its own
        package = ("maxops", *path.relative_to(PACKAGE).parts[:-1])
        wrong[str(path)] = wrong_imports(part_of(path), path.read_text(encoding="utf-8"), package)
    assert {path: parts for path, parts in wrong.items() if parts} == {}


def test_every_module_was_read() -> None:
    assert {"errors", "dtypes", "spec", "shapes", "plan", "reference", "engines", "ops", ""} <= set(
        map(part_of, MODULES)
    )


@pytest.mark.parametrize(
    ("part", "source", "package", "wrong"),
    [
        ("plan", "from maxops import dtypes, ops", ("maxops",), ["ops"]),
        ("plan", "import maxops.engines.native as e", ("maxops",), ["engines"]),
        ("spec", "def f():\n    from maxops.plan import MaxPlan", ("maxops",), ["plan"]),
        ("dtypes", "if TYPE_CHECKING:\n    import maxops.spec", ("maxops",), ["spec"]),
        ("reference", "from maxops import _native", ("maxops",), ["_native"]),
        ("reference", "from maxops.engines import native", ("maxops",), ["engines"]),
        ("engines", "from maxops import reference", ("maxops", "engines"), ["reference"]),
        ("engines", "from ..ops import run", ("maxops", "engines"), ["ops"]),
        ("engines", "from .. import ops", ("maxops", "engines"), ["ops"]),
        ("engines", "from . import rational", ("maxops", "engines"), []),
        ("ops", "from . import onnx", ("maxops",), ["onnx"]),
        ("ops", "import maxops", ("maxops",), [""]),
        ("ops", "from maxops import maximum", ("maxops",), [""]),
        ("onnx", "from maxops.cli import main", ("maxops", "onnx"), ["cli"]),
        ("cli", "import maxops as mo\nfrom maxops import onnx, ops\nimport onnx as o", ("maxops", "cli"), []),
        ("", "from maxops import errors\nfrom maxops.ops import run", ("maxops",), []),
    ],
)
def test_wrong_imports_are_found(part: str, source: str, package: tuple[str, ...], wrong: list[str]) -> None:
    assert wrong_imports(part, source, package) == wrong


def test_an_unknown_part_has_no_place() -> None:
    """Test that a new module must have a layer before it can be imported."""
    with pytest.raises(AssertionError, match=r"maxops\.helpers has no layer"):
        wrong_imports("ops", "import maxops.helpers")


OPTIONAL = {"click", "cupy", "dask", "hypothesis", "jax", "onnx", "pandas", "rich", "torch", "typer", "xarray"}
CALLS = """
import sys, numpy as np, maxops as mo
mo.maximum(np.float32([1]), np.float32(2)), mo.reduce_max(np.float32([1]), return_indices=True)
mo.segment_max(np.float32([1]), np.array([0]), fill_mode="ZERO", sorted=False)
try:
    mo.maximum([1.0])
except mo.errors.DTypeError:
    print(*sys.modules)
"""


def test_maxops_alone_imports_no_optional_package() -> None:
    """Test the import of maxops, each operator, and an error for a type that no engine supports."""
    loaded = run(CALLS, warnings="error").split()
    assert "maxops.ops" in loaded
    assert OPTIONAL.isdisjoint(loaded)
    assert [name for name in loaded if re.search(r"maxops\.(bench|engines\.(dask|torch|jax|cupy|xarray))", name)] == []


def test_the_reference_alone_never_loads_the_core() -> None:
    """Test that the reference runs with only the layers below it where no native module can be imported."""
    code = (
        "import sys, types\n"
        f"package = types.ModuleType('maxops'); package.__path__ = [{str(PACKAGE)!r}]\n"
        "sys.modules['maxops'] = package\n"
        "sys.modules['maxops._native'] = None\n"
        "import numpy\n"
        "from maxops import reference\n"
        "print(reference.maximum(numpy.int8([1, -2]), numpy.int8([0, 5])).tolist())"
    )
    assert run(code, warnings="error") == "[1, 5]\n"


LISTED = [path for path in MODULES if "__all__ = [" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", LISTED, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_public_names_are_there(path: Path) -> None:
    """Test that each public name exists, once."""
    parts = ("maxops", *path.relative_to(PACKAGE).with_suffix("").parts)
    module = pytest.importorskip(".".join(part for part in parts if part != "__init__"))
    assert len(module.__all__) == len(set(module.__all__))
    assert [name for name in module.__all__ if not hasattr(module, name)] == []
