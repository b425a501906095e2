"""Runs tests on a copy of the tree, in a process of its own that is forked, and says what noticed something."""

from __future__ import annotations

import importlib
import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY = 12 << 30
SECONDS = 15.0, 60.0  # of tests for a mutant, the quickest of each function first; the more if a rate needs them
PATIENCE = 60.0  # beyond five times what the tests take without a mutant
# Without what an editable install puts before PYTHONPATH.
NO_EDITABLE = """import sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
"""
# What takes long to import, and is imported once: no backend starts before the fork.
FRAMEWORKS = (
    *("numpy", "pytest", "hypothesis", "onnx", "torch", "jax", "dask.array", "xarray", "pandas", "polars", "pyarrow"),
    *("scipy.sparse", "typer", "rich"),
)


@dataclass(frozen=True)
class Mutant:
    """One change."""

    file: str  # from the root
    line: int
    function: str
    text: str
    kind: str
    change: str
    lines: range = range(0)  # of its statement
    source: str = ""  # of Python: the file with the change
    number: int = 0  # of native code: its switch, and its place's first
    first: int = 0


@dataclass
class Baseline:
    """What tests do without a mutant: the seconds of each, and what reaches each mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    reached: dict[str, list[str]] = field(default_factory=dict)  # by file and line
    frameworks: list[str] = field(default_factory=list)


class Watch(Protocol):
    """What notes which mutants a test reaches."""

    def start(self) -> None:
        """Before maxops is imported."""

    def before(self, test: str) -> None:
        """Before each test."""

    def after(self, test: str) -> None:
        """After it."""

    def found(self) -> dict[str, list[str]]:
        """The tests by what they reach."""


class Lines:
    """Notes the lines of some Python sources of a tree."""

    def __init__(self, tree: Path, files: Sequence[str]) -> None:
        self.paths = {file: str(tree / file) for file in files}

    def start(self) -> None:
        """Count from here on."""
        import coverage  # noqa: PLC0415  (only this needs it)

        self.counted = coverage.Coverage(
            data_file=None, config_file=False, include=[*self.paths.values()], messages=False
        )
        self.counted.start()

    def before(self, test: str) -> None:
        """The lines from here on are this test's."""
        self.counted.switch_context(test)

    def after(self, test: str) -> None:
        """The next ones are nobody's."""
        self.counted.switch_context("")

    def found(self) -> dict[str, list[str]]:
        """The tests by file and line."""
        self.counted.stop()
        return {
            f"{file}:{line}": [each for each in contexts if each]
            for file, path in self.paths.items()
            for line, contexts in self.counted.get_data().contexts_by_lineno(path).items()
        }


# ---------------------------------------------------------------------- trees


