"""The number of runs of a trial on the same arrays."""

from __future__ import annotations

import operator

from maxops.errors import ConfigurationError
from maxops.shown import shown

DEFAULT = 2  # one run for each pattern of free memory
MINIMUM, MAXIMUM = 2, 1000


def check(repeats: int) -> int:
    """Return the number of runs; raise ConfigurationError if it is not an integer or out of range.

    >>> check(5)
    5
    """
    try:
        repeats = operator.index(repeats)
    except TypeError:
        raise ConfigurationError(f"the number of runs must be an integer, got {shown(repeats)}") from None
    if not MINIMUM <= repeats <= MAXIMUM:
        raise ConfigurationError(
            f"the number of runs must be between {MINIMUM} and {MAXIMUM}, got {repeats}: each call runs at least once "
            "for each of two patterns of free memory"
        )
    return repeats
