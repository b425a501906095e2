"""SONNX's Max as a Why3 specification: its lemmas by CVC4 and Z3, and its definitions, run against the reference."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from claims import ROOT, Claim
from prover_tools import call, missing, system_path, version_of, why3_config

if TYPE_CHECKING:
    import numpy as np

    from maxops.conformance.case import Trial
    from maxops.dtypes import DType

FOLDER = ROOT / "proofs" / "specification"
# In the order in which they use one another.
FILES = ("tensor", "max", "types", "ctensor", "execute")
# Why3's transformations that make a file's goals, and how each prover is asked: the one that knows more first.
SPLIT = ("-a", "split_vc")
SEEDS = ("sat.random_seed=42", "nlsat.randomize=false", "smt.random_seed=42")
PROVERS: dict[str, Callable[[int], tuple[str, ...]]] = {
    "CVC4,1.8": lambda seconds: ("cvc4", f"--tlimit={seconds}000", "--lang=smt2"),
    "Z3,4.8.12": lambda seconds: ("z3", "-smt2", f"-T:{seconds}", *SEEDS),
}
# Each prover has a little time, and where none of them knows, more: far above what an idle machine takes.
SECONDS = (2, 120)
# What the proofs rest on besides the provers.
ASSUMES = (
    "Why3's standard library: int, int.ComputerDivision, int.Power, real, list, array",
    "Why3's ieee_float, given to Z3 and CVC4 as SMT-LIB's theory, which has one NaN (MaxFloat32, MaxFloat64)",
    "Why3's calculus of weakest preconditions and its translation to SMT-LIB",
)
# Why3's modules that the program is made of.
EXTRACTED = (
    "tensor.Mapped", "tensor.Dims", "tensor.RowMajor", "tensor.Broadcast", "types.Float", "types.Format",
    "execute.CMaxFloat", "execute.CMaxInt",
)  # fmt: skip
MOST_ELEMENTS = 512


def packages() -> set[str]:
    """The Debian packages that are not installed."""
    return missing("why3", "cvc4", "z3", "ocamlopt", "ocamldep")


def claims() -> list[Claim]:
    """What is proved of the specification, and what its program gives."""
    with why3_config() as config:
        return [_proofs(config), _executions(config)]


def _sources() -> tuple[str, ...]:
    return tuple(f"proofs/specification/{name}.mlw" for name in FILES)


# ---------------------------------------------------------------------------- proofs


def _proofs(config: Path) -> Claim:
    began = time.perf_counter()
    with TemporaryDirectory() as folder:
        goals = [goal for name in FILES for goal in goals_of(config, name, Path(folder))]
        with ThreadPoolExecutor(2) as pool:
            provers = list(pool.map(prover_of, goals))
    names = [goal[0].stem for goal in goals]
    return Claim(
        "specification.max",
        "of a specification of SONNX's Max in Why3, and not of the core: for every order, shape and number of inputs "
        "bounds, membership, algebra, NaN, zeros, broadcasting within bounds, each output written once",
        "proof",
        ", ".join(version_of(name) for name in ("why3", "cvc4", "z3")),
        _sources(),
        len(goals),
        tuple(name for name, prover in zip(names, provers, strict=True) if prover is None),
        time.perf_counter() - began,
        {
            "assumes": list(ASSUMES),
            "files": dict(Counter(name.partition("-")[0] for name in names)),
            "provers": dict(Counter(prover for prover in provers if prover is not None)),
        },
    )


def goals_of(config: Path, name: str, folder: Path, source: Path = FOLDER) -> Iterator[tuple[Path, ...]]:
    """A goal's file for each prover: Why3 writes them by its driver for that prover."""
    found = []
    for prover in PROVERS:
        to = folder / name / prover
        to.mkdir(parents=True)
        command = ["why3", "-C", str(config), "prove", "-L", str(source), *SPLIT, "-P", prover, "-o", str(to)]
        call([*command, f"{name}.mlw"], cwd=source)
        found.append(sorted(to.iterdir()))
    if len({tuple(path.name for path in paths) for paths in found}) != 1 or not found[0]:
        raise RuntimeError(f"{name}.mlw: the provers are given different goals, or none")
    yield from zip(*found, strict=True)


def prover_of(goal: tuple[Path, ...], limits: tuple[int, ...] = SECONDS) -> str | None:
    """Which prover refutes a goal's negation, if one does."""
    for seconds, (prover, path) in product(limits, tuple(zip(PROVERS.values(), goal, strict=True))):
        command = prover(seconds)
        environment = os.environ | {"PATH": system_path()}
        done = subprocess.run([*command, str(path)], env=environment, capture_output=True, text=True, check=False)
        if done.stdout.startswith("unsat"):
            return command[0]
        # An error of the solver's, such as one of the text that it is given, is none of the ways not to know.
        if not re.match(r"unknown|timeout|sat|$|cvc4 interrupted", done.stdout):
            raise RuntimeError(f"{path.name}: {command[0]} says {done.stdout[:500]}{done.stderr[:500]}")
    return None


# ---------------------------------------------------------------------------- executions


def _executions(config: Path) -> Claim:
    from maxops import reference  # noqa: PLC0415  (with the core that the package needs)

    began = time.perf_counter()
    cases = list(_cases())
    with TemporaryDirectory() as folder:
        program = _compile(config, Path(folder))
        given = [_line(dtype, arrays) for _, dtype, arrays in cases]
        answers = call([str(program)], text="\n".join(given) + "\n").splitlines()
    if len(answers) != len(cases):
        raise RuntimeError(f"{len(answers)} answers to {len(cases)} cases")
    wrong = []
    for (name, dtype, arrays), answer in zip(cases, answers, strict=True):
        expected = "refused" if arrays and not _is_strict(arrays) else _words(dtype, [reference.maximum(*arrays)])
        if answer != expected:
            wrong.append(name)
    kinds = Counter(str(dtype) for _, dtype, _ in cases)
    return Claim(
        "specification.executed",
        "the program extracted from the specification gives maxops.reference's bits, or refuses, as SONNX is read to "
        "the letter",
        "test",
        f"{version_of('why3')}, {version_of('ocamlopt')}",
        (*_sources(), "proofs/specification/main.ml", "src/maxops/reference.py", "src/maxops/shapes.py"),
        len(cases),
        tuple(wrong),
        time.perf_counter() - began,
        {
            "types": dict(kinds),
            "refused": answers.count("refused"),
            "assumes": ["Why3's extraction to OCaml, and Zarith's integers"],
            "bounds": f"the kit's cases of Max of up to {MOST_ELEMENTS} elements, and pairs of small shapes",
        },
    )


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
    """Small feeds of the kit's cases of Max, of one type each, and shapes of its own with zeros and mismatches."""
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
    """Each array's rank, sizes and items: integers' values, and floats' bits."""
    words: list[Any] = []
    for array in arrays:
        native = array.astype(array.dtype.newbyteorder("="), order="C", copy=True).reshape(-1)
        items = native.view(dtype.word) if dtype.kind == "float" else native
        words += [array.ndim, *array.shape, *items.tolist()]
    return " ".join(map(str, words))
