"""Times random calls of maxops against the same calls in NumPy and torch: `maxops bench --random`.

The cases of the grid are chosen by hand. Random calls cover other layouts, shapes and axes.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from random import Random
from time import perf_counter
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

import maxops as mo
from maxops import shapes
from maxops.bench.grid import OPERATORS, TYPES, Case, Operand, OperatorName
from maxops.bench.inputs import FILL_MODE, Work, empty, same_bits, values
from maxops.bench.libraries import LIBRARIES, Names, Text
from maxops.bench.report import TIME, Table, by_family, scaled, spread, times
from maxops.bench.timing import Candidate, Json, Stopwatch, one_line, paired
from maxops.dtypes import BFLOAT16, BOOL
from maxops.machine import machine
from maxops.plan import Array
from maxops.shapes import Shape

FORMAT = 1
BESIDE = ("numpy", "torch")
MAX_RANK, MAX_SIZE = 5, 1e6
SECONDS, AGAIN = 0.01, 10  # seconds per comparison, and the factor for the second timing if the speedup is below 1.0
LEVELS = (1.0, 0.8, 0.5)
LOWEST = 20

# By kind: the length of the base along an axis as a multiple of the view's length, and the step. 0 means broadcasting.
KINDS = {
    "whole": (1, 1), "half": (2, 1), "every-second": (2, 2), "every-third": (3, 3), "reversed": (1, -1),
    "broadcast": (0, 1), "unaligned": (1, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Layout:
    """An array's shape, the order of its axes in memory (outermost first), and how it views its base along an axis.

    >>> print(Layout((3, 4), (1, 0), "reversed", 1))
    (3, 4) F reversed axis 1
    """

    shape: Shape
    order: tuple[int, ...]
    kind: str = "whole"
    axis: int = 0

    def __str__(self) -> str:
        """Return the layout in a few words."""
        axes = tuple(range(len(self.shape)))
        order = {axes[::-1]: "F", axes: "C"}.get(self.order, f"order {self.order}")
        along = "" if self.kind in ("whole", "unaligned") else f" axis {self.axis}"
        return f"{self.shape} {order}" + (f" {self.kind}{along}" if self.kind != "whole" else "")

    def build(self, case: Case, random: np.random.Generator, number: int) -> Array:
        """Build the array, with ordinary values."""
        lengths, (factor, step) = list(self.shape), KINDS[self.kind]
        if lengths:
            lengths[self.axis] = lengths[self.axis] * factor or 1
        base = values(case, Operand(tuple(lengths[axis] for axis in self.order)), random, number)
        if case.dtype is BOOL:  # the share of True varies, because a reduction stops at the first True
            base |= random.random(base.shape) < MAX_SIZE ** -random.random()
        if self.kind == "unaligned":
            moved = empty(base.nbytes + 1, np.uint8, number)[1:].view(base.dtype).reshape(base.shape)
            moved[...] = base
            base = moved
        array = base.transpose(np.argsort(np.array(self.order, int)))
        if not lengths:
            return array
        array = array[(slice(None),) * self.axis + (slice(None, None, step),)]
        strides = [0 if axis == self.axis and not factor else each for axis, each in enumerate(array.strides)]
        return as_strided(array, self.shape, strides)


@dataclass(frozen=True)
class Call:
    """The description of a random call.

    `keepdims` belongs to ReduceMax. `axis` and `by` (sorted ids, ids or offsets) belong to SegmentMax.
    """

    seed: int
    number: int
    case: Case
    layouts: tuple[Layout, ...]
    out: Layout | None
    keepdims: bool = False
    axis: int = 0
    by: str = ""
    has_empty: bool = False

    def __str__(self) -> str:
        """Return the call in one line."""
        case = self.case
        parts = [f"{case.operator} {case.dtype} {' with '.join(map(str, self.layouts))}"]
        if case.operator == "ReduceMax":
            parts.append(f"axes {case.axes}" + " keepdims" * self.keepdims)
        if self.by:
            segments = f"{case.shape[self.axis]} segments" + " that may be empty" * self.has_empty
            parts.append(f"axis {self.axis}, {segments} by {case.id_type} {self.by}")
        return ", ".join(parts + ([f"out {self.out}"] if self.out else []))

    def build(self) -> Work:
        """Build the arrays, which are the same in every run."""
        random = np.random.default_rng([self.seed, self.number])
        arrays = tuple(each.build(self.case, random, number) for number, each in enumerate(self.layouts))
        ids = self._ids(random) if self.by else None
        out = self.out.build(self.case, random, len(arrays) + 1) if self.out else None
        return Work(self.case, arrays, arrays, ids, out)

    def _ids(self, random: np.random.Generator) -> Array:
        rows, segments = self.layouts[0].shape[self.axis], self.case.shape[self.axis]
        ids = random.integers(0, segments, rows)
        if not self.has_empty:
            ids[:segments] = np.arange(segments)
        ids = random.permutation(ids) if self.by == "ids" else np.sort(ids)
        return ids.astype(self.case.id_type)


def draw(seed: int, number: int) -> Call:
    """Draw the call with this number. The call is the same on every machine, and does not depend on other draws.

    >>> print(draw(1, 2))
    Max int32 (23, 30, 2, 2) C half axis 2 with (23, 30, 2, 2) order (2, 1, 0, 3)
    """
    random = Random(f"{seed}/{number}")
    operator, dtype, shape = random.choice(OPERATORS), random.choice(TYPES), _shape(random)
    more: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if operator == "Max":
        family = random.choice(("2 inputs", "2 inputs", "3 inputs", "broadcast", "outer", "scalar"))
        layouts = _inputs(random, family, shape)
        result = shapes.broadcast([each.shape for each in layouts])
        more["spelling"] = "python-scalar" if family == "scalar" else "plain"
    elif operator == "ReduceMax":
        layouts = (_layout(random, shape),)
        axes = tuple(sorted(random.sample(range(len(shape)), random.randint(1, len(shape)))))
        more["axes"], options["keepdims"] = axes, random.random() < 0.5
        kept = [(1,) if axis in axes else (length,) for axis, length in enumerate(shape)]
        result = sum((each for axis, each in enumerate(kept) if options["keepdims"] or axis not in axes), ())
        family = "all axes" if len(axes) == len(shape) else "last axis" if len(shape) - 1 in axes else "other axes"
    else:
        layouts = (_layout(random, shape),)
        axis, by = random.randrange(len(shape)), random.choice(("sorted ids", "ids", "offsets"))
        segments = round(shape[axis] ** random.random())
        result, family = (*shape[:axis], segments, *shape[axis + 1 :]), by
        options |= {"axis": axis, "by": by, "has_empty": random.random() < 0.5}
        more["id_type"] = random.choice(("int32", "int64"))
    out = _layout(random, result, KINDS.keys() - {"broadcast"}) if random.random() < 0.3 else None
    operands = tuple(Operand(each.shape) for each in layouts)
    size = max(prod(each.shape) for each in layouts)
    case = Case(operator, family, dtype, size, operands, result, out=out is not None, **more)
    return Call(seed, number, case, layouts, out, **options)


def _shape(random: Random) -> Shape:
    """Draw a shape of 1 to about MAX_SIZE elements. Sizes are log-uniform, and axes of length 1 are frequent."""
    size = MAX_SIZE ** random.random()
    weights = [random.random() * (random.random() < 0.85) for _ in range(random.randint(1, MAX_RANK))]
    return tuple(max(1, round(size ** (each / (sum(weights) or 1)))) for each in weights)


def _layout(random: Random, shape: Shape, kinds: Collection[str] = KINDS.keys()) -> Layout:
    axes = tuple(range(len(shape)))
    order = random.choice((axes, axes, axes[::-1], tuple(random.sample(axes, len(axes)))))
    kind = random.choice(sorted(kinds)) if random.random() < 0.5 else "whole"
    return Layout(shape, order, kind, random.randrange(len(shape))) if shape else Layout((), ())


def _inputs(random: Random, family: str, shape: Shape) -> tuple[Layout, ...]:
    """Draw the layouts of Max's inputs. The first has `shape`, except in "outer", where both have axes of size 1."""
    if family == "scalar":
        return _layout(random, shape), Layout((), ())
    if family in ("broadcast", "outer"):
        lacks = [random.random() < 0.5 for _ in shape]
        second = tuple(1 if lack else length for lack, length in zip(lacks, shape, strict=True))
        if family == "broadcast":
            return _layout(random, shape), _layout(random, second[random.randrange(len(shape)) :])
        first = tuple(length if lack else 1 for lack, length in zip(lacks, shape, strict=True))
        return _layout(random, first), _layout(random, second)
    layouts = [_layout(random, shape)]
    while len(layouts) < int(family[0]):
        layouts.append(layouts[0] if random.random() < 0.5 else _layout(random, shape))
    return tuple(layouts)


