"""The extras that parts of the package are installed with: an import without one is an error that names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(part: str, extra: str) -> Iterator[None]:
    """Around imports of what an extra installs: a package that is not installed is an error with the extra's name.

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
