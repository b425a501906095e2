"""Builds what a release uploads, from its tag, checks it and lists it. Nothing is uploaded.

    python .ci/release.py VERSION FOLDER [--tag TAG]

The source distribution and every wheel are built of the files of the tag `vVERSION` alone, whatever the checkout holds,
and come to FOLDER, which must not be there. wheels.py beside this makes them and has them checked; what it needs has to
be installed (the dependency group `release`).
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
    """The tag is none that can be released, or what was built of it is not right."""


def tagged_files(tag: str, folder: Path) -> None:
    """Put the files of a tag into a folder."""
    known = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "-q", "--verify", f"refs/tags/{tag}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if known.returncode:
        raise NotReadyError(f"there is no tag {tag}: git tag -a {tag}, on the commit that is to be released")
    commit = known.stdout.strip()
    print(f"{tag} is commit {commit}")
    subprocess.run(["git", "clone", "-q", "--no-checkout", str(ROOT), str(folder)], check=True)
    # by the commit: of a branch and a tag with one name, git takes the branch
    subprocess.run(["git", "-C", str(folder), "checkout", "-q", "--detach", commit], check=True)


def disagreements(version: str, tree: Path) -> list[str]:
    """What the files of a tag say that is not of this version."""
    found = []
    project = tomllib.loads((tree / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if project["version"] != version:
        found.append(f"pyproject.toml: version is {project['version']}, not {version}")
    citation = (tree / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.findall(r"^version: (.*)$", citation, re.MULTILINE)
    if cited != [version]:
        found.append(f"CITATION.cff: version is {', '.join(cited) or 'not there'}, not {version}")
    log = (tree / "CHANGELOG.md").read_text(encoding="utf-8")
    section = re.search(rf"^## \[{re.escape(version)}\] - (\S+)\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
    if section is None:
        return [*found, f"CHANGELOG.md: has no heading '## [{version}] - YYYY-MM-DD'"]
    try:
        datetime.date.fromisoformat(section[1])
    except ValueError:
        found.append(f"CHANGELOG.md: the day of {version} is {section[1]!r}, not YYYY-MM-DD")
    else:
        days = re.findall(r'^date-released: "?([^"\n]*)"?$', citation, re.MULTILINE)
        if days != [section[1]]:
            found.append(f"CITATION.cff: date-released is {', '.join(days) or 'not there'}, not {section[1]}")
    if not re.search(r"^- ", section[2], re.MULTILINE):
        found.append(f"CHANGELOG.md: the section of {version} lists nothing")
    waiting = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## |\Z)", log, re.MULTILINE | re.DOTALL)
    if waiting is not None and waiting[1].strip():
        found.append(f"CHANGELOG.md: something stands under [Unreleased] that belongs to {version}, or after the tag")
    return found


def metadata(path: Path) -> Message:
    """What a source distribution or a wheel says of itself."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            [name] = [each for each in wheel.namelist() if each.endswith(".dist-info/METADATA")]
            return email.message_from_bytes(wheel.read(name))
    with tarfile.open(path) as sdist:
        file = sdist.extractfile(f"{path.name.removesuffix('.tar.gz')}/PKG-INFO")
        assert file is not None
        return email.message_from_bytes(file.read())


def faults(path: Path, version: str) -> list[str]:
    """What is wrong with a file that would be uploaded, past what twine looks at."""
    found = []
    says = metadata(path)
    if (says["Name"], says["Version"]) != ("maxops", version):
        found.append(f"is of {says['Name']} {says['Version']}, not maxops {version}")
    if (says["License-Expression"], says.get_all("License-File")) != ("Apache-2.0", ["LICENSE"]):
        found.append("has no licence Apache-2.0 with its file LICENSE")
    page = says.get_payload()
    assert isinstance(page, str)
    found += [f"the package page links to {link}, which is not there" for link in LINK.findall(page)]
    if re.search(r"-linux_\w+\.whl$", path.name):
        found.append("is for the system that built it alone; PyPI takes manylinux and musllinux")
    return [f"{path.name}: {each}" for each in found]


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command, which ends the release if it fails."""
    print("$", *command, flush=True)
    subprocess.run(command, cwd=cwd, check=True)


def release(version: str, folder: Path, tag: str) -> None:
    """Build, check, list."""
    if folder.exists():
        raise NotReadyError(f"{folder}: already exists; remove what an earlier attempt left")
    with tempfile.TemporaryDirectory() as temporary:
        tree = Path(temporary) / "maxops"
        tagged_files(tag, tree)
        if found := disagreements(version, tree):
            raise NotReadyError("\n".join(found))
        run(sys.executable, ".ci/wheels.py", "build", str(folder), cwd=tree)
    files = sorted(folder.iterdir())
    if found := [fault for path in files for fault in faults(path, version)]:
        raise NotReadyError("\n".join(found))
    print(f"\nmaxops {version}: {len(files)} files would be uploaded, and none was; they lie in {folder}")
    for path in files:
        print(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.stat().st_size:>10,}  {path.name}")


def main() -> None:
    """Say in a line what is not ready."""
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
        sys.exit(f"release: {error.cmd[0]} failed, with {error.returncode}")


if __name__ == "__main__":
    main()
