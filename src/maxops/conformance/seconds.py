"""How long a trial may take before it counts as hung."""

from __future__ import annotations

from maxops.errors import ConfigurationError

USUAL = 20.0
LEAST, MOST = 0.1, 1e6  # the system counts milliseconds in 32 bits


def check(seconds: float) -> float:
    """The number itself; raises ConfigurationError for one that is no such time."""
    if not LEAST <= seconds <= MOST:  # NaN is neither
        raise ConfigurationError(f"{seconds} is not a number of seconds from {LEAST} to {MOST:g}")
    return seconds
