"""`maxops bench`: the grid, the oracle, the verdicts, the tables and the page. No time is asserted anywhere."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from maxops.bench.candidate import Candidate, UnsupportedError, Work
from maxops.bench.libraries.library import Library
from maxops.bench.measure import Paired, Spread, paired, rounded, spread
from maxops.bench.oracle import expected_result, maximum, reduce_max, same_bits, segment_max
from maxops.bench.peak import CALLS, extra_bytes
from maxops.bench.verdict import judge
from typer.testing import CliRunner

import maxops as mo
from bits import STORED, mixed
from maxops import dtypes, reference
from maxops.bench import (
    compare,
    environment,
    goals,
    grid,
    inputs,
    libraries,
    limits,
    ours,
    page,
    report,
    saved,
    scaling,
    session,
)
from maxops.bench.case import Case, Operand, Segments
from maxops.cli.bench import bench
from maxops.dtypes import DType

EVERY = grid.cases(types=grid.TYPES)
SMALL = [case for case in grid.cases(types=grid.TYPES) if case.size <= 1_000]


def case_of(case_id: str) -> Case:
    return next(case for case in EVERY if case.id == case_id)


# ----------------------------------------------------------------------------------------------------- grid


def test_ids_are_unique_and_stay() -> None:
    ids = [case.id for case in EVERY]
    assert len(set(ids)) == len(ids)
    assert ids == [case.id for case in grid.cases(types=grid.TYPES)]
    # Committed runs and reasons name these.
    assert {
        "Max/2-inputs/float32/1",
        "Max/8-inputs,out/float16/5e7",
        "Max/transposed,out/bool/1e3",
        "ReduceMax/last-1e4/int8/1e5",
        "ReduceMax/first-narrow/float64/8e6",
        "ReduceMax/images-last-axes/bfloat16/9633792",
        "SegmentMax/1d,mean-1e6,int32,unchecked/uint16/1e7",
        "SegmentMax/rows-64,many-empty,int64/float32/1e5",
    } <= set(ids)


def test_the_grid_is_as_wide_as_asked_for() -> None:
    families = {operator: {case.family for case in EVERY if case.operator == operator} for operator in grid._CASES}
    for name in ("2-inputs", "3-inputs", "8-inputs", "row", "column", "outer", "scalar", "transposed", "half-rows"):
        assert {name, f"{name},out"} <= families["Max"]
    assert {f"last-{length}" for length in ("3", "8", "80", "1000", "1e4")} <= families["ReduceMax"]
    assert {"all", "first-narrow", "first-square", "middle", "transposed-last"} <= families["ReduceMax"]
    parts = {part for family in families["SegmentMax"] for part in family.split(",")}
    spellings = {case.spelling for case in EVERY if case.spelling != "plain"}
    assert spellings == {"python-scalar", "list-axes", "numpy-integer", "operator", "torch-tensors"}
    assert parts - spellings == {"1d", "rows-16", "rows-64", "int32", "int64", "unchecked", *grid.LENGTHS}
    assert max(case.bytes_touched for case in EVERY) <= 10**9
    for dtype in grid.TYPES:
        sizes = {case.size for case in EVERY if case.dtype is dtype and case.family in ("2-inputs", "all")}
        assert min(sizes) == 1
        assert max(sizes) == 10**8


BYTES = {
    "Max/2-inputs,out/float32/1e3": (8_000, 4_000),
    "Max/3-inputs/int64/1": (24, 8),
    "Max/8-inputs/float16/1e5": (1_600_000, 200_000),
    "Max/row/float32/1e5": (4 * (316 * 316 + 316), 4 * 316 * 316),
    "Max/column/int8/1e5": (316 * 316 + 316, 316 * 316),
    "Max/outer/float64/1e5": (8 * 2 * 316, 8 * 316 * 316),
    "Max/scalar/bfloat16/1e3": (2_002, 2_000),
    "Max/transposed/int32/1e3": (8 * 31 * 31, 4 * 31 * 31),
    "Max/every-second/bool/1e3": (2_000, 1_000),
    "ReduceMax/all/float32/1e8": (400_000_000, 4),
    "ReduceMax/last-8/float32/1e3": (4_000, 500),
    "ReduceMax/first-narrow/float32/8e6": (32_000_000, 32),
    "ReduceMax/middle/int8/1e3": (1_000, 100),
    "ReduceMax/images-by-channel/uint8/9633792": (9_633_792, 3),
    "SegmentMax/1d,mean-10,int64/float32/1e3": (4_000 + 8_000, 400),
    "SegmentMax/1d,mean-10,int32,unchecked/float32/1e3": (4_000 + 4_000, 400),
    "SegmentMax/1d,many-empty,int64/int8/1e3": (1_000 + 8_000, 1_000),
    "SegmentMax/rows-16,mean-1,int64/float32/1e5": (400_000 + 8 * 6_250, 400_000),
}


@pytest.mark.parametrize("case_id", BYTES)
def test_bytes_touched(case_id: str) -> None:
    case = case_of(case_id)
    assert (case.bytes_read, case.bytes_written) == BYTES[case_id]
    if case.bytes_touched < 10**7:
        built = inputs.build(case)
        ids = 0 if built.ids is None else built.ids.nbytes
        assert sum(array.nbytes for array in built.arrays) + ids == case.bytes_read


@pytest.mark.parametrize("case", [case for case in SMALL if case.dtype is dtypes.INT16], ids=lambda case: case.id)
def test_inputs_are_what_the_case_says(case: Case) -> None:
    built = inputs.build(case)
    assert [array.shape for array in built.arrays] == [operand.shape for operand in case.operands]
    assert [base.shape for base in built.bases] == [operand.base_shape for operand in case.operands]
    assert all(base.flags.c_contiguous for base in built.bases)
    assert (built.out is not None) is case.out
    assert all(same_bits(*pair) for pair in zip(built.arrays, inputs.build(case).arrays, strict=True))
    if case.segments is not None and built.ids is not None:
        assert built.ids.dtype == case.segments.id_type
        assert (np.diff(built.ids) >= 0).all()
        assert built.ids[-1] == case.segments.count - 1
        used = len(np.unique(built.ids))
        assert used * (grid.EMPTY_EACH if case.segments.lengths == "many-empty" else 1) == case.segments.count


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_no_value_lets_a_reduction_stop_early(dtype: DType) -> None:
    data = inputs.build(case_of(f"ReduceMax/all/{dtype}/1e5")).arrays[0]
    highest = np.array(1, bool) if dtype.kind == "bool" else None
    if dtype.kind == "float":
        assert np.isfinite(data.astype(np.float64)).all()
    else:
        top = highest if highest is not None else np.iinfo(dtype.numpy).max
        assert not (data[:-1] == top).any()


# ---------------------------------------------------------------------------------------------------- goals


def test_each_case_has_one_goal_at_most() -> None:
    assert [case.id for case in EVERY if sum(goal.applies(case) for goal in goals.GOALS) > 1] == []


def test_goals_speak_of_cases() -> None:
    for goal in goals.GOALS:
        for band in goal.targets:
            assert any(goal.applies(case) and goals.band(case) == band for case in EVERY), (goal.name, band)


def test_goals_are_those_of_the_table() -> None:
    expected = {
        "Max/2-inputs/float64/1": [(2, "fastest")],
        "Max/2-inputs,out/int8/1e5": [(1.0, "torch"), (1.4, "numpy")],
        "Max/2-inputs/float32/3e7": [(3, "fastest"), (0.9, "limit")],
        "Max/2-inputs,out/bfloat16/1e8": [(1.6, "fastest"), (0.9, "limit")],
        "Max/8-inputs/float16/1e3": [(12, "fastest")],
        "Max/transposed/float32/3e7": [(4, "fastest")],
        "ReduceMax/all/uint16/1e5": [(4, "fastest")],
        "ReduceMax/last-8/float32/3e7": [(4, "fastest")],
        "SegmentMax/1d,mean-10,int64/float32/3e7": [(4, "fastest"), (0.8, "limit")],
        "SegmentMax/1d,mean-1000,int64,unchecked/float32/3e7": [(8, "fastest")],
        "SegmentMax/rows-16,mean-10,int64/float32/3e7": [(3, "fastest"), (0.85, "limit")],
        "Max/2-inputs/float32/1e6": [],
        "Max/2-inputs/bool/1e3": [],
    }
    found = {name: [(t.ratio, t.against) for t in goals.targets(case_of(name))] for name in expected}
    assert found == expected


# --------------------------------------------------------------------------------------------------- oracle


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_the_oracle_agrees_with_the_reference(dtype: DType) -> None:
    a, b = mixed(dtype, (6, 25), seed=1), mixed(dtype, (25,), seed=2)
    assert same_bits(maximum(a, b), reference.maximum(a, b))
    assert same_bits(maximum(b, b[3]), reference.maximum(b, b[3]))
    for axes in ((0,), (1,), (0, 1)):
        assert same_bits(reduce_max(a, axes), reference.reduce_max(a, axes, keepdims=False))
    ids = np.array([0, 0, 2, 2, 2, 5])
    for fill_mode in ("ZERO", "LOWEST"):
        assert same_bits(segment_max(a, ids, 7, fill_mode), reference.segment_max(a, ids, 7, fill_mode))


@pytest.mark.parametrize(
    "case", [case for case in SMALL if case.dtype is dtypes.FLOAT16 and ours.supports(case)], ids=lambda case: case.id
)
def test_ours_is_right_on_small_cases(case: Case) -> None:
    built = inputs.build(case)
    (verdict,) = judge(lambda: [ours.candidate(Work(case, built, 1))], case, expected_result(case, built, slow=False))
    assert (verdict.status, verdict.reason) == ("correct", "")


def test_same_bits_tells_what_equality_does_not() -> None:
    zero, nan = np.array([0.0], np.float32), np.array([np.nan], np.float32)
    assert same_bits(nan, nan.copy())
    assert not same_bits(zero, -zero)
    assert not same_bits(zero, zero.reshape(1, 1))
    assert not same_bits(zero, zero.view(np.uint32))


# -------------------------------------------------------------------------------------------------- timing


def test_pairs_and_their_spread() -> None:
    candidate = Candidate("nothing", int)
    found = paired(candidate, candidate, 0.001)
    assert found.pairs >= 5
    assert found.ratio.low <= found.ratio.median <= found.ratio.high
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]).median == 3


def test_limits_move_a_case_s_bytes() -> None:
    assert not no_limits()  # it is built with the core
    sweep = limits.Limits(10_000, 5_000, 2).candidate(10_000, 5_000, streaming=True, threads=2)
    source, target, *_ = sweep.args
    target[:] = 0
    assert sweep.function(*sweep.args) == 0x0101010101010101
    assert target.all()
    assert (source == 1).all()
    found = limits.table(2, size=300_000, seconds=0.01)
    assert {(limit.mix, limit.threads) for limit in found} == {
        (mix, threads) for mix in ("read", "2 reads, 1 write") for threads in (1, 2)
    }
    assert all(limit.bytes_per_second > 0 for limit in found)


def no_limits() -> str:
    """Why the native helper is not there, or ""."""
    try:
        limits.Limits(64, 64, 1)
    except UnsupportedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", CALLS)
def test_peak_memory_is_seen(name: str) -> None:
    assert set(extra_bytes(name, 80_000)) == {"output", "extra"}


def test_the_model_of_scaling() -> None:
    model = scaling.Model(call=1e-6, core=10e9, machine=40e9, wake=5e-6, each=1e-6, chunk=256_000, most_chunks=10_000)
    assert model.seconds(10e9, 1) == pytest.approx(1 + 1e-6)
    assert model.seconds(40e9, 64) == pytest.approx(1, rel=1e-3)  # the machine's pace, however many cores
    assert model.seconds(1_000, 64) == model.seconds(1_000, 1)  # less than a chunk: no helper wakes
    by_cores = [model.seconds(64e6, cores, 1e12) for cores in (1, 2, 4, 8)]
    assert by_cores == sorted(by_cores, reverse=True)
    few = scaling.Model(call=0, core=1e9, machine=1e12, wake=0, each=0, chunk=1e6, most_chunks=4)
    assert few.seconds(1e9, 64) == few.seconds(1e9, 4)  # no more at work than there are chunks
    points = [
        {"bytes": amount, "threads": threads, "seconds": model.seconds(amount, threads)}
        for amount in (10**8, 4 * 10**8)
        for threads in (1, 2)
    ]
    # a helper that comes 5 us late to 1 ms of work, and threads past two cores
    woken = [{"threads": 1, "seconds": 1e-3}]
    woken += [{"threads": count, "seconds": 5e-6 + 995e-6 / 2 + 1e-6 * (count - 2)} for count in scaling.CORES[1:]]
    fitted = scaling.fit(points, woken, 0.0, model.chunk, model.most_chunks)
    assert fitted.core == pytest.approx(model.core, rel=0.01)
    assert (fitted.wake, fitted.each) == pytest.approx((5e-6, 1e-6))


# -------------------------------------------------------------------------------------------------- a run


class Broken(Library):
    """A library that is fast, and wrong: it gives the first input."""

    name = "numpy"

    def maximum(self, work: Work) -> list[Candidate]:
        return [Candidate("first input", lambda: work.data)]

    def reduce_max(self, work: Work) -> list[Candidate]:
        return [Candidate("one ulp off", lambda: np.nextafter(work.data.max(), np.float32(np.inf)))]


class Gone(Library):
    name = "no_such_package_as_this"


@pytest.fixture
def odd_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two more libraries: one broken on purpose, one that is not installed."""
    load: Callable[[str, int], Library] = libraries.load
    odd = {"broken": Broken, "gone": Gone}
    monkeypatch.setattr(
        libraries, "load", lambda name, threads: odd[name](threads) if name in odd else load(name, threads)
    )


