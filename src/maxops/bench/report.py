"""What a run's JSON says, as tables: for the terminal, for the page and for docs/speed.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from maxops.bench.case import OPERATORS, label
from maxops.bench.timing import Json
from maxops.counted import counted

NOTHING = "-"
FASTEST, LIMIT = "fastest", "limit"


@dataclass(frozen=True)
class Table:
    """A heading, a sentence on how to read it, and rows."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def is_correct(case: Json) -> bool:
    """Whether our own result is correct, before and after timing."""
    return bool(case["ours"]["status"] == "correct")


def value(case: Json, against: str) -> float | None:
    """Their time over ours: of the fastest correct library, or of the memory's limit."""
    ratio = case["ratio"] if against == FASTEST else case["limit"].get("ratio")
    return None if ratio is None else float(ratio["median"])


def our_failures(run: Json) -> list[str]:
    """Cases where our own result is wrong."""
    return [f"{case['id']}: {case['ours']['reason']}" for case in run["cases"] if not is_correct(case)]


def times(number: float | None) -> str:
    """A ratio, with two digits or so.

    >>> times(0.954), times(12.3), times(170.2), times(None)
    ('0.95', '12', '170', '-')
    """
    if number is None:
        return NOTHING
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"


def spread(ratio: Json | None) -> str:
    """A ratio with its quartiles."""
    return f"{times(ratio['median'])} ({times(ratio['low'])}-{times(ratio['high'])})" if ratio else NOTHING


def seconds(number: float) -> str:
    """A time with its unit.

    >>> seconds(91e-9), seconds(0.0123)
    ('91 ns', '12.3 ms')
    """
    return _scaled(number, {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9})


def size(number: float) -> str:
    """Bytes with their unit, in powers of ten.

    >>> size(1_234_567), size(4)
    ('1.23 MB', '4 B')
    """
    return _scaled(number, {"GB": 1e9, "MB": 1e6, "kB": 1e3, "B": 1.0})


def _scaled(number: float, units: dict[str, float]) -> str:
    unit, scale = next((each for each in units.items() if number >= each[1]), list(units.items())[-1])
    return f"{number / scale:.3g} {unit}"


def headline(run: Json) -> str:
    """A run in one line."""
    compared = [number for case in run["cases"] if (number := value(case, FASTEST)) is not None]
    if not compared:
        return f"{counted(len(run['cases']), 'case')}, none with a library to compare with"
    return (
        f"{counted(len(run['cases']), 'case')}; {times(statistics.median(compared))} times the fastest correct "
        f"library's speed at the median; {sum(ratio < 1 for ratio in compared)} of {len(compared)} below 1.0"
    )


def overviews(run: Json) -> list[Table]:
    """By operator, against the fastest library and against the limit: families by size, over types."""
    meanings = {
        FASTEST: ("{}", "The speedup over the fastest correct library"),
        LIMIT: ("{}, share of the memory's limit", "The time of bare loads and stores of as many bytes over ours"),
    }
    tables = []
    for operator in OPERATORS:
        for against, (title, what) in meanings.items():
            found = [
                (case, number)
                for case in run["cases"]
                if case["operator"] == operator and (number := value(case, against)) is not None
            ]
            sizes = sorted({case["size"] for case, _ in found})
            rows = []
            for family in dict.fromkeys(case["family"] for case, _ in found):
                of_family = [(case["size"], number, case["type"]) for case, number in found if case["family"] == family]
                cells = [[(ratio, name) for at, ratio, name in of_family if at == each] for each in sizes]
                rows.append([family, *map(_median_and_lowest, cells)])
            note = f"{what}, by number of elements: the median over types, and the lowest."
            tables.append(Table(title.format(operator), note, ("family", *map(label, sizes)), rows))
    return tables


def _median_and_lowest(found: list[tuple[float, str]]) -> str:
    if not found:
        return ""
    middle, (lowest, name) = times(statistics.median(number for number, _ in found)), min(found)
    return middle if len(found) == 1 else f"{middle} (from {times(lowest)}, {name})"


def cases(run: Json) -> list[Table]:
    """By operator, every case."""
    columns = ("case", "touches", "ours", "fastest correct library", "speedup", "share of limit", "others")
    tables = []
    for operator in OPERATORS:
        rows = [
            (
                case["id"].partition("/")[2],
                size(case["bytes_read"] + case["bytes_written"]),
                seconds(case["ours"]["seconds"]) if is_correct(case) else f"WRONG: {case['ours']['reason']}",
                case["fastest"] or NOTHING,
                spread(case["ratio"]),
                spread(case["limit"].get("ratio")),
                _others(case),
            )
            for case in run["cases"]
            if case["operator"] == operator
        ]
        tables.append(Table(f"{operator}, every case", "In brackets the quartiles of the pairs.", columns, rows))
    return [table for table in tables if table.rows]


def _others(case: Json) -> str:
    """The other libraries' results."""
    notes, unable = [], []
    for name, entry in case["libraries"].items():
        if entry["status"] in ("unsupported", "not installed"):
            unable.append(name)
        elif entry["status"] == "skipped":
            notes.append(f"{name} left out")
        elif name != case["fastest"]:
            ratio = float(entry["ratio"]["median"])
            words = {
                "wrong": f"{'fast and wrong' if ratio < 1 else 'wrong'} ({times(ratio)}: {entry['reason']})",
                "other input": f"{times(ratio)} (takes {entry['reason']})",
            }
            notes.append(f"{name} {words.get(entry['status'], times(ratio))}")
    return "; ".join(notes + ([f"cannot: {', '.join(unable)}"] if unable else []))


