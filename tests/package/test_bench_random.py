"""`maxops bench --random`: the random calls, their expected results, and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import maxops as mo
from helpers.bits import STORED
from helpers.programs import run
from maxops import reference
from maxops.bench import environment, random_calls
from maxops.bench.grid import OPERATORS
from maxops.bench.inputs import FILL_MODE, same_bits
from maxops.bench.libraries import LIBRARIES, Names
from maxops.bench.random_calls import KINDS, Call, draw, ours, theirs
from maxops.cli.bench import bench

DRAWN = [draw(28, number) for number in range(1200)]
SMALL = [call for call in DRAWN if call.case.size <= 2_000]
STARTED: dict[str, Names] = {"numpy": LIBRARIES["numpy"].start(1)}


def test_the_same_seed_draws_the_same_calls() -> None:
    assert [draw(28, call.number) for call in DRAWN[::-1]] == DRAWN[::-1]
    assert [str(draw(29, number)) for number in range(9)] != list(map(str, DRAWN[:9]))
    # Names that are the same on every machine, because reports contain them.
    assert str(draw(1, 22)) == (
        "SegmentMax int16 (4, 21463) F, axis 1, 669 segments by int32 offsets, out (4, 669) C half axis 0"
    )
    assert str(draw(1, 14)) == "ReduceMax int16 (32445, 1) C, axes (1,), out (32445,) C"


def test_the_same_call_has_the_same_arrays() -> None:
    for call in SMALL[:60]:
        first, again = call.build(), call.build()
        assert all(same_bits(*pair) for pair in zip(first.arrays, again.arrays, strict=True))
        assert first.ids is again.ids is None or np.array_equal(first.ids, again.ids)  # type: ignore[arg-type]


def test_what_is_drawn_is_varied() -> None:
    assert {call.case.operator for call in DRAWN} == set(OPERATORS)
    assert {call.case.dtype for call in DRAWN} == set(STORED)
    for operator in OPERATORS:
        drawn = [call for call in DRAWN if call.case.operator == operator]
        assert {call.layouts[0].kind for call in drawn} == KINDS.keys()
        assert {len(call.layouts[0].shape) for call in drawn} == {1, 2, 3, 4, 5}
        assert {call.out is None for call in drawn} == {True, False}
        for few, many in ((1, 10), (1_000, 10_000), (100_000, 2_000_000)):
            assert any(few <= call.case.size <= many for call in drawn)
    assert {call.case.family for call in DRAWN if call.case.operator == "Max"} == {
        "2 inputs", "3 inputs", "broadcast", "outer", "scalar",
    }  # fmt: skip
    segments = [(call.by, call.has_empty, call.axis) for call in DRAWN if call.by]
    assert {by for by, _, _ in segments} == {"sorted ids", "ids", "offsets"}
    assert {axis for _, _, axis in segments} == {0, 1, 2, 3, 4}
    assert {empty for _, empty, _ in segments} == {True, False}
    reduced = [call for call in DRAWN if call.case.operator == "ReduceMax"]
    assert {call.keepdims for call in reduced} == {True, False}
    assert any(1 < len(call.case.axes) < len(call.layouts[0].shape) for call in reduced)


def test_arrays_are_laid_out_as_the_call_says() -> None:
    for call in SMALL[:300]:
        for layout, array in zip(call.layouts, call.build().arrays, strict=True):
            assert array.shape == layout.shape
            long = [axis for axis in layout.order if layout.shape[axis] > 1]
            apart = [axis for axis in long if (layout.kind, layout.axis) != ("broadcast", axis)]
            strides = [abs(array.strides[axis]) for axis in apart]
            assert strides == sorted(strides, reverse=True)
            if layout.axis in long and layout.kind in ("broadcast", "reversed"):
                assert array.strides[layout.axis] == 0 if layout.kind == "broadcast" else array.strides[layout.axis] < 0
            if layout.kind == "unaligned" and array.itemsize > 1:
                assert not array.flags.aligned


def expected(call: Call, work: Any) -> Any:
    """Return the result of the reference, which is slow, and independent of maxops's kernels and the other library."""
    if call.case.operator == "Max":
        return reference.maximum(*np.broadcast_arrays(*work.arrays))
    if call.case.operator == "ReduceMax":
        return reference.reduce_max(work.data, call.case.axes, keepdims=call.keepdims)
    order = np.argsort(work.ids, kind="stable")
    rows = np.moveaxis(work.data, call.axis, 0)[order]
    found = reference.segment_max(rows, work.ids[order], call.case.shape[call.axis], FILL_MODE)
    return np.moveaxis(found, 0, call.axis)


