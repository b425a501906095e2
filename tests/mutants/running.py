"""Runs the tests for each mutant on a copy of the tree, in a forked process, and reports which test detects it.

pytest collects the tests once (`Server`). For each mutant, the process with the collected tests forks, and the child
applies the mutant: it replaces the code of Python functions, or sets the switch of a native module. Code that runs on
import cannot be replaced afterwards, so the tests are collected again for such mutants (`run_tests`).
"""

from __future__ import annotations

import gc
import importlib
import json
import math
import os
import random
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .putting import SWITCH, put_in, switch_on
from .watching import Watch

ROOT = Path(__file__).resolve().parent.parent.parent
MEMORY = 12 << 30
# Seconds of tests per mutant. Tests that killed other mutants, and the fastest test of each function, come first. If
# the rate of a file is too low, its mutants get the next limit.
SECONDS = 3.0, 15.0, 60.0
CASES = 60  # random cases of each test function
COLLECTING = 1.0  # estimated seconds to collect a test file, if it is collected for each mutant
PATIENCE = 60.0  # seconds in addition to five times the time without a mutant
# Removes the import hooks of editable installs, which would take precedence over PYTHONPATH.
NO_EDITABLE = """import sys
sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
"""
# Packages that are slow to import. They are imported once, before the fork, which starts no backend.
FRAMEWORKS = (
    *("numpy", "pytest", "hypothesis", "onnx", "torch", "jax", "dask.array", "xarray", "pandas", "polars", "pyarrow"),
    *("scipy.sparse", "typer", "rich"),
)


@dataclass(frozen=True)
class Mutant:
    file: str  # relative to the root
    line: int
    function: str
    text: str
    kind: str
    change: str
    lines: range = range(0)  # the lines of its statement
    source: str = ""  # Python: the text of the file with the change
    number: int = 0  # native code: the number of the mutant, and of the first one of its place
    first: int = 0

    def places(self) -> list[str]:
        """Return the keys that a watch records if a test reaches the mutant."""
        return [str(self.number)] if self.number else [f"{self.file}:{line}" for line in self.lines]


@dataclass
class Baseline:
    """A test run without a mutant: the seconds of each test, the failures, and the tests that reach each mutant."""

    seconds: dict[str, float] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    reached: dict[str, list[str]] = field(default_factory=dict)  # by the keys of mutants; "" means during import


# ---------------------------------------------------------------------- trees


def make_tree(folder: Path, libraries: Path) -> Path:
    """Make a copy of the tree with the compiled modules, which takes precedence over the installed package."""
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
    """Return the folder of the installed package, which contains the compiled modules."""
    done = subprocess.run(
        [sys.executable, "-c", "from maxops import _native; print(_native.__file__)"],
        check=True, capture_output=True, text=True, cwd="/",
    )  # fmt: skip
    return Path(done.stdout.strip()).parent


def write(tree: Path, file: str, source: str) -> None:
    """Replace a Python source of the tree, and delete its bytecode."""
    path = tree / file
    path.write_text(source, encoding="utf-8")
    for each in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        each.unlink()


# ---------------------------------------------------------------------- processes


