"""The enumerations by name, as processes of their own run them."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable
from types import ModuleType

import numpy as np

from maxops import _native

from . import (
    any_order,
    elementwise,
    missed_api,
    missed_argmax,
    missed_avx512,
    missed_core,
    missed_fold,
    missed_offsets,
    missed_reduce,
    missed_rest,
    missed_rows,
    missed_segment,
    missed_vectors,
    ranks,
    reduce,
    segments,
    values,
)
from .states import counted

# Whose calls these are: what is imported here of this package.
MODULES = tuple(
    each for each in vars().copy().values() if isinstance(each, ModuleType) and each.__package__ == __package__
)
LAYOUTS = ("contiguous", "fortran", "transposed", "strided", "pitched", "apart", "backwards", "swapped")
# What mutants of the core (proofs/mutants.py) had shown to be missing: quick enough to run whole.
MISSED: dict[str, Callable[[], None]] = {
    "maximum, outputs": missed_fold.outputs,
    "maximum, repeated views": missed_fold.repeated,
    "maximum, windows": missed_fold.windows,
    "maximum, elements that share bytes": missed_fold.close,
    "maximum, alike": missed_fold.alike,
    "maximum, in place": missed_fold.in_place,
    "maximum, streamed": missed_fold.streamed,
    "maximum, layouts of new outputs": missed_fold.layouts,
    "maximum, in place, float16": functools.partial(missed_fold.in_place, np.float16),
    "maximum, alignments": missed_fold.alignments,
    "maximum, empty": missed_fold.empty,
    "zeros": missed_fold.zeros,
    "zeros, float64": functools.partial(missed_fold.zeros, np.float64),
    "reduce_max, few outputs": missed_fold.reduced,
    "reduce_max, few outputs, int8": functools.partial(missed_fold.reduced, np.int8),
    "reduce_max, one NaN": missed_fold.saturated,
    "segments, ids apart": missed_fold.ids_apart,
    "reduce_max, kernels, rows": missed_reduce.rows,
    "reduce_max, kernels, long rows": missed_reduce.long_rows,
    "reduce_max, kernels, windows": missed_reduce.windows,
    "reduce_max, kernels, columns": missed_reduce.columns,
    "subnormals as zero": missed_reduce.modes,
    "reduce_max, kernels, rows of a task": missed_vectors.rows,
    "reduce_max, kernels, short streams": missed_vectors.streams,
    "maximum, two matrices turned": missed_vectors.turned,
    "maximum, outputs between lines": missed_vectors.between_lines,
    "segments, longer runs": missed_segment.runs,
    "segments, rows of bytes": missed_segment.rows,
    "segments, blocks of rows": missed_segment.blocks,
    "wrong ids, longer runs": missed_segment.wrong,
    "wrong ids, many steps down": missed_segment.many_steps_down,
    "ids in any order, dropped at the end": missed_segment.dropped,
    "maximum, fewer axes": missed_api.fewer_axes,
    "maximum, a part of the output": missed_api.part_of_output,
    "maximum, in place, without memory": missed_api.in_place,
    "maximum, rules of broadcasting": missed_api.broadcast_rules,
    "64 axes": missed_api.every_rank,
    "layouts of new outputs": missed_api.layouts,
    "layouts of no elements": missed_api.empty_layouts,
    "reduce_max, axes": missed_api.axes,
    "reduce_max, many outputs": missed_api.larger,
    "reduce_max, initial, out": missed_api.with_initial,
    "ids and offsets, faults": missed_api.faults,
    "ids of every type": missed_api.every_id,
    "offsets of every type": missed_api.every_offset,
    "ids of every type, indices and empty": missed_api.masks,
    "steps in runs of ids": missed_api.steps_in_runs,
    "small outputs, guarded": missed_api.guarded,
    "special values": missed_rows.values,
    "rows of special values": missed_rows.rows,
    "many rows of special values": missed_rows.many_rows,
    "indices, absent": missed_argmax.absent,
    "indices, axes in any order": missed_argmax.orders,
    "indices, long runs by offsets": missed_argmax.runs,
    "indices, shares of ids in order": missed_argmax.ordered,
    "indices, shares of ids in any order": missed_argmax.shuffled,
    "indices, wrong ids": missed_argmax.unchecked,
    "indices, many rows": missed_argmax.many,
    "ids in any order, dropped": missed_argmax.dropped,
    "ids in any order, copies of the output": missed_argmax.shared,
    "segments, empty ones by offsets": missed_argmax.empty,
    "segments, whole pages": missed_argmax.pages,
    "segments, by offsets": missed_offsets.by_offsets,
    "segments, no rows": missed_offsets.no_rows,
    "segments, steps in runs of rows": missed_offsets.steps_in_rows,
    "indices, a share that is held up": missed_offsets.held_up,
    "reduce_max, elements in steps": missed_argmax.steps,
    "maximum, matrices turned": missed_argmax.turned,
    "maximum, output within an array": missed_argmax.streamed,
    "segments, vectors of rows": missed_avx512.vectors,
    "segments, vectors of single rows": missed_avx512.singles,
    "segments, gaps in vectors": missed_avx512.gaps,
    "wrong ids, within vectors": missed_avx512.down,
    "segments, ids that change": missed_avx512.changed,
    "reduce_max, steps in bytes": missed_core.steps,
    "reduce_max, many short rows": missed_core.follow,
    "reduce_max, apart and in strips": missed_core.apart,
    "reduce_max, repeats": missed_core.repeats,
    "maximum, every order of axes": missed_core.orders,
    "maximum, eight inputs and more": missed_core.many,
    "maximum, a byte apart": missed_core.close,
    "maximum, in place, every offset": missed_core.in_place,
    "maximum, subnormals as zero": missed_core.modes,
    "signals in long calls": missed_rest.stopped,
    "signals before short calls": missed_rest.waiting,
    "wrong offsets, no rows": missed_rest.no_rows,
    "wrong ids, many more steps down": missed_rest.many_steps_down,
    "64 axes and none": missed_rest.every_axis,
    "indices, found twice": missed_rest.found_twice,
}
# The quick ones first: a fault is most often seen by several.
SECTIONS: dict[str, Callable[[], None]] = {
    **{f"values, {of}": functools.partial(values.pairs, np.dtype(of).type) for of in ("float32", "float16", "float64")},
    "maximum": elementwise.broadcasts,
    "maximum, longer": functools.partial(
        elementwise.broadcasts, layouts=("contiguous", "pitched"), most=3, of=elementwise.LONGER
    ),
    "maximum, overlaps": elementwise.overlaps,
    "maximum, scalars": elementwise.scalars,
    "maximum, layouts": functools.partial(elementwise.broadcasts, layouts=LAYOUTS[1:], most=3),
    "maximum, many inputs": elementwise.more_inputs,
    "maximum, threads": elementwise.threaded,
    "reduce_max, out": reduce.outputs,
    "reduce_max, longer": functools.partial(
        reduce.every, layouts=("contiguous", "fortran", "pitched", "strided"), of=reduce.longer
    ),
    "reduce_max, longer, int16": functools.partial(reduce.every, np.int16, ("contiguous",), of=reduce.longer),
    # elsewhere a task of the miniature has too few rows for the loops over many
    "reduce_max, int8, many rows": functools.partial(
        reduce.every, np.int8, ("contiguous", "fortran", "pitched"), of=reduce.many_rows
    ),
    "reduce_max": functools.partial(reduce.every, layouts=LAYOUTS, most_rank=3),
    "reduce_max, threads": reduce.threaded,
    "segments": segments.plain,
    "segments, blocks of ids": segments.blocks,
    "segments, threads": segments.threaded,
    "segments, options": segments.options,
    "ids in any order": any_order.unsorted,
    "ids in any order, threads": functools.partial(any_order.unsorted, counts=(2, 3), widths=(1, 2, 4)),
    "ids out of range": any_order.refused,
    "wrong ids": any_order.wrong,
    "reduce_max, rank 4": reduce.every,
    **{f"segments, {name}": functools.partial(segments.plain, np.dtype(name).type) for name in ("int64", "int16")},
    # float32's rows of more than one block of columns are wide ones, which each task has but a block of
    "segments, int16, two blocks of columns": functools.partial(segments.plain, np.int16, most_rows=6, widths=(5,)),
    **{
        f"{name}, {of}": functools.partial(call, np.dtype(of).type)
        for name, call in (("reduce_max", reduce.every), ("maximum", elementwise.broadcasts))
        for of in ("int64", "int16", "float16")
    },
    **{f"maximum, rank {rank}": functools.partial(ranks.broadcasts, rank) for rank in (5, 6, 7, 8)},
    "maximum, rank 5, sizes": functools.partial(ranks.sizes, 5),
    **{f"maximum, rank {rank}, sizes": functools.partial(ranks.sizes, rank, 13 ** (rank - 5)) for rank in (6, 7, 8)},
    **{f"reduce_max, rank {rank}": functools.partial(ranks.reductions, rank) for rank in (5, 6, 7, 8)},
    **{f"segments, rank {rank}": functools.partial(ranks.segments, rank) for rank in (5, 6, 7, 8)},
    **MISSED,
}

# The same calls with lower bounds, a second or two each: enough for most faults.
SHORT: dict[str, Callable[[], None]] = {
    "values, float32, some": functools.partial(values.pairs, np.float32, sizes=(3, 9, 40)),
    "values, float16, some": functools.partial(values.pairs, np.float16, sizes=(3, 40)),
    "maximum, three inputs": functools.partial(elementwise.broadcasts, most=3),
    "maximum, overlaps": elementwise.overlaps,
    "maximum, scalars": elementwise.scalars,
    "maximum, many inputs": elementwise.more_inputs,
    "maximum, threads": elementwise.threaded,
    "reduce_max, out": reduce.outputs,
    "maximum, longer, two inputs": functools.partial(
        elementwise.broadcasts, layouts=("contiguous", "pitched"), most=2, of=elementwise.LONGER[::5]
    ),
    "maximum, layouts, two inputs": functools.partial(elementwise.broadcasts, layouts=LAYOUTS[1:], most=2),
    "reduce_max, rank 2": functools.partial(reduce.every, layouts=LAYOUTS, most_rank=2),
    "reduce_max, rank 2, int16": functools.partial(reduce.every, np.int16, layouts=LAYOUTS, most_rank=2),
    "reduce_max, rank 2, float64": functools.partial(reduce.every, np.float64, layouts=LAYOUTS, most_rank=2),
    "maximum, layouts, float64": functools.partial(elementwise.broadcasts, np.float64, layouts=LAYOUTS[1:], most=2),
    "reduce_max, rank 3, rows": functools.partial(
        reduce.every, layouts=("contiguous", "pitched", "apart"), most_rank=3
    ),
    "reduce_max, vectors": functools.partial(reduce.every, of=reduce.vectors),
    "reduce_max, vectors, int16": functools.partial(reduce.every, np.int16, of=reduce.vectors),
    "reduce_max, int8, rows": functools.partial(reduce.every, np.int8, ("contiguous", "pitched"), of=reduce.many_rows),
    "reduce_max, threads, rank 2": functools.partial(reduce.threaded, most_rank=2),
    "segments, five rows": functools.partial(segments.plain, most_rows=5),
    "segments, five rows, int16": functools.partial(segments.plain, np.int16, most_rows=5),
    "segments, five rows, int16, two blocks": functools.partial(segments.plain, np.int16, most_rows=5, widths=(5,)),
    "segments, blocks of ids, five rows": functools.partial(segments.blocks, most_rows=5),
    "segments, threads, five rows": functools.partial(segments.threaded, most_rows=5),
    "segments, options, four rows": functools.partial(segments.options, most_rows=4),
    "ids in any order, three rows": functools.partial(any_order.unsorted, most_rows=3),
    "ids in any order, threads, three rows": functools.partial(
        any_order.unsorted, counts=(2,), widths=(1, 2, 4), most_rows=3
    ),
    "ids in any order, three threads, four rows": functools.partial(
        any_order.unsorted, counts=(3,), widths=(1, 2), most_rows=4
    ),
    "ids out of range, three rows": functools.partial(any_order.refused, most_rows=3),
    "wrong ids, four rows": functools.partial(any_order.wrong, most_rows=4),
    "maximum, rank 6, some": functools.partial(ranks.broadcasts, 6, 3),
    "maximum, rank 8, some": functools.partial(ranks.broadcasts, 8, 53),
    "maximum, rank 6, some sizes": functools.partial(ranks.sizes, 6, 103),
    "reduce_max, rank 6, some": functools.partial(ranks.reductions, 6, 3),
    "reduce_max, rank 8, some": functools.partial(ranks.reductions, 8, 3),
    "segments, rank 6, some": functools.partial(ranks.segments, 6, 6),
    **MISSED,
}


def run(task: tuple[str, str]) -> tuple[str, str, Counter[str], float, str]:
    isa, name = task
    assert _native.use_isa(isa)
    counted.clear()
    start = time.process_time()
    error = ""
    try:
        SECTIONS[name]()
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as caught:
        error = f"{type(caught).__name__}: {caught}"  # told by the process that started this one
    return isa, name, counted.copy(), time.process_time() - start, error
