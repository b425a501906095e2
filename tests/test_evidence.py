"""The matrix of evidence, its files and pages, and the command that says whether it speaks of this build."""

from __future__ import annotations

import copy
import csv
import dataclasses
import io
import json
import re
import sys
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from maxops import _native, dtypes, evidence, spec
from maxops.cli.app import app

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "proofs"), str(ROOT / "native")]

import avx512  # type: ignore[import-not-found]  # noqa: E402
import copies  # type: ignore[import-not-found]  # noqa: E402
import digest  # type: ignore[import-not-found]  # noqa: E402
import instructions  # type: ignore[import-not-found]  # noqa: E402
import matrix  # type: ignore[import-not-found]  # noqa: E402
import planner  # type: ignore[import-not-found]  # noqa: E402
import planner_rows  # type: ignore[import-not-found]  # noqa: E402
import planner_trials  # type: ignore[import-not-found]  # noqa: E402
import tables  # type: ignore[import-not-found]  # noqa: E402
import verify  # type: ignore[import-not-found]  # noqa: E402
import walks  # type: ignore[import-not-found]  # noqa: E402

import clauses_cited  # noqa: E402

if TYPE_CHECKING:
    from conformance_browser import Browser

pytest_plugins = ["conformance_browser"]

ROWS = (*spec.ALL, *spec.PLAIN)
EVERY = [row.rule(short) for row in ROWS for short, _ in row.rules]


def made(by_hand: Any = None, claims: Any = None, cited: Any = None) -> Any:
    """The matrix of the files' facts, or of others in their place."""
    facts = matrix.facts()
    given = [other if other is not None else fact for other, fact in zip((by_hand, claims, cited), facts, strict=True)]
    return matrix.Matrix(*given)


def changed(**tables: dict[str, Any]) -> Any:
    """What is said by hand, with more in some tables."""
    by_hand = copy.deepcopy(matrix.facts()[0])
    for name, more in tables.items():
        by_hand[name] |= more
    return by_hand


# ---------------------------------------------------------------------------------------------------- the matrix


def test_the_packages_matrix_is_that_of_the_sources() -> None:
    assert made().as_json() == json.loads(matrix.FILE.read_text(encoding="utf-8"))


def test_every_clause_has_a_row_and_every_cell_something() -> None:
    rows = evidence.read("matrix")["rows"]
    assert [(row["id"], row["statement"], row["source"]) for row in rows] == [
        (clause.id, clause.statement, clause.source) for clause in EVERY
    ]
    for row, clause in zip(rows, EVERY, strict=True):
        assert (row["decision"] != "") == (clause.level == "undecided")
        for column in matrix.COLUMNS:
            assert bool(row[column]) != (column in row["reasons"]), (row["id"], column)
        assert row["code"], row["id"]
        assert row["tests"], row["id"]


def test_the_order_is_proved_for_each_type() -> None:
    proof = next(claim for claim in evidence.read("evidence")["claims"] if claim["id"] == "order.keys")
    assert set(proof["figures"]["goals of each type"]) == {str(dtype) for dtype in dtypes.ALL} - {"real"}
    for row in evidence.read("matrix")["rows"]:
        if row["id"].endswith(".value"):
            assert {"order.keys", "order.pairs"} <= set(row["proofs"])


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"code": {"axes keepdims": ["native/api.cpp:no_such"]}}, "code: native/api.cpp:no_such is not there"),
        ({"code": {"axes": ["native/none.cpp:axes"]}}, "code: native/none.cpp:axes is not there"),
        ({"tests": {"axes ids": ["tests/test_order.py::test_none"]}}, "tests: tests/test_order.py::test_none is not"),
        ({"tests": {"no_such_clause": []}}, "tests: no_such_clause is no clause"),
        ({"proofs": {"mistaken.*": "value"}}, "proofs: mistaken.* is not there"),
        ({"proofs": {"order.*": "value no_such_clause"}}, "proofs: no_such_clause is not there"),
        ({"assumed": {"value": ["luck"]}}, "assumed: luck is not there"),
    ],
    ids=["function", "file", "test", "clause", "claim", "clause of a claim", "assumption"],
)
def test_what_is_named_must_be_there(tables: Any, says: str) -> None:
    with pytest.raises(matrix.MatrixError, match=re.escape(says)):
        made(changed(**tables)).as_json()


