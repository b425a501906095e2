"""The timeout of a trial."""

from __future__ import annotations

from maxops.errors import ConfigurationError

DEFAULT = 20.0
MINIMUM, MAXIMUM = 0.1, 1e6  # the system counts milliseconds in 32 bits


def check(seconds: float) -> float:
    """Return the timeout; raise ConfigurationError if it is out of range."""
    if not MINIMUM <= seconds <= MAXIMUM:  # also rejects NaN
        raise ConfigurationError(f"the timeout must be between {MINIMUM} and {MAXIMUM:g} seconds, got {seconds}")
    return seconds
