"""The site of docs/: that its links are looked at, and that it is read and searched from a folder alone."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
        "one.html: loads //fonts.org/a.css, from elsewhere",
        "one.html: loads https://elsewhere.org/a.js, from elsewhere",
        "one.html: #nowhere leads to no anchor",
        "one.html: a.png leads to no file",
        "one.html: folder leads to no file",
    ]


@pytest.mark.exhaustive  # `make docs` builds it strictly, with the same links
def test_the_site_is_searched_from_a_folder(tmp_path: Path) -> None:
    """In Chromium, without a server; nothing is asked of a network."""
    for package in ("mkdocs", "material", "mkdocstrings", "selenium"):
        pytest.importorskip(package)
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("not installed: chromium and chromium-driver, which look at the site")
    from selenium import webdriver  # noqa: PLC0415  (the tests without a browser run without it)

    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    made = subprocess.run(
        build, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert faults(tmp_path) == []
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        chrome.set_window_size(1300, 900)
        chrome.get((tmp_path / "index.html").as_uri())
        chrome.find_element("css selector", "input.md-search__input").send_keys("empty segments")
        end = time.monotonic() + 60
        while not (found := chrome.find_elements("css selector", "a.md-search-result__link")):
            assert time.monotonic() < end, "the search found nothing"
            time.sleep(0.1)
        assert any("integrations/numpy.html" in (each.get_attribute("href") or "") for each in found)
        assert chrome.get_log("browser") == []  # type: ignore[no-untyped-call]
        messages = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]  # type: ignore[no-untyped-call]
        asked = {each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"}
        assert {address.split(":")[0] for address in asked} == {"file"}
    finally:
        chrome.quit()
