"""`maxops bench`: the grid, the expected results, the verdicts, the tables and the page. No test asserts a time."""

from __future__ import annotations

import json
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
from typer.testing import CliRunner

import maxops as mo
from helpers import programs
from helpers.bits import STORED
from maxops import dtypes
from maxops.bench import compare, environment, grid, inputs, libraries, limits, page, report, session
from maxops.bench.grid import Case
from maxops.bench.inputs import expected_result, same_bits
from maxops.bench.libraries import LIBRARIES, Library, Text
from maxops.bench.timing import Candidate, Stopwatch, UnsupportedError, figures, paired
from maxops.cli.bench import bench
from maxops.dtypes import DType
from maxops.machine import commit

EVERY = grid.cases(types=grid.TYPES)
SMALL = [case for case in grid.cases(types=grid.TYPES) if case.size <= 1_000]


def case_of(case_id: str) -> Case:
    return next(case for case in EVERY if case.id == case_id)


# ----------------------------------------------------------------------------------------------------- grid


def test_ids_are_unique_and_stay() -> None:
    ids = [case.id for case in EVERY]
    assert len(set(ids)) == len(ids)
    assert ids == [case.id for case in grid.cases(types=grid.TYPES)]
    # The names in committed runs.
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


@pytest.mark.parametrize("case", [case for case in SMALL if case.dtype is dtypes.INT16], ids=lambda case: case.id)
def test_inputs_are_what_the_case_says(case: Case) -> None:
    built = inputs.build(case)
    assert [array.shape for array in built.arrays] == [operand.shape for operand in case.operands]
    assert [base.shape for base in built.bases] == [operand.base_shape for operand in case.operands]
    assert all(base.flags.c_contiguous for base in built.bases)
    ids = 0 if built.ids is None else built.ids.nbytes
    assert case.bytes_read == sum(array.nbytes for array in built.arrays) + ids
    assert case.bytes_written == expected_result(built).nbytes
    assert (built.out is not None) is case.out
    assert all(same_bits(*pair) for pair in zip(built.arrays, inputs.build(case).arrays, strict=True))
    assert (built.ids is not None) is (case.operator == "SegmentMax")
    if built.ids is not None:
        assert built.ids.dtype == case.id_type
        assert (np.diff(built.ids) >= 0).all()
        assert built.ids[-1] == case.shape[0] - 1
        used = len(np.unique(built.ids))
        assert used * (grid.EMPTY_EACH if case.lengths == "many-empty" else 1) == case.shape[0]


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_no_value_lets_a_reduction_stop_early(dtype: DType) -> None:
    data = inputs.build(case_of(f"ReduceMax/all/{dtype}/1e5")).arrays[0]
    highest = np.array(1, bool) if dtype.kind == "bool" else None
    if dtype.kind == "float":
        assert np.isfinite(data.astype(np.float64)).all()
    else:
        top = highest if highest is not None else np.iinfo(dtype.numpy).max
        assert not (data[:-1] == top).any()


# --------------------------------------------------------------------------------------------------- results


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_numpy_agrees_with_the_reference(dtype: DType) -> None:
    """Test every third case with the values of the bench: NumPy computes the expected results of large cases."""
    cases = [case for case in SMALL if case.dtype is dtype][STORED.index(dtype) % 3 :: 3]
    works = [inputs.build(case) for case in cases]
    expected = [(expected_result(work, by_reference=False), expected_result(work, by_reference=True)) for work in works]
    assert len(works) > 20
    assert [work.case.id for work, pair in zip(works, expected, strict=True) if not same_bits(*pair)] == []


@pytest.mark.parametrize(
    "case",
    [case for case in SMALL if case.dtype is dtypes.FLOAT16 and libraries.supports(case)],
    ids=lambda case: case.id,
)
def test_ours_is_right_on_small_cases(case: Case) -> None:
    work = inputs.build(case)
    assert same_bits(libraries.ours(work).result(case), expected_result(work, by_reference=True))


def test_same_bits_tells_what_equality_does_not() -> None:
    zero, nan = np.array([0.0], np.float32), np.array([np.nan], np.float32)
    assert same_bits(nan, nan.copy())
    assert not same_bits(zero, -zero)
    assert not same_bits(zero, zero.reshape(1, 1))
    assert not same_bits(zero, zero.view(np.uint32))


