"""The page, in a browser: by mouse, by keys alone, on a phone, and with names that mean it harm."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from conformance_runs import careful, many, swift, swifter
from maxops.conformance import page
from maxops.conformance.named import case_name, clause_name, row
from maxops.conformance.page.data import MARKS, data, names
from maxops.conformance.result import FAULTS, VERDICTS, Finding, Run
from maxops.conformance.wording import of_whom
from maxops.errors import OutputError

pytest.importorskip("selenium")
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

RUNS = [swift(), swifter(), careful()]
ZERO = "SONNX.Max.value/float16/in-every-lane-of-lengths-1-to-8"
ARRAY = "ONNX.ReduceMax-18.value/float16/in-the-last-of-130"
HOSTILE = "</script><img src=x onerror=\"document.title='harmed'\"><b>bold</b>\ud800\u2028"


class Browser:
    """A page open in Chromium, and what a person does with it."""

    def __init__(self, driver: webdriver.Chrome, folder: Path) -> None:
        self.driver = driver
        self.folder = folder
        self.opened = 0

    def open(self, name: str = "page", **state: str) -> None:
        self.opened += 1  # in the address, for what differs after "#" alone is not loaded again
        state_in_address = "#" + urlencode(state) if state else ""
        self.driver.get(f"{(self.folder / name).as_uri()}.html?{self.opened}{state_in_address}")

    def all(self, css: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, css)

    def run(self, script: str, *given: Any) -> Any:
        return self.driver.execute_script(script, *given)

    def tell(self, command: str, **how: Any) -> None:
        self.driver.execute_cdp_cmd(command, how)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.driver.switch_to.active_element.send_keys(key)

    def until(self, true: Callable[[], object]) -> None:
        WebDriverWait(self.driver, 5, 0.02).until(lambda _: true())

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
        """Every address that the browser asked for since the last time."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]  # type: ignore[no-untyped-call]
        return [each["params"]["request"]["url"] for each in messages if each["method"] == "Network.requestWillBeSent"]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("not installed: chromium and chromium-driver, which look at the page")
    folder = tmp_path_factory.mktemp("pages")
    page.write(folder / "page.html", RUNS)
    page.write(folder / "many.html", [many(5000)])
    page.write(folder / "hostile.html", [hostile()])
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for switch in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield Browser(chrome, folder)
    finally:
        chrome.quit()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """On a desk; afterwards nothing may have been asked of a network, and nothing be complained of."""
    chromium.tell("Emulation.setDeviceMetricsOverride", width=1300, height=900, deviceScaleFactor=1, mobile=False)
    chromium.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    assert chromium.complaints is not None
    yield chromium
    assert chromium.complaints == []
    assert {address.split(":")[0] for address in chromium.requested} <= {"file", "about", "data"}


def hostile() -> Run:
    run = swift()
    run["runtime"] = run["version"] = HOSTILE
    run["machine"] = {HOSTILE: HOSTILE}
    run["reasons"] = dict.fromkeys(run["reasons"], HOSTILE)
    for finding in run["findings"]:
        finding["why"] = finding["says"] = HOSTILE
        finding["got"] = {"text": HOSTILE}
    for reproducer in run["reproducers"]:
        reproducer["script"] = reproducer["shown"] = HOSTILE
        reproducer["inputs"] = {HOSTILE: next(iter(reproducer["inputs"].values()))}
        reproducer["attributes"] = {HOSTILE: HOSTILE}
    return run


def expected(wanted: Callable[[Run, Finding], bool]) -> str:
    """What the page says of the findings that are wanted."""
    found = [finding for run in RUNS for finding in run["findings"] if wanted(run, finding)]
    faults = sum(finding["verdict"] in FAULTS for finding in found)
    parts = [f"{faults} fault{'s' * (faults != 1)}"]
    if len(found) > faults:
        parts.append(f"{len(found) - faults} permitted difference{'s' * (len(found) - faults != 1)}")
    return " and ".join(parts) + ", shown by " if found else "No findings."


# --------------------------------------------------------------------------------------- without a browser


def test_the_same_runs_give_the_same_page() -> None:
    assert page.html(RUNS) == page.html([swift(), swifter(), careful()])


def test_the_page_loads_nothing() -> None:
    text = page.html(RUNS)
    assert not re.search(r"""(?:src|href)=(?!"#"|"data:,")|url\(|@import|https?:""", text)
    assert "default-src 'none'" in text


def test_data_ends_no_element() -> None:
    text = page.html([hostile()])
    assert text.count("</script>") == 2
    assert "<img" not in text
    assert "harmed" in text


