"""`make release`: its errors, without building anything."""

from __future__ import annotations

import importlib.util
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / ".ci" / "release.py"
FILES = {
    "pyproject.toml": '[project]\nname = "maxops"\nversion = "1.2.3"\n',
    "CITATION.cff": 'cff-version: 1.2.0\nversion: 1.2.3\ndate-released: "2026-01-31"\n',
    "CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.2.3] - 2026-01-31\n\n### Added\n\n- A thing.\n",
}
METADATA = "Name: maxops\nVersion: 1.2.3\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\n\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tree(folder: Path, **changes: str) -> Path:
    folder.mkdir(exist_ok=True)
    for name, text in (FILES | changes).items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_a_tree_that_is_ready(script: ModuleType, tmp_path: Path) -> None:
    assert script.disagreements("1.2.3", tree(tmp_path)) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("pyproject.toml", "1.2.3", "1.2.4", "pyproject.toml: expected version 1.2.3, got 1.2.4"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff: expected version 1.2.3, got 1.2.2"),
        ("CITATION.cff", "version: 1.2.3\n", "", "CITATION.cff: expected version 1.2.3, got none"),
        ("CITATION.cff", "01-31", "01-30", "CITATION.cff: expected date-released 2026-01-31, got 2026-01-30"),
        ("CITATION.cff", "date-released", "#", "CITATION.cff: expected date-released 2026-01-31, got none"),
        ("CHANGELOG.md", "[1.2.3]", "[1.2.30]", "CHANGELOG.md: missing heading '## [1.2.3] - YYYY-MM-DD'"),
        ("CHANGELOG.md", "-01-31", "-02-31", "CHANGELOG.md: expected a date YYYY-MM-DD for 1.2.3, got '2026-02-31'"),
        ("CHANGELOG.md", "- A thing.\n", "", "CHANGELOG.md: the section of 1.2.3 is empty"),
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- New.\n", "CHANGELOG.md: [Unreleased] is not empty"),
    ],
)
def test_a_tree_that_is_not_ready(script: ModuleType, tmp_path: Path, file: str, old: str, new: str, says: str) -> None:
    changed = FILES[file].replace(old, new)
    assert changed != FILES[file]
    [found] = script.disagreements("1.2.3", tree(tmp_path, **{file: changed}))
    assert found.startswith(says)


def test_this_tree_is_ready_for_its_version(script: ModuleType) -> None:
    """Test that all files agree on the version. Between releases, changes are under [Unreleased]."""
    version = script.tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    found = [each for each in script.disagreements(version, ROOT) if "[Unreleased]" not in each]
    assert found == []


def sdist(folder: Path, metadata: str) -> Path:
    path = folder / "maxops-1.2.3.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        entry = tarfile.TarInfo("maxops-1.2.3/PKG-INFO")
        entry.size = len(metadata.encode())
        archive.addfile(entry, io.BytesIO(metadata.encode()))
    return path


def wheel(folder: Path, metadata: str, tags: str = "cp311-cp311-manylinux_2_28_x86_64") -> Path:
    path = folder / f"maxops-1.2.3-{tags}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("maxops-1.2.3.dist-info/METADATA", metadata)
    return path


@pytest.mark.parametrize("make", [sdist, wheel], ids=["sdist", "wheel"])
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", None),
        ("Version: 1.2.3", "Version: 1.2.4", "expected maxops 1.2.3, got maxops 1.2.4"),
        ("Name: maxops", "Name: maxop", "expected maxops 1.2.3, got maxop 1.2.3"),
        ("License-File: LICENSE\n", "", "missing license Apache-2.0 with the file LICENSE"),
        ("\n\n", "\n\nSee [it](docs/speed.md).\n", "the package page has a broken link to docs/speed.md"),
        ("\n\n", "\n\nSee [it](https://example.org/docs/speed.md).\n", None),
    ],
    ids=["right", "version", "name", "licence", "relative-link", "link"],
)
def test_files(
    script: ModuleType, tmp_path: Path, make: Callable[[Path, str], Path], old: str, new: str, says: str | None
) -> None:
    path = make(tmp_path, METADATA.replace(old, new, 1))
    assert script.faults(path, "1.2.3") == ([] if says is None else [f"{path.name}: {says}"])


def test_a_wheel_for_one_system_alone(script: ModuleType, tmp_path: Path) -> None:
    path = wheel(tmp_path, METADATA, "cp311-cp311-linux_x86_64")
    [found] = script.faults(path, "1.2.3")
    assert found == f"{path.name}: the wheel has a local platform tag; PyPI accepts only manylinux and musllinux"


# ------------------------------------------------------------------------------------------------------ from a tag


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with the script and the tag v1.2.3, whose files are ready. The working tree is newer."""
    folder = tree(tmp_path / "repository")
    (folder / ".ci").mkdir()
    (folder / ".ci" / "release.py").write_bytes(SCRIPT.read_bytes())
    git = ["git", "-C", str(folder), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "ready"], ["tag", "v1.2.3"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    (folder / "pyproject.toml").write_text('[project]\nversion = "9"\n', encoding="utf-8")
    return folder


def release(repository: Path, version: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(repository / ".ci" / "release.py"), version, str(repository / "dist" / version)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_version_without_a_tag(repository: Path) -> None:
    done = release(repository, "1.2.4")
    says = "release: tag v1.2.4 does not exist; run git tag -a v1.2.4 on the commit to release\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", says)


def test_a_folder_that_is_there_already(repository: Path) -> None:
    (repository / "dist" / "1.2.3").mkdir(parents=True)
    done = release(repository, "1.2.3")
    assert (done.returncode, done.stderr) == (
        1,
        f"release: {repository / 'dist' / '1.2.3'} already exists; remove the files of earlier attempts\n",
    )


def test_it_is_the_tag_that_is_read(script: ModuleType, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "ROOT", repository)
    git = ["git", "-C", str(repository), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["commit", "-qam", "later"], ["branch", "v1.2.3"]):  # a branch may have the name of the tag
        subprocess.run([*git, *command], check=True, capture_output=True)
    folder = repository.parent / "tagged"
    script.tagged_files("v1.2.3", folder)
    assert script.disagreements("1.2.3", folder) == []
    assert script.disagreements("1.2.3", repository) == ["pyproject.toml: expected version 1.2.3, got 9"]


CHECKS = """
import sys
from pathlib import Path

import release_checks

release_checks.CHECKS = {"passes": "echo 3 passed", "fails": "echo 1 failed; false"}
release_checks.EVIDENCE = Path(sys.argv.pop())
release_checks.tree = str
sys.exit(release_checks.main())
"""


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_checks_that_pass_are_recorded(tmp_path: Path) -> None:
    """Test the script in a new process, because it has its own module path."""
    evidence = tmp_path / "evidence.json"
    evidence.write_text("{}", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CHECKS, evidence], cwd=ROOT / ".ci", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert "failed: fails" in done.stdout
    recorded = json.loads(evidence.read_text(encoding="utf-8"))["release_checks"]
    assert {name: check["result"] for name, check in recorded.items()} == {"passes": "3 passed"}
