"""What a run's JSON says, as tables: for the terminal, for the page and for docs/speed.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from maxops.bench.case import OPERATORS, label
from maxops.bench.goals import BANDS, FASTEST, GOALS, LIMIT
from maxops.bench.reasons import reason
from maxops.bench.scaling import UNBOUNDED
from maxops.counted import counted

Json = dict[str, Any]

NOTHING = "-"
NO_REASON = "not explained"


@dataclass(frozen=True)
class Table:
    """A heading, a sentence on how to read it, and rows."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


# ------------------------------------------------------------------------------------------------- verdicts


def is_correct(case: Json) -> bool:
    """Whether our own result is correct, before and after timing."""
    return bool(case["ours"]["status"] == "correct")


def value(case: Json, against: str) -> float | None:
    """Their time over ours: of the fastest correct library, of one library if it is correct, or of the limit."""
    if against == FASTEST:
        return None if case["ratio"] is None else float(case["ratio"]["median"])
    entry = case["limit"] if against == LIMIT else case["libraries"].get(against, {})
    return float(entry["ratio"]["median"]) if entry.get("status") == "correct" else None


def goal_rows(run: Json) -> list[Json]:
    """Each goal's targets by band: how many cases reach them, and the one that is farthest off."""
    rows = []
    for goal, band in ((goal, band) for goal in GOALS for band in BANDS):
        for target in goal.targets.get(band, ()):
            found = [
                (number, case["id"])
                for case in run["cases"]
                if case["goal"] == goal.name and case["band"] == band
                if (number := value(case, target.against)) is not None
            ]
            rows.append(
                {
                    "goal": goal.name,
                    "band": band,
                    "against": target.against,
                    "target": target.ratio,
                    "cases": len(found),
                    "reached": sum(number >= target.ratio for number, _ in found),
                    "median": statistics.median(number for number, _ in found) if found else None,
                    "worst": min(found)[0] if found else None,
                    "worst_case": min(found)[1] if found else "",
                }
            )
    return rows


def wrong(run: Json) -> list[Json]:
    """Libraries whose timed result was wrong, with how fast they were."""
    return [
        {"case": case["id"], "library": name, **entry}
        for case in run["cases"]
        for name, entry in case["libraries"].items()
        if entry["status"] == "wrong"
    ]


def our_failures(run: Json) -> list[str]:
    """Cases where our own result is wrong."""
    return [f"{case['id']}: {case['ours']['reason']}" for case in run["cases"] if not is_correct(case)]


# --------------------------------------------------------------------------------------------------- tables


def times(number: float | None) -> str:
    """A ratio, with two digits or so.

    >>> times(0.954), times(12.3), times(170.2), times(None)
    ('0.95', '12', '170', '-')
    """
    if number is None:
        return NOTHING
    return f"{number:.2f}" if number < 10 else f"{number:.0f}"


def seconds(number: float | None) -> str:
    """A time with its unit.

    >>> seconds(91e-9), seconds(0.0123)
    ('91 ns', '12.3 ms')
    """
    if number is None:
        return NOTHING
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number * 1e9:.3g} ns"


