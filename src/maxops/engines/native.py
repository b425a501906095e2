"""The engine for NumPy arrays: the native core, set up from the environment."""

from __future__ import annotations

import os
from typing import Any, NamedTuple, overload

import numpy as np

from maxops import _native
from maxops.errors import ConfigurationError, MaxopsError, OutputTooLargeError
from maxops.plan import LARGEST_OUTPUT, MaxPlan, ReducePlan, SegmentPlan
from maxops.shapes import Shape

Array = np.ndarray[Any, np.dtype[Any]]

MOST_THREADS = 1024


def maximum(plan: MaxPlan) -> Array:
    """Run a plan of Max."""
    return _done(plan, _native.maximum(*plan.inputs, out=_plain(plan.out)))


def reduce_max(plan: ReducePlan) -> Array:
    """Run a plan of ReduceMax, for its values."""
    if plan.identity:
        out = np.empty(plan.shape, plan.dtype.numpy) if plan.out is None else plan.out
        np.copyto(out, plan.data, casting="equiv")
        return out
    initial = None if plan.initial is None else plan.initial.copy()  # it may lie in the output
    values = _done(plan, _native.reduce_max(plan.data, plan.axes, plan.keepdims, out=_plain(plan.out)))
    return values if initial is None else maximum(MaxPlan(plan.spec, plan.dtype, plan.shape, (values, initial), values))


def places_in_axes(plan: ReducePlan, values: Array) -> Array:
    """The place among the reduced axes, in C order, of the first element that holds each of a plan's values."""
    if plan.identity:
        return np.zeros(plan.shape, np.int64)
    return _there(plan, np.int64, plan.shape, _native.locate(plan.data, plan.axes, _plain(values)))


def segment_max(plan: SegmentPlan) -> Array:
    """Run a plan of SegmentMax, for its values."""
    result = _native.segment_max(
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
    return _done(plan, result)


def places_in_segments(plan: SegmentPlan, values: Array) -> Array:
    """The first row that holds each of a plan's values, or -1."""
    names, by_offsets = _names(plan)
    flat = np.ascontiguousarray(values, plan.dtype.numpy).reshape(plan.shape)
    result = _native.locate_segments(plan.data, names, by_offsets, plan.sorted, flat)
    return _there(plan, np.int64, plan.shape, result)


def empty_segments(plan: SegmentPlan) -> Array:
    """Whether each segment has no rows."""
    shape = (plan.num_segments,)
    return _there(plan, np.bool, shape, _native.empty_segments(*_names(plan), plan.num_segments))


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


def _done(plan: MaxPlan | ReducePlan | SegmentPlan, result: Array | None) -> Array:
    """The result. The core gives None for what it will not do; a plan leaves it few such reasons."""
    if result is not None:
        return result if plan.out is None else plan.out
    try:
        np.empty(plan.shape, plan.dtype.numpy)
    except (MemoryError, ValueError) as error:
        raise OutputTooLargeError(f"{plan.spec.name} output of shape {plan.shape}: {error}") from error
    raise MaxopsError(
        f"{plan.spec.name} did not run: the arguments were changed by another thread, or memory ran out meanwhile"
    )


def _there(plan: ReducePlan | SegmentPlan, dtype: type[np.generic], shape: Shape, result: Array | None) -> Array:
    """A result beside the maxima. The core gives None where memory is too small for it."""
    if result is not None:
        return result
    raise OutputTooLargeError(
        f"{plan.spec.name} result of {np.dtype(dtype)} and shape {shape} cannot be allocated beside the maxima"
    )


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


def _cache_limit(wanted: str) -> int:
    if not wanted:
        return min(LARGEST_OUTPUT // 16, 1 << 30)
    units = {"": 0, "K": 10, "M": 20, "G": 30}
    number, unit = (wanted[:-1], wanted[-1].upper()) if wanted[-1].isalpha() else (wanted, "")
    if not (number.isascii() and number.isdecimal() and unit in units) or int(number) << units[unit] > LARGEST_OUTPUT:
        raise ConfigurationError(
            f"MAXOPS_OUTPUT_CACHE is {wanted!r}; it is a number of bytes, such as 268435456, 256M or 2G, up to the "
            "machine's memory, or 0 for no cache"
        )
    return int(number) << units[unit]


def _configure(environment: dict[str, str]) -> None:
    _native.set_largest_output(LARGEST_OUTPUT)
    if (name := environment.get("MAXOPS_ISA", "")) and not (name in _native.isas() and _native.use_isa(name)):
        raise ConfigurationError(f"MAXOPS_ISA is {name!r}; this machine has {', '.join(_native.isas())}")
    _native.set_cache_limit(_cache_limit(environment.get("MAXOPS_OUTPUT_CACHE", "")))
    wanted = environment.get("MAXOPS_NUM_THREADS", "")
    try:
        set_num_threads(int(wanted) if wanted else min(usable_cpus(), MOST_THREADS))
    except ValueError:
        raise ConfigurationError(
            f"MAXOPS_NUM_THREADS is {wanted!r}; it is an integer from 1 to {MOST_THREADS}"
        ) from None


_configure(dict(os.environ))
