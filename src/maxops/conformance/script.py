"""Writes a script of about ten lines that shows a finding with only the runtime, without maxops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import TextWrapper

import numpy as np

from maxops.conformance import layouts
from maxops.conformance.case import Call, Case, Feed, Layout
from maxops.conformance.input_buffers import GUARD, OUTSIDE
from maxops.conformance.literal import literal
from maxops.conformance.result import Verdict, elements
from maxops.conformance.runtimes.runtime import Runtime
from maxops.conformance.sanity_calls import sanity_call
from maxops.conformance.shrink import Counterexample
from maxops.plan import Array
from maxops.shown import printable

DIFFERING: tuple[Verdict, ...] = ("uninitialized memory", "not the same twice")  # results that differ between runs
# Fill patterns of glibc for two runs: a result that differs between the runs depends on uninitialized memory.
PERTURBED = tuple({"MALLOC_PERTURB_": byte, "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"} for byte in ("85", "170"))
MAX_PRINTED_WHOLE = 4096  # the printed elements of a result with a wrong type or shape
MAX_PRINTED = 4  # the printed elements of any other result, from the first wrong one
LINE_LENGTH = 120  # the maximum length of a line with an array
INPUT, OUTSIDE_INPUT = "input", "outside input"  # labels of what a runtime changed
REPEATS = 5  # runs, for faults that depend on memory or state left by an earlier run


@dataclass(frozen=True)
class Script:
    """A script, the counterexample that it shows, and its environments. The script runs once in each environment."""

    text: str
    counterexample: Counterexample
    environments: tuple[Mapping[str, str], ...] = ({},)


def scripts(runtime: Runtime, version: str, case: Case, found: Counterexample) -> list[Script]:
    """Return scripts that may show a finding, the simplest first. Some crashes need several runs or poisoned memory."""
    judgement, call, feed = found.judgement, found.trial.call, found.trial.feeds[0]
    lines = runtime.script(call, feed)
    if judgement.verdict in DIFFERING:
        return [_script(runtime, version, case, found, lines, PERTURBED)]
    if judgement.verdict == "corrupted state":
        right = sanity_call(call.row)
        lines = [
            *_indented("try:", lines),
            *_indented("except Exception as error:", ['print("error", error)']),
            "# a sanity call that was correct before",
            *_arrays(right.call, right.feeds[0]),
            *runtime.script(right.call, right.feeds[0]),
        ]
    if found.outcome.kind == "overwrote" and found.outcome.text.startswith(OUTSIDE):
        guarded = [each.name for each, array in zip(call.fed, feed, strict=True) if not array.dtype.hasobject]
        changed = [
            f'print("{OUTSIDE_INPUT} {name} changed:", np.any(np.concatenate(memory_of_{name}) != 0x55))'
            for name in guarded
        ]
        lines = [
            *_GUARDED,
            *(f"{name}, memory_of_{name} = guarded({name})" for name in guarded),
            *_indented("try:", lines),
            *_indented("finally:", changed),
        ]
    elif found.outcome.kind == "overwrote":
        names = [each.name for each in call.fed]
        changed = [
            f'print("{INPUT} {name} changed:", state({name}) != before[{number}])' for number, name in enumerate(names)
        ]
        lines = [
            "state = lambda array: (array.shape, array.dtype, array.tobytes())",
            f"before = [state(each) for each in ({', '.join(names)},)]",
            *_indented("try:", lines),  # it may raise an error after it modified its inputs
            *_indented("finally:", changed),
        ]
    made = [_script(runtime, version, case, found, lines)]
    if judgement.verdict == "crashes":
        lines = [*lines, *_indented(f"for _ in range({REPEATS}):", runtime.again(call, feed))]
        made += [_script(runtime, version, case, found, lines, where) for where in (({},), PERTURBED[:1])]
    return made


def _script(
    runtime: Runtime,
    version: str,
    case: Case,
    found: Counterexample,
    lines: list[str],
    environments: tuple[Mapping[str, str], ...] = ({},),
) -> Script:
    judgement, trial = found.judgement, found.trial
    call, feed = trial.call, trial.feeds[0]
    text = [
        f"# {printable(runtime.name)} {version}, {case.row.name} of {case.dtype}: {judgement.verdict}",
        f"# {judgement.clause.id}: {judgement.clause.statement}",
    ]
    text += [
        f"# run it with {' '.join(f'{name}={value}' for name, value in each.items())}" for each in environments if each
    ]
    text.append("import numpy as np")
    if any(array.dtype.name == "bfloat16" for array in (*feed, *call.constants.values())):
        text.append("import ml_dtypes")
    if any(array.dtype == object for array in feed):
        text.append("from fractions import Fraction")
    arrays = _arrays(call, feed, trial.layout)
    if any("zlib." in each for each in arrays):
        text.append("import base64, zlib")
    text += arrays
    expected = "an error" if trial.expected is None else line(printed(found, trial.expected[0]))
    text += [f"print({f'expected {expected}'!r}, flush=True)", *lines]
    if part := _printed_part(found):
        size = found.outcome.outputs[0].size
        which = "the first" if found.judgement.index is None else "from the first wrong"
        if found.judgement.index is None:
            assert trial.expected is not None
            text.append(f'print("shape", actual.shape, "expected", {trial.expected[0].shape})')
        text.append(f"actual = actual.reshape(-1)[{part.start}:{part.stop}]  # of {size} elements, {which}")
    text.append(_PRINT)
    return Script("\n".join(text) + "\n", found, environments)


def printed(found: Counterexample, array: Array) -> Array:
    """Return the part of a result that a script prints. A small result is printed as a whole."""
    part = _printed_part(found)
    return array if part is None else array.reshape(-1)[part]


def _printed_part(found: Counterexample) -> slice | None:
    outputs, index = found.outcome.outputs, found.judgement.index
    if found.outcome.kind not in ("returned", "nondeterministic") or outputs[0].size <= MAX_PRINTED:
        return None
    if index is None:  # a wrong type or shape: all elements are printed if they are few
        return slice(0, MAX_PRINTED) if outputs[0].size > MAX_PRINTED_WHOLE and found.trial.expected else None
    first = int(np.ravel_multi_index(index, outputs[0].shape))
    return slice(first, min(first + MAX_PRINTED, outputs[0].size))


_GUARDED = f"""\
import ctypes
def guarded(array):
    low, high = np.lib.array_utils.byte_bounds(array)
    memory = np.full({5 * GUARD} + high - low, 0x55, np.uint8)
    start = {2 * GUARD} + (low - memory.ctypes.data) % {GUARD}
    end = start + high - low
    memory[start:end] = np.frombuffer(ctypes.string_at(low, high - low), np.uint8)
    copy = np.ndarray(array.shape, array.dtype, memory, start + array.ctypes.data - low, array.strides)
    copy.flags.writeable = array.flags.writeable
    return copy, (memory[:start], memory[end:])""".splitlines()


def _indented(head: str, lines: list[str]) -> list[str]:
    return [head, *(f"    {each}" for each in lines)]


def _arrays(call: Call, feed: Feed, layout: Layout = "contiguous") -> list[str]:
    """Return assignments of the arrays. Long assignments break after commas."""
    wrap = TextWrapper(LINE_LENGTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False).wrap
    made = []
    for each, array in zip(call.fed, feed, strict=True):
        made += wrap(f"{each.name} = {literal(array)}")
        if layouts.applies(array, layout):
            made.append(layouts.text(each.name, layout))
    return made


# An array as one line, in scripts and in this module: its type, its values, and its bits in hexadecimal.
_WORD = 'f"{actual.dtype.byteorder}u{actual.itemsize}"'  # in the array's byte order
_WORDS = f'[f"{{word:0{{2 * actual.itemsize}}X}}" for word in actual.ravel().view({_WORD}).tolist()]'
ACTUAL = "actual   "  # the prefix of this line
_PRINT = f'print("{ACTUAL[:-1]}", actual.dtype.name, actual.tolist(), {_WORDS})'


def line(array: Array) -> str:
    """Return the text that a script prints for an array."""
    return f"{array.dtype.name} {array.tolist()} {elements(array)['bits']}"