def size(number: float) -> str:
    """Bytes with their unit, in powers of ten.

    >>> size(1_234_567)
    '1.23 MB'
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f} B"


def spread(ratio: Json | None) -> str:
    """A ratio with its quartiles."""
    if ratio is None:
        return NOTHING
    return f"{times(ratio['median'])} ({times(ratio['low'])}-{times(ratio['high'])})"


def machine(run: Json) -> Table:
    """Where it ran."""
    about = run["machine"]
    rows = [
        ("CPU", f"{about['cpu']}, {about['usable_cores']} of {about['cores']} cores"),
        ("caches", ", ".join(f"{level} {amount}" for level, amount in about["caches"].items()) or NOTHING),
        ("memory", size(about["memory_bytes"])),
        ("huge pages", about["huge_pages"] or NOTHING),
        ("system", f"{about['system']}, Python {about['python']}"),
        ("maxops", " ".join(filter(None, (about["maxops"], about["commit"])))),
        ("instruction set", about["isa"]),
        ("threads, for everybody", str(about["threads"])),
        ("output cache", about["output_cache"]),
        ("when", run["began"]),
        ("command", run["command"]),
        *([("interrupted", run["interrupted"])] if "interrupted" in run else []),
    ]
    return Table("Where", "", ("", ""), rows)


def goals(run: Json) -> Table:
    """Goals, with reached or not."""
    rows: list[tuple[str, ...]] = []
    for row in goal_rows(run):
        if not row["cases"]:
            verdict = "not measured"
        elif row["reached"] == row["cases"]:
            verdict = "reached"
        else:
            verdict = f"{row['reached']} of {row['cases']}"
        named = str(row["against"])
        against = {FASTEST: "fastest correct library", LIMIT: "the limit"}.get(named, named)
        numbers = (f"{row['target']:g}", times(row["median"]), times(row["worst"]))
        at = row["worst_case"] if row["cases"] and row["reached"] < row["cases"] else ""
        rows.append((row["goal"], row["band"], against, *numbers, verdict, at))
    columns = ("goal", "size", "against", "target", "median", "worst", "reached", "worst case")
    note = "Their time over ours, so above 1 we are faster; or our share of what the machine's memory can do."
    return Table("Goals", note, columns, rows)


def overviews(run: Json) -> list[Table]:
    """By operator: families and sizes, the median over types and the lowest of them."""
    tables = []
    for operator in OPERATORS:
        cases = [case for case in run["cases"] if case["operator"] == operator and case["ratio"] is not None]
        if not cases:
            continue
        sizes = sorted({case["size"] for case in cases})
        rows = []
        for family in dict.fromkeys(case["family"] for case in cases):
            row = [family]
            for elements in sizes:
                found = [
                    (float(case["ratio"]["median"]), case["type"])
                    for case in cases
                    if case["family"] == family and case["size"] == elements
                ]
                if not found:
                    row.append("")
                    continue
                lowest, name = min(found)
                middle = times(statistics.median(number for number, _ in found))
                row.append(middle if len(found) == 1 else f"{middle} (from {times(lowest)}, {name})")
            rows.append(row)
        note = (
            "The speedup over the fastest correct library by number of elements: the median over types, and the lowest."
        )
        tables.append(Table(operator, note, ("family", *map(label, sizes)), rows))
    return tables


def cases(run: Json) -> list[Table]:
    """By operator, every case."""
    tables = []
    for operator in OPERATORS:
        chosen = [case for case in run["cases"] if case["operator"] == operator]
        if not chosen:
            continue
        rows = [
            (
                case["id"].partition("/")[2],
                size(case["bytes_read"] + case["bytes_written"]),
                seconds(case["ours"]["seconds"]) if is_correct(case) else f"WRONG: {case['ours']['reason']}",
                case["fastest"] or NOTHING,
                spread(case["ratio"]),
                spread(case["limit"].get("ratio")),
                _notes(case),
            )
            for case in chosen
        ]
        columns = ("case", "touches", "ours", "fastest correct library", "speedup", "share of limit", "others")
        tables.append(Table(f"{operator}, every case", "In brackets the quartiles of the pairs.", columns, rows))
    return tables


def _notes(case: Json) -> str:
    """The other libraries' results."""
    notes = []
    for name, entry in case["libraries"].items():
        if entry["status"] == "wrong":
            speed = "fast and wrong" if entry["ratio"]["median"] < 1 else "wrong"
            notes.append(f"{name} {speed} ({times(entry['ratio']['median'])}: {entry['reason']})")
        elif entry["status"] == "other input":
            notes.append(f"{name} {times(entry['ratio']['median'])} (takes {entry['reason']})")
        elif entry["status"] == "correct" and name != case["fastest"]:
            notes.append(f"{name} {times(entry['ratio']['median'])}")
        elif entry["status"] == "skipped":
            notes.append(f"{name} left out")
    unable = [name for name, entry in case["libraries"].items() if entry["status"] in ("unsupported", "not installed")]
    return "; ".join(notes + ([f"cannot: {', '.join(unable)}"] if unable else []))


def below_one(run: Json) -> Table:
    """Cases where the fastest correct library is faster, the farthest behind first, with the reason if one is given."""
    compared = [case for case in run["cases"] if case["ratio"] is not None]
    rows = [
        (
            case["id"],
            f"{case['fastest']} ({case['libraries'][case['fastest']]['candidate']})",
            spread(case["ratio"]),
            reason(case["id"]) or NO_REASON,
        )
        for case in sorted(compared, key=lambda case: float(case["ratio"]["median"]))
        if case["ratio"]["median"] < 1
    ]
    note = f"{len(rows)} of {len(compared)} cases; the reason, where it is known."
    return Table("Below 1.0 against the fastest correct library", note, ("case", "library", "speedup", "reason"), rows)


def wrong_libraries(run: Json) -> Table:
    """Libraries whose timed result is wrong: they are not compared with."""
    grouped: dict[tuple[str, str, str, str], list[Json]] = {}
    for row in wrong(run):
        operator, _, name, _ = row["case"].split("/")
        grouped.setdefault((row["library"], operator, name, row["reason"].partition(":")[0]), []).append(row)
    rows = []
    for (library, operator, name, candidate), found in grouped.items():
        fast = sum(row["ratio"]["median"] < 1 for row in found)
        verdict = f"{fast} of {len(found)} faster than ours" if fast else f"{len(found)}, none faster"
        rows.append(
            (library, operator, name, candidate, verdict, found[0]["case"], found[0]["reason"].partition(": ")[2])
        )
    columns = ("library", "operator", "type", "candidate", "cases", "first", "what")
    return Table("Timed and wrong", "On ordinary values. Such a library is in no comparison above.", columns, rows)


