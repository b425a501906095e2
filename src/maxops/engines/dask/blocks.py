"""Calls on blocks, in tasks, and the memory that tasks may keep."""

from __future__ import annotations

import os
import sys
from typing import Any

from maxops import _native
from maxops.calls import Call
from maxops.engines import table


def run(call: Call) -> Any:
    """Run a call on blocks, in a task."""
    _keep_nothing_on_workers()
    return table.run(call)


def _keep_nothing_on_workers() -> None:
    """Switch the cache of large outputs off in a process that `distributed` watches, unless its environment sets it.

    A worker that comes near its limit writes results to its disk and waits until the process has become smaller.
    Blocks that the cache keeps would have it wait for ever: they count, though the system may have them at any time.
    """
    if _native.cache_info()[0] == 0 or os.environ.get("MAXOPS_OUTPUT_CACHE"):
        return
    get_worker = getattr(sys.modules.get("distributed"), "get_worker", None)
    if get_worker is None:  # nor is there a worker then
        return
    try:
        get_worker()
    except ValueError:  # another scheduler's task, or the making of the graph
        return
    _native.set_cache_limit(0)
