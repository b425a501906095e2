"""Deviations of libraries from the standards on special values: NaN, the sign of zero, subnormals, -Inf, wide integers.

The timed data holds none of them, so that a library is timed where it is correct; here is where it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from maxops.bench.candidate import Candidate, Work
from maxops.bench.case import Case, Operand, OperatorName, Segments
from maxops.bench.inputs import Inputs
from maxops.bench.oracle import expected_result
from maxops.bench.verdict import judge
from maxops.dtypes import DType
from maxops.plan import Array

SIZE = 67  # whole vectors, and a tail
SEGMENTS = 9

Draw = Callable[[DType, np.random.Generator], Array]


def _words(dtype: DType, bits: object) -> Array:
    return np.asarray(bits).astype(dtype.word).view(dtype.numpy)


def _signs(dtype: DType, random: np.random.Generator) -> Array:
    return random.integers(0, 2, SIZE).astype(np.uint64) << np.uint64(dtype.bits - 1)


def _below(limit: int, random: np.random.Generator) -> Array:
    return random.integers(1, limit, SIZE).astype(np.uint64)


def _some(draw: Draw) -> Draw:
    """Ordinary values, a tenth of them replaced."""

    def some(dtype: DType, random: np.random.Generator) -> Array:
        replaced, values = random.random(SIZE) < 0.1, draw(dtype, random)
        return np.where(replaced, values, (1 + random.random(SIZE)).astype(dtype.numpy))

    return some


def _any_integer(dtype: DType, random: np.random.Generator) -> Array:
    info = np.iinfo(dtype.numpy)
    values = random.integers(info.min, info.max, SIZE, dtype.numpy, endpoint=True)
    ends = np.array([info.min, info.max, info.max - 1, 1], dtype.numpy)
    return np.where(random.random(SIZE) < 0.2, random.choice(ends, SIZE), values)


def _close_integers(dtype: DType, random: np.random.Generator) -> Array:
    """Integers that a float of the same width would round together."""
    return (np.iinfo(dtype.numpy).max // 2 + random.integers(0, 5, SIZE)).astype(dtype.numpy)


FLOAT_CLASSES: dict[str, Draw] = {
    "NaN": _some(lambda dtype, _: _words(dtype, np.full(SIZE, dtype.nan_bits))),
    # quiet ones of either sign and any payload
    "NaN's bits": _some(
        lambda dtype, random: _words(dtype, _signs(dtype, random) | np.uint64(dtype.nan_bits) | _below(32, random))
    ),
    "sign of zero": lambda dtype, random: _words(dtype, _signs(dtype, random)),
    "subnormals": lambda dtype, random: _words(dtype, _signs(dtype, random) | _below(1 << dtype.mantissa_bits, random)),
    "-Inf alone": lambda dtype, _: _words(dtype, np.full(SIZE, dtype.lowest_bits)),
}
INTEGER_CLASSES: dict[str, Draw] = {"whole range": _any_integer, "close values": _close_integers}


def probe(operator: OperatorName, dtype: DType) -> Case:
    """A small case of the plainest shapes."""
    operand = Operand((SIZE,))
    if operator == "Max":
        return Case("Max", "2-inputs", dtype, SIZE, (operand, operand), (SIZE,))
    if operator == "ReduceMax":
        return Case("ReduceMax", "all", dtype, SIZE, (operand,), (), (0,))
    segments = Segments("mean-10", "int64", True, SEGMENTS)
    return Case("SegmentMax", "1d,mean-10,int64", dtype, SIZE, (operand,), (SEGMENTS,), segments=segments)


def of(candidates: Callable[[Work], list[Candidate]], operator: OperatorName, dtype: DType, threads: int) -> list[str]:
    """The classes of values on which a library runs and none of its candidates is right."""
    case = probe(operator, dtype)
    classes = FLOAT_CLASSES if dtype.kind == "float" else INTEGER_CLASSES if dtype.kind in ("int", "uint") else {}
    found = []
    for name, draw in classes.items():
        for seed in range(2):
            random = np.random.default_rng(seed)
            arrays = tuple(draw(dtype, random) for _ in case.operands)
            ids = np.sort(random.integers(0, SEGMENTS, SIZE)) if operator == "SegmentMax" else None
            inputs = Inputs(arrays, arrays, ids, None)
            work = Work(case, inputs, threads)
            (verdict, *_) = judge(partial(candidates, work), case, expected_result(case, inputs))
            if verdict.status == "wrong":
                found.append(name)
                break
    return found
