"""Package metadata, the package's page, and facts for tools: all agree with pyproject.toml."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import maxops
from helpers.programs import run

ROOT = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS, GROUPS = PROJECT["optional-dependencies"], PYPROJECT["dependency-groups"]
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def cited(key: str) -> str:
    """Return a top-level value of CITATION.cff."""
    found = re.search(rf'^{key}: "?([^"\n]+)"?$', CITATION, re.MULTILINE)
    assert found is not None, key
    return found[1]


def group(name: str) -> set[str]:
    """Return the requirements of a dependency group and of the groups that it includes."""
    found: set[str] = set()
    for each in GROUPS[name]:
        found |= {each} if isinstance(each, str) else group(each["include-group"])
    return found


def extra(name: str) -> set[str]:
    """Return the requirements of an extra and of maxops's extras that it names."""
    found: set[str] = set()
    for each in EXTRAS[name]:
        if ours := re.fullmatch(r"maxops\[([\w,]+)\]", each):
            found = found.union(*map(extra, ours[1].split(",")))
        else:
            found.add(each)
    return found


# ------------------------------------------------------------------------------------------------------- version


@pytest.mark.skipif(Path(maxops.__file__).is_relative_to(ROOT), reason="a source tree: what is installed is another")
def test_the_version_is_the_installed_one() -> None:
    assert maxops.__version__ == PROJECT["version"]


def test_the_version_is_no_attribute_that_is_looked_up() -> None:
    """Test that maxops has no __getattr__, with which CPython would not specialize lookups in the module."""
    assert isinstance(vars(maxops)["__version__"], str)
    assert "__getattr__" not in vars(maxops)


def test_a_source_tree_that_is_not_installed_has_a_version_below_any() -> None:
    code = "import sys; sys.modules['maxops._version'] = None\n"
    code += f"sys.path.append({str(Path(maxops.__file__).parents[1])!r}); import maxops; print(maxops.__version__)"
    assert run(code, warnings="error") == "0+unknown\n"


# ------------------------------------------------------------------------------------- licence, citation, changelog


def test_licence() -> None:
    assert PROJECT["license"] == cited("license") == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert PROJECT["license-files"] == ["LICENSE"]
    assert text.split()[:4] == ["Apache", "License", "Version", "2.0,"]
    assert "END OF TERMS AND CONDITIONS" in text


def test_citation_is_of_this_version() -> None:
    assert (cited("title"), cited("version")) == (PROJECT["name"], PROJECT["version"])
    assert cited("abstract") == PROJECT["description"] + "."


RELEASES = re.findall(r"^## \[([\d.]+)\] - (\S+)$", CHANGELOG, re.MULTILINE)


def test_changelog_is_kept_as_keep_a_changelog_has_it() -> None:
    headings = re.findall(r"^## (.*)$", CHANGELOG, re.MULTILINE)
    assert headings == ["[Unreleased]", *(f"[{number}] - {day}" for number, day in RELEASES)]
    days = [datetime.date.fromisoformat(day) for _, day in RELEASES]
    assert days == sorted(days, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", CHANGELOG, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_changelog_begins_with_this_version() -> None:
    assert RELEASES[0] == (PROJECT["version"], cited("date-released"))


# ------------------------------------------------------------------------------------------------- the package page

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def package_page() -> str:
    """Return the README as the build puts it into the metadata."""
    page = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    parts = [each["text"] if "text" in each else (ROOT / each["path"]).read_text("utf-8") for each in page["fragments"]]
    text = "".join(parts)
    for each in page["substitutions"]:
        text = re.sub(each["pattern"], each["replacement"], text)
    return text


def test_no_link_on_the_package_page_is_relative() -> None:
    assert len(LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))) >= 20
    assert [link for link in LINK.findall(package_page()) if not re.match(r"https?:", link)] == []


def test_what_was_linked_is_named_on_the_package_page() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", readme)
    page = package_page()
    links = [link if ":" in link else link.partition("#")[0] for link in LINK.findall(readme) if link not in pictures]
    assert [link for link in links if f"(`{link}`)" not in page and f"({link})" not in page] == []
    assert pictures
    assert [picture for picture in pictures if picture in page] == []
    assert "!" not in page.replace("![", "").split("## Why")[0]


def test_examples_on_the_package_page_are_those_of_the_readme() -> None:
    """Test that text that only resembles a link, such as an index before a call, is unchanged."""
    blocks = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
    readme = blocks.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    assert len(readme) >= 5
    assert blocks.findall(package_page()) == readme


# ---------------------------------------------------------------------------------------------- extras and groups


def test_extras_for_work_on_maxops_are_the_groups() -> None:
    assert extra("test") - extra("onnx") - extra("onnxruntime") - extra("openvino") == group("test")
    assert extra("dev") - extra("test") == group("dev") - group("test")


def test_the_old_name_of_an_extra_stays() -> None:
    assert EXTRAS["cli"] == ["maxops[onnx]"]


def test_every_requirement_has_a_lower_bound() -> None:
    """Test all requirements except type stubs, which follow the version of their package."""
    every = [*PROJECT["dependencies"], *(each for name in EXTRAS for each in extra(name)), *group("release")]
    assert [each for each in every if ">=" not in each and not each.startswith("types-")] == []


@pytest.mark.parametrize("page", ["jax", "onnxruntime", "openvino_extension"])
def test_releases_that_pages_name_are_the_lower_bounds(page: str) -> None:
    text = (ROOT / "docs" / "integrations" / f"{page}.md").read_text(encoding="utf-8")
    package = page.partition("_")[0]
    (named,) = re.findall(r"([\d.]+) or newer\)", text)
    assert f"{package}>={named}" in extra(package)


def test_pythons_that_are_named_are_those_that_are_taken() -> None:
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(PROJECT["classifiers"]))
    assert PROJECT["requires-python"] == f">=3.{min(map(int, named))}"
    assert named == [str(minor) for minor in range(int(named[0]), int(named[-1]) + 1)]