def test_an_empty_cell_needs_a_reason() -> None:
    by_hand = copy.deepcopy(matrix.facts()[0])
    del by_hand["reasons"]["proofs"]["*"]
    with pytest.raises(matrix.MatrixError, match=r"SONNX\.Max\.GR1: proofs is empty, and no reason is given"):
        made(by_hand).as_json()


def test_a_claim_speaks_of_some_clause() -> None:
    claims = copy.deepcopy(matrix.facts()[1])
    claims["claims"].append(claims["claims"][0] | {"id": "unheard.new"})
    with pytest.raises(matrix.MatrixError, match=r"which clauses the claim unheard\.new speaks of"):
        made(claims=claims).as_json()


def test_coverage_is_that_of_the_functions_of_a_clause() -> None:
    claims = copy.deepcopy(matrix.facts()[1])
    claims["claims"] = [claim for claim in claims["claims"] if not claim["id"].startswith(matrix.COUNTS)]
    counted = {"native/reduce.cpp:reduce": "branches 3/4", "native/reduce.cpp:other": "branches 1/1"}
    one = claims["claims"][0]
    claims["claims"].append(one | {"id": "coverage.native", "figures": {"functions": counted}})
    rows = {row["id"]: row for row in made(claims=claims).as_json()["rows"]}
    cell = rows["ONNX.ReduceMax-20.value"]["coverage"]
    assert "native/reduce.cpp:reduce: branches 3/4" in cell
    assert "native/kernels/reduce.h:rows: not measured" in cell
    assert rows["ONNX.Max-13.value"]["reasons"] == {"coverage": "not measured"}


def test_of_the_tests_that_cite_a_clause_one_is_named_that_cites_few() -> None:
    cited = {"a::test_all": ["X.T", "X.value"], "b::test_one": ["X.T"]}
    assert clauses_cited.summary(cited) == {
        "X.T": {"tests": 2, "example": "b::test_one"},
        "X.value": {"tests": 1, "example": "a::test_all"},
    }


