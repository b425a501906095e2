"""Builds the source distribution and the wheels, and tests each wheel in an environment without a compiler.

    python .ci/wheels.py build FOLDER [--only PATTERN]
    python .ci/wheels.py check FOLDER [--only PATTERN] [--pythons PATTERN]

--only selects wheels of the table below by name, such as `cp311-*-x86_64`, and --pythons selects versions, such as
`3.1[123]`. Every wheel is built from the unpacked source distribution, by a Python of its architecture.
This is Debian's Python with its own glibc, which is unpacked under build/wheels but not installed. Other architectures
run under qemu. (Debian has no Python 3.12, so the machine's `python3.12` is used if it exists.) Debian's g++ compiles
the code, as in `pip install .`. The linker sees only the glibc symbols of version GLIBC, which zig provides, and links
the C++ library statically, without a second unwinder. auditwheel then determines the manylinux tag.

`make wheels` and `make check-wheels` install the dependency group `release`, which this script requires. Missing Debian
packages are installed, which requires root.
"""

from __future__ import annotations

import argparse
import fnmatch
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / "build" / "wheels"  # interpreters and glibc stubs, kept so that later runs are fast

GLIBC = "2.17"  # the oldest version for which NumPy 2 has wheels


@dataclass(frozen=True)
class Machine:
    """An architecture, with its names in Debian."""

    name: str
    debian: str
    loader: str

    @property
    def triple(self) -> str:
        """The prefix of the names of compilers for the architecture."""
        return f"{self.name}-linux-gnu"

    @property
    def is_this_one(self) -> bool:
        """Whether this machine runs programs for the architecture without qemu."""
        return platform.machine() == self.name


X86_64 = Machine("x86_64", "amd64", "lib64/ld-linux-x86-64.so.2")
AARCH64 = Machine("aarch64", "arm64", "lib/ld-linux-aarch64.so.1")

# Debian's suites, by Python version.
SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid", "3.15": "sid"}


@dataclass(frozen=True)
class Wheel:
    """A wheel: its tags, and the versions of Python that build and test it."""

    tags: str
    built_by: str
    machine: Machine
    tried_by: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name that `--only` selects."""
        return f"{self.tags}-{self.machine.name}"


WHEELS = (
    Wheel("cp311-cp311", "3.11", X86_64, ("3.11",)),
    Wheel("cp312-abi3", "3.13", X86_64, ("3.12", "3.13", "3.14", "3.15")),
    Wheel("cp311-cp311", "3.11", AARCH64, ("3.11",)),
    Wheel("cp312-abi3", "3.13", AARCH64, ("3.13",)),
)

# The call that a build front end makes; the interpreter for which the wheel is built runs it.
BUILD = "import sys, scikit_build_core.build as build; build.build_wheel(sys.argv[1], eval(sys.argv[2]))"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cl", "zig", "cmake", "ninja", "make")


class WheelError(Exception):
    """Raised if a wheel cannot be built here, or is faulty."""


def run(*command: str | Path, cwd: Path = ROOT, **variables: str) -> None:
    """Run a command with additional environment variables. Raise an error if it fails."""
    words = [str(word) for word in command]
    subprocess.run(words, cwd=cwd, env=os.environ | variables, check=True)


def output(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    """Return the output of a command."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise WheelError(f"{' '.join(words)} exited with code {done.returncode}:\n{done.stdout}")
    return done.stdout


def say(text: str) -> None:
    """Print a progress message."""
    print(f"=== {text}", flush=True)


# ---------------------------------------------------------------------------- Debian


def debian_tools(machines: set[Machine]) -> None:
    """Install missing compilers and emulators."""
    needed = {"ccache": "ccache"}
    for each in machines:
        needed[f"{each.triple}-g++"] = "g++" if each.is_this_one else f"g++-{each.triple.replace('_', '-')}"
        if not each.is_this_one:
            needed[f"qemu-{each.name}-static"] = "qemu-user-static"
    missing = [package for command, package in needed.items() if shutil.which(command) is None]
    if missing:
        run("apt-get", "update", "-qq")
        install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends")
        run(*install, *missing, DEBIAN_FRONTEND="noninteractive")


