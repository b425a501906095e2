"""The ledger of known findings: its pages, and a sample of its cases on the installed runtimes."""

from __future__ import annotations

import doctest
import importlib.metadata
import re
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ledger
import maxops as mo
from helpers.all_cases import ALL
from helpers.conformance_runs import careful, found, hostile, swift, swifter, with_a_larger_call
from maxops.conformance import junit, matrix, saved, session
from maxops.conformance.kinds import kinds
from maxops.conformance.result import Finding, Run, elements
from maxops.errors import RunFileError
from maxops.machine import machine

KNOWN = Path(__file__).resolve().parents[2] / "conformance" / "known"
ASKED = [path.stem for path in sorted(KNOWN.glob("*.json")) if path.name.startswith(("onnxruntime-", "openvino-"))]
# The number of cases per verdict; cases that crash processes take a second each.
FEW = dict.fromkeys(("violates", "missing error", "refuses", "permitted", "conforms"), 1)
MANY = {"violates": 3, "missing error": 1, "refuses": 2, "permitted": 1, "conforms": 3, "crashes": 1}


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return ledger.read(KNOWN)


@pytest.fixture(scope="module")
def pages(runs: list[Run]) -> dict[str, str]:
    return ledger.pages(runs)


def sample(run: Run, counts: dict[str, int]) -> list[str]:
    """Return cases of the run: kinds in turn for each verdict, and conforming cases from the whole run."""
    chosen: list[str] = []
    for verdict, count in counts.items():
        if verdict == "conforms":
            found = [
                case for case, given in run["cases"].items() if given == verdict and not goes_by_the_processor(case)
            ]
            chosen += found[:: max(1, len(found) // count)][:count]
            continue
        columns = [
            [
                finding["case"]
                for finding in kind.findings
                if is_certain(run, finding) and not goes_by_the_processor(finding["case"])
            ]
            for kind in kinds(run)
            if kind.verdict == verdict
        ]
        in_turn = [case for case in chain.from_iterable(zip_longest(*columns)) if case]
        chosen += in_turn[:count]
    return chosen


def goes_by_the_processor(case: str) -> bool:
    """Return whether a case uses 16-bit floats, for which some processors have their own instructions."""
    return case.split("/")[1] in ("float16", "bfloat16")


def is_certain(run: Run, finding: Finding) -> bool:
    """Return whether a finding is reproducible on its own: by its script, and independently of other cases."""
    number = finding["reproducer"]
    if number is None or not run["reproducers"][number]["reproduced"]:
        return False
    return finding["verdict"] != "permitted" or "text" not in finding["actual"]


def test_the_ledger_has_the_runtimes_that_the_tests_have() -> None:
    assert {name.partition("-")[0] for name in ASKED} == {"onnxruntime", "openvino"}


@pytest.mark.parametrize("counts", [FEW, pytest.param(MANY, marks=pytest.mark.exhaustive)], ids=["few", "many"])
@pytest.mark.parametrize("name", ASKED)
def test_a_sample_is_judged_as_the_ledger_has_it(name: str, counts: dict[str, int]) -> None:
    (known,) = saved.read(KNOWN / f"{name}.json")
    pytest.importorskip(known["runtime"])
    here = importlib.metadata.version(known["runtime"])
    if here != known["version"]:
        pytest.skip(f"not installed: {known['runtime']} {known['version']}, which the ledger has; here is {here}")
    expected = sample(known, counts)
    chosen = [case for case in ALL if case.id in set(expected)]
    assert len(chosen) == len(expected) >= sum(counts.values()) - 1, (
        "the ledger has cases that there are no more: make it again"
    )
    run = session.conform(known["runtime"], chosen, kit={"quick": False, "only": expected})
    # which lanes are wrong, and their values, may depend on the instruction set
    with_bits = machine(mo.get_num_threads())["isa"] == known["machine"]["isa"]
    assert different(run, known, with_bits=with_bits) == []


def different(run: Run, known: Run, *, with_bits: bool) -> list[str]:
    """Return the cases whose verdict, clause or, if reproducible, bits differ between two runs."""
    before, now = ({finding["case"]: finding for finding in each["findings"]} for each in (known, run))
    others = [case for case, verdict in run["cases"].items() if known["cases"].get(case) != verdict]
    for case in now.keys() & before.keys() - set(others):
        new, old = now[case], before[case]
        if old["verdict"] == "refuses":  # all cases of the type together determine the clause
            continue
        are_bits = with_bits and new["verdict"] == "violates"
        if new["clause"] != old["clause"] or (
            are_bits and (new["expected"], new["actual"]) != (old["expected"], old["actual"])
        ):
            others.append(case)
    return others


def test_what_is_different_is_found() -> None:
    case = next(finding["case"] for finding in swift()["findings"] if finding["verdict"] == "violates")
    edits: list[tuple[bool, Any]] = [
        (False, {"clause": "ONNX.Max-1.T"}),
        (True, {"actual": elements(np.ones(1, "int8"))}),
    ]
    assert different(swift(), swift(), with_bits=True) == []
    for with_bits, edit in edits:
        run = swift()
        found(run, case).update(edit)
        assert different(run, swift(), with_bits=with_bits) == [case]
    run = swift()
    run["cases"][case] = "crashes"
    assert different(run, swift(), with_bits=False) == [case]


# ------------------------------------------------------------------------------------------------------ files


def test_files_have_the_names_of_their_runs(tmp_path: Path) -> None:
    for run in (swift(), careful()):
        saved.write(tmp_path / ledger.file_name(run), [run])
    assert ledger.read(tmp_path) == [careful(), swift()]
    saved.write(tmp_path / "other-1.json", [swift()])
    with pytest.raises(
        RunFileError, match=r"contains a run of swiftmax 2\.1\.0; rename the file to swiftmax-2\.1\.0\.json"
    ):
        ledger.read(tmp_path)
    saved.write(tmp_path / "other-1.json", [swift(), careful()])
    with pytest.raises(RunFileError, match="contains 2 runs; expected one run in each file"):
        ledger.read(tmp_path)


def test_a_run_is_abridged_to_the_calls_that_the_page_shows(tmp_path: Path) -> None:
    run, case = with_a_larger_call()
    kept = ledger.abridged(run)
    assert kept["cases"] == run["cases"]
    assert kept["findings"] == run["findings"]
    number = found(run, case)["reproducer"]
    assert number is not None
    assert [each for each in kept["reproducers"] if not each["script"]] == [kept["reproducers"][number]]
    assert kept["reproducers"][:number] == run["reproducers"][:number]
    whole, part = run["reproducers"][number], kept["reproducers"][number]
    assert part == {**whole, "inputs": {}, "script": "", "output": ""}
    assert ledger.pages([kept]) == ledger.pages([run])
    assert matrix.findings(kept) == matrix.findings(run)
    assert ledger.abridged(kept) == kept
    saved.write(tmp_path / "run.json", [kept])
    assert saved.read(tmp_path / "run.json") == [kept]


def test_reports_of_an_abridged_run_speak_of_no_script_that_is_not_there(tmp_path: Path) -> None:
    run, case = with_a_larger_call()
    for each, count in ((run, 1), (ledger.abridged(run), 0)):
        junit.write(tmp_path / "run.xml", [each])
        text = (tmp_path / "run.xml").read_text()
        (test,) = re.findall(f'<testcase name="{re.escape(case)}".*?</testcase>', text, re.DOTALL)
        assert "computed in float64" in test
        assert test.count("this script") == count


# ------------------------------------------------------------------------------------------------------- page


def test_the_page_tells_every_finding_with_its_verdict() -> None:
    run = swift()
    pages = ledger.pages([run, careful()])
    assert list(pages) == ["findings.md", "findings/swiftmax.md", "findings/carefulmax.md"]
    for name in ("swiftmax 2.1.0", "carefulmax 0.9"):
        assert f"| [{name}](findings/{name.split()[0]}.md) |" in pages["findings.md"]
    own = pages["findings/swiftmax.md"].replace("\\_", "_")
    assert own.index("## swiftmax 2.1.0") > 0
    wrong = [kind for kind in kinds(run) if kind.verdict not in ("refuses", "permitted")]
    for cause in ledger.causes(wrong):
        section = own[own.index(f"#### {cause.title}\n") :].split("\n#### ")[0]
        for kind in cause.kinds:
            assert f"| `{kind.smallest.clause}` |" in section
    for title in ("### Faults", "### Refusals", "<summary>Permitted differences from maxops"):
        assert own.count(title) == 1
    contents = re.findall(r"^\| \[.*\) \| (\d+) \|", own, re.MULTILINE)
    assert sum(map(int, contents)) == sum(len(kind.findings) for kind in wrong)
    titles = [int(number) for number in re.findall(r"from maxops: (\d+) cases?<", own)]
    refused = own[own.index("### Refusals") :].split("<details")[0]
    refusals = [int(number) for number in re.findall(r"\| (\d+) \| `[^|]*` \|$", refused, re.MULTILINE)]
    assert sum(map(int, contents)) + sum(titles) + sum(refusals) == len(run["findings"])


def test_the_contents_of_a_page_lead_to_its_sections(pages: dict[str, str]) -> None:
    for name, page in (pages | ledger.pages([swifter(), swift()])).items():
        titles = re.findall(r"^#### (.*)$", page, re.MULTILINE)
        assert len(titles) == len(set(titles)), name
        anchors = [re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles]
        assert re.findall(r"^\| \[.*\]\(#(.*?)\) \|", page, re.MULTILINE) == anchors, name


def test_the_overview_links_to_the_gravest_fault_of_each_runtime(runs: list[Run], pages: dict[str, str]) -> None:
    others = [swifter(), swift()]
    for listed, shown in ((runs, pages), (others, ledger.pages(others))):
        overview = shown["findings.md"].split("\n- ")[0]
        links = re.findall(r"^\| (\S+) .* \| (?:\[.*\]\((.*)\)|none) \| .*\|$", overview, re.MULTILINE)
        assert [runtime for runtime, _ in links] == [run["runtime"].replace("_", "\\_") for run in listed]
        for page, anchor in (link.split("#") for _, link in links if link):
            assert re.search(rf"\]\(#{re.escape(anchor)}\)", shown[page]), anchor


def test_the_page_shows_a_script_of_each_cause_once_and_what_it_printed() -> None:
    page = ledger.pages([swift()])["findings/swiftmax.md"]
    wrong = [kind for kind in kinds(swift()) if kind.verdict not in ("refuses", "permitted")]
    assert page.count("```python\n") == sum(cause.shown is not None for cause in ledger.causes(wrong))
    bodies = [block.split("```")[0] for block in page.split("```python\n")[1:]]
    codes = ["\n".join(line for line in body.splitlines() if not line.startswith("#")) for body in bodies]
    assert len(set(codes)) == len(codes) > 0
    assert page.count("<summary>Script: ") == len(codes) == page.count("```text\n")
    assert page.count("<details ") == page.count("</details>")


def test_no_page_spells_out_what_nobody_reads(pages: dict[str, str]) -> None:
    lengths = {name: max(map(len, text.splitlines())) for name, text in pages.items()}
    assert {name: length for name, length in lengths.items() if length > 230} == {}


def test_a_runtime_without_findings_is_said_to_conform() -> None:
    run = careful()
    run["cases"] = {case: "conforms" for case, verdict in run["cases"].items() if verdict == "conforms"}
    run["findings"], run["reasons"] = [], {}
    assert "All applicable cases conform." in ledger.pages([run])["findings/carefulmax.md"]


def test_foreign_words_stay_in_their_cells() -> None:
    run = hostile()
    words = "one | two `three`"
    for finding in run["findings"]:
        finding["actual"] = {"text": words}
    for reproducer in run["reproducers"]:
        reproducer["actual"] = {"text": words}
        reproducer["script"] = "print('```')"
    page = ledger.pages([run])[ledger.page_name(run["runtime"])]
    outside = "".join(part for number, part in enumerate(page.split("````")) if number % 2 == 0)
    assert "<img" not in outside.replace("\\<", "")
    assert "`one \\| two 'three'`" in outside


def test_the_examples_of_the_ledger() -> None:
    assert doctest.testmod(ledger).failed == 0
