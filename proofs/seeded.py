#!/usr/bin/env python
"""Inserts faults into the verified files, and checks that the proofs detect them.

Each fault is one edit of one file in a copy of the repository. A fault in the specification must leave a goal open that
is proved without the fault. A fault in the planner, the native entry points or the spec table must leave a goal of
`planner` or `tables` open. A fault in a kernel must leave a goal of `walks`, `avx512` or `copies` open. `make faults`
tries all faults, which takes a few seconds for each. `python proofs/seeded.py --only fold` tries only the faults whose
file or text contains a word. The exit code is 1 if a fault is not detected.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from claims import ROOT, run
from specification import check

import maxops

# The time limit of a prover. Without a fault, each proof takes less time.
SECONDS = 3


@dataclass(frozen=True)
class Fault:
    """A fault: an edit that replaces `old`, which the file must contain exactly once, with `new`."""

    file: str  # relative to the root
    old: str
    new: str
    goals_of: str = ""  # for faults in the specification: the file whose goals must detect the fault
    claim: str = ""  # for faults in the package: the claim that must detect the fault

    @property
    def name(self) -> str:
        """The name of the fault in reports."""
        return f"{self.file}: {' '.join(self.old.split())}"

    def put(self, text: str) -> str:
        """Insert the fault into the text of the file."""
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: expected the text once, found it {count} times")
        return text.replace(self.old, self.new)


def _walked(name: str, old: str, new: str) -> Fault:
    return Fault(f"native/kernels/{name}.h", old, new, claim="walks.x86-64-v3")


def _specified(name: str, old: str, new: str) -> Fault:
    return Fault(f"proofs/specification/{name}.mlw", old, new, name)


def _planned(rule: str, name: str, old: str, new: str) -> Fault:
    return Fault(f"src/maxops/{name}.py", old, new, claim=f"planner.{rule}")


def _listed(name: str, old: str, new: str) -> Fault:
    return Fault(f"src/maxops/{name}.py", old, new, claim="tables.onnx")


def _kernel(name: str, claim: str, old: str, new: str) -> Fault:
    return Fault(f"native/kernels/{name}.h", old, new, claim=claim)


def _admitted(rule: str, name: str, old: str, new: str) -> Fault:
    return Fault(f"native/{name}", old, new, claim=f"planner.{rule}")


WALKS = (
    _walked("segment_ids", "stretch >= kRunScan; stretch /= 2", "stretch > kRunScan; stretch /= 2"),
    _walked("segment_ids", "ids[i].value < ids[i - 1].value", "ids[i].value <= ids[i - 1].value"),
    _walked("segment_walk", "    if (from < walk->written) from = walk->written;\n", ""),
    _walked("segment_walk", "walk->written = previous + 1;", "walk->written = previous;"),
    _walked("segment", "best = highest(before, T::key(items[i].value));", "best = T::key(items[i].value);"),
    _walked("segment", "resumes ? highest(T::key(out->value), best) : best", "best"),
    _walked("segment", "walk->last_id = ids[n - 1];", "walk->last_id = ids[0];"),
    _walked("segment", "    fill<T>(walk, *previous + 1, ids.num_segments);\n", ""),
)


SPECIFICATION = (
    _specified("tensor", "0 <= k < d /\\ valid ks ds", "0 <= k <= d /\\ valid ks ds"),
    _specified("tensor", "Cons (if d = 1 then 0 else k) (source 0 ks ds)", "Cons k (source 0 ks ds)"),
    _specified("tensor", "if d >= e then d else e", "if d >= e then e else d"),
    _specified("tensor", "k * size ds + offset ks ds\n      | _ -> 0", "k + offset ks ds\n      | _ -> 0"),
    _specified("max", "(x y : t) : t = if le x y then y else x", "(x y : t) : t = if le x y then x else y"),
    _specified("max", "total : forall x y. le x y \\/ le y x", "total : forall x y. le x y -> le x y"),
    _specified("types", "| Positive m, Positive n -> m > n", "| Positive m, Positive n -> m < n"),
    _specified("types", "    | NaN, _ -> false\n    | _ -> not", "    | _ -> not"),
    _specified("types", "    | Zero, _ -> true\n", "    | Zero, MinusZero -> false\n    | Zero, _ -> true\n"),
    _specified("types", "let bits = k * n + half in", "let bits = k * n in"),
    _specified("ctensor", "for p = 0 to n - 1 do", "for p = 0 to n - 2 do"),
    _specified("ctensor", "maximum x.items[place r x.shape ks] (column", "maximum x.items[0] (column"),
    _specified("execute", "then canonical y else canonical x", "then canonical x else canonical y"),
)

PLANNER = (
    _planned("axes", "plan/reduce", "if not lowest <= axis < rank:", "if not lowest <= axis <= rank:"),
    _planned("axes", "plan/reduce", "if axis % rank in result:", "if axis in result:"),
    _planned("axes", "plan/reduce", 'spec.clause("axes.range"),', 'spec.clause("axes"),'),
    _planned("axes", "shapes", "    if keepdims:\n", "    if not keepdims:\n"),
    _planned("axes", "ops", '"negative_axes": row.negative_axes,', '"negative_axes": True,'),
    _planned("broadcast", "plan/max", 'zero_with_one=spec.broadcast != "strict"', "zero_with_one=True"),
    _planned("broadcast", "plan/max", '"zero-size" if zero_with_one else shape_clause', "shape_clause"),
    _planned("broadcast", "ops", '"broadcast": row.broadcast,', '"broadcast": "numpy",'),
    _planned("types", "plan/max", "is not dtype:\n            raise DType", "is None:\n            raise DType"),
    _planned("types", "plan/values", 'spec.clause("T_IDX", "index_types")', 'spec.clause("T", "types")'),
    _planned("scalars", "plan/values", "<= value <= np.iinfo(dtype.numpy).max", "<= value < np.iinfo(dtype.numpy).max"),
    _planned("scalars", "plan/values", "    if spec.explicit_types:\n", "    if not spec.explicit_types:\n"),
    _planned("empty", "plan/reduce", " and first is None and 0 in array.shape", " and 0 in array.shape"),
    _planned("ids", "plan/segment", "count < 0:\n", "count < -1:\n"),
    _planned("ids", "plan/segment", "ids[-1] if is_sorted else ids.max()", "ids[-1]"),
    _planned("ids", "plan/segment", 'return None if is_sorted else "error"', "return None"),
    _planned("ids", "plan/faults", 'spec.clause("out_of_range"),', 'spec.clause("ids"),'),
    _planned("ids", "plan/faults", 'if sorted or out_of_range != "drop":', "if sorted:"),
    _planned("offsets", "plan/segment", "offsets.ndim != 1 or offsets.shape[0] == 0", "offsets.ndim != 1"),
    _planned("offsets", "plan/segment", "if not is_sorted or call.out_of_range is not None:", "if not is_sorted:"),
    _planned("fills", "plan/segment", "    if len(given) > 1:\n", "    if len(given) > 2:\n"),
    _planned("options", "plan/values", "(number := int_of(value)) in (0, 1)", "(number := int_of(value)) > -9"),
    _planned("inputs", "calls", "if not 2 <= len(inputs) <= 3:", "if not 2 <= len(inputs) <= 4:"),
    _planned("outputs", "plan/output", "if view.shape != shape:", "if view.ndim != len(shape):"),
)

ROWS = (
    _listed("spec", "version=13, dtypes=_types([dtypes.BFLOAT16], to=MAX_12)", "version=13"),
    _listed("spec", "_types([dtypes.INT8, dtypes.UINT8]", "_types([dtypes.INT8, dtypes.UINT8, dtypes.INT16]"),
    _listed("spec", 'attributes=("keepdims", "noop_with_empty_axes"),', 'attributes=("keepdims",),'),
    _listed("spec", "    version=18,\n", "    version=17,\n"),
    _listed("calls", "noop_with_empty_axes: Any = False", "noop_with_empty_axes: Any = True"),
    _listed("dtypes", '_numeric("float64", "double"', '_numeric("float64", "float64"'),
    _planned("axes", "spec", "    negative_axes=False,\n", ""),
    _planned(
        "broadcast", "spec", '    version=8,\n    broadcast="numpy",\n', '    version=8,\n    broadcast="strict",\n'
    ),
    _planned("scalars", "spec", "    explicit_types=True,\n    leaves_open", "    leaves_open"),
    _planned("types", "spec", "_types((*_FLOATS, *_INTEGERS, dtypes.REAL))", "_types((*_FLOATS, *_INTEGERS))"),
    _planned("types", "spec", "index_dtypes=(dtypes.INT32, dtypes.INT64)", "index_dtypes=_INTEGERS"),
)

NATIVE = (
    _admitted("axes", "api.cpp", "if (axis < 0 || axis >= rank)", "if (axis < 0 || axis > rank)"),
    _admitted("axes", "api.cpp", "if (call->is_reduced[axis]) return", "if (axis < 0) return"),
    _admitted("broadcast", "api.cpp", "Broadcasting::kStrict && whole == 0", "Broadcasting::kNone && whole == 0"),
    _admitted("ids", "api_segments.cpp", "is_given && highest >= call->num_segments", "is_given && highest < -1"),
)
KERNELS = (
    _kernel("segment_avx512", "avx512.segments", "moved_up<2>(ids, no_id)", "moved_up<1>(ids, no_id)"),
    _kernel("segment_avx512", "avx512.segments", "(ends & lanes) | 1U << (most - 1)", "ends | 1U << (most - 1)"),
    _kernel("segment_avx512", "avx512.segments", "    keys = Lanes::highest(goes_on, keys, carry);\n", ""),
    _kernel("segment_avx512", "avx512.segments", "(1U << (rows - k)) - 1 : kAll", "(1U << (rows - k)) : kAll"),
    _kernel(
        "segment_avx512",
        "avx512.segments",
        "Keys::store((1U << segments) - 1,",
        "Keys::store((1U << (segments - 1)) - 1,",
    ),
    _kernel("segment_avx512", "avx512.segments", "if (first < previous || first < 0", "if (first < 0"),
    _kernel("segment_avx512", "avx512.lanes", "kFlipMasked = 0x78;", "kFlipMasked = 0x3C;"),
    _kernel("segment_avx512", "avx512.lanes", "_mm512_min_epi32(wide, Lanes::splat(1))", "wide"),
    _kernel(
        "transpose",
        "copies.baseline",
        "lane % 2 * kWidth + first + lane / 2",
        "(1 - lane % 2) * kWidth + first + lane / 2",
    ),
    _kernel("transpose", "copies.baseline", "swap ? swapped_bytes(word) : word", "word"),
    _kernel("copy", "copies.baseline", "first, second, 0, 2, 4, 6", "first, second, 0, 2, 4, 5"),
    _kernel(
        "argmax",
        "copies.baseline",
        "static_cast<std::uint64_t>(row) < static",
        "static_cast<std::uint64_t>(row) > static",
    ),
)
FAULTS = (*WALKS, *SPECIFICATION, *PLANNER, *ROWS, *NATIVE, *KERNELS)


def shown_by_specification(fault: Fault, root: Path, config: Path) -> str:
    """Return the first goal of the specification that is open only because of the fault, or an empty string."""
    with TemporaryDirectory() as folder, TemporaryDirectory() as other:
        source = root / "proofs" / "specification"
        without = {goal[0].stem: goal for goal in check.goals_of(config, fault.goals_of, Path(other))}
        for goal in check.goals_of(config, fault.goals_of, Path(folder), source):
            name = goal[0].stem
            if check.prover_of(goal, (SECONDS,)) is None and (
                name not in without or check.prover_of(without[name], (SECONDS,)) is not None
            ):
                return name
    return ""


def shown_by_claims(fault: Fault, root: Path, _: Path) -> str:
    """Return the open goals of the fault's claim, for the Python package in the copy."""
    return open_goals(fault, root, root / "src")