@pytest.fixture(scope="module")
def tiny_cases() -> list[Case]:
    expected = ["Max/2-inputs,out", "ReduceMax/all", "SegmentMax/1d,mean-10,int64"]
    return [case_of(f"{name}/float32/{size}") for name in expected for size in ("1e3", "1e5")]


@pytest.fixture
def tiny_run(odd_libraries: None, tiny_cases: list[Case]) -> dict[str, Any]:
    stages = []
    result = session.run(
        tiny_cases,
        ["numpy", "broken", "gone"],
        2,
        seconds=0.002,
        quick=True,
        whole=False,
        done=lambda text, case: stages.append(text),
    )
    assert [case.id for case in tiny_cases] == [case["id"] for case in result["cases"]]
    assert any(text.startswith("6 of 6") for text in stages)
    written: dict[str, Any] = json.loads(json.dumps(result, allow_nan=False))
    return written


def test_a_run_has_what_the_page_needs(tiny_run: dict[str, Any]) -> None:
    assert tiny_run["format"] == saved.FORMAT
    about = {"cpu", "isa", "threads", "output_cache", "memory_bytes", "caches", "python", "maxops", "system"}
    assert about <= tiny_run["machine"].keys()
    assert tiny_run["libraries"]["numpy"]["version"] == np.__version__
    for case in tiny_run["cases"]:
        assert case["ours"]["status"] == "correct", case
        assert case["ours"]["seconds"] > 0
        assert case["fastest"] == "numpy"
        assert case["ratio"]["low"] <= case["ratio"]["median"] <= case["ratio"]["high"]
        assert case["bytes_read"] > case["bytes_written"] > 0
        assert case["limit"]["status"] in ("correct", "unsupported", "not installed")
    if not no_limits():
        assert all("ratio" in case["limit"] for case in tiny_run["cases"] if case["size"] == 100_000)


