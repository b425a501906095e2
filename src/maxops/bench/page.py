"""A run as one HTML file: plots as inline SVG, tables, nothing loaded from elsewhere; readable on a phone."""

from __future__ import annotations

import io
import statistics
from collections.abc import Iterable
from html import escape
from importlib import import_module
from importlib.resources import files
from typing import Any

from maxops.bench import report
from maxops.bench.case import OPERATORS, label
from maxops.bench.goals import FASTEST, LIMIT
from maxops.bench.report import Json, Table

INK = "#7a828e"  # reads on white and on black
COLOURS = ("#3b82f6", "#f97316", "#10b981", "#a855f7", "#ef4444", "#14b8a6", "#eab308", "#ec4899", "#64748b", "#84cc16")
# Variants that differ little from the ones that are drawn are in the tables only.
UNDRAWN = (",int32", ",unchecked")
LONG = 48  # letters from which a cell of a table wraps


def html(run: Json) -> str:
    """The page. Plots need matplotlib, of the extra `bench`."""
    plot, style = _Plot(), (files(__package__) / "page.css").read_text(encoding="utf-8")
    parts = [f"<h1>maxops against other libraries</h1><p>{escape(report.headline(run))}.</p>", _tiles(run)]
    summary = report.summary(run)
    for operator in OPERATORS:
        cases = [case for case in run["cases"] if case["operator"] == operator]
        if cases:
            parts.append(_operator(plot, operator, cases))
    # what the tables by operator say, the plots and the coloured tables have shown
    parts += [_table(table) for table in summary if table.title not in OPERATORS]
    parts += [
        f"<details><summary>{escape(t.title)}</summary>{_table(t, bare=True)}</details>" for t in report.cases(run)
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>maxops bench</title>'
        f"<style>{style}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def _tiles(run: Json) -> str:
    compared = [case["ratio"]["median"] for case in run["cases"] if case["ratio"] is not None]
    goals = [row for row in report.goal_rows(run) if row["cases"]]
    tiles = [
        (str(len(run["cases"])), "cases"),
        (report.times(statistics.median(compared) if compared else None), "times as fast, median"),
        (f"{sum(ratio < 1 for ratio in compared)}", "cases below 1.0"),
        (f"{sum(row['reached'] == row['cases'] for row in goals)} of {len(goals)}", "goals reached"),
        (
            str(sum(row["ratio"]["median"] < 1 for row in report.wrong(run))),
            "fast and wrong results of other libraries",
        ),
        (f"{run['machine']['threads']}", f"threads, {run['machine']['isa']}"),
    ]
    return (
        '<div class="tiles">'
        + "".join(f'<div class="tile"><b>{a}</b><span>{b}</span></div>' for a, b in tiles)
        + "</div>"
    )


def _operator(plot: _Plot, operator: str, cases: list[Json]) -> str:
    types = list(dict.fromkeys(case["type"] for case in cases))
    colours = {name: COLOURS[number % len(COLOURS)] for number, name in enumerate(types)}
    drawn = [case for case in cases if not any(part in case["family"] for part in UNDRAWN)]
    legend = "".join(f'<span><i style="background:{colours[name]}"></i>{name}</span>' for name in types)
    sections = [
        ("speedup over the fastest correct library", FASTEST, True),
        ("share of the memory limit", LIMIT, False),
    ]
    parts = [f'<h2>{operator}</h2><div class="legend">{legend}</div>']
    for title, against, wide in sections:
        figures = []
        for family in dict.fromkeys(case["family"] for case in drawn):
            lines = _lines([case for case in drawn if case["family"] == family], against)
            if any(len(line) > 1 for line in lines.values()):
                svg = plot.svg(lines, colours, title, wide=wide)
                figures.append(f"<figure><figcaption>{escape(family.replace(',', ', '))}</figcaption>{svg}</figure>")
        if figures:
            parts.append(f"<h3>{operator}: {title}, over elements</h3><div class=plots>{''.join(figures)}</div>")
    return "".join(parts) + _heat(cases)


def _lines(cases: Iterable[Json], against: str) -> dict[str, list[tuple[int, float]]]:
    """By type, (size, value) in order of size."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for case in cases:
        if (number := report.value(case, against)) is not None:
            lines.setdefault(case["type"], []).append((case["size"], number))
    return {name: sorted(points) for name, points in lines.items()}


class _Plot:
    """Small plots of one look, as SVG that keeps its text as text."""

    def __init__(self) -> None:
        matplotlib: Any = import_module("matplotlib")
        matplotlib.use("svg")
        matplotlib.rcParams.update(
            {
                "svg.fonttype": "none",
                "svg.hashsalt": "maxops",  # the same run gives the same page
                "font.family": "sans-serif",
                "font.size": 9,
                **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
                "axes.spines.top": False,
                "axes.spines.right": False,
            }
        )
        self.figure: Any = import_module("matplotlib.figure").Figure
        self.ticker: Any = import_module("matplotlib.ticker")

    def svg(self, lines: dict[str, list[tuple[int, float]]], colours: dict[str, str], title: str, *, wide: bool) -> str:
        """Lines by type over size; from 1 down is shaded."""
        figure = self.figure(figsize=(4.2, 2.5), layout="constrained")
        figure.patch.set_alpha(0)
        axes = figure.subplots()
        axes.patch.set_alpha(0)
        for name, points in lines.items():
            sizes, values = zip(*points, strict=True)
            axes.plot(sizes, values, color=colours[name], linewidth=1.6, marker="o", markersize=3.2)
        axes.set_xscale("log")
        axes.axhline(1, color=INK, linewidth=1, linestyle="--")
        if wide:
            axes.set_yscale("log")
            axes.yaxis.set_major_locator(self.ticker.LogLocator(base=10, subs=(1, 2, 5)))
            axes.yaxis.set_minor_locator(self.ticker.NullLocator())
            axes.yaxis.set_major_formatter(self.ticker.FormatStrFormatter("%g"))
            axes.axhspan(min(axes.get_ylim()[0], 0.5), 1, color="#ef4444", alpha=0.07, linewidth=0)
        else:
            axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="y", color=INK, alpha=0.18, linewidth=0.7)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
        svg = text.getvalue()
        return svg[svg.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _heat(cases: list[Json]) -> str:
    """Families by size for each type, coloured by how far ahead we are."""
    parts = []
    sizes = sorted({case["size"] for case in cases})
    for name in dict.fromkeys(case["type"] for case in cases):
        own = [case for case in cases if case["type"] == name]
        rows = []
        for family in dict.fromkeys(case["family"] for case in own):
            found = {case["size"]: case for case in own if case["family"] == family}
            shown = "".join(_heat_cell(found.get(size)) for size in sizes)
            rows.append(f"<tr><td>{escape(family)}</td>{shown}</tr>")
        head = "".join(f"<th>{label(size)}</th>" for size in sizes)
        parts.append(
            f"<details><summary>{name}: the fastest correct library's time over ours (speedup)</summary>"
            f'<div class="table"><table class="heat"><tr><th>family</th>{head}</tr>{"".join(rows)}</table></div>'
            "</details>"
        )
    return "".join(parts)


def _heat_cell(case: Json | None) -> str:
    if case is None:
        return "<td></td>"
    if not report.is_correct(case):
        return '<td class="bad">wrong</td>'
    if case["ratio"] is None:
        return "<td>no library</td>"
    ratio = float(case["ratio"]["median"])
    colour = f"rgba(16,185,129,{min((ratio - 1) / 4, 1) * 0.45:.2f})" if ratio >= 1 else "rgba(239,68,68,.35)"
    tip = escape(f"{case['fastest']}, {report.spread(case['ratio'])}", quote=True)
    return f'<td style="background:{colour}" title="{tip}">{report.times(ratio)}</td>'


def _table(table: Table, *, bare: bool = False) -> str:
    head = "" if bare else f"<h2>{escape(table.title)}</h2>"
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    columns = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    columns = f"<tr>{columns}</tr>" if any(table.columns) else ""
    rows = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in table.rows)
    return f'{head}{note}<div class="table"><table>{columns}{rows}</table></div>'


def _cell(text: str) -> str:
    if text in ("reached", "yes"):
        return f'<td class="good">{text}</td>'
    of = text.split(" of ")
    short = len(of) == 2 and all(part.isdigit() for part in of)
    is_bad = short or text in ("NO", report.NO_REASON) or text.startswith("WRONG")
    kind = "bad" if is_bad else "long" if len(text) > LONG else ""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"
