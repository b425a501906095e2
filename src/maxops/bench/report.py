"""What a run's JSON says, as tables: for the terminal, for the page and for docs/speed.md."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from maxops.bench.case import OPERATORS, label
from maxops.bench.goals import BANDS, BEST, GOALS, LIMIT
from maxops.bench.reasons import reason
from maxops.bench.scaling import MANY

Json = dict[str, Any]

NOTHING = "-"
NO_REASON = "NO REASON YET"


@dataclass(frozen=True)
class Table:
    """A heading, a sentence on how to read it, and rows."""

    title: str
    note: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


# ------------------------------------------------------------------------------------------------- verdicts


def right(cell: Json) -> bool:
    """Whether our own result is right, before and after timing."""
    return bool(cell["ours"]["status"] == "right")


def value(cell: Json, against: str) -> float | None:
    """Their time over ours: of the best right peer, of one peer if it is right, or of the limit (our share of it)."""
    if against == BEST:
        return None if cell["ratio"] is None else float(cell["ratio"]["median"])
    entry = cell["limit"] if against == LIMIT else cell["peers"].get(against, {})
    return float(entry["ratio"]["median"]) if entry.get("status") == "right" else None


def goal_rows(run: Json) -> list[Json]:
    """Each goal's targets by band: how many cells reach them, and the one that is farthest off."""
    rows = []
    for goal, band in ((goal, band) for goal in GOALS for band in BANDS):
        for target in goal.targets.get(band, ()):
            found = [
                (number, cell["case"])
                for cell in run["cells"]
                if cell["goal"] == goal.name and cell["band"] == band
                if (number := value(cell, target.against)) is not None
            ]
            rows.append(
                {
                    "goal": goal.name,
                    "band": band,
                    "against": target.against,
                    "wanted": target.wanted,
                    "cells": len(found),
                    "reached": sum(number >= target.wanted for number, _ in found),
                    "median": statistics.median(number for number, _ in found) if found else None,
                    "worst": min(found)[0] if found else None,
                    "worst_case": min(found)[1] if found else "",
                }
            )
    return rows


def below(run: Json) -> list[Json]:
    """Cells where the best right peer is faster, the farthest behind first, with the reason if one is given."""
    cells = [cell for cell in run["cells"] if cell["ratio"] is not None and cell["ratio"]["median"] < 1]
    return [
        {
            "case": cell["case"],
            "best": cell["best"],
            "way": cell["peers"][cell["best"]]["way"],
            "ratio": cell["ratio"],
            "reason": reason(cell["case"]),
        }
        for cell in sorted(cells, key=lambda cell: float(cell["ratio"]["median"]))
    ]


def wrong(run: Json) -> list[Json]:
    """Peers whose timed result was wrong, with how fast they were."""
    return [
        {"case": cell["case"], "peer": name, "way": entry["way"], "reason": entry["reason"], "ratio": entry["ratio"]}
        for cell in run["cells"]
        for name, entry in cell["peers"].items()
        if entry["status"] == "wrong"
    ]


def our_failures(run: Json) -> list[str]:
    """Cases where our own result is not right."""
    return [f"{cell['case']}: {cell['ours']['reason']}" for cell in run["cells"] if not right(cell)]


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
        if not row["cells"]:
            verdict = "not measured"
        elif row["reached"] == row["cells"]:
            verdict = "reached"
        else:
            verdict = f"{row['reached']} of {row['cells']}"
        named = str(row["against"])
        against = {BEST: "best right peer", LIMIT: "the limit"}.get(named, named)
        numbers = (f"{row['wanted']:g}", times(row["median"]), times(row["worst"]))
        at = row["worst_case"] if row["cells"] and row["reached"] < row["cells"] else ""
        rows.append((row["goal"], row["band"], against, *numbers, verdict, at))
    columns = ("goal", "size", "against", "wanted", "median", "worst", "reached", "worst cell")
    note = "Their time over ours, so above 1 we are faster; or our share of what the machine's memory can do."
    return Table("Goals", note, columns, rows)


