"""The pages are correct: examples, generated tables, commands, and the wrong result of a runtime."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import typer

import maxops as mo
from conftest import IN_CI
from maxops import program
from maxops.cli import app

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if ">>> " in page.read_text(encoding="utf-8"))
# The packages that a page's examples require, in addition to those of every test.
NEEDS = {
    "columns": ["pandas", "polars"],
    "frameworks": ["torch", "jax"],
    "gpu": ["torch"],
    "jax": ["jax"],
    "onnxruntime": ["onnxruntime"],
    "openvino_extension": ["openvino"],
    "torch": ["torch"],
    "xarray": ["xarray"],
    "dask": ["dask.array"],
}

OF_OTHERS = {"OMP_NUM_THREADS"}  # maxops reads it
INTERNAL = {"MAXOPS_BENCH_ENVIRONMENT"}  # the bench identifies its line in the output of a program with it
# Blocks that are not run, by their first lines, with reasons.
NOT_RUN = {
    "dask": [
        'highest = mo.reduce_max(da.from_zarr("heat.zarr", component="heat"), axis=0).compute()'
    ],  # a store of the reader
    "clusters": [  # machines that tests do not have
        "from distributed import Client, SSHCluster  # machines that accept ssh; or run `dask-ssh` on the command line",
        "import ray",
    ],
    "torch": [
        "@torch.compile(fullgraph=True)",  # requires a compiler and a minute; see test_torch_compile.py
        "import maxops.onnx",  # a model of the reader; test_torch_onnx.py exports some
    ],
    "types": ["import numpy as np"],  # mistakes that type checkers must find: tests/package/test_types.py
}


def test_readme_examples_run() -> None:
    """Test that the Python examples print the documented output."""
    result = doctest.testfile(str(ROOT / "README.md"), module_relative=False)
    assert result.attempted >= 7
    assert result.failed == 0


@pytest.mark.parametrize("page", [page for page in PAGES if page.stem != "coming-from"], ids=lambda page: page.stem)
def test_examples_of_the_pages_run(page: Path) -> None:
    for package in NEEDS.get(page.stem, []):
        pytest.importorskip(package)
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_examples_beside_other_libraries_run() -> None:
    """Test in a separate process, because TensorFlow prints warnings and leaves threads behind."""
    for package in ("jax", "tensorflow", "flox"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"not installed: {package}")
    page = ROOT / "docs" / "coming-from.md"
    assert page in PAGES
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-W", "ignore", "-m", "doctest", str(page)]
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (shown.returncode, shown.stdout) == (0, ""), shown.stdout + shown.stderr


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_every_block_of_python_is_run_or_named_here(page: Path) -> None:
    """Test that blocks without prompts are scripts of findings, files of examples, or listed in this module."""
    if page.parent.name == "findings":  # each script ran with its runtime when the finding was made
        return
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    files = [file.read_text(encoding="utf-8") for file in (ROOT / "examples").rglob("*.py")]
    unrun = [block.splitlines()[0] for block in blocks if not block.startswith(">>> ") and block not in files]
    assert unrun == NOT_RUN.get(page.stem, [])


# A command in a block, after a prompt or as a step of CI, or in running text.
COMMAND = re.compile(r"^(?:\$ |- run: |.*&& )?(maxops .*)$|`(maxops [^`]+)`", re.MULTILINE)


def commands(page: Path) -> list[str]:
    """Return the commands of a page, without optional parts and adjacent columns."""
    text = page.read_text(encoding="utf-8")
    places = re.findall(r"^```.*?^```$|`[^`\n]+`", text, re.MULTILINE | re.DOTALL)
    found = [block or inline for place in places for block, inline in COMMAND.findall(place)]
    return [re.split(r"  +| \|| #|[;,]$", re.sub(r"\[([^]]*)\]|\.\.\.", r"\1", each))[0] for each in found]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.stem
)
def test_commands_of_the_pages_are_ones_that_there_are(page: Path) -> None:
    """Test that the commands and options exist. Other tests run some of them."""
    group: Any = typer.main.get_command(app.app)
    for each in commands(page):
        name, *words = shlex.split(each)[1:] or [""]
        command = group if not name or name.startswith("-") else group.commands[name]
        words += ["VALUE"] if words and words[-1].startswith("--") else []  # an option that the text mentions
        context = command.context_class(command, info_name=name)
        command.make_parser(context).parse_args([name, *words] if command is group else words)  # raises NoSuchOption


@pytest.mark.filterwarnings("ignore:.torch.jit.script(_method)?. is deprecated:DeprecationWarning")
def test_calls_of_the_table_of_tasks_run(tmp_path: Path) -> None:
    """Test the calls whose packages are installed. Another test covers the commands."""
    path = str(tmp_path / "larger.onnx")
    text = '<ir_version: 8, opset_import: ["": 13]> f (float[n] a, float[n] b) => (float[n] c) { c = Max(a, b) }'
    onnx.save(onnx.parser.parse_model(text), path)
    x = np.arange(12.0).reshape(4, 3)
    values: dict[str, Any] = {"np": np, "mo": mo, "x": x, "a": x[1], "b": x[2], "mask": x[0] > 1}
    values |= {"ids": np.array([2, 0, 2, 1]), "offsets": np.array([0, 1, 4]), "labels": np.array([*"baca"])}
    values |= {"maxops": mo, "path": path}
    page = (ROOT / "docs" / "how-do-i.md").read_text(encoding="utf-8")
    cells = [line.split(" | ")[1] for line in page.splitlines() if line.startswith("| ")][2:]
    calls = [call for cell in cells for call in re.findall(r"`([^`]+)`", cell)]
    assert len(calls) >= 25
    for call in calls:
        packages = {"torch", "jax", "onnxruntime", "openvino"} & set(re.findall(r"\w+", call))
        if call.startswith("maxops ") or not all(map(importlib.util.find_spec, packages)):
            continue
        named = re.findall(r"\b(?:maxops\.\w+|ml_dtypes|torch|jax|openvino)\b", call)
        modules = {name: importlib.import_module(name) for name in named}
        with mo.num_threads(mo.get_num_threads()):
            exec(call, values | modules)


def test_generated_pages_are_fresh() -> None:
    """Test that tables match the spec table."""
    check = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert check.returncode == 0, check.stderr


def test_the_page_of_installing_names_every_extra_and_variable() -> None:
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    table = text[text.index("## Extras") : text.index("## Environment")]
    assert {
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in row.strip("`").split("`, `")
    } == set(extras)
    sources = [*(ROOT / "src" / "maxops").rglob("*.py"), ROOT / "pyproject.toml"]
    read = {
        name for path in sources for name in re.findall(r"\bMAXOPS_[A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8"))
    }
    assert (
        set(re.findall(r"^\| `(\w+)`", text[text.index("## Environment") :], re.MULTILINE))
        == read - INTERNAL | OF_OTHERS
    )


def test_every_exit_code_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    codes = {0, program.FAILED, program.BAD_USE, program.OUR_FAULT, program.INTERRUPTED, program.CLOSED_PIPE}
    assert {int(code) for code in re.findall(r'^\| <a id="exit-(\d+)"></a>\1 \|', text, re.MULTILINE)} == codes
    sentence = README[README.index("Exit codes: ") :].partition("\n\n")[0]
    assert set(map(int, re.findall(r"(?:: |; |;\n)(\d+), ", sentence))) == codes


def test_the_speed_is_that_of_the_page() -> None:
    (median,) = re.findall(r"maxops is ([\d.]+) times as fast", README)
    assert f"the median speedup over the fastest correct library is {median};" in (ROOT / "docs/speed.md").read_text(
        "utf-8"
    )


def test_links_and_commands_name_what_exists() -> None:
    """Test that every file that the README names is in the repository."""
    named = re.findall(r"\]\(([^)#:]+)\)", README) + re.findall(r"\bexamples/[\w./]+", README)
    assert len(named) >= 6
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_file_of_the_root_for_readers_is_linked() -> None:
    """Test links from the README and from the start page of the site."""
    start = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    names = {path.name for pattern in ("*.md", "*.cff", "LICENSE") for path in ROOT.glob(pattern)} - {"README.md"}
    assert len(names) >= 5
    assert [name for name in names if f"]({name})" not in README or f"](../{name})" not in start] == []


def test_the_places_that_the_architecture_names_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("## Source map") : text.index("## What to edit")]
    named = re.findall(r"`((?:native|src)/[\w./]+)`", table)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_wrong_answer_is_given() -> None:
    """Test that the release that the README names has the wrong result, and that the script fails otherwise."""
    version = pytest.importorskip("openvino").__version__.partition("-")[0]
    if not IN_CI and f"openvino=={version} " not in README:
        pytest.skip(f"README.md names another release than openvino {version}")
    script = ROOT / "examples" / "wrong_in_openvino.py"
    shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True).stdout
    assert f"$ python -m pip install openvino=={version} && python examples/wrong_in_openvino.py\n{shown}" in README