# -------------------------------------------------------------------------------------------------- timing


class Slow:
    """A stopwatch with given times."""

    def __init__(self, seconds: list[float]) -> None:
        self.message = iter(seconds)

    def warm_up(self, sample_seconds: float) -> float:
        return sample_seconds

    def seconds(self) -> float:
        return next(self.message)


def test_pairs_and_their_quartiles() -> None:
    found = paired(Slow([1.0, 1.0, 2.0, 1.0, 1.0]), Slow([3.0, 1.0, 4.0, 4.0, 5.0]), 0.0)
    assert found == {"ours": 1.0, "seconds": 4.0, "ratio": {"low": 2.0, "median": 3.0, "high": 4.0}, "pairs": 5}
    assert figures([(1.0, 3.0)])["ratio"] == {"low": 3.0, "median": 3.0, "high": 3.0}


def test_a_stopwatch_runs_the_code() -> None:
    calls: list[int] = []
    watch = Stopwatch(Candidate("call(1)", {"call": calls.append}))
    watch.warm_up(0.0)
    assert watch.times == len(calls) == 1
    watch.warm_up(1e-3)
    before = len(calls)
    assert watch.seconds() > 0
    assert len(calls) == before + watch.times > 2


def test_limits_move_a_case_s_bytes() -> None:
    assert not no_limits()  # built together with the core
    buffers = limits.Limits(10_000, 5_000, 2)
    sweep = buffers.candidate(10_000, 5_000, streaming=True, threads=2)
    sweep.names["target"][:] = 0
    assert sweep.result(case_of("ReduceMax/all/uint64/1")) == 0x0101010101010101
    assert sweep.names["target"].all()
    assert (sweep.names["source"] == 1).all()
    large = limits.Limits(1 << 23, 1 << 22, 2).candidates(case_of("Max/2-inputs/int8/1e7"))
    assert {"1 thread", "2 threads"} <= set(large)
    with pytest.raises(UnsupportedError, match="too few bytes"):
        buffers.candidates(case_of("Max/2-inputs/int8/1e3"))


def no_limits() -> str:
    """Return the reason why the native helper is missing, or ""."""
    try:
        limits.Limits(64, 64, 1)
    except UnsupportedError as error:
        return str(error)
    return ""


# -------------------------------------------------------------------------------------------------- a run


# Fast, but wrong.
BROKEN = Library(
    "numpy",
    "import numpy as np",
    max=(Text("x0[:]"),),
    reduce_max=(Text("np.nextafter(data.max(), np.float32(np.inf))"),),
)
GONE = Library("gone", "import no_such_package_as_this")
HALF = Library("numpy", "import numpy as np", max=(Text("np.maximum(x0, x1)[1:]"),))


@pytest.fixture(scope="module")
def tiny_cases() -> list[Case]:
    expected = ["Max/2-inputs,out", "ReduceMax/all", "SegmentMax/1d,mean-10,int64"]
    return [case_of(f"{name}/float32/{size}") for name in expected for size in ("1e3", "1e5")]


@pytest.fixture(scope="module")
def written_run(tiny_cases: list[Case]) -> str:
    """Return a run with more libraries: two that are deliberately broken, and one that is not installed."""
    stages = []
    with pytest.MonkeyPatch.context() as patch:
        for name, library in {"broken": BROKEN, "gone": GONE, "half": HALF}.items():
            patch.setitem(LIBRARIES, name, library)
        result = session.run(
            tiny_cases,
            ["numpy", "broken", "gone", "half"],
            2,
            seconds=0.002,
            quick=True,
            done=lambda text, case: stages.append(text),
        )
    assert [case.id for case in tiny_cases] == [case["id"] for case in result["cases"]]
    assert any(text.startswith("6 of 6") for text in stages)
    return json.dumps(result, allow_nan=False)


@pytest.fixture
def tiny_run(written_run: str) -> dict[str, Any]:
    written: dict[str, Any] = json.loads(written_run)
    return written


