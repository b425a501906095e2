"""The documentation site: checked links, and reading and searching it from a local folder."""

from __future__ import annotations

import codeop
import doctest
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

import maxops as mo
from site_tasks import SEARCHES, TASKS, Browser, Task, browser, by_links, by_search

ROOT = Path(__file__).resolve().parents[2]


def faults(site: Path) -> list[str]:
    return list(runpy.run_path(str(ROOT / "docs" / "links.py"))["faults"](site))


def test_links_that_lead_nowhere_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "two.html").write_text('<a name="there"></a><a href="../one.html">one</a>')
    right = '<p id="here"><a href="#here"></a><a href="folder/two.html#there"></a><a href="https://elsewhere.org"></a>'
    (tmp_path / "one.html").write_text(right)
    assert faults(tmp_path) == []
    wrong = '<a href="#nowhere"></a><a href="folder"></a><script src="https://elsewhere.org/a.js"></script>'
    (tmp_path / "one.html").write_text(
        right + wrong + '<link rel="stylesheet" href="//fonts.org/a.css"><img src="a.png">'
    )
    assert faults(tmp_path) == [
        "one.html: loads //fonts.org/a.css from another site",
        "one.html: loads https://elsewhere.org/a.js from another site",
        "one.html: no anchor for link #nowhere",
        "one.html: no file for link a.png",
        "one.html: no file for link folder",
    ]


def test_what_the_reference_lacks_is_told(tmp_path: Path) -> None:
    links = runpy.run_path(str(ROOT / "docs" / "links.py"))
    expected = links["public"]()
    assert "maxops.num_threads" in expected["reference/functions.html"]
    assert "maxops.errors.SegmentIdsError" in expected["reference/errors.html"]
    assert {"maxops-check", "exit-70"} <= expected["reference/commands.html"]
    for name, anchors in expected.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("".join(f'<p id="{each}">' for each in anchors - {"ONNX.Max-13.T", "exit-70"}))
    assert links["undocumented"](tmp_path) == [
        "reference/commands.html: missing anchor exit-70",
        "operators.html: missing anchor ONNX.Max-13.T",
        "clauses/ONNX.Max.T.html: missing anchor ONNX.Max-13.T",
    ]


def examples(page: Path) -> list[tuple[str, str]]:
    """Return the copied and the displayed text of each example of a page."""
    blocks = re.findall(r'data-copy="([^"]*)"><pre><span></span><code>(.*?)</code>', page.read_text("utf-8"), re.DOTALL)
    return [(unescape(copied), unescape(re.sub(r"<[^>]*>", "", shown))) for copied, shown in blocks]


def test_text_that_a_drawing_cuts_off_is_an_error() -> None:
    drawing = runpy.run_path(str(ROOT / "docs" / "drawings.py"))["Drawing"]("a title", 20)
    drawing.text(180, 10, "m" * 51)
    for arguments in ((180, 10, "m" * 52), (100, 10, "m" * 51)):
        with pytest.raises(AssertionError, match="is cut off"):
            drawing.text(*arguments)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site in strict mode and return its folder."""
    for package in ("mkdocs", "material", "mkdocstrings", "selenium"):
        pytest.importorskip(package)
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        pytest.skip("not installed: chromium and chromium-driver, which look at the site")
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    made = subprocess.run(
        build, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    return folder


@pytest.fixture(scope="module")
def chromium(site: Path) -> Iterator[Browser]:
    """Yield a browser that opens the site without a server."""
    with browser(site) as opened:
        yield opened


@pytest.mark.exhaustive  # `make docs` also does this
def test_the_site_is_whole(site: Path) -> None:
    assert faults(site) == []
    assert runpy.run_path(str(ROOT / "docs" / "links.py"))["undocumented"](site) == []


@pytest.mark.exhaustive
def test_names_of_files_differ_by_more_than_case(site: Path) -> None:
    folded = [str(path.relative_to(site)).casefold() for path in site.rglob("*")]
    assert len(folded) == len(set(folded))


@pytest.mark.exhaustive
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.looked_for)
def test_what_people_look_for_is_found(chromium: Browser, task: Task) -> None:
    by_links(chromium, task)
    assert by_search(chromium, task)[0] <= 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", SEARCHES)
def test_words_of_the_field_are_found(chromium: Browser, words: str) -> None:
    chromium.start()
    pages = list(dict.fromkeys(address.partition(".html")[0] for address in chromium.search(words)))
    assert set(pages[:3]) & set(SEARCHES[words]), pages[:3]


@pytest.mark.exhaustive
def test_no_page_is_wider_than_a_phone(site: Path, chromium: Browser) -> None:
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    chromium.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for page in sorted(set(site.rglob("*.html")) - {site / "404.html"}):  # only servers show it
            chromium.driver.get(page.as_uri())
            assert chromium.driver.execute_script("return document.documentElement.scrollWidth") <= 390, page
    finally:
        chromium.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.exhaustive
def test_an_interpreter_accepts_what_is_copied_of_an_example(site: Path) -> None:
    """Test that prompts and results are not copied, and that an empty line ends a block."""
    assert examples(site / "tutorial.html")[0][0].startswith("import numpy as np\nimport maxops as mo\nmonday = ")
    every = [copied for page in sorted(site.rglob("*.html")) for copied, _ in examples(page)]
    assert len(every) > 150
    for copied in every:
        lines: list[str] = []
        for line in [*copied.splitlines(), ""]:
            lines.append(line)
            if codeop.compile_command("\n".join(lines)):  # raises SyntaxError for two statements
                lines = []
        assert lines == [], copied


@pytest.mark.exhaustive
def test_each_example_of_the_reference_runs_alone(site: Path) -> None:
    for package in ("torch", "jax", "onnxruntime"):
        pytest.importorskip(package)
    threads, runner = mo.get_num_threads(), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for page in sorted((site / "reference").glob("*.html")):
        for number, (_, shown) in enumerate(examples(page)):
            test = doctest.DocTestParser().get_doctest(shown, {}, f"{page.stem} {number}", None, 0)
            runner.run(test)
    mo.set_num_threads(threads)
    assert runner.tries > 100
    assert runner.failures == 0


@pytest.mark.exhaustive
def test_columns_of_numbers_and_of_prose_are_marked(site: Path) -> None:
    for page, cell in (
        ("integrations/dask", '<td class="number">0.42 s</td>'),
        ("findings", '<th class="number">cases</th>'),
        ("findings", "<td>SONNX draft</td>"),
        ("operators", '<th class="prose">text</th>'),
    ):
        assert cell in (site / f"{page}.html").read_text(encoding="utf-8"), page


@pytest.mark.exhaustive
def test_nothing_is_asked_of_a_network(chromium: Browser) -> None:
    chromium.start()
    chromium.search("empty segments")
    assert chromium.driver.get_log("browser") == []  # type: ignore[no-untyped-call]
    messages = [json.loads(each["message"])["message"] for each in chromium.driver.get_log("performance")]  # type: ignore[no-untyped-call]
    asked = {each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"}
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}
