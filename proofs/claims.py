"""A claim: what is said, how it is shown, of which files, and what of it stands open."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "native"))

from digest import digest, digest_of  # noqa: E402

# A proof holds for every value there is; what is exhaustive looked at every input up to its bounds; a test looked at
# some.
Method = Literal["proof", "exhaustive", "test"]
BASELINE = "baseline"
# What a processor must have for each instruction set, as /proc/cpuinfo spells it, and what the compiler is told.
FEATURE = {"x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}
ISA_FLAGS = {
    BASELINE: (),
    "x86-64-v3": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-march=skylake-avx512",),
}


@dataclass(frozen=True)
class Claim:
    """What was shown: `goals` are what had to hold, `open` those that do not, `cases` the inputs looked at."""

    id: str  # dotted, as "order.keys"
    says: str
    method: Method
    tool: str  # with its version
    files: tuple[str, ...]  # what it speaks of and what shows it, from the root
    goals: int
    open: tuple[str, ...] = ()
    cases: int = 0  # none of a proof
    bounds: str = ""
    assumes: str = ""
    isa: str = ""  # whose compiled code ran, if the claim is about one

    @property
    def holds(self) -> bool:
        """Whether nothing stands open, of at least one goal."""
        return self.goals > 0 and not self.open

    def as_json(self) -> dict[str, Any]:
        """As evidence.json has it; a family's files stand there once."""
        fields = asdict(self) | {"open": list(self.open)}
        return {name: value for name, value in fields.items() if name != "files" and value != ""}


@dataclass(frozen=True)
class Check:
    """What makes one claim, and the instruction set that it takes."""

    id: str
    claim: Callable[[], Claim]
    isa: str = BASELINE

    @property
    def missing(self) -> str:
        """What this processor lacks to run it; nothing if it can."""
        if platform.machine() != "x86_64":
            return "" if self.isa == BASELINE else "x86-64"
        needed = FEATURE.get(self.isa, "")
        return "" if needed in {"", *Path("/proc/cpuinfo").read_text(encoding="utf-8").split()} else needed


@dataclass(frozen=True)
class Program:
    """A C++ program that prints how many states it looked at and how many were wrong: a claim of one goal."""

    source: str  # from proofs/
    says: str
    bounds: str
    assumes: str = ""
    method: Method = "exhaustive"
    optimised: str = "-O1"
    sanitized: bool = True

    def check(self, name: str, flags: Sequence[str], isa: str, *, of_isa: bool = True) -> Check:
        """Its check, compiled with these flags; `of_isa` if the claim is about that instruction set's code."""
        return Check(name, partial(self.claim, name, tuple(flags), isa if of_isa else ""), isa)

    def claim(self, name: str, flags: tuple[str, ...], isa: str) -> Claim:
        """Compile and run it."""
        source = f"proofs/{self.source}"
        sanitizer = ("-fsanitize=address", "-fno-sanitize-recover=all") if self.sanitized else ()
        with TemporaryDirectory() as folder:
            run(["g++", "-std=c++17", self.optimised, "-w", *sanitizer, *flags, source, "-o", f"{folder}/program"])
            done = run([f"{folder}/program"], check=False)
        # Where an address is wrong, the program ends before it prints.
        found = json.loads(done.stdout or '{"states":0,"wrong":1}')
        wrong = (f"{found['wrong']} wrong: {done.stderr[:400]}",) if found["wrong"] or done.returncode else ()
        return Claim(
            name, f"{name.partition('.')[2]}: {self.says}", self.method, compiler(), included(source), 1, wrong,
            found["states"], self.bounds, self.assumes, isa,
        )  # fmt: skip


def proved(source: str, name: str, says: str, assumes: str = "") -> Claim:
    """A claim of a program that proves its goals by Z3 and prints each as a line of JSON."""
    source = f"proofs/{source}"
    with TemporaryDirectory() as folder:
        run(["g++", "-std=c++17", "-O1", "-w", *include_flags(), source, "-o", f"{folder}/program", *link_flags()])
        done = run([f"{folder}/program"], check=False)
    if done.returncode not in (0, 1):  # 1: a goal stands open
        raise RuntimeError(f"{source} ended with {done.returncode}: {done.stderr}")
    goals = [json.loads(line) for line in done.stdout.splitlines()]
    still_open = tuple(goal["goal"] for goal in goals if goal["verdict"] != "proved")
    tool = f"Z3 {version('z3-solver')}"
    return Claim(name, says, "proof", tool, included(source), len(goals), still_open, assumes=assumes)


def digests(paths: Iterable[str]) -> dict[str, str]:
    """The digest of each file's tokens, by its path from the root."""
    return {path: digest_of(ROOT / path) for path in sorted(set(paths))}


def included(source: str) -> tuple[str, ...]:
    """A C++ file and all that it includes of this tree, found by the compiler itself, and this program."""
    command = ["g++", "-std=c++17", "-MM", "-MG", *include_flags(), source]
    words = run(command).stdout.replace("\\\n", " ").split()[1:]
    inside = ((ROOT / word).resolve() for word in words)
    known = {str(path.relative_to(ROOT)) for path in inside if path.exists() and ROOT in path.parents}
    return tuple(sorted({*known, "proofs/claims.py"}))


def include_flags() -> Sequence[str]:
    """Where Z3's headers are: the package z3-solver has them."""
    import z3  # noqa: PLC0415  (only the proofs that need it do)

    return ["-isystem", str(Path(z3.__file__).parent / "include")]


def link_flags() -> Sequence[str]:
    """And its library."""
    import z3  # noqa: PLC0415

    library = Path(z3.__file__).parent / "lib"
    return [f"-L{library}", "-lz3", f"-Wl,-rpath,{library}"]


def isa_here() -> str:
    """The instruction set that `-march=native` compiles for, as maxops names it."""
    macros = run(["g++", "-march=native", "-dM", "-E", "-x", "c++", "/dev/null"]).stdout
    known = {"__AVX512BW__": "x86-64-v4", "__AVX2__": "x86-64-v3"}
    return next((name for macro, name in known.items() if f" {macro} " in macros), BASELINE)


@cache
def compiler() -> str:
    """As it names itself."""
    return run(["g++", "--version"]).stdout.splitlines()[0]


def run(
    command: Sequence[str],
    *,
    check: bool = True,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a tool at the root, with `env` beside its environment; what it says of an error is shown."""
    whole = None if env is None else {**os.environ, **env}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout, env=whole)
    if check and done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done


def require_this_tree() -> None:
    """End the program if the maxops that Python imports is not built of this tree."""
    import maxops  # noqa: PLC0415  (the programs that prove by a compiler alone need no installation)

    package = Path(maxops.__file__).parent
    differing = [] if maxops._native.build()["sources"] == digest() else ["the native core"]
    for path in sorted((ROOT / "src" / "maxops").rglob("*.py")):
        name = path.relative_to(ROOT / "src" / "maxops")
        if not (package / name).is_file() or digest_of(package / name) != digest_of(path):
            differing.append(str(name))
    if differing:
        several = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        print(
            f"maxops in {package} is not built of this tree: {', '.join(differing[:3])}{several} differ; make install"
        )
        sys.exit(2)