def test_a_run_has_what_the_page_needs(tiny_run: dict[str, Any]) -> None:
    assert report.our_failures(tiny_run) == []
    assert tiny_run["format"] == report.FORMAT
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
            assert (broken["status"], broken["reason"]) == ("unsupported", "does not support the segment maximum")
            assert case["libraries"]["numpy: np.maximum.reduceat(data, starts, axis=0)"]["status"] == "other input"
        else:
            assert broken["status"] == "wrong"
            assert "elements differ" in broken["reason"]
            assert broken["seconds"] > 0
        assert gone["status"] == "not installed"
        if case["operator"] == "Max":
            assert case["libraries"]["half"]["reason"].endswith(f"returns float32 of shape ({case['size'] - 1},)")
    assert "not installed: no_such_package_as_this" in tiny_run["libraries"]["gone"]["reason"]
    assert {row[0] for row in report.wrong_libraries(tiny_run).rows} == {"broken", "half"}
    for ratio, words in ((0.5, "broken fast and wrong"), (2.0, "broken wrong")):
        for case in tiny_run["cases"]:
            if case["libraries"]["broken"]["status"] == "wrong":
                case["libraries"]["broken"]["ratio"]["median"] = ratio
        assert words in "\n".join(" ".join(row) for table in report.cases(tiny_run) for row in table.rows)


def test_cases_below_one_are_listed(tiny_run: dict[str, Any]) -> None:
    for case in tiny_run["cases"]:
        case["ratio"] = {"low": 2.0, "median": 2.5, "high": 3.0}
    case = tiny_run["cases"][0]
    case["ratio"] = {"low": 0.4, "median": 0.5, "high": 0.6}
    assert [row[0] for row in report.below_one(tiny_run).rows] == [case["id"]]
    assert report.headline(tiny_run) == (
        "In 6 cases, the median speedup over the fastest correct library is 2.50; 1 of 6 speedups are below 1.0"
    )
    assert case["id"] in report.markdown(tiny_run)
    (row,) = report.overview(tiny_run, "Max", report.FASTEST).rows
    assert list(row) == ["2-inputs,out", "0.50", "2.50"]
    assert "the median over the types" not in report.markdown(tiny_run)
    case["libraries"]["numpy"]["ratio"]["median"] = 4.0
    (row,) = report.libraries_by_size(tiny_run, "Max").rows
    assert list(row[:2]) == ["numpy", "4.00"]


def test_our_own_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch, tiny_cases: list[Case]) -> None:
    right = mo.reduce_max
    monkeypatch.setattr(mo, "reduce_max", lambda *arguments: -right(*arguments))
    wrong = session.run([tiny_cases[2]], ["numpy"], 1, seconds=0.001)
    reason = "mo.reduce_max(data, axes, False): 1 of 1 elements differ"
    assert report.our_failures(wrong) == [f"ReduceMax/all/float32/1e3: {reason}"]
    assert f"WRONG: {reason}" in str(report.cases(wrong))


def test_a_result_that_is_wrong_after_timing_is_seen(monkeypatch: pytest.MonkeyPatch, tiny_cases: list[Case]) -> None:
    right, calls = mo.reduce_max, iter(range(10**9))
    monkeypatch.setattr(
        mo, "reduce_max", lambda *arguments: right(*arguments) if next(calls) < 3 else right(*arguments) + 1
    )
    wrong = session.run([tiny_cases[2]], ["numpy"], 1, seconds=0.001)
    assert report.our_failures(wrong) == ["ReduceMax/all/float32/1e3: correct at first, wrong after timing"]


def test_a_library_that_is_far_behind_is_left_out(monkeypatch: pytest.MonkeyPatch, tiny_cases: list[Case]) -> None:
    slow = Library("numpy", "import numpy as np, time", max=(Text("(time.sleep(0.002), np.maximum(x0, x1))[1]"),))
    monkeypatch.setitem(LIBRARIES, "slow", slow)
    first, second = session.run(tiny_cases[:2], ["numpy", "slow"], 1, seconds=0.001)["cases"]
    assert (first["libraries"]["slow"]["status"], first["fastest"]) == ("correct", "numpy")
    assert second["libraries"]["slow"]["reason"].startswith("skipped: ")


