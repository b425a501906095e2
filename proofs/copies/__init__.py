"""Claims about copies, transposes and argmax, which copies.cpp checks on each instruction set of this machine."""

from __future__ import annotations

from claims import ISA_FLAGS, Program

COPIES = Program(
    "copies/copies.cpp",
    "copies between any layout and blocks, and transposes, write each element to the correct position, in native or "
    "swapped byte order, and write nothing else; each index is that of the first element that equals the result",
    "items of 1, 2, 4 and 8 bytes; copies of up to 3 vectors with ten strides, and rows of up to 20 elements; "
    "transposes of up to 3 blocks and 2 more rows or columns in each direction; streaming stores of up to 3 cache "
    "lines and 5 bytes, at each offset in a line; indices: every set of elements that equal the result among up to 12 "
    "elements, sets of up to two among more elements, all ids of up to 4 rows in 2 segments",
    "a kernel that compiles for elements that support only comparison with a result uses no other property of them",
)
# The miniature build splits copies into chunks smaller than a vector, and searches into blocks shorter than small rows.
CHECKS = (
    *(COPIES.check(f"copies.{isa}", flags, isa) for isa, flags in ISA_FLAGS.items()),
    COPIES.check("copies.miniature", ("-DMAXOPS_MINIATURE", *ISA_FLAGS["baseline"]), "baseline"),
)
