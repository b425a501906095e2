"""Runs the max operators on NumPy arrays in the native core, and configures the core from environment variables."""

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
    """Run a checked call of Max, and return the maxima."""
    return _run(plan, _native.planned_maximum, *plan.call.inputs, out=plan.call.out, nan=plan.call.nan)


def reduce_max(plan: Plan[ReduceCall]) -> Any:
    """Run a checked call of ReduceMax, and return the maxima and, with ``return_indices``, their indices."""
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
    """Return a copy of the data and, if indices are requested, zeros, because no axis is reduced."""
    call = plan.call
    indices = [_run(plan, allocate, np.zeros, plan.shape, np.int64)] if call.return_indices else []
    out = _run(plan, allocate, np.empty, plan.shape, plan.dtype.numpy) if call.out is None else call.out
    np.copyto(out, call.data, casting="equiv")
    return alone_if_one([out, *indices])


def segment_max(plan: Plan[SegmentCall]) -> Any:
    """Run a checked call of SegmentMax, and return the maxima and, if requested, the indices and the mask."""
    call = plan.call
    return _run(
        plan,
        _native.planned_segment_max,
        call.data,
        call.segment_ids,
        call.num_segments,
        fill_value=call.fill_value,
        out=call.out,
        check_ids=False,  # the planner has already checked the ids if the call requests it
        offsets=call.offsets,
        sorted=call.sorted,
        axis=call.axis,
        initial=call.initial,
        return_indices=call.return_indices,
        return_empty=call.return_empty,
        nan=call.nan,
    )


def _run(plan: Plan[Any], function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a function of the core, and convert its failures to maxops errors.

    If the core runs out of memory, `out` is unchanged, because the core allocates all memory before it writes any
    result.
    """
    try:
        result = function(*args, **options)
    except MemoryError as error:
        raise OutputTooLargeError(
            f"{plan.call.row.name} cannot allocate an output of shape {plan.shape}: {error}",
            plan.call.row.clause("shape", "value", "T"),
        ) from error
    if result is None:
        raise MaxopsError(
            f"{plan.call.row.name} did not run, because another thread changed the arguments; pass copies",
            plan.call.row.clause("arrays", "ids", "T"),
        )
    return result


def set_num_threads(count: int) -> None:
    """Set the number of threads that a call may use, including the calling thread.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2

    The default is the value of MAXOPS_NUM_THREADS or, if it is not set, of OMP_NUM_THREADS. If neither is set, the
    default is the number of CPUs that this process may use. The number of threads never affects the bits of a result.
    Raises ConfigurationError if `count` is not an integer from 1 to 1024.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(
            f"the number of threads must be an integer from 1 to {MOST_THREADS}, got {shown(count)}"
        )
    _native.set_num_threads(count)


def get_num_threads() -> int:
    """Return the number of threads that a call may use, including the calling thread."""
    return _native.get_num_threads()


class MemoryInfo(NamedTuple):
    """The state of the cache of large outputs. See `memory_info` for the fields."""

    limit: int
    kept: int
    blocks: int
    reused: int
    fresh: int


def memory_info() -> MemoryInfo:
    """Return the state of the output cache, which reuses the memory of freed outputs for new outputs of 4 MiB or more.

    >>> memory_info().kept <= memory_info().limit
    True

    ``limit`` is the maximum size of the cache in bytes, ``kept`` is its current size, and ``blocks`` is the number of
    unused memory blocks in it. ``reused`` counts the outputs in reused blocks, and ``fresh`` counts those in new
    memory. The operating system may reclaim cached pages when memory is low. The default limit is a sixteenth of the
    machine's memory, but at most 1 GiB. The environment variable MAXOPS_OUTPUT_CACHE sets another limit as a number of
    bytes, such as 268435456, 256M or 2G, or disables the cache with 0.
    """
    return MemoryInfo(*_native.cache_info())


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use, limited by its affinity and its container's quota."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        with open("/sys/fs/cgroup/cpu.max", encoding="ascii") as file:
            quota, period = file.read().split()
    except (OSError, ValueError):  # there is no limit without this control group
        return cpus
    return cpus if quota == "max" else max(1, min(cpus, round(int(quota) / int(period))))


def _number(text: str) -> int | None:
    """Parse a number of 1 to 20 decimal digits. Return None for other text, even if `int` accepts it."""
    return int(text) if re.fullmatch(r"[0-9]{1,20}", text) else None


def _cache_limit(text: str) -> int:
    if not text:
        return min(LARGEST_OUTPUT // 16, 1 << 30)
    units = {"K": 10, "M": 20, "G": 30}
    unit = units.get(text[-1].upper())
    number = _number(text if unit is None else text[:-1])
    if number is None or (limit := number << (unit or 0)) > LARGEST_OUTPUT:
        raise ConfigurationError(
            "MAXOPS_OUTPUT_CACHE must be a number of bytes up to the machine's memory, such as 268435456, 256M or 2G, "
            f"or 0 to disable the cache, got {text!r}"
        )
    return limit


def _thread_count(text: str, openmp: str) -> int:
    if not text:
        return min(_openmp_count(openmp) or usable_cpus(), MOST_THREADS)
    count = _number(text)
    if count is None or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(f"MAXOPS_NUM_THREADS must be an integer from 1 to {MOST_THREADS}, got {text!r}")
    return count


def _openmp_count(text: str) -> int | None:
    """Parse OMP_NUM_THREADS, a number or a list of numbers. Return the first number, or None if it is invalid or unset.

    An invalid value causes only a warning, as in OpenMP runtimes, because the variable is not specific to maxops.
    """
    if not text:
        return None
    count = _number(text.partition(",")[0].strip())
    if not count:
        warnings.warn(
            f"OMP_NUM_THREADS={text!r} is not a number of threads and is ignored; "
            "set MAXOPS_NUM_THREADS to configure maxops",
            RuntimeWarning,
            stacklevel=2,
        )
    return count or None


def _configure(environment: dict[str, str]) -> None:
    if not _native.isas():  # possible only in development builds for selected instruction sets
        raise ImportError("maxops was not built for any instruction set that this machine supports")
    _native.set_largest_output(LARGEST_OUTPUT)
    if (name := environment.get("MAXOPS_ISA", "")) and not (name in _native.isas() and _native.use_isa(name)):
        raise ConfigurationError(f"MAXOPS_ISA must be one of {', '.join(_native.isas())}, got {name!r}")
    _native.set_cache_limit(_cache_limit(environment.get("MAXOPS_OUTPUT_CACHE", "")))
    openmp = environment.get("OMP_NUM_THREADS", "")
    set_num_threads(_thread_count(environment.get("MAXOPS_NUM_THREADS", ""), openmp))


_configure(dict(os.environ))
