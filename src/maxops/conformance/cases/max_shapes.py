"""Max: shapes that broadcast in both directions, and invalid shapes, which runtimes must refuse."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from maxops import dtypes, shapes
from maxops.conformance import pool, runs
from maxops.conformance.case import Call, Case, Input
from maxops.conformance.cases.family import Refused, compute, judges, refuse, rows, stored, subsampled
from maxops.conformance.cases.max import name
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.shapes import Shape
from maxops.spec import Spec

# Each entry is one model with dynamic sizes.
_SEVEN = (2, 1, 2, 1, 2, 1, 3)
GROUPS: dict[str, list[tuple[Shape, ...]]] = {
    "vectors of one size": [((size,), (size,)) for size in (1, 2, 17, 250)],
    "scalars": [((), ())],
    "matrices of one shape": [((2, 3), (2, 3)), ((1, 33), (1, 33)), ((33, 1), (33, 1))],
    "rank 3 of one shape": [((2, 3, 4), (2, 3, 4))],
    "rank 7 of one shape": [(_SEVEN, _SEVEN)],
    "three inputs of one shape": [((2, 3), (2, 3), (2, 3))],
    "vectors without elements": [((0,), (0,))],
    "matrices without elements": [((0, 3), (0, 3)), ((3, 0), (3, 0)), ((0, 0), (0, 0))],
    "matrices, a size of 1 on either side": [
        *(((2, 3), small) for small in ((1, 3), (2, 1), (1, 1))),
        *((small, (2, 3)) for small in ((1, 3), (2, 1), (1, 1))),
        ((1, 17), (5, 1)),
        ((33, 1), (1, 2)),
        ((2, 1), (1, 65)),
    ],
    "a long inner axis": [((2, 1500), (1, 1500)), ((2, 1), (1, 1500)), ((1, 1500), (2, 1500))],
    "a long outer axis": [((1500, 2), (1500, 1)), ((1, 2), (1500, 1)), ((1500, 2), (1, 2))],
    "rows as long as blocks are": [pair for n in runs.lengths(260) for pair in (((3, n), (1, n)), ((3, n), (3, 1)))],
    "columns as long as blocks are": [pair for n in runs.lengths(260) for pair in (((n, 3), (n, 1)), ((n, 3), (1, 3)))],
    "a scalar and a vector": [((), (5,)), ((), (1,)), ((), (130,))],
    "a vector and a scalar": [((5,), ()), ((1,), ()), ((130,), ())],
    "a scalar and rank 3": [((), (2, 3, 4))],
    "vectors, one of size 1": [((1,), (5,)), ((5,), (1,)), ((1,), (130,)), ((130,), (1,))],
    "a vector and a matrix": [((3,), (2, 3)), ((1,), (2, 3)), ((3,), (2, 1)), ((1,), (1, 1)), ((3,), (1, 1))],
    "a matrix and a vector": [((2, 3), (3,)), ((2, 3), (1,)), ((2, 1), (3,)), ((1, 1), (1,)), ((1, 1), (3,))],
    "a vector and rank 4": [((5,), (2, 3, 1, 5)), ((5,), (2, 3, 1, 1)), ((1,), (2, 3, 4, 5))],
    "rank 3, a size of 1 in the middle": [
        ((2, 1, 3), (2, 4, 3)),
        ((2, 4, 3), (2, 1, 3)),
        ((1, 4, 1), (2, 1, 3)),
        ((2, 1, 3), (1, 4, 1)),
        ((2, 4, 1), (2, 1, 3)),
    ],
    "rank 7, sizes of 1 that alternate": [(_SEVEN, (1, 2, 1, 2, 1, 2, 1)), ((1,) * 7, _SEVEN), (_SEVEN, (1,) * 7)],
    "three inputs of three ranks": [((4,), (3, 1), (2, 1, 1)), ((1,), (3, 4), (2, 3, 1))],
    "three inputs, the shape in none of them": [((2, 1, 1), (1, 3, 1), (1, 1, 4))],
    "vectors, a size of 0 and one of 1": [((0,), (1,)), ((1,), (0,))],
    "matrices, a size of 0 and one of 1": [((3, 0), (3, 1)), ((1, 3), (0, 3)), ((1, 0), (3, 1)), ((0, 1), (1, 0))],
    "a scalar and a vector without elements": [((), (0,))],
}
QUICK = ("matrices, a size of 1 on either side", "a scalar and a vector")
# Shapes that every version refuses.
UNEQUAL: list[tuple[Shape, ...]] = [
    ((2,), (3,)),
    ((3,), (2,)),
    ((2, 3), (2,)),
    ((2, 3), (3, 2)),
    ((2, 3, 4), (2, 4, 4)),
    ((0,), (2,)),
    ((1,), (2,), (3,)),
    ((2,), (2,), (3,)),
]
# Only versions without broadcasting refuse the second entry. The last entry broadcasts a size of 1 against a size of 0.
_QUICK_REFUSALS: dict[tuple[Shape, ...], Refused] = {
    ((2,), (3,)): True,
    ((1,), (5,)): "each row",
    ((0,), (1,)): True,
}


def cases() -> Iterator[Case]:
    """Yield the cases that test the shapes of Max."""
    for row in rows("Max"):
        for dtype in stored(row):
            yield from subsampled(row, dtype, _of_type(row, dtype))
        yield from _refused(row, UNEQUAL)
        yield from _refused(row, [sets[0] for sets in GROUPS.values()])


def _of_type(row: Spec, dtype: DType) -> Iterator[Case]:
    for sentence, sets in GROUPS.items():
        accepting = [judge for judge in judges(row) if not any(refusal(judge, each) for each in sets)]
        if accepting:
            call, feeds = _call(row, dtype, sets[0]), [_feed(dtype, each) for each in sets]
            yield from compute("shape", sentence, call, *feeds, quick=sentence in QUICK, among=accepting)


def refusal(row: Spec, sizes: Sequence[Shape]) -> str:
    """Return the meaning of the clause that makes a row refuse these shapes, or "" if the row accepts them."""
    if row.broadcast == "none":
        return "mismatch" if len(set(sizes)) > 1 else ""
    try:
        shapes.broadcast(sizes, zero_with_one=row.broadcast != "strict")
    except shapes.MismatchError as mismatch:
        return "zero-size" if {mismatch.size, mismatch.other} == {0, 1} else "mismatch"
    return ""


def _refused(row: Spec, sets: Sequence[tuple[Shape, ...]]) -> Iterator[Case]:
    dtype = dtypes.FLOAT32
    for each in sets:
        sentence = f"shapes {' and '.join('x'.join(map(str, shape)) or 'scalar' for shape in each)}"
        for meaning in ("mismatch", "zero-size"):
            refusing = [judge for judge in judges(row) if refusal(judge, each) == meaning]
            if refusing:
                call, feed, quick = _call(row, dtype, each), _feed(dtype, each), _QUICK_REFUSALS.get(each, False)
                yield from refuse(meaning, sentence, call, feed, quick=quick, among=refusing)


def _call(row: Spec, dtype: DType, sizes: Sequence[Shape]) -> Call:
    ranks = [len(shape) for shape in sizes]
    inputs = tuple(Input(name(number), dtype, (None,) * rank) for number, rank in enumerate(ranks))
    return Call(row, inputs, (), max(ranks))


def _feed(dtype: DType, sizes: Sequence[Shape]) -> tuple[Array, ...]:
    return tuple(pool.distinct(dtype, shape, turn) for turn, shape in enumerate(sizes))
