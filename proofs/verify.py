"""Runs the checks of all claims and writes the evidence: `make verify`.

    python proofs/verify.py [--check] [--only TEXT]

The packages in this folder (FAMILIES) contain the claims. Every run checks all claims, with one process per CPU. If
this processor cannot check a claim, its earlier evidence is kept if the files of its family are unchanged, and removed
otherwise. The evidence is written to src/maxops/evidence/evidence.json if all claims hold and the evidence differs from
the file. With --check, nothing is written, and a difference is an error. The exit code is 1 if a claim does not hold,
if it has fewer goals or cases than before, or if --check detects a difference.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from claims import BASELINE, FEATURE, ROOT, Check, Claim, compiler, digests, require_this_tree, run

EVIDENCE = ROOT / "src" / "maxops" / "evidence" / "evidence.json"
FORMAT = 2
FAMILIES = ("walks", "planner", "avx512", "copies", "order", "tables")  # the longest first
NEEDS = {"z3": "z3-solver", "onnx": "onnx"}
# The fields that --check ignores, because they differ between machines.
ELSEWHERE = ("build", "tool", "isa")
LINE_EACH = 30.0  # seconds between progress lines

Json = dict[str, Any]


def checks(only: str) -> dict[str, Check]:
    """Return the checks whose ids contain a text, keyed by id."""
    return {check.id: check for name in FAMILIES for check in import_module(name).CHECKS if only in check.id}


def family(name: str) -> str:
    """Return the name of the package that contains a claim."""
    return name.partition(".")[0]


def claim_of(name: str) -> Claim:
    """Run one check and return its claim."""
    (check,) = (check for check in import_module(family(name)).CHECKS if check.id == name)
    return check.claim()


def ran(name: str) -> tuple[Claim, float]:
    """Run one check, and return its claim and the duration in seconds."""
    began = time.monotonic()
    return claim_of(name), time.monotonic() - began


def run_all(names: list[str]) -> list[Claim]:
    """Run checks in parallel. Print a line for each finished check, and progress lines at regular intervals."""
    began, found = time.monotonic(), []
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        waiting: dict[Future[tuple[Claim, float]], str] = {pool.submit(ran, name): name for name in names}
        while waiting:
            done, _ = wait(waiting, timeout=LINE_EACH, return_when=FIRST_COMPLETED)
            for future in done:
                del waiting[future]
                claim, seconds = future.result()
                found.append(claim)
                state = f"{len(claim.open)} open of {claim.goals}" if claim.open else f"{claim.goals} goals hold"
                print(f"{claim.id}: {state}, {claim.cases} cases, {seconds:.1f} s", flush=True)
            if not done:
                running = ", ".join(name for future, name in waiting.items() if future.running())
                print(
                    f"{time.monotonic() - began:.0f} s: {len(found)} of {len(names)} done; running: {running}",
                    flush=True,
                )
    return found


def files_of(evidence: Json, name: str) -> dict[str, str]:
    """Return the digests of the files that a family of claims depends on, by path."""
    return {path: digest for path, (digest, families) in evidence["files"].items() if name in families}


def made_of(claims: list[Claim], kept: list[Json], before: Json) -> Json:
    """Return the evidence: the build, the files, the new claims, and the claims that are kept from earlier evidence."""
    from maxops import _native  # noqa: PLC0415

    rows = {claim.id: claim.as_json() for claim in claims} | {claim["id"]: claim for claim in kept}
    families: dict[str, set[str]] = {}
    for path, name in ((path, family(claim.id)) for claim in claims for path in claim.files):
        families.setdefault(path, set()).add(name)
    for name in {family(claim["id"]) for claim in kept}:
        for path in files_of(before, name):
            families.setdefault(path, set()).add(name)
    files = {path: [digest, sorted(families[path])] for path, digest in digests(families).items()}
    return {"format": FORMAT, "build": _native.build(), "files": files, "claims": [rows[name] for name in sorted(rows)]}


def where_and_when() -> Json:
    """Return the commit, the date and the machine of this run."""
    from maxops.machine import machine  # noqa: PLC0415

    state = run(["git", "status", "--porcelain", "--", "native", "src", "proofs", "CMakeLists.txt"]).stdout
    there = platform.machine() == "x86_64" and [name for name in FEATURE if not Check("", Claim, name).missing]
    return {
        "commit": run(["git", "rev-parse", "HEAD"]).stdout.strip() + (" and changes" if state else ""),
        "date": datetime.now(UTC).date().isoformat(),
        "processor": machine(1)["cpu"],
        "instruction sets of the processor": ["baseline", *(there or [])],
        "system": platform.platform(),
        "compiler of the proofs": compiler(),
    }


def problems(before: Json, after: Json) -> list[str]:
    """Return the reasons why the evidence is not accepted."""
    found = []
    was = {claim["id"]: claim for claim in before["claims"]}
    for claim in after["claims"]:
        name = claim["id"]
        found += [f"{name}: {goal} is open" for goal in claim["open"]]
        for count in ("goals", "cases"):
            if claim[count] < (least := was.get(name, claim)[count]):
                found.append(f"{name}: {claim[count]} {count} instead of {least}")
    there = {claim["id"] for claim in after["claims"]}
    return found + [f"{name}: the claim is missing" for name in was if name not in there]


def difference(before: Json, after: Json, ignored: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the fields and claims that differ between two versions of the evidence."""
    found = [name for name in ("format", "build", "files") if name not in ignored and before.get(name) != after[name]]
    was, now = (
        {claim["id"]: {name: value for name, value in claim.items() if name not in ignored} for claim in each["claims"]}
        for each in (before, after)
    )
    return found + [name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]


