"""Opens the conformance page in headless Chromium. This is a pytest plugin for browser tests."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlencode

import pytest

import ledger
from helpers.conformance_runs import careful, hostile, many, swift, swifter, with_a_larger_call
from maxops.conformance import page

if TYPE_CHECKING:
    from selenium import webdriver
    from selenium.webdriver.remote.webelement import WebElement


class Browser:
    """A page in Chromium, with the actions of a user."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self.opened = 0

    def open(self, name: str = "page", **state: str) -> None:
        self.opened += 1  # part of the address, because a change after "#" does not reload the page
        state_in_address = "#" + urlencode(state) if state else ""
        self.driver.get(f"{(self.folder / name).as_uri()}.html?{self.opened}{state_in_address}")

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements("css selector", css)

    def one(self, css: str) -> WebElement:
        return self.driver.find_element("css selector", css)

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def tell(self, command: str, **how: Any) -> None:
        self.driver.execute_cdp_cmd(command, how)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def choose(self, name: str, value: str) -> None:
        """Select an option in a single call, for speed."""
        self.run(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'))",
            self.one(f"select[name={name}]"),
            value,
        )

    def until(self, true: Callable[[], object]) -> None:
        """Wait for an asynchronous action of the browser, such as going back."""
        end = time.monotonic() + 5
        while not true():
            assert time.monotonic() < end, "timed out"
            time.sleep(0.02)

    @property
    def count(self) -> str:
        return self.one("#count").text

    @property
    def state(self) -> dict[str, str]:
        return {key: value[0] for key, value in parse_qs(self.driver.current_url.partition("#")[2]).items()}

    @property
    def is_open(self) -> bool:
        return bool(self.run("return document.getElementById('detail').open"))

    @property
    def focused(self) -> WebElement:
        return self.driver.switch_to.active_element

    @property
    def complaints(self) -> list[Any]:
        return list(self.driver.get_log("browser"))  # type: ignore[no-untyped-call]

    @property
    def requested(self) -> list[str]:
        """Return every address that the browser requested since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("chromium and chromium-driver are not installed")
    pytest.importorskip("selenium")
    from selenium import webdriver  # noqa: PLC0415  (only browser tests require it)

    folder = tmp_path_factory.mktemp("pages")
    page.write(folder / "page.html", [swift(), swifter(), careful()])
    page.write(folder / "many.html", [many(5000)])
    page.write(folder / "hostile.html", [hostile()])
    page.write(folder / "abridged.html", [ledger.abridged(with_a_larger_call()[0])])
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.add_experimental_option("perfLoggingPrefs", {"enableNetwork": True, "enablePage": False})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(chrome, folder)
    finally:
        chrome.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """Yield a browser with a desktop window. Afterwards, check that it used no network and logged no errors."""
    chromium.tell("Emulation.setDeviceMetricsOverride", width=1300, height=900, deviceScaleFactor=1, mobile=False)
    chromium.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    yield chromium
    assert chromium.complaints == []
    schemes = {address.split(":")[0] for address in chromium.requested}
    assert "file" in schemes, "the log does not show the request of the page, so it is incomplete"
    assert schemes <= {"file", "data"}
