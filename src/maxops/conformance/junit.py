"""Writes runs as JUnit XML, which CI systems show: a suite for each runtime, and a test for each case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path

from maxops.extras import needed

with needed("maxops.conformance.junit", "onnx"):
    from junitparser import Failure, JUnitXml, Skipped, TestCase, TestSuite

from maxops.atomic_files import write_text
from maxops.conformance import bounds
from maxops.conformance.ids import case_name, clause_name
from maxops.conformance.result import FAULTS, OPEN, Finding, Run
from maxops.conformance.wording import one_line, runtime_label

# Characters that XML 1.0 forbids; a runtime's messages may contain them
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(runs: Sequence[Run]) -> JUnitXml:
    """Return runs as XML. Faults are failures with both results and the script, and permitted differences pass."""
    document = JUnitXml("maxops conform")
    suites = [_suite(run) for run in runs]
    for suite in suites:
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    for suite, run in zip(suites, runs, strict=True):
        suite.time = run["seconds"]  # cases are not timed individually, so their times cannot be added
    document.time = sum(run["seconds"] for run in runs)
    return document


def write(path: Path, runs: Sequence[Run]) -> None:
    """Write runs as XML."""
    write_text(path, as_text(runs))


def as_text(runs: Sequence[Run]) -> str:
    """Return runs as indented XML."""
    file = BytesIO()
    junit(runs).write(file, pretty=True)
    return file.getvalue().decode()


def _suite(run: Run) -> TestSuite:
    suite = TestSuite(_written(runtime_label(run)))
    for sentence in bounds.sentences(run):
        operator, _, said = sentence.partition(": ")
        suite.add_property(_written(f"bounds.{operator}"), _written(said))
    kit = {key: value for key, value in run["kit"].items() if key != "bounds"}
    for name, value in {"kit": kit, "machine": run["machine"]}.items():
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
        failure = Failure(_written(_headline(run, findings[case])), verdict)
        failure.text = _written(_details(run, findings[case]))
        test.result = failure
    elif verdict in OPEN:
        test.system_out = _written(f"{_headline(run, findings[case])}\n{_details(run, findings[case])}")
    return test


def _headline(run: Run, finding: Finding) -> str:
    return f"{finding['verdict']} {finding['clause']}: {run['clauses'][finding['clause']]}"


def _details(run: Run, finding: Finding) -> str:
    lines = [
        finding["message"],
        f"expected: {one_line(finding['expected'])}",
        f"actual:   {one_line(finding['actual'])}",
    ]
    if finding["reproducer"] is not None:
        reproducer = run["reproducers"][finding["reproducer"]]
        shown = "this script reproduces it" if reproducer["reproduced"] else "this script did not reproduce it"
        if reproducer["script"]:
            lines += ["", f"{shown}:", "", reproducer["script"]]
    return "\n".join(lines)


def _written(text: str) -> str:
    return _FORBIDDEN.sub(lambda letter: letter[0].encode("unicode_escape").decode(), text)