def test_what_the_manual_cites_is_there() -> None:
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:tests|native|src|proofs|docs|\.ci)/[\w./]+(?:::?\w+)?)`", text)
    assert len(files) > 20
    assert [name for name in files if not matrix.exists(name)] == []
    claims = {claim["id"] for claim in evidence.read("evidence")["claims"]} | {"coverage.native", "coverage.python"}
    for module in (avx512, copies, instructions, walks):  # what another processor has to run
        claims |= module.absent().keys()
    families = "order|kernels|walks|avx512|copies|planner|spec|coverage"
    patterns = re.findall(rf"`((?:{families})\.[\w.*]+)`", text)
    assert patterns
    assert [name for name in patterns if not any(matrix.fnmatch(claim, name) for claim in claims)] == []


# --------------------------------------------------------------------------------------------------------- the run


def test_a_name_of_no_module_runs_nothing_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["verify.py", "--only", "nonsense"])
    with pytest.raises(SystemExit, match="2"):
        verify.main()
    assert "--only nonsense: there are order, instructions, walks," in capsys.readouterr().err


def test_a_package_of_pythons_that_is_missing_is_an_error_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["verify.py", "--only", "tables"])
    with pytest.raises(SystemExit, match="2"):
        verify.main()
    assert "not installed: python -m pip install maxops[cli]\n" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------- the rules of arguments


def test_the_rows_that_are_held_to_sentences_are_all_there_are() -> None:
    held = (*planner_rows.MAX, *planner_rows.REDUCE, *planner_rows.SEGMENT)
    assert {(row.standard, row.operator, row.version) for row in held} == {
        (row.standard, row.operator, row.version) for row in ROWS
    }
    for row, of in ((row, spec.find(row.standard, row.operator, row.version)) for row in held):
        clauses = {clause.id for clause in of.clauses}
        for rule in [rule for name, rule in vars(planner_rows).items() if name.isupper() and isinstance(rule, tuple)]:
            if len(rule) == 2 and str(rule[0]).endswith("Error") and of.has(rule[1]):
                assert {clause for _, clause in row.breaks(rule)} <= clauses, (row.name, rule)


# Of the claims that take little time, a definition and a wrong one.
WRONG: dict[str, tuple[str, Any]] = {
    "planner.options": ("NOOP", ("AttributeValueError", "initial")),
    "planner.inputs": ("COUNT", ("DTypeError", "inputs")),
    "planner.outputs": ("OUT", ("OutputError", "out.shape")),
    "planner.fills": ("EMPTY_SEGMENT", ("EmptyReductionError", "lowest")),
    "planner.empty": ("LOWEST", planner_trials.LOWEST_FINITE),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_definition_of_a_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = planner.claims(name)
    assert claim.holds, claim.open
    assert 0 < claim.figures["by_core"] <= claim.figures["accepted"] < claim.figures["states"]
    monkeypatch.setattr(planner_trials, *WRONG[name])
    (claim,) = planner.claims(name)
    assert claim.open
    assert not claim.holds


def test_a_call_that_takes_what_the_planner_refuses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    right = planner.ways_of

    def ways_of(row: Any) -> Any:
        shipped, by_planner, core = right(row)
        return (lambda *args, **options: shipped(*args[:3], **options)), by_planner, core

    monkeypatch.setattr(planner, "ways_of", ways_of)
    (claim,) = planner.claims("planner.inputs")
    (goal,) = claim.open  # of four inputs, and of five
    assert goal.startswith("OpenVINO SegmentMax-16: 2 wrong: ")
    assert "the planner: " not in goal


def test_rows_of_onnx_are_its_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    (claim,) = tables.claims()
    assert claim.holds, claim.open
    monkeypatch.setattr(spec, "ALL", tuple(row for row in spec.ALL if row is not spec.MAX_8))
    (claim,) = tables.claims()
    assert any(goal.startswith("Max-8, is there: False") for goal in claim.open)


def test_a_row_differs_from_its_schema_where_it_is_said_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = dataclasses.replace(spec.REDUCE_MAX_18, attributes=("keepdims",))
    said = ({"keepdims"}, {"keepdims", "noop_with_empty_axes"})
    for is_said, is_changed in product((False, True), repeat=2):
        with monkeypatch.context() as patch:
            if is_said:
                patch.setitem(tables.ON_PURPOSE, ("ReduceMax", 18, "attributes"), said)
            if is_changed:
                patch.setattr(spec, "ALL", tuple(changed if row is spec.REDUCE_MAX_18 else row for row in spec.ALL))
            (claim,) = tables.claims()
        found = [goal.partition(":")[0] for goal in claim.open if "attributes" in goal]
        assert found == ([] if is_said == is_changed else ["ReduceMax-18, attributes"])


# ------------------------------------------------------------------------------------------------------- the build


def test_the_build_is_of_sources_as_the_tree_would_count_them() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", _native.sources())
    assert re.fullmatch(r"[0-9a-f]{64}", digest.digest())


def of_this_build() -> dict[str, Any]:
    """Evidence that speaks of what is installed, whatever is being changed."""
    found = copy.deepcopy(evidence.read("evidence")) | {"native": _native.sources()}
    for claim in found["claims"]:
        claim["sources"] = {"native/order.h": "0" * 64}
    return found


def use(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    found = of_this_build() | changes
    read = evidence.read
    monkeypatch.setattr(evidence, "read", lambda name: found if name == "evidence" else read(name))


@pytest.mark.skipif(bool(_native.is_miniature), reason="the miniature build is never the one")
def test_this_build_is_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    assert evidence.differences() == []
    done = CliRunner().invoke(app, ["evidence"])
    assert done.exit_code == 0
    assert "the native sources of this build, and what else claims name, are those" in done.stdout
    assert f"instruction set in use: {_native.isa()}" in done.stdout
    for claim in evidence.read("evidence")["claims"]:
        assert claim["id"] in done.stdout


def test_another_core_and_another_file_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = of_this_build()["claims"]
    claims[0]["sources"] = {"src/maxops/spec.py": "0" * 64, "src/maxops/none.py": "0" * 64}
    use(monkeypatch, native="0" * 64, claims=claims)
    assert evidence.differences() == ["the native core", "none.py", "spec.py"]
    done = CliRunner().invoke(app, ["evidence"])
    assert done.exit_code == 1
    assert "another build than the evidence speaks of; what differs: the native core, none.py, spec.py" in done.stdout


def test_open_goals_are_shown_and_count(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = of_this_build()["claims"]
    claim = next(claim for claim in claims if claim["id"] == "order.keys")
    claim |= {"open": ["float16: a goal"], "proved": claim["goals"] - 1}
    use(monkeypatch, claims=claims)
    shown = next(line for line in CliRunner().invoke(app, ["evidence"]).stdout.splitlines() if "order.keys " in line)
    assert [cell.strip() for cell in shown.split("│")][3:5] == [str(claim["goals"]), "1"]
    assert "float16: a goal" in CliRunner().invoke(app, ["evidence", "--format", "json"]).stdout
    assert evidence.by_method()["proof"]["open"] == 1
    status = {row["id"]: row["status"] for row in evidence.table()}
    assert status["ONNX.Max-13.value"] == "open"
    assert status["maxops.maximum.arrays"] == "tested"


def test_instruction_sets_are_those_that_claims_name(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = of_this_build()["claims"]
    for claim, isa in zip(claims, ["x86-64-v3", ["baseline", "x86-64-v3"]], strict=False):
        claim["figures"] = {"isa": isa}
    use(monkeypatch, claims=claims[:2])
    assert evidence.isas() == ["baseline", "x86-64-v3"]


# ----------------------------------------------------------------------------------------------------------- files


def test_json_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    found = json.loads(CliRunner().invoke(app, ["evidence", "--json"]).stdout)
    assert found["claims"] == evidence.read("evidence")["claims"]
    assert found["matrix"] == evidence.read("matrix")
    assert found["build"]["native"] == _native.sources()


def test_csv_has_a_line_for_each_clause(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["evidence", "--csv", str(tmp_path / "m.csv")])
    text = (tmp_path / "m.csv").read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == ",".join(evidence.COLUMNS)
    assert [(row["id"], row["text"]) for row in rows] == [(clause.id, clause.statement) for clause in EVERY]
    assert all(value for row in rows for name, value in row.items() if name != "decision")
    value = next(row for row in rows if row["id"] == "ONNX.Max-13.value")
    assert value["verification"].split("; ")[0] == "proof"
    assert "native/fold.cpp:fold" in value["code"]


def test_the_page_loads_nothing() -> None:
    text = evidence.as_html()
    assert text == evidence.as_html()
    assert not re.search(r"""(?:src|href)=(?!"data:,")|url\(|@import|https?:""", text)
    assert "default-src 'none'" in text


def test_the_page_filters(browser: Browser) -> None:
    (browser.folder / "evidence.html").write_text(evidence.as_html(), encoding="utf-8")
    browser.open("evidence")

    def shown() -> list[str]:
        return [row.text.split()[0] for row in browser.all("tbody tr") if row.is_displayed()]

    assert browser.count == f"{len(EVERY)} of {len(EVERY)} clauses"
    assert browser.focused.get_attribute("id") == "filter"
    browser.press("sonnx.max-nan ORDER.KEYS")
    assert shown() == []
    browser.run("arguments[0].value = ''", browser.one("#filter"))
    browser.press("sonnx-draft.Max.value", " ", "ORDER.keys")
    assert shown() == ["SONNX-draft.Max.value"]
    assert browser.count == f"1 of {len(EVERY)} clauses"


@pytest.mark.parametrize("changed", [False, True], ids=["unchanged", "changed"])
def test_coverage_is_claimed_while_its_sources_are_unchanged(
    changed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "src/maxops/errors.py"
    sources = {path: "0" * 64} if changed else verify.hashes([path])
    claim = evidence.read("evidence")["claims"][0] | {"id": "coverage.python", "module": "covered", "sources": sources}
    written = tmp_path / "evidence.json"
    written.write_text(json.dumps({"claims": [claim]}), encoding="utf-8")
    monkeypatch.setattr(verify, "EVIDENCE", written)
    monkeypatch.setattr(verify, "SHORT", ("tables",))
    monkeypatch.setattr(sys, "argv", ["verify.py"])
    assert verify.main() == 0
    kept = [each["id"] for each in json.loads(written.read_text(encoding="utf-8"))["claims"]]
    assert ("coverage.python" in kept) == (not changed)
    assert (
        "coverage.python: src/maxops/errors.py changed; it is no longer claimed" in capsys.readouterr().out
    ) == changed