def test_an_interrupted_run_keeps_what_there_is(monkeypatch: pytest.MonkeyPatch, tiny_cases: list[Case]) -> None:
    kept: list[int] = []
    monkeypatch.setattr(session, "KEEP_EVERY_SECONDS", 0.0)

    def done(text: str, case: dict[str, Any] | None) -> None:
        if text.startswith("3 of 6"):
            raise KeyboardInterrupt

    found = session.run(
        tiny_cases, ["numpy"], 1, seconds=0.001, done=done, keep=lambda run: kept.append(len(run["cases"]))
    )
    assert [case["id"] for case in found["cases"]] == [case.id for case in tiny_cases[:2]]
    assert found["interrupted"] == "after 2 of 6 cases"
    assert kept == [1, 2]


def test_pictures_have_a_line_for_each_library_that_is_right(tiny_run: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    drawn = page.pictures(tiny_run)
    assert {name: set(re.findall(r">([A-Za-z]+)</text>", svg)) for name, svg in drawn.items()} == {
        "peers": {"Max", "ReduceMax", "SegmentMax", "elements", "numpy"},
        "limit": {"Max", "ReduceMax", "SegmentMax", "elements"},
    }
    for svg in drawn.values():
        assert svg.count(page.STYLE) == 1
        assert page.BLACK not in svg
    for case in tiny_run["cases"]:
        case["libraries"]["numpy"]["status"] = "wrong"
        case["limit"] = {}
    assert page.pictures(tiny_run) == {}


def test_text_follows_the_color_scheme_and_is_legible() -> None:
    def luminance(color: str) -> float:
        parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))

    light, dark = re.findall("#[0-9a-f]{6}", page.STYLE)
    assert 1.05 / (luminance(light) + 0.05) > 4.5
    assert (luminance(dark) + 0.05) / (luminance("#1e2129") + 0.05) > 4.5  # the dark pages of the site


def test_names_of_families_are_explained() -> None:
    parts = {part for case in grid.cases(types=[dtypes.FLOAT32]) for part in case.family.split(",")}
    assert parts == grid.MEANINGS.keys()


