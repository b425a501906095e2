"""Distributes the parts of SegmentMax to the blocks of the result in stages, with n log n tasks instead of n**2.

A stage takes k consecutive parts, where k is small. It cuts each part into k classes of segments, and merges the pieces
of each class into one part. A class is not a range of segments, but contains every k-th block of the result. With
sorted ids, consecutive parts contain segments of consecutive blocks. So each class contains about one of these blocks,
and the parts do not grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count, product
from math import ceil
from typing import Any

import dask.array as da
import numpy as np
from dask.base import tokenize
from dask.highlevelgraph import HighLevelGraph

from maxops.calls import SegmentCall
from maxops.engines.dask import parts

Key = tuple[Any, ...]
# Maps a range of segments to the range of parts that contain them, and the number of rows before these parts.
Span = Callable[[int, int], tuple[int, int, int]]

# The number of parts that a task merges. With this number, a tree has few levels, and each level communicates at most
# as much data as the result contains.
AT_ONCE = 16
# A stage that cuts r parts into r classes requires r + 1 tasks per part. With log(n, r) stages, the total is lowest for
# r = 4.
CLASSES = 4


def shuffled(
    found: Any, call: SegmentCall, sizes: tuple[int, ...], dtype: np.dtype[Any], span: Span | None, name: str
) -> Any:
    """Return the results, in blocks of the given sizes, from the parts of all data blocks.

    If a call has several results, each block is a tuple. All sizes except the last are equal. `span` is None if the ids
    are not known before the computation.
    """
    name = f"{name}-{tokenize(found.name, call, sizes, span is None)}"
    layer: dict[Any, Any] = {}
    for columns in product(*map(range, found.numblocks[1:])):
        sources = [(found.name, block, *columns) for block in range(found.numblocks[0])]
        tasks = _Tasks(layer, name, columns, call, sizes[0])
        if span is None:
            found_for = tasks.in_stages(tasks.in_groups(sources, len(sizes)), range(len(sizes)))
        else:
            found_for = tasks.known(sources, span, sizes)
        for block, pieces, before in found_for:
            finish = partial(parts.finished, call=call, count=sizes[block], before=before)
            layer[name, block, *columns] = (finish, tasks.few(pieces))
    graph = HighLevelGraph.from_collections(name, layer, dependencies=[found])
    return da.Array(graph, name, (sizes, *found.chunks[1:]), dtype=dtype, meta=found._meta)


class _Tasks:
    """Creates the tasks for the parts in one column of blocks."""

    def __init__(self, layer: dict[Any, Any], name: str, columns: Key, call: SegmentCall, rows: int) -> None:
        self._layer, self._columns = layer, columns
        self._name, self._numbers = f"{name}-part", count()
        self._merge = partial(parts.merged, call=call)
        self._rows = rows

    def _add(self, function: Callable[..., Any], argument: Any) -> Key:
        key = (self._name, next(self._numbers), *self._columns)
        self._layer[key] = (function, argument)
        return key

    def _cuts(self, sources: Sequence[Key], among: int, chosen: int) -> list[Key]:
        cut = partial(parts.cut, rows=self._rows, among=among, chosen=chosen)
        return [self._add(cut, source) for source in sources]

    def _one(self, sources: list[Key]) -> Key:
        return sources[0] if len(sources) == 1 else self._add(self._merge, sources)

    def few(self, sources: list[Key], most: int = AT_ONCE) -> list[Key]:
        """Merge parts in a tree until at most `most` parts remain."""
        while len(sources) > most:
            sources = [self._one(group) for group in _groups(sources, AT_ONCE)]
        return sources

    def in_groups(self, sources: list[Key], most: int) -> list[Key]:
        """Merge parts into at most `most` parts, in groups of about equal size."""
        size = ceil(len(sources) / most)
        return [self._one(self.few(group)) for group in _groups(sources, size)]

    def known(self, sources: list[Key], span: Span, sizes: Sequence[int]) -> Iterator[tuple[int, list[Key], int]]:
        """Yield each block of the result, the parts with its segments, and the number of rows before these parts."""
        for block, size in enumerate(sizes):
            low = block * self._rows
            begin, end, before = span(low, low + size)
            yield block, self._cuts(sources[begin:end], len(sizes), block), before

    def in_stages(self, sources: list[Key], blocks: range) -> Iterator[tuple[int, list[Key], int]]:
        """Yield the same kind of tuples as `known`, for parts that may contain segments of any block."""
        if len(blocks) == 1:
            yield blocks[0], sources, 0
            return
        classes = min(_classes(len(sources)), len(blocks)) if len(sources) > 1 else len(blocks)
        for chosen in range(classes):
            pieces, mine = self._cuts(sources, classes, chosen), blocks[chosen::classes]
            if len(mine) > 1:
                pieces = [self._one(group) for group in _groups(pieces, classes)]
            yield from self.in_stages(pieces, mine)


def _groups(keys: list[Key], size: int) -> list[list[Key]]:
    return [keys[begin : begin + size] for begin in range(0, len(keys), size)]


def _classes(sources: int) -> int:
    """Return the lowest number of classes that needs no more stages than CLASSES classes."""
    stages = 1
    while CLASSES**stages < sources:
        stages += 1
    return next(classes for classes in range(2, CLASSES + 1) if classes**stages >= sources)
