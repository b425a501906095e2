"""The extras of the package: an import without the required extra raises an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(part: str, extra: str) -> Iterator[None]:
    """A context for imports of optional packages: a missing package raises an error with the name of its extra.

    It is also a ModuleNotFoundError with the package's name, for callers that test for the part.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in ("", "maxops"):  # no package of others
            raise
        raise ModuleNotFoundError(
            f'{part} needs the package {package!r}, which is not installed: pip install "maxops[{extra}]"',
            name=error.name,
        ) from error