def test_a_broken_peer_is_wrong_and_a_missing_one_missing(tiny_run: dict[str, Any]) -> None:
    for case in tiny_run["cases"]:
        broken, gone = case["libraries"]["broken"], case["libraries"]["gone"]
        if case["operator"] == "SegmentMax":
            assert (broken["status"], broken["reason"]) == ("unsupported", "has no maximum by ids")
            assert case["libraries"]["numpy: maximum.reduceat, starts given"]["status"] == "other input"
        else:
            assert broken["status"] == "wrong"
            assert "elements differ" in broken["reason"]
            assert broken["seconds"] > 0
        assert gone["status"] == "not installed"
    assert "not installed: no_such_package_as_this" in tiny_run["libraries"]["gone"]["reason"]
    assert {row[0] for row in report.wrong_libraries(tiny_run).rows} == {"broken"}
    for ratio, words in ((0.5, "broken fast and wrong"), (2.0, "broken wrong")):
        for case in tiny_run["cases"]:
            if case["libraries"]["broken"]["status"] == "wrong":
                case["libraries"]["broken"]["ratio"]["median"] = ratio
        assert words in "\n".join(" ".join(row) for table in report.cases(tiny_run) for row in table.rows)


def test_goals_and_cells_below_one_are_listed(tiny_run: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for case in tiny_run["cases"]:
        case["ratio"] = {"low": 2.0, "median": 2.5, "high": 3.0}
    case = tiny_run["cases"][0]
    case["ratio"] = {"low": 0.4, "median": 0.5, "high": 0.6}
    rows = {(row["goal"], row["band"]): row for row in report.goal_rows(tiny_run)}
    row = rows["Max of 2, out=: f32, f64, integers", "1e3"]
    assert (row["cases"], row["reached"], row["worst"], row["worst_case"]) == (1, 0, 0.5, case["id"])
    assert report.below_one(tiny_run).rows[0][0] == case["id"]
    assert report.below_one(tiny_run).rows[0][-1] == report.NO_REASON
    monkeypatch.setattr("maxops.bench.reasons.REASONS", (("Max/*", "it is Tuesday"),))
    assert report.below_one(tiny_run).rows[0][-1] == "it is Tuesday"
    assert case["id"] in report.markdown(tiny_run)


def test_our_own_error_is_told(tiny_run: dict[str, Any]) -> None:
    assert report.our_failures(tiny_run) == []
    tiny_run["cases"][2]["ours"] = {"status": "wrong", "reason": "1 of 1 elements differ", "seconds": 1.0}
    assert report.our_failures(tiny_run) == ["ReduceMax/all/float32/1e3: 1 of 1 elements differ"]
    assert "WRONG" in str(report.cases(tiny_run))


def test_the_page_needs_nothing_else(tiny_run: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    text = page.html(tiny_run)
    assert text.count("<svg") == 3  # two cases of a family make a line, and only the larger has a share of the limit
    assert 'name="viewport"' in text
    assert re.findall(r"<(?:script|link|img|iframe)\b", text) == []
    assert re.findall(r"(?:src|href)=\"(?!#)[^\"]+", text) == []
    assert all(case["id"].partition("/")[2] in text for case in tiny_run["cases"])
    assert text == page.html(tiny_run)


ALL_LIBRARIES = """
import json
from maxops.bench import grid, libraries, session
ids = ["Max/2-inputs/float32/1e3", "ReduceMax/all/float32/1e3", "SegmentMax/1d,mean-10,int64/float32/1e3"]
cases = [case for case in grid.cases() if case.id in ids]
print(json.dumps(session.run(cases, libraries.NAMES, 1, seconds=0.001, whole=False)))
"""


@pytest.fixture(scope="module")
def all_libraries() -> dict[str, Any]:
    """A run in a process of its own, since some libraries' threads and warnings would meet other tests."""
    variables = os.environ | environment.quiet(1)
    completed = subprocess.run(
        [sys.executable, "-c", ALL_LIBRARIES], capture_output=True, text=True, check=True, env=variables
    )
    found: dict[str, Any] = json.loads(completed.stdout)
    return found


@pytest.mark.parametrize("name", libraries.NAMES)
def test_a_peer_is_missing_or_right(name: str, all_libraries: dict[str, Any]) -> None:
    statuses = {case["libraries"][name]["status"] for case in all_libraries["cases"]}
    if all_libraries["libraries"][name]["status"] == "not installed":
        assert statuses == {"not installed"}
        return
    assert all_libraries["libraries"][name]["version"]
    assert "correct" in statuses
    assert statuses <= {"correct", "unsupported"}


# ------------------------------------------------------------------------------------------- command line


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    for name, value in environment.quiet(mo.get_num_threads()).items():
        monkeypatch.setenv(name, value)
    app = typer.Typer()
    app.command()(bench)
    return lambda *words: CliRunner().invoke(app, list(words))


def test_the_command_writes_what_it_was_asked_for(command: Callable[..., Any], tmp_path: Path) -> None:
    json_file, markdown = tmp_path / "run.json", tmp_path / "run.md"
    words = ["Max", "--quick", "--types", "int8", "--libraries", "numpy", "--only", "2-inputs/", "--seconds", "0.001"]
    result = command(*words, "--json", str(json_file), "--markdown", str(markdown))
    assert result.exit_code == 0, result.output
    run = json.loads(json_file.read_text(encoding="utf-8"))
    assert [case["id"] for case in run["cases"]] == [f"Max/2-inputs/int8/{size}" for size in ("1", "1e3", "1e5")]
    assert run["scaling"]["models"].keys() == {"Max", "ReduceMax"}
    assert run["memory"][0]["extra"] >= 0
    assert run["deviations"].get("numpy", {}) == {}  # integers leave it nothing to differ on
    text = markdown.read_text(encoding="utf-8")
    assert text == report.markdown(run)
    assert run["command"] in text
    again = command("--from", str(json_file))
    assert again.exit_code == 0
    assert "3 cases" in again.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["Mean"], "Max, ReduceMax, SegmentMax"),
        (["--types", "float8"], "float16, bfloat16"),
        (["--libraries", "numpy,cupy"], "numpy, torch"),
        (["--only", "no such case"], "--list"),
        (["--sizes", "1000"], "1e3, 1e5"),
    ],
)
def test_an_unknown_name_is_a_usage_error(command: Callable[..., Any], words: list[str], text: str) -> None:
    result = command(*words)
    assert result.exit_code == 2
    assert text in re.sub(r"[\s│]+", " ", result.output)


