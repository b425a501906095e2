"""Runs the proofs, and writes what they show: `make verify`.

    python proofs/verify.py [--long] [--only TEXT]

Claims that take minutes run every time; coverage, which takes longer, runs with --long. What did not run (coverage, and
what this processor cannot run) is kept while its sources are unchanged, and is no longer claimed after that. The result
is src/maxops/evidence/evidence.json, which stays as it was if something is wrong. The exit code is 1 if a claim does
not hold or has fewer goals than before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from importlib import import_module
from typing import Any

from claims import ROOT, Claim, digest, hashes, require_this_tree

EVIDENCE = ROOT / "src" / "maxops" / "evidence" / "evidence.json"
FORMAT = 1
# Modules of this folder with claims(): every time, and with --long.
SHORT = ("order", "instructions", "walks", "avx512", "copies", "planner", "tables")
LONG = ("covered",)

Json = dict[str, Any]


def stale(claim: Json) -> list[str]:
    """The sources of a claim that are not as they were when it was run."""
    there = [path for path in claim["sources"] if (ROOT / path).exists()]
    now = hashes(there)
    return [path for path, was in claim["sources"].items() if now.get(path) != was]


def problems(before: Json, after: Json) -> list[str]:
    """Why the evidence does not stand."""
    found = []
    goals = {claim["id"]: claim["goals"] for claim in before["claims"]}
    states, now = ({claim["id"]: claim["figures"] for claim in run["claims"]} for run in (before, after))
    for claim in after["claims"]:
        name = claim["id"]
        found += [f"{name}: {goal} stands open" for goal in claim["open"]]
        if claim["goals"] < goals.get(name, 1):
            found.append(f"{name}: {claim['goals']} goals, where there were {goals.get(name, 1)}")
        looked, was = (each.get(name, {}).get("states", 0) for each in (now, states))
        if looked < was:
            found.append(f"{name}: {looked} states, where there were {was}")
        if changed := stale(claim):
            found.append(f"{name}: {', '.join(changed)} changed while it ran")
    there = {claim["id"] for claim in after["claims"]}
    return found + [f"{name}: is gone" for name in goals if name not in there]


def main() -> int:
    """Run, write, and say what does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--long", action="store_true", help="run what takes long, too")
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="modules whose name contains this; nothing is written"
    )
    options = parser.parse_args()
    require_this_tree()
    before = json.loads(EVIDENCE.read_text(encoding="utf-8")) if EVIDENCE.exists() else {"claims": []}
    longer = LONG if options.long or options.only else ()
    modules = [name for name in (*SHORT, *longer) if options.only in name]
    if not modules:
        parser.error(f"--only {options.only}: there are {', '.join((*SHORT, *LONG))}")
    for kind, install in (("packages", "apt-get install"), ("python_packages", "python -m pip install")):
        missing: set[str] = set().union(*(getattr(import_module(name), kind, set)() for name in modules))
        if missing:
            parser.exit(2, f"tools of the proofs are not installed: {install} {' '.join(sorted(missing))}\n")
    claims: dict[str, Json] = {} if options.only else {claim["id"]: claim for claim in before["claims"]}
    for module in modules:
        began = time.perf_counter()
        found: list[Claim] = import_module(module).claims()
        ran = {claim.id: claim.as_json() | {"module": module} for claim in found}
        absent: dict[str, str] = getattr(import_module(module), "absent", dict)()
        kept = {name: claims[name] for name in absent if name in claims and not stale(claims[name])}
        for name, needed in absent.items():
            what = "stands as it was run elsewhere" if name in kept else "is not claimed"
            print(f"{name}: this processor has no {needed}; it {what}")
        before["claims"] = [claim for claim in before["claims"] if claim["id"] not in absent.keys() - kept.keys()]
        claims = {name: claim for name, claim in claims.items() if claim["module"] != module} | kept | ran
        proved, goals = (sum(claim[key] for claim in ran.values()) for key in ("proved", "goals"))
        print(
            f"{module}: {len(ran)} claims, {proved} of {goals} goals, {time.perf_counter() - began:.1f} s", flush=True
        )
    for name in [name for name, claim in claims.items() if claim["module"] in LONG and stale(claim)]:
        first, *more = stale(claims.pop(name))
        print(
            f"{name}: {first}{f' and {len(more)} more' * bool(more)} changed; it is no longer claimed: make verify-long"
        )
        before["claims"] = [claim for claim in before["claims"] if claim["id"] != name]
    after = {"format": FORMAT, "native": digest(), "claims": [claims[name] for name in sorted(claims)]}
    wrong = problems({"claims": []} if options.only else before, after)
    if not options.only and not wrong:  # or the next run would compare with less, and find nothing wrong
        EVIDENCE.parent.mkdir(exist_ok=True)
        EVIDENCE.write_text(json.dumps(after, indent=1) + "\n", encoding="utf-8")
    print("\n".join(wrong) or f"{len(after['claims'])} claims hold")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
