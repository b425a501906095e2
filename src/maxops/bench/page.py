"""A run as one HTML file: plots as inline SVG, tables, nothing loaded from elsewhere; readable on a phone."""

from __future__ import annotations

import io
from html import escape
from importlib.resources import files
from typing import Any

from maxops.bench import report
from maxops.bench.grid import OPERATORS
from maxops.bench.report import FASTEST, LIMIT, Table
from maxops.bench.timing import Json

INK = "#7a828e"  # reads on white and on black
# Variants that differ little from the ones that are drawn are in the tables only.
UNDRAWN = (",int32", ",unchecked")
LONG = 48  # letters from which a cell of a table wraps

Lines = dict[str, list[tuple[int, float]]]  # by type, (size, ratio)


def html(run: Json) -> str:
    """The page. Plots need matplotlib, of the extra `bench`."""
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    parts = [f"<h1>maxops against other libraries</h1><p>{escape(report.headline(run))}.</p>"]
    for operator in OPERATORS:
        parts.append(_plots(run, operator, FASTEST, "speedup over the fastest correct library"))
        parts.append(_plots(run, operator, LIMIT, "share of the memory's limit"))
    for table in (*report.summary(run), *report.cases(run)):
        parts.append(f"<details><summary>{escape(table.title)}</summary>{_table(table)}</details>")
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>maxops bench</title>'
        f"<style>{style}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def _plots(run: Json, operator: str, against: str, title: str) -> str:
    """A plot for each family with more than one size: by type, the ratio over elements."""
    families: dict[str, Lines] = {}
    colours: dict[str, str] = {}
    for case in run["cases"]:
        is_drawn = case["operator"] == operator and not any(part in case["family"] for part in UNDRAWN)
        if is_drawn and (ratio := report.value(case, against)) is not None:
            colours.setdefault(case["type"], f"C{len(colours)}")
            families.setdefault(case["family"], {}).setdefault(case["type"], []).append((case["size"], ratio))
    figures = [
        f"<figure><figcaption>{escape(family.replace(',', ', '))}</figcaption>"
        f"{_svg(lines, colours, f'{title}, {family}', is_speedup=against == FASTEST)}</figure>"
        for family, lines in families.items()
        if any(len(points) > 1 for points in lines.values())
    ]
    return f'<h2>{operator}: {title}</h2><div class="plots">{"".join(figures)}</div>' if figures else ""


def _svg(lines: Lines, colours: dict[str, str], title: str, *, is_speedup: bool) -> str:
    """Lines by type over size, with text as text; below 1 a speedup is shaded."""
    import matplotlib as mpl  # noqa: PLC0415 - an extra
    from matplotlib.figure import Figure  # noqa: PLC0415

    names = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    look: Any = dict.fromkeys(names, INK) | {"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9}
    with mpl.rc_context(look | {"svg.hashsalt": "maxops"}):  # the same run gives the same page
        figure = Figure(figsize=(4.2, 2.5), layout="constrained")
        axes = figure.subplots()
        for name, points in lines.items():
            axes.plot(*zip(*sorted(points), strict=True), color=colours[name], label=name, marker="o", markersize=3)
        axes.set_xscale("log")
        axes.axhline(1, color=INK, linewidth=1, linestyle="--")
        if is_speedup:
            axes.set_yscale("log", subs=[2, 5])
            axes.yaxis.set_major_formatter("{x:g}")
            axes.yaxis.set_minor_formatter("{x:g}")
            axes.axhspan(min(axes.get_ylim()[0], 0.5), 1, color="red", alpha=0.07, linewidth=0)
        else:
            axes.set_ylim(bottom=0)
        axes.grid(visible=True, axis="y", color=INK, alpha=0.18)
        axes.legend(fontsize=7, frameon=False)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None}, transparent=True)
    svg = text.getvalue()
    return svg[svg.index("<svg") :].replace("<svg ", f'<svg role="img" aria-label="{escape(title)}" ', 1)


def _table(table: Table) -> str:
    columns = "".join(f"<th>{escape(column)}</th>" for column in table.columns)
    rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
    return f'<p>{escape(table.note)}</p><div class="table"><table><tr>{columns}</tr>{rows}</table></div>'


def _cell(text: str) -> str:
    kind = "bad" if text.startswith("WRONG") else "long" if len(text) > LONG else ""
    return f'<td class="{kind}">{escape(text)}</td>'
