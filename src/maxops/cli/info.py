"""`maxops info`: shows versions, settings and extras for a bug report."""

from __future__ import annotations

import os
import platform
import re
import sys
from importlib.metadata import PackageNotFoundError, metadata, requires
from pathlib import Path
from typing import Any

import maxops
from maxops import _native
from maxops.cli import streams
from maxops.cli.table import show_json
from maxops.engines.native import usable_cpus
from maxops.machine import installed, machine

BASE = ("numpy", "ml_dtypes")
_SETTINGS = "MAXOPS_|OMP_"


def own_version() -> str:
    """Return the version, or a note that this is a source tree."""
    return installed("maxops") or "(source tree, not installed)"


def info(form: streams.Format = "text") -> None:
    """Show versions, instruction sets, threads, settings and extras for a bug report. No data leaves the machine."""
    document = _document()
    if form == "json":
        show_json(document)
        return
    for name, value in document.items():
        if isinstance(value, dict):
            print(f"{name}:" if value else f"{name}: none")
            for key, each in value.items():
                print(f"  {key}: {_text(each)}")
        else:
            print(f"{name}: {_text(value)}")


def _text(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {each or 'not installed'}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _document() -> dict[str, Any]:
    found = machine(maxops.get_num_threads())
    return {
        "maxops": own_version(),
        "folder": str(Path(maxops.__file__).parent),
        "commit": found["commit"] or "none (not a Git checkout)",
        "native core": {
            "instruction set": _native.isa(),
            "available instruction sets": list(_native.isas()),
            **_native.build(),
        },
        "threads": {"in use": maxops.get_num_threads(), "CPUs available to this process": usable_cpus()},
        "python": f"{platform.python_version()} {platform.python_implementation()}, {sys.executable}",
        "system": found["system"],
        "cpu": found["cpu"],
        "packages": {name: installed(name) for name in BASE},
        "extras": _extras(),
        "environment": {name: text for name, text in sorted(os.environ.items()) if re.match(_SETTINGS, name)},
    }


def _extras() -> dict[str, dict[str, str]]:
    """Return the packages of each extra with their installed versions, or "" for packages that are not installed."""
    try:
        names = metadata("maxops").get_all("Provides-Extra") or []
        listed = requires("maxops") or []
    except PackageNotFoundError:  # a source tree: only its pyproject.toml lists the extras
        return {}
    found: dict[str, dict[str, str]] = {}
    for name in names:
        marker = re.compile(rf"""extra\s*==\s*["']{re.escape(name)}["']""")
        packages = [re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in listed if marker.search(each)]
        found[name] = {package: installed(package) for package in packages if package != "maxops"}
    return found