def processor_seconds() -> float:
    """Return the CPU time of this process and of its finished children."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)


class Plugin:
    """A pytest plugin: runs the listed tests in this order, and records the failures and the time of each test.

    The time is CPU time, which does not depend on other programs, but at least a quarter of the wall time.
    """

    def __init__(self, order: Sequence[str] = (), watch: Watch | None = None) -> None:
        self.order, self.watch = order, watch
        self.baseline = Baseline()
        self.began = 0.0

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Select the listed tests, or all tests if none is listed."""
        if self.order:
            items[:] = chosen(items, self.order)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.baseline.failed.append(report.nodeid)
        seconds = self.baseline.seconds
        seconds[report.nodeid] = seconds.get(report.nodeid, 0.0) + report.duration / 4

    def pytest_runtest_protocol(self, item: Any) -> None:
        """Start recording the CPU time of a test and the mutants that it reaches."""
        self.began = processor_seconds()
        if self.watch is not None:
            self.watch.before(item.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        seconds = self.baseline.seconds
        seconds[nodeid] = max(processor_seconds() - self.began, seconds.get(nodeid, 0.0))
        if self.watch is not None:
            self.watch.after(nodeid)


def chosen(items: Sequence[Any], order: Sequence[str]) -> list[Any]:
    by_name = {item.nodeid: item for item in items}
    return [by_name[name] for name in order if name in by_name]


class Server(Plugin):
    """A pytest plugin: for each request, forks a child that runs the requested tests."""

    def __init__(self, tree: Path, connection: socket.socket, watch: Watch | None, more: Sequence[str]) -> None:
        super().__init__()
        self.tree, self.connection, self.watched, self.more = tree, connection, watch, more

    def pytest_runtestloop(self, session: Any) -> bool:
        """Write the collected tests to a file, then answer each request with the id of a child and its exit code."""
        collected = {
            "tests": [item.nodeid for item in session.items],
            "frameworks": [name for name in FRAMEWORKS if name in sys.modules],
            "imported": [key for key, tests in self.watched.found().items() if "" in tests] if self.watched else [],
            "can_fork": not has_jax_backend(),
        }
        (self.tree / "collected.json").write_text(json.dumps(collected), encoding="utf-8")
        gc.collect()
        gc.freeze()
        self.connection.sendall(struct.pack("i", 0))
        for line in self.connection.makefile("r"):
            question = json.loads(line)
            pid = fork(self.tree, lambda question=question: self.answer(session, **question), logged=False)  # type: ignore[misc]
            self.connection.sendall(struct.pack("i", pid))
            status = os.waitpid(pid, 0)[1]
            end(pid)
            self.connection.sendall(struct.pack("i", os.waitstatus_to_exitcode(status)))
        return True

    def answer(self, session: Any, order: Sequence[str], change: Mapping[str, Any], watched: bool, stop: bool) -> int:
        """Run tests with a mutant, in a child. Return 1 if a test fails, and CANNOT if the mutant cannot be applied."""
        gc.unfreeze()
        if change and not self.put(**change):
            return CANNOT
        if watched and self.watched:
            self.watch = self.watched
            self.watch.start()
        items = chosen(session.items, order) if order else session.items
        failed = self.baseline.failed
        for item, following in zip(items, [*items[1:], None], strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if stop and failed:
                break
        if self.watch:
            self.baseline.reached = self.watch.found()
        (self.tree / "found.json").write_text(json.dumps(vars(self.baseline)), encoding="utf-8")
        return int(bool(failed)) or (more_notices(self.more) if change else 0)

    def put(self, file: str, source: str, first: int, number: int) -> bool:
        """Apply a mutant. Return False if that is impossible."""
        if number:
            switch_on(first, number)
            return True
        return put_in(self.tree / file, (ROOT / file).read_text(encoding="utf-8"), source)


def has_jax_backend() -> bool:
    """Return whether JAX has started its threads, which a forked child would lack."""
    bridge = sys.modules.get("jax._src.xla_bridge")
    return bridge is not None and bool(bridge.backends_are_initialized())


CANNOT = 98  # the exit code of a child that cannot apply its mutant


def more_notices(more: Sequence[str]) -> int:
    """Run an additional command on a mutant and return its exit code."""
    return subprocess.run([sys.executable, *more], check=False).returncode if more else 0


def pytest_main(tree: Path, files: Sequence[str], plugin: Plugin, watch: Watch | None, *more: str) -> int:
    paths = [str(tree / name) for name in ("site", "src", "tests")]
    sys.path[:0] = paths
    sys.meta_path[:] = [each for each in sys.meta_path if not type(each).__module__.startswith("_editable_")]
    os.environ |= {"PYTHONPATH": os.pathsep.join(paths), "CI": "true", "MAXOPS_TESTS_MAY_MISS": "1"}
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    if watch is not None:
        watch.start()
    import pytest  # noqa: PLC0415

    ignored = ("os.fork() was called:RuntimeWarning", ":pytest.PytestAssertRewriteWarning")
    words = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "--tb=short", "-W", "error"]
    words += ["-m", "not exhaustive and not release", "--rootdir", str(tree), *(f"-Wignore:{each}" for each in ignored)]
    return int(pytest.main([*words, *more, *files], plugins=[plugin]))


def run_tests(tree: Path, files: Sequence[str], order: Sequence[str], watch: Watch | None, *more: str) -> int:
    """Run tests in a child. Return pytest's exit code, and write the results to found.json in the tree."""
    plugin = Plugin(order, watch)
    code = pytest_main(tree, files, plugin, watch, *more)
    found = plugin.baseline
    if watch is not None:
        found.reached = watch.found()
    (tree / "found.json").write_text(json.dumps(vars(found)), encoding="utf-8")
    return code


def fork(tree: Path, act: Callable[[], int], *, logged: bool = True) -> int:
    """Fork a child that runs act() in a tree, in its own process group. Return its id."""
    (tree / "found.json").unlink(missing_ok=True)
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    code = 99
    try:
        os.setsid()
        if logged:
            os.dup2(os.open(tree / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 1)
            os.dup2(1, 2)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.chdir(tree)
        os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Tests change RLIMIT_AS, which would also limit the address space that a browser reserves.
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]))
        code = act()
        sys.stdout.flush()
    except BaseException:  # noqa: BLE001 - an error in a child counts as detection
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def group_seconds(pid: int) -> float:
    """Return the CPU time of a child's process group."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == pid:
                ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def end(pid: int) -> None:
    """End the remaining processes of a child's group."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def finished(tree: Path) -> Baseline:
    """Return the results that a child wrote, which are empty if it wrote none."""
    path = tree / "found.json"
    return Baseline(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else Baseline()


class Tree:
    """A copy of the tree, and the server process that has collected its tests."""

    def __init__(self, folder: Path, files: Sequence[str], watch: Watch | None, more: Sequence[str]) -> None:
        self.folder = folder
        self.connection, theirs = socket.socketpair()
        self.server = fork(folder, lambda: pytest_main(folder, files, Server(folder, theirs, watch, more), watch))
        theirs.close()
        if not (number := self.connection.recv(4)) or struct.unpack("i", number)[0]:
            raise RuntimeError(f"the tests were not collected:\n{self.log()}")
        self.collected = json.loads((folder / "collected.json").read_text(encoding="utf-8"))
        self.pid = 0
        self.is_served = True

    def start(
        self, order: Sequence[str], change: Mapping[str, Any], *, watched: bool = False, stop: bool = True
    ) -> None:
        """Run tests with a mutant in a child of the server."""
        (self.folder / "found.json").unlink(missing_ok=True)
        question = {"order": order, "change": change, "watched": watched, "stop": stop}
        self.connection.sendall(json.dumps(question).encode() + b"\n")
        self.pid, self.is_served = self.number(), True

    def start_anew(self, act: Callable[[], int]) -> None:
        """Run act() in a child without the collected tests."""
        self.pid, self.is_served = fork(self.folder, act), False

    def log(self) -> str:
        return (self.folder / "log.txt").read_text()[-6000:]

    def number(self) -> int:
        """Receive the next number from the server."""
        number = self.connection.recv(4)
        if len(number) < 4:
            raise RuntimeError(f"the tests' process ended:\n{self.log()}")
        return int(struct.unpack("i", number)[0])

    def ended(self) -> int | None:
        if self.is_served:
            return self.number() if select.select([self.connection], [], [], 0.0)[0] else None
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        end(pid)
        return os.waitstatus_to_exitcode(status)

    def wait(self) -> int:
        while (code := self.ended()) is None:
            time.sleep(0.02)
        return code

    def close(self) -> None:
        self.connection.close()
        end(self.server)
        os.waitpid(self.server, 0)


# ---------------------------------------------------------------------- mutants


@dataclass
class Run:
    mutant: Mutant
    order: list[str]
    began: float
    most: float
    is_late: bool = False


def sampled(tests: Sequence[str], cases: int) -> list[str]:
    """Return up to `cases` random cases of each test function, in the original order."""
    of: defaultdict[str, list[str]] = defaultdict(list)
    for name in tests:
        of[name.partition("[")[0]].append(name)
    drawn = {
        name for function, names in of.items() for name in random.Random(function).sample(names, min(cases, len(names)))
    }
    return [name for name in tests if name in drawn]


class Runner:
    """Runs mutants on trees. Each tree runs one mutant at a time."""

    def __init__(
        self, trees: Sequence[Path], files: Sequence[str], watch: Watch, more: Sequence[str] = (), cases: int = CASES
    ) -> None:
        self.files, self.more = files, more
        self.killers: Counter[str] = Counter()
        first = Tree(trees[0], files, watch, more)
        self.trees = [first, *(Tree(tree, files, None, more) for tree in trees[1:])]
        for name in first.collected["frameworks"]:
            importlib.import_module(name)
        self.imported = set(first.collected["imported"])
        self.can_serve = first.collected["can_fork"]
        self.found = self.without_mutant(first, sampled(first.collected["tests"], cases), watch)
        # Repeat in the order for mutants: tests that fail now, by chance or because of the order, cannot judge mutants.
        while self.found.failed:
            self.leave_out(self.found.failed)
            self.found.failed = self.without_mutant(first, self.ordered(self.found.seconds)).failed

    def close(self) -> None:
        for tree in self.trees:
            tree.close()

    def without_mutant(self, tree: Tree, order: list[str], watch: Watch | None = None) -> Baseline:
        """Run tests without a mutant and return the results."""
        if self.can_serve:
            tree.start(order, {}, watched=watch is not None, stop=False)
        else:
            tree.start_anew(lambda: run_tests(tree.folder, self.files_of(order), order, watch))
        if (code := tree.wait()) not in (0, 1):
            raise RuntimeError(f"the tests ended with {code}:\n{tree.log()}")
        return finished(tree.folder)

    def leave_out(self, failed: Sequence[str]) -> None:
        """Remove tests that fail without a mutant."""
        for name in sorted(set(failed)):
            print(f"  omitted, because it fails without a mutant: {name}", flush=True)
            self.found.seconds.pop(name, None)

    @staticmethod
    def files_of(order: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(name.partition("::")[0] for name in order))

    def ordered(self, tests: Iterable[str], limit: float = math.inf, *, anew: bool = False) -> list[str]:
        """Return tests up to a time limit: those that killed mutants, then the fastest of each function, and so on."""
        seconds = self.found.seconds
        rounds: defaultdict[str, int] = defaultdict(int)
        keyed = []
        for name in sorted(tests, key=lambda each: (seconds[each], each)):
            rounds[name.partition("[")[0]] += 1
            keyed.append((-self.killers[name], rounds[name.partition("[")[0]], seconds[name], name))
        order: list[str] = []
        files = set[str]()
        total = 0.0
        for *_, took, name in sorted(keyed):
            file = name.partition("::")[0]
            total += took + (COLLECTING if anew and file not in files else 0.0)
            if order and total > limit:
                break
            order.append(name)
            files.add(file)
        return order

    def can_put_in(self, mutant: Mutant) -> bool:
        """Return whether a mutant can be applied after collection: a test reaches its code, and no import runs it."""
        keys = mutant.places()
        return self.can_serve and self.imported.isdisjoint(keys) and any(self.found.reached.get(key) for key in keys)

    def tests_of(self, mutant: Mutant, limit: float, *, anew: bool) -> list[str]:
        """Return the tests that reach a mutant. If none is known, return all, because a subprocess may reach it."""
        reached = {
            name for key in mutant.places() for name in self.found.reached.get(key, ()) if name in self.found.seconds
        }
        return self.ordered(reached or self.found.seconds, limit, anew=anew)

    def start(self, tree: Tree, mutant: Mutant, limit: float, *, anew: bool) -> Run:
        """Start the tests of a mutant, with the collected tests or with a new collection."""
        order = self.tests_of(mutant, limit, anew=anew)
        if mutant.source:
            write(tree.folder, mutant.file, mutant.source)
        if anew:
            tree.start_anew(lambda: self.noticed_by(tree.folder, mutant, order))
        else:
            change = {name: getattr(mutant, name) for name in ("file", "source", "first", "number")}
            tree.start(order, change)
        expected = sum(self.found.seconds[name] for name in order)
        return Run(mutant, order, time.monotonic(), PATIENCE * (10 if self.more else 1) + 5 * expected)

    def noticed_by(self, folder: Path, mutant: Mutant, order: Sequence[str]) -> int:
        """Run the tests in a child, and the additional command if all pass. Return the first nonzero exit code or 0."""
        if mutant.number:
            os.environ[SWITCH] = f"{mutant.first} {mutant.number}"
        return run_tests(folder, self.files_of(order), order, None, "-x") or more_notices(self.more)

    def fates(self, mutants: Sequence[Mutant], limit: float) -> dict[Mutant, str]:
        """Run each mutant with a limit on the seconds of tests. Return "survived", or "killed: " and the reason."""
        todo = [(each, not self.can_put_in(each)) for each in mutants]
        fates: dict[Mutant, str] = {}
        free, running = list(self.trees), dict[Tree, Run]()
        while todo or running:
            if todo and free:
                mutant, anew = todo.pop(0)
                tree = free.pop()
                running[tree] = self.start(tree, mutant, limit, anew=anew)
                continue
            time.sleep(0.005)
            for tree, run in list(running.items()):
                code = tree.ended()
                if code is None:
                    # On a busy machine, a child has more time.
                    took = time.monotonic() - run.began
                    if not run.is_late and (
                        took > 3 * run.most or (took > run.most and group_seconds(tree.pid) > run.most / 2)
                    ):
                        end(tree.pid)
                        run.is_late = True
                    continue
                del running[tree]
                free.append(tree)
                if run.mutant.source:
                    write(tree.folder, run.mutant.file, (ROOT / run.mutant.file).read_text(encoding="utf-8"))
                if code == CANNOT:
                    todo.insert(0, (run.mutant, True))
                    continue
                noticed = finished(tree.folder).failed[:1]
                self.killers.update(noticed)
                fates[run.mutant] = _fate(code, run.is_late, noticed)
                if "pytest's 5" in fates[run.mutant]:
                    raise RuntimeError(f"{run.mutant} ran no tests")
        return fates


def _fate(code: int, late: bool, noticed: Sequence[str]) -> str:
    if late:
        return "killed: without end"
    if code < 0:
        return f"killed: {signal.Signals(-code).name}"
    how = noticed[0] if noticed else f"pytest's {code}"
    return "survived" if code == 0 else f"killed: {how}"
