"""Mutants: what the tests notice, of every small change to the planner, the reference, the judge and the rules.

    python proofs/mutants_python.py [--only FILE] [--sample N] [--keep FOLDER]

mutate_python.py finds the places, and switches a change on in functions that are imported already. The tests are
collected once. They run twice without a change, which shows that they notice nothing then, in whatever order, how long
each takes, and which lines it reaches. Then each mutant runs, in a process of its own, every test that reaches it,
until one notices: by a failure, a crash, or no end. It prints a rate for each file, and the survivors.
"""

from __future__ import annotations

import functools
import gc
import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import covered
from claims import ROOT
from mutate_python import Change, Module
from mutation import (
    TEST_SECONDS,
    Mutant,
    Unit,
    by_tests,
    command_line,
    in_child,
    is_noticed,
    killed,
    report,
    table,
)  # fmt: skip

# Those of tests that speak of these modules, in one process and of arrays in memory.
TESTS = (
    "test_planner", "test_reference", "test_rare_calls", "test_contracts", "test_bad_input", "test_scalars",
    "test_segment_ids", "test_unsorted_ids", "test_indices", "test_offsets", "test_real", "test_order", "test_maximum",
    "test_reduce_max", "test_segment_max", "test_conformance_judge", "test_conformance_cases", "test_checker_rules",
    "test_checker_onnx", "test_checker_ir",
)  # fmt: skip


class Runner:
    """Runs tests, with or without a mutant, in a process each."""

    def __init__(self, modules: dict[str, Module], units: list[Any]) -> None:
        self.modules = modules
        # What an earlier test had computed would hide a mutant from a later one.
        self.caches = [
            each for each in gc.get_objects()
            if isinstance(each, functools._lru_cache_wrapper) and str(each.__module__).startswith("maxops.")
        ]  # fmt: skip
        self.units: list[Unit] = [functools.partial(self.unit, unit) for unit in units]
        self.names = [str(unit.args[0].originalname) for unit in units]
        self.reached: dict[str, dict[int, set[int]]] = {}
        self.seconds: list[float] = []
        gc.collect()
        gc.freeze()  # or each process would copy what the collector touches
        gc.disable()

    def unit(self, test: Unit) -> bool:
        """Run one test on empty caches; whether it fails."""
        for cache in self.caches:
            cache.cache_clear()
        return test()

    def watch(self, folder: Path) -> None:
        """Which lines each test reaches, and how long it takes."""
        import coverage  # noqa: PLC0415  (only this needs it)

        written = folder / "watched.json"

        def reach() -> bool:
            files = [str(module.path) for module in self.modules.values()]
            counted = coverage.Coverage(data_file=None, config_file=False, include=files, messages=False)
            counted.start()
            for number, unit in enumerate(self.units):
                counted.switch_context(str(number))
                if is_noticed([unit], 10 * TEST_SECONDS):
                    raise RuntimeError(f"{self.names[number]} notices something where there is nothing")
            counted.stop()
            data = counted.get_data()
            found = {name: data.contexts_by_lineno(str(module.path)) for name, module in self.modules.items()}
            written.write_text(json.dumps(found))
            return False

        def clock() -> bool:
            seconds = []
            for number in reversed(range(len(self.units))):
                began = time.process_time()
                if is_noticed([self.units[number]], TEST_SECONDS):
                    raise RuntimeError(f"{self.names[number]} notices something where there is nothing")
                seconds.append(time.process_time() - began)
            written.write_text(json.dumps(seconds[::-1]))
            return False

        for act in (reach, clock):
            if (code := in_child(act)) != 0:
                raise RuntimeError(f"the tests ended with {code} without a mutant")
            found = json.loads(written.read_text())
            if act is clock:
                self.seconds = found
            else:
                self.reached = {
                    name: {int(line): {int(each) for each in contexts if each} for line, contexts in lines.items()}
                    for name, lines in found.items()
                }

    def tests_of(self, mutant: Mutant, change: Change) -> list[int]:
        """The tests that reach a mutant: the fastest of each function, then the next of each, and so on."""
        lines = self.reached[mutant.file]
        which = sorted(set().union(*(lines.get(line, set()) for line in change.lines)), key=self.seconds.__getitem__)
        rounds: defaultdict[str, int] = defaultdict(int)
        order = []
        for number in which:
            rounds[self.names[number]] += 1
            order.append((rounds[self.names[number]], self.seconds[number], number))
        return [number for *_, number in sorted(order)]

    def fate(self, mutant: Mutant, change: Change) -> str:
        """What becomes of a mutant: killed (and by what), or why it lives."""
        which = self.tests_of(mutant, change)
        if not which:
            return "not reached"

        switch_off = self.modules[mutant.file].switch_on(change)  # here, where nothing that fails is taken for noticed
        try:
            code = in_child(lambda: is_noticed((self.units[number] for number in which), TEST_SECONDS))
        finally:
            switch_off()
        return killed(code) if code else "survived"