def test_every_verdict_has_its_own_mark() -> None:
    assert sorted(MARKS) == sorted(VERDICTS)
    assert len(set(MARKS.values())) == len(MARKS)


def test_two_runs_of_one_version_have_two_names() -> None:
    assert names([swift(), careful(), swift()]) == ["swiftmax 2.1.0", "carefulmax 0.9", "swiftmax 2.1.0 (2)"]


def test_the_pages_counts_are_those_of_the_runs() -> None:
    for made, run in zip(data(RUNS)["runs"], RUNS, strict=True):
        counts = [number for types in made["counts"].values() for each in types.values() for number in each.values()]
        assert sum(counts) == len(run["cases"])
        assert sum(len(group["findings"]) for group in made["groups"]) == len(run["findings"])


def test_a_page_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot be written"):
        page.write(tmp_path, RUNS)


def luminance(colour: str) -> float:
    if len(colour) == 4:
        colour = "#" + "".join(2 * letter for letter in colour[1:])
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


PAIRS = [
    *((ink, ground) for ink in ("ink", "soft") for ground in ("card", "ground", "sunk")),
    *((name, f"{name}-ground") for name in ("good", "bad", "worst", "warn", "open", "none")),
    ("ink", "bad-ground"), ("soft", "bad-ground"), ("bad", "card"), ("good", "card"), ("warn", "card"),
    ("mark-ink", "mark"),
]  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_text_can_be_read_on_its_ground(scheme: str, ink: str, ground: str) -> None:
    blocks = re.findall(r":root \{(.*?)\}", (Path(page.__file__).parent / "page.css").read_text(), re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w+);", blocks[scheme == "dark"]))
    dark, light = sorted((luminance(colours[ink]), luminance(colours[ground])))
    assert (light + 0.05) / (dark + 0.05) >= 4.5


# ------------------------------------------------------------------------------------------------ filters


def test_everything_is_shown_at_first(browser: Browser) -> None:
    browser.open()
    assert browser.count.startswith(expected(lambda run, finding: True))
    assert [each.text for each in browser.all("#runs b")] == list(map(of_whom, RUNS))
    assert [each.text for each in browser.all("#standards h3")] == ["ONNX", "SONNX", "SONNX draft", "OpenVINO"]
    assert [each.text for each in browser.all("#findings h3")] == ["Faults", "Permitted differences"]


FILTERED: dict[tuple[str, str], Callable[[Run, Finding], bool]] = {
    ("standard", "SONNX"): lambda run, finding: finding["standard"] == "SONNX",
    ("operator", "ReduceMax"): lambda run, finding: finding["operator"] == "ReduceMax",
    ("type", "int8"): lambda run, finding: finding["type"] == "int8",
    ("verdict", "violates"): lambda run, finding: finding["verdict"] == "violates",
    ("verdict", "permitted"): lambda run, finding: finding["verdict"] == "permitted",
    ("verdict", "faults"): lambda run, finding: finding["verdict"] in FAULTS,
    ("runtime", "swiftmax 2.2.0"): lambda run, finding: run["version"] == "2.2.0",
    ("clause", "ONNX.ReduceMax.axes.range"): lambda run, finding: ".axes.range/" in finding["case"],
}


@pytest.mark.parametrize(("key", "value"), FILTERED)
def test_each_filter_shows_its_own_and_stands_in_the_address(browser: Browser, key: str, value: str) -> None:
    browser.open()
    before = browser.count
    Select(browser.one(f"select[name={key}]")).select_by_value(value)
    wanted = expected(FILTERED[key, value])
    assert browser.count.startswith(wanted)
    assert browser.state == {key: value}
    browser.driver.back()
    browser.until(lambda: browser.count == before)
    assert browser.one(f"select[name={key}]").get_property("value") == ""
    browser.driver.forward()
    browser.until(lambda: browser.count.startswith(wanted))
    browser.open(**{key: value})  # a link that was sent to somebody
    assert browser.count.startswith(wanted)
    browser.one("#clear").click()
    assert browser.count == before


def test_words_values_and_bits_are_searched(browser: Browser) -> None:
    browser.open()
    field = browser.one("input[name=text]")
    field.send_keys("INT32 reducemax 0020000000000001")
    assert browser.count.startswith("6 faults, shown by 2 calls")
    field.clear()
    field.send_keys("computed in Float64")
    assert browser.count.startswith(expected(lambda run, finding: finding["why"] == "computed in float64"))
    assert browser.state == {"text": "computed in Float64"}
    browser.driver.back()
    browser.until(lambda: "text" not in browser.state)  # a word is one step, not one for each letter


