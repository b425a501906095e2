"""Memory layouts of arrays: places an array in a buffer, and writes the line of a script that creates the layout.

The bytes between the elements hold the buffer's pattern, so a wrong read can change the result.
"""

from __future__ import annotations

from typing import Any, NamedTuple, get_args

import numpy as np

from maxops.conformance.case import Layout
from maxops.plan import Array

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
PADDING = 3  # number of elements after each row


class Laid(NamedTuple):
    """The bytes of an array in a layout, the position of its first element in them, and its strides in bytes."""

    data: bytes
    offset: int
    strides: tuple[int, ...]


def lay(array: Array, layout: Layout, pattern: int) -> Laid:
    """Return an array in a layout. If the layout does not apply, the array is contiguous.

    >>> lay(np.int8([1, 2]), "every other element", 0x5A)
    Laid(data=b'\\x01Z\\x02Z', offset=0, strides=(2,))
    >>> lay(np.int8([1, 2]), "reversed", 0x5A)
    Laid(data=b'\\x02\\x01', offset=1, strides=(-1,))
    """
    plain = np.ascontiguousarray(array).reshape(array.shape)  # keeps rank 0
    if not applies(array, layout) or layout == "read-only":
        return Laid(plain.tobytes(), 0, plain.strides)
    if layout == "reversed":
        return Laid(np.flip(plain).tobytes(), plain.nbytes - plain.itemsize, tuple(-step for step in plain.strides))
    if layout == "Fortran order":
        return Laid(plain.tobytes("F"), 0, np.asfortranarray(plain).strides)
    if layout == "zero strides":
        return Laid(plain[:1].tobytes(), 0, (0, *plain.strides[1:]))
    if layout == "unaligned":
        return Laid(bytes((pattern,)) + plain.tobytes(), 1, plain.strides)
    step, more = (2, 0) if layout == "every other element" else (1, PADDING)
    last = plain.shape[-1]
    whole: Any = np.full((*plain.shape[:-1], step * last + more, plain.itemsize), pattern, np.uint8)
    whole[..., : step * last : step, :] = plain.view(np.uint8).reshape(*plain.shape, plain.itemsize)
    return Laid(whole.tobytes(), 0, (*whole.strides[:-2], step * plain.itemsize))


def applies(array: Array, layout: Layout) -> bool:
    """Return whether an array in this layout differs from a writable contiguous one."""
    if layout == "contiguous" or array.dtype.hasobject or not array.size:
        return False
    if layout == "read-only":
        return True
    if layout == "unaligned":
        return array.itemsize > 1
    if layout == "zero strides":
        words = np.ascontiguousarray(array).reshape(array.shape)
        return array.ndim > 0 and len(array) > 1 and bool(words[1:].tobytes() == words[:-1].tobytes())
    return array.ndim > (layout in ("Fortran order", "padded rows"))


def text(name: str, layout: Layout) -> str:
    """Return a line of a script that gives the named array this layout."""
    return {
        "read-only": f"{name}.flags.writeable = False",
        "every other element": f"{name} = np.repeat({name}, 2, axis=-1)[..., ::2]",
        "reversed": f"{name} = np.flip(np.flip({name}).copy())",
        "Fortran order": f"{name} = np.asfortranarray({name})",
        "padded rows": f"{name} = np.concatenate([{name}] * {1 + PADDING}, axis=-1)[..., :{name}.shape[-1]]",
        "zero strides": f"{name} = np.broadcast_to({name}[:1], {name}.shape)",
        "unaligned": f"{name} = np.frombuffer(bytearray(b' ' + {name}.tobytes()), {name}.dtype, {name}.size, 1)"
        f".reshape({name}.shape)",
    }[layout]