def shown_by_build(fault: Fault, root: Path, _: Path) -> str:
    """Rebuild the native core, and return the open goals of the fault's claim. The first build takes ten seconds."""
    build, package = root / "build", root / "built" / "maxops"
    if not package.exists():
        shutil.copytree(root / "src" / "maxops", package, ignore=shutil.ignore_patterns("_native*"))
        python, options = (
            f"-DPython_EXECUTABLE={sys.executable}",
            ("-DCMAKE_BUILD_TYPE=Debug", "-DMAXOPS_ISAS=baseline"),
        )
        run(["cmake", "-S", str(root), "-B", str(build), "-G", "Ninja", python, *options])
    run(["ninja", "-C", str(build), "_native"])
    shutil.copy(next(build.glob("_native*.so")), package)
    return open_goals(fault, root, package.parent)


def open_goals(fault: Fault, root: Path, packages: Path) -> str:
    """Return the open goals of the fault's claim, for the package in the folder `packages`."""
    show = "import maxops, verify; print(maxops.__file__); print([*verify.claim_of(%r).open])"
    # Without this setting, Python would not recompile a file that changes within a second and keeps its size.
    environment = {"PYTHONPATH": f"{packages}:{root / 'proofs'}", "PYTHONDONTWRITEBYTECODE": "1"}
    place, found = run([sys.executable, "-c", show % fault.claim], env=environment).stdout.splitlines()
    if packages not in Path(place).parents:
        raise RuntimeError(f"expected maxops from {packages}, got {place}")
    return "" if found == "[]" else found


