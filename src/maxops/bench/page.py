"""Formats a run as one self-contained HTML file with plots (inline SVG) and tables, readable on a phone."""

from __future__ import annotations

import io
from html import escape
from importlib.resources import files
from typing import Any

from maxops.bench import report
from maxops.bench.grid import OPERATORS
from maxops.bench.report import FASTEST, LIMIT, Points, Table
from maxops.bench.timing import Json

PICTURES = {
    "peers": "Median speedup over each library in cases with a correct result, by number of elements",
    "limit": "Median share of the memory bandwidth, by number of elements",
}
# The colors of text and lines, with a contrast of at least 5 on light and dark pages. In an image, browsers apply the
# color scheme of the page that contains the image, so the site's own toggle also applies.
STYLE = "<style>svg{color:#5d6775}@media(prefers-color-scheme:dark){svg{color:#9aa4b2}}</style>"
INK, BLACK = "currentColor", "#000000"
# Parts of the names of families that are only in the tables, because they differ little from the plotted families.
UNDRAWN = (",int32", ",unchecked")
LONG = 48  # characters above which a cell of a table wraps

Lines = dict[str, Points]  # the points of each line, by name


def html(run: Json) -> str:
    """Return the HTML page of a run. Plots require matplotlib, which the extra `bench` installs."""
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    parts = [f"<h1>maxops compared with other libraries</h1><p>{escape(report.headline(run))}.</p>"]
    drawn = (f"<figure><figcaption>{PICTURES[name]}</figcaption>{svg}</figure>" for name, svg in pictures(run).items())
    parts.append(f'<div class="plots">{"".join(drawn)}</div>')
    for operator in OPERATORS:
        parts.append(_plots(run, operator, FASTEST, "speedup over the fastest correct library"))
        parts.append(_plots(run, operator, LIMIT, "share of the memory bandwidth"))
    for table in (*report.summary(run), *report.cases(run)):
        parts.append(f"<details><summary>{escape(table.title)}</summary>{_table(table)}</details>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>maxops bench</title>'
        f"<style>{style}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def _plots(run: Json, operator: str, against: str, title: str) -> str:
    """Plot the ratio against the number of elements, with a line per type, for each family with several sizes."""
    families: dict[str, Lines] = {}
    colours: dict[str, str] = {}
    for case in run["cases"]:
        is_drawn = case["operator"] == operator and not any(part in case["family"] for part in UNDRAWN)
        if is_drawn and (ratio := report.value(case, against)) is not None:
            colours.setdefault(case["type"], f"C{len(colours)}")
            families.setdefault(case["family"], {}).setdefault(case["type"], []).append((case["size"], ratio))
    figures = [
        f"<figure><figcaption>{escape(family.replace(',', ', '))}</figcaption>"
        f"{_figure({'': lines}, colours, f'{title}, {family}', against == FASTEST)}</figure>"
        for family, lines in families.items()
        if any(len(points) > 1 for points in lines.values())
    ]
    return f'<h2>{operator}: {title}</h2><div class="plots">{"".join(figures)}</div>' if figures else ""


def pictures(run: Json) -> dict[str, str]:
    """Return two plots of a run as SVG, by name: the speedup over each library, and the share of memory bandwidth."""
    over: dict[str, Lines] = {operator: report.by_library(run, operator) for operator in OPERATORS}
    share: Lines = {}
    for operator in OPERATORS:
        cases = [case for case in run["cases"] if case["operator"] == operator]
        limited = [(case["size"], ratio) for case in cases if (ratio := report.value(case, LIMIT)) is not None]
        share[operator] = report.medians(limited)
    names = [name for name in run["libraries"] if any(len(lines[name]) > 1 for lines in over.values())]
    colours = {name: f"C{number}" for group in (names, OPERATORS) for number, name in enumerate(group)}
    peers = {operator: {name: lines[name] for name in names if lines[name]} for operator, lines in over.items()}
    panels = {"peers": peers, "limit": {"": {name: points for name, points in share.items() if points}}}
    return {
        name: _figure({title: lines for title, lines in of.items() if lines}, colours, PICTURES[name], name == "peers")
        for name, of in panels.items()
        if any(of.values())
    }


def _figure(panels: dict[str, Lines], colours: dict[str, str], title: str, is_speedup: bool) -> str:
    """Draw panels of lines against size, one below the other. Text is searchable, and speedups below 1 are shaded."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    look: Any = {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with mpl.rc_context(look | {"svg.hashsalt": "maxops"}):  # so that the same run produces the same page
        figure = Figure(figsize=(4.2, 2.5 * len(panels)), layout="constrained")
        drawn: dict[str, Any] = {}
        for axes, (name, lines) in zip(figure.subplots(len(panels), squeeze=False)[:, 0], panels.items(), strict=True):
            drawn |= _draw(axes, lines, colours, is_speedup=is_speedup)
            axes.set_title(name, fontsize=9, loc="left")
        legend: Any = {"handles": list(drawn.values()), "labels": list(drawn), "loc": "outside lower center"}
        figure.legend(**legend, fontsize=9, frameon=False, ncols=3, handlelength=3, columnspacing=1)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    svg = text.getvalue().replace(BLACK, INK)  # matplotlib has no color that depends on the page
    opening = f'<svg role="img" aria-label="{escape(title)}" fill="{INK}" '
    return svg[svg.index("<svg") :].replace("<svg ", opening, 1).replace(">", f">{STYLE}", 1)


def _draw(axes: Any, lines: Lines, colours: dict[str, str], *, is_speedup: bool) -> dict[str, Any]:
    """Draw lines against size, and return the drawn lines by name."""
    drawn = {}
    for name, points in lines.items():
        style = "o-" if len(colours[name]) == 2 else "s--"  # C10 has the colour of C0
        (drawn[name],) = axes.plot(*zip(*sorted(points), strict=True), style, color=colours[name], markersize=4)
    axes.set_xscale("log", subs=[])
    axes.axhline(1, color=BLACK, linewidth=1, linestyle="--")
    if is_speedup:
        axes.set_yscale("log", subs=[2, 5])
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.axhspan(min(axes.get_ylim()[0], 0.5), 1, color="red", alpha=0.07, linewidth=0)
    else:
        axes.set_ylim(bottom=0)
    axes.grid(visible=True, axis="y", color=BLACK, alpha=0.18)
    axes.set_xlabel("elements")
    return drawn


def _table(table: Table) -> str:
    columns = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return f'<p>{escape(table.note)}</p><div class="table"><table><tr>{columns}</tr>{rows}</table></div>'


def _cell(text: str) -> str:
    kind = "bad" if text.startswith("WRONG") else "long" if len(text) > LONG else ""
    return f'<td class="{kind}">{escape(text)}</td>'
