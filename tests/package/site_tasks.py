"""Performs tasks of first-time users on the site of `make docs` in Chromium, by clicks or by search.

    python tests/package/site_tasks.py build/site

The script prints a table of the tasks with clicks and seconds. The seconds do not include the time for reading. A task
is complete when the words that answer it are on the screen, without scrolling.
"""

from __future__ import annotations

import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from selenium import webdriver

PATIENCE_SECONDS = 60


class Task(NamedTuple):
    """A task: the question, the links that lead to the answer, the words of the answer, and a search query."""

    looked_for: str
    links: tuple[str, ...]
    words: str
    search: str


TASKS = (
    Task("find how NaN behaves", ("NaN, -0",), "NaN propagates", "nan"),
    Task(
        "find the option for empty segments",
        ("empty segments",),
        'fill_mode="ZERO"',
        "empty segments",
    ),
    Task("install on ARM", ("Install",), "aarch64 (ARM)", "arm"),
    Task("judge my runtime in CI", ("judge a runtime", "Reports and CI"), "--junit FILE", "junit"),
    Task(
        "what replaces np.maximum.reduceat",
        ("Migrate from", "np.maximum.reduceat"),
        "offsets=np.array",
        "np.maximum.reduceat",
    ),
    Task("limit threads", ("NumPy", "Set threads and memory"), "mo.num_threads(1)", "threads"),
    Task("which dtypes", ("dtypes",), "float16, bfloat16", "dtypes"),
    Task(
        "what does clause ONNX.Max-13.T mean",
        ("Reference", "Operators and clauses", "ONNX Max-13"),
        "ONNX.Max-13.T",
        "ONNX.Max-13.T",
    ),
    Task("use it in torch, with gradients", ("PyTorch", "Gradients"), "torch.autograd.grad", "gradients"),
    Task("use it in an ONNX Runtime session", ("ONNX Runtime",), "maxops.onnxruntime.session", "onnx runtime session"),
)

# For each term, one of these pages must be among the first three results.
SEARCHES = {
    "prefetch": ("architecture",),
    "transpose": ("architecture",),
    "argmax": ("integrations/numpy", "reference/functions"),
    "vmap": ("integrations/jax", "integrations/torch"),
    "propagate": ("semantics",),
    "nan": ("semantics",),
    "empty segment": ("integrations/numpy",),
    "aarch64": ("install",),
    "arm": ("install",),
    "windows": ("install",),
    "threads": ("integrations/numpy", "reference/functions"),
    "fill_mode": ("reference/functions", "clauses/maxops.segment_max.fill_mode"),
    "segment_max": ("reference/functions",),
    "exit code": ("reference/commands",),
    "ReduceMax-20.empty": ("operators", "clauses/ONNX.ReduceMax.empty"),
    "torch speed": ("speed",),
    "scatter_max": ("coming-from",),
}

# Whether words are visible: the range of the text that contains them, outside hidden elements.
ON_SCREEN = """
const words = arguments[0], walker = document.createTreeWalker(document.querySelector('.md-content'), 4);
const nodes = []; let text = '';
while (walker.nextNode()) { nodes.push([text.length, walker.currentNode]); text += walker.currentNode.data; }
for (let from = text.indexOf(words); from >= 0; from = text.indexOf(words, from + 1)) {
  const [start, node] = nodes.findLast(([start]) => start <= from), range = document.createRange();
  range.setStart(node, from - start); range.setEnd(node, node.data.length);
  const box = range.getBoundingClientRect();
  if (box.height && box.top >= 0 && box.bottom <= innerHeight) return true;
}
return false;
"""
# The visible links that begin with a text; those of the page come before those of the frame.
LINKS = """
const shown = (each) => each.getClientRects().length && each.innerText.trim().startsWith(arguments[0]);
const places = ['.md-content a', '.md-sidebar a', '.md-tabs a'];
return places.flatMap((css) => [...document.querySelectorAll(css)]).filter(shown);
"""


class Browser:
    """Chromium with the site."""

    def __init__(self, driver: webdriver.Chrome, site: Path) -> None:
        self.driver, self.site = driver, site.resolve()

    def start(self) -> None:
        """Open the start page."""
        self.driver.get((self.site / "index.html").as_uri())

    def follow(self, text: str) -> None:
        """Click the first link with a text."""
        links = self.driver.execute_script(LINKS, text)
        assert links, f"{self.driver.current_url}: no link {text!r} is shown"
        links[0].click()

    def see(self, words: str) -> None:
        """Wait until words are on the screen."""
        wait(lambda: self.driver.execute_script(ON_SCREEN, words), f"{self.driver.current_url}: {words!r} is not seen")

    def search(self, words: str) -> list[str]:
        """Return the search results as paths in the site: for each page, the page and its matching sections."""
        field = self.driver.find_element("css selector", "input.md-search__input")
        field.click()
        field.send_keys(words)

        def done() -> bool:
            said = self.driver.find_element("css selector", ".md-search-result__meta").text
            return bool(re.match(r"(\d+|No) matching", said))

        wait(done, f"the search for {words!r} does not end")
        css = ".md-search-result__item > a.md-search-result__link"
        found = self.driver.find_elements("css selector", css)
        return [str(each.get_attribute("href")).removeprefix(f"{self.site.as_uri()}/") for each in found]


def wait(true: Callable[[], object], otherwise: str) -> None:
    """Wait until a condition is true."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


@contextmanager
def browser(site: Path) -> Iterator[Browser]:
    """Yield headless Chromium with a desktop window."""
    from selenium import webdriver  # noqa: PLC0415  (the tests without a browser run without it)

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(shutil.which("chromedriver"))))
    try:
        driver.set_window_size(1440, 900)
        yield Browser(driver, site)
    finally:
        driver.quit()


def by_links(chromium: Browser, task: Task) -> float:
    """Do a task by clicks and return the seconds."""
    chromium.start()
    begun = time.monotonic()
    for text in task.links:
        chromium.follow(text)
    chromium.see(task.words)
    return time.monotonic() - begun


def by_search(chromium: Browser, task: Task) -> tuple[int, float]:
    """Do a task by search. Return the position of the result and the seconds."""
    chromium.start()
    begun = time.monotonic()
    chromium.search(task.search)
    sections = chromium.driver.find_elements("css selector", "a.md-search-result__link")
    addresses = [str(each.get_attribute("href")) for each in sections[:6]]
    took = time.monotonic() - begun
    for number, address in enumerate(addresses, 1):
        begun = time.monotonic()
        chromium.driver.get(address)
        time.sleep(0.3)  # for scrolling to the section
        if chromium.driver.execute_script(ON_SCREEN, task.words):
            return number, took + time.monotonic() - begun
    raise AssertionError(f"none of the first results for {task.search!r} shows {task.words!r}: {addresses}")


def main() -> None:
    """Print the table."""
    with browser(Path(sys.argv[1])) as chromium:
        print("| task | clicks | seconds | or search for | result | seconds |")
        print("| --- | --- | --- | --- | --- | --- |")
        for task in TASKS:
            seconds = by_links(chromium, task)
            result, searched = by_search(chromium, task)
            cells = (task.looked_for, len(task.links), f"{seconds:.1f}", f"`{task.search}`", result, f"{searched:.1f}")
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