def _tries() -> Iterator[tuple[Fault, Callable[[Fault, Path, Path], str]]]:
    yield from ((fault, shown_by_specification) for fault in SPECIFICATION)
    yield from ((fault, shown_by_claims) for fault in (*WALKS, *PLANNER, *ROWS, *KERNELS))
    yield from ((fault, shown_by_build) for fault in NATIVE)


def main() -> int:
    """Try all faults, and print those that are not detected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="try only faults whose file or text contains TEXT", metavar="TEXT")
    only = parser.parse_args().only
    if missing := check.missing("why3", "cvc4", "z3"):
        parser.exit(2, f"missing tools; run apt-get install {' '.join(sorted(missing))}\n")
    missed, count = [], 0
    with TemporaryDirectory() as folder, check.why3_config() as config:
        shutil.copy(ROOT / "CMakeLists.txt", folder)
        for name in ("native", "proofs", "src"):
            shutil.copytree(ROOT / name, Path(folder) / name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        for library in Path(maxops.__file__).parent.glob("_*.so"):
            shutil.copy(library, Path(folder) / "src" / "maxops")
        for fault, show in _tries():
            if only not in fault.name:
                continue
            path, began = Path(folder) / fault.file, time.perf_counter()
            text = path.read_text(encoding="utf-8")
            path.write_text(fault.put(text), encoding="utf-8")
            shown = show(fault, Path(folder), config)
            path.write_text(text, encoding="utf-8")
            count += 1
            missed += [] if shown else [fault.name]
            seconds = time.perf_counter() - began
            print(f"{'found ' if shown else 'MISSED'} {seconds:5.1f} s  {fault.name}: {shown[:80]}", flush=True)
    print("\n".join([f"{count - len(missed)} of {count} faults found", *(f"missed: {name}" for name in missed)]))
    return int(bool(missed) or count == 0)


if __name__ == "__main__":
    sys.exit(main())
