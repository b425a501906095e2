"""The version of maxops, which the build takes from pyproject.toml."""

from __future__ import annotations

try:
    from maxops import _version  # type: ignore[attr-defined,unused-ignore]  # the build writes it

    version: str = _version.version
except ImportError:
    version = "0+unknown"  # a source tree that is not installed; compares as older than any release
