"""Claims about copies, transposes and argmax: copies.cpp, on the instruction sets of this machine."""

from __future__ import annotations

from claims import ISA_FLAGS, Program

COPIES = Program(
    "copies/copies.cpp",
    "copies between any layout and blocks, and transposes, put each element at its place, its bytes in order or "
    "swapped, and touch nothing beside it; each index is that of the first element that holds its result",
    "items of 1, 2, 4 and 8 bytes; copies of up to 3 vectors by ten strides, and rows of up to 20 elements; "
    "transposes of up to 3 blocks and 2 rows or columns either way; streams of up to 3 lines and 5 bytes, from each "
    "place in a line; indices: every set of elements that hold their results in up to 12, sets of up to two of them "
    "in more, every ids of up to 4 rows of 2 segments",
    "a kernel that compiles for elements that can be compared with a result alone asks nothing else of them",
)
# The miniature cuts copies into chunks too small for a vector, and searches into blocks that small rows cross.
CHECKS = (
    *(COPIES.check(f"copies.{isa}", flags, isa) for isa, flags in ISA_FLAGS.items()),
    COPIES.check("copies.miniature", ("-DMAXOPS_MINIATURE",), "baseline"),
)