def make_tree(folder: Path, libraries: Path) -> Path:
    """A copy of the tree with the compiled modules, which comes before what is installed."""
    for name in ("native", "src", "tests", "docs", "examples", "conformance", "proofs", ".ci", "third_party"):
        if (ROOT / name).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(ROOT / name, folder / name, dirs_exist_ok=True, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy2(path, folder / path.name)
    for path in (*libraries.glob("_*.so"), *libraries.glob("_version.py")):
        shutil.copy2(path, folder / "src" / "maxops" / path.name)
    (folder / "site").mkdir(exist_ok=True)
    (folder / "site" / "sitecustomize.py").write_text(NO_EDITABLE, encoding="utf-8")
    return folder


def installed() -> Path:
    """Where the installed package has its compiled modules."""
    done = subprocess.run(
        [sys.executable, "-c", "from maxops import _native; print(_native.__file__)"],
        check=True, capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    return Path(done.stdout.strip()).parent


def write(tree: Path, file: str, source: str) -> None:
    """A Python source in the place of the tree's, and nothing that was compiled of that."""
    path = tree / file
    path.write_text(source, encoding="utf-8")
    for each in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        each.unlink()


# ---------------------------------------------------------------------- a process


def processor_seconds() -> float:
    """What this process and those that it waited for have taken."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Plugin:
    """A plugin of pytest: runs the tests that are named in this order, and notes what fails and the seconds of each.

    They are the processor's, which do not depend on what else it does; of what waits, a quarter of the clock's.
    """

    def __init__(self, order: Sequence[str], watch: Watch | None) -> None:
        self.order, self.watch = order, watch
        self.baseline = Baseline()
        self.began = 0.0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """The tests that are named; all if none is."""
        if self.order:
            by_name = {item.nodeid: item for item in items}
            items[:] = [by_name[name] for name in self.order if name in by_name]

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what failed, and the clock's seconds."""
        if report.failed:
            self.baseline.failed.append(report.nodeid)
        seconds = self.baseline.seconds
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration / 4

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Note what it reaches, and the processor's seconds."""
        self.began = processor_seconds()
        if self.watch is not None:
            self.watch.before(item.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Note it no more."""
        seconds = self.baseline.seconds
        seconds[nodeid] = max(processor_seconds() - self.began, seconds.get(nodeid, 0.0))
        if self.watch is not None:
            self.watch.after(nodeid)


def run_tests(tree: Path, files: Sequence[str], order: Sequence[str], watch: Watch | None) -> int:
    """In a child: what pytest ends with; what it found is in the tree's found.json."""
    paths = [str(tree / name) for name in ("site", "src", "tests")]
    sys.path[:0] = paths
    sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "CI": "true", "MAXOPS_TESTS_MAY_MISS": "1"}
    if watch is None:
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    else:
        watch.start()
    import pytest  # noqa: PLC0415

    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-o",
        "addopts=",
        "-m",
        "not exhaustive and not release",
    ]
    ignored = ("os.fork() was called:RuntimeWarning", ":pytest.PytestAssertRewriteWarning")
    options += ["-W", "error", *(f"-Wignore:{each}" for each in ignored), "--rootdir", str(tree), "--tb=short"]
    plugin = Plugin(order, watch)
    code = pytest.main([*options, *(["-x"] if watch is None else []), *files], plugins=[plugin])
    found = plugin.baseline
    if watch is not None:
        found.reached = watch.found()
        found.frameworks = [name for name in FRAMEWORKS if name in sys.modules]
    (tree / "found.json").write_text(json.dumps(vars(found)), encoding="utf-8")
    return int(code)


def fork(tree: Path, act: Callable[[], int]) -> int:
    """A process of its own group that does this in a tree; its id."""
    (tree / "found.json").unlink(missing_ok=True)
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 99
    try:
        os.setsid()
        os.dup2(os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
        os.dup2(1, 2)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(tree)
        os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))  # tests change it
        code = act()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - a child that fails has noticed something
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def group_seconds(pid: int) -> float:
    """What the processes of a child's group have taken of the processor."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == pid:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def end(pid: int) -> None:
    """End what is left of a child's group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def finished(tree: Path) -> Baseline:
    """What a child wrote; nothing if it did not come to that."""
    path = tree / "found.json"
    if not path.exists():
        return Baseline()
    return Baseline(**json.loads(path.read_text(encoding="utf-8")))


# ---------------------------------------------------------------------- mutants


