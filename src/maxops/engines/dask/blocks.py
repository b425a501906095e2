"""Runs calls on blocks in tasks, and limits the memory that tasks retain."""

from __future__ import annotations

import os
import sys
from typing import Any

from maxops import _native
from maxops.calls import Call
from maxops.engines import table


def run(call: Call) -> Any:
    """Run a call on blocks inside a task."""
    _keep_nothing_on_workers()
    return table.run(call)


def _keep_nothing_on_workers() -> None:
    """Disable the cache of large outputs in the workers of `distributed`, unless MAXOPS_OUTPUT_CACHE is set.

    A worker near its memory limit spills results to disk, and waits until the process uses less memory. Cached blocks
    would make it wait forever, because they count as used memory, although the system may reclaim them at any time.
    """
    if _native.cache_info()[0] == 0 or os.environ.get("MAXOPS_OUTPUT_CACHE"):
        return
    get_worker = getattr(sys.modules.get("distributed"), "get_worker", None)
    if get_worker is None:  # `distributed` is not imported, so this is not one of its workers
        return
    try:
        get_worker()
    except ValueError:  # a task of another scheduler, or not in a task
        return
    _native.set_cache_limit(0)
