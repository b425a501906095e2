"""Claims about short segments by AVX-512: the kernel's own source, on vectors whose lanes are terms.

Three programs share the models of the intrinsics (terms.h). segments.cpp verifies which lanes' maximum is stored where,
for small ids and any keys. lanes.cpp proves the key of a lane for every value, by Z3. models.cpp compares each model
with the processor, which requires AVX-512, and with emulated intrinsics.
"""

from __future__ import annotations

from functools import partial

from claims import ISA_FLAGS, Check, Program, proved

ASSUMES = "avx512.models.*; order.keys; the maximum of lanes does not depend on their order or repetition"
SEGMENTS = Program(
    "avx512/segments.cpp",
    "short segments with AVX-512, compiled from the shipped header: each output is the maximum of the keys of its "
    "segment, for any keys; the kernel writes no other row, and resumes where it stopped",
    "each type, with the ordinary constants: partial vectors, and whole vectors followed by part of the next; at the "
    "start of a segment and inside one; empty segments filled in advance or not; all ids that increase by up to 2 in "
    "up to 5 rows, all positions of segment ends in 8 rows, gaps of up to 90 at two positions, ids out of order and "
    "out of range. For int32 and float64, with ids of both widths, also all ids that increase by up to 2 in 7 rows; in "
    "a whole vector, for int32 all positions of segment ends, for float64 all ids that increase by up to 2. The key "
    "carried in and the fill value have one value each. Not covered: ids that change during the call",
    ASSUMES,
)
LANES = (
    "for every value of each type, the lane in AVX-512's short segments is the key, and the stored value is its value"
)
MODELS = Program(
    "avx512/models.cpp",
    "each model of an AVX-512 intrinsic gives the same lanes as the intrinsic",
    "300 rounds of random vectors, often with small, equal, lowest or highest lanes; keys of numbers, compared with "
    "the terms for Z3: all values of 8 and 16 bits, random values of other widths",
    method="test",
    sanitized=False,
)
CHECKS = (
    SEGMENTS.check("avx512.segments", (), "baseline", of_isa=False),
    MODELS.check("avx512.models.processor", ISA_FLAGS["x86-64-v4"], "x86-64-v4"),
    MODELS.check("avx512.models.emulated", ("-mavx2", "-Wno-psabi"), "x86-64-v3", of_isa=False),
    Check("avx512.lanes", partial(proved, "avx512/lanes.cpp", "avx512.lanes", LANES, ASSUMES)),
)
