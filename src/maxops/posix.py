"""Import Python's module `resource`, which sets the resource limits of processes on POSIX systems."""

from __future__ import annotations

import sys
from types import ModuleType

from maxops.errors import ConfigurationError


def resource_of(what: str) -> ModuleType:
    """Return Python's module `resource`, or raise ConfigurationError on systems without it."""
    try:
        import resource  # noqa: PLC0415 - not available on all systems
    except ImportError as error:
        raise ConfigurationError(
            f"{what} requires the resource limits of a POSIX system, got {sys.platform}"
        ) from error
    return resource
