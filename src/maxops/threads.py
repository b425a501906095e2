"""Set the number of threads for a block of code."""

from __future__ import annotations

import itertools
import os
from contextlib import ContextDecorator
from threading import Lock

from maxops.engines.native import get_num_threads, set_num_threads

# The thread counts of running blocks, in the order in which the blocks began.
_blocks: dict[int, int] = {}
_numbers = itertools.count()
_outside = 0  # the thread count outside of all blocks
_lock = Lock()


def _renew_lock() -> None:
    """Replace the lock in a forked child process, because a thread of the parent process may have held it."""
    global _lock  # noqa: PLW0603
    _lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class _Block(ContextDecorator):
    """A context manager for blocks with the same number of threads. The blocks may follow each other, or be nested."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._active: list[int] = []

    def _recreate_cm(self) -> _Block:
        return _Block(self._count)  # as a decorator, each call of the function is a block of its own

    def __enter__(self) -> None:
        global _outside  # noqa: PLW0603
        with _lock:
            before = get_num_threads()
            set_num_threads(self._count)
            if not _blocks:
                _outside = before
            number = next(_numbers)
            _blocks[number] = self._count
            self._active.append(number)

    def __exit__(self, *error: object) -> None:
        with _lock:
            del _blocks[self._active.pop()]
            set_num_threads(next(reversed(_blocks.values()), _outside))


def num_threads(count: int) -> _Block:
    """Set the number of threads that a call may use, including the calling thread, for a block or a function.

    >>> import maxops as mo
    >>> before = mo.get_num_threads()
    >>> with mo.num_threads(2):
    ...     mo.get_num_threads()
    2
    >>> mo.get_num_threads() == before
    True

    As with `set_num_threads`, the number applies to the whole process, including calls in other threads. Blocks may be
    nested, and several threads may run blocks at the same time. If several blocks are active, the most recently entered
    one determines the number. When the last block ends, the number is restored to its value before the first block
    began. Calling `set_num_threads` inside a block has an effect only until any block ends. The number never affects
    the bits of a result.

    The context manager can be reused. As a decorator, ``@mo.num_threads(1)`` runs each call of the function in a block.
    Entering a block raises ConfigurationError if the number is not an integer from 1 to 1024.
    """
    return _Block(count)
