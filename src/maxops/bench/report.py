"""Reads and writes the JSON of a run, and creates its tables for the terminal, the HTML page and docs/speed.md."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from maxops.bench.grid import MEANINGS, OPERATORS, label
from maxops.bench.timing import Json
from maxops.counted import counted
from maxops.errors import MaxopsError
from maxops.json_text import in_lines

NOTHING = "-"
FASTEST, LIMIT = "fastest", "limit"
TIME = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
BYTES = {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0}

Points = list[tuple[int, float]]  # size, ratio

FORMAT = 2
_OF_A_RUN = {"began", "command", "machine", "libraries", "cases"}
_OF_A_CASE = {"id", "operator", "family", "type", "size", "bytes_read", "bytes_written", "ours", "libraries", "limit"}
_OF_A_CASE |= {"fastest", "ratio"}


class BenchFileError(MaxopsError, ValueError):
    """Raised if the file of an earlier run cannot be read or does not contain a run."""


def read(path: Path) -> Json:
    """Read the run in a file."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BenchFileError(f"{path}: {error.strerror}") from error


def parse(data: bytes, source: str) -> Json:
    """Parse the run in the content of a file. Error messages name `source`."""
    try:
        run = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise BenchFileError(f"{source} is not valid JSON: {error}") from error
    if not isinstance(run, dict) or run.get("format") != FORMAT:
        raise BenchFileError(f"{source}: expected a run of maxops bench in format {FORMAT}; run the benchmark again")
    cases = run.get("cases", [])
    if not isinstance(cases, list):
        raise BenchFileError(f"{source}: cases must be a list")
    fields = [(source, run, _OF_A_RUN), *((f"{source}: cases[{n}]", each, _OF_A_CASE) for n, each in enumerate(cases))]
    for where, value, names in fields:
        if not isinstance(value, dict):
            raise BenchFileError(f"{where} must be an object")
        if missing := names - value.keys():
            raise BenchFileError(f"{where} has no {min(missing)}; was the file written by maxops bench?")
    return run


def as_text(run: Json) -> str:
    """Return the text of a run's file. Equal runs have equal texts."""
    return in_lines(run) + "\n"


@dataclass(frozen=True)
class Table:
    """A table with a heading and a sentence on how to read it."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def value(case: Json, against: str) -> float | None:
    """Return the speedup over the fastest correct library, or the share of memory bandwidth."""
    ratio = case["ratio"] if against == FASTEST else case["limit"].get("ratio")
    return None if ratio is None else float(ratio["median"])


def our_failures(run: Json) -> list[str]:
    """Return the cases in which the result of maxops is wrong."""
    return [f"{case['id']}: {case['ours']['reason']}" for case in run["cases"] if case["ours"]["status"] != "correct"]


def times(number: float | None) -> str:
    """Format a ratio with about two digits.

    >>> times(0.954), times(12.3), times(170.2), times(None)
    ('0.95', '12', '170', '-')
    """
    if number is None:
        return NOTHING
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"


def spread(ratio: Json | None) -> str:
    """Format a ratio with its quartiles."""
    return f"{times(ratio['median'])} ({times(ratio['low'])}-{times(ratio['high'])})" if ratio else NOTHING


def scaled(number: float, units: dict[str, float]) -> str:
    """Format a time or a number of bytes with its unit, in powers of ten.

    >>> scaled(91e-9, TIME), scaled(0.0123, TIME), scaled(1_234_567, BYTES), scaled(4, BYTES)
    ('91 ns', '12.3 ms', '1.23 MB', '4 B')
    """
    unit, scale = next((each for each in units.items() if number >= each[1]), list(units.items())[-1])
    return f"{number / scale:.3g} {unit}"


def headline(run: Json) -> str:
    """Summarize a run in one line."""
    compared = [ratio for case in run["cases"] if (ratio := value(case, FASTEST)) is not None]
    if not compared:
        return f"In {counted(len(run['cases']), 'case')}, no library returned a correct result to compare with"
    return (
        f"In {counted(len(run['cases']), 'case')}, the median speedup over the fastest correct library is "
        f"{times(statistics.median(compared))}; {sum(ratio < 1 for ratio in compared)} of {len(compared)} speedups are "
        "below 1.0"
    )


def by_family(title: str, note: str, timed: Sequence[Json], levels: Sequence[float]) -> Table:
    """Return a table of ratios by operator and family, then by operator: median, lowest, and number of low ratios."""
    groups: dict[tuple[str, ...], list[float]] = {}  # the operator, the family, and "all" or nothing
    for case in timed:
        groups.setdefault((case["operator"], case["family"]), []).append(float(case["ratio"]["median"]))
    for case in timed:
        groups.setdefault((case["operator"], "all", "all"), []).append(float(case["ratio"]["median"]))
    rows = []
    for name, ratios in groups.items():
        below = (str(sum(ratio < level for ratio in ratios)) for level in levels)
        rows.append((*name[:2], str(len(ratios)), times(statistics.median(ratios)), times(min(ratios)), *below))
    columns = ("operator", "family", "cases", "median", "lowest", *(f"below {level}" for level in levels))
    return Table(title, note, columns, rows)


_MEANINGS = {
    FASTEST: ("{}", "the speedup over the fastest correct library"),
    LIMIT: (
        "{}, share of the memory bandwidth",
        "the time to load and store the same number of bytes, divided by the time of maxops",
    ),
}


def overview(run: Json, operator: str, against: str) -> Table:
    """Return a table of an operator's ratios to the fastest library or the limit, by family and size, for all types."""
    found: dict[str, dict[int, list[tuple[float, str]]]] = {}
    for case in run["cases"]:
        if case["operator"] == operator and (ratio := value(case, against)) is not None:
            found.setdefault(case["family"], {}).setdefault(case["size"], []).append((ratio, case["type"]))
    sizes = sorted({size for cells in found.values() for size in cells})
    rows = [[family, *(_median_and_lowest(cells.get(each, [])) for each in sizes)] for family, cells in found.items()]
    title, what = _MEANINGS[against]
    has_types = len({name for cells in found.values() for ratios in cells.values() for _, name in ratios}) > 1
    note = f"The table shows {what}, by number of elements."
    note += " Each cell shows the median over the types, and the lowest value with its type." if has_types else ""
    return Table(title.format(operator), note, ("family", *map(label, sizes)), rows)


