"""The version of maxops: what pyproject.toml said when it was built."""

from __future__ import annotations

try:
    from maxops import _version  # type: ignore[attr-defined,unused-ignore]  # the build writes it

    version: str = _version.version
except ImportError:
    version = "0+unknown"  # a source tree that is not installed: older than any release, for comparisons
