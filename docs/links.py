"""Detects broken links, resources from other sites, and missing reference entries in the built documentation.

    python docs/links.py build/site

`mkdocs --strict` checks the links in the Markdown sources. This script checks the built HTML pages, including the
texts of docstrings and of the theme. Links to other sites are not followed. The reference must have an anchor for every
public name, error, command, exit code and clause.
"""

from __future__ import annotations

import ast
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import maxops
from maxops import errors, program, spec
from maxops.cli import app

sys.path.append(str(Path(__file__).parent))

from clauses import by_name, page_of

EXIT_CODES = (
    0, program.FAILED, program.BAD_USE, program.OUR_FAULT, program.INTERRUPTED, program.CLOSED_PIPE,
)  # fmt: skip


class _Reader(HTMLParser):
    """Parses a page and collects its anchors, links and loaded resources."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loaded = {""}, set[str](), set[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        self.loaded |= {given["src"]} if "src" in given else set()
        if tag == "link" and given.get("rel") not in ("canonical", "prev", "next"):
            self.loaded.add(given.get("href", ""))


def faults(site: Path) -> list[str]:
    """Return the broken links and external resources of a site, one line each."""
    pages = {path: _Reader(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # can be served at any address
            continue
        where = path.relative_to(site)
        found += [f"{where}: loads {each} from another site" for each in sorted(page.loaded) if _is_elsewhere(each)]
        for link in sorted(page.links | page.loaded):
            if _is_elsewhere(link) or urlsplit(link).scheme in ("data", "mailto"):
                continue
            name, anchor = urldefrag(link)
            target = (path.parent / unquote(name)).resolve() if name else path.resolve()
            if not target.is_file():
                found.append(f"{where}: no file for link {link}")
            elif target in pages and unquote(anchor) not in pages[target].anchors:
                found.append(f"{where}: no anchor for link {link}")
    return found


def public() -> dict[str, set[str]]:
    """Return the anchors that each page of the reference must have."""
    return {
        "reference/functions.html": {f"maxops.{name}" for name in maxops.__all__ if name != "errors"}
        | {f"maxops.calls.{name}" for name in ("MaxCall", "ReduceCall", "SegmentCall")},
        "reference/errors.html": {
            f"maxops.errors.{name}"
            for name, each in vars(errors).items()
            if isinstance(each, type) and issubclass(each, errors.MaxopsError | Warning)
        },
        "reference/judging.html": _names("checker") | _names("conformance"),
        "reference/models.html": _names("onnx") | _names("onnxruntime") | _names("openvino"),
        "reference/commands.html": {f"maxops-{name}" for name in app.COMMANDS}
        | {f"exit-{code}" for code in EXIT_CODES},
        "operators.html": {clause.id for row in (*spec.ALL, *spec.PLAIN) for clause in row.clauses},
        **{
            page_of(name).replace(".md", ".html"): {clause.id for _, clause in versions}
            for name, versions in by_name().items()
        },
    }


def undocumented(site: Path) -> list[str]:
    """Return the public names that are missing from the reference, one line each."""
    found = []
    for name, anchors in public().items():
        page = site / name
        there = _Reader(page.read_text(encoding="utf-8")).anchors if page.is_file() else set()
        found += [f"{name}: missing anchor {each}" for each in sorted(anchors - there)]
    return found


def _names(module: str) -> set[str]:
    """Read a module's `__all__` without importing the module, because the import may require more packages."""
    text = (Path(maxops.__file__).parent / module / "__init__.py").read_text(encoding="utf-8")
    (names,) = re.findall(r"^__all__ = (\[.*?\])", text, re.MULTILINE | re.DOTALL)
    return {f"maxops.{module}.{name}" for name in ast.literal_eval(names)}


def _is_elsewhere(link: str) -> bool:
    return link.startswith("//") or urlsplit(link).scheme in ("http", "https")


def main() -> int:
    """Print all faults of the site. Return 1 if there are any."""
    site = Path(sys.argv[1]).resolve()
    found = faults(site) + undocumented(site)
    for fault in found:
        print(fault, file=sys.stderr)
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
