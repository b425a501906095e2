"""Shows runs as one self-contained HTML file with a matrix, filters, and each finding down to its bits."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from maxops.atomic_files import write_text
from maxops.conformance.bounds import sentences
from maxops.conformance.matrix import by_standard, spoken
from maxops.conformance.page.data import data
from maxops.conformance.result import Run
from maxops.conformance.wording import runtime_label

# In the order of execution: each script may use the scripts before it.
SCRIPTS = ("dom", "state", "summary", "matrix", "filters", "bits", "results", "detail", "findings", "keys", "main")


def html(runs: Sequence[Run]) -> str:
    """Return the page. The same runs produce the same bytes."""
    style = _asset("page.css")
    script = '"use strict";\n(() => {\n' + "\n".join(_asset(f"script/{name}.js") for name in SCRIPTS) + "})();\n"
    return Template(_asset("page.html")).substitute(
        title=escape(", ".join(map(runtime_label, runs))),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        # "<" could end the element that contains the data
        data=json.dumps(data(runs), allow_nan=False, separators=(",", ":")).replace("<", r"\u003c"),
        summary="".join(map(_summary, runs)),
    )


def write(path: Path, runs: Sequence[Run]) -> None:
    """Write the page."""
    # a runtime's name may contain bytes that are not UTF-8
    write_text(path, html(runs), errors="backslashreplace")


def _asset(name: str) -> str:
    return (files(__name__) / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Return the hash of a script or style for the content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _summary(run: Run) -> str:
    """Return a runtime's table rows for browsers without JavaScript."""
    return "".join(
        f"<tr><td>{escape(runtime_label(run))}</td><td>{escape(standard)}</td>"
        f"<td>{counts.total()}</td><td>{escape(spoken(counts))}</td></tr>"
        for standard, counts in by_standard(run).items()
    ) + "".join(
        f'<tr><td>{escape(runtime_label(run))}</td><td>bounds</td><td colspan="2">{escape(each)}</td></tr>'
        for each in sentences(run)
    )
