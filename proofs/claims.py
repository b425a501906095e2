"""Defines claims about maxops, and runs the programs that prove or check them."""

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

# A proof covers all values, an exhaustive check covers all inputs within its bounds, and a test covers some inputs.
Method = Literal["proof", "exhaustive", "test"]
BASELINE = "baseline"
# The processor feature that each instruction set requires, as in /proc/cpuinfo, and the compiler flags.
FEATURE = {"x86-64-v3": "avx2", "x86-64-v4": "avx512bw"}
ISA_FLAGS = {
    BASELINE: ("-march=x86-64-v2",) if platform.machine() == "x86_64" else (),
    "x86-64-v3": ("-mavx2", "-mbmi", "-mbmi2"),
    "x86-64-v4": ("-march=skylake-avx512",),
}


@dataclass(frozen=True)
class Claim:
    """A statement about maxops that proofs, exhaustive checks or tests verify, and the result of the verification.

    ``goals`` is the number of goals, ``open`` contains the descriptions of goals that are not verified, and ``cases``
    is the number of inputs that were checked.
    """

    id: str  # dotted, for example "order.keys"
    says: str
    method: Method
    tool: str  # with its version
    files: tuple[str, ...]  # the paths of the verified files and of the check's own files, relative to the root
    goals: int
    open: tuple[str, ...] = ()
    cases: int = 0  # 0 for a proof
    bounds: str = ""
    assumes: str = ""
    isa: str = ""  # the instruction set of the compiled code, if the claim is about compiled code

    @property
    def holds(self) -> bool:
        """True if the claim has goals, and if all of them are verified."""
        return self.goals > 0 and not self.open

    def as_json(self) -> dict[str, Any]:
        """Return the entry of the claim in evidence.json, which lists files separately."""
        fields = asdict(self) | {"open": list(self.open)}
        return {name: value for name, value in fields.items() if name != "files" and value != ""}


@dataclass(frozen=True)
class Check:
    """A function that verifies one claim, and the instruction set that it requires."""

    id: str
    claim: Callable[[], Claim]
    isa: str = BASELINE

    @property
    def missing(self) -> str:
        """The processor feature that the check requires and this machine lacks, or an empty string."""
        if platform.machine() != "x86_64":
            return "" if self.isa == BASELINE else "x86-64"
        needed = FEATURE.get(self.isa, "")
        return "" if needed in {"", *Path("/proc/cpuinfo").read_text(encoding="utf-8").split()} else needed


@dataclass(frozen=True)
class Program:
    """A C++ program that verifies a claim with one goal. It prints the number of cases, and of wrong cases, as JSON."""

    source: str  # the path of the program, relative to proofs/
    says: str
    bounds: str
    assumes: str = ""
    method: Method = "exhaustive"
    optimised: str = "-O1"
    sanitized: bool = True

    def check(self, name: str, flags: Sequence[str], isa: str, *, of_isa: bool = True) -> Check:
        """Return a check that runs the program with these compiler flags. With `of_isa`, the claim names the `isa`."""
        return Check(name, partial(self.claim, name, tuple(flags), isa if of_isa else ""), isa)

    def claim(self, name: str, flags: tuple[str, ...], isa: str) -> Claim:
        """Compile and run the program, and return its claim."""
        source = f"proofs/{self.source}"
        sanitizer = ("-fsanitize=address", "-fno-sanitize-recover=all") if self.sanitized else ()
        with TemporaryDirectory() as folder:
            run(["g++", "-std=c++17", self.optimised, "-w", *sanitizer, *flags, source, "-o", f"{folder}/program"])
            done = run([f"{folder}/program"], check=False)
        # If a kernel accesses a wrong address, the program crashes before it prints.
        found = json.loads(done.stdout or '{"states":0,"wrong":1}')
        wrong = (f"{found['wrong']} wrong: {done.stderr[:400]}",) if found["wrong"] or done.returncode else ()
        bounds, assumes = self.bounds, self.assumes
        if isa != BASELINE and name.endswith(f".{isa}"):  # evidence.json states the bounds of each program only once
            first = f"as for {name.removesuffix(isa)}{BASELINE}"
            bounds, assumes = first, assumes and first
        return Claim(
            name, f"{name.partition('.')[2]}: {self.says}", self.method, compiler(), included(source), 1, wrong,
            found["states"], bounds, assumes, isa,
        )  # fmt: skip


