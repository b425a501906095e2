"""Environment variables: the instruction set, the number of threads, and skipped tests in CI."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import maxops as mo
from maxops import _native
from maxops.engines import native
from maxops.engines.native import _configure, usable_cpus
from maxops.errors import ConfigurationError

REPORT = """
import numpy, maxops
from maxops import _native
a = numpy.frombuffer(numpy.random.default_rng(0).bytes(8000), numpy.float32)
b = maxops.maximum(a, a[::-1]), maxops.reduce_max(a.reshape(40, 50), (1,))
print(_native.isa(), maxops.get_num_threads(), hash(b[0].tobytes() + b[1].tobytes()))
"""


def python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MAXOPS_")}
    environment.pop("OMP_NUM_THREADS", None)
    environment |= {"PYTHONHASHSEED": "0"} | variables
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def report(**variables: str) -> tuple[str, int, str]:
    done = python(REPORT, **variables)
    assert done.returncode == 0, done.stderr
    isa, threads, digest = done.stdout.split()
    return isa, int(threads), digest


@pytest.fixture
def configure() -> Iterator[Callable[..., tuple[str, int]]]:
    """Yield a function that reads the variables as the import does. Restore the settings afterwards."""
    before = _native.isa(), mo.get_num_threads(), mo.memory_info().limit

    def configured(**variables: str) -> tuple[str, int]:
        _configure(variables)
        return _native.isa(), mo.get_num_threads()

    yield configured
    assert _native.use_isa(before[0])
    mo.set_num_threads(before[1])
    _native.set_cache_limit(before[2])


def test_an_import_reads_the_variables() -> None:
    """Test that an import reads the variables, and that they do not change the bits of results."""
    best, worst = _native.isas()[0], _native.isas()[-1]
    isa, threads, digest = report()
    assert (isa, threads) == (best, usable_cpus())
    assert report(MAXOPS_ISA=worst, MAXOPS_NUM_THREADS="7", OMP_NUM_THREADS="5") == (worst, 7, digest)
    assert report(OMP_NUM_THREADS="4,2,1") == (best, 4, digest)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("MAXOPS_ISA", "avx1024", f"one of {', '.join(_native.isas())}"),
        ("MAXOPS_NUM_THREADS", "two", "an integer from 1 to 1024"),
    ],
)
def test_an_import_with_a_wrong_variable_is_an_error(name: str, text: str, expected: str) -> None:
    done = python("import maxops", **{name: text})
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last == f"maxops.errors.ConfigurationError: {name} must be {expected}, got {text!r}"


def test_baseline_is_always_there_and_last() -> None:
    assert _native.isas()[-1] == "baseline"
    assert len(set(_native.isas())) == len(_native.isas())


def test_instruction_sets_by_name(configure: Callable[..., tuple[str, int]]) -> None:
    for isa in _native.isas():
        assert configure(MAXOPS_ISA=isa)[0] == isa
        assert configure(MAXOPS_ISA="")[0] == isa  # an empty value selects no instruction set


@pytest.mark.parametrize("isa", ["avx1024", "BASELINE", "x86-64", " baseline", "baseline ", "0"])
def test_an_unknown_instruction_set_is_an_error(isa: str, configure: Callable[..., tuple[str, int]]) -> None:
    before = _native.isa()
    message = f"MAXOPS_ISA must be one of {', '.join(_native.isas())}, got {isa!r}"
    with pytest.raises(ConfigurationError, match=f"^{re.escape(message)}$"):
        configure(MAXOPS_ISA=isa)
    assert not _native.use_isa(isa)
    assert not _native.use_isa("")
    assert _native.isa() == before


@pytest.mark.parametrize("count", [1, 2, 7, 1024])
def test_number_of_threads(count: int, configure: Callable[..., tuple[str, int]]) -> None:
    assert configure(MAXOPS_NUM_THREADS=str(count))[1] == count


# int() accepts most of these.
NO_NUMBERS = ["1_0", " 2", "2 ", "2\n", "+2", "-1", "0x2", "1e3", "1.5", "1,2", "٢", "²", "9" * 5000]


@pytest.mark.parametrize("text", NO_NUMBERS, ids=lambda text: ascii(text[:12]))
@pytest.mark.parametrize("name", ["MAXOPS_NUM_THREADS", "MAXOPS_OUTPUT_CACHE"])
def test_what_is_no_number_in_digits_is_an_error(
    name: str, text: str, configure: Callable[..., tuple[str, int]]
) -> None:
    """Test that text other than digits raises an error of maxops."""
    threads = mo.get_num_threads()
    if name == "MAXOPS_NUM_THREADS":
        wrong, expected = [text, "0", "1025"], "an integer from 1 to 1024, got "
    else:
        wrong, expected = [text, f"{text}k", f"{text}M"], ""
    for given in wrong:
        with pytest.raises(ConfigurationError, match=f"^{name} must be {expected}"):
            configure(**{name: given})
    assert mo.get_num_threads() == threads


def test_the_default_is_the_cpus_that_the_process_may_use(configure: Callable[..., tuple[str, int]]) -> None:
    for variables in ({}, {"MAXOPS_NUM_THREADS": ""}, {"OMP_NUM_THREADS": ""}):
        assert configure(**variables)[1] == usable_cpus()
    assert 1 <= usable_cpus() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        *(
            (None, 8),
            ("", 8),
            ("max 100000\n", 8),
            ("100000 100000\n", 1),
            ("200000 50000\n", 4),
            ("10000 100000\n", 1),
        ),
        *(("240000 100000\n", 2), ("360000 100000\n", 4), ("1600000 100000\n", 8)),
    ],
)
@pytest.mark.parametrize("system", ["with affinities", "without"])
def test_a_quota_of_a_container_limits_the_cpus(
    system: str, quota: str | None, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str, **_: str) -> io.StringIO:
        assert path == "/sys/fs/cgroup/cpu.max"
        if quota is None:
            raise FileNotFoundError(path)
        return io.StringIO(quota)

    monkeypatch.setattr(native, "open", opened, raising=False)
    if system == "without":
        monkeypatch.delattr(os, "sched_getaffinity", raising=False)
        monkeypatch.setattr(os, "cpu_count", lambda: None)
        assert usable_cpus() == 1
        monkeypatch.setattr(os, "cpu_count", lambda: 8)
    else:
        monkeypatch.setattr(os, "sched_getaffinity", {0: set(range(8))}.get, raising=False)  # 0: this process
    assert usable_cpus() == expected


@pytest.mark.parametrize(
    ("text", "count"), [("1", 1), ("5", 5), (" 3 ", 3), ("4,2,1", 4), ("2000", 1024), ("9" * 20, 1024)]
)
def test_openmp_number_where_ours_is_not_set(text: str, count: int, configure: Callable[..., tuple[str, int]]) -> None:
    assert configure(OMP_NUM_THREADS=text)[1] == count
    assert configure(OMP_NUM_THREADS=text, MAXOPS_NUM_THREADS="")[1] == count
    assert configure(OMP_NUM_THREADS=text, MAXOPS_NUM_THREADS="7")[1] == 7


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ",4", " ", "9" * 5000], ids=lambda text: ascii(text[:12]))
def test_an_openmp_number_that_is_none_is_a_warning(text: str, configure: Callable[..., tuple[str, int]]) -> None:
    with pytest.warns(RuntimeWarning, match="^OMP_NUM_THREADS=.* is not a number of threads"):
        assert configure(OMP_NUM_THREADS=text)[1] == min(usable_cpus(), 1024)
    assert configure(OMP_NUM_THREADS=text, MAXOPS_NUM_THREADS="2")[1] == 2  # the second variable has priority


@pytest.mark.parametrize(("memory", "limit"), [(1 << 24, 1 << 20), (1 << 34, 1 << 30), (1 << 40, 1 << 30)])
def test_the_default_cache_is_a_part_of_the_memory(
    memory: int, limit: int, configure: Callable[..., tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "LARGEST_OUTPUT", memory)
    monkeypatch.setattr(_native, "set_largest_output", lambda _: None)
    configure()
    assert mo.memory_info().limit == limit


def test_a_build_for_other_machines_is_an_error_on_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "isas", list)
    with pytest.raises(ImportError, match="not built for any instruction set that this machine supports"):
        _configure({})


def test_one_cpu_is_one_thread() -> None:
    cpu = min(os.sched_getaffinity(0))
    done = python(f"import os; os.sched_setaffinity(0, [{cpu}]); import maxops; print(maxops.get_num_threads())")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_the_environment_is_read_once() -> None:
    before = mo.get_num_threads()
    os.environ["MAXOPS_NUM_THREADS"] = str(before + 1)
    try:
        assert mo.get_num_threads() == before
    finally:
        del os.environ["MAXOPS_NUM_THREADS"]


# ------------------------------------------------------------------------------------------ skipped tests in CI

SKIPPED = """
import pytest
def test_with_a_package():
    pytest.importorskip("no_such_package_anywhere")