def main() -> int:
    """Run the checks, write the evidence, and print problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the evidence differs")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="check only claims whose id contains TEXT, and write nothing"
    )
    options = parser.parse_args()
    if missing := [package for module, package in NEEDS.items() if find_spec(module) is None]:
        parser.exit(2, f"missing tools; run python -m pip install {' '.join(missing)}\n")
    chosen = checks(options.only)
    if not chosen:
        parser.error(f"no claim contains {options.only!r}; the claims are {', '.join(checks(''))}")
    require_this_tree()
    # Keep the earlier claims about unchanged sources that this processor cannot check, for example without AVX-512.
    before = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {}
    if before.get("format") != FORMAT:
        before = {"claims": [], "files": {}}
    kept = []
    for name in [name for name, check in chosen.items() if check.missing]:
        files = files_of(before, family(name))
        unchanged = digests(path for path in files if (ROOT / path).exists()) == files
        of_it = [claim for claim in before["claims"] if claim["id"] == name and unchanged]
        what = "the earlier evidence is kept" if of_it else "the claim is removed"
        print(f"{name}: this processor has no {chosen.pop(name).missing}; {what}")
        kept += of_it
        before["claims"] = [claim for claim in before["claims"] if claim["id"] != name or of_it]
    after = made_of(run_all(list(chosen)), kept, before)
    if options.only:
        before["claims"] = [
            claim for claim in before["claims"] if claim["id"] in {each["id"] for each in after["claims"]}
        ]
    wrong = problems(before, after)
    if options.check:  # claims that only this processor can check must hold, but are not a difference
        was = {claim["id"] for claim in before["claims"]}
        mine = {name for name, check in chosen.items() if check.isa != BASELINE} - was
        after["claims"] = [claim for claim in after["claims"] if claim["id"] not in mine]
    changed = [] if options.only or wrong else difference(before, after, ELSEWHERE if options.check else ())
    if changed and options.check:
        wrong = [f"{EVIDENCE.name} differs in {', '.join(changed)}: run make verify, and commit the file"]
    elif changed:
        from maxops.json_text import in_lines  # noqa: PLC0415

        kept_record = {name: before[name] for name in ("release_checks",) if name in before}
        EVIDENCE.write_text(in_lines({"run": where_and_when()} | after | kept_record) + "\n", encoding="utf-8")
        print(f"wrote {EVIDENCE.name}: {', '.join(changed)}")
    print("\n".join(wrong) or f"{len(after['claims'])} claims hold")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
