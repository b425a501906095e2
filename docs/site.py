"""What mkdocs does beside its plugins for the site of these pages: it is called by name, as mkdocs.yml says.

Pages name files of the repository by relative links, which hold in a checkout. On the site each such file has a page,
under repo/. And the page of commands gets what the command line says of itself.
"""

from __future__ import annotations

import posixpath
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
COMMANDS = "<!-- commands -->"
OTHERS: dict[str, str] = {}  # the sources of the site that are no pages, and the files of the repository that they show
# What leaves its margins to wide tables.
WITHOUT_CONTENTS = re.compile(r"findings|operators\.md|evidence\.md|speed|coming-from")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file of the repository that a page names, and for those that these name."""
    named = ["CHANGELOG.md", "CONTRIBUTING.md"]
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
    """Lead links to where their files are on the site, and fill in the commands."""
    del config, files
    uri = page.file.src_uri
    if uri == "index.md" or WITHOUT_CONTENTS.match(uri):
        page.meta["hide"] = ["navigation", "toc"] if uri == "index.md" else ["toc"]
    if uri == "operators.md":
        page.meta["search"] = {"boost": 4}  # who looks for a clause wants it here, not where it is cited
    path = OTHERS.get(uri, f"docs/{uri}")

    def on_site(link: re.Match[str]) -> str:
        return posixpath.relpath(_on_site(_in_repository(link[1], path)), posixpath.dirname(uri) or ".")

    if path.endswith(".md"):
        markdown = LINK.sub(on_site, markdown)
    return markdown.replace(COMMANDS, _commands()) if COMMANDS in markdown else markdown


def _named(text: str, path: str) -> Iterator[str]:
    return (_in_repository(link, path) for link in LINK.findall(text))


def _in_repository(link: str, path: str) -> str:
    """What a link of a file names, as a path in the repository; of a folder, what it has to be read first."""
    named = posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
    return f"{named}/README.md" if (ROOT / named).is_dir() else named


def _on_site(path: str) -> str:
    """A file's place among the site's sources."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"repo/{path.removesuffix('.md').removesuffix('/README')}.md"


def _commands() -> str:
    """The commands in Markdown, by typer, without their common heading."""
    command = [sys.executable, "-m", "typer", "maxops.cli.app", "utils", "docs", "--name", "maxops"]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # the texts of the options are plain, and may have asterisks of their own
    return re.sub(r"(?<=`: )(.*)", lambda text: text[0].replace("*", r"\*"), made[made.index("\n## ") :])