# ------------------------------------------------------------------------------------------------- expressions


def ours(call: Call, name: str) -> Text:
    """Return the call of maxops on a library's arrays."""
    case, out = call.case, ", out=out" * (call.out is not None)
    if case.operator == "Max":
        return Text("mo.maximum({inputs}{out})", _scalar(call) if name == "numpy" else "")
    if case.operator == "ReduceMax":
        return Text(f"mo.reduce_max(data, {case.axes}, {call.keepdims}{out})")
    options = f'fill_mode="{FILL_MODE}", axis={call.axis}' + ", sorted=False" * (call.by == "ids") + out
    if call.by != "offsets":
        return Text(f"mo.segment_max(data, ids, {case.shape[call.axis]}, {options})")
    offsets = f"np.searchsorted(ids, np.arange({case.shape[call.axis]} + 1)).astype(ids.dtype)"
    own = offsets if name == "numpy" else f"torch.from_numpy({offsets})"
    return Text(f"mo.segment_max(data, offsets=offsets, {options})", f"offsets = {own}")


def theirs(call: Call, name: str) -> Text:
    """Return the fastest expression for the same result in a library."""
    case, out = call.case, ", out=out" * (call.out is not None)
    if case.operator == "Max":
        maximum = "chain({0}.maximum, {{inputs}}{{out}})" if len(call.layouts) > 2 else "{0}.maximum({{inputs}}{{out}})"
        return Text(maximum.format("np" if name == "numpy" else name), _scalar(call) if name == "numpy" else "")
    if case.operator == "ReduceMax" and name == "numpy":  # np.max and ndarray.max call this method
        return Text(f"np.maximum.reduce(data, axis={case.axes}, keepdims={call.keepdims}{out})")
    if case.operator == "ReduceMax":
        return Text(f"torch.amax(data, dim={case.axes}, keepdim={call.keepdims}{out})")
    axis, segments = call.axis, case.shape[call.axis]
    if name == "torch":
        filled = "out.fill_(least)" if out else f"torch.full({case.shape}, least, dtype=data.dtype)"
        index = [-1 if each == axis else 1 for each in range(len(case.shape))]
        setup = f"index = torch.from_numpy(ids).long().reshape({index}).expand(data.shape); least = lowest.item()"
        return Text(f'{filled}.scatter_reduce_({axis}, index, data, "amax")', setup)
    if call.by == "sorted ids":
        return Text(f"by_starts(data, ids, {segments}, lowest, {axis}{out})")
    if call.by == "offsets":
        setup = "starts = np.flatnonzero(np.diff(ids, prepend=-1)); filled = ids[starts]"
        return Text(f"between_starts(data, starts, filled, {segments}, lowest, {axis}{out})", setup)
    setup = f"result = np.full({case.shape}, lowest, data.dtype); at = (slice(None),) * {axis} + (ids,)"
    return Text("np.maximum.at(result, at, data)", setup, "result")