def libraries(run: Json) -> Table:
    """Which libraries took part, and where each deviates from the standards."""
    rows = []
    for name, about in run["libraries"].items():
        entries = [case["libraries"][name] for case in run["cases"] if name in case["libraries"]]
        counts = {
            status: sum(entry["status"] == status for entry in entries)
            for status in ("correct", "wrong", "unsupported", "skipped")
        }
        counted = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        fastest = sum(case["fastest"] == name for case in run["cases"])
        reasons = dict.fromkeys(entry["reason"] for entry in entries if entry["status"] == "unsupported")
        rows.append(
            (
                name,
                about["version"] or about["reason"],
                counted or NOTHING,
                str(fastest),
                _grouped(run["deviations"].get(name, {})) or NOTHING,
                "; ".join(list(reasons)[:4]) or NOTHING,
            )
        )
    columns = ("library", "version", "cases", "fastest in", "deviates on", "unsupported, among others")
    return Table(
        "Libraries",
        "Deviations from the standards are found with small arrays of special values, which are not timed.",
        columns,
        rows,
    )


def _grouped(deviations: dict[str, list[str]]) -> str:
    """Types of an operator that differ alike, together."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for where, classes in deviations.items():
        operator, name = where.split(" ")
        alike.setdefault((operator, tuple(classes)), []).append(name)
    return "; ".join(f"{op} {', '.join(names)}: {', '.join(found)}" for (op, found), names in alike.items())


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


def predictions(run: Json) -> list[Table]:
    """Predicted speedup on more cores."""
    if not run["scaling"]:
        return []
    tables = []
    for operator, fitted in run["scaling"]["models"].items():
        cores = list(dict.fromkeys(row["cores"] for row in fitted["predicted"]))
        rows = []
        for amount in dict.fromkeys(row["bytes"] for row in fitted["predicted"]):
            found = {row["cores"]: row for row in fitted["predicted"] if row["bytes"] == amount}
            rows.append((size(amount), *(times(found[count]["speedup"]) for count in cores)))
        model = fitted["model"]
        most = f", {model['most_chunks']} of them at most" if model["most_chunks"] < UNBOUNDED else ""
        note = (
            f"Predicted speedup over one core, on a machine that moves "
            f"{run['scaling']['socket_bytes_per_second'] / 1e9:.0f} GB/s in all. Fitted here at 1 to "
            f"{run['scaling']['threads']} threads: a call costs {seconds(model['call'])}, one core moves "
            f"{model['core'] / 1e9:.1f} GB/s and all {model['machine'] / 1e9:.1f} GB/s, the first helper wakes after "
            f"{seconds(model['wake'])} and each next {seconds(model['each'])} later, chunks are of "
            f"{size(model['chunk'])}{most}; where it was fitted it is off by "
            f"{fitted['mean_error']:.0%} on average."
        )
        tables.append(Table(f"{operator} on more cores", note, ("bytes", *map(str, cores)), rows))
    return tables


def decades(run: Json) -> list[Table]:
    """Cost over decades of bytes."""
    if not run["scaling"]:
        return []
    every = run["scaling"]["decades"]
    amounts = [row["bytes"] for row in next(iter(every.values()))["rows"]]
    rows = [
        (
            found["what"],
            f"{found['slope']:.2f}",
            *(f"{seconds(row['seconds'])}, {row['seconds_per_byte'] * 1e12:.0f} ps/B" for row in found["rows"]),
        )
        for found in every.values()
    ]
    note = "Time and time a byte. The slope is of log time over log bytes: 1 is linear, caches and a call's cost aside."
    return [Table("Linear in the bytes touched", note, ("call", "slope", *map(size, amounts)), rows)]


def summary(run: Json) -> list[Table]:
    """All tables but the one of every case."""
    tables = [
        goals(run),
        *overviews(run),
        below_one(run),
        wrong_libraries(run),
        libraries(run),
        machine(run),
        limits(run),
        memory(run),
        *predictions(run),
        *decades(run),
    ]
    return [table for table in tables if table.rows]


def headline(run: Json) -> str:
    """A run in one line."""
    compared = [float(case["ratio"]["median"]) for case in run["cases"] if case["ratio"] is not None]
    if not compared:
        return f"{counted(len(run['cases']), 'case')}, none with a library to compare with"
    rows = [row for row in goal_rows(run) if row["cases"]]
    reached = sum(row["reached"] == row["cases"] for row in rows)
    return (
        f"{counted(len(run['cases']), 'case')}; {times(statistics.median(compared))} times the fastest correct "
        f"library's speed at the median; {sum(ratio < 1 for ratio in compared)} of {len(compared)} below 1.0; "
        f"{reached} of {len(rows)} goals reached"
    )


# ------------------------------------------------------------------------------------------------- markdown


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
        parts += [f"## {table.title}", *([table.note] if table.note else []), _markdown_table(table)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(table.columns), line("---" for _ in table.columns), *map(line, table.rows)])
