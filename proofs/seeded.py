"""Faults put into the contracts and the specification, each of which must leave a goal open that else is proved."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import contracts
import specification
from claims import ROOT, Claim
from prover_tools import require, version_of, why3_config

# Of a prover, for a goal that is proved in less where there is no fault.
SECONDS = 3

# A function of a file of contracts, its text, and a fault in its place.
CONTRACTS = (
    ("segments", "has_row", "0 <= id && id < walk.num_segments;", "0 <= id && id <= walk.num_segments;"),
    ("segments", "highest", "return a < b ? b : a;", "return a < b ? a : b;"),
    ("segments", "fill", "s < to; ++s) walk", "s <= to; ++s) walk"),
    ("segments", "fill", "    if (from < walk.written) from = walk.written;\n", ""),
    ("segments", "steps_to", "if (id >= previous) return true;", "if (id > previous) return true;"),
    ("segments", "sorted", "if (ids[i] < ids[i - 1]) down = 1;", "if (ids[i] <= ids[i - 1]) down = 1;"),
    ("segments", "highest_of", "++i) best = highest(best, x[i]);", "++i) best = x[i];"),
    ("segments", "one_segment", "resumes ? highest(walk.out[id], best) : best;", "best;"),
    ("segments", "short_row", "id == previous ? best : INT32_MIN;", "INT32_MIN;"),
    ("segments", "short_segments", "        previous = id;\n    }", "    }"),
    ("segments", "goes_on_after", "    fill(at.previous + 1,", "    fill(at.previous + 2,"),
    ("segments", "segment_column", "            if (!goes_on_after(x, ids, i, end, n)) break;\n", ""),
    ("segments", "segment_rows", "walk.last_id = ids[end - 1];", "walk.last_id = ids[begin];"),
    ("segments", "segment_rows", "i = run_end(ids, begin, end);", "i = begin + 1;"),
    ("segments", "segment", "    fill(walk.previous + 1,", "    fill(walk.previous + 2,"),
    ("run_end", "run_end", "n - i >= stretch && ids[i + stretch - 1] == id; s", "n - i >= stretch && ids[i + stretch] == id; s"),
    ("run_end", "run_end", "        if (differ) break;\n", ""),
    ("broadcast", "broadcast_axis", "            if (*whole != 1) return false;\n", ""),
    ("broadcast", "broadcast_axis", "if (strict && *whole == 0 && has_one)", "if (strict && *whole == 0)"),
    ("broadcast", "get_operand", "sizes[axis] == 1 ? 0 : strides[axis];", "strides[axis];"),
    ("broadcast", "position_offset", "bytes += index", "bytes -= index"),
    ("broadcast", "advance", "        index[axis] = 0;\n", ""),
    ("fold", "highest", "return a < b ? b : a;", "return a < b ? a : b;"),
    ("fold", "fold_few", "k > 0 ? sum : in[0][i * strides[0]];", "in[0][i * strides[0]];"),
    ("fold", "fold_element", "        k += taken;", "        k += arity;"),
    ("fold", "fold_block", "i < n; ++i) {\n        const Key best = fold_element", "i <= n; ++i) {\n        const Key best = fold_element"),
)  # fmt: skip

# A file of the specification, its text, and a fault in its place; the file whose goals show it.
SPECIFICATION = (
    ("tensor", "0 <= k < d /\\ valid ks ds", "0 <= k <= d /\\ valid ks ds", "tensor"),
    ("tensor", "Cons (if d = 1 then 0 else k) (source 0 ks ds)", "Cons k (source 0 ks ds)", "tensor"),
    ("tensor", "if d >= e then d else e", "if d >= e then e else d", "tensor"),
    ("tensor", "k * size ds + offset ks ds\n      | _ -> 0", "k * d + offset ks ds\n      | _ -> 0", "tensor"),
    ("max", "maximum (x y : t) : t = if le x y then y else x", "maximum (x y : t) : t = if le x y then x else y", "max"),
    ("max", "le x y \\/ le y x", "true", "max"),
    ("types", "| Positive m, Positive n -> m > n", "| Positive m, Positive n -> m < n", "types"),
    ("types", "    | NaN, _ -> false\n    | _ -> not", "    | _ -> not", "types"),
    ("types", "    | Zero, _ -> true\n", "    | Zero, MinusZero -> false\n    | Zero, _ -> true\n", "types"),
    ("types", "      k * n + half in", "      k * n in", "types"),
    ("ctensor", "for p = 0 to n - 1 do", "for p = 0 to n - 2 do", "ctensor"),
    ("ctensor", "maximum x.items[place r x.shape ks] (column", "maximum x.items[0] (column", "ctensor"),
    ("execute", "then canonical y else canonical x", "then canonical x else canonical y", "execute"),
)  # fmt: skip


def claims() -> list[Claim]:
    """One of the contracts, and one of the specification."""
    require("frama-c")
    with why3_config() as config:
        return [
            _claim("contracts", len(CONTRACTS), "frama-c", lambda: _contracts(config)),
            _claim("specification", len(SPECIFICATION), "why3", lambda: _specification(config)),
        ]


def _claim(name: str, count: int, tool: str, run: Callable[[], dict[str, list[str]]]) -> Claim:
    began = time.perf_counter()
    open_by_fault = run()
    suffix = "c" if name == "contracts" else "mlw"
    sources = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "proofs" / name).glob(f"*.{suffix}"))
    return Claim(
        f"seeded.{name}",
        f"each of {count} faults put into proofs/{name} leaves a goal open",
        "test",
        version_of(tool),
        ("proofs/seeded.py", *sources),
        count,
        tuple(fault for fault, goals in open_by_fault.items() if not goals),
        time.perf_counter() - began,
        {"open": {fault: len(goals) for fault, goals in open_by_fault.items()}},
    )


def _put(path: Path, text: str, fault: str) -> None:
    whole = path.read_text(encoding="utf-8")
    if whole.count(text) != 1:
        raise RuntimeError(f"{path.name}: {whole.count(text)} times {text!r}, where a fault is put")
    path.write_text(whole.replace(text, fault), encoding="utf-8")


def _contracts(config: Path) -> dict[str, list[str]]:
    found = {}
    for name, function, text, fault in CONTRACTS:
        with TemporaryDirectory() as folder:
            path = Path(shutil.copy(ROOT / "proofs" / "contracts" / f"{name}.c", folder))
            _put_in(path, function, text, fault)
            _, _, unproved = contracts.prove(str(path), config, seconds=SECONDS, function=function)
        found[f"{name}.{function}: {text.strip()}"] = list(unproved)
    return found


def _put_in(path: Path, function: str, text: str, fault: str) -> None:
    """In a function, whose text begins with its signature: the same line may be in another one."""
    whole = path.read_text(encoding="utf-8")
    signature = re.search(rf"^[a-z].*\b{function}\([^;]*?\{{", whole, re.MULTILINE)
    at = whole.find(text, signature.start()) if signature is not None else -1
    if at < 0 or (signature is not None and "\n}\n" in whole[signature.start() : at]):
        raise RuntimeError(f"{path.name}: {function} has no {text!r}, where a fault is put")
    path.write_text(whole[:at] + fault + whole[at + len(text) :], encoding="utf-8")


def _specification(config: Path) -> dict[str, list[str]]:
    found = {}
    for name, text, fault, shown in SPECIFICATION:
        with TemporaryDirectory() as folder:
            source = Path(shutil.copytree(specification.FOLDER, Path(folder) / "source"))
            _put(source / f"{name}.mlw", text, fault)
            goals = specification.goals_of(config, shown, Path(folder), source)
            found[f"{name}: {text.strip()}"] = [
                goal[0].stem for goal in goals if specification.prover_of(goal, (SECONDS,)) is None
            ]
    return found