def _scalar(call: Call) -> str:
    return "x1 = x1.item()" if call.case.spelling == "python-scalar" and call.case.dtype is not BFLOAT16 else ""


# ------------------------------------------------------------------------------------------------------------ a run


def measure(call: Call, name: str, started: dict[str, Names], seconds: float) -> Json:
    """Compare the bits with NumPy's result, and time the call in pairs.

    If the speedup is below 1.0, repeat the measurement for longer, on new arrays.
    """
    first = _measure(call, name, started, seconds)
    if first["status"] != "timed" or first["ratio"]["median"] >= 1:
        return first
    return _measure(call, name, started, seconds * AGAIN) | {"first": first["ratio"]["median"]}


def _measure(call: Call, name: str, started: dict[str, Names], seconds: float) -> Json:
    work, case = call.build(), call.case

    def candidate(text: Text, library: str) -> Candidate:
        return LIBRARIES[library].candidate(text, started[library] | {"mo": mo}, work)

    expected = candidate(theirs(call, "numpy"), "numpy").result(case)
    try:
        other = candidate(theirs(call, name), name)
        if not same_bits(other.result(case), expected):
            return {"status": "unsupported", "reason": "the result differs from NumPy's"}
    except Exception as error:  # noqa: BLE001  (any error means that the library does not support the call)
        return {"status": "unsupported", "reason": one_line(error)}
    try:
        own = candidate(ours(call, name), name)
        if not same_bits(own.result(case), expected):
            return {"status": "wrong", "reason": "different bits"}
        figures = paired(Stopwatch(own), Stopwatch(other), seconds)
        if not same_bits(own.result(case), expected):
            return {"status": "wrong", "reason": "different bits after timing"}
    except Exception as error:  # noqa: BLE001  (an error of maxops is a result)
        return {"status": "wrong", "reason": one_line(error)}
    return {"status": "timed", "code": own.code, "library_code": other.code} | figures