"""
SKIPPED_MODULE = """
import pytest
pytest.importorskip("no_such_package_anywhere")
def test_never_collected():
    raise AssertionError
"""
SKIPPED_FOR_A_REASON = """
import pytest
def test_of_another_system():
    pytest.skip("only on another system")
"""


@pytest.mark.parametrize(
    ("in_ci", "code", "summary"),
    [("true", 1, "1 failed, 1 skipped, 1 error"), ("", 0, "3 skipped")],
    ids=["in_ci", "here"],
)
def test_a_skip_for_a_missing_package_fails_in_ci(tmp_path: Path, in_ci: str, code: int, summary: str) -> None:
    """Test that only skips for a missing package fail in CI."""
    for name, text in (("a", SKIPPED), ("b", SKIPPED_MODULE), ("c", SKIPPED_FOR_A_REASON)):
        (tmp_path / f"test_{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "helpers").mkdir()
    for name in ("conftest.py", "helpers/instruction_sets.py"):
        (tmp_path / name).write_bytes((Path(__file__).resolve().parents[1] / name).read_bytes())
    options = ["-q", "-ra", "--continue-on-collection-errors", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "."]
    own = {name: value for name, value in os.environ.items() if not name.startswith("MAXOPS_TESTS_")}
    environment = own | {"CI": in_ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert summary in done.stdout
    assert done.returncode == code, done.stdout
    assert done.stdout.count("skipped, which CI does not allow") >= 2 * bool(in_ci)
    assert in_ci or "SKIPPED [2] tests: not installed: no_such_package_anywhere\n" in done.stdout
