"""Raise errors that name the required extra of the package if an optional import fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(part: str, extra: str) -> Iterator[None]:
    """Return a context for imports of optional packages; a missing package raises an error that names its extra.

    The error is also a ModuleNotFoundError with the package's name, for callers that test for the package.
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
