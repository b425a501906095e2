"""Says which links of a built site lead nowhere, and which of its parts come from elsewhere.

    python docs/links.py build/site

mkdocs --strict has looked at the links of the pages' sources; this looks at what was made of them, of docstrings and of
the theme. Links to other sites are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit


class _Reader(HTMLParser):
    """The anchors of a page, where it leads, and what it loads."""

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
    """What is wrong, a line each: the page, and the link."""
    pages = {path: _Reader(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        if path.name == "404.html":  # for servers, which give it under every address
            continue
        where = path.relative_to(site)
        found += [f"{where}: loads {each}, from elsewhere" for each in sorted(page.loaded) if _is_elsewhere(each)]
        for link in sorted(page.links | page.loaded):
            if _is_elsewhere(link) or urlsplit(link).scheme in ("data", "mailto"):
                continue
            name, anchor = urldefrag(link)
            target = (path.parent / unquote(name)).resolve() if name else path.resolve()
            if not target.is_file():
                found.append(f"{where}: {link} leads to no file")
            elif target in pages and unquote(anchor) not in pages[target].anchors:
                found.append(f"{where}: {link} leads to no anchor")
    return found


def _is_elsewhere(link: str) -> bool:
    return link.startswith("//") or urlsplit(link).scheme in ("http", "https")


def main() -> int:
    """Print the faults; 1 if there are some."""
    site = Path(sys.argv[1]).resolve()
    found = faults(site)
    for fault in found:
        print(fault, file=sys.stderr)
    return min(len(found), 1)


if __name__ == "__main__":
    sys.exit(main())
