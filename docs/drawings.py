"""Draws the figures of the documentation as SVG, which are as wide as a phone's screen.

`docs/generate.py` writes the files.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

import maxops as mo
from maxops.bench.page import INK, STYLE
from maxops.conformance.matrix import by_standard
from maxops.conformance.result import Run, Verdict
from maxops.conformance.wording import runtime_label

WIDTH = 360
LETTER = 0.58  # the mean width of a letter, relative to the font size, in a wide font such as DejaVu Sans
FILLS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7")


class Drawing:
    """An SVG drawing with a title and a height in pixels. Its methods add text, boxes and arrows."""

    def __init__(self, title: str, height: int) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(title)}" width="{WIDTH}" '
            f'height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12" fill="{INK}">',
            f"<title>{escape(title)}</title>{STYLE}",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0L8 4L0 8z" fill="{INK}"/></marker></defs>',
        ]

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "middle", size: int = 12, bold: bool = False
    ) -> None:
        """Add a line of text, vertically centered at y. The text must fit into the drawing."""
        width = LETTER * size * len(words)
        left = {"start": x, "middle": x - width / 2}[anchor]
        assert 0 <= left <= WIDTH - width, f"{words!r} is cut off"
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y + size * 0.35:g}" text-anchor="{anchor}" font-size="{size}"{weight}>'
            f"{escape(words)}</text>"
        )

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: tuple[str, ...],
        *,
        fill: str = INK,
        dashed: bool = False,
    ) -> None:
        """Add a box with lines of text. If there are several lines, the first one is bold."""
        dashes = ' stroke-dasharray="4 3"' if dashed else ""
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" fill-opacity="0.15" '
            f'stroke="{fill}"{dashes}/>'
        )
        for number, words in enumerate(lines):
            at = y + height / 2 + (number - (len(lines) - 1) / 2) * 15
            bold = number == 0 and len(lines) > 1
            self.text(x + width / 2, at, words, size=12 if bold or len(lines) == 1 else 11, bold=bold)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Add an arrow from one point to another."""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{INK}" marker-end="url(#tip)"/>'
        )

    def svg(self) -> str:
        """Return the text of the SVG file."""
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def order() -> Drawing:
    """Draw the order of floats on a line."""
    drawing = Drawing("The order of floats: -Inf, negative numbers, -0, +0, positive numbers, +Inf, NaN", 90)
    places = (("-Inf", 18), ("negative", 82), ("-0", 142), ("+0", 178), ("positive", 240), ("+Inf", 302), ("NaN", 340))
    drawing.arrow(4, 24, WIDTH - 2, 24)
    for words, x in places:
        drawing.parts.append(f'<circle cx="{x}" cy="24" r="3.5" fill="{FILLS[2] if words == "NaN" else FILLS[0]}"/>')
        drawing.text(x, 44, words, size=11)
    for y, words in ((66, "The maximum is the rightmost value."), (82, 'nan="ignore" puts NaN leftmost.')):
        drawing.text(WIDTH / 2, y, words)
    return drawing


def segments() -> Drawing:
    """Draw a call of `segment_max` by ids and by offsets, with an empty segment. maxops computes the result."""
    data, ids = np.array([3, 1, 4, 1, 5, 9, 2]), np.array([0, 0, 1, 3, 3, 3, 3])
    offsets = np.array([0, 2, 3, 3, 7])
    result, empty = mo.segment_max(data, ids, 4, fill_value=0, return_empty=True)
    assert np.array_equal(result, mo.segment_max(data, offsets=offsets, fill_value=0))
    drawing = Drawing("segment_max by segment_ids and by offsets: each segment's maximum, and one empty segment", 200)
    left, wide = 104, 36
    for label, y in (("data", 26), ("segment_ids", 60), ("offsets", 92), ("result", 150)):
        drawing.text(4, y, label, anchor="start", bold=True)
    for column, (value, row) in enumerate(zip(data, ids, strict=True)):
        x = left + wide * column
        drawing.box(x + 2, 12, wide - 4, 28, (str(value),), fill=FILLS[row])
        drawing.text(x + wide / 2, 60, str(row))
    counts = {int(each): list(offsets).count(each) for each in offsets}
    for each, count in counts.items():
        drawing.parts.append(
            f'<line x1="{left + wide * each}" y1="44" x2="{left + wide * each}" y2="82" stroke="{INK}"/>'
        )
        drawing.text(left + wide * each, 92, ", ".join([str(each)] * count))
    for segment, value in enumerate(result):
        middle = left + wide * (offsets[segment] + offsets[segment + 1]) / 2
        x = left + 63 * segment
        drawing.arrow(middle, 104, x + 31, 134)
        drawing.box(x + 2, 136, 58, 28, (str(value),), fill=FILLS[segment], dashed=bool(empty[segment]))
        drawing.text(x + 31, 173, f"segment {segment}", size=11)
    drawing.text(left + 126, 192, "segment 2 is empty: fill_value=0")
    return drawing