def proved(source: str, name: str, says: str, assumes: str = "") -> Claim:
    """Compile and run a C++ program that proves goals with Z3 and prints a line of JSON for each. Return its claim."""
    source = f"proofs/{source}"
    with TemporaryDirectory() as folder:
        run(["g++", "-std=c++17", "-O1", "-w", *include_flags(), source, "-o", f"{folder}/program", *link_flags()])
        done = run([f"{folder}/program"], check=False)
    if done.returncode not in (0, 1):  # 1: a goal is open
        raise RuntimeError(f"{source} ended with {done.returncode}: {done.stderr}")
    goals = [json.loads(line) for line in done.stdout.splitlines()]
    still_open = tuple(goal["goal"] for goal in goals if goal["verdict"] != "proved")
    tool = f"Z3 {version('z3-solver')}"
    return Claim(name, says, "proof", tool, included(source), len(goals), still_open, assumes=assumes)


def digests(paths: Iterable[str]) -> dict[str, str]:
    """Return the digests of the files' tokens, by path. Paths are relative to the root."""
    return {path: digest_of(ROOT / path) for path in sorted(set(paths))}


def included(source: str) -> tuple[str, ...]:
    """Return the paths of a C++ file, of the files in this repository that it includes, and of this module."""
    command = ["g++", "-std=c++17", "-MM", "-MG", *include_flags(), source]
    words = run(command).stdout.replace("\\\n", " ").split()[1:]
    inside = ((ROOT / word).resolve() for word in words)
    known = {str(path.relative_to(ROOT)) for path in inside if path.exists() and ROOT in path.parents}
    return tuple(sorted({*known, "proofs/claims.py"}))


def include_flags() -> Sequence[str]:
    """Return the compiler flags for the Z3 headers in the package z3-solver."""
    import z3  # noqa: PLC0415  (only some proofs require it)

    return ["-isystem", str(Path(z3.__file__).parent / "include")]


def link_flags() -> Sequence[str]:
    """Return the linker flags for the Z3 library in the package z3-solver."""
    import z3  # noqa: PLC0415

    library = Path(z3.__file__).parent / "lib"
    return [f"-L{library}", "-lz3", f"-Wl,-rpath,{library}"]


def isa_here() -> str:
    """Return the best of maxops's instruction sets that `-march=native` enables."""
    macros = run(["g++", "-march=native", "-dM", "-E", "-x", "c++", "/dev/null"]).stdout
    known = {"__AVX512BW__": "x86-64-v4", "__AVX2__": "x86-64-v3"}
    return next((name for macro, name in known.items() if f" {macro} " in macros), BASELINE)


@cache
def compiler() -> str:
    """Return the name and version of the compiler, as `g++ --version` prints them."""
    return run(["g++", "--version"]).stdout.splitlines()[0]


def run(
    command: Sequence[str],
    *,
    check: bool = True,
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command in the root folder, with `env` added to the environment. Errors include its output."""
    whole = None if env is None else {**os.environ, **env}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=timeout, env=whole)
    if check and done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done


def require_this_tree() -> None:
    """Exit with an error if the imported maxops was not built from the sources in this repository."""
    import maxops  # noqa: PLC0415  (checks that require only a compiler run without maxops)

    package = Path(maxops.__file__).parent
    differing = [] if maxops._native.build()["sources"] == digest() else ["the native core"]
    for path in sorted((ROOT / "src" / "maxops").rglob("*.py")):
        name = path.relative_to(ROOT / "src" / "maxops")
        if not (package / name).is_file() or digest_of(package / name) != digest_of(path):
            differing.append(str(name))
    if differing:
        several = f" and {len(differing) - 3} more" if len(differing) > 3 else ""
        print(
            f"maxops in {package} is not built from this tree: {', '.join(differing[:3])}{several} differ; run make "
            "install"
        )
        sys.exit(2)
