"""The contents of the page, without a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from helpers.conformance_runs import careful, hostile, swift, swifter
from maxops.conformance import page
from maxops.conformance.ids import clause_name
from maxops.conformance.page.data import data, names
from maxops.conformance.result import VERDICTS
from maxops.conformance.wording import WORDS
from maxops.errors import OutputError

RUNS = [swift(), swifter(), careful()]


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
    assert len({said.mark for said in WORDS.values()}) == len(VERDICTS)


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


def test_a_clause_is_named_as_the_spec_table_names_it() -> None:
    for key, clause in data(RUNS)["clauses"].items():
        assert clause_name(key).standard == clause["standard"]
        assert clause["statement"]
        assert clause["source"]