def below_one(run: Json) -> Table:
    """Cases where the fastest correct library is faster, the farthest behind first."""
    compared = [case for case in run["cases"] if case["ratio"] is not None]
    rows = [
        (case["id"], f"{case['fastest']} ({case['libraries'][case['fastest']]['candidate']})", spread(case["ratio"]))
        for case in sorted(compared, key=lambda case: float(case["ratio"]["median"]))
        if case["ratio"]["median"] < 1
    ]
    note = f"{len(rows)} of {len(compared)} cases."
    return Table("Below 1.0 against the fastest correct library", note, ("case", "library", "speedup"), rows)


def wrong_libraries(run: Json) -> Table:
    """Libraries whose timed result is wrong: they are not compared with."""
    grouped: dict[tuple[str, ...], list[Json]] = {}
    for case in run["cases"]:
        for name, entry in case["libraries"].items():
            if entry["status"] == "wrong":
                key = (name, case["operator"], case["type"], entry["reason"].partition(": ")[0])
                grouped.setdefault(key, []).append({"case": case["id"]} | entry)
    rows = []
    for key, found in grouped.items():
        fast = sum(row["ratio"]["median"] < 1 for row in found)
        verdict = f"{fast} of {len(found)} faster than ours" if fast else f"{len(found)}, none faster"
        rows.append((*key, verdict, found[0]["case"], found[0]["reason"].partition(": ")[2]))
    columns = ("library", "operator", "type", "candidate", "cases", "first", "what")
    return Table("Timed and wrong", "On ordinary values. Such a library is in no comparison above.", columns, rows)


def libraries(run: Json) -> Table:
    """Which libraries took part."""
    rows = []
    for name, about in run["libraries"].items():
        entries = [case["libraries"][name] for case in run["cases"] if name in case["libraries"]]
        statuses = [entry["status"] for entry in entries]
        counts = [
            f"{statuses.count(status)} {status}"
            for status in ("correct", "wrong", "unsupported", "skipped")
            if status in statuses
        ]
        fastest = sum(case["fastest"] == name for case in run["cases"])
        reasons = dict.fromkeys(entry["reason"] for entry in entries if entry["status"] == "unsupported")
        about_it = (about["version"] or about["reason"], ", ".join(counts) or NOTHING, str(fastest))
        rows.append((name, *about_it, "; ".join(list(reasons)[:4]) or NOTHING))
    note = "On ordinary values: `maxops conform LIBRARY` shows what a library does with NaN and the sign of zero."
    return Table("Libraries", note, ("library", "version", "cases", "fastest in", "unsupported, among others"), rows)


def machine(run: Json) -> Table:
    """Where it ran."""
    about = run["machine"]
    rows = {
        "CPU": f"{about['cpu']}, {about['usable_cores']} of {about['cores']} cores",
        "caches": ", ".join(f"{level} {amount}" for level, amount in about["caches"].items()) or NOTHING,
        "memory": size(about["memory_bytes"]),
        "huge pages": about["huge_pages"] or NOTHING,
        "system": f"{about['system']}, Python {about['python']}",
        "maxops": " ".join(filter(None, (about["maxops"], about["commit"]))),
        "instruction set": about["isa"],
        "threads, for everybody": str(about["threads"]),
        "output cache": about["output_cache"],
        "when": run["began"],
        "command": run["command"],
    }
    rows |= {"interrupted": run["interrupted"]} if "interrupted" in run else {}
    return Table("Where", "", ("", ""), list(rows.items()))


def limits(run: Json) -> Table:
    """What the machine's memory can do."""
    rows = [
        (
            limit["mix"],
            size(limit["bytes"]),
            "streaming stores" if limit["streaming"] else "plain",
            str(limit["threads"]),
            f"{limit['bytes_per_second'] / 1e9:.1f} GB/s",
        )
        for limit in run["limits"]
    ]
    note = (
        "Bare loads and stores. A case's share is against a sweep over its own number of bytes, timed in turn with it."
    )
    return Table("The machine's memory", note, ("mix", "bytes", "stores", "threads", "at best"), rows)


def memory(run: Json) -> Table:
    """Peak memory of calls."""
    rows = [
        (row["call"], row["error"], "", "")
        if "error" in row
        else (row["call"], size(row["output"]), size(row["extra"]), "yes" if row["within"] else "NO")
        for row in run["memory"]
    ]
    note = "What a call's peak lies above its inputs and its new output; a few MB are allowed."
    return Table("Peak memory", note, ("call", "new output", "beyond", "within 8 MiB"), rows)


def summary(run: Json) -> list[Table]:
    """All tables but the one of every case."""
    tables = [below_one, wrong_libraries, libraries, machine, limits, memory]
    return [table for table in (*overviews(run), *(make(run) for make in tables)) if table.rows]


def markdown(run: Json, name: str = "speed.json") -> str:
    """The page of a run, beside which its JSON lies by this name."""
    parts = [
        "# How fast",
        f"{headline(run)}. Every timed result, ours and theirs, was compared bit for bit with the expected one; a "
        f"library that is wrong is not compared with. Medians of pairs timed in turn (A B A B ...) in one process.",
        f"Generated from [{name}]({name}), which `{run['command']}` makes again; "
        f"`maxops bench --from docs/{name} --html speed.html` draws it.",
    ]
    for table in summary(run):
        parts += [f"## {table.title}", *filter(None, [table.note]), _markdown_table(table)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(table.columns), line("---" for _ in table.columns), *map(line, table.rows)])
