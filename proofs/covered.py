"""What tests reach of the native core, the planner, the reference and the judge: `make verify-long`.

The native core is built by clang with counters, ordinary and as the miniature, and the enumerations of the miniature
and the tests of values run on it: which regions (statements) were run, which branches went both ways, and which
conditions decided alone (MC/DC). The same tests run under coverage.py, which counts the lines and branches of Python.
What they miss stands in coverage.toml with its reason: a miss without one, and a reason whose miss is gone, is open.

    python proofs/covered.py          run, and print what coverage.toml lacks, as it would have it
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import covered_native
import covered_python
from claims import ROOT, Claim, run

Json = dict[str, Any]
HAS_AVX512 = "avx512bw" in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
LISTED = ROOT / "proofs" / "coverage.toml"
TOOLS = (
    "clang++-19",
    "llvm-profdata-19",
    "llvm-cov-19",
    "llvm-cxxfilt-19",
    "cmake",
    "ninja",
)  # clang-19 and llvm-19 of Debian
INSTRUMENTED = "-fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -fprofile-update=atomic"
ISAS = (*(["x86-64-v4"] if HAS_AVX512 else []), "x86-64-v3", "baseline")
# Of the enumerations those that take seconds; the others are the same calls of more inputs, types and threads.
SECTIONS = (
    *("values, float32", "values, float16", "maximum", "maximum, overlaps", "maximum, scalars"),
    *("reduce_max", "reduce_max, longer, int16", "segments, options", "segments, int16", "ids out of range"),
)
# These, of what no instruction set has for itself, on one of them.
SECTIONS_OF_ONE = (
    *("values, float64", "maximum, longer", "maximum, layouts", "maximum, threads", "reduce_max, out"),
    *("reduce_max, threads", "segments, threads"),
)
TESTS = tuple(
    f"tests/test_{name}.py"
    for name in (
        *("maximum", "reduce_max", "segment_max", "paths", "segment_paths", "runs", "order", "indices", "offsets"),
        *("unsorted_ids", "scalars", "transposed", "contracts", "bad_input", "segment_ids", "id_types", "dispatch"),
        *("robustness", "hard_cases", "memory", "threads", "out_of_memory", "onnxruntime", "real", "bits"),
        *("conformance_judge", "conformance_cases", "checker_rules", "planner", "rare_calls"),
    )
)
# These press Ctrl-C in calls of many threads, which with counters take minutes.
TOO_LONG = "not ctrl_c"
# Beside the bindings for JAX, which are a module of their own, and what is for `maxops bench` or for tests alone.
NATIVE_LEFT_OUT = ("native/bindings/xla.cpp", "native/limits.cpp", "native/testing/")
PYTHON = (
    "src/maxops/plan/*.py",
    "src/maxops/reference.py",
    "src/maxops/shapes.py",
    "src/maxops/conformance/judge.py",
    "src/maxops/conformance/expected.py",
    "src/maxops/conformance/outcome.py",
    "src/maxops/checker/rules_*.py",
)


@dataclass
class Coverage:
    """What was counted: by file, by file and function, and the misses, each as coverage.toml has it."""

    files: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    functions: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    missed: Counter[str] = field(default_factory=Counter)
    without: set[str] = field(default_factory=set)  # decisions of which the compiler counts no conditions

    def add(self, file: str, function: str, counts: Mapping[str, tuple[int, int]]) -> None:
        """Add a function's counts: of each kind how many are covered, of how many."""
        for table, name in ((self.files, file), (self.functions, f"{file}:{function}")):
            row = table.setdefault(name, {})
            for kind, (covered, total) in counts.items():
                was = row.get(kind, [0, 0])
                row[kind] = [was[0] + covered, was[1] + total]


class Reasons:
    """coverage.toml: why something is missed. What `varies` with the moment may be missed or not."""

    def __init__(self, document: Json) -> None:
        self.fixed, self.varying = Counter[str](), Counter[str]()
        for group in document["reasons"]:
            if not group["because"]:
                raise ValueError(f"proofs/coverage.toml: no reason is given for {group['missed']}")
            (self.varying if group.get("varies") else self.fixed).update(group["missed"])

    def files(self) -> set[str]:
        """The files that it speaks of."""
        return {miss.partition(":")[0] for miss in (*self.fixed, *self.varying)}

    def compare(self, missed: Counter[str], file: str) -> tuple[list[str], list[str]]:
        """What is missed of a file without a reason, and what has a reason and is not missed."""
        fixed, varying = (
            Counter({miss: count for miss, count in of.items() if miss.partition(":")[0] == file})
            for of in (self.fixed, self.varying)
        )
        return [*(missed - fixed - varying).elements()], [*(fixed - missed).elements()]


