"""The version of maxops that is installed: what pyproject.toml said when it was built."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version

UNKNOWN = "0+unknown"  # a source tree that is not installed: older than any release, for who compares versions


def version() -> str:
    """The installed version, read anew each time."""
    try:
        return installed_version("maxops")
    except PackageNotFoundError:
        return UNKNOWN
