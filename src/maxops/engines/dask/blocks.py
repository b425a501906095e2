"""Runs calls on blocks in tasks, and limits the memory that tasks keep."""

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
    """Disable the cache of large outputs in processes that `distributed` watches, unless their environment sets it.

    A worker near its memory limit writes results to its disk and waits until the process is smaller. Cached blocks
    would make it wait forever: they count, although the system may reclaim them at any time.
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
