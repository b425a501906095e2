"""The engine for NumPy arrays: the native core, set up from the environment."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple, overload

import numpy as np

from maxops import _native
from maxops.errors import ConfigurationError, MaxopsError, OutputTooLargeError
from maxops.plan import LARGEST_OUTPUT, MaxPlan, ReducePlan, SegmentPlan, widened_dtype

Array = np.ndarray[Any, np.dtype[Any]]

MOST_THREADS = 1024


def maximum(plan: MaxPlan) -> Array:
    """Run a plan of Max."""
    return _in_out(plan, _run(plan, "output", _native.planned_maximum, *plan.inputs, out=_plain(plan.out)))


def reduce_max(plan: ReducePlan) -> Array:
    """Run a plan of ReduceMax, for its values."""
    if plan.identity:
        out = _run(plan, "output", np.empty, plan.shape, plan.dtype.numpy) if plan.out is None else plan.out
        np.copyto(out, plan.data, casting="equiv")
        return out
    options = {"out": _plain(plan.out), "initial": plan.initial}
    return _in_out(
        plan, _run(plan, "output", _native.planned_reduce_max, plan.data, plan.axes, plan.keepdims, **options)
    )


def new_indices(plan: ReducePlan | SegmentPlan) -> Array:
    """An array for where a plan's values stand, to be had before any work."""
    return _run(plan, "indices", _native.new_indices, plan.shape)


def indices_in_axes(plan: ReducePlan, values: Array, indices: Array) -> Array:
    """The place among the reduced axes, in C order, of the first element that holds each of a plan's values."""
    if plan.identity:
        indices.fill(0)
        return indices
    return _run(plan, "indices", _native.locate, plan.data, plan.axes, _plain(values), indices)


def segment_max(plan: SegmentPlan) -> Array:
    """Run a plan of SegmentMax, for its values."""
    result = _run(
        plan,
        "output",
        _native.planned_segment_max,
        plan.data,
        plan.segment_ids,
        plan.num_segments,
        fill_mode=plan.fill_mode,
        out=_plain(plan.out),
        check_ids=False,  # the planner has looked
        offsets=plan.offsets,
        sorted=plan.sorted,
        initial=plan.initial,
    )
    return _in_out(plan, result)


def indices_in_segments(plan: SegmentPlan, values: Array, indices: Array) -> Array:
    """The first row that holds each of a plan's values, or -1."""
    names, by_offsets = _names(plan)
    return _run(plan, "indices", _native.locate_segments, plan.data, names, by_offsets, plan.sorted, values, indices)


def empty_segments(plan: SegmentPlan) -> Array:
    """Whether each segment has no rows."""
    return _run(plan, "mask of empty segments for a result", _native.empty_segments, *_names(plan), plan.num_segments)


def as_signed(names: object) -> Any:
    """Ids or offsets of any integer type as the core takes them; those of uint64 past 2^63 - 1 come out negative."""
    if type(names) is not np.ndarray or names.dtype.kind not in "iu":
        return names
    if names.dtype == np.uint64:
        return names.view(np.int64)
    wide = widened_dtype(names.dtype)
    return names if wide == names.dtype else names.astype(wide)


def are_valid_ids(ids: object, *, sorted: object, out_of_range: object, num_segments: object) -> bool:
    """Whether ids are sure to be right, as the planner's `check_segment_ids` has it; False leaves it to that."""
    if not isinstance(ids, np.ndarray) or not isinstance(sorted, bool):  # the planner takes 0, 1 and NumPy's bools too
        return False
    if not (out_of_range is None or (isinstance(out_of_range, str) and out_of_range in ("error", "drop"))):
        return False
    if out_of_range == "drop":
        return not sorted
    limited = not sorted or out_of_range == "error"
    return _native.names_are_right(ids, False, sorted, num_segments if limited else None) is True  # type: ignore[arg-type]