def debian_packages(suite: str, machine: Machine, names: list[str], alone: list[str], place: Path) -> Iterator[Path]:
    """Download `names` with their dependencies, and `alone` without. Do not change the system's package lists."""
    archives = place / "cache" / "archives"
    for folder in (place / "state" / "lists" / "partial", archives / "partial"):
        folder.mkdir(parents=True, exist_ok=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (place / "sources.list").write_text(f"deb [signed-by={keys}] http://deb.debian.org/debian {suite} main\n", "utf-8")
    (place / "status").touch()
    settings = {
        "Dir::State": place / "state",
        "Dir::State::status": place / "status",
        "Dir::Cache": place / "cache",
        "Dir::Etc::sourcelist": place / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "APT::Architecture": machine.debian,
        "APT::Architectures": machine.debian,
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "true",
    }
    apt = ["apt-get", "-qq", *(word for key, value in settings.items() for word in ("-o", f"{key}={value}"))]
    run(*apt, "update")
    run(*apt, "install", "-y", "--no-install-recommends", "--download-only", *names)
    run(*apt, "download", *alone, cwd=archives)
    yield from sorted(archives.glob("*.deb"))


# ---------------------------------------------------------------------------- interpreters


@dataclass(frozen=True)
class Interpreter:
    """A Python into which packages can be installed, without a compiler on its PATH."""

    version: str
    machine: Machine
    python: Path

    def __str__(self) -> str:
        return f"Python {self.version} for {self.machine.name}"

    @property
    def paths(self) -> list[Path]:
        """The folders that contain the interpreter's programs."""
        return [self.python.parent, self.python.parent.parent / "local" / "bin"]

    def environment(self) -> dict[str, str]:
        """Return an environment without other programs and without settings of other Pythons."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        path = os.pathsep.join(map(str, self.paths))
        return kept | {"PATH": path, "PYTHONNOUSERSITE": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def __call__(self, *arguments: str | Path, cwd: Path = ROOT, **variables: str) -> str:
        """Run the interpreter and return its output."""
        return output(self.python, *arguments, cwd=cwd, env=self.environment() | variables)

    def install(self, *requirements: str) -> None:
        """Install packages with the interpreter's pip or, under qemu, with the current pip, which is minutes faster."""
        folder = self("-c", "import site; print(site.getsitepackages()[0])").strip()
        pip = (sys.executable, "-m", "pip", "install", "-q", "--upgrade", "--target", folder, "--only-binary=:all:")
        run(*pip, "pip")
        if self.machine.is_this_one:
            self("-m", "pip", "install", "-q", "--only-binary=:all:", "--root-user-action=ignore", *requirements)
        else:
            platforms = [f"--platform=manylinux_2_{minor}_{self.machine.name}" for minor in (28, 27, 17)]
            run(*pip, "--implementation=cp", f"--python-version={self.version}", *platforms, *requirements)


def debian_interpreter(version: str, machine: Machine) -> Interpreter:
    """Return Debian's Python of a version, unpacked with its glibc and its headers."""
    place = CACHE / f"python{version}-{machine.name}"
    root = place / "root"
    python = root / "usr" / "bin" / "python"
    if not python.exists():
        say(f"{Interpreter(version, machine, python)}: Debian {SUITES[version]}'s")
        names, headers = [f"python{version}", "libstdc++6"], [f"libpython{version}-dev"]
        for package in debian_packages(SUITES[version], machine, names, headers, place / "apt"):
            run("dpkg", "-x", package, root)
        for folder in ("lib", "lib64"):  # merged into /usr since trixie
            if not (root / folder).exists() and (root / "usr" / folder).exists():
                (root / folder).symlink_to(f"usr/{folder}")
        (root / "usr" / "lib" / f"python{version}" / "EXTERNALLY-MANAGED").unlink(missing_ok=True)
        if machine.is_this_one:
            libraries = ":".join(f"{root}/{folder}/{machine.triple}" for folder in ("lib", "usr/lib"))
            start = f'"{root}/{machine.loader}" --argv0 "$0" --library-path "{libraries}"'
        else:
            # Since trixie, Debian's programs sign return addresses; qemu's own algorithm takes 1/8 of the time.
            cpu = " -cpu max,pauth-impdef=on" if machine == AARCH64 else ""
            start = f'{shutil.which(f"qemu-{machine.name}-static")}{cpu} -0 "$0" -L "{root}"'
        python.write_text(f'#!/bin/sh\nexec {start} "{root}/usr/bin/python{version}" "$@"\n', "utf-8")
        python.chmod(0o755)
    return Interpreter(version, machine, python)


def interpreter(version: str, machine: Machine) -> Interpreter | None:
    """Return the Python of a version and an architecture, or None if it is not available."""
    if version in SUITES:
        return debian_interpreter(version, machine)
    own = shutil.which(f"python{version}")
    if own is None or not machine.is_this_one:
        return None
    if subprocess.run([own, "-V"], check=False, capture_output=True).returncode:  # a pyenv shim for a missing version
        return None
    place = CACHE / f"python{version}-{machine.name}"
    if not place.exists():
        run(own, "-m", "venv", place)
    return Interpreter(version, machine, place / "bin" / "python")


# ---------------------------------------------------------------------------- build


def glibc_stubs(machine: Machine) -> Path:
    """Return a folder with linker stubs for the symbols of glibc version GLIBC."""
    place = CACHE / f"glibc-{GLIBC}-{machine.name}"
    if (place / "libc.so").exists():
        return place
    say(f"glibc {GLIBC} for {machine.name}: zig's")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    source = place / "single_threaded.c"
    # glibc 2.32 added this variable, which reference counts in libstdc++ read; 0 means that other threads may exist.
    source.write_text("char __libc_single_threaded = 0;\n", "utf-8")
    compile_as_c = ("-x", "c", "-fPIC", "-fvisibility=hidden", "-c", source)
    run(f"{machine.triple}-g++", *compile_as_c, "-o", place / "single_threaded.o")
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", f"{machine.triple}.{GLIBC}")
    run(*zig, "-shared", source, "-o", place / "any.so", ZIG_GLOBAL_CACHE_DIR=str(place / "zig"))
    [libc] = (place / "zig").rglob("libc.so.6")
    [unshared] = (place / "zig").rglob("libc_nonshared.a")
    [loader] = libc.parent.glob("libld.so.*")
    for name, file in (("m", "libm.so.6"), ("pthread", "libpthread.so.0"), ("dl", "libdl.so.2"), ("rt", "librt.so.1")):
        (place / f"lib{name}.so").write_text(f"INPUT ( {libc.parent / file} )\n", "utf-8")
    apart = ("libpthread.so.0", "libdl.so.2", loader.name)  # since 2.34, libc.so.6 contains the first two
    needed = f"AS_NEEDED ( {' '.join(str(libc.parent / each) for each in apart)} )"
    text = f"GROUP ( {libc} {unshared} {place / 'single_threaded.o'} {needed} )\n"
    (place / "exports").write_text("{ global: PyInit_*; RegisterCustomOps; local: *; };\n", "utf-8")
    (place / "libc.so").write_text(text, "utf-8")
    return place


def build(wheel: Wheel, by: Interpreter, tree: Path, folder: Path) -> Path:
    """Build a wheel from the files of a tree into a folder."""
    stubs = glibc_stubs(wheel.machine)
    project = tomllib.loads((tree / "pyproject.toml").read_text("utf-8"))
    by.install(*project["build-system"]["requires"])
    headers = (
        by.python.parent.parent / "include"
    )  # Debian's pyconfig.h includes the architecture's pyconfig.h from there
    compile_ = [
        f"-idirafter {headers}",
        f"-ffile-prefix-map={ROOT}=.",  # assertions in headers contain the file name
    ]
    link = ["-static-libstdc++", "-Wl,--gc-sections", f"-Wl,--version-script={stubs / 'exports'}", f"-L{stubs}"]
    settings = project["tool"]["cibuildwheel"]["config-settings"] | {
        "cmake.define.CMAKE_SYSTEM_NAME": "Linux",
        "cmake.define.CMAKE_SYSTEM_PROCESSOR": wheel.machine.name,
        "cmake.define.CMAKE_CXX_COMPILER": f"{wheel.machine.triple}-g++",
        "cmake.define.CMAKE_CXX_FLAGS": " ".join(compile_),
        "cmake.define.CMAKE_MODULE_LINKER_FLAGS": " ".join(link),
        "build-dir": str(tree.parent / f"build-{wheel.name}"),
    }
    # The kernels do not depend on Python, so all wheels of an architecture share one compilation.
    variables = {"CMAKE_CXX_COMPILER_LAUNCHER": "ccache", "CCACHE_BASEDIR": str(tree.parent), "CCACHE_NOHASHDIR": "1"}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    with tempfile.TemporaryDirectory() as temporary:
        by("-c", BUILD, temporary, repr(settings), cwd=tree, PATH=path, **variables)
        [built] = Path(temporary).glob("*.whl")
        if f"-{wheel.tags}-" not in built.name:
            raise WheelError(f"{wheel.name}: expected tags {wheel.tags}, got {built.name}")
        if found := modules_faults(built, wheel.machine):
            raise WheelError("\n".join(f"{wheel.name}: {each}" for each in found))
        run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", folder, built, PATH=path)
    return find(wheel, folder)


def find(wheel: Wheel, folder: Path) -> Path:
    """Return the file of a wheel."""
    found = [path for path in folder.glob("*.whl") if is_of(path, wheel)]
    if len(found) != 1:
        raise WheelError(
            f"{folder}: expected one file for {wheel.name}, got {len(found)}; run make wheels WHEELS={folder}"
        )
    return found[0]


def is_of(path: Path, wheel: Wheel) -> bool:
    """Return whether a file is this wheel."""
    return f"-{wheel.tags}-" in path.name and path.stem.endswith(f"_{wheel.machine.name}")


def modules_faults(path: Path, machine: Machine) -> list[str]:
    """Return the faults of a wheel's extension modules that auditwheel does not check."""
    found = []
    with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory() as temporary:
        for name in archive.namelist():
            if name.endswith(".so"):
                symbols = output(f"{machine.triple}-nm", "--dynamic", archive.extract(name, temporary))
                found += [f"{name} {each}" for each in faults(symbols)]
    return found


def faults(symbols: str) -> list[str]:
    """Return the faults in nm's list of symbols: exported symbols, and required symbols that glibc GLIBC lacks."""
    found = []
    for line in symbols.splitlines():
        *address, kind, name = line.split()
        if address and not re.fullmatch("PyInit_.*|RegisterCustomOps", name):
            found.append(f"exports {name}")
        elif kind == "U" and "@" not in name and not re.match("_?Py", name):
            found.append(f"requires {name}, which glibc {GLIBC} lacks")
    return found


def build_all(wheels: list[Wheel], folder: Path) -> None:
    """Build the source distribution, and the wheels from it."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        run(sys.executable, "-m", "build", "--sdist", "--outdir", temporary, ROOT)
        [sdist] = Path(temporary).glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(temporary, filter="data")
        tree = Path(temporary) / sdist.name.removesuffix(".tar.gz")
        files = [Path(shutil.copy(sdist, folder))]
        for wheel in wheels:
            by = interpreter(wheel.built_by, wheel.machine)
            if by is None:
                say(f"{wheel.name}: not built, because Python {wheel.built_by} is not available")
                continue
            say(f"{wheel.name}, by Python {wheel.built_by}")
            files.append(build(wheel, by, tree, folder))
    look_at(files)


def look_at(files: list[Path]) -> None:
    """Check files with twine, check-wheel-contents and abi3audit."""
    run(sys.executable, "-m", "twine", "check", "--strict", *files)
    if wheels := [each for each in files if each.suffix == ".whl"]:
        run(sys.executable, "-m", "check_wheel_contents", *wheels)
    if stable := [each for each in wheels if "-abi3-" in each.name]:
        run(sys.executable, "-m", "abi3audit", "--strict", *stable)


# ---------------------------------------------------------------------------- check


def check(path: Path, by: Interpreter) -> tuple[float, str]:
    """Install a wheel without a compiler and run cibuildwheel's test commands. Return seconds and the last line."""
    everything = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, tests = everything["project"], everything["tool"]["cibuildwheel"]
    extras = [each for extra in tests["test-extras"] for each in project["optional-dependencies"][extra]]
    groups = [each for group in tests["test-groups"] for each in everything["dependency-groups"][group]]
    by.install(*project["dependencies"], *extras, *groups)
    found = by("-c", f"import shutil; print(*filter(None, map(shutil.which, {COMPILERS})))").strip()
    if found:
        raise WheelError(f"{by} has a compiler: {found}")
    began = time.monotonic()
    by("-m", "pip", "install", "-q", "--no-index", "--no-deps", "--force-reinstall", "--root-user-action=ignore", path)
    seconds = time.monotonic() - began
    where = by("-c", "import maxops; print(maxops.__file__)").strip()
    if not Path(where).is_relative_to(by.python.parent.parent):
        raise WheelError(f"{by} imports maxops from {where}, not from the wheel")
    for command in tests["test-command"]:
        printed = output("/bin/sh", "-c", command.format(project=ROOT), env=by.environment())
    return seconds, printed.strip().splitlines()[-1]


def check_all(wheels: list[Wheel], folder: Path, pythons: str) -> None:
    """Test each wheel on each of its Pythons that the pattern selects, and list the results."""
    rows = []
    for wheel in wheels:
        for version in fnmatch.filter(wheel.tried_by, pythons):
            by = interpreter(version, wheel.machine)
            if by is None:
                say(f"{wheel.name}: not tested on Python {version}, which is not available")
                continue
            path = find(wheel, folder)
            seconds, ended = check(path, by)
            how = "" if wheel.machine.is_this_one else " (qemu)"
            rows.append((path.name, f"{path.stat().st_size:,}", version + how, f"{seconds:.1f} s", ended))
            say("  ".join(rows[-1]))
    for row in rows:
        print("  ".join(row))


def main() -> None:
    """Build or check the selected wheels."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("action", choices=["build", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="wheels: " + ", ".join(each.name for each in WHEELS)
    )
    parser.add_argument("--pythons", default="*", metavar="PATTERN", help="Python versions to check; default: all")
    arguments = parser.parse_args()
    wheels = [each for each in WHEELS if fnmatch.fnmatch(each.name, arguments.only)]
    try:
        if not wheels:
            raise WheelError(
                f"no wheel matches --only {arguments.only}; the wheels are {', '.join(each.name for each in WHEELS)}"
            )
        debian_tools({each.machine for each in wheels})
        if arguments.action == "build":
            build_all(wheels, arguments.folder.absolute())
        else:
            check_all(wheels, arguments.folder.absolute(), arguments.pythons)
    except WheelError as error:
        sys.exit("\n".join(f"wheels: {line}" for line in str(error).splitlines()))
    except subprocess.CalledProcessError as error:
        sys.exit(f"wheels: {error.cmd[0]} failed with exit code {error.returncode}")


if __name__ == "__main__":
    main()
