"""Peak memory of large calls: a few MB more than inputs and output. Each call runs in a separate, forked process."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.programs import run

ALLOWED = 8 * 2**20  # for stacks of threads, partial results, and the first use of the pool

# Inputs are filled in place, so that no temporary array raises the peak before the call.
PROGRAM = """
import os, re, sys
import numpy as np
import maxops as mo

n = 16_000_000

def ones(*shape, dtype=np.float32):
    array = np.empty(shape, dtype)
    array.fill(1)
    return array

def peak():
    with open("/proc/self/status") as status:
        return int(re.search("VmHWM: *(.*) kB", status.read().replace("\\t", " "))[1]) << 10

for line in sys.argv[1:]:
    if (child := os.fork()) == 0:
        given, call, output = line.split("; ")
        arguments = eval(given)
        before = peak()
        result = eval(call)
        print(peak() - before - eval(output))
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0, line
"""
NEW = "result.nbytes"
CALLS = {
    "max": ("ones(n), ones(n)", "mo.maximum(*arguments)", NEW),
    "max_out": ("ones(n), ones(n), ones(n)", "mo.maximum(*arguments[:2], out=arguments[2])", "0"),
    "max_transposed": ("ones(n // 4000, 4000), ones(4000, n // 4000).T", "mo.maximum(*arguments)", NEW),
    "all": ("(ones(n),)", "mo.reduce_max(*arguments)", NEW),
    "rows_of_8": ("(ones(n // 8, 8),)", "mo.reduce_max(*arguments, -1)", NEW),
    "columns_of_8": ("(ones(n // 8, 8),)", "mo.reduce_max(*arguments, 0)", NEW),
    "segments": ("ones(n), ones(n, dtype=np.int32)", "mo.segment_max(*arguments, 2, fill_mode='ZERO')", NEW),
    "segments_of_rows": (
        "ones(n // 16, 16), ones(n // 16, dtype=np.int32)", "mo.segment_max(*arguments, 2, fill_mode='ZERO')", NEW,
    ),
    "a copy, which is noticed": ("(ones(n),)", "mo.reduce_max(*[each.copy() for each in arguments])", NEW),
}  # fmt: skip


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_a_call_takes_a_few_megabytes() -> None:
    said = run(PROGRAM, *map("; ".join, CALLS.values()))
    peaks = dict(zip(CALLS, map(int, said.split()), strict=True))
    assert [name for name, peak in peaks.items() if peak > ALLOWED] == ["a copy, which is noticed"], peaks