def overviews(run: Json) -> list[Table]:
    """By operator: families and sizes, the median over types and the lowest of them."""
    tables = []
    for operator in OPERATORS:
        cells = [cell for cell in run["cells"] if cell["operator"] == operator and cell["ratio"] is not None]
        if not cells:
            continue
        sizes = sorted({cell["size"] for cell in cells})
        rows = []
        for family in dict.fromkeys(cell["family"] for cell in cells):
            row = [family]
            for wanted in sizes:
                found = [
                    (float(cell["ratio"]["median"]), cell["type"])
                    for cell in cells
                    if cell["family"] == family and cell["size"] == wanted
                ]
                if not found:
                    row.append("")
                    continue
                lowest, name = min(found)
                middle = times(statistics.median(number for number, _ in found))
                row.append(middle if len(found) == 1 else f"{middle} (from {times(lowest)}, {name})")
            rows.append(row)
        note = "The best right peer's time over ours by number of elements: the median over types, and the lowest."
        tables.append(Table(operator, note, ("family", *map(label, sizes)), rows))
    return tables


def cells(run: Json) -> list[Table]:
    """By operator, every cell."""
    tables = []
    for operator in OPERATORS:
        chosen = [cell for cell in run["cells"] if cell["operator"] == operator]
        if not chosen:
            continue
        rows = [
            (
                cell["case"].partition("/")[2],
                size(cell["bytes_read"] + cell["bytes_written"]),
                seconds(cell["ours"]["seconds"]) if right(cell) else f"WRONG: {cell['ours']['reason']}",
                cell["best"] or NOTHING,
                spread(cell["ratio"]),
                spread(cell["limit"].get("ratio")),
                _notes(cell),
            )
            for cell in chosen
        ]
        columns = ("case", "touches", "ours", "best right peer", "its time / ours", "share of limit", "others")
        tables.append(Table(f"{operator}, every cell", "In brackets the quartiles of the pairs.", columns, rows))
    return tables


def _notes(cell: Json) -> str:
    """What peers other than the best did."""
    notes = []
    for name, entry in cell["peers"].items():
        if entry["status"] == "wrong":
            speed = "fast and wrong" if entry["ratio"]["median"] < 1 else "wrong"
            notes.append(f"{name} {speed} ({times(entry['ratio']['median'])}: {entry['reason']})")
        elif entry["status"] == "other input":
            notes.append(f"{name} {times(entry['ratio']['median'])} (takes {entry['reason']})")
        elif entry["status"] == "right" and name != cell["best"]:
            notes.append(f"{name} {times(entry['ratio']['median'])}")
        elif entry["status"] == "skipped":
            notes.append(f"{name} left out")
    gone = [name for name, entry in cell["peers"].items() if entry["status"] in ("refused", "missing")]
    return "; ".join(notes + ([f"cannot: {', '.join(gone)}"] if gone else []))


def below_one(run: Json) -> Table:
    """Cells below 1.0, with their reasons."""
    rows = [
        (
            row["case"],
            f"{row['best']} ({row['way']})",
            spread(row["ratio"]),
            row["reason"] or NO_REASON,
        )
        for row in below(run)
    ]
    total = sum(cell["ratio"] is not None for cell in run["cells"])
    note = f"{len(rows)} of {total} cells. Reasons stand in src/maxops/bench/reasons.py."
    return Table("Below 1.0 against the best right peer", note, ("case", "peer", "its time / ours", "reason"), rows)


def wrong_peers(run: Json) -> Table:
    """Peers whose timed result is not right: they are in no ratio to the best."""
    grouped: dict[tuple[str, str, str, str], list[Json]] = {}
    for row in wrong(run):
        operator, _, name, _ = row["case"].split("/")
        grouped.setdefault((row["peer"], operator, name, row["reason"].partition(":")[0]), []).append(row)
    rows = []
    for (peer, operator, name, way), found in grouped.items():
        fast = sum(row["ratio"]["median"] < 1 for row in found)
        verdict = f"{fast} of {len(found)} faster than ours" if fast else f"{len(found)}, none faster"
        rows.append((peer, operator, name, way, verdict, found[0]["case"], found[0]["reason"].partition(": ")[2]))
    columns = ("peer", "operator", "type", "way", "cells", "first", "what")
    return Table("Timed and wrong", "On ordinary values. Such a peer is in no ratio above.", columns, rows)