def modules() -> dict[str, Module]:
    """The modules that are looked at, by their paths from the root."""
    paths = sorted(path for pattern in covered.PYTHON for path in ROOT.glob(pattern))
    for path in paths:
        import_module(".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__"))
    return {str(path.relative_to(ROOT)): Module(path) for path in paths}


def mutants_of(found: dict[str, Module]) -> list[tuple[Mutant, Change]]:
    """All mutants, numbered."""
    every = [(file, module, change) for file, module in found.items() for change in module.finder.changes]
    return [
        (
            Mutant(
                number, file, change.function.rpartition(".")[2], change.node.lineno, module.text(change), change.kind,  # type: ignore[attr-defined]
                change.what,
            ),
            change,
        )
        for number, (file, module, change) in enumerate(every, 1)
    ]  # fmt: skip


def judge(folder: Path, chosen: list[tuple[Mutant, Change]], names: dict[int, str], runner: Runner) -> dict[int, str]:
    """The fate of each chosen mutant; what a run before this one killed stays so, in a folder that is kept."""
    path = folder / "fates.json"
    fates: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    todo = [each for each in chosen if not fates.get(names[each[0].number], "").startswith("killed")]
    began = time.perf_counter()
    runner.watch(folder)
    print(f"{len(runner.units)} tests watched in {time.perf_counter() - began:.0f} s", flush=True)
    for count, (mutant, change) in enumerate(todo, 1):
        fates[names[mutant.number]] = runner.fate(mutant, change)
        if count % 100 == 0 or count == len(todo):
            path.write_text(json.dumps(fates, indent=0))
            lives = sum(not fates[names[each.number]].startswith("killed") for each, _ in todo[:count])
            print(f"{count} of {len(todo)}, {lives} live, {time.perf_counter() - began:.0f} s", flush=True)
    return {mutant.number: fates[names[mutant.number]] for mutant, _ in chosen}


def names_of(mutants: Iterable[Mutant]) -> dict[int, str]:
    """A name for each that stays when something else in its file changes."""
    seen: Counter[str] = Counter()
    names = {}
    for each in mutants:
        name = f"{each.file}:{each.function}: {each.text}: {each.kind} {each.change}"
        seen[name] += 1
        names[each.number] = f"{name} {seen[name]}"
    return names


def run_mutants(folder: Path, only: str, sample: int) -> tuple[list[str], bool]:
    """Run, and give the lines to print and whether enough are killed."""
    # The examples are the same each time, whatever package is missing.
    os.environ |= {"CI": "true", "MAXOPS_TESTS_MAY_MISS": "1"}
    paths = [str(ROOT / "src"), str(ROOT / "tests")]
    sys.path[:0] = paths
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)  # for processes that tests start
    found: list[tuple[list[str], bool]] = []

    def act(units: list[Unit]) -> None:
        every = modules()
        found_there = mutants_of(every)
        chosen = [each for each in found_there if only in each[0].file]
        if sample:
            chosen = random.Random(15).sample(chosen, min(sample, len(chosen)))
        fates = judge(folder, chosen, names_of(mutant for mutant, _ in found_there), Runner(every, units))
        left_out: Counter[str] = sum((module.finder.left_out for module in every.values()), Counter())
        found.append(table([mutant for mutant, _ in chosen], fates, left_out))

    by_tests(ROOT, TESTS, act)
    return found[0]


def main() -> int:
    """Run, and say what lives."""
    options = command_line(__doc__ or "").parse_args()
    return report(options, lambda folder: run_mutants(folder, options.only, options.sample))


if __name__ == "__main__":
    sys.exit(main())