class Runner:
    """Tests of some files, on trees that each run one mutant at a time."""

    def __init__(self, trees: Sequence[Path], files: Sequence[str], watch: Watch, more: Sequence[str] = ()) -> None:
        self.trees, self.files, self.more = trees, files, more
        self.killers: Counter[str] = Counter()
        self.found = self.alone(lambda: run_tests(trees[0], files, (), watch))
        for name in self.found.frameworks:
            importlib.import_module(name)
        self.leave_out(self.found.failed)
        # Once more as mutants have it: what fails then, by chance or by the order, says nothing of a mutant.
        while True:
            order = self.ordered(self.found.seconds)
            again = self.alone(lambda order=order: run_tests(trees[0], self.files_of(order), order, None))  # type: ignore[misc]
            if not again.failed:
                break
            self.leave_out(again.failed)
        self.found.seconds = again.seconds

    def noticed_by(self, tree: Path, order: Sequence[str]) -> int:
        """In a child: the tests, then the other command if they notice nothing; what the first to notice ends with."""
        code = run_tests(tree, self.files_of(order), order, None)
        if code == 0 and self.more:
            code = subprocess.run([sys.executable, *self.more], check=False).returncode
        return code

    def alone(self, act: Callable[[], int]) -> Baseline:
        """Run tests without a mutant."""
        pid = fork(self.trees[0], act)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        end(pid)
        if code not in (0, 1):
            raise RuntimeError(f"the tests ended with {code}:\n{(self.trees[0] / 'log.txt').read_text()[-6000:]}")
        return finished(self.trees[0])

    def leave_out(self, failed: Sequence[str]) -> None:
        """Leave out tests that fail without a mutant."""
        for name in sorted(set(failed)):
            print(f"  left out, since it fails without a mutant: {name}", flush=True)
            self.found.seconds.pop(name, None)

    @staticmethod
    def files_of(order: Sequence[str]) -> list[str]:
        """The files of tests."""
        return list(dict.fromkeys(name.partition("::")[0] for name in order))

    def ordered(self, tests: Iterator[str] | Mapping[str, Any] | set[str], limit: float = math.inf) -> list[str]:
        """Those that killed before, then the quickest of each function, then the next of each, to a limit of time."""
        seconds = self.found.seconds
        rounds: defaultdict[str, int] = defaultdict(int)
        keyed = []
        for name in sorted(tests, key=lambda each: (seconds[each], each)):
            rounds[name.partition("[")[0]] += 1
            keyed.append((-self.killers[name], rounds[name.partition("[")[0]], seconds[name], name))
        order: list[str] = []
        total = 0.0
        for *_, took, name in sorted(keyed):
            total += took
            if order and total > limit:
                break
            order.append(name)
        return order

    def tests_of(self, mutant: Mutant, limit: float) -> list[str]:
        """The tests that reach a mutant; all of them where none is known to, as in processes that tests start."""
        keys = [f"{mutant.file}:{line}" for line in mutant.lines]
        reached = {name for key in keys for name in self.found.reached.get(key, ()) if name in self.found.seconds}
        return self.ordered(reached or self.found.seconds, limit)

    def fates(
        self, mutants: Sequence[Mutant], start: Callable[[Path, Mutant], None], limit: float
    ) -> dict[Mutant, str]:
        """What becomes of each within so many seconds of tests: killed (and by what), or survived."""
        todo, fates = list(mutants), {}
        free, running = list(self.trees), dict[int, tuple[Mutant, Path, float, float]]()
        late = set[int]()
        while todo or running:
            if todo and free:
                mutant, tree = todo.pop(0), free.pop()
                order = self.tests_of(mutant, limit)
                start(tree, mutant)
                pid = fork(tree, lambda tree=tree, order=order: self.noticed_by(tree, order))  # type: ignore[misc]
                expected = sum(self.found.seconds[name] for name in order)
                running[pid] = mutant, tree, time.monotonic(), PATIENCE * (10 if self.more else 1) + 5 * expected
                continue
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                for child in running.keys() - late:
                    *_, began, most = running[child]
                    took = time.monotonic() - began
                    # where others take the processor, a child has more time
                    if took > 3 * most or (took > most and group_seconds(child) > most / 2):
                        end(child)
                        late.add(child)
                time.sleep(0.02)
                continue
            mutant, tree, *_ = running.pop(pid)
            end(pid)
            free.append(tree)
            noticed = finished(tree).failed[:1]
            self.killers.update(noticed)
            fates[mutant] = _fate(os.waitstatus_to_exitcode(status), pid in late, noticed)
            late.discard(pid)
            if "pytest's 5" in fates[mutant]:
                raise RuntimeError(f"{mutant} ran no tests")
        return fates


def _fate(code: int, late: bool, noticed: Sequence[str]) -> str:
    if late:
        return "killed: without end"
    if code < 0:
        return f"killed: {signal.Signals(-code).name}"
    how = noticed[0] if noticed else f"pytest's {code}"
    return "survived" if code == 0 else f"killed: {how}"