def test_filters_meet(browser: Browser) -> None:
    browser.open(standard="ONNX", type="float16", verdict="violates")
    assert browser.count.startswith(
        expected(lambda run, each: (each["standard"], each["type"], each["verdict"]) == ("ONNX", "float16", "violates"))
    )


def test_a_link_may_ask_for_what_is_not_here(browser: Browser) -> None:
    browser.open(type="float1", open="x/y/z", of="%zz")
    assert browser.is_open
    assert "no finding x/y/z of %zz" in browser.one("#detail").text
    browser.press(Keys.ESCAPE)
    browser.until(lambda: "open" not in browser.state)
    assert browser.count == "No findings."
    assert Select(browser.one("select[name=type]")).first_selected_option.text == "float1 (not here)"


def test_a_number_of_a_standard_leads_to_its_findings(browser: Browser) -> None:
    browser.open()
    browser.one("article[aria-label=OpenVINO] button[data-verdict=crashes]").click()
    assert browser.state == {"runtime": "swiftmax 2.1.0", "standard": "OpenVINO", "verdict": "crashes"}
    assert browser.count.startswith("5 faults, shown by 1 call.")


def cell(browser: Browser, run: str, key: str) -> WebElement:
    return browser.one(f'.cell[data-run="{run}"][data-key="{key}"]')


def test_a_cell_shows_its_findings_and_once_more_all(browser: Browser) -> None:
    browser.open()
    button = cell(browser, "swiftmax 2.1.0", "ONNX.ReduceMax.value")
    assert button.text.replace("\n", " ") == "V 9 R 15 ✓ 66"
    assert button.accessible_name == (
        "swiftmax 2.1.0, ONNX ReduceMax value: 9 violate, 15 refuse, 66 conform, of 90 cases"
    )
    button.click()
    own = [
        finding for finding in RUNS[0]["findings"] if ".value/" in finding["case"] and "ReduceMax" in finding["case"]
    ]
    assert browser.count.startswith(f"{len(own)} faults")
    assert browser.focused.get_attribute("id") == "h-findings"
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert browser.count.startswith(expected(lambda run, finding: True))


def test_a_cell_without_findings_says_why(browser: Browser) -> None:
    browser.open()
    cell(browser, "carefulmax 0.9", "ONNX.Max.consumed_inputs").click()
    assert browser.count == "No findings."
    assert browser.one("#findings").text == ("carefulmax 0.9: 2 not applicable.\nNot applicable: takes no attributes")


def test_the_matrix_follows_the_type(browser: Browser) -> None:
    browser.open(type="float16", standard="ONNX", operator="ReduceMax")
    assert {str(button.get_attribute("data-key")).split(".")[1] for button in browser.all(".cell")} == {"ReduceMax"}
    cases = [case for case in RUNS[0]["cases"] if case_name(case).type == "float16"]
    own = [case for case in cases if row(case_name(case).clause) == ("ONNX", "ReduceMax", "value")]
    assert f"of {len(own)} cases" in cell(browser, "swiftmax 2.1.0", "ONNX.ReduceMax.value").accessible_name


def test_reasons_are_listed(browser: Browser) -> None:
    browser.open()
    browser.one("#reasons summary").click()
    assert "takes no more than two inputs" in browser.one("#reasons").text


# -------------------------------------------------------------------------------------------- one finding


def test_a_group_unfolds_and_a_case_opens(browser: Browser) -> None:
    browser.open(clause="SONNX.Max.value", runtime="swiftmax 2.1.0")
    group = browser.one(".finding")
    assert "float16, 3 cases" in group.text
    assert "0.0 (00000000) → -0.0 (80000000)" in group.text
    group.click()
    assert group.get_attribute("aria-expanded") == "true"
    assert len(browser.all(".case")) == 3
    browser.all(".case")[0].click()
    assert browser.is_open
    assert browser.state["open"] == ZERO
    browser.driver.back()
    browser.until(lambda: not browser.is_open)
    group.click()
    assert not browser.all(".case")[0].is_displayed()