def _median_and_lowest(found: list[tuple[float, str]]) -> str:
    if not found:
        return ""
    middle, (lowest, name) = times(statistics.median(number for number, _ in found)), min(found)
    return middle if len(found) == 1 else f"{middle} (from {times(lowest)}, {name})"


def by_library(run: Json, operator: str) -> dict[str, Points]:
    """Return the median speedup over each library in cases with a correct result, by number of elements."""
    cases = [case for case in run["cases"] if case["operator"] == operator]
    found = {}
    for name in run["libraries"]:
        entries = [(case["size"], case["libraries"].get(name, {})) for case in cases]
        found[name] = medians(
            (n, float(each["ratio"]["median"])) for n, each in entries if each.get("status") == "correct"
        )
    return found


def medians(points: Iterable[tuple[int, float]]) -> Points:
    """Return the median for each size."""
    found: dict[int, list[float]] = {}
    for size, ratio in points:
        found.setdefault(size, []).append(ratio)
    return [(size, statistics.median(ratios)) for size, ratios in sorted(found.items())]


def libraries_by_size(run: Json, operator: str) -> Table:
    """Return a table of the speedup over each library, by number of elements."""
    found = {name: dict(points) for name, points in by_library(run, operator).items() if points}
    sizes = sorted({size for points in found.values() for size in points})
    rows = [
        [name, *(times(points[each]) if each in points else "" for each in sizes)] for name, points in found.items()
    ]
    note = (
        "The table shows the median speedup over each library, by number of elements, for the cases in which the "
        "library's result is correct."
    )
    return Table(f"{operator}, by library", note, ("library", *map(label, sizes)), rows)


def families(run: Json) -> Table:
    """Return a table of the names of the families in the run."""
    parts = dict.fromkeys(part for case in run["cases"] for part in case["family"].split(","))
    rows = [(part, MEANINGS[part]) for part in parts if part in MEANINGS]
    return Table(
        "Families", "The name of a family lists the inputs and the options of its calls.", ("name", "meaning"), rows
    )


def cases(run: Json) -> list[Table]:
    """Return a table of all cases for each operator."""
    columns = ("case", "bytes accessed", "ours", "fastest correct library", "speedup", "share of limit", "others")
    rows: dict[str, list[Sequence[str]]] = {operator: [] for operator in OPERATORS}
    for case in run["cases"]:
        ours = scaled(case["ours"]["seconds"], TIME) if case["ours"]["status"] == "correct" else ""
        accessed = scaled(case["bytes_read"] + case["bytes_written"], BYTES)
        ratios = (spread(case["ratio"]), spread(case["limit"].get("ratio")))
        cells = (accessed, ours or f"WRONG: {case['ours']['reason']}", case["fastest"] or NOTHING, *ratios)
        rows[case["operator"]].append((case["id"].partition("/")[2], *cells, _others(case)))
    note = "Speedups and shares are medians over pairs of samples, with the quartiles in parentheses."
    return [Table(f"{operator}, every case", note, columns, each) for operator, each in rows.items() if each]


def _others(case: Json) -> str:
    notes, unable = [], []
    for name, entry in case["libraries"].items():
        if entry["status"] in ("unsupported", "not installed"):
            unable.append(name)
        elif entry["status"] == "skipped":
            notes.append(f"{name} skipped")
        elif name != case["fastest"]:
            ratio = float(entry["ratio"]["median"])
            words = {
                "wrong": f"{'fast and wrong' if ratio < 1 else 'wrong'} ({times(ratio)}: {entry['reason']})",
                "other input": f"{times(ratio)} (takes {entry['reason']})",
            }
            notes.append(f"{name} {words.get(entry['status'], times(ratio))}")
    return "; ".join(notes + ([f"unsupported or not installed: {', '.join(unable)}"] if unable else []))


