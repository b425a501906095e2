"""Builds the native core with all mutants of one file in one build. An environment variable enables one of them.

places_native.py finds the places, and wraps them in the switches of switches.h. Kernels and their drivers are built as
the miniature, on which the short enumerations run after the tests. Other files have the ordinary constants.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from .putting import SWITCH
from .running import ROOT, Mutant
from .watching import SEEN

HERE = Path(__file__).resolve().parent
DEFINED = f"""
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
MutantSwitch maxops_mutants = [] {{
    MutantSwitch chosen{{}};
    const char* text = std::getenv("{SWITCH}");
    if (text != nullptr && std::sscanf(text, "%u %u", &chosen.from, &chosen.chosen) == 2) chosen.count = 1;
    const char* path = std::getenv("{SEEN}");
    const int file = path == nullptr ? -1 : open(path, O_RDWR);
    if (file < 0) return chosen;
    void* seen = mmap(nullptr, lseek(file, 0, SEEK_END), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (seen != MAP_FAILED) chosen = {{0, ~0U, 0, static_cast<unsigned char*>(seen)}};
    return chosen;
}}();
"""
MINIATURE = (
    "api*", "core/*", "kernels/*", "drivers/argmax*", "drivers/fold*", "drivers/initial.h", "drivers/iterate.*",
    "drivers/reduce.cpp", "drivers/scatter.cpp", "drivers/segment*",
)  # fmt: skip
# A mutated constant is no longer constant, so narrowing is allowed; signed overflow wraps around.
COMPILED = f"-include {HERE / 'switches.h'} -w -fpermissive -Wno-narrowing -fwrapv"
ISAS = {"x86_64_v3": ("-mavx2", "-mbmi", "-mbmi2", "-mpopcnt", "-msse4.2"), "baseline": ()}


class Build:
    """A tree whose native modules contain every mutant of one file."""

    def __init__(self, tree: Path, name: str) -> None:
        self.tree, self.name, self.place = tree, name, tree / "build"
        self.is_miniature = any(fnmatch(name, each) for each in MINIATURE)
        cmake = tree / "CMakeLists.txt"
        cmake.write_text(
            f"{cmake.read_text(encoding='utf-8')}\ntarget_compile_options(options INTERFACE {COMPILED})\n",
            encoding="utf-8",
        )
        options = (
            "CMAKE_BUILD_TYPE=Debug", f"MAXOPS_MINIATURE={'ON' if self.is_miniature else 'OFF'}",
            f"MAXOPS_ISAS={';'.join(ISAS)}", f"Python_EXECUTABLE={sys.executable}",
        )  # fmt: skip
        self.run("cmake", "-S", str(tree), "-B", str(self.place), *(f"-D{each}" for each in options))

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a build tool. Errors of the compiler are returned, and others raised."""
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode and command[1] != "--build":
            raise RuntimeError(done.stdout + done.stderr)
        return done

    def mutants(self) -> list[Mutant]:
        """Find the places, wrap them, build, and return the mutants. Omit places that do not compile."""
        import numpy as np  # noqa: PLC0415

        from . import places_native as places  # noqa: PLC0415  (it needs libclang)

        native = ROOT / "native"
        found = places.Found()
        finder = places.Finder(native, found, [self.name])
        self.run("cmake", "--build", str(self.place), "--target", "sources_digest.h")
        folders = (self.place, ROOT / "third_party", sysconfig.get_paths()["include"], np.get_include())
        own = ["-xc++", "-std=c++17", "-resource-dir", places.resource_dir()]
        own += [*(f"-I{folder}" for folder in folders), *(["-DMAXOPS_MINIATURE"] if self.is_miniature else [])]
        own += ['-DMAXOPS_SOURCES=""', '-DMAXOPS_COMPILER=""', '-DMAXOPS_FLAGS=""']
        if self.name.endswith(".cpp"):
            finder.parse(native / self.name, own)
        else:  # a header is parsed in the sources that include it
            for source in sorted(native.glob("**/*.cpp")):
                if "testing" in source.parts or source.name in ("limits.cpp", "sources.cpp"):
                    continue
                for isa, flags in ISAS.items() if source.parent.name == "kernels" else (("baseline", ()),):
                    finder.parse(source, [*own, f"-DMAXOPS_ISA={isa}", *flags])
        numbered = list(places.numbered(found.places.values()))
        text = (native / self.name).read_bytes()
        starts = places.line_starts(text)
        is_source = self.name.endswith(".cpp")
        while True:
            wrapped = places.wrapped(text, numbered) + (DEFINED.encode() if is_source else b"")
            (self.tree / "native" / self.name).write_bytes(wrapped)
            if not is_source:
                sources = Path("native", "bindings", "sources.cpp")
                (self.tree / sources).write_text(
                    (ROOT / sources).read_text(encoding="utf-8") + DEFINED, encoding="utf-8"
                )
            done = self.run("cmake", "--build", str(self.place), "-j2", "--", "-k")
            if done.returncode == 0:
                break
            said = done.stdout + done.stderr
            lines = self.lines_of_errors(said)
            bad = [each for each in numbered if any(places.is_on_line(starts, each[1], line) for line in lines)]
            if not bad:
                raise RuntimeError(said[-6000:])
            numbered = [each for each in numbered if each not in bad]  # the others keep their numbers
        for library in self.place.glob("_*.so"):
            shutil.copy(library, self.tree / "src" / "maxops")
        return [
            Mutant(
                f"native/{self.name}", text.count(b"\n", 0, place.start) + 1, place.function,
                " ".join(text[place.start : place.end].decode().split()), place.kind, change,
                number=first + k, first=first,
            )
            for first, place in numbered
            for k, change in enumerate(place.changes)
        ]  # fmt: skip

    def lines_of_errors(self, said: str) -> set[int]:
        """Return the lines of this file that compiler errors name, as the place of the error or of an instantiation."""
        said = re.sub(r"\w+/\.\./", "", said)  # of headers that headers include
        blocks = re.split(r"(?=^[^\n]*: error: )", said, flags=re.M)[1:]
        pattern = rf"^(?:In file included from )?\S*native/{re.escape(self.name)}:(\d+)"
        return {int(found[1]) for block in blocks if (found := re.search(pattern, block, flags=re.M))}


def prepared(file: str, trees: Sequence[Path]) -> tuple[list[Mutant], Sequence[str]]:
    """Build the mutants of a native file into trees. Return the mutants, and a command that runs after the tests."""
    build = Build(trees[0], file.removeprefix("native/"))
    mutants = build.mutants()
    for tree in trees[1:]:
        for library in build.place.glob("_*.so"):
            shutil.copy(library, tree / "src" / "maxops")
    os.environ.pop(SWITCH, None)
    return mutants, ("-m", "exhaustive", "--short") if build.is_miniature else ()
