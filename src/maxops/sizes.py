"""Compare and broadcast the shapes in a model. Sizes may be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# None is an unknown size without a name. Unknown sizes with the same name are equal.
Size = int | str | None
Dims = tuple[Size, ...]
MAX_ELEMENTS = 2**62  # no array has more elements, so larger products are not computed


def text(dims: Dims) -> str:
    """Return a shape as text, with ? for an unknown size.

    >>> text((2, None)), text(("n",))
    ('(2, ?)', '(n,)')
    """
    sizes = ["?" if size is None else str(size) for size in dims]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


class Broadcast(NamedTuple):
    """The result of `broadcast`.

    `dims` is the shape, or None if a rank is unknown. All other fields contain axes as negative numbers. Sizes conflict
    along the axes in `conflicts`, and may conflict along those in `open`. Size 0 broadcasts with size 1 along the axes
    in `zero_with_one`, and may do so along those in `perhaps_zero_with_one`.
    """

    dims: Dims | None
    conflicts: tuple[int, ...]
    open: tuple[int, ...]
    zero_with_one: tuple[int, ...]
    perhaps_zero_with_one: tuple[int, ...]


def equal(one: Dims | None, other: Dims | None) -> bool | None:
    """Return whether two shapes are equal, or None if unknown. Sizes with the same name are equal.

    >>> equal((2, "n"), (2, "n")), equal((2, "n"), (2, 3)), equal((2, "n"), (3, "n"))
    (True, None, False)
    """
    if one is None or other is None:
        return None
    if len(one) != len(other):
        return False
    found = [_equal(a, b) for a, b in zip(one, other, strict=True)]
    return False if False in found else None if None in found else True


def admits(declared: Dims | None, made: Dims | None) -> bool | None:
    """Return whether a declared shape allows an actual shape, or None if unknown. Declared names are not compared.

    >>> admits((None, 3), (2, 3)), admits((4, 3), (2, 3)), admits((4, 3), ("n", 3))
    (True, False, None)
    """
    if declared is None or made is None:
        return None if made is None else True
    if len(declared) != len(made):
        return False
    fixed = [_equal(a, b) for a, b in zip(declared, made, strict=True) if isinstance(a, int)]
    return False if False in fixed else None if None in fixed else True


def is_static(dims: Dims | None) -> bool:
    """Return whether every size is a number."""
    return dims is not None and all(isinstance(size, int) for size in dims)


def broadcast(shapes: Sequence[Dims | None]) -> Broadcast:
    """Broadcast shapes with unknown sizes by NumPy's rule.

    >>> broadcast([("n", 1), (3,)]).dims
    ('n', 3)
    >>> broadcast([(4,), (3,)]).conflicts
    (-1,)
    """
    known = [dims for dims in shapes if dims is not None]
    ranks = [len(shape) for shape in known]
    # the sizes along each axis, starting with the last axis; missing axes have size 1
    along: list[list[Size]] = [[1] if axis >= min(ranks) else [] for axis in range(max(ranks, default=0))]
    for shape in known:
        for axis, size in enumerate(reversed(shape)):
            along[axis].append(size)
    dims: list[Size] = []
    conflicts, opened, zero, perhaps = [], [], [], []
    for axis in range(-len(along), 0):
        found = along[-1 - axis]
        sizes = set(found)
        lone = found.count(None) < 2  # two unnamed sizes may differ
        size, fits = _together(sizes, lone)
        dims.append(size)
        if fits is False:
            conflicts.append(axis)
        elif fits is None:
            opened.append(axis)
        if {0, 1} <= sizes:
            zero.append(axis)
        elif _may_be_zero_with_one(sizes, lone):
            perhaps.append(axis)
    whole = tuple(dims) if len(known) == len(shapes) else None
    return Broadcast(whole, tuple(conflicts), tuple(opened), tuple(zero), tuple(perhaps))


def _equal(one: Size, other: Size) -> bool | None:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return True if one is not None and one == other else None


def _together(sizes: set[Size], lone: bool) -> tuple[Size, bool | None]:
    """Return the common size along one axis, and whether all sizes broadcast (None if unknown)."""
    fixed = {size for size in sizes if isinstance(size, int)} - {1}
    free = {size for size in sizes if not isinstance(size, int)}
    if len(fixed) > 1:
        return None, False
    if fixed:
        return fixed.pop(), None if free else True
    if not free:
        return 1, True
    return (free.pop(), True) if len(free) == 1 and lone else (None, None)


def _may_be_zero_with_one(sizes: set[Size], lone: bool) -> bool:
    free = {size for size in sizes if not isinstance(size, int)}
    if not free or any(isinstance(size, int) and size > 1 for size in sizes):
        return False  # size 0 never broadcasts with a size greater than 1
    return len(sizes) > 1 or not lone
