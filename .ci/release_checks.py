"""Runs the checks before a release, which take hours: `make release-checks`.

    python .ci/release_checks.py [--only TEXT] [--unrecorded]

Each check is a command, and all checks run even if some fail. A check that passes is recorded in the evidence with its
date, commit, duration, last line of output, and a digest of the sources. `maxops evidence` prints the record. With
--unrecorded, checks that have passed on these sources are skipped. An interrupted run can thus be resumed, as in
`make release`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "proofs"))

from claims import digest_of  # noqa: E402

EVIDENCE = ROOT / "src" / "maxops" / "evidence" / "evidence.json"
# {place} is a temporary folder.
CHECKS = {
    "JAX as the README installs it": """
        python3 -m venv {place}/jax
        {place}/jax/bin/python -m pip install -q ".[test,jax]"
        MAXOPS_TESTS_MAY_MISS=1 {place}/jax/bin/python -m pytest -q tests/engines/with_jax \
          tests/package/test_imports.py tests/package/test_extras.py""",
    "oldest releases": ".ci/lowest {place}/lowest",
    "tests for releases": "python -m pytest -q -m release",
    "emulated AVX-512": "make emulated EMULATED={place}/emulated",
    "wheels": "make wheels check-wheels WHEELS={place}/wheels RELEASE={place}/release",
    "sanitizers": "make sanitize SANITIZED={place}/sanitized",
    "faults": "make faults",
    "mutants": "make mutants",
}


def tree() -> str:
    """Return a digest of the files that the checks depend on: all files in git, except the evidence and the docs."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    whole = hashlib.sha256()
    for name in sorted(filter(None, listed)):
        path = ROOT / name
        if path.is_file() and not name.startswith(("src/maxops/evidence/", "docs/")):
            whole.update(f"{name} {digest_of(path)}\n".encode())
    return whole.hexdigest()


def run(name: str, command: str) -> tuple[bool, dict[str, Any]]:
    """Run a check and print its output. Return whether it passed, its seconds and its last line."""
    print(f"\n=== {name}", flush=True)
    began, last = time.monotonic(), ""
    with tempfile.TemporaryDirectory() as place:
        script = ["bash", "-euo", "pipefail", "-c", command.format(place=place)]
        with subprocess.Popen(script, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                last = line.strip() or last
    seconds = round(time.monotonic() - began)
    print(f"=== {name}: {'passed' if process.returncode == 0 else 'FAILED'}, {seconds} s", flush=True)
    return process.returncode == 0, {"seconds": seconds, "result": last}


def record(name: str, found: dict[str, Any]) -> None:
    """Write the result of a check into the evidence."""
    from maxops.json_text import in_lines  # noqa: PLC0415

    evidence = json.loads(EVIDENCE.read_text(encoding="utf-8"))
    evidence.setdefault("release_checks", {})[name] = found
    EVIDENCE.write_text(in_lines(evidence) + "\n", encoding="utf-8")


def main() -> int:
    """Run the selected checks, and record those that pass."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT", help="run only checks whose name contains TEXT")
    parser.add_argument(
        "--unrecorded", action="store_true", help="run only checks that have not passed on these sources"
    )
    options = parser.parse_args()
    chosen = {name: command for name, command in CHECKS.items() if options.only in name}
    if not chosen:
        parser.error(f"no check matches --only {options.only}; the checks are {', '.join(CHECKS)}")
    recorded = json.loads(EVIDENCE.read_text(encoding="utf-8")).get("release_checks", {})
    before, failed = tree(), []
    if options.unrecorded:
        chosen = {name: each for name, each in chosen.items() if recorded.get(name, {}).get("tree") != before}
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name, command in chosen.items():
        passed, found = run(name, command)
        if tree() != before:
            print(f"stopped: files changed while {name} ran, so its result is not recorded")
            return 1
        if passed:
            date = datetime.now(UTC).date().isoformat()
            record(name, {"date": date, "commit": commit.stdout.strip(), "tree": before, **found})
        else:
            failed.append(name)
    print(f"failed: {', '.join(failed)}" if failed else f"{len(chosen)} of {len(CHECKS)} checks ran and passed")
    if len(failed) < len(chosen):
        print(f"recorded in {EVIDENCE}; run python docs/generate.py, and commit both")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