def test_the_page_needs_nothing_else(tiny_run: dict[str, Any]) -> None:
    pytest.importorskip("matplotlib")
    text = page.html(tiny_run)
    # Two cases of a family form a line. Only the larger case has a share of the limit. Two plots show all families.
    assert text.count("<svg") == 5
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
print(json.dumps(session.run(cases, list(libraries.LIBRARIES), 1, seconds=0.001)))
"""


@pytest.fixture(scope="module")
def all_libraries() -> dict[str, Any]:
    """Run in a separate process, because threads and warnings of some libraries would affect other tests."""
    found: dict[str, Any] = json.loads(programs.run(ALL_LIBRARIES, **environment.quiet(1)))
    return found


@pytest.mark.parametrize("name", libraries.LIBRARIES)
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
        (["--types", "all,float8", "--list"], "unknown type 'float8'"),
        (["--libraries", "numpy,cupy"], "numpy, torch"),
        (["--only", "no such case"], "--list"),
        (["--only", "", "--list"], "--only: expected a part of a case id, got an empty string"),
        (["--list", "--overwrite"], "--overwrite has no effect with --list"),
        (["--list", "--from", "run.json"], "--list has no effect with --from"),
        (["--sizes", "1000"], "1e3, 1e5"),
        (["--from", "run.json", "--only", "Max"], "--only has no effect with --from"),
        (["--from", "run.json", "Max"], "OP has no effect with --from"),
        (["--list", "--threads", "2"], "--threads has no effect with --list"),
        (["--list", "--json", "run.json"], "--json has no effect with --list"),
        (["--compare", ".", "--libraries", "numpy"], "--libraries has no effect with --compare"),
    ],
)
def test_names_and_options_without_an_effect_are_usage_errors(
    command: Callable[..., Any], words: list[str], text: str
) -> None:
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
    path.write_text(report.as_text(tiny_run))
    assert report.read(path) == json.loads(path.read_text()) == tiny_run
    lines = path.read_text().splitlines()
    assert [line for line in lines if line.startswith('{"id":')] == [
        line for line in lines if any(f'"{case["id"]}"' in line for case in tiny_run["cases"])
    ]
    assert len(lines) < len(tiny_run["cases"]) + 60


def test_figures_have_no_more_digits_than_a_clock_tells(tiny_run: dict[str, Any]) -> None:
    written = re.findall(r"\d+\.\d+(?:e-\d+)?", report.as_text(tiny_run | {"seconds": 0, "machine": {}}))
    assert len(written) > 50
    assert [text for text in written if float(f"{float(text):.7g}") != float(text)] == []


STRANGE = {
    "an empty object": ("{}", "expected a run of maxops bench in format 2"),
    "another format": ('{"format": 0}', "expected a run of maxops bench in format 2"),
    "a list": ("[1]", "expected a run of maxops bench in format 2"),
    "no fields": ('{"format": 2}', "has no began"),
    "half a file": ('{"format": 2, "cases": [', "is not valid JSON"),
    "bytes": ("\udcff", "is not valid JSON"),
    "a tower": ("[" * 100_000, "is not valid JSON"),
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_file_without_a_run_is_an_error(command: Callable[..., Any], tmp_path: Path, name: str) -> None:
    file, (content, text) = tmp_path / "other.json", STRANGE[name]
    file.write_text(content, encoding="utf-8", errors="surrogateescape")
    error = command("--from", str(file)).exception
    assert isinstance(error, report.BenchFileError)
    expected = {
        "has no began": f"{file} {text}; was the file written by maxops bench?",
        "is not valid JSON": f"{file} {text}: ",
    }.get(text, f"{file}: {text}; run the benchmark again")
    assert str(error).startswith(expected) if expected.endswith(": ") else str(error) == expected


@pytest.mark.parametrize(
    ("cases", "text"),
    [({}, "cases must be a list"), ([7], "cases[0] must be an object"), ([{}], "cases[0] has no bytes_read")],
)
def test_a_run_whose_cases_are_no_cases_is_an_error(
    tiny_run: dict[str, Any], tmp_path: Path, cases: Any, text: str
) -> None:
    (tmp_path / "run.json").write_text(report.as_text(tiny_run | {"cases": cases}))
    with pytest.raises(report.BenchFileError, match=re.escape(text)):
        report.read(tmp_path / "run.json")


@pytest.mark.parametrize("mode", [None, 0o600], ids=["missing", "not-executable"])
def test_without_git_there_is_no_commit(mode: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    if mode is not None:
        (tmp_path / "git").touch(mode)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit(tmp_path / "src/maxops") == ""


# -------------------------------------------------------------------------------------------------- compare


BROKEN_MAXOPS = """
_right = maximum
def maximum(*args, **options):
    return -_right(*args, **options)
def reduce_max(*args, **options):
    raise TypeError("not in this version")
