"""Limits on a process's resources, which POSIX systems have and Windows does not."""

from __future__ import annotations

import sys
from types import ModuleType

from maxops.errors import ConfigurationError


def resource_of(what: str) -> ModuleType:
    """Return Python's module `resource`; raise ConfigurationError on systems without it."""
    try:
        import resource  # noqa: PLC0415 - it is not everywhere
    except ImportError as error:
        raise ConfigurationError(
            f"{what} needs a POSIX system, for its limits on a process's resources; this is {sys.platform}"
        ) from error
    return resource
