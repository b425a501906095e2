"""A claim: what is said, how it was shown, of which sources, and what of it stands open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "native"))

from digest import digest, digest_of  # noqa: E402

# A proof holds for every value there is; what is exhaustive looked at every input up to the bound that it names; a
# test looked at some; what is counted (coverage, mutants) says how much tests look at.
Method = Literal["proof", "exhaustive", "test", "count"]


@dataclass(frozen=True)
class Claim:
    """A claim with its goals: `proved` of `goals` hold, the others stand in `open` by name."""

    id: str  # dotted, as "order.float32"
    says: str
    method: Method
    tool: str  # with its version
    sources: tuple[str, ...]  # the files that it speaks of, from the root
    goals: int
    open: tuple[str, ...] = ()
    seconds: float = 0.0
    figures: dict[str, Any] = field(default_factory=dict)  # bounds, numbers of states

    @property
    def holds(self) -> bool:
        """Whether nothing stands open, of at least one goal."""
        return self.goals > 0 and not self.open

    def as_json(self) -> dict[str, Any]:
        """As evidence.json has it, with the hash of each source as it is now."""
        fields = asdict(self) | {"open": list(self.open), "sources": hashes(self.sources)}
        return fields | {"proved": self.goals - len(self.open), "seconds": round(self.seconds, 1)}


def hashes(paths: Iterable[str]) -> dict[str, str]:
    """The digest of each file's tokens, by its path from the root."""
    return {path: digest_of(ROOT / path) for path in sorted(set(paths))}


def included(source: str, under: str = "native") -> tuple[str, ...]:
    """A C++ file and all that it includes from a folder, found by the compiler itself."""
    command = ["g++", "-std=c++17", "-MM", "-MG", *include_flags(), source]
    words = run(command).stdout.replace("\\\n", " ").split()[1:]
    paths = (Path(word) for word in words)
    inside = (path if path.is_absolute() else ROOT / path for path in paths)
    known = {
        str(path.resolve().relative_to(ROOT)) for path in inside if path.exists() and ROOT in path.resolve().parents
    }
    return tuple(sorted(path for path in known if path == source or path.startswith((f"{under}/", "proofs/"))))


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
    known = {"__AVX512BW__": "x86-64-v4", "__AVX2__": "x86-64-v3", "__SSE4_2__": "x86-64-v2"}
    return next((name for macro, name in known.items() if f" {macro} " in macros), "baseline")


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
    differing = [] if maxops._native.sources() == digest() else ["the native core"]
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
