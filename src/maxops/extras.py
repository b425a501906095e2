"""Raise errors for missing optional packages. The errors name the extra of maxops that installs the package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(part: str, extra: str) -> Iterator[None]:
    """Return a context manager for imports of optional packages. Errors for missing packages name the extra.

    The error is a ModuleNotFoundError, and its `name` is the missing module, as callers of optional imports expect.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "maxops"):  # not an optional package
            raise
        raise ModuleNotFoundError(
            f'{part} requires the package {package!r}, which is not installed: pip install "maxops[{extra}]"',
            name=error.name,
        ) from error