def are_valid_offsets(offsets: object, data: object) -> bool:
    """Whether offsets are sure to be right, as the planner's `check_offsets` has it."""
    if not isinstance(offsets, np.ndarray) or not isinstance(data, np.ndarray) or data.ndim == 0:
        return False
    return _native.names_are_right(offsets, True, True, len(data)) is True


def _names(plan: SegmentPlan) -> tuple[Array, bool]:
    """What names the segments, and whether that is offsets."""
    names = plan.segment_ids if plan.offsets is None else plan.offsets
    assert names is not None
    return names, plan.offsets is not None


@overload
def _plain(out: Array) -> Array: ...
@overload
def _plain(out: None) -> None: ...
def _plain(out: Array | None) -> Array | None:
    """A memory map as the array that the core takes."""
    return None if out is None else out.view(np.ndarray)


def _run(
    plan: MaxPlan | ReducePlan | SegmentPlan,
    what: str,
    function: Callable[..., Array | None],
    *args: Any,
    **options: Any,
) -> Array:
    """The result of a function of the core, or of one that allocates. Nothing is written before all memory is there."""
    try:
        result = function(*args, **options)
    except MemoryError as error:
        raise OutputTooLargeError(f"{plan.spec.name} {what} of shape {plan.shape}: {error}") from error
    if result is None:
        raise MaxopsError(f"{plan.spec.name} did not run: the arguments were changed by another thread")
    return result


def _in_out(plan: MaxPlan | ReducePlan | SegmentPlan, result: Array) -> Array:
    """The result, as the caller's own output if there is one."""
    return result if plan.out is None else plan.out


def set_num_threads(count: int) -> None:
    """Set how many threads a call may use, the calling one included.

    >>> set_num_threads(2)
    >>> get_num_threads()
    2

    The default is the number of CPUs that this process may use, or MAXOPS_NUM_THREADS. It never changes a bit of
    a result. Raises ConfigurationError for anything but an integer from 1 to 1024.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(f"the number of threads is {count!r}; it is an integer from 1 to {MOST_THREADS}")
    _native.set_num_threads(count)


def get_num_threads() -> int:
    """How many threads a call may use, the calling one included."""
    return _native.get_num_threads()


class MemoryInfo(NamedTuple):
    """What the cache of large outputs holds and has done; sizes in bytes."""

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


def _cache_limit(wanted: str) -> int:
    if not wanted:
        return min(LARGEST_OUTPUT // 16, 1 << 30)
    units = {"K": 10, "M": 20, "G": 30}
    unit = units.get(wanted[-1].upper())
    number = _number(wanted if unit is None else wanted[:-1])
    if number is None or (limit := number << (unit or 0)) > LARGEST_OUTPUT:
        raise ConfigurationError(
            f"MAXOPS_OUTPUT_CACHE is {wanted!r}; it is a number of bytes, such as 268435456, 256M or 2G, up to the "
            "machine's memory, or 0 for no cache"
        )
    return limit


def _thread_count(wanted: str) -> int:
    count = _number(wanted) if wanted else min(usable_cpus(), MOST_THREADS)
    if count is None or not 1 <= count <= MOST_THREADS:
        raise ConfigurationError(f"MAXOPS_NUM_THREADS is {wanted!r}; it is an integer from 1 to {MOST_THREADS}")
    return count


def _configure(environment: dict[str, str]) -> None:
    if not _native.isas():  # a developer's build of some instruction sets alone
        raise ImportError("maxops was built for none of the instruction sets that this machine has")
    _native.set_largest_output(LARGEST_OUTPUT)
    if (name := environment.get("MAXOPS_ISA", "")) and not (name in _native.isas() and _native.use_isa(name)):
        raise ConfigurationError(f"MAXOPS_ISA is {name!r}; this machine has {', '.join(_native.isas())}")
    _native.set_cache_limit(_cache_limit(environment.get("MAXOPS_OUTPUT_CACHE", "")))
    set_num_threads(_thread_count(environment.get("MAXOPS_NUM_THREADS", "")))


_configure(dict(os.environ))
