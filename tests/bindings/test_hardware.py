"""Other hardware: missing features, streaming stores that become visible late, and pages at any address.

The core's sources are compiled with fakes for instructions and system functions.
"""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).resolve().parent / "programs"
NATIVE = PROGRAMS.parents[2] / "native"
COMPILER = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the features and fences of x86-64"),
    pytest.mark.skipif(sys.platform != "linux", reason="compiled as on Linux"),
]


def compiled(source: str, into: Path, *options: str) -> Path:
    """Return a program compiled from sources of the tests and of the core, with little optimization."""
    if COMPILER is None:
        pytest.skip("not installed: a C++ compiler")
    program = into / Path(source).stem
    command = [
        COMPILER, "-O1", "-std=c++17", "-w", f"-I{NATIVE}", f"-I{into}", "-pthread", *options, "-o", str(program),
    ]  # fmt: skip
    subprocess.run([*command, str(PROGRAMS / source)], check=True, timeout=300)
    return program


def output(program: Path, given: str = "") -> str:
    done = subprocess.run([program], input=given, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# --------------------------------------------------------------------------------------------- streaming stores


def test_a_fence_follows_every_streaming_store(tmp_path: Path) -> None:
    """Test that a fence follows every streaming store, on a simulated machine that delays stores until a fence."""
    right, streamed = output(compiled("delayed_stores.cpp", tmp_path, "-DMAXOPS_MINIATURE")).split()
    assert int(right) == 3 * 4 * 7 * 36 * 4
    assert int(streamed) > int(right)


def test_a_fence_follows_the_streaming_stores_of_the_bench(tmp_path: Path) -> None:
    include = sysconfig.get_path("include")
    if not (Path(include) / "Python.h").exists():
        pytest.skip("not installed: Python's headers")
    library = compiled("delayed_sweep.cpp", tmp_path, "-shared", "-fPIC", f"-I{include}")
    assert ctypes.CDLL(str(library)).right_sweeps() == 40 * 40


def test_pages_at_any_place_leave_what_was_asked_for(tmp_path: Path) -> None:
    """Test that huge pages start at multiples of their size, and that unused pages around them are unmapped."""
    assert int(output(compiled("odd_mappings.cpp", tmp_path))) == 3 * 28


# ------------------------------------------------------------------------------------------ instruction sets

# Features that another feature implies, for the compiler and for processors, so that dispatch does not check them.
IMPLIED = {
    "avx": "avx2", "xsave": "avx2", "crc32": "sse4.2", "evex256": "avx512f", "evex512": "avx512f",
    "fma": "avx512f", "f16c": "avx512f",
}  # fmt: skip


def options_of_sets() -> dict[str, list[str]]:
    """Return the compiler options of each instruction set in CMakeLists.txt, best first."""
    text = (NATIVE.parent / "CMakeLists.txt").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for name, options in re.findall(r"^  set\((baseline|x86_64_v\d) ([^)]*)\)", text, re.MULTILINE)[:3]:
        words = [found[word[2:-1]] if word.startswith("${") else [word] for word in options.split()]
        found[name] = [word for each in words for word in each if word.startswith("-m") and "=" not in word]
    listed = re.search(r"set\(isas (x86_64.*)\)", text)
    assert listed is not None
    names = [*listed[1].split(), "baseline"]
    assert set(names) == set(found)
    return {name: found[name] for name in names}


def features_of(options: list[str]) -> set[str]:
    """Return the features that the compiler may use with these options, from its macros."""
    assert COMPILER is not None

    def macros(*more: str) -> set[str]:
        command = [COMPILER, *more, "-dM", "-E", "-x", "c++", "/dev/null"]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^#define __([A-Z][A-Z0-9_]*?)__ 1$", text, re.MULTILINE))

    return {name.lower().replace("sse4_", "sse4.") for name in macros(*options) - macros()}


def test_a_set_runs_only_where_all_is_that_its_code_may_use(tmp_path: Path) -> None:
    """Test that a processor does not run the kernels of an instruction set if it lacks one of the set's features."""
    sets = options_of_sets()
    names = {name: name.replace("x86_64_", "x86-64-") for name in sets}
    lines = "".join(f'MAXOPS_INSTRUCTION_SET({name}, "{shown}")\n' for name, shown in names.items())
    (tmp_path / "instruction_sets.def").write_text(lines)
    program = compiled("missing_features.cpp", tmp_path)
    asked = {name: features_of(options) for name, options in sets.items()}
    for features in asked.values():
        features -= {implied for implied, by in IMPLIED.items() if by in features}
    assert len(asked["x86_64_v4"]) == 13
    whole = sorted(set.union(*asked.values()))
    processors = [set(whole), set(), *({*whole} - {one} for one in whole)]
    processors += [{*whole} - {one, other} for one in whole for other in whole]
    processors += [{one} for one in whole] + [set(features) for features in asked.values()]
    found = output(program, "".join(" ".join(sorted(each)) + "\n" for each in processors)).splitlines()
    assert len(found) == len(processors)
    for processor, line in zip(processors, found, strict=True):
        running = [names[name] for name, features in asked.items() if features <= processor]
        assert line.split() == [*running, (running or ["none"])[0]], (sorted(processor), line)
