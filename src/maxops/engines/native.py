"""The engine for NumPy arrays: the native core, set up from the environment."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxops import _native
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.engines.base import alone_if_one
from maxops.errors import ConfigurationError, MaxopsError, OutputTooLargeError
from maxops.plan import LARGEST_OUTPUT, Plan
from maxops.plan.values import allocate
from maxops.shown import shown

MOST_THREADS = 1024


def maximum(plan: Plan[MaxCall]) -> Any:
    """Run a plan of Max."""
    return _run(plan, _native.planned_maximum, *plan.call.inputs, out=plan.call.out, nan=plan.call.nan)


def reduce_max(plan: Plan[ReduceCall]) -> Any:
    """Run a plan of ReduceMax: its values, and with return_indices their argmax."""
    if plan.call.noop_with_empty_axes:
        return _identity(plan)
    call = plan.call
    return _run(
        plan,
        _native.planned_reduce_max,
        call.data,
        call.axes,
        call.keepdims,
        out=call.out,
        initial=call.initial,
        return_indices=call.return_indices,
        nan=call.nan,
    )


def _identity(plan: Plan[ReduceCall]) -> Any:
    """The data itself, bit for bit, each element its own maximum."""
    call = plan.call
    indices = [_run(plan, allocate, np.zeros, plan.shape, np.int64)] if call.return_indices else []
    out = _run(plan, allocate, np.empty, plan.shape, plan.dtype.numpy) if call.out is None else call.out
    np.copyto(out, call.data, casting="equiv")
    return alone_if_one([out, *indices])


def segment_max(plan: Plan[SegmentCall]) -> Any:
    """Run a plan of SegmentMax: its values, and what else it asks for."""
    call = plan.call
    return _run(
        plan,
        _native.planned_segment_max,
        call.data,
        call.segment_ids,
        call.num_segments,
        fill_value=call.fill_value,
        out=call.out,
        check_ids=False,  # the planner has looked
        offsets=call.offsets,
        sorted=call.sorted,
        axis=call.axis,
        initial=call.initial,
        return_indices=call.return_indices,
        return_empty=call.return_empty,
        nan=call.nan,
    )


def _run(plan: Plan[Any], function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """The result of a function of the core, or of one that allocates. Nothing is written before all memory is there."""
    try:
        result = function(*args, **options)
    except MemoryError as error:
        raise OutputTooLargeError(
            f"{plan.call.row.name} output of shape {plan.shape}: {error}", plan.call.row.clause("shape", "value", "T")
        ) from error
    if result is None:
        raise MaxopsError(
            f"{plan.call.row.name} did not run: the arguments were changed by another thread; give it copies",
            plan.call.row.clause("arrays", "ids", "T"),
        )
    return result


def set_num_threads(count: int) -> None:
    """Set how many threads a call may use, the calling one included.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2

    The default is MAXOPS_NUM_THREADS, else OMP_NUM_THREADS, else the number of CPUs that this process may use. It
    never changes a bit of a result. Raises ConfigurationError for anything but an integer from 1 to 1024.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(f"the number of threads is {shown(count)}; it is an integer from 1 to {MOST_THREADS}")
    _native.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads a call may use, the calling one included."""
    return _native.get_num_threads()


class MemoryInfo(NamedTuple):
    """The content and the counts of the cache of large outputs; sizes in bytes."""

    limit: int
    kept: int
    blocks: int
    reused: int
    fresh: int


def memory_info() -> MemoryInfo:
    """Return the state of the cache that new outputs of 4 MiB and more come from.

    >>> memory_info().kept <= memory_info().limit
    True

    ``limit`` is the most that it keeps and ``kept`` what it keeps now, in bytes, in ``blocks`` blocks that no array
    uses; ``reused`` and ``fresh`` count the outputs that got such a block, and those that got new memory. The system
    may take kept pages back whenever memory is short. The limit is a sixteenth of the memory and at most 1 GiB, or
    MAXOPS_OUTPUT_CACHE: a number of bytes, such as 268435456, 256M or 2G, or 0 for no cache.
    """
    return MemoryInfo(*_native.cache_info())


def usable_cpus() -> int:
    """The CPUs that this process may use: its affinity, less what a container's quota leaves of it."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):  # no such control group: nothing is limited
        return cpus
    return cpus if quota == "max" else max(1, min(cpus, round(int(quota) / int(period))))


def _number(text: str) -> int | None:
    """A number in decimal digits, no more of them than a size has; None for anything else, also what `int` takes."""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def _cache_limit(text: str) -> int:
    if not text:
        return min(LARGEST_OUTPUT // 16, 1 << 30)
    units = {"K": 10, "M": 20, "G": 30}
    unit = units.get(text[-1].upper())
    number = _number(text if unit is None else text[:-1])
    if number is None or (limit := number << (unit or 0)) > LARGEST_OUTPUT:
        raise ConfigurationError(
            f"MAXOPS_OUTPUT_CACHE is {text!r}; it is a number of bytes, such as 268435456, 256M or 2G, up to the "
            "machine's memory, or 0 for no cache"
        )
    return limit


def _thread_count(text: str, openmp: str) -> int:
    if not text:
        return min(_openmp_count(openmp) or usable_cpus(), MOST_THREADS)
    count = _number(text)
    if count is None or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(f"MAXOPS_NUM_THREADS is {text!r}; it is an integer from 1 to {MOST_THREADS}")
    return count


def _openmp_count(text: str) -> int | None:
    """The number in OMP_NUM_THREADS, the first of a list by levels; None if it is not set, or no number.

    It is not ours, so what OpenMP's own runtimes warn of and ignore is a warning here, too, and no error.
    """
    if not text:
        return None
    count = _number(text.partition(",")[0].strip())
    if not count:
        warnings.warn(
            f"OMP_NUM_THREADS is {text!r}, which names no number of threads, and is ignored; "
            "MAXOPS_NUM_THREADS sets that of maxops",
            RuntimeWarning,
            stacklevel=2,
        )
    return count or None


def _configure(environment: dict[str, str]) -> None:
    if not _native.isas():  # a developer's build of some instruction sets alone
        raise ImportError("maxops was built for none of the instruction sets that this machine has")
    _native.set_largest_output(LARGEST_OUTPUT)
    if (name := environment.get("MAXOPS_ISA", "")) and not (name in _native.isas() and _native.use_isa(name)):
        raise ConfigurationError(f"MAXOPS_ISA is {name!r}; this machine has {', '.join(_native.isas())}")
    _native.set_cache_limit(_cache_limit(environment.get("MAXOPS_OUTPUT_CACHE", "")))
    openmp = environment.get("OMP_NUM_THREADS", "")
    set_num_threads(_thread_count(environment.get("MAXOPS_NUM_THREADS", ""), openmp))


_configure(dict(os.environ))
