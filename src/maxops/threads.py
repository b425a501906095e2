"""The number of threads for the length of a block of code."""

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
    """In a child that was forked while another thread, which it does not have, held the lock."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def num_threads(count: int) -> Iterator[None]:
    """Set how many threads a call may use, the calling one included, for the length of a block or a function.

    >>> import maxops as mo
    >>> before = mo.get_num_threads()
    >>> with mo.num_threads(2):
    ...     mo.get_num_threads()
    2
    >>> mo.get_num_threads() == before
    True

    The number is one for the process, as that of `set_num_threads` is: calls of other threads see it, too. Blocks may
    be nested, and threads may run blocks of their own at the same time, each of which may end before or after the
    others: the number is that of the block that began last among those still running, and when none is left what it was
    before the first one began. So what `set_num_threads` says inside a block holds until one ends, also by an
    exception. The number never changes a bit of a result.

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