def test_the_detail_says_everything(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    text = browser.one("#detail").text
    for part in (
        "V violates", "in every lane of lengths 1 to 8", "swiftmax 2.1.0 · SONNX Max · float16",
        "-0 where +0 is larger",
        "Inf > positive > 0 > -0 > negative > -Inf", "SONNX.Max.value · sonnx_max.md",
        "1 of 16 bits differs: the sign.",
        "1 of 32 bits differs: the sign.", "import swiftmax", "It was run, and showed this.", ZERO,
    ):  # fmt: skip
        assert part in text
    browser.one("#detail details summary").click()
    assert "[0.0] 00000000" in browser.one("#detail").text


def test_bits_stand_side_by_side_and_those_that_differ_are_marked(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    view = browser.all("#detail .bits")[1]
    fields = view.find_elements(By.CSS_SELECTOR, ".field")
    assert [field.get_attribute("data-field") for field in fields] == ["sign", "exponent", "mantissa"]
    lengths = [len(field.find_element(By.CSS_SELECTOR, ".blocks").text.replace("\n", "")) for field in fields]
    assert lengths == [2, 16, 46]
    assert [mark.text for mark in view.find_elements(By.CSS_SELECTOR, "mark")] == ["0", "1"]
    assert [mark.text for mark in browser.all("#detail .side .hex mark")] == ["0", "8", "0", "8"]


def test_of_an_array_the_elements_that_differ_are_marked(browser: Browser) -> None:
    browser.open(open=ARRAY, of="swiftmax 2.1.0")
    first = browser.all("#detail .elements")[0]
    different = first.find_elements(By.CSS_SELECTOR, ".different th")
    assert [each.text for each in different] == ["[1, 2]", "[2, 0]"]
    text = browser.one("#detail").text
    assert "Call number 1 of the case, the first difference at [1, 2]." in text
    assert "float32[3, 4], at [1, 2]" in text
    assert "6 of 32 bits differ: 6 in the exponent." in text
    assert "It was run, and did not show this again." in text
    assert "keepdims=1" in text


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("ONNX.ReduceMax-13.empty/int8", "The shape is [1, 1]; wanted [1]."),
        ("ONNX.ReduceMax-18.axes.range/int8", "an error: axes lie in -r..r-1"),
        ("OpenVINO.SegmentMax-16.ids/int8", "ended by SIGSEGV"),
        ("OpenVINO.SegmentMax-16.num_segments.no_ids/int8", "float32[0], empty"),
        ("ONNX.Max-13.nan/float16", "No fault: the standard leaves it open."),
        ("ONNX.Max-13.nan/float16", "the source leaves it open, maxops decided"),
    ],
)
def test_results_of_every_kind_are_shown(browser: Browser, case: str, words: str) -> None:
    browser.open(open=f"{case}/in-every-lane-of-lengths-1-to-8", of="swiftmax 2.1.0")
    assert words in browser.one("#detail").text