def peers(run: Json) -> Table:
    """Who took part, who could not, and where each leaves the standards."""
    rows = []
    for name, about in run["peers"].items():
        entries = [cell["peers"][name] for cell in run["cells"] if name in cell["peers"]]
        counts = {
            status: sum(entry["status"] == status for entry in entries)
            for status in ("right", "wrong", "refused", "skipped")
        }
        told = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
        best = sum(cell["best"] == name for cell in run["cells"])
        reasons = dict.fromkeys(entry["reason"] for entry in entries if entry["status"] == "refused")
        rows.append(
            (
                name,
                about["version"] or about["reason"],
                told or NOTHING,
                str(best),
                _grouped(run["meaning"].get(name, {})) or NOTHING,
                "; ".join(list(reasons)[:4]) or NOTHING,
            )
        )
    columns = ("peer", "version", "cells", "best in", "differs in meaning on", "refuses, among others")
    return Table("Peers", "Meaning is looked at on small arrays of special values, which are not timed.", columns, rows)


def _grouped(meaning: dict[str, list[str]]) -> str:
    """Types of an operator that differ alike, together."""
    alike: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for where, classes in meaning.items():
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
        "Bare loads and stores. A cell's share is against a sweep over its own number of bytes, timed in turn with it."
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
    """Speed-up at cores that are not here."""
    if not run["scaling"]:
        return []
    tables = []
    for operator, fitted in run["scaling"]["models"].items():
        cores = list(dict.fromkeys(row["cores"] for row in fitted["predicted"]))
        rows = []
        for amount in dict.fromkeys(row["bytes"] for row in fitted["predicted"]):
            found = {row["cores"]: row for row in fitted["predicted"] if row["bytes"] == amount}
            rows.append((size(amount), *(times(found[count]["speed_up"]) for count in cores)))
        model = fitted["model"]
        note = (
            f"Predicted speed-up over one core, on a machine that moves "
            f"{run['scaling']['socket_bytes_per_second'] / 1e9:.0f} GB/s in all. Fitted here at 1 to "
            f"{run['scaling']['threads']} threads: a call costs {seconds(model['call'])}, one core moves "
            f"{model['core'] / 1e9:.1f} GB/s and all {model['machine'] / 1e9:.1f} GB/s, the first helper wakes after "
            f"{seconds(model['wake'])} and each next {seconds(model['each'])} later, chunks are of "
            f"{size(model['chunk'])}{_most(model)}; where it was fitted it is off by "
            f"{fitted['mean_error']:.0%} on average."
        )
        tables.append(Table(f"{operator} on more cores", note, ("bytes", *map(str, cores)), rows))
    return tables


def _most(model: Json) -> str:
    return f", {model['most_chunks']} of them at most" if model["most_chunks"] < MANY else ""


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
    """All tables but the one of every cell."""
    tables = [
        goals(run),
        *overviews(run),
        below_one(run),
        wrong_peers(run),
        peers(run),
        machine(run),
        limits(run),
        memory(run),
        *predictions(run),
        *decades(run),
    ]
    return [table for table in tables if table.rows]


def headline(run: Json) -> str:
    """A run in one line."""
    compared = [float(cell["ratio"]["median"]) for cell in run["cells"] if cell["ratio"] is not None]
    if not compared:
        return f"{len(run['cells'])} cells, none with a peer to compare with"
    rows = [row for row in goal_rows(run) if row["cells"]]
    reached = sum(row["reached"] == row["cells"] for row in rows)
    return (
        f"{len(run['cells'])} cells; {times(statistics.median(compared))} times the best right peer's speed at the "
        f"median; {sum(ratio < 1 for ratio in compared)} of {len(compared)} below 1.0; {reached} of {len(rows)} goals "
        f"reached"
    )


# ------------------------------------------------------------------------------------------------- markdown


def markdown(run: Json, name: str = "speed.json") -> str:
    """The page of a run, beside which its JSON lies by this name."""
    parts = [
        "# How fast",
        f"Generated from [{name}]({name}), which `{run['command']}` makes again; "
        f"`maxops bench --from docs/{name} --html speed.html` draws it.",
        f"{headline(run)}. Every timed result, ours and theirs, was compared bit for bit with the expected one; a peer "
        f"that is wrong is in no ratio. Medians of pairs timed in turn (A B A B ...) in one process.",
    ]
    for table in summary(run):
        parts += [f"## {table.title}", *([table.note] if table.note else []), _markdown_table(table)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

    return "\n".join([line(table.columns), line("---" for _ in table.columns), *map(line, table.rows)])
