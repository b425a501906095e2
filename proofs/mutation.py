"""What mutants of native code and of Python share: what one is, how it is run, why one may live, and the claim."""

from __future__ import annotations

import argparse
import functools
import os
import re
import resource
import signal
import sys
import tempfile
import tomllib
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from claims import ROOT, Claim

REASONS = "proofs/survivors/*.toml"
LIVES = ("not reached", "never differs", "survived")
MEMORY = 6 << 30
TEST_SECONDS = 8.0  # a test takes far less
KILLED = 0.95  # of those that are not shown to be equivalent

Json = dict[str, Any]
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


# ---------------------------------------------------------------------- reasons


def reasons() -> list[Json]:
    """What was said of survivors: of which files, functions, texts (or a pattern of them, or of lines) and changes."""
    files = sorted(ROOT.glob(REASONS))
    return [each for file in files for each in tomllib.loads(file.read_text(encoding="utf-8"))["survivor"]]


@functools.cache
def _lines(file: str) -> list[str]:
    return (ROOT / from_root(file)).read_text(encoding="utf-8").splitlines()


def from_root(file: str) -> str:
    """The path from the root of a mutant's file."""
    return file if file.endswith(".py") else f"native/{file}"


def reason(mutant: Mutant, known: Iterable[Json]) -> str:
    """Why no test could notice a survivor; nothing if nobody has said so."""
    for each in known:
        if (
            fnmatch(mutant.file, each["file"])
            and mutant.function in each.get("functions", (mutant.function,))
            and mutant.kind in each.get("kinds", (mutant.kind,))
            and (
                mutant.text in each.get("texts", ())
                or re.search(each.get("pattern", "(?!)"), mutant.text)
                or re.search(each.get("lines", "(?!)"), _lines(mutant.file)[mutant.line - 1])
            )
            and mutant.change in each.get("changes", (mutant.change,))
        ):
            each["used"] = each.get("used", 0) + 1
            return str(each["why"])
    return ""


# ---------------------------------------------------------------------- what became of them


def claims_of(
    mutants: Sequence[Mutant],
    fates: Mapping[int, str],
    says: str,
    tool: str,
    sources: Iterable[str],
    left_out: Mapping[str, int],
    seconds: float,
) -> list[Claim]:
    """A claim for each file, with its header: what it `says` of them. Sources are beside the files themselves.

    The tests are none: more of them notice more, and each change to one would ask for hours.
    """
    known, found = reasons(), []
    for name, files in files_by_name(mutants).items():
        own = [mutant for mutant in mutants if mutant.file in files]
        lives = [mutant for mutant in own if not fates[mutant.number].startswith("killed")]
        stand = [mutant for mutant in lives if not reason(mutant, known)]
        noticed = len(own) - len(lives)
        figures = {
            "mutants": len(own), "killed": noticed, "equivalent": len(lives) - len(stand),
            "share": round(noticed / (noticed + len(stand)), 4) if noticed + len(stand) else 1.0,
            "fates": dict(Counter(fates[mutant.number] for mutant in own)), "left_out_of_all_files": dict(left_out),
        }  # fmt: skip
        open_ = tuple(f"{each.function}: {each.text}: {each.change}: {fates[each.number]}" for each in stand)
        short = ", ".join(file.removeprefix("src/maxops/") for file in files)
        whole = (*map(from_root, files), "proofs/mutation.py", *sources)
        found.append(Claim(name, f"{short}: {says}", "count", tool, whole, len(own), open_, seconds, figures))
    return found


def files_by_name(mutants: Iterable[Mutant]) -> dict[str, list[str]]:
    """The files by their claims' names: a source and its header have one."""
    found: dict[str, list[str]] = {}
    for file in sorted({mutant.file for mutant in mutants}):
        name = file.removeprefix("src/maxops/").replace("/", ".").rpartition(".")[0]
        found.setdefault(f"mutants.{name}", []).append(file)
    return found


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


def report(options: argparse.Namespace, run: Callable[[Path], list[Claim]]) -> int:
    """Run, and say what lives, and whether it is too much."""
    with making_in(options.keep) as folder:
        found = run(folder)
    for claim in found:
        print(f"{claim.id}: {claim.figures}")
        print("".join(f"  {goal}\n" for goal in claim.open), end="")
    killed, lives = counts(claim.as_json() for claim in found)
    print(f"{killed} killed, {lives} live without a reason")
    return int(not are_enough(killed, lives))


def counts(claims: Iterable[Json]) -> tuple[int, int]:
    """How many mutants were killed in all, and how many live without a reason."""
    listed = list(claims)
    return sum(claim["figures"]["killed"] for claim in listed), sum(len(claim["open"]) for claim in listed)


def are_enough(killed: int, lives: int) -> bool:
    """Whether so many killed do, where so many live without a reason."""
    return killed >= KILLED * (killed + lives)
