"""Measures test coverage: regions, branches and MC/DC of the native core, and lines and branches of Python.

    python tests/coverage_report.py [FOLDER]      or make coverage; about fifteen minutes

clang builds the native core with counters, as the ordinary build and as the miniature. The enumerations run on the
miniature, and the tests of values on the ordinary build, under coverage.py. llvm-cov and coverage.py print one line per
file, and write pages with every line to FOLDER, if given. The script requires Debian's clang-19 and llvm-19.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HAS_AVX512 = "avx512bw" in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
TOOLS = ("clang++-19", "llvm-profdata-19", "llvm-cov-19", "cmake", "ninja")
INSTRUMENTED = "-fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -fprofile-update=atomic"
ISAS = (*(["x86-64-v4"] if HAS_AVX512 else []), "x86-64-v3", "baseline")
# The enumerations that take seconds. The others make the same calls with more inputs, types and threads.
SECTIONS = (
    *("values, float32", "values, float16", "maximum", "maximum, overlaps", "maximum, scalars"),
    *("reduce_max", "reduce_max, longer, int16", "segments, options", "segments, int16", "ids out of range"),
)
# Enumerations of code that is common to all instruction sets; they run on one of them.
SECTIONS_OF_ONE = (
    *("values, float64", "maximum, longer", "maximum, layouts", "maximum, threads", "reduce_max, out"),
    *("reduce_max, threads", "segments, threads"),
)
TESTS = tuple(
    str(next((ROOT / "tests").rglob(f"test_{name}.py")).relative_to(ROOT))
    for name in (
        *("maximum", "reduce_max", "segment_max", "paths", "segment_paths", "runs", "order", "indices", "offsets"),
        *("unsorted_ids", "scalars", "transposed", "contracts", "bad_input", "segment_ids", "id_types", "dispatch"),
        *("robustness", "hard_cases", "memory", "threads", "out_of_memory", "onnxruntime", "real", "bits"),
        *("conformance_judge", "conformance_cases", "checker_rules", "planner", "rare_calls"),
    )
)
# Deselects tests that interrupt calls with many threads, which take minutes with counters.
TOO_LONG = "not ctrl_c"


def run(command: list[str], **environment: str) -> str:
    """Run a command at the root and return its output."""
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


def build(place: Path, *options: str) -> Path:
    """Build the core with counters, and return a folder with the package in src/maxops."""
    shutil.copytree(ROOT / "src", place / "src", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    # The debug build has no limit on stack frames, which counters enlarge.
    configured = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_COMPILER=clang++-19", f"-DCMAKE_CXX_FLAGS={INSTRUMENTED}"]
    folder = str(place / "build")
    run(
        [
            "cmake",
            "-S",
            ".",
            "-G",
            "Ninja",
            "-B",
            folder,
            f"-DPython_EXECUTABLE={sys.executable}",
            *configured,
            *options,
        ]
    )
    run(["cmake", "--build", folder])
    for library in Path(folder).glob("_*.so"):
        shutil.copy(library, place / "src" / "maxops")
    return place


def environment(place: Path) -> dict[str, str]:
    """Return environment variables with which Python imports that package, and the core writes profiles."""
    paths = f"{place / 'src'}:{ROOT / 'tests'}"
    return {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "LLVM_PROFILE_FILE": str(place / "%m.profraw")}


def enumerations(folder: Path) -> Path:
    """Build the miniature and run the enumerations on it."""
    place = build(folder / "miniature", "-DMAXOPS_MINIATURE=ON")
    for names, isas in ((SECTIONS, ISAS), (SECTIONS_OF_ONE, ISAS[:1])):
        chosen = [*(f"--only={name}" for name in names), *(f"--isa={isa}" for isa in isas)]
        run([sys.executable, "-m", "exhaustive", "--processes", "1", *chosen], **environment(place))
    return place


def tests(folder: Path) -> Path:
    """Build the ordinary core and run the tests under coverage.py."""
    sets = ";".join(isa.replace("x86-64-", "x86_64_") for isa in ISAS)
    place = build(folder / "ordinary", f"-DMAXOPS_ISAS={sets}")
    # A single process, because coverage.py measures only its own.
    pytest = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", TOO_LONG, *TESTS]
    here = {"COVERAGE_FILE": str(folder / "python"), "CI": "true", "MAXOPS_TESTS_MAY_MISS": "1"}
    counted = f"--source={place / 'src' / 'maxops'}"
    run([sys.executable, "-m", "coverage", "run", "--branch", counted, *pytest], **environment(place), **here)
    return place


def main() -> int:
    """Build, run the tests, and print the coverage."""
    if missing := [name for name in TOOLS if shutil.which(name) is None]:
        print(
            f"not installed: {', '.join(missing)}; apt-get install clang-19 llvm-19, pip install cmake ninja coverage"
        )
        return 2
    with tempfile.TemporaryDirectory(prefix="maxops-coverage-") as name, ThreadPoolExecutor(2) as pool:
        folder = Path(name)
        places = list(pool.map(lambda work: work(folder), (enumerations, tests)))
        profile = str(folder / "profile")
        profiles = [str(path) for place in places for path in place.glob("*.profraw")]
        run(["llvm-profdata-19", "merge", *profiles, "-o", profile])
        first, *more = [str(next((place / "build").glob("_native*.so"))) for place in places]
        of = [first, *(f"-object={each}" for each in more), f"-instr-profile={profile}"]
        print(run(["llvm-cov-19", "report", *of, "-show-mcdc-summary", str(ROOT / "native")]))
        python = [sys.executable, "-m", "coverage"]
        print(run([*python, "report"], COVERAGE_FILE=str(folder / "python")))
        if len(sys.argv) > 1:
            pages = Path(sys.argv[1])
            shown = ["-format=html", "-show-branches=count", "-show-mcdc", f"-output-dir={pages / 'native'}"]
            run(["llvm-cov-19", "show", *of, *shown, str(ROOT / "native")])
            run([*python, "html", "-d", str(pages / "python")], COVERAGE_FILE=str(folder / "python"))
            print(f"every line: {pages}/native/index.html and {pages}/python/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
