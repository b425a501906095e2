"""A program that changes the arrays of a call at the moment when the core releases the GIL, as another thread might.

In the core's table of imported functions (ELF relocations), it replaces PyEval_SaveThread with a function that keeps
the GIL and gives every array of the call another shape. NumPy then reuses the memory of the old shapes.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import maxops
from maxops import _native

mo: Any = maxops
native: Any = _native
Arrays = dict[str, Any]


def addresses_of(name: str, library: str) -> list[int]:
    """Return the addresses at which a loaded 64-bit library stores the address of an imported function."""
    image = Path(library).read_bytes()
    header, count = struct.unpack_from("<Q", image, 40)[0], struct.unpack_from("<H", image, 60)[0]
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, header + 64 * k) for k in range(count)]
    symbols = next(section for section in sections if section[1] == 11)  # SHT_DYNSYM
    text = sections[symbols[6]][4]
    lines = [line.split() for line in Path("/proc/self/maps").read_text().splitlines()]
    base = min(int(line[0].split("-")[0], 16) for line in lines if line[-1] == library)
    found = []
    for section in sections:
        if section[1] != 4:  # SHT_RELA
            continue
        for at in range(section[4], section[4] + section[5], 24):
            offset, info = struct.unpack_from("<QQ", image, at)
            begin = text + struct.unpack_from("<I", image, symbols[4] + 24 * (info >> 32))[0]
            if info >> 32 and image[begin : image.index(b"\0", begin)].decode() == name:
                found.append(base + offset)
    return found


def replace(name: str, function: Any) -> None:
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    places = addresses_of(name, native.__file__)
    assert places, f"the core imports no {name}"
    for place in places:
        assert protect(place // mmap.PAGESIZE * mmap.PAGESIZE, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE) == 0
        ctypes.c_void_p.from_address(place).value = ctypes.cast(function, ctypes.c_void_p).value


# Arguments for which a call checks shapes after a first step without the GIL: ids of one byte are widened first, and
# the output shape of a SegmentMax depends on the ids.
LATE = {"short", "sorted bytes", "out of segments"}
changed: Arrays = {}  # the arrays of the current call
kept: list[Any] = []
times = 0


def change() -> int:
    global times  # noqa: PLW0603
    times += 1
    if times == 1 and len(changed) > 1 and LATE & {*changed}:
        return 1
    for array in changed.values():
        rank = array.ndim
        array.shape = (*array.shape, 1) if rank < 3 else (array.size,)
        kept.extend(np.empty((3,) * rank, np.int8) for _ in range(4))
    return 1  # a thread state, which is not used


save = ctypes.PYFUNCTYPE(ctypes.c_void_p)(change)
restore = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(lambda _: None)


AXES = (-1, 2, 2, 2, 5, 5, 5, 5, 2)  # for many inputs, whose shapes and strides exceed one block of memory


def arrays_of(rows: int) -> Arrays:
    """Return new arrays of about 8 bytes per row."""
    random = np.random.default_rng(rows)
    table = random.permutation(4 * rows).astype(np.float32).reshape(2 * rows, 2)
    ids = np.arange(2 * rows) // 2
    return {
        "table": table,
        "other": random.permutation(4 * rows).astype(np.float32).reshape(2 * rows, 2),
        "spread": np.repeat(table, 2, axis=1)[:, ::2],
        "line": np.array([5.0, rows], np.float32),
        "column": random.permutation(2 * rows).astype(np.float32).reshape(-1, 1),
        "vector": np.ravel(table).copy(),
        "ids": ids,
        "mixed": np.random.default_rng(1).permutation(ids),
        "short": (ids % 100).astype(np.int8),
        "sorted bytes": np.sort(ids % 100).astype(np.int8),
        "unsigned": ids.astype(np.uint64),
        "gaps": np.repeat(ids, 2)[::2],
        "falling": ids[::-1].copy(),
        "offsets": np.arange(0, 2 * rows + 1, 2),
        "apart offsets": np.repeat(np.arange(0, 2 * rows + 1, 2), 2)[::2],
        "out": np.zeros((2 * rows, 2), np.float32),
        "out apart": np.zeros((2 * rows, 4), np.float32)[:, ::2],
        "out of segments": np.zeros((rows, 2), np.float32),
        "out of columns": np.zeros((1, 2), np.float32),
        "out of rows": np.zeros(2 * rows, np.float32),
        "out of many": np.zeros((2 * rows // 5000, *AXES[1:-1], 4), np.float32)[..., ::2],
        **{
            f"input {k}": random.permutation(4 * rows).astype(np.float32).reshape(AXES)
            for k in range(60 if rows < 10_000 else 9)
        },
    }


def strided_like(array: Any) -> Any:
    """Return a copy in new memory with the same kind of strides: contiguous, or every other element."""
    if array.flags.c_contiguous:
        return array.copy()
    return np.repeat(array, 2, axis=-1)[..., ::2]


FILL: dict[str, Any] = {"fill_mode": "ZERO"}
EVERYTHING: dict[str, Any] = {**FILL, "return_indices": True, "return_empty": True}
MANY = [f"input {k}" for k in range(60)]
CALLS: list[tuple[list[str], Callable[..., Any]]] = [
    (["table", "other"], mo.maximum),
    (["other", "line"], mo.maximum),
    (["line", "spread"], mo.maximum),
    (["column", "other", "spread"], mo.maximum),
    (["spread", "column"], mo.maximum),
    (MANY[:9], mo.maximum),
    (MANY, mo.maximum),
    ([*MANY, "line"], mo.maximum),
    (["table"], lambda x: mo.reduce_max(x, 0, initial=1)),
    (["spread"], lambda x: mo.reduce_max(x, 1, keepdims=False)),
    (["vector"], lambda x: mo.reduce_max(x, return_indices=True)),
    (["spread"], lambda x: mo.reduce_max(x, 0, return_indices=True)),
    (["table"], lambda x: mo.reduce_max(x, 1, return_indices=True)),
    (["table", "ids"], lambda x, ids: mo.segment_max(x, ids, **EVERYTHING)),
    (["spread", "gaps"], lambda x, ids: mo.segment_max(x, ids, **EVERYTHING)),
    (["table", "mixed"], lambda x, ids: mo.segment_max(x, ids, sorted=False, **EVERYTHING)),
    (["spread", "mixed"], lambda x, ids: mo.segment_max(x, ids, sorted=False, **FILL)),
    (["table", "sorted bytes"], lambda x, ids: mo.segment_max(x, ids, **EVERYTHING)),
    (["column", "short"], lambda x, ids: mo.segment_max(x, ids, sorted=False, **EVERYTHING)),
    (["table", "unsigned"], lambda x, ids: mo.segment_max(x, ids, initial=3.0)),
    (["table", "offsets"], lambda x, offsets: mo.segment_max(x, offsets=offsets, **EVERYTHING)),
    (["spread", "apart offsets"], lambda x, offsets: mo.segment_max(x, offsets=offsets, **EVERYTHING)),
    (["gaps"], lambda ids: native.check_indices(ids, False, True, True, None, 9) or ()),
    (["falling"], lambda ids: native.check_indices(ids, False, True, True, None, 9) or ()),
    (["apart offsets"], lambda ids: native.check_indices(ids, True, True, True, None, 9) or ()),
    (["short"], native.widened),
]
# Calls with the caller's output, which may contain the result even if the call then finds that its shape has changed.
INTO: list[tuple[list[str], Callable[..., Any]]] = [
    (["table", "other", "out"], lambda a, b, out: mo.maximum(a, b, out=out)),
    (["column", "other", "out apart"], lambda a, b, out: mo.maximum(a, b, out=out)),
    ([*MANY, "out of many"], lambda *given: mo.maximum(*given[:-1], out=given[-1])),
    (["spread", "out of columns"], lambda x, out: mo.reduce_max(x, 0, out=out)),
    (["spread", "out of rows"], lambda x, out: mo.reduce_max(x, 1, keepdims=False, out=out)),
    (["spread", "gaps", "out of segments"], lambda x, ids, out: mo.segment_max(x, ids, out=out, **FILL)),
]


def bits(result: Any) -> list[bytes]:
    return [np.asarray(each).tobytes() for each in (result if isinstance(result, tuple) else (result,))]


def main() -> int:
    global times  # noqa: PLW0603
    done = 0
    for rows in (5_000, 200_000):
        arrays = arrays_of(rows)

        def copies(names: list[str], arrays: Arrays = arrays) -> Arrays:
            return {name: strided_like(arrays[name]) for name in names}

        for names, call in CALLS + INTO:
            if len(names) > 9 and rows > 5_000:
                continue
            is_into = (names, call) in INTO
            before = copies(names)
            result = call(*before.values())
            expected = bits(before[names[-1]] if is_into else result)
            changed.clear()
            changed.update(copies(names))
            times = 0
            replace("PyEval_SaveThread", save)
            replace("PyEval_RestoreThread", restore)
            result = call(*changed.values())
            assert times > 0, f"{names} keep the GIL"
            changed_out = list(changed.values())[-1]
            found = bits(changed_out if is_into else result)
            assert found == expected, f"{names}, {rows} rows: the call reads a shape that another thread changed"
            changed.clear()
            kept.clear()
            done += 1
    print(done)
    return 0


if __name__ == "__main__":
    sys.exit(main())