def claims() -> list[Claim]:
    """One of the native core, unless what AVX-512 alone reaches would be missed, and one of Python."""
    began = time.perf_counter()
    measured = measure()
    seconds = time.perf_counter() - began
    reasons = Reasons(tomllib.loads(LISTED.read_text(encoding="utf-8")))
    native = Claim(
        "coverage.native",
        "every region, branch and condition (MC/DC) of the native core is reached by tests, or is listed with the "
        "reason why not; a template counts by its text: what one instantiation reaches is reached; of the decisions "
        "listed as `without` conditions are not counted",
        "count",
        f"{run(['clang++-19', '--version']).stdout.splitlines()[0]}, llvm-cov",
        ("proofs/covered_native.py",),
        0,
    )
    python = Claim(
        "coverage.python",
        "every line and branch of the planner, the reference, the judge of the kit and the checker's rules is reached "
        "by their tests, or is listed with the reason why not",
        "count",
        f"coverage.py {version('coverage')}",
        ("proofs/covered_python.py",),
        0,
    )
    counted = {file for of in measured for file in of.files}
    wrong = [f"proofs/coverage.toml: {file} is not counted" for file in sorted(reasons.files() - counted)]
    native, python = (judged(claim, of, reasons) for claim, of in zip((native, python), measured, strict=True))
    found = [replace(native, open=(*wrong, *native.open), seconds=seconds), replace(python, seconds=seconds)]
    return [claim for claim in found if claim.id not in absent()]


def absent() -> dict[str, str]:
    """The claims that this processor cannot run, and what it would need."""
    return {} if HAS_AVX512 else {"coverage.native": "avx512bw"}


def packages() -> set[str]:
    """The Debian packages of those tools that are not installed."""
    return {"clang-19", "llvm-19"} if any(shutil.which(name) is None for name in TOOLS if "-19" in name) else set()


def judged(claim: Claim, of: Coverage, reasons: Reasons) -> Claim:
    """The claim with what was counted; a goal is a file of which each miss has a reason."""
    files, wrong = {}, []
    for file, counts in sorted(of.files.items()):
        missed = Counter({miss: count for miss, count in of.missed.items() if miss.partition(":")[0] == file})
        lacking, gone = reasons.compare(missed, file)
        listed = missed.total() - len(lacking)
        said = [f"missed, and has no reason: {miss}" for miss in lacking]
        said += [f"has a reason, and is not missed: {miss}" for miss in gone]
        wrong += [f"{file}: {'; '.join(said)}"] if said else []
        files[file] = counts | {"missed": missed.total(), "listed": listed}
    totals: Json = {}
    for row in files.values():
        for kind, count in row.items():
            was = totals.get(kind, [0, 0] if isinstance(count, list) else 0)
            totals[kind] = [a + b for a, b in zip(was, count, strict=True)] if isinstance(count, list) else was + count
    functions = {name: in_words(counts) for name, counts in sorted(of.functions.items())}
    return replace(
        claim,
        sources=(*of.files, *claim.sources, "proofs/covered.py", "proofs/coverage.toml"),
        goals=len(files),
        open=tuple(wrong),
        figures={"totals": totals, "files": files, "functions": functions, "without": sorted(of.without)},
    )


def in_words(counts: Mapping[str, Any]) -> str:
    """Such as "regions 7/7, branches 3/4"."""
    return ", ".join(f"{kind} {covered}/{total}" for kind, (covered, total) in counts.items() if total)


# ------------------------------------------------------------------------------------------------ measured


def measure() -> tuple[Coverage, Coverage]:
    """Build, run, and count: the native core, and Python."""
    lacking = [name for name in TOOLS if shutil.which(name) is None]
    lacking += [name for name in ("coverage", "pytest") if find_spec(name) is None]
    if lacking:
        raise RuntimeError(
            f"not installed: {', '.join(lacking)}; "
            "apt-get install clang-19 llvm-19, pip install cmake ninja coverage pytest"
        )
    with tempfile.TemporaryDirectory(prefix="maxops-coverage-") as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        exports = [*pool.map(lambda work: work(folder), (enumerations, tests))]
        native = of_native(exports)
        for log in folder.glob("*/build.log"):
            native.without |= uncounted(log.read_text(encoding="utf-8"))
        python = json.loads((folder / "python.json").read_text(encoding="utf-8"))
        return native, of_python(python, f"{folder / 'ordinary'}/")


