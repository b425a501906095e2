"""Checks the Why3 specification of SONNX's Max.

CVC4 and Z3 prove the goals, and the results of the extracted program are compared with `maxops.reference`.

    python proofs/specification/check.py

Prints the numbers of goals and cases, and the names of those that fail. The exit code is 1 if any fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from maxops.conformance.case import Trial
    from maxops.dtypes import DType

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
sys.path.append(str(FOLDER.parent))

from claims import require_this_tree  # noqa: E402

# The files in the order of their dependencies.
FILES = ("tensor", "max", "types", "ctensor", "execute")
# The Why3 transformation that splits a file into goals, and the command of each prover. The first proves more goals.
SPLIT = ("-a", "split_vc")
SEEDS = ("sat.random_seed=42", "nlsat.randomize=false", "smt.random_seed=42")
PROVERS: dict[str, Callable[[int], tuple[str, ...]]] = {
    "CVC4,1.8": lambda seconds: ("cvc4", f"--tlimit={seconds}000", "--lang=smt2"),
    "Z3,4.8.12": lambda seconds: ("z3", "-smt2", f"-T:{seconds}", *SEEDS),
}
# The time limits of the provers. The second limit applies if no prover succeeds within the first. On an idle machine,
# proofs take far less time.
SECONDS = (2, 120)
# The assumptions of the proofs, in addition to the provers.
ASSUMES = (
    "Why3's standard library: int, int.ComputerDivision, int.Power, real, list, array",
    "Why3's ieee_float, given to Z3 and CVC4 as SMT-LIB's theory, which has one NaN (MaxFloat32, MaxFloat64)",
    "Why3's calculus of weakest preconditions and its translation to SMT-LIB",
)
# The Why3 modules from which the program is extracted.
EXTRACTED = (
    "tensor.Mapped", "tensor.Dims", "tensor.RowMajor", "tensor.Broadcast", "types.Float", "types.Format",
    "execute.CMaxFloat", "execute.CMaxInt",
)  # fmt: skip
MOST_ELEMENTS = 512


# ---------------------------------------------------------------------------- tools


# The Debian package of each command.
PACKAGES = {
    "cvc4": "cvc4",
    "ocamldep": "ocaml",
    "ocamlopt": "ocaml",
    "why3": "why3",
    "z3": "z3",
}
ZARITH = "libzarith-ocaml-dev"


def missing(*commands: str) -> set[str]:
    """Return the Debian packages of missing commands. OCaml's compiler also requires Zarith."""
    packages = {PACKAGES[name] for name in commands if shutil.which(name, path=system_path()) is None}
    if "ocamlopt" in commands and ("ocaml" in packages or not zarith().exists()):
        packages.add(ZARITH)
    return packages


def zarith() -> Path:
    """Return the path of Zarith, OCaml's library of unbounded integers, which extracted programs require."""
    return Path(call(["ocamlopt", "-where"]).strip(), "zarith", "zarith.cmxa")


def system_path() -> str:
    """Return a PATH with Debian's commands first, because a Python environment may contain another version of `z3`."""
    return f"/usr/bin{os.pathsep}{os.environ.get('PATH', '')}"


