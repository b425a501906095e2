"""MkDocs hooks for the documentation site. mkdocs.yml lists this file, and MkDocs calls its functions by name.

The sources of pages link to files of the repository with relative links, which work in a checkout. On the site, each of
these files has a page under repo/, and each clause has a page under clauses/. The page about commands contains their
`--help` texts. Names of errors and clauses become links. The copy button of an example omits prompts and results.
Columns of tables are marked as numbers or prose, and long ids in titles can wrap after separators.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from html import escape, unescape
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from maxops import errors, spec

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "docs"))

import clauses  # noqa: E402

LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
CLAUSES = {clause.id for row in (*spec.ALL, *spec.PLAIN) for clause in row.clauses}
COMMANDS = "<!-- commands -->"
ONLY_IN_A_CHECKOUT = re.compile(r"<!-- only in a checkout -->.*?<!-- end -->\n", re.DOTALL)
OTHERS: dict[str, str] = {}  # generated sources of the site, and the files of the repository that they show
# Factors of the search rank of pages. A search for a clause lists its definition before pages that cite it. A search
# for a term lists definitions and guides before benchmarks and findings.
BOOST = {
    r"operators\.md|semantics": 4.0,
    r"reference/functions": 4.0,
    r"install|tutorial|coming-from|integrations/numpy": 3.0,
    r"reference/commands|reference/errors|integrations/": 2.0,
    r"clauses/": 0.5,
    r"speed\.md": 1.0,
    r"findings|speed|evidence|safety|repo/": 0.2,
}
LINKED = re.compile(r"<pre.*?</pre>|<a .*?</a>|<h\d.*?</h\d>|<code>([\w.-]+)</code>", re.DOTALL)
RANGE = re.compile(r"(?<=in )-?\w\.\.r-1")  # the range of axes in the text of a clause, such as "in -r..r-1"
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
CELL = re.compile(r"<(t[hd])>(.*?)(?=</t[hd]>)", re.DOTALL)
NUMBER = re.compile(r"[\d.,]+( (s|ms|MB|GB|%))?|")
PROSE = 40  # cells with more characters are prose
HEADING = re.compile(r"(?<=<h1)(.*?)(?=</h1>)", re.DOTALL)
SEPARATOR = re.compile(r"(?<=\w)([._/-])(?=\w)(?![^<]*>)")  # within an id or a path, and not in a tag
SESSION = re.compile(r'<div class="(?:language-\w+ )?highlight">(?=<pre><span></span><code>(.*?)</code>)', re.DOTALL)
# Pages without a table of contents, so that wide tables and drawings can use the margin.
WITHOUT_CONTENTS = re.compile(r"findings|evidence\.md|speed|coming-from|architecture")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each clause, and for each file of the repository that a page links to, directly or indirectly."""
    for place, text in clauses.pages().items():
        files.append(File.generated(config, place, content=text))
    named: list[str] = []
    for file in files.documentation_pages():
        named += _named(file.content_string, f"docs/{file.src_uri}")
    done: set[str] = set()
    while named:
        path = named.pop()
        if path in done or path.startswith("docs/") or not (ROOT / path).is_file():
            continue
        done.add(path)
        text = (ROOT / path).read_text(encoding="utf-8")
        if path.endswith(".md"):
            named += _named(text, path)
        else:
            text = f"---\nsearch: {{exclude: true}}\n---\n# `{path}`\n\n`````{Path(path).suffix[1:]}\n{text}\n`````\n"
        OTHERS[_on_site(path)] = path
        files.append(File.generated(config, _on_site(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace links to files with links to their pages on the site, and insert the help of the commands."""
    del config, files
    uri = page.file.src_uri
    if uri == "index.md" or WITHOUT_CONTENTS.match(uri):
        page.meta["hide"] = ["navigation", "toc"] if uri == "index.md" else ["toc"]
    boost = next((value for pattern, value in BOOST.items() if re.match(pattern, uri)), 1.0)
    page.meta["search"] = {"boost": boost} | page.meta.get("search", {})
    path = OTHERS.get(uri, f"docs/{uri}")

    def on_site(link: re.Match[str]) -> str:
        return posixpath.relpath(_on_site(_in_repository(link[1], path)), posixpath.dirname(uri) or ".")

    markdown = ONLY_IN_A_CHECKOUT.sub("", markdown)
    if path.endswith(".md"):
        markdown = LINK.sub(on_site, markdown)
    markdown = markdown.replace("```python\n>>> ", "```pycon\n>>> ")  # pycon highlights prompts and results
    return markdown.replace(COMMANDS, _commands()) if COMMANDS in markdown else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the names of errors and clauses, mark table columns, and set the text for the copy buttons of examples."""
    del config, files

    def link(found: re.Match[str]) -> str:
        target = _definition(found[1] or "")
        if not target or target[0] == page.file.src_uri:
            return found[0]
        return f'<a href="{_relative(target[0], page)}#{target[1]}">{found[0]}</a>'

    def copied(found: re.Match[str]) -> str:
        typed = "\n".join(re.findall(r"^(?:>>>|\.\.\.) .*", unescape(_text(found[1])), re.MULTILINE))
        typed = re.sub(r"^(\.\.\. .*)(?=\n>>> )", r"\1\n", typed, flags=re.MULTILINE)  # an empty line ends a block
        typed = re.sub(r"^(>>>|\.\.\.) ", "", typed, flags=re.MULTILINE)
        return f'{found[0][:-1]} data-copy="{escape(typed)}">' if typed else found[0]

    html = RANGE.sub(r'<code class="range">\g<0></code>', LINKED.sub(link, html))
    return SESSION.sub(copied, TABLE.sub(_with_classes, html))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Let long ids and paths in titles wrap after separators, because they are wider than the screen of a phone."""
    del page, config
    return HEADING.sub(lambda title: SEPARATOR.sub(r"\1<wbr>", title[0]), output)


def _with_classes(table: re.Match[str]) -> str:
    """Add CSS classes to the columns of a table that contain only numbers, or that contain long texts."""
    rows = [[_text(cell) for _, cell in CELL.findall(row)] for row in ROW.findall(table[0])]
    columns = list(zip(*rows[1:], strict=True))
    classes = [
        ' class="number"' if all(map(NUMBER.fullmatch, column)) else ' class="prose"' * (max(map(len, column)) > PROSE)
        for column in columns
    ]

    def mark(row: re.Match[str]) -> str:
        each = iter(classes)
        return CELL.sub(lambda cell: f"<{cell[1]}{next(each, '')}>{cell[2]}", row[0])

    return ROW.sub(mark, table[0])


def _text(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


def _definition(name: str) -> tuple[str, str] | None:
    """Return the page that defines an error or a clause, and its anchor."""
    found = getattr(errors, name.removeprefix("errors."), None)
    if isinstance(found, type) and issubclass(found, errors.MaxopsError):
        return "reference/errors.md", f"maxops.errors.{name.removeprefix('errors.')}"
    return (clauses.page_of(name), name) if name in CLAUSES else None


def _relative(uri: str, page: Page) -> str:
    return posixpath.relpath(uri.removesuffix(".md") + ".html", posixpath.dirname(page.file.src_uri) or ".")


def _named(text: str, path: str) -> Iterator[str]:
    return (_in_repository(link, path) for link in LINK.findall(text))


def _in_repository(link: str, path: str) -> str:
    """Return the target of a link as a path in the repository. For a folder, return the path of its README."""
    named = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return f"{named}/README.md" if (ROOT / named).is_dir() else named


def _on_site(path: str) -> str:
    """Return the path that a file of the repository has in the site's source folder."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repo/{path.removesuffix('.md').removesuffix('/README')}.md"


def _commands() -> str:
    """Return typer's Markdown for the commands, without its main heading."""
    command = [sys.executable, "-m", "typer", "maxops.cli.app", "utils", "docs", "--name", "maxops"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # the help of options is plain text and may contain asterisks
    return re.sub(r"(?<=`: )(.*)", lambda text: text[0].replace("*", r"\*"), made[made.index("\n## ") :])
