"""Claims about short segments by AVX-512: the kernel's own source, on vectors whose lanes are terms.

Three programs share the models of the intrinsics (terms.h). segments.cpp verifies which lanes' maximum is stored where,
for small ids and any keys. lanes.cpp proves the key of a lane for every value, by Z3. models.cpp compares each model
with the processor, which requires AVX-512, and with emulated intrinsics.
"""

from __future__ import annotations

from functools import partial

from claims import ISA_FLAGS, Check, Program, proved

ASSUMES = "avx512.models.*; order, of keys; a maximum of lanes may be taken in any order, and more than once"
SEGMENTS = Program(
    "avx512/segments.cpp",
    "short segments by AVX-512: each output is the maximum of its segment's keys, whatever these are, by the header "
    "that ships; no other row is written, and the walk goes on where it ended",
    "of each type, with the ordinary constants: parts of a vector and whole ones with some of the next, from no "
    "segment and from one that goes on, empty ones filled before or not; all ids that rise by up to 2 in up to 5 "
    "rows, all places where segments end in 8 rows, gaps of up to 90 at two places, ids out of order and outside. Of "
    "int32 and float64, with ids of either width, also all ids that rise by up to 2 in 7 rows and all places where "
    "segments end in a whole vector of int32; in one of float64 all ids that rise by up to 2. The key that is "
    "carried in, and the fill value, are one value each. Not: ids that change meanwhile",
    ASSUMES,
)
LANES = "each type: its lane in AVX-512's short segments is its key, and is stored as its key's value, for every value"
MODELS = Program(
    "avx512/models.cpp",
    "each model of an intrinsic of AVX-512 gives, lane by lane, what the intrinsic gives",
    "300 rounds of drawn vectors, often of small or equal lanes and of lowest and highest ones; keys of numbers and "
    "terms in Z3's words: all values of 8 and 16 bits, others drawn",
    method="test",
    sanitized=False,
)
CHECKS = (
    SEGMENTS.check("avx512.segments", (), "baseline", of_isa=False),
    MODELS.check("avx512.models.processor", ISA_FLAGS["x86-64-v4"], "x86-64-v4"),
    MODELS.check("avx512.models.emulated", ("-mavx2", "-Wno-psabi"), "x86-64-v3", of_isa=False),
    Check("avx512.lanes", partial(proved, "avx512/lanes.cpp", "avx512.lanes", LANES, ASSUMES)),
)
