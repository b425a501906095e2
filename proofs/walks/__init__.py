"""Claims about the elements that each output of a kernel depends on: walks.cpp, on this machine's instruction sets.

A kernel moves lanes and takes their maximum. With lanes that are sets of colours, for which no other operation
compiles, each output lists the elements of its maximum. `order` proves that a maximum does not depend on order or
repetition, so this determines the result for every value.
"""

from __future__ import annotations

from claims import ISA_FLAGS, Program

WALKS = Program(
    "walks/walks.cpp",
    "the templates of the kernels of Max, ReduceMax and SegmentMax (but for its indices), instantiated with sets of "
    "colours in place of the shipped element types: each output is the union of the elements that it is defined by, "
    "and of the line before and the line behind it nothing is written",
    "Max: 1, 2, 3, 4 and 8 inputs of up to 3 vectors, and of where the miniature peels, at six places in a line, in "
    "place too; ReduceMax: up to 20 vectors and 19 rows; SegmentMax: all sorted ids up to 6 rows of 4 segments, runs "
    "around the lengths that switch a path, in one or two blocks; in any order: all ids up to 4 rows. Not: boundaries "
    "of ordinary constants past those; an early end at the highest value, which order shows",
    "a template gives the shipped types the same walk as the stand-ins, since it compiles for lanes without "
    "arithmetic; keys in wider lanes, of which order.instructions speaks, and avx512 of those of AVX-512's short "
    "segments",
)
MINIATURE = "-DMAXOPS_MINIATURE"
# The miniature crosses every boundary on small inputs; releases have the ordinary constants. The longest checks first.
CHECKS = (
    WALKS.check("walks.x86-64-v4", (MINIATURE, *ISA_FLAGS["x86-64-v4"]), "x86-64-v4"),
    WALKS.check("walks.x86-64-v3", (MINIATURE, *ISA_FLAGS["x86-64-v3"]), "x86-64-v3"),
    WALKS.check("walks.x86-64-v3-ordinary-constants", ISA_FLAGS["x86-64-v3"], "x86-64-v3"),
    WALKS.check("walks.baseline", (MINIATURE,), "baseline"),
)
