"""The page in a browser: filters, the matrix, and the address that holds their state."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from helpers.conformance_runs import careful, swift, swifter
from maxops.conformance.ids import ClauseName, case_name, clause_name, row
from maxops.conformance.result import FAULTS, Finding, Run
from maxops.conformance.wording import runtime_label

pytest.importorskip("selenium")
from selenium.webdriver.common.keys import Keys

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

    from helpers.conformance_browser import Browser

pytest_plugins = ["helpers.conformance_browser"]

RUNS = [swift(), swifter(), careful()]


def expected(is_shown: Callable[[Run, Finding], bool]) -> str:
    """Return the counts that the page must show for the expected findings."""
    found = [finding for run in RUNS for finding in run["findings"] if is_shown(run, finding)]
    faults = sum(finding["verdict"] in FAULTS for finding in found)
    parts = [f"{faults} fault{'s' * (faults != 1)}"]
    if len(found) > faults:
        parts.append(f"{len(found) - faults} permitted difference{'s' * (len(found) - faults != 1)}")
    return " and ".join(parts) + ", shown by " if found else "No findings."


def test_everything_is_shown_at_first(browser: Browser) -> None:
    browser.open()
    assert browser.count.startswith(expected(lambda run, finding: True))
    assert [each.text for each in browser.all("#runs b")] == list(map(runtime_label, RUNS))
    assert browser.one("#runs li").text.split("\n") == [
        "swiftmax 2.1.0",
        f"{len(RUNS[0]['cases'])} cases, quick, only ONNX",
    ]
    assert [each.text for each in browser.all("#standards h3")] == ["ONNX", "SONNX", "SONNX draft", "OpenVINO"]
    assert [each.text for each in browser.all("#findings h3")] == ["Faults", "Permitted differences"]


def clause_of(finding: Finding) -> ClauseName:
    return clause_name(case_name(finding["case"]).clause)


FILTERED: dict[tuple[str, str], Callable[[Run, Finding], bool]] = {
    ("standard", "SONNX"): lambda run, finding: clause_of(finding).standard == "SONNX",
    ("operator", "ReduceMax"): lambda run, finding: clause_of(finding).operator == "ReduceMax",
    ("type", "int8"): lambda run, finding: case_name(finding["case"]).type == "int8",
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
    browser.choose(key, value)
    count = expected(FILTERED[key, value])
    assert browser.count.startswith(count)
    assert browser.state == {key: value}
    browser.driver.back()
    browser.until(lambda: browser.count == before)
    assert browser.one(f"select[name={key}]").get_property("value") == ""
    browser.driver.forward()
    browser.until(lambda: browser.count.startswith(count))
    browser.open(**{key: value})  # a link from another person
    assert browser.count.startswith(count)
    browser.one("#clear").click()
    assert browser.count == before


def test_words_values_and_bits_are_searched(browser: Browser) -> None:
    browser.open()
    field = browser.one("input[name=text]")
    field.send_keys("INT32 reducemax 0020000000000001")
    assert browser.count.startswith("6 faults, shown by 2 calls")
    field.clear()
    field.send_keys("computed in Float64")
    assert browser.count.startswith(expected(lambda run, finding: finding["message"] == "computed in float64"))
    assert browser.state == {"text": "computed in Float64"}
    browser.driver.back()
    browser.until(lambda: "text" not in browser.state)  # a word adds one step to the history, not one per letter


def test_filters_meet(browser: Browser) -> None:
    browser.open(standard="ONNX", type="float16", verdict="violates")
    assert browser.count.startswith(
        expected(
            lambda run, each: (
                (clause_of(each).standard, case_name(each["case"]).type, each["verdict"])
                == ("ONNX", "float16", "violates")
            )
        )
    )


def test_a_link_may_ask_for_what_is_not_here(browser: Browser) -> None:
    browser.open(type="float1", open="x/y/z", of="%zz")
    assert browser.is_open
    assert "no finding x/y/z of %zz" in browser.one("#detail").text
    browser.press(Keys.ESCAPE)
    browser.until(lambda: "open" not in browser.state)
    assert browser.count == "No findings."
    chosen = browser.run("return document.querySelector('select[name=type]').selectedOptions[0].text")
    assert chosen == "float1 (not on this page)"


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
