"""The tools of the proofs that Python does not bring: Frama-C, Why3 and its provers, OCaml."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from claims import ROOT

# The Debian package of each command.
PACKAGES = {
    "cvc4": "cvc4",
    "frama-c": "frama-c-base",
    "ocamldep": "ocaml",
    "ocamlopt": "ocaml",
    "why3": "why3",
    "z3": "z3",
}


def require(*commands: str) -> None:
    """Say what is missing: a proof that cannot be run is an error."""
    missing = [name for name in commands if shutil.which(name, path=system_path()) is None]
    if missing:
        packages = " ".join(sorted({PACKAGES[name] for name in missing}))
        raise RuntimeError(f"{', '.join(missing)}: not installed; apt-get install {packages}")


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
    """What a tool prints; its failure is an error that shows it."""
    environment = os.environ | {"PATH": system_path()}
    if why3_config is not None:
        environment["WHY3CONFIG"] = str(why3_config)
    done = subprocess.run(
        command, cwd=cwd, env=environment, input=text, capture_output=True, text=True, check=False, timeout=timeout
    )
    if done.returncode != 0:
        said = f"{done.stdout[-4000:]}{done.stderr[-4000:]}"
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{said}")
    return done.stdout


@contextmanager
def why3_config() -> Iterator[Path]:
    """A configuration that knows the provers, in a folder of its own."""
    require("why3", "z3", "cvc4")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "why3.conf"
        call(["why3", "config", "detect", "-C", str(path)])
        text = path.read_text(encoding="utf-8")
        if absent := [name for name in ('name = "CVC4"', 'name = "Z3"') if name not in text]:
            raise RuntimeError(f"Why3 finds no prover with {', '.join(absent)}")
        yield path


def version_of(command: str) -> str:
    """A tool's name and version, as it says them."""
    options = {"frama-c": "-version", "cvc4": "--version", "z3": "--version", "why3": "--version", "ocamlopt": "-version"}
    words = call([command, options[command]]).splitlines()[0].split()
    number = next(word for word in words if word[0].isdigit())
    return f"{command} {number}"