def below_one(run: Json) -> Table:
    """Return a table of the cases in which a correct library is faster than maxops, in ascending order of speedup."""
    compared = [case for case in run["cases"] if case["ratio"] is not None]
    rows = [
        (case["id"], f"{case['fastest']} ({case['libraries'][case['fastest']]['candidate']})", spread(case["ratio"]))
        for case in sorted(compared, key=lambda case: float(case["ratio"]["median"]))
        if case["ratio"]["median"] < 1
    ]
    note = f"The table lists {len(rows)} of {len(compared)} cases, in ascending order of speedup."
    return Table("Cases in which a correct library is faster", note, ("case", "library", "speedup"), rows)


def wrong_libraries(run: Json) -> Table:
    """Return a table of the libraries with wrong results, which the comparison excludes."""
    grouped: dict[tuple[str, ...], list[tuple[str, Json]]] = {}
    for case in run["cases"]:
        for name, entry in case["libraries"].items():
            if entry["status"] == "wrong":
                grouped.setdefault((name, case["operator"], case["type"]), []).append((case["id"], entry))
    rows = []
    for key, found in grouped.items():
        fast = sum(entry["ratio"]["median"] < 1 for _, entry in found)
        verdict = f"{fast} of {len(found)} faster than ours" if fast else f"{len(found)}, none faster"
        rows.append((*key, verdict, found[0][0], found[0][1]["reason"]))
    note = "These libraries return wrong results for ordinary values. The comparisons above exclude these results."
    return Table(
        "Libraries with wrong results", note, ("library", "operator", "type", "cases", "first case", "difference"), rows
    )


def libraries(run: Json) -> Table:
    """Return a table of the libraries in the run."""
    rows = []
    for name, about in run["libraries"].items():
        entries = [case["libraries"][name] for case in run["cases"] if name in case["libraries"]]
        counts = Counter(entry["status"] for entry in entries)
        counted_up = ", ".join(f"{count} {status}" for status, count in counts.most_common()) or NOTHING
        fastest = str(sum(case["fastest"] == name for case in run["cases"]))
        reasons = list(dict.fromkeys(entry["reason"] for entry in entries if entry["status"] == "unsupported"))
        version = about["version"] or about["reason"]
        rows.append((name, version, counted_up, fastest, "; ".join(reasons[:4]) or NOTHING))
    note = "The benchmark uses ordinary values. To test NaN and the sign of zero, use `maxops conform LIBRARY`."
    return Table("Libraries", note, ("library", "version", "cases", "fastest in", "unsupported (examples)"), rows)


def machine(run: Json) -> Table:
    """Return a table of the machine and the build of a run."""
    about = run["machine"] | {name: run[name] for name in ("began", "command", "interrupted") if name in run}
    about["memory_bytes"] = scaled(about["memory_bytes"], BYTES)
    about["caches"] = ", ".join(f"{level} {amount}" for level, amount in about["caches"].items())
    return Table(
        "Machine and build", "", ("", ""), [(name.replace("_", " "), f"{each}") for name, each in about.items() if each]
    )


def summary(run: Json) -> list[Table]:
    """Return all tables except those that list every case."""
    tables = [libraries_by_size(run, operator) for operator in OPERATORS]
    tables += [families(run), *(overview(run, operator, against) for operator in OPERATORS for against in _MEANINGS)]
    tables += [make(run) for make in (below_one, wrong_libraries, libraries, machine)]
    return [table for table in tables if table.rows]


def markdown(run: Json, name: str = "speed.json", pictures: Mapping[str, str] | None = None) -> str:
    """Return the Markdown page of a run, with links to its JSON file and its pictures in the same folder."""
    types = ", ".join(dict.fromkeys(case["type"] for case in run["cases"]))
    parts = [
        f"# Speed: {types} on {run['machine']['isa']}",
        f"{headline(run)}. Each timed result of maxops and of the libraries was compared bit for bit with the expected "
        "result, and libraries with wrong results are excluded. Times are medians of calls that alternate between "
        "maxops and the library in one process.",
        *(f"![{shows}]({file})\n\n*{shows}*" for file, shows in (pictures or {}).items()),
        f"To repeat the run, use `{run['command']}`. `docs/generate.py` generates this page from [{name}]({name}). To "
        f"plot each family, use `maxops bench --from docs/{name} --html speed.html`.",
    ]
    for table in summary(run):
        lines = (table.columns, ["---"] * len(table.columns), *table.rows)
        cells = ([cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines)
        text = "\n".join(f"| {' | '.join(line)} |" for line in cells)
        parts += [f"## {table.title}", *filter(None, [table.note]), text]
    return "\n\n".join(parts) + "\n"
