"""Runs what shows the claims, and writes what it finds: `make verify`.

    python proofs/verify.py [--check] [--only TEXT]

The claims are those of the packages beside this file (FAMILIES); each is run every time, in as many processes as there
are processors. One that this processor cannot run is kept while the files of its family are unchanged, and is no longer
claimed after that. What is found goes to src/maxops/evidence/evidence.json, unless something is wrong, or nothing
differs from what stands there. With --check nothing is written, and a difference is an error. The exit code is 1 if a
claim does not hold, if it shows less than before, or if --check finds a difference.
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
# What --check leaves out: another machine has other versions of tools, and compiles for another processor.
ELSEWHERE = ("build", "tool", "isa")
LINE_EACH = 30.0  # seconds between lines while nothing ends

Json = dict[str, Any]


def checks(only: str) -> dict[str, Check]:
    """The checks whose id has this text."""
    return {check.id: check for name in FAMILIES for check in import_module(name).CHECKS if only in check.id}


def family(name: str) -> str:
    """The package that makes a claim."""
    return name.partition(".")[0]


def claim_of(name: str) -> Claim:
    """Run one check."""
    (check,) = (check for check in import_module(family(name)).CHECKS if check.id == name)
    return check.claim()


def ran(name: str) -> tuple[Claim, float]:
    """The same, and how long it takes."""
    began = time.monotonic()
    return claim_of(name), time.monotonic() - began


def run_all(names: list[str]) -> list[Claim]:
    """Run them, with a line for each that ends, and one a while for those that go on."""
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
    """The files that a family's claims speak of and are shown by, with their digests."""
    return {path: digest for path, (digest, families) in evidence["files"].items() if name in families}


def made_of(claims: list[Claim], kept: list[Json], before: Json) -> Json:
    """The evidence, without where and when it was found."""
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
    """What a reader of the evidence asks of its run."""
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
    """Why the evidence does not stand."""
    found = []
    was = {claim["id"]: claim for claim in before["claims"]}
    for claim in after["claims"]:
        name = claim["id"]
        found += [f"{name}: {goal} stands open" for goal in claim["open"]]
        for count in ("goals", "cases"):
            if claim[count] < (least := was.get(name, claim)[count]):
                found.append(f"{name}: {claim[count]} {count}, where there were {least}")
    there = {claim["id"] for claim in after["claims"]}
    return found + [f"{name}: is gone" for name in was if name not in there]


def difference(before: Json, after: Json, ignored: tuple[str, ...] = ()) -> list[str]:
    """Where two pieces of evidence differ, but for where and when they were found, and for some fields of claims."""
    found = [name for name in ("format", "build", "files") if name not in ignored and before.get(name) != after[name]]
    was, now = (
        {claim["id"]: {name: value for name, value in claim.items() if name not in ignored} for claim in each["claims"]}
        for each in (before, after)
    )
    return found + [name for name in sorted(was.keys() | now.keys()) if was.get(name) != now.get(name)]


def main() -> int:
    """Run, write, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; a difference from what stands is an error")
    parser.add_argument("--only", default="", metavar="TEXT", help="claims whose id has this; nothing is written")
    options = parser.parse_args()
    if missing := [package for module, package in NEEDS.items() if find_spec(module) is None]:
        parser.exit(2, f"tools of the proofs are not installed: python -m pip install {' '.join(missing)}\n")
    chosen = checks(options.only)
    if not chosen:
        parser.error(f"--only {options.only}: there are {', '.join(checks(''))}")
    require_this_tree()
    # What processors lack, such as AVX-512, is no reason to claim less of sources that are as they were.
    before = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {}
    if before.get("format") != FORMAT:
        before = {"claims": [], "files": {}}
    kept = []
    for name in [name for name, check in chosen.items() if check.missing]:
        files = files_of(before, family(name))
        unchanged = digests(path for path in files if (ROOT / path).exists()) == files
        of_it = [claim for claim in before["claims"] if claim["id"] == name and unchanged]
        what = "stands as it was found elsewhere" if of_it else "is not claimed"
        print(f"{name}: this processor has no {chosen.pop(name).missing}; it {what}")
        kept += of_it
        before["claims"] = [claim for claim in before["claims"] if claim["id"] != name or of_it]
    after = made_of(run_all(list(chosen)), kept, before)
    if options.only:
        before["claims"] = [
            claim for claim in before["claims"] if claim["id"] in {each["id"] for each in after["claims"]}
        ]
    wrong = problems(before, after)
    if options.check:  # what this processor runs beside the claims that stand has to hold, and is no difference
        was = {claim["id"] for claim in before["claims"]}
        mine = {name for name, check in chosen.items() if check.isa != BASELINE} - was
        after["claims"] = [claim for claim in after["claims"] if claim["id"] not in mine]
    changed = [] if options.only or wrong else difference(before, after, ELSEWHERE if options.check else ())
    if changed and options.check:
        wrong = [f"{EVIDENCE.name} has another {', '.join(changed)}: run make verify, and commit what it writes"]
    elif changed:
        from maxops.json_text import in_lines  # noqa: PLC0415

        kept_record = {name: before[name] for name in ("release_checks",) if name in before}
        EVIDENCE.write_text(in_lines({"run": where_and_when()} | after | kept_record) + "\n", encoding="utf-8")
        print(f"wrote {EVIDENCE.name}: {', '.join(changed)}")
    print("\n".join(wrong) or f"{len(after['claims'])} claims hold")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
