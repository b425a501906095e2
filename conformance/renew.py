"""Judges the installed release of each runtime in the ledger again, and replaces the runs of older releases.

    python conformance/renew.py [RUNTIME ...]

Runs that used --quick are repeated with --quick. `make findings` runs this script with the newest releases installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import ledger
from maxops.conformance import saved

KNOWN = Path(__file__).resolve().parent / "known"


def renew(runtime: str) -> None:
    """Judge a runtime, and replace its earlier runs."""
    print(f"=== {runtime}", flush=True)
    earlier = [run for run in ledger.read(KNOWN) if run["runtime"] == runtime]
    quick = ["--quick"] if earlier and all(run["kit"]["quick"] for run in earlier) else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.json")
        command = [sys.executable, "-m", "maxops", "conform", runtime, *quick, "--json", str(path)]
        if subprocess.run(command, check=False).returncode not in (0, 1):  # 1: the runtime has faults
            raise SystemExit(f"maxops conform {runtime} failed; its findings are unchanged")
        (run,) = saved.read(path)
    written = KNOWN / ledger.file_name(run)
    written.write_text(saved.as_text([ledger.abridged(run)]), encoding="utf-8")
    for path in (KNOWN / ledger.file_name(each) for each in earlier):
        if path != written:
            path.unlink()
            print(f"{path.name}: replaced by {written.name}; update pages that name the version")


def main() -> None:
    """Renew the runtimes named on the command line, or all runtimes in the ledger."""
    for runtime in sys.argv[1:] or dict.fromkeys(run["runtime"] for run in ledger.read(KNOWN)):
        renew(runtime)


if __name__ == "__main__":
    main()