"""


def other_maxops(folder: Path, more: str = "") -> Path:
    """Make a second copy of the package that runs `more` on import."""
    package = Path(mo.__file__).parent
    shutil.copytree(package, folder / "maxops", ignore=shutil.ignore_patterns("__pycache__"))
    with (folder / "maxops" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(more)
    return folder


def compared(other: Path, *only: str) -> dict[str, Any]:
    return compare.run([case_of(each) for each in only], other, 1, seconds=0.01)


def test_two_installs_are_timed_on_the_same_inputs(tmp_path: Path) -> None:
    names = ["Max/2-inputs,out/float32/1e3", "SegmentMax/numpy-integer/int8/1e2", "ReduceMax/operator/bfloat16/1"]
    result = compared(other_maxops(tmp_path, "print('no answer', flush=True)\n"), *names)
    assert [case["status"] for case in result["cases"]] == ["timed"] * 3
    assert result["this"]["folder"] == str(Path(mo.__file__).resolve().parent)
    assert result["other"]["folder"] == str(tmp_path / "maxops")
    families, *_ = compare.tables(result)
    assert [row[:3] for row in families.rows][:3] == [
        ("Max", "2-inputs,out", "1"), ("SegmentMax", "numpy-integer", "1"), ("ReduceMax", "operator", "1"),
    ]  # fmt: skip
    assert not compare.different(result)


def test_other_bits_and_other_errors_are_no_figures(tmp_path: Path) -> None:
    other = other_maxops(tmp_path, BROKEN_MAXOPS)
    result = compared(other, "Max/2-inputs/float32/1", "ReduceMax/all/int8/1")
    assert [case["status"] for case in result["cases"]] == [
        "different bits",
        "error in other: TypeError: not in this version",
    ]
    assert compare.different(result) == ["Max/2-inputs/float32/1"]
    assert [table.title for table in compare.tables(result)][1:] == ["Not timed"]


def test_what_differs_is_measured_on_new_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {1.0: 1, 0.96: 1, 1.04: 1, 0.5: 3, 2.0: 3}
    asked: list[int] = []
    ask = compare.Install.ask

    def listen(install: compare.Install, name: str, *arguments: Any) -> Any:
        asked.extend(arguments[1:])
        return ask(install, name, *arguments)

    # the first ratio decides; of three, the median is used
    ratios = iter([each for ratio, arrays in measured.items() for each in (ratio, 3.0, 0.25)[:arrays]])
    monkeypatch.setattr(compare.Install, "ask", listen)
    monkeypatch.setattr(compare, "paired", lambda ours, theirs, seconds: figures([(1.0, next(ratios))]))
    names = [f"Max/2-inputs/{dtype}/1" for dtype in ("float32", "float64", "int8", "int16", "int32")]
    cases = compared(other_maxops(tmp_path), *names)["cases"]
    assert [(case["status"], case["ratio"]["median"]) for case in cases] == [("timed", ratio) for ratio in measured]
    assert asked == [number for arrays in measured.values() for number in range(arrays) for _ in "ab"]


def test_cases_below_are_listed() -> None:
    cases = [
        {"id": f"Max/a/int8/{number}", "operator": "Max", "family": "a", "status": "timed",
         "ratio": {"low": ratio, "median": ratio, "high": ratio}}
        for number, ratio in enumerate((1.2, 0.94, 0.95, 0.5))
    ]  # fmt: skip
    cases.append(cases[0] | {"id": "Max/all/int8/1", "family": "all"})
    families, below = compare.tables({"cases": cases})
    assert list(families.rows) == [
        ("Max", "a", "4", "0.94", "0.50", "2"), ("Max", "all", "1", "1.20", "1.20", "0"),
        ("Max", "all", "5", "0.95", "0.50", "2"),
    ]  # fmt: skip
    assert [row[0] for row in below.rows] == ["Max/a/int8/3", "Max/a/int8/1"]


def test_the_same_maxops_is_no_comparison() -> None:
    with pytest.raises(compare.CompareError, match="is the same installation as this one"):
        compared(Path(mo.__file__).parents[1], "Max/2-inputs/float32/1")


@pytest.mark.parametrize(
    ("program", "message"), [("", "Permission denied"), ("#!/bin/sh\nexit 3\n", "exited with code 3")]
)
def test_what_is_no_python_with_maxops_is_an_error(tmp_path: Path, program: str, message: str) -> None:
    python = tmp_path / "python"
    python.write_text(program)
    python.chmod(0o755 if program else 0o644)
    with pytest.raises(compare.CompareError, match=message):
        compared(python, "Max/2-inputs/float32/1")


def test_a_folder_without_maxops_is_no_comparison(tmp_path: Path) -> None:
    # Python continues with the next folder of its path, which contains the package
    with pytest.raises(
        compare.CompareError, match=r"contains no maxops package; Python imported .* instead|exited with code 1"
    ):
        compared(tmp_path, "Max/2-inputs/float32/1")


def test_a_crash_ends_the_run_and_keeps_what_there_is(tmp_path: Path) -> None:
    crash = "\nimport os\ndef reduce_max(*args, **options):\n    os._exit(9)\n"
    result = compared(other_maxops(tmp_path, crash), "Max/2-inputs/float32/1", "ReduceMax/all/int8/1")
    assert [case["status"] for case in result["cases"]] == ["timed"]
    assert result["interrupted"].startswith("after 1 of 2 cases: --compare: ")
    assert result["interrupted"].endswith("exited with code 9; see above")


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
    assert "--markdown has no effect with --compare" in " ".join(result.output.replace("│", "").split())
