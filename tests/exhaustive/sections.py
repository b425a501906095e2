"""The enumerations by name. Each runs in a separate process."""

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
    arguments_and_layouts,
    elementwise,
    index_searches,
    interrupted_and_empty,
    long_runs,
    long_single_columns,
    many_vectors,
    outputs_and_overlaps,
    ranks,
    reduce,
    rows_and_columns,
    runs_by_offsets,
    segments,
    special_values,
    strides_and_places,
    values,
)
from .states import counted

# The modules of the enumerations: those that this module imports from its package.
MODULES = tuple(
    each for each in vars().copy().values() if isinstance(each, ModuleType) and each.__package__ == __package__
)
LAYOUTS = ("contiguous", "fortran", "transposed", "strided", "pitched", "apart", "backwards", "swapped")
# Calls around a single boundary or layout, fast enough to run completely.
BOUNDARIES: dict[str, Callable[[], None]] = {
    "maximum, outputs": outputs_and_overlaps.outputs,
    "maximum, repeated views": outputs_and_overlaps.repeated,
    "maximum, windows": outputs_and_overlaps.windows,
    "maximum, elements that share bytes": outputs_and_overlaps.close,
    "maximum, alike": outputs_and_overlaps.alike,
    "maximum, in place": outputs_and_overlaps.in_place,
    "maximum, streamed": outputs_and_overlaps.streamed,
    "maximum, layouts of new outputs": outputs_and_overlaps.layouts,
    "maximum, in place, float16": functools.partial(outputs_and_overlaps.in_place, np.float16),
    "maximum, alignments": outputs_and_overlaps.alignments,
    "maximum, empty": outputs_and_overlaps.empty,
    "zeros": outputs_and_overlaps.zeros,
    "zeros, float64": functools.partial(outputs_and_overlaps.zeros, np.float64),
    "reduce_max, few outputs": outputs_and_overlaps.reduced,
    "reduce_max, few outputs, int8": functools.partial(outputs_and_overlaps.reduced, np.int8),
    "reduce_max, one NaN": outputs_and_overlaps.saturated,
    "segments, ids apart": outputs_and_overlaps.ids_apart,
    "reduce_max, kernels, rows": rows_and_columns.rows,
    "reduce_max, kernels, long rows": rows_and_columns.long_rows,
    "reduce_max, kernels, windows": rows_and_columns.windows,
    "reduce_max, kernels, columns": rows_and_columns.columns,
    "subnormals as zero": rows_and_columns.modes,
    "reduce_max, kernels, rows of a task": many_vectors.rows,
    "reduce_max, kernels, short streams": many_vectors.streams,
    "maximum, two matrices transposed": many_vectors.transposed,
    "maximum, outputs between lines": many_vectors.between_lines,
    "segments, longer runs": long_runs.runs,
    "segments, rows of bytes": long_runs.rows,
    "segments, blocks of rows": long_runs.blocks,
    "wrong ids, longer runs": long_runs.wrong,
    "wrong ids, many steps down": long_runs.many_steps_down,
    "ids in any order, dropped at the end": long_runs.dropped,
    "maximum, fewer axes": arguments_and_layouts.fewer_axes,
    "maximum, a part of the output": arguments_and_layouts.part_of_output,
    "maximum, in place, without memory": arguments_and_layouts.in_place,
    "maximum, rules of broadcasting": arguments_and_layouts.broadcast_rules,
    "64 axes": arguments_and_layouts.every_rank,
    "layouts of new outputs": arguments_and_layouts.layouts,
    "layouts of no elements": arguments_and_layouts.empty_layouts,
    "reduce_max, axes": arguments_and_layouts.axes,
    "reduce_max, many outputs": arguments_and_layouts.larger,
    "reduce_max, initial, out": arguments_and_layouts.with_initial,
    "ids and offsets, faults": arguments_and_layouts.faults,
    "ids of every type": arguments_and_layouts.every_id,
    "offsets of every type": arguments_and_layouts.every_offset,
    "ids of every type, indices and empty": arguments_and_layouts.masks,
    "steps in runs of ids": arguments_and_layouts.steps_in_runs,
    "small outputs, guarded": arguments_and_layouts.guarded,
    "special values": special_values.values,
    "rows of special values": special_values.rows,
    "many rows of special values": special_values.many_rows,
    "indices, absent": index_searches.absent,
    "indices, axes in any order": index_searches.orders,
    "indices, long runs by offsets": index_searches.runs,
    "indices, shares of ids in order": index_searches.ordered,
    "indices, shares of ids in any order": index_searches.shuffled,
    "indices, wrong ids": index_searches.unchecked,
    "indices, many rows": index_searches.many,
    "ids in any order, dropped": index_searches.dropped,
    "ids in any order, copies of the output": index_searches.shared,
    "segments, empty ones by offsets": index_searches.empty,
    "segments, whole pages": index_searches.pages,
    "segments, by offsets": runs_by_offsets.by_offsets,
    "segments, no rows": runs_by_offsets.no_rows,
    "segments, steps in runs of rows": runs_by_offsets.steps_in_rows,
    "indices, a share that is held up": runs_by_offsets.held_up,
    "reduce_max, elements in steps": index_searches.steps,
    "maximum, matrices transposed": index_searches.transposed,
    "maximum, output within an array": index_searches.streamed,
    "segments, vectors of rows": long_single_columns.vectors,
    "segments, vectors of single rows": long_single_columns.singles,
    "segments, gaps in vectors": long_single_columns.gaps,
    "wrong ids, within vectors": long_single_columns.down,
    "segments, ids that change": long_single_columns.changed,
    "reduce_max, steps in bytes": strides_and_places.steps,
    "reduce_max, many short rows": strides_and_places.follow,
    "reduce_max, apart and in strips": strides_and_places.apart,
    "reduce_max, repeats": strides_and_places.repeats,
    "maximum, every order of axes": strides_and_places.orders,
    "maximum, eight inputs and more": strides_and_places.many,
    "maximum, a byte apart": strides_and_places.close,
    "maximum, in place, every offset": strides_and_places.in_place,
    "maximum, subnormals as zero": strides_and_places.modes,
    "signals in long calls": interrupted_and_empty.stopped,
    "signals before short calls": interrupted_and_empty.waiting,
    "wrong offsets, no rows": interrupted_and_empty.no_rows,
    "wrong ids, many more steps down": interrupted_and_empty.many_steps_down,
    "64 axes and none": interrupted_and_empty.every_axis,
    "indices, found twice": interrupted_and_empty.found_twice,
}
# The fast sections are first, because most faults fail several sections.
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
    # In other sections, the miniature's tasks have too few rows for the loops over many rows.
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
    "ids in any order, threads": functools.partial(any_order.unsorted, counts=(2, 3), widths=(1, 2, 4), most_rows=5),
    "ids in any order, 3 threads": functools.partial(any_order.unsorted, counts=(3,), widths=(1, 4)),
    "ids out of range": any_order.refused,
    "wrong ids": any_order.wrong,
    "reduce_max, float32": reduce.every,
    **{f"segments, {name}": functools.partial(segments.plain, np.dtype(name).type) for name in ("int64", "int16")},
    # Rows of float32 with more than one block of columns are wide rows, and a task has only one of their blocks.
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
    **BOUNDARIES,
}

# The same calls with lower bounds, which take one or two seconds each and find most faults.
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
    **BOUNDARIES,
}


def run(task: tuple[str, str]) -> tuple[str, str, Counter[str], float, str]:
    isa, name = task
    assert _native.use_isa(isa)
    counted.clear()
    start = time.process_time()
    error = ""
    try:
        (SECTIONS.get(name) or SHORT[name])()
    except (AssertionError, ArithmeticError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as caught:
        error = f"{type(caught).__name__}: {caught}"  # printed by the parent process
    return isa, name, counted.copy(), time.process_time() - start, error
