"""Claims about the elements that each output of a kernel depends on.

A kernel only moves lanes and computes their maximum. walks.cpp runs the kernels on lanes that are sets of colours, with
one colour for each input element, and with the union as the maximum. No other operation on these lanes compiles.
Therefore, each output lists the elements that it is the maximum of. `order` proves that a maximum does not depend on
order or repetition, so this list determines the result for all values.
"""

from __future__ import annotations

from claims import ISA_FLAGS, Program

WALKS = Program(
    "walks/walks.cpp",
    "with sets of colours instead of the shipped element types, each output of the kernel templates of Max, ReduceMax "
    "and SegmentMax (except those for indices) is the union of the elements that define it, and the cache lines before "
    "and after the outputs are unchanged",
    "Max: 1, 2, 3, 4 and 8 inputs of up to 3 vectors, and of sizes around the alignment peel of the miniature build, "
    "at six offsets in a cache line, also in place; ReduceMax: up to 20 vectors and 19 rows; SegmentMax: all sorted "
    "ids of up to 6 rows in 4 segments, and runs around the lengths that select a code path, in one or two blocks; for "
    "unsorted ids, all ids of up to 4 rows. Not covered: larger sizes around the ordinary constants; the early end at "
    "the highest value, which order covers",
    "a template reads and writes the same positions for the shipped types as for colours, because it compiles for "
    "lanes without arithmetic; order.instructions, for keys in wider lanes; avx512, for keys in AVX-512's short "
    "segments",
)
MINIATURE = "-DMAXOPS_MINIATURE"
# In the miniature build, small inputs cross every boundary between code paths. Releases have the ordinary constants.
# The longest checks are first.
CHECKS = (
    WALKS.check("walks.x86-64-v4", (MINIATURE, *ISA_FLAGS["x86-64-v4"]), "x86-64-v4"),
    WALKS.check("walks.x86-64-v3", (MINIATURE, *ISA_FLAGS["x86-64-v3"]), "x86-64-v3"),
    WALKS.check("walks.x86-64-v3-ordinary-constants", ISA_FLAGS["x86-64-v3"], "x86-64-v3"),
    WALKS.check("walks.baseline", (MINIATURE, *ISA_FLAGS["baseline"]), "baseline"),
)
