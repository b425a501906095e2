"""Claims about the AVX-512 kernel for short segments.

Three programs compile the source of the kernel with vectors whose lanes are symbolic terms, and with models of the
intrinsics (terms.h). segments.cpp verifies which elements each output is the maximum of, for small lists of ids and any
keys. lanes.cpp proves with Z3 that the key in a lane is correct for all values. models.cpp compares each model with the
processor's own intrinsic, which requires AVX-512, and with the emulated intrinsic.
"""

from __future__ import annotations

from functools import partial

from claims import ISA_FLAGS, Check, Program, proved

ASSUMES = "avx512.models.*; order.keys; the maximum of lanes does not depend on their order or on repetition"
SEGMENTS = Program(
    "avx512/segments.cpp",
    "in the shipped AVX-512 kernel for short segments, each output is the maximum of the keys of its segment, for any "
    "keys; the kernel writes no other row, and resumes correctly after each stop",
    "each type, with the ordinary constants: partial vectors, and whole vectors followed by part of the next; at the "
    "start of a segment and inside one; empty segments filled in advance or not; all ids that increase by up to 2 in "
    "up to 5 rows, all positions of segment ends in 8 rows, gaps of up to 90 at two positions, ids out of order and "
    "out of range. For int32 and float64, with ids of both widths, also all ids that increase by up to 2 in 7 rows; in "
    "a whole vector, for int32 all positions of segment ends, for float64 all ids that increase by up to 2. The key "
    "carried in and the fill value have one value each. Not covered: ids that change during the call",
    ASSUMES,
)
LANES = (
    "in the AVX-512 kernel for short segments, for all values of each type, each lane contains the key of its value, "
    "and each stored value is the value of its key"
)
MODELS = Program(
    "avx512/models.cpp",
    "each model of an AVX-512 intrinsic gives the same lanes as the intrinsic",
    "300 rounds of random vectors, often with small, equal, lowest or highest lanes; keys of numbers, compared with "
    "the terms that Z3 receives: all values of 8 and 16 bits, and random values of other widths",
    method="test",
    sanitized=False,
)
CHECKS = (
    SEGMENTS.check("avx512.segments", (), "baseline", of_isa=False),
    MODELS.check("avx512.models.processor", ISA_FLAGS["x86-64-v4"], "x86-64-v4"),
    MODELS.check("avx512.models.emulated", ("-mavx2", "-Wno-psabi"), "x86-64-v3", of_isa=False),
    Check("avx512.lanes", partial(proved, "avx512/lanes.cpp", "avx512.lanes", LANES, ASSUMES)),
)
