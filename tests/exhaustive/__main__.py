"""Runs the enumerations in one process per core and prints the number of calls. Exits with 1 at the first failure."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed

from helpers.instruction_sets import ISAS
from maxops import _native

from .sections import SECTIONS, SHORT, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="exhaustive", description=__doc__)
    parser.add_argument("--isa", action="append", choices=ISAS, help="default: all")
    parser.add_argument("--only", action="append", choices=SECTIONS, help="default: every section")
    parser.add_argument(
        "--short", action="store_true", help="run the sections with lower bounds, which take a few minutes of CPU time"
    )
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    if not _native.is_miniature:
        parser.error("this is the ordinary build, whose boundaries these inputs do not reach: `make miniature`")
    names = options.only or (SHORT if options.short else SECTIONS)
    # The distribution of work to threads and the merging of axes are the same for all instruction sets; one suffices.
    isas = options.isa or ISAS
    tasks = [(isa, name) for name in names for isa in (isas[:1] if {"threads", "rank"} & {*name.split()} else isas)]
    total: Counter[str] = Counter()
    start = time.perf_counter()
    # If a process crashes, result() below raises BrokenProcessPool, so a crash is never a success.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(options.processes, mp_context=spawn) as pool:
        for done in as_completed([pool.submit(run, task) for task in tasks]):
            isa, name, calls, seconds, error = done.result()
            print(f"{isa:<10} {name:<28} {sum(calls.values()):>10,} calls {seconds:7.1f} s of CPU", flush=True)
            total += calls
            if error:
                print(f"\nWRONG in {name} on {isa}: {error}", flush=True)
                for process in multiprocessing.active_children():
                    process.terminate()
                os._exit(1)  # without waiting for the other sections
    print()
    for what, count in sorted(total.items()):
        print(f"{count:>12,} {what}")
    print(f"{sum(total.values()):>12,} calls in {time.perf_counter() - start:.0f} s, and not a bit wrong")
    return 0


if __name__ == "__main__":
    sys.exit(main())
