"""The timeout of a trial."""

from __future__ import annotations

from numbers import Real

from maxops.errors import ConfigurationError
from maxops.shown import shown

DEFAULT = 20.0
MINIMUM, MAXIMUM = 0.1, 1e6  # the system counts milliseconds in 32 bits


def check(seconds: float) -> float:
    """Return the timeout; raise ConfigurationError if it is not a number or out of range."""
    if not isinstance(seconds, Real):
        raise ConfigurationError(f"the timeout must be a number of seconds, got {shown(seconds)}")
    if not MINIMUM <= seconds <= MAXIMUM:  # also rejects NaN
        raise ConfigurationError(f"the timeout must be between {MINIMUM} and {MAXIMUM:g} seconds, got {seconds}")
    return float(seconds)
