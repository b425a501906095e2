"""The page in a browser: a finding with its bits, keyboard use, phones, and hostile names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from helpers.conformance_runs import HOSTILE, swift, with_a_larger_call

pytest.importorskip("selenium")
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from helpers.conformance_browser import Browser

pytest_plugins = ["helpers.conformance_browser"]

RUN = swift()
ZERO = "SONNX.Max.value/float16/in-every-lane-of-lengths-1-to-8"
ARRAY = "ONNX.ReduceMax-18.value/float16/in-the-last-of-130"


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
        "Inf > positive > 0 > -0 > negative > -Inf", "SONNX.Max.value · SONNX Max",
        "1 of 16 bits differs: the sign.",
        "1 of 32 bits differs: the sign.", "import swiftmax", "This script reproduced the finding.", ZERO,
    ):  # fmt: skip
        assert part in text
    browser.one("#detail details summary").click()
    assert "[0.0] 00000000" in browser.one("#detail").text


def test_bits_stand_side_by_side_and_those_that_differ_are_marked(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    view = browser.all("#detail .bits")[1]
    fields = view.find_elements("css selector", ".field")
    assert [field.get_attribute("data-field") for field in fields] == ["sign", "exponent", "mantissa"]
    lengths = [len(field.find_element("css selector", ".blocks").text.replace("\n", "")) for field in fields]
    assert lengths == [2, 16, 46]
    assert [mark.text for mark in view.find_elements("css selector", "mark")] == ["0", "1"]
    assert [mark.text for mark in browser.all("#detail .side .hex mark")] == ["0", "8", "0", "8"]


def test_of_an_array_the_elements_that_differ_are_marked(browser: Browser) -> None:
    browser.open(open=ARRAY, of="swiftmax 2.1.0")
    first = browser.all("#detail .elements")[0]
    different = first.find_elements("css selector", ".different th")
    assert [each.text for each in different] == ["[1, 2]", "[2, 0]"]
    text = browser.one("#detail").text
    assert "Call number 1 of the case, the first difference at [1, 2]." in text
    assert "float32[3, 4], at [1, 2]" in text
    assert "6 of 32 bits differ: 6 in the exponent." in text
    assert "This script did not reproduce the finding." in text
    assert "keepdims=1" in text


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("ONNX.ReduceMax-13.empty/int8", "Expected shape [1], got [1, 1]."),
        ("ONNX.ReduceMax-18.axes.range/int8", "an error: axes lie in -r..r-1"),
        ("OpenVINO.SegmentMax-16.ids/int8", "ended by SIGSEGV"),
        ("OpenVINO.SegmentMax-16.num_segments.no_ids/int8", "float32[0], empty"),
        ("ONNX.Max-13.nan/float16", "Not a fault: the standard permits it."),
        ("ONNX.Max-13.nan/float16", "decided by maxops, because the specification leaves the question open"),
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
    assert pasted == RUN["reproducers"][0]["script"]


def test_without_a_clipboard_the_script_is_selected(browser: Browser) -> None:
    browser.open(open=ZERO, of="swiftmax 2.1.0")
    browser.run("navigator.clipboard.writeText = () => Promise.reject(new Error()); document.execCommand = () => false")
    browser.one(".copy").click()
    browser.until(lambda: browser.one(".script [role=status]").text == "Selected: press Ctrl+C")
    assert browser.run("return String(getSelection())").strip() == RUN["reproducers"][0]["script"].strip()


def test_of_an_abridged_run_a_call_without_its_script_says_how_to_make_it(browser: Browser) -> None:
    case = with_a_larger_call()[1]
    browser.open("abridged", open=case, of="swiftmax 2.1.0")
    assert f"maxops conform RUNTIME --only {case}" in browser.one("#detail").text
    assert browser.all("#detail .script") == []
    browser.open("abridged", open=ZERO, of="swiftmax 2.1.0")
    assert "maxops conform RUNTIME --only" not in browser.one("#detail .script").text
    assert "import swiftmax" in browser.one("#detail").text


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
    browser.press(Keys.TAB, Keys.TAB)  # past the button Clear
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


@pytest.mark.parametrize("width", [320, 375])
@pytest.mark.parametrize("case", ["", ARRAY, "ONNX.ReduceMax-13.value/int32/in-the-last-of-130"])
def test_a_page_never_scrolls_sideways(browser: Browser, width: int, case: str) -> None:
    browser.tell("Emulation.setDeviceMetricsOverride", width=width, height=700, deviceScaleFactor=2, mobile=True)
    browser.open(**({"open": case, "of": "swiftmax 2.1.0"} if case else {}))
    assert browser.run("return innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("const box = document.getElementById('detail'); return box.scrollWidth - box.clientWidth") <= 0
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
        text, headings = browser.one("noscript").text, [each.text for each in browser.all("h2")]
    finally:
        browser.tell("Emulation.setScriptExecutionDisabled", value=False)
    assert set(headings) == {""}  # no heading without content
    assert "swiftmax 2.1.0 SONNX 80 61 conform, 3 violate, 16 not applicable" in text


def test_hostile_words_stay_words(browser: Browser) -> None:
    browser.open("hostile")
    for verdict in ("crashes", "permitted"):
        browser.choose("verdict", verdict)
        browser.one(".finding").click()
        browser.one(".case").click()
        assert browser.run("return document.getElementById('detail').textContent.includes('<img src=x onerror=')")
        assert browser.all("img") == []
        assert browser.run("return [...document.querySelectorAll('b')].filter((b) => b.textContent === 'bold')") == []
        browser.press(Keys.ESCAPE)
        browser.until(lambda: not browser.is_open and "open" not in browser.state)
    assert browser.driver.title != "harmed"


def test_what_stands_in_no_script_of_the_page_is_not_run(browser: Browser) -> None:
    """Test that the page's policy blocks scripts even if an error in the page inserts markup."""
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
