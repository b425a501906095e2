"""Sets the number of threads for a block of code."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from maxops.engines.native import get_num_threads, set_num_threads

# The blocks that are running, by number in the order in which they began, and their counts.
_blocks: dict[int, int] = {}
_numbers = itertools.count()
_outside = 0  # the count that holds where no block runs
_lock = Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked child, because a thread that does not exist there may have held it."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    """Set the number of threads that a call may use, including the calling thread, for a block or a function.

    >>> import maxops as mo
    >>> before = mo.get_num_threads()
    >>> with mo.num_threads(2):
    ...     mo.get_num_threads()
    2
    >>> mo.get_num_threads() == before
    True

    The number applies to the whole process, like `set_num_threads`, so it affects calls of other threads, too. Blocks
    may be nested. Threads may run blocks at the same time, and the blocks may end in any order: the number is the
    number of the running block that began last. When no block is left, the number is restored to its value before the
    first block began. Therefore a `set_num_threads` inside a block lasts until a block ends, also by an exception. The
    number never changes a bit of a result.

    As a decorator, ``@mo.num_threads(1)`` is a block for each call. Raises ConfigurationError, and changes nothing, if
    the number is not an integer from 1 to 1024.
    """
    global _outside  # noqa: PLW0603
    with _lock:
        before = get_num_threads()
        set_num_threads(count)
        if not _blocks:
            _outside = before
        number = next(_numbers)
        _blocks[number] = count
    try:
        yield
    finally:
        with _lock:
            del _blocks[number]
            set_num_threads(next(reversed(_blocks.values()), _outside))
