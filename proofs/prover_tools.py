"""The tools of the proofs that Python does not bring: Frama-C, Why3 and its provers, OCaml."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from claims import ROOT

# The Debian package of each command, and how it says its version.
PACKAGES = {
    "cvc4": "cvc4",
    "frama-c": "frama-c-base",
    "ocamldep": "ocaml",
    "ocamlopt": "ocaml",
    "why3": "why3",
    "z3": "z3",
}
VERSION = {"frama-c": "-version", "ocamlopt": "-version"}
ZARITH = "libzarith-ocaml-dev"


def missing(*commands: str) -> set[str]:
    """The Debian packages of those commands that are not installed; with OCaml's compiler goes Zarith."""
    packages = {PACKAGES[name] for name in commands if shutil.which(name, path=system_path()) is None}
    if "ocamlopt" in commands and ("ocaml" in packages or not zarith().exists()):
        packages.add(ZARITH)
    return packages


def zarith() -> Path:
    """OCaml's library of integers without a bound, which programs that Why3 extracts are linked with."""
    return Path(call(["ocamlopt", "-where"]).strip(), "zarith", "zarith.cmxa")


def system_path() -> str:
    """Debian's commands first: a Python environment may have a `z3` of another version."""
    return f"/usr/bin{os.pathsep}{os.environ.get('PATH', '')}"


def call(
    command: Sequence[str],
    *,
    why3_config: Path | None = None,
    cwd: Path = ROOT,
    text: str | None = None,
    timeout: float | None = None,
) -> str:
    """What a tool prints; its failure is an error that shows it. After the timeout all that it started ends."""
    environment = os.environ | {"PATH": system_path()}
    if why3_config is not None:
        environment["WHY3CONFIG"] = str(why3_config)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, cwd=cwd, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            output, errors = process.communicate(text, timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if process.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{output[-4000:]}{errors[-4000:]}")
    return output


@contextmanager
def why3_config() -> Iterator[Path]:
    """A configuration that knows the provers, in a folder of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "why3.conf"
        call(["why3", "config", "detect", "-C", str(path)])
        text = path.read_text(encoding="utf-8")
        if absent := [name for name in ('name = "CVC4"', 'name = "Z3"') if name not in text]:
            raise RuntimeError(f"Why3 finds no prover with {', '.join(absent)}")
        yield path


def version_of(command: str) -> str:
    """A tool's name and version, as it says them."""
    words = call([command, VERSION.get(command, "--version")]).splitlines()[0].split()
    number = next(word for word in words if word[0].isdigit())
    return f"{command} {number}"
