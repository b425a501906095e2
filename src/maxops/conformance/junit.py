"""Runs as JUnit XML, which CI systems show: a suite for each runtime, a test for each case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from maxops.conformance.named import case_name, clause_name
from maxops.conformance.result import FAULTS, Finding, Run
from maxops.conformance.wording import of_whom, told
from maxops.whole_files import errors_of, written_whole

# What XML 1.0 cannot hold, and a runtime's words may
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(runs: Sequence[Run]) -> JUnitXml:
    """Faults fail, with what was wanted, what came and the script; a permitted difference passes, and is told."""
    document = JUnitXml("maxops conform")
    suites = [_suite(run) for run in runs]
    for suite in suites:
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    for suite, run in zip(suites, runs, strict=True):
        suite.time = run["seconds"]  # no case has one of its own, of which the statistics could be the sum
    document.time = sum(run["seconds"] for run in runs)
    return document


def write(path: Path, runs: Sequence[Run]) -> None:
    """Write the XML."""
    document = junit(runs)
    with written_whole() as beside, errors_of(path):
        document.write(str(beside(path)), pretty=True)


def _suite(run: Run) -> TestSuite:
    suite = TestSuite(_written(of_whom(run)))
    for name, value in {"kit": run["kit"], "machine": run["machine"]}.items():
        for key, detail in value.items():
            suite.add_property(_written(f"{name}.{key}"), _written(str(detail)))
    findings = {finding["case"]: finding for finding in run["findings"]}
    suite.add_testcases([_test(run, case, findings) for case in run["cases"]])
    return suite


def _test(run: Run, case: str, findings: dict[str, Finding]) -> TestCase:
    name = clause_name(case_name(case).clause)
    version = "" if name.version is None else f"-{name.version}"
    test = TestCase(_written(case), f"{name.standard}.{name.operator}{version}")
    verdict = run["cases"][case]
    if verdict == "not applicable":
        test.result = Skipped(_written(run["reasons"].get(case, verdict)))
    elif verdict in FAULTS:
        failure = Failure(_written(_headline(findings[case])), verdict)
        failure.text = _written(_details(run, findings[case]))
        test.result = failure
    elif verdict == "permitted":
        test.system_out = _written(f"{_headline(findings[case])}\n{_details(run, findings[case])}")
    return test


def _headline(finding: Finding) -> str:
    return f"{finding['verdict']} {finding['clause']}: {finding['says']}"


def _details(run: Run, finding: Finding) -> str:
    lines = [finding["why"], f"wanted: {told(finding['wanted'])}", f"got:    {told(finding['got'])}"]
    if finding["reproducer"] is not None:
        reproducer = run["reproducers"][finding["reproducer"]]
        shown = "the script below shows it" if reproducer["checked"] else "the script below did not show it again"
        if reproducer["script"]:
            lines += ["", f"{shown}:", "", reproducer["script"]]
    return "\n".join(lines)


def _written(text: str) -> str:
    return _FORBIDDEN.sub(lambda letter: letter[0].encode("unicode_escape").decode(), text)