def run(
    names: Sequence[str],
    threads: int,
    *,
    seed: int,
    run_seconds: float,
    seconds: float = SECONDS,
    operators: Collection[OperatorName] = OPERATORS,
    types: Collection[str] = tuple(map(str, TYPES)),
    only_call: int | None = None,
    command: str = "maxops bench --random",
    done: Callable[[str, Json | None], None] = lambda text, measured: None,
) -> Json:
    """Time random calls for `run_seconds`, and at least one call. Ctrl-C ends the run, and keeps the finished calls."""
    result: Json = {"format": FORMAT, "command": command, "seed": seed, "machine": machine(threads), "cases": []}
    started: dict[str, Names] = {}
    for name in ("numpy", *names):
        try:
            started[name] = LIBRARIES[name].start(threads)
        except ModuleNotFoundError:
            continue
    began = perf_counter()
    try:
        for number in count() if only_call is None else (only_call,):
            call = draw(seed, number)
            case = call.case
            if only_call is None and (case.operator not in operators or str(case.dtype) not in types):
                continue
            for name in (each for each in names if each in started):
                done(f"{number}: {call}", None)
                row: Json = {"id": str(number), "operator": case.operator, "family": case.family, "call": str(call)}
                row |= {"type": str(case.dtype), "size": case.size, "library": name}
                result["cases"].append(row | measure(call, name, started, seconds))
                done(str(number), row)
            if perf_counter() - began > run_seconds:
                break
    except KeyboardInterrupt:
        result["interrupted"] = f"after {len(result['cases'])} calls"
    result["seconds"] = perf_counter() - began
    return result


def tables(result: Json) -> list[Table]:
    """Return tables of speedups by operator and family, of the lowest speedups, and of unsupported calls."""
    found = []
    note = (
        "The speedup is the library's time divided by the time of maxops. Calls with a speedup below 1.0 were timed "
        "again, for longer and on new arrays."
    )
    repeat = f"To repeat a call: maxops bench --random 1 --seed {result['seed']} --only-call NUMBER"
    columns = ("number", "call", "maxops", "speedup (quartiles)")
    for name in BESIDE:
        timed = [case for case in result["cases"] if (case["status"], case["library"]) == ("timed", name)]
        lowest = sorted(timed, key=lambda case: float(case["ratio"]["median"]))[:LOWEST]
        rows = [(each["id"], each["call"], scaled(each["ours"], TIME), spread(each["ratio"])) for each in lowest]
        found += [
            by_family(f"Speedup over {name}", note, timed, LEVELS),
            Table(f"Lowest speedups over {name}", repeat, columns, rows),
        ]
    unsupported = (case for case in result["cases"] if case["status"] == "unsupported")
    reasons = Counter((case["library"], case["operator"], case["reason"]) for case in unsupported)
    counts = [(*key, str(number)) for key, number in reasons.most_common()]
    found.append(Table("Not timed", "", ("library", "operator", "reason", "calls"), counts))
    return [table for table in found if table.rows]


def headline(result: Json) -> str:
    """Summarize a run in one line."""
    ratios = [float(case["ratio"]["median"]) for case in result["cases"] if case["status"] == "timed"]
    below = ", ".join(f"{sum(ratio < level for ratio in ratios)} below {level}" for level in LEVELS)
    return f"{len(ratios)} timed; median speedup {times(statistics.median(ratios) if ratios else None)}; {below}"


def failures(result: Json) -> list[str]:
    """Return the calls of maxops that raise an error, or whose results are not bit-identical to NumPy's."""
    wrong = (case for case in result["cases"] if case["status"] == "wrong")
    return [f"{case['id']} ({case['library']}): {case['call']}: {case['reason']}" for case in wrong]