def test_the_script_is_copied(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    browser.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.one(".copy").click()
    browser.until(lambda: browser.one(".script [role=status]").text == "Copied")
    pasted = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    assert pasted == RUNS[0]["reproducers"][0]["script"]


def test_without_a_clipboard_the_script_is_selected(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    browser.run("navigator.clipboard.writeText = () => Promise.reject(new Error()); document.execCommand = () => false")
    browser.one(".copy").click()
    browser.until(lambda: browser.one(".script [role=status]").text == "Selected: press Ctrl+C")
    assert browser.run("return String(getSelection())").strip() == RUNS[0]["reproducers"][0]["script"].strip()


# --------------------------------------------------------------------------------------------------- keys


def test_keys_alone_lead_from_the_top_to_the_bits_and_back(browser: Browser) -> None:
    browser.open()
    browser.press(Keys.TAB)
    assert browser.focused.text == "Skip to the findings"
    browser.press(Keys.ENTER)
    assert browser.focused.get_attribute("id") == "h-findings"
    browser.press("/")
    browser.press(*"computed")
    assert browser.state == {"text": "computed"}
    browser.press(Keys.TAB, Keys.TAB)  # over Clear
    assert "ONNX.ReduceMax-13.value" in browser.focused.text
    browser.press(Keys.ENTER, "j", "j", "k")
    first = browser.focused
    assert first.get_attribute("class") == "finding case"
    browser.press(Keys.ENTER)
    assert browser.is_open
    opened = browser.state["open"]
    browser.press("j")
    assert browser.state["open"] != opened
    browser.press("k", "k")
    assert browser.state["open"] == opened
    browser.press(Keys.ESCAPE)
    browser.until(lambda: browser.state == {"text": "computed"})
    assert not browser.is_open
    assert browser.focused == first


def test_arrow_keys_walk_the_matrix_which_is_one_stop_for_tab(browser: Browser) -> None:
    browser.open()
    assert len(browser.all(".cell[tabindex='0']")) == 1
    browser.run("arguments[0].focus()", browser.one(".cell[tabindex='0']"))
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    assert browser.focused.accessible_name.startswith("swiftmax 2.2.0, ONNX Max value: 3 violate")
    assert len(browser.all(".cell[tabindex='0']")) == 1
    browser.press(Keys.SPACE)
    assert browser.count == "3 faults, shown by 1 call."
    assert browser.run("return document.activeElement.id") == "h-findings"


def test_tab_stays_in_the_open_finding(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    for _ in range(12):
        browser.press(Keys.TAB)
        inside = "return document.activeElement === document.body || !!document.activeElement.closest('dialog')"
        assert browser.run(inside)


def test_what_can_be_pressed_has_a_name(browser: Browser) -> None:
    for state in ({}, {"open": ZERO, "of": "swiftmax 2.1.0"}):
        browser.open(**state)
        nameless = browser.run(
            "return [...document.querySelectorAll('button, select, input, a')].filter((each) => !(each.ariaLabel"
            " || each.textContent.trim() && each.tagName !== 'SELECT' || each.labels?.[0]?.textContent.trim()))"
            ".map((each) => each.outerHTML)"
        )
        assert nameless == []


# ------------------------------------------------------------------------------- phones, themes, and harm


@pytest.mark.parametrize("width", [320, 375, 768])
@pytest.mark.parametrize("case", ["", ZERO, ARRAY, "ONNX.ReduceMax-13.value/int32/in-the-last-of-130"])
def test_a_page_never_scrolls_sideways(browser: Browser, width: int, case: str) -> None:
    browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=2, mobile=True)
    browser.open(**({"open": case, "of": "swiftmax 2.1.0"} if case else {}))
    assert browser.run("return innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("const box = document.getElementById('detail'); return box.scrollWidth - box.clientWidth") <= 0
    if width < 400:
        assert browser.run("const box = document.querySelector('.grid'); return box.scrollWidth > box.clientWidth")


def test_a_dark_theme_is_followed(browser: Browser) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        browser.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open()
        grounds.append(browser.one("body").value_of_css_property("background-color"))
    assert grounds == ["rgba(245, 246, 248, 1)", "rgba(14, 17, 22, 1)"]


def test_without_scripts_there_are_the_numbers(browser: Browser) -> None:
    browser.tell("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open()
        text = browser.one("noscript").text
    finally:
        browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    assert "swiftmax 2.1.0 SONNX 70 53 conform, 3 violate, 14 not applicable" in text


def test_hostile_words_stay_words(browser: Browser) -> None:
    browser.open("hostile")
    for verdict in ("crashes", "permitted"):
        Select(browser.one("select[name=verdict]")).select_by_value(verdict)
        browser.one(".finding").click()
        browser.one(".case").click()
        assert "<img src=x onerror=" in browser.run(
            "return document.getElementById('detail').textContent.slice(0, 500)"
        )
        assert browser.all("img") == []
        assert browser.run("return [...document.querySelectorAll('b')].filter((b) => b.textContent === 'bold')") == []
        browser.press(Keys.ESCAPE)
        browser.until(lambda: not browser.is_open and "open" not in browser.state)
    assert browser.driver.title != "harmed"


def test_what_stands_in_no_script_of_the_page_is_not_run(browser: Browser) -> None:
    """The page's policy holds even if a mistake let markup in."""
    browser.open()
    browser.run("document.body.insertAdjacentHTML('beforeend', arguments[0])", HOSTILE.replace("\ud800", ""))
    browser.until(lambda: browser.all("img"))
    browser.until(lambda: browser.run("return performance.now()"))
    complaints = browser.complaints
    assert complaints
    assert all("Content Security Policy" in each["message"] for each in complaints)
    assert browser.driver.title != "harmed"


def test_thousands_of_findings_stay_quick(browser: Browser) -> None:
    browser.open("many")
    assert browser.count == "5,000 faults, shown by 5,000 calls."
    assert len(browser.all(".finding")) == 50
    browser.one("#findings > .more").click()
    assert len(browser.all(".finding")) == 100
    browser.run("arguments[0].focus()", browser.all(".finding")[99])
    browser.press("j")
    assert len(browser.all(".finding")) == 150
    took = browser.run("const before = performance.now(); arguments[0].value = 'number-4999';"
                       "arguments[0].dispatchEvent(new Event('input')); return performance.now() - before",
                       browser.one("input[name=text]"))  # fmt: skip
    assert browser.count == "1 fault, shown by 1 call."
    assert took < 1000


def test_a_clause_is_named_as_the_spec_table_names_it() -> None:
    for key, clause in data(RUNS)["clauses"].items():
        assert clause_name(key).standard == clause["standard"]
        assert clause["says"]
        assert clause["source"]