def call(
    command: Sequence[str],
    *,
    cwd: Path = ROOT,
    text: str | None = None,
) -> str:
    """Run a tool and return its output. Raise RuntimeError with the output if it fails."""
    environment = os.environ | {"PATH": system_path()}
    done = subprocess.run(command, cwd=cwd, env=environment, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
    return done.stdout


@contextmanager
def why3_config() -> Iterator[Path]:
    """Yield a Why3 configuration with the provers, in a temporary folder."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "why3.conf"
        call(["why3", "config", "detect", "-C", str(path)])
        text = path.read_text(encoding="utf-8")
        if absent := [name for name in ('name = "CVC4"', 'name = "Z3"') if name not in text]:
            raise RuntimeError(f"Why3 does not detect the provers {', '.join(absent)}")
        yield path


def version_of(command: str) -> str:
    """Return a tool's name and version."""
    words = call([command, "-version" if command == "ocamlopt" else "--version"]).splitlines()[0].split()
    number = next(word for word in words if word[0].isdigit())
    return f"{command} {number}"


# ---------------------------------------------------------------------------- proofs


def unproved(config: Path) -> tuple[int, list[str]]:
    """Run the provers. Return the number of goals, and the names of the goals that no prover proves."""
    with TemporaryDirectory() as folder:
        goals = [goal for name in FILES for goal in goals_of(config, name, Path(folder))]
        with ThreadPoolExecutor(2) as pool:
            provers = list(pool.map(prover_of, goals))
    return len(goals), [goal[0].stem for goal, prover in zip(goals, provers, strict=True) if prover is None]


def goals_of(config: Path, name: str, folder: Path, source: Path = FOLDER) -> Iterator[tuple[Path, ...]]:
    """Split a file into goals. Yield the paths of each goal's input files, one for each prover."""
    found = []
    for prover in PROVERS:
        to = folder / name / prover
        to.mkdir(parents=True)
        command = ["why3", "-C", str(config), "prove", "-L", str(source), *SPLIT, "-P", prover, "-o", str(to)]
        call([*command, f"{name}.mlw"], cwd=source)
        found.append(sorted(to.iterdir()))
    if len({tuple(path.name for path in paths) for paths in found}) != 1 or not found[0]:
        raise RuntimeError(f"{name}.mlw: expected the same goals for each prover, got different goals or none")
    yield from zip(*found, strict=True)


def prover_of(goal: tuple[Path, ...], limits: tuple[int, ...] = SECONDS) -> str | None:
    """Return the name of the first prover that proves a goal (refutes its negation), or None."""
    for seconds, (prover, path) in product(limits, tuple(zip(PROVERS.values(), goal, strict=True))):
        command = prover(seconds)
        environment = os.environ | {"PATH": system_path()}
        done = subprocess.run([*command, str(path)], env=environment, capture_output=True, text=True, check=False)
        if done.stdout.startswith("unsat"):
            return command[0]
        # An error of the prover, such as a syntax error in its input, is not the same as "unknown".
        if not re.match(r"unknown|timeout|sat|$|cvc4 interrupted", done.stdout):
            raise RuntimeError(f"{path.name}: {command[0]} failed: {done.stdout[:500]}{done.stderr[:500]}")
    return None


# ---------------------------------------------------------------------------- executions


def wrong(config: Path) -> tuple[int, list[str]]:
    """Run the program. Return the number of cases, and the names of those that differ from `maxops.reference`."""
    from maxops import reference  # noqa: PLC0415  (requires the core of the package)

    cases = list(_cases())
    with TemporaryDirectory() as folder:
        program = _compile(config, Path(folder))
        given = [_line(dtype, arrays) for _, dtype, arrays in cases]
        answers = call([str(program)], text="\n".join(given) + "\n").splitlines()
    found = []
    for (name, dtype, arrays), answer in zip(cases, answers, strict=True):
        expected = "refused" if arrays and not _is_strict(arrays) else _words(dtype, [reference.maximum(*arrays)])
        if answer != expected:
            found.append(name)
    return len(cases), found


def _compile(config: Path, folder: Path) -> Path:
    extract = ["why3", "-C", str(config), "extract", "-L", str(FOLDER), "-D", "ocaml64", "--modular", "-o", str(folder)]
    for module in EXTRACTED:
        call([*extract, module])
    (folder / "main.ml").write_text((FOLDER / "main.ml").read_text(encoding="utf-8"), encoding="utf-8")
    sources = sorted(path.name for path in folder.glob("*.ml"))
    ordered = call(["ocamldep", "-sort", *sources], cwd=folder).split()
    call(["ocamlopt", "-I", "+zarith", "zarith.cmxa", *ordered, "-o", "program"], cwd=folder)
    return folder / "program"


def _is_strict(arrays: Sequence[np.ndarray[Any, Any]]) -> bool:
    from maxops import shapes  # noqa: PLC0415

    try:
        shapes.broadcast([array.shape for array in arrays], zero_with_one=False)
    except shapes.MismatchError:
        return False
    return True


def _cases() -> Iterator[tuple[str, DType, list[np.ndarray[Any, Any]]]]:
    """Yield small inputs of the conformance kit's cases of Max, and inputs with empty or mismatched shapes."""
    import numpy as np  # noqa: PLC0415

    from maxops import dtypes  # noqa: PLC0415
    from maxops.conformance.cases import cases  # noqa: PLC0415

    seen = set()
    for case in cases():
        if case.row.operator != "Max" or case.dtype is dtypes.REAL or case.trial_id in seen or case.refusal:
            continue
        seen.add(case.trial_id)
        for number, arrays in enumerate(_small_feeds(case.make())):
            yield f"{case.id}#{number}", case.dtype, arrays
    for sizes in _shapes():
        for dtype in (dtypes.FLOAT16, dtypes.INT8):
            arrays = [np.arange(np.prod(size), dtype=dtype.word).view(dtype.numpy).reshape(size) for size in sizes]
            yield f"shapes {sizes} {dtype}", dtype, arrays


def _small_feeds(trial: Trial) -> Iterator[list[np.ndarray[Any, Any]]]:
    for feed in trial.feeds[:2]:
        arrays = [array for array in trial.call.whole(feed) if array is not None]
        if sum(array.size for array in arrays) <= MOST_ELEMENTS:
            yield arrays


def _shapes() -> list[list[tuple[int, ...]]]:
    sides: list[tuple[int, ...]] = [(), (0,), (1,), (2,), (3,), (1, 2), (2, 1), (2, 3), (0, 2), (2, 0)]
    sides += [(1, 1, 2), (3, 1, 1)]
    return [[a, b] for a in sides for b in sides] + [[(2, 1), (1, 3), ()], [(0,), (1,), (0,)], [(2,), (3,), (1,)]]


def _line(dtype: DType, arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    kind = f"float {dtype.exponent_bits} {dtype.mantissa_bits}" if dtype.kind == "float" else "int"
    return f"{kind} {_words(dtype, arrays)}"


def _words(dtype: DType, arrays: Sequence[np.ndarray[Any, Any]]) -> str:
    """Return the rank, sizes and elements of each array as text. Floats are represented by their bits."""
    words: list[Any] = []
    for array in arrays:
        native = array.astype(array.dtype.newbyteorder("="), order="C", copy=True).reshape(-1)
        items = native.view(dtype.word) if dtype.kind == "float" else native
        words += [array.ndim, *array.shape, *items.tolist()]
    return " ".join(map(str, words))


def main() -> int:
    """Run all checks and print failures."""
    if packages := missing("why3", "cvc4", "z3", "ocamlopt", "ocamldep"):
        sys.exit(f"missing tools; run apt-get install {' '.join(sorted(packages))}")
    print(", ".join(version_of(name) for name in ("why3", "cvc4", "z3", "ocamlopt")))
    require_this_tree()
    failed = False
    with why3_config() as config:
        for check, what in ((unproved, "goals"), (wrong, "cases")):
            count, found = check(config)
            print(f"{count - len(found)} of {count} {what} hold", *found, sep="\n  ", flush=True)
            failed |= bool(found) or not count
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