def test_both_sides_give_what_the_reference_gives() -> None:
    for call in SMALL[:400]:
        work = call.build()
        results = [
            LIBRARIES["numpy"].candidate(text(call, "numpy"), STARTED["numpy"] | {"mo": mo}, work).result(call.case)
            for text in (theirs, ours)
        ]
        assert all(same_bits(result, expected(call, work)) for result in results), str(call)
        assert prod(call.case.shape) == results[0].size


def measured(call: Call, monkeypatch: pytest.MonkeyPatch, replaced: Callable[..., Any]) -> dict[str, Any]:
    monkeypatch.setattr(mo, "reduce_max", replaced)
    return random_calls.run(["numpy"], 1, seed=28, run_seconds=1, seconds=0.001, only_call=call.number)


REDUCED = next(call for call in SMALL if call.case.operator == "ReduceMax" and call.out is None and call.case.size > 9)


def test_a_slow_call_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mo.reduce_max

    def slow(*arguments: Any) -> Any:
        time.sleep(0.002)
        return right(*arguments)

    result = measured(REDUCED, monkeypatch, slow)
    (row,) = result["cases"]
    assert row["ratio"]["median"] < 0.5
    assert row["first"] < 1
    text = str(random_calls.tables(result))
    assert str(REDUCED) in text
    assert "--seed 28 --only-call NUMBER" in text
    assert random_calls.headline(result).endswith("1 below 1.0, 1 below 0.8, 1 below 0.5")
    assert random_calls.failures(result) == []


def test_other_bits_and_errors_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    right = mo.reduce_max
    result = measured(REDUCED, monkeypatch, lambda *arguments: right(*arguments) + 1)
    assert "different bits" in random_calls.failures(result)[0]
    result = measured(REDUCED, monkeypatch, lambda *arguments: 1 // 0)
    assert "ZeroDivisionError" in random_calls.failures(result)[0]


def test_a_run_keeps_to_its_operators_and_types() -> None:
    options: dict[str, Any] = {"operators": ["Max"], "types": ["int8"], "seconds": 0.001}
    rows = random_calls.run(["numpy"], 1, seed=3, run_seconds=0.2, **options)["cases"]
    assert {(row["operator"], row["type"]) for row in rows} == {("Max", "int8")}
    assert [row["call"] for row in rows] == [str(draw(3, int(row["id"]))) for row in rows]


BESIDE_TORCH = """
import json
from maxops.bench import random_calls
print(json.dumps(random_calls.run(["torch"], 1, seed=28, run_seconds=3, seconds=0.001, types=["float32", "int8"])))
"""


def test_torch_s_tensors_are_timed_beside_torch() -> None:
    """Run in a separate process, because the bench disables gradients."""
    pytest.importorskip("torch")
    result = json.loads(run(BESIDE_TORCH, **environment.quiet(1)))
    assert {row["operator"] for row in result["cases"] if row["status"] == "timed"} == set(OPERATORS)
    assert random_calls.failures(result) == []
    reasons = {row["reason"] for row in result["cases"] if row["status"] == "unsupported"}
    assert all("negative" in reason or "stride" in reason for reason in reasons), reasons


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    for name, value in environment.quiet(1).items():
        monkeypatch.setenv(name, value)
    app = typer.Typer()
    app.command()(bench)
    return lambda *words: CliRunner().invoke(app, ["--threads", "1", "--libraries", "numpy", *words])


def test_the_command_repeats_a_call(command: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    found = command("--random", "1", "--seed", "28", "--only-call", str(REDUCED.number), "--json", str(file))
    assert found.exit_code == 0, found.output
    assert [row["call"] for row in json.loads(file.read_text())["cases"]] == [str(REDUCED)]
    assert "Lowest speedups over numpy" in found.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--random", "1", "--quick"], "--quick has no effect with --random"),
        (["--random", "1", "--sizes", "1"], "--sizes has no effect with --random"),
        (["--random", "1", "--from", "run.json"], "--from has no effect with --random"),
        (["--random", "0"], "expected more than 0 and at most"),
        (["--seed", "3"], "--seed and --only-call require --random"),
        (["--only-call", "3"], "--seed and --only-call require --random"),
    ],
    ids=lambda each: each if isinstance(each, str) else each[-2],
)
def test_options_that_do_not_go_together(command: Callable[..., Any], words: list[str], message: str) -> None:
    found = command(*words)
    assert found.exit_code == 2
    assert message in " ".join(found.output.replace("│", " ").split())