def dask() -> Drawing:
    """Draw how the maxima of Dask chunks are merged. maxops computes the maxima."""
    data, ids = np.array([3, 1, 4, 6, 5, 9, 2, 8, 7]), np.array([0, 0, 1, 1, 1, 2, 2, 3, 3])
    result = mo.segment_max(data, ids, fill_value=0)
    drawing = Drawing(
        "segment_max of a Dask array: each task sends the maxima of its segments, and shared segments are merged", 236
    )
    wide, gap, left = 36, 12, 6
    for label, y in (("chunks", 14), ("tasks", 92), ("result", 174)):
        drawing.text(2, y, label, anchor="start", size=11, bold=True)
    sent: list[tuple[int, float]] = []
    for chunk in range(3):
        rows = slice(3 * chunk, 3 * chunk + 3)
        x = left + chunk * (3 * wide + gap)
        for column, (value, segment) in enumerate(zip(data[rows], ids[rows], strict=True)):
            drawing.box(x + wide * column + 1, 26, wide - 2, 28, (str(value),), fill=FILLS[segment])
            drawing.text(x + wide * column + wide / 2, 63, f"id {segment}", size=11)
        drawing.arrow(x + 1.5 * wide, 72, x + 1.5 * wide, 104)
        segments = np.unique(ids[rows])
        highest = mo.segment_max(data[rows], ids[rows] - segments[0], fill_value=0)
        width = 3 * wide / len(segments)
        for place, (segment, value) in enumerate(zip(segments, highest, strict=True)):
            drawing.box(x + width * place + 1, 106, width - 2, 28, (str(value),), fill=FILLS[segment])
            sent.append((int(segment), x + width * (place + 0.5)))
    for segment, x in sent:
        drawing.arrow(x, 136, 48 + 88 * segment, 186)
    for segment, value in enumerate(result):
        x = 48 + 88 * segment
        drawing.box(x - 28, 188, 56, 28, (str(value),), fill=FILLS[segment])
        drawing.text(x, 226, f"segment {segment}", size=12)
    return drawing


def findings(runs: Sequence[Run]) -> Drawing:
    """Draw, for each runtime and standard, the share of each verdict among the applicable cases."""
    rows = [
        (f"{runtime_label(run)}, {standard}", counts)
        for run in runs
        for standard, counts in by_standard(run).items()
        if counts["not applicable"] < counts.total()
    ]
    kinds: list[tuple[str, str, tuple[Verdict, ...]]] = [
        ("conform", FILLS[1], ("conforms",)),
        ("permitted", FILLS[0], ("permitted", "not the same twice")),
        ("refuse", INK, ("refuses",)),
        ("wrong", FILLS[2], ("violates", "missing error")),
        ("crash, memory", FILLS[3], ("crashes", "uninitialized memory", "corrupted state", "hangs")),
    ]
    drawing = Drawing("Share of the verdicts among the applicable cases, by runtime and standard", 34 + 15 * len(rows))
    x, bars = 4.0, 212.0
    for name, fill, _ in kinds:
        drawing.parts.append(f'<rect x="{x:g}" y="7" width="10" height="10" fill="{fill}"/>')
        drawing.text(x + 13, 12, name, anchor="start", size=11)
        x += 21 + LETTER * 11 * len(name)
    for number, (label, counts) in enumerate(rows):
        y = 30 + 15 * number
        drawing.text(4, y + 5, label, anchor="start", size=11)
        whole = counts.total() - counts["not applicable"]
        x = bars
        for _, fill, verdicts in kinds:
            width = (WIDTH - 4 - bars) * sum(counts[each] for each in verdicts) / whole
            drawing.parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="10" fill="{fill}"/>')
            x += width
    return drawing


def architecture() -> Drawing:
    """Draw how a call reaches a kernel."""
    title = (
        "How a call reaches a kernel: from Python or a model, through the native entry or the planner, to the kernels"
    )
    drawing = Drawing(title, 470)
    drawing.box(2, 4, 200, 40, ("a call in Python", "mo.maximum(a, b)"))
    drawing.box(212, 4, 146, 40, ("a node of a model", "ONNX Runtime, XLA"))
    drawing.arrow(60, 44, 60, 68)
    drawing.arrow(285, 44, 285, 250)
    drawing.box(2, 70, 250, 40, ("native entry", "native/bindings/operators.cpp"), fill=FILLS[0])
    drawing.arrow(40, 110, 40, 250)
    drawing.text(46, 238, "valid", anchor="start", size=11)
    drawing.arrow(150, 110, 150, 138)
    drawing.text(156, 124, "all other calls", anchor="start", size=11)
    drawing.box(84, 140, 190, 40, ("engine of the arrays", "engines/table.py"), fill=FILLS[3])
    drawing.arrow(150, 180, 150, 196)
    drawing.box(84, 198, 190, 34, ("plan, or a clause's error", "plan/"), fill=FILLS[3])
    drawing.arrow(150, 232, 150, 250)
    drawing.box(2, 252, 356, 40, ("native API: views in, a result or a Fault out", "native/api.h"), fill=FILLS[1])
    drawing.arrow(180, 292, 180, 306)
    drawing.box(2, 308, 356, 40, ("drivers: blocks, tasks and threads", "native/drivers/"), fill=FILLS[1])
    drawing.arrow(180, 348, 180, 362)
    drawing.box(2, 364, 356, 40, ("kernels: once per type and instruction set", "native/kernels/"), fill=FILLS[1])
    drawing.arrow(180, 404, 180, 418)
    drawing.box(
        2,
        420,
        356,
        44,
        ("the order: bits as integer keys", "native/core/order.h, types.def, parameters.def"),
        fill=FILLS[2],
    )
    return drawing


def files(runs: Sequence[Run]) -> dict[str, str]:
    """Return the SVG text of each figure, keyed by file name. `runs` are the conformance runs to draw."""
    drawings = {draw.__name__: draw() for draw in (order, segments, dask, architecture)}
    return {f"{name}.svg": each.svg() for name, each in (drawings | {"findings": findings(runs)}).items()}
