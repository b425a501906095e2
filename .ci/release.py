"""Builds, checks and lists the files of a release from its tag. Nothing is uploaded.

    python .ci/release.py VERSION FOLDER [--tag TAG]

The source distribution and every wheel are built only from the files of the tag `vVERSION`, not from the checkout. They
are written to FOLDER, which must not exist. wheels.py builds and checks them, and requires the dependency group
`release`.
"""

from __future__ import annotations

import argparse
import datetime
import email
import hashlib
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from email.message import Message
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)\s]+)\)")


class NotReadyError(Exception):
    """Raised if a tag cannot be released, or if its files are faulty."""


def tagged_files(tag: str, folder: Path) -> None:
    """Check out the files of a tag into a folder."""
    known = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "-q", "--verify", f"refs/tags/{tag}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode:
        raise NotReadyError(f"tag {tag} does not exist; run git tag -a {tag} on the commit to release")
    commit = known.stdout.strip()
    print(f"{tag} is commit {commit}")
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(folder)], check=True)
    # by the commit, because git prefers a branch to a tag of the same name
    subprocess.run(["git", "-C", str(folder), "checkout", "-q", "--detach", commit], check=True)


def disagreements(version: str, tree: Path) -> list[str]:
    """Return the places in the files of a tag that disagree with the version."""
    found = []
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if project["version"] != version:
        found.append(f"pyproject.toml: expected version {version}, got {project['version']}")
    citation = (tree / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    if cited != [version]:
        found.append(f"CITATION.cff: expected version {version}, got {', '.join(cited) or 'none'}")
    log = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
    if section is None:
        return [*found, f"CHANGELOG.md: missing heading '## [{version}] - YYYY-MM-DD'"]
    try:
        datetime.date.fromisoformat(section[1])
    except ValueError:
        found.append(f"CHANGELOG.md: expected a date YYYY-MM-DD for {version}, got {section[1]!r}")
    else:
        days = re.findall(r'^date-released: "?([^"\n]*)"?$', citation, re.MULTILINE)
        if days != [section[1]]:
            found.append(f"CITATION.cff: expected date-released {section[1]}, got {', '.join(days) or 'none'}")
    if not re.search(r"^- ", section[2], re.MULTILINE):
        found.append(f"CHANGELOG.md: the section of {version} is empty")
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
    if waiting is not None and waiting[1].strip():
        found.append(f"CHANGELOG.md: [Unreleased] is not empty; move its entries to {version}")
    return found


def metadata(path: Path) -> Message:
    """Return the metadata of a source distribution or a wheel."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(path) as sdist:
        file = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file is not None
        return email.message_from_bytes(file.read())


def faults(path: Path, version: str) -> list[str]:
    """Return the faults of a file that twine does not check."""
    found = []
    says = metadata(path)
    if (says["Name"], says["Version"]) != ("maxops", version):
        found.append(f"expected maxops {version}, got {says['Name']} {says['Version']}")
    if (says["License-Expression"], says.get_all("License-File")) != ("Apache-2.0", ["LICENSE"]):
        found.append("missing license Apache-2.0 with the file LICENSE")
    page = says.get_payload()
    assert isinstance(page, str)
    found += [f"the package page has a broken link to {link}" for link in LINK.findall(page)]
    if re.search(r"-linux_\w+\.whl$", path.name):
        found.append("the wheel has a local platform tag; PyPI accepts only manylinux and musllinux")
    return [f"{path.name}: {each}" for each in found]


def run(*command: str, cwd: Path = ROOT) -> None:
    """Print and run a command. Raise an error if it fails."""
    print("$", *command, flush=True)
    subprocess.run(command, cwd=cwd, check=True)


def release(version: str, folder: Path, tag: str) -> None:
    """Build, check and list the files of a release."""
    if folder.exists():
        raise NotReadyError(f"{folder} already exists; remove the files of earlier attempts")
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "maxops"
        tagged_files(tag, tree)
        if found := disagreements(version, tree):
            raise NotReadyError("\n".join(found))
        run(sys.executable, ".ci/wheels.py", "build", str(folder), cwd=tree)
    files = sorted(folder.iterdir())
    if found := [fault for path in files for fault in faults(path, version)]:
        raise NotReadyError("\n".join(found))
    print(f"\nmaxops {version}: {len(files)} files are ready to upload in {folder}; nothing was uploaded")
    for path in files:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size:>10,}  {path.name}")


def main() -> None:
    """Run the command line. Print each problem as one line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("version")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tag", help="default: vVERSION")
    arguments = parser.parse_args()
    try:
        release(arguments.version, arguments.folder.absolute(), arguments.tag or f"v{arguments.version}")
    except NotReadyError as error:
        sys.exit("\n".join(f"release: {line}" for line in str(error).splitlines()))
    except subprocess.CalledProcessError as error:
        sys.exit(f"release: {error.cmd[0]} failed with exit code {error.returncode}")


if __name__ == "__main__":
    main()
