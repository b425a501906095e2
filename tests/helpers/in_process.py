"""A faster replacement for the checker's sandbox, without a process, for models that are known to be harmless."""

from __future__ import annotations

from collections.abc import Sequence

from maxops.checker.sandbox import Work
from maxops.errors import ModelError


def sandboxed(works: Sequence[Work]) -> list[bytes | ModelError]:
    """Return the results that the sandbox would return for work that does not end its process."""
    results: list[bytes | ModelError] = []
    for work in works:
        try:
            results.append(work())
        except ModelError as error:
            results.append(error)
    return results