def enumerations(folder: Path) -> Json:
    """What the miniature's enumerations reach, as llvm-cov has it."""
    place = build(folder / "miniature", ["-DMAXOPS_MINIATURE=ON"])
    for names, isas in ((SECTIONS, ISAS), (SECTIONS_OF_ONE, ISAS[:1])):
        chosen = [word for name in names for word in ("--only", name)] + [
            word for isa in isas for word in ("--isa", isa)
        ]
        run([sys.executable, "-m", "exhaustive", "--processes", "1", *chosen], env=environment(place))
    return export(place)


def tests(folder: Path) -> Json:
    """What the tests reach, as llvm-cov has it; python.json is what they reach of Python."""
    sets = ";".join(isa.replace("x86-64-", "x86_64_") for isa in ISAS)
    place = build(folder / "ordinary", [f"-DMAXOPS_ISAS={sets}"])
    coverage = [sys.executable, "-m", "coverage"]
    counted = f"--include={','.join(str(place / path) for path in PYTHON)}"
    # one process, since coverage.py counts what runs in its own
    pytest = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", TOO_LONG, *TESTS]
    here = environment(place) | {"COVERAGE_FILE": str(folder / "python"), "CI": "true", "MAXOPS_TESTS_MAY_MISS": "1"}
    run([*coverage, "run", "--branch", counted, *pytest], env=here)
    run([*coverage, "json", "-o", str(folder / "python.json")], env=here)
    return export(place)


def build(place: Path, options: list[str]) -> Path:
    """A folder with the package in src/maxops, its core built with counters."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    # the debug build is -O1, and has no bound of a frame, which counters make larger
    configured = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_COMPILER=clang++-19", f"-DCMAKE_CXX_FLAGS={INSTRUMENTED}"]
    run(
        [
            "cmake",
            "-S",
            ".",
            "-G",
            "Ninja",
            "-B",
            str(place / "build"),
            f"-DPython_EXECUTABLE={sys.executable}",
            *configured,
            *options,
        ]
    )
    done = run(["cmake", "--build", str(place / "build")])
    (place / "build.log").write_text(
        done.stdout + done.stderr, encoding="utf-8"
    )  # Ninja's is the one, make's the other
    for library in (place / "build").glob("_*.so"):
        shutil.copy(library, place / "src" / "maxops" / library.name)
    return place


def environment(place: Path) -> dict[str, str]:
    """What makes Python import that package, and its core write profiles."""
    paths = f"{place / 'src'}:{ROOT / 'tests'}"
    return {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "LLVM_PROFILE_FILE": str(place / "%m.profraw")}


def export(place: Path) -> Json:
    """The profiles of all processes, put to the source."""
    merged, (library,) = str(place / "profile"), (place / "build").glob("_native*.so")
    run(["llvm-profdata-19", "merge", *map(str, place.glob("*.profraw")), "-o", merged])
    found: Json = json.loads(run(["llvm-cov-19", "export", str(library), f"-instr-profile={merged}"]).stdout)
    return found


def uncounted(log: str) -> set[str]:
    """The decisions with another inside, of which clang says that it counts no conditions."""
    places = re.findall(rf"^{re.escape(str(ROOT))}/(\S+?):(\d+):\d+: warning: unsupported MC/DC", log, re.MULTILINE)
    texts = {file: (ROOT / file).read_text(encoding="utf-8").splitlines() for file, _ in places}
    return {f"{file} | {texts[file][int(line) - 1].strip()}" for file, line in places if is_counted(file)}


def of_native(exports: list[Json]) -> Coverage:
    """What was reached of native/, by the builds together."""
    found = Coverage()
    for (file, name), function in sorted(covered_native.read(exports, ROOT).items()):
        if is_counted(file):
            found.add(file, name, covered_native.counts(function))
            text = (ROOT / file).read_text(encoding="utf-8").splitlines()
            found.missed.update(
                f"{file}:{name} | {line} | {what}" for line, what in covered_native.missed(function, text)
            )
    return found


def is_counted(file: str) -> bool:
    """Whether a file is of the core."""
    return file.startswith("native/") and not file.startswith(NATIVE_LEFT_OUT)


def of_python(report: Json, prefix: str) -> Coverage:
    """What was reached of the files of Python."""
    found = Coverage()
    for file, name, function in covered_python.functions(report, prefix):
        found.add(file, name, covered_python.counts(function))
        text = (ROOT / file).read_text(encoding="utf-8").splitlines()
        misses = covered_python.missed(function, text)
        found.missed.update(f"{file}:{name} | {line} | {what}" for line, what in misses)
    return found


if __name__ == "__main__":
    for claim in claims():
        print(claim.id, json.dumps(claim.figures["totals"]), f"{claim.seconds:.0f} s", *claim.open, sep="\n")
