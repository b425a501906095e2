"""The number of runs of a trial on the same arrays, and its timeout."""

from __future__ import annotations

import operator
from numbers import Real

from maxops.errors import ConfigurationError
from maxops.shown import shown

REPEATS = 2  # the default: one run for each pattern of free memory
MIN_REPEATS, MAX_REPEATS = 2, 1000
SECONDS = 20.0  # the default timeout
MIN_SECONDS, MAX_SECONDS = 0.1, 1e6  # the system counts milliseconds in 32 bits


def check_repeats(repeats: int) -> int:
    """Return the number of runs; raise ConfigurationError if it is not an integer or out of range.

    >>> check_repeats(5)
    5
    """
    try:
        repeats = operator.index(repeats)
    except TypeError:
        raise ConfigurationError(f"the number of runs must be an integer, got {shown(repeats)}") from None
    if not MIN_REPEATS <= repeats <= MAX_REPEATS:
        raise ConfigurationError(
            f"the number of runs must be between {MIN_REPEATS} and {MAX_REPEATS}, got {repeats}: each call runs at "
            "least once for each of two patterns of free memory"
        )
    return repeats


def check_seconds(seconds: float) -> float:
    """Return the timeout. Raise ConfigurationError if it is not a number or out of range."""
    if not isinstance(seconds, Real):
        raise ConfigurationError(f"the timeout must be a number of seconds, got {shown(seconds)}")
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:  # also rejects NaN
        raise ConfigurationError(
            f"the timeout must be between {MIN_SECONDS} and {MAX_SECONDS:g} seconds, got {seconds}"
        )
    return float(seconds)