def test_the_grid_can_be_listed(command: Callable[..., Any]) -> None:
    result = command("ReduceMax", "--types", "int8", "--list")
    assert "ReduceMax/images-last-axes/int8/9633792" in result.output
    some = command("ReduceMax", "--types", "int8", "--sizes", "1,1e5", "--list")
    assert "ReduceMax/all/int8/1e5" in some.output
    assert "int8/1e3" not in some.output


# -------------------------------------------------------------------------------------------------- files


def test_what_is_written_is_read_and_has_a_line_for_each_case(tiny_run: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    saved.write(path, tiny_run)
    assert saved.read(path) == json.loads(path.read_text()) == tiny_run
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith('{"id":')] == [
        line for line in lines if any(f'"{case["id"]}"' in line for case in tiny_run["cases"])
    ]
    assert len(lines) < len(tiny_run["cases"]) + 60


def test_figures_have_no_more_digits_than_a_clock_tells(tiny_run: dict[str, Any]) -> None:
    assert rounded(tiny_run["cases"]) == tiny_run["cases"]
    for case in tiny_run["cases"]:
        assert len(f"{case['ours']['seconds']:e}".split("e")[0].rstrip("0")) <= 8


STRANGE = {
    "an empty object": ("{}", "is not a run of maxops bench in format 2"),
    "another format": ('{"format": 0}', "is not a run of maxops bench in format 2"),
    "a list": ("[1]", "is not a run of maxops bench in format 2"),
    "no fields": ('{"format": 2}', "has no began"),
    "half a file": ('{"format": 2, "cases": [', "is not JSON"),
    "bytes": ("\udcff", "is not JSON"),
    "a tower": ("[" * 100_000, "is not JSON"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_file_without_a_run_is_an_error(command: Callable[..., Any], tmp_path: Path, name: str) -> None:
    file, (content, text) = tmp_path / "other.json", STRANGE[name]
    file.write_text(content, encoding="utf-8", errors="surrogateescape")
    error = command("--from", str(file)).exception
    assert isinstance(error, saved.BenchFileError)
    assert str(error).startswith(f"{file}: {text}") or str(error) == f"{file} {text}; is it a run of maxops bench?"


@pytest.mark.parametrize(
    ("cases", "text"),
    [({}, "cases is not a list"), ([7], "cases[0] is not an object"), ([{}], "cases[0] has no band")],
)
def test_a_run_whose_cases_are_no_cases_is_an_error(
    tiny_run: dict[str, Any], tmp_path: Path, cases: Any, text: str
) -> None:
    saved.write(tmp_path / "run.json", tiny_run | {"cases": cases})
    with pytest.raises(saved.BenchFileError, match=re.escape(text)):
        saved.read(tmp_path / "run.json")


def test_import_of_maxops_stays_light() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", "import maxops, sys; print([m for m in sys.modules if 'maxops.bench' in m])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert completed.stdout.strip() == "[]"


def test_a_probe_has_the_shape_it_says() -> None:
    case = Case(
        "SegmentMax", "x", dtypes.INT8, 4, (Operand((4,)),), (2,), segments=Segments("mean-1", "int32", True, 2)
    )
    assert (case.bytes_read, case.bytes_written) == (4 + 16, 2)


# -------------------------------------------------------------------------------------------------- compare


BROKEN = """
_right = maximum
def maximum(*args, **options):
    return -_right(*args, **options)
def reduce_max(*args, **options):
    raise TypeError("not in this version")
"""


def other_maxops(folder: Path, more: str = "") -> Path:
    """A second copy of the package, which runs `more` when it is imported."""
    package = Path(mo.__file__).parent
    shutil.copytree(package, folder / "maxops", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "maxops" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(more)
    return folder


def compared(other: Path, *only: str) -> dict[str, Any]:
    return compare.run([case_of(each) for each in only], other, 1, seconds=0.01)


def test_two_installs_are_timed_on_the_same_inputs(tmp_path: Path) -> None:
    names = ["Max/2-inputs,out/float32/1e3", "SegmentMax/numpy-integer/int8/1e2", "ReduceMax/operator/bfloat16/1"]
    result = compared(other_maxops(tmp_path), *names)
    assert [case["status"] for case in result["cases"]] == ["timed"] * 3
    assert result["this"]["folder"] == str(Path(mo.__file__).resolve().parent)
    assert result["other"]["folder"] == str(tmp_path / "maxops")
    families, *_ = compare.tables(result)
    assert [row[:3] for row in families.rows][:3] == [
        ("Max", "2-inputs,out", "1"), ("SegmentMax", "numpy-integer", "1"), ("ReduceMax", "operator", "1"),
    ]  # fmt: skip
    assert not compare.different(result)


def test_other_bits_and_other_errors_are_no_figures(tmp_path: Path) -> None:
    other = other_maxops(tmp_path, BROKEN)
    result = compared(other, "Max/2-inputs/float32/1", "ReduceMax/all/int8/1")
    assert [case["status"] for case in result["cases"]] == [
        "different bits",
        "other does not run it: TypeError: not in this version",
    ]
    assert compare.different(result) == ["Max/2-inputs/float32/1"]
    assert [table.title for table in compare.tables(result)][1:] == ["Not timed"]


@pytest.mark.parametrize(("ratio", "arrays"), [(1.0, 1), (0.96, 1), (1.04, 1), (0.5, 3), (2.0, 3)])
def test_what_differs_is_measured_on_new_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ratio: float, arrays: int
) -> None:
    asked, ask = [], compare.Install.ask

    def listen(install: compare.Install, **request: Any) -> Any:
        asked.append(request.get("anew"))
        return ask(install, **request)

    ratios = iter((ratio, 3.0, 0.25))  # the first decides; of three, the middle is taken
    measured = lambda ours, theirs, seconds: Paired(1.0, 1.0, Spread(1.0, next(ratios), 1.0), 1)  # noqa: E731
    monkeypatch.setattr(compare.Install, "ask", listen)
    monkeypatch.setattr(compare, "paired_watches", measured)
    (case,) = compared(other_maxops(tmp_path), "Max/2-inputs/float32/1")["cases"]
    assert case["status"] == "timed"
    assert case["ratio"]["median"] == ratio
    assert [number for number in asked if number is not None] == [number for number in range(arrays) for _ in "ab"]


def test_cases_below_are_listed() -> None:
    cases = [
        {"id": f"Max/a/int8/{number}", "operator": "Max", "family": "a", "status": "timed",
         "ratio": {"low": ratio, "median": ratio, "high": ratio}}
        for number, ratio in enumerate((1.2, 0.94, 0.95, 0.5))
    ]  # fmt: skip
    families, below = compare.tables({"cases": cases})
    assert list(families.rows) == [("Max", "a", "4", "0.94", "0.50", "2"), ("Max", "all", "4", "0.94", "0.50", "2")]
    assert [row[0] for row in below.rows] == ["Max/a/int8/3", "Max/a/int8/1"]


def test_the_same_maxops_is_no_comparison() -> None:
    with pytest.raises(compare.CompareError, match=r"is this maxops: "):
        compared(Path(mo.__file__).parents[1], "Max/2-inputs/float32/1")


@pytest.mark.parametrize(
    ("program", "message"), [("", "Permission denied"), ("#!/bin/sh\nexit 3\n", "its maxops ended with code 3")]
)
def test_what_is_no_python_with_maxops_is_an_error(tmp_path: Path, program: str, message: str) -> None:
    python = tmp_path / "python"
    python.write_text(program)
    python.chmod(0o755 if program else 0o644)
    with pytest.raises(compare.CompareError, match=message):
        compared(python, "Max/2-inputs/float32/1")


def test_a_folder_without_maxops_is_no_comparison(tmp_path: Path) -> None:
    # Python goes on to the next folder of its path: here to one that has the package
    with pytest.raises(compare.CompareError, match=r"holds no package maxops|ended with code 1"):
        compared(tmp_path, "Max/2-inputs/float32/1")


def test_what_other_modules_print_is_no_answer(tmp_path: Path) -> None:
    other = other_maxops(tmp_path, "print('hello')\n")
    assert [case["status"] for case in compared(other, "Max/2-inputs/float32/1")["cases"]] == ["timed"]


def test_a_crash_ends_the_run_and_keeps_what_there_is(tmp_path: Path) -> None:
    crash = "\nimport os\ndef reduce_max(*args, **options):\n    os._exit(9)\n"
    result = compared(other_maxops(tmp_path, crash), "Max/2-inputs/float32/1", "ReduceMax/all/int8/1")
    assert [case["status"] for case in result["cases"]] == ["timed"]
    assert result["interrupted"].startswith("after 1 of 2 cases --compare: ")
    assert result["interrupted"].endswith("its maxops ended with code 9; see above")


def test_compare_prints_tables_and_writes_json(tmp_path: Path) -> None:
    other = other_maxops(tmp_path / "other")
    command = [sys.executable, "-m", "maxops", "bench", "Max", "--only", "2-inputs/float32/1", "--sizes", "1"]
    command += ["--quick", "--compare", str(other), "--json", str(tmp_path / "found.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, f"maxops: wrote {tmp_path / 'found.json'}\n")
    assert done.stdout.startswith("this: maxops ")
    assert "Speedup over the other" in done.stdout
    (case,) = json.loads((tmp_path / "found.json").read_text())["cases"]
    assert (case["id"], case["status"]) == ("Max/2-inputs/float32/1", "timed")


def test_compare_takes_no_other_outputs(command: Callable[..., Any], tmp_path: Path) -> None:
    result = command("--compare", str(tmp_path), "--markdown", str(tmp_path / "x.md"))
    assert result.exit_code == 2
    assert "--compare prints tables and takes --json" in " ".join(result.output.replace("│", "").split())
