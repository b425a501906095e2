"""What mutants of native code and of Python share: what one is, how it runs, and the rate for each file."""

from __future__ import annotations

import argparse
import functools
import os
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIVES = ("not reached", "never differs", "survived")
MEMORY = 6 << 30
TEST_SECONDS = 8.0  # a test takes far less
KILLED = 0.85  # of a file, with equivalent mutants counted as alive

Unit = Callable[[], bool]


@dataclass(frozen=True)
class Mutant:
    """One change."""

    number: int
    file: str  # from native/, or from the root if it is of Python
    function: str
    line: int
    text: str
    kind: str
    change: str


# ---------------------------------------------------------------------- running


def in_child(act: Callable[[], bool]) -> int:
    """What a process that does this ends with: 0, 1 if something is noticed, else a signal's number, negative."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if not os.environ.get("MAXOPS_MUTANTS_SHOW"):
                os.dup2(1, 2)
            os.setpriority(os.PRIO_PROCESS, 0, max(10, os.getpriority(os.PRIO_PROCESS, 0)))  # it takes hours
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            code = int(act())
        except BaseException:  # noqa: BLE001 - it ends with 1 of whatever: something noticed
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def is_noticed(units: Iterable[Unit], seconds: float) -> bool:
    """Whether one of these units notices something; the process ends when one takes longer."""
    for unit in units:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, 20 * seconds)
        if unit():
            return True
    return False


def killed(code: int) -> str:
    """A fate, by what the process ended with."""
    how = {1: "noticed", -signal.SIGPROF: "without end", -signal.SIGALRM: "without end"}
    return f"killed: {how.get(code, f'crash {code}')}"


class Tests:
    """A plugin of pytest that hands out its collected tests as units, and runs none by itself."""

    def __init__(self, act: Callable[[list[Unit]], None]) -> None:
        self.act = act
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Note what failed."""
        self.failed = self.failed or report.failed
        if report.failed:
            print(report.nodeid, report.longreprtext, file=sys.stderr, flush=True)

    def pytest_runtestloop(self, session: Any) -> bool:
        """In the place of pytest's own."""
        self.act([functools.partial(self.unit, item) for item in session.items])
        return True

    def unit(self, item: Any) -> bool:
        """Run one test with fixtures of its own; whether it fails."""
        self.failed = False
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        return self.failed


def by_tests(folder: Path, names: Iterable[str], act: Callable[[list[Unit]], None]) -> None:
    """Do something with the tests in these files of a folder."""
    import pytest  # noqa: PLC0415

    files = [str(folder / "tests" / f"{name}.py") for name in names]
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-m", "not exhaustive"]
    if code := pytest.main([*options, "--rootdir", str(folder), *files], plugins=[Tests(act)]):
        raise RuntimeError(f"the tests were not collected, or not used to their end: pytest ended with {code}")


# ---------------------------------------------------------------------- what became of them


def table(mutants: Sequence[Mutant], fates: Mapping[int, str], left_out: Mapping[str, int]) -> tuple[list[str], bool]:
    """The lines to print: a rate for each file, then its survivors; and whether each rate is high enough."""
    lines, are_enough = [], True
    for file in sorted({mutant.file for mutant in mutants}):
        own = [mutant for mutant in mutants if mutant.file == file]
        lives = [mutant for mutant in own if not fates[mutant.number].startswith("killed")]
        rate = 1 - len(lives) / len(own)
        are_enough &= rate >= KILLED
        lines.append(f"{file}: {rate:.1%} of {len(own)} killed{'' if rate >= KILLED else f', below {KILLED:.0%}'}")
        lines += [f"  {each.function}:{each.line}: {each.text}: {each.change}: {fates[each.number]}" for each in lives]
    return [*lines, f"not mutated: {dict(left_out)}"], are_enough


def command_line(description: str) -> argparse.ArgumentParser:
    """What both commands take."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="FILE", help="files whose name contains this")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="so many, by chance")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where what is made and found stays")
    return parser


@contextmanager
def making_in(keep: Path | None) -> Iterator[Path]:
    """The folder in which mutants are made and run: one that stays, or one that goes."""
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep
        return
    with tempfile.TemporaryDirectory(prefix="maxops-mutants-") as folder:
        yield Path(folder)


def report(options: argparse.Namespace, run: Callable[[Path], tuple[list[str], bool]]) -> int:
    """Run, print what survives, and return 1 if it is too much."""
    with making_in(options.keep) as folder:
        lines, are_enough = run(folder)
    print("\n".join(lines))
    return int(not are_enough)
