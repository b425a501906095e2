"""The evidence matrix, its files and pages, and the command that checks whether it belongs to this build."""

from __future__ import annotations

import base64
import copy
import csv
import dataclasses
import hashlib
import html
import io
import json
import re
import shutil
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from typer.testing import CliRunner

import maxops as mo
from maxops import _native, evidence, spec
from maxops.cli.app import app
from maxops.evidence.tokens import digest_of

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "proofs"), str(ROOT / "native")]

import claims  # type: ignore[import-not-found]  # noqa: E402
import digest  # type: ignore[import-not-found]  # noqa: E402
import matrix  # type: ignore[import-not-found]  # noqa: E402
import planner  # type: ignore[import-not-found]  # noqa: E402
import tables  # type: ignore[import-not-found]  # noqa: E402
import verify  # type: ignore[import-not-found]  # noqa: E402
from planner import rows as planner_rows  # noqa: E402
from planner import trials as planner_trials  # noqa: E402

import clauses_cited  # noqa: E402

if TYPE_CHECKING:
    from helpers.conformance_browser import Browser

pytest_plugins = ["helpers.conformance_browser"]

ROWS = (*spec.ALL, *spec.PLAIN)
EVERY = [row.rule(short) for row in ROWS for short, _ in row.rules]


def made(by_hand: Any = None, claims: Any = None, cited: Any = None) -> Any:
    """Return the matrix that results from the files, or from other facts."""
    facts = matrix.facts()
    given = [other if other is not None else fact for other, fact in zip((by_hand, claims, cited), facts, strict=True)]
    return matrix.Matrix(*given)


def changed(**tables: dict[str, Any]) -> Any:
    """Return the handwritten facts with additional entries in some tables."""
    by_hand = copy.deepcopy(matrix.facts()[0])
    for name, more in tables.items():
        by_hand[name] |= more
    return by_hand


# ---------------------------------------------------------------------------------------------------- the matrix


def test_the_packages_matrix_is_that_of_the_sources() -> None:
    assert made().as_json() == json.loads(matrix.FILE.read_text(encoding="utf-8"))


def test_every_clause_has_a_row_and_every_cell_something() -> None:
    rows = evidence.rows()
    assert [(row["id"], row["statement"], row["source"]) for row in rows] == [
        (clause.id, clause.statement, clause.source) for clause in EVERY
    ]
    for row, clause in zip(rows, EVERY, strict=True):
        assert (row["decision"] != "") == (clause.level == "undecided")
        for column in matrix.COLUMNS:
            assert bool(row[column]) != (column in row["reasons"]), (row["id"], column)
        assert row["code"], row["id"]
        assert row["tests"], row["id"]


def test_the_order_is_proved_and_no_more() -> None:
    proofs = {claim["id"] for claim in evidence.read("evidence")["claims"] if claim["method"] == "proof"}
    assert proofs == {"avx512.lanes", "order.keys"}
    for row, shown in zip(evidence.rows(), evidence.table(), strict=True):
        if row["id"].endswith(".value"):
            assert {"order.keys", "order.pairs"} <= set(row["proofs"])
        # Claims that are proved for a clause; most are about a part of the clause.
        assert re.sub(r"proof \((avx512\.lanes|order\.keys|, )+\)", "", shown["verification"]).count("proof") == 0


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"code": {"axes keepdims": ["native/api.cpp:no_such"]}}, "code: native/api.cpp:no_such does not exist"),
        ({"code": {"axes": ["native/none.cpp:axes"]}}, "code: native/none.cpp:axes does not exist"),
        (
            {"tests": {"axes ids": ["tests/operators/test_order.py::test_none"]}},
            "tests: tests/operators/test_order.py::test_none does not exist",
        ),
        ({"tests": {"no_such_clause": []}}, "tests: no_such_clause is not a clause"),
        ({"proofs": {"mistaken.*": "value"}}, "proofs: mistaken.* does not exist"),
        ({"proofs": {"order.*": "value no_such_clause"}}, "proofs: no_such_clause does not exist"),
        ({"assumed": {"value": ["luck"]}}, "assumed: luck does not exist"),
    ],
    ids=["function", "file", "test", "clause", "claim", "clause of a claim", "assumption"],
)
def test_what_is_named_must_be_there(tables: Any, says: str) -> None:
    with pytest.raises(matrix.MatrixError, match=re.escape(says)):
        made(changed(**tables)).as_json()


def test_an_empty_cell_needs_a_reason() -> None:
    by_hand = copy.deepcopy(matrix.facts()[0])
    del by_hand["reasons"]["proofs"]["*"]
    with pytest.raises(matrix.MatrixError, match=r"SONNX\.Max\.GR1: proofs is empty without a reason"):
        made(by_hand).as_json()


def test_a_claim_speaks_of_some_clause() -> None:
    claims = copy.deepcopy(matrix.facts()[1])
    claims["claims"].append(claims["claims"][0] | {"id": "unheard.new"})
    with pytest.raises(matrix.MatrixError, match=r"the claim unheard\.new has no clauses"):
        made(claims=claims).as_json()


def test_of_the_tests_that_cite_a_clause_one_is_named_that_cites_few() -> None:
    cited = {"a::test_all": ["X.T", "X.value"], "b::test_one": ["X.T"]}
    assert clauses_cited.summary(cited) == {"X.T": (2, "b::test_one"), "X.value": (1, "a::test_all")}


def test_what_the_manual_cites_is_there() -> None:
    text = (ROOT / "docs" / "safety.md").read_text(encoding="utf-8")
    files = re.findall(r"`((?:tests|native|src|proofs|docs|\.ci)/[\w./]+(?:::?\w+)?)`", text)
    assert len(files) > 20
    assert [name for name in files if not matrix.exists(name)] == []
    there = verify.checks("")
    patterns = re.findall(rf"`((?:{'|'.join(verify.FAMILIES)})\.[\w.*-]+)`", text)
    assert len(patterns) > 10
    assert [name for name in patterns if not any(matrix.fnmatch(claim, name) for claim in there)] == []


# --------------------------------------------------------------------------------------------------------- the run


def of(name: str, **more: Any) -> Any:
    """Return a claim with one goal that holds."""
    return claims.Claim(
        name, "says", "exhaustive", "tool", ("src/maxops/errors.py",), **{"goals": 1, "cases": 3} | more
    )


class Run:
    """`python proofs/verify.py` with fast checks and separate evidence."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.patch = folder / "evidence.json", monkeypatch
        monkeypatch.setattr(verify, "EVIDENCE", self.file)
        monkeypatch.setattr(verify, "require_this_tree", lambda: None)
        monkeypatch.setattr(verify, "find_spec", lambda name: "there")  # pretends that the package is installed
        self.found = [of("order.a"), of("order.b")]
        self.missing: dict[str, str] = {}
        self.isa = claims.BASELINE  # the instruction set of all checks

    def __call__(self, *words: str) -> int:
        found = {claim.id: claim for claim in self.found}
        checks = {name: SimpleNamespace(missing=self.missing.get(name, ""), isa=self.isa) for name in found}
        self.patch.setattr(verify, "checks", lambda only: {name: each for name, each in checks.items() if only in name})
        self.patch.setattr(verify, "run_all", lambda names: [found[name] for name in names])
        self.patch.setattr(sys, "argv", ["verify.py", *words])
        return int(verify.main())

    def claims(self) -> dict[str, Any]:
        return {claim["id"]: claim for claim in json.loads(self.file.read_text(encoding="utf-8"))["claims"]}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path, monkeypatch)


def test_a_run_that_changes_nothing_writes_nothing(run: Run) -> None:
    assert run() == 0
    before = run.file.read_bytes()
    assert json.loads(before)["run"]["commit"]
    run.file.touch()
    stamp = run.file.stat().st_mtime_ns
    assert (run(), run("--check")) == (0, 0)
    assert (run.file.read_bytes(), run.file.stat().st_mtime_ns) == (before, stamp)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"open": ("a goal",)}, "order.b: a goal is open"),
        ({"cases": 2}, "order.b: 2 cases instead of 3"),
        ({"goals": 0}, "order.b: 0 goals instead of 1"),
    ],
    ids=["open", "fewer cases", "fewer goals"],
)
def test_less_than_before_is_an_error(
    run: Run, capsys: pytest.CaptureFixture[str], change: dict[str, Any], says: str
) -> None:
    assert run() == 0
    before = run.file.read_bytes()
    run.found[1] = of("order.b", **change)
    for words in ([], ["--check"], ["--only", "order"]):
        assert run(*words) == 1
        assert says in capsys.readouterr().out
    assert run.file.read_bytes() == before
    run.found = run.found[:1]
    assert run() == 1
    assert "order.b: the claim is missing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "value", "is_checked"),
    [
        ("says", "other", True), ("cases", 2, True), ("bounds", "more", True), ("assumes", "more", True),
        ("method", "proof", True), ("tool", "another version", False), ("isa", "x86-64-v3", False),
    ],
)  # fmt: skip
def test_the_check_compares_what_is_found_with_what_is_committed(
    run: Run, capsys: pytest.CaptureFixture[str], field: str, value: Any, is_checked: bool
) -> None:
    """Test that --check ignores only machine-dependent values, such as versions of tools."""
    assert run() == 0
    committed = json.loads(run.file.read_text(encoding="utf-8"))
    committed["claims"][1][field] = value
    run.file.write_text(json.dumps(committed), encoding="utf-8")
    before = run.file.read_bytes()
    assert run("--check") == int(is_checked)
    assert ("evidence.json differs in order.b: run make verify" in capsys.readouterr().out) == is_checked
    assert run.file.read_bytes() == before
    assert run() == 0
    assert run.claims()["order.b"].get(field) == of("order.b").as_json().get(field)


def test_the_check_compares_the_files_that_claims_speak_of(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run() == 0
    committed = json.loads(run.file.read_text(encoding="utf-8"))
    committed["files"]["src/maxops/errors.py"][0] = "0" * 64
    run.file.write_text(json.dumps(committed), encoding="utf-8")
    assert run("--check") == 1
    assert "differs in files: run make verify" in capsys.readouterr().out


@pytest.mark.parametrize("changed", [False, True], ids=["unchanged", "changed"])
def test_what_a_processor_cannot_run_is_claimed_while_its_files_are_unchanged(
    run: Run, changed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run() == 0
    if changed:
        text = run.file.read_text(encoding="utf-8").replace(claims.digests(["src/maxops/errors.py"]).popitem()[1], "0")
        run.file.write_text(text, encoding="utf-8")
    run.missing = {"order.b": "avx512bw"}
    assert run() == 0
    assert ("order.b" in run.claims()) == (not changed)
    what = "the claim is removed" if changed else "the earlier evidence is kept"
    assert f"order.b: this processor has no avx512bw; {what}" in capsys.readouterr().out


@pytest.mark.parametrize(("isa", "is_open"), [("baseline", False), ("x86-64-v4", False), ("x86-64-v4", True)])
def test_the_check_takes_more_claims_of_a_processor_that_has_more(
    run: Run, isa: str, is_open: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run.found.pop()
    assert run() == 0
    run.found.append(of("order.b", open=("a goal",) if is_open else ()))
    run.isa = isa
    assert run("--check") == int(isa == "baseline" or is_open)
    says = "order.b: a goal is open" if is_open else "1 claims hold" if isa != "baseline" else "differs in order.b"
    assert says in capsys.readouterr().out


def test_a_name_of_no_claim_runs_nothing_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "find_spec", lambda name: "there")
    monkeypatch.setattr(sys, "argv", ["verify.py", "--only", "nonsense"])
    with pytest.raises(SystemExit, match="2"):
        verify.main()
    assert "no claim contains 'nonsense'; the claims are walks.x86-64-v4, " in capsys.readouterr().err


def test_a_tool_that_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "argv", ["verify.py"])
    with pytest.raises(SystemExit, match="2"):
        verify.main()
    assert "missing tools; run python -m pip install z3-solver onnx\n" in capsys.readouterr().err


def test_an_installed_package_of_another_tree_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Test each Python file and the native core, changed or missing."""
    installed = tmp_path / "maxops"
    shutil.copytree(ROOT / "src" / "maxops", installed, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    monkeypatch.setattr(mo, "__file__", str(installed / "__init__.py"))
    monkeypatch.setattr(claims, "digest", lambda: _native.build()["sources"])
    claims.require_this_tree()
    # computing digests takes long, and test_a_digest_is_of_a_files_tokens tests them
    monkeypatch.setattr(claims, "digest_of", Path.read_bytes)
    names = sorted(path.relative_to(installed) for path in installed.rglob("*.py"))
    assert len(names) > 100
    text = (installed / names[-1]).read_text(encoding="utf-8")
    for change in ("x = 1\n", None):
        for name in names:
            if change is None:
                (installed / name).unlink()
            else:
                (installed / name).write_text(change, encoding="utf-8")
        with pytest.raises(SystemExit, match="2"):
            claims.require_this_tree()
        said = f"{names[0]}, {names[1]}, {names[2]} and {len(names) - 3} more differ; run make install"
        assert f"is not built from this tree: {said}" in capsys.readouterr().out
    shutil.copytree(ROOT / "src" / "maxops", installed, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.so"))
    (installed / names[-1]).write_text(text + "\nbroken = 1\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        claims.require_this_tree()
    assert f"is not built from this tree: {names[-1]} differ" in capsys.readouterr().out
    (installed / names[-1]).write_text(text, encoding="utf-8")
    monkeypatch.setattr(claims, "digest", lambda: "0" * 64)
    with pytest.raises(SystemExit, match="2"):
        claims.require_this_tree()
    assert "is not built from this tree: the native core differ; run make install" in capsys.readouterr().out


# ------------------------------------------------------------------------------------------- the rules of arguments


def test_the_rows_that_are_held_to_sentences_are_all_there_are() -> None:
    """Test that all rows have claims except the scatters, whose calls tests/operators/test_scatter.py enumerates."""
    held = (*planner_rows.MAX, *planner_rows.REDUCE, *planner_rows.SEGMENT)
    assert {(row.standard, row.operator, row.version) for row in held} == {
        (row.standard, row.operator, row.version) for row in ROWS if not row.is_scatter
    }
    for row, of in ((row, spec.find(row.standard, row.operator, row.version)) for row in held):
        clauses = {clause.id for clause in of.clauses}
        for rule in [rule for name, rule in vars(planner_rows).items() if name.isupper() and isinstance(rule, tuple)]:
            if len(rule) == 2 and str(rule[0]).endswith("Error") and of.has(rule[1]):
                assert {clause for _, clause in row.breaks(rule)} <= clauses, (row.name, rule)


# Claims that are fast to check, each with a rule and a wrong value for this rule.
WRONG: dict[str, tuple[str, Any]] = {
    "planner.options": ("NOOP", ("AttributeValueError", "initial")),
    "planner.inputs": ("COUNT", ("DTypeError", "inputs")),
    "planner.outputs": ("OUT", ("OutputError", "out.shape")),
    "planner.fills": ("EMPTY_SEGMENT", ("EmptyReductionError", "lowest")),
    "planner.empty": ("LOWEST", planner_trials.LOWEST_FINITE),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_definition_of_a_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "require_this_tree", lambda: None)
    (right,) = [claim for claim in evidence.read("evidence")["claims"] if claim["id"] == name]
    assert not right.get("open")
    assert name != "planner.options" or planner.claim(name).holds  # one claim is computed, as a control
    monkeypatch.setattr(planner_trials, *WRONG[name])
    claim = planner.claim(name)
    assert claim.open
    assert not claim.holds


def _takes_more(shipped: Any, by_planner: Any, core: Any) -> Any:
    return (lambda *args, **options: shipped(*args[:3], **options)), by_planner, core


def _leaves_all(shipped: Any, by_planner: Any, core: Any) -> Any:
    return shipped, by_planner, lambda *args, **options: None


def _takes_what_is_refused(shipped: Any, by_planner: Any, core: Any) -> Any:
    return shipped, by_planner, lambda *args, **options: args[0] if len(args) > 3 else core(*args, **options)


def _gives_another_shape(shipped: Any, by_planner: Any, core: Any) -> Any:
    def other(*args: Any, **options: Any) -> Any:
        found = core(*args, **options)
        return found[None] if isinstance(found, np.ndarray) else found

    return shipped, by_planner, other


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_takes_more, "OpenVINO SegmentMax-16: 2 wrong: "),  # with four inputs and with five
        (_leaves_all, "is accepted by the planner, and the core leaves it"),
        (_takes_what_is_refused, "gives (dtype('float32'), (2, 3)), not one of [('InputCountError'"),
        (_gives_another_shape, "gives (dtype('float32'), (1, 2, 3)), not one of"),
    ],
    ids=["takes more", "leaves all", "takes what is refused", "another shape"],
)
def test_a_way_in_that_differs_from_the_planner_is_noticed(
    monkeypatch: pytest.MonkeyPatch, change: Any, says: str
) -> None:
    right = planner.ways_of
    monkeypatch.setattr(planner, "require_this_tree", lambda: None)
    monkeypatch.setattr(planner, "ways_of", lambda row: change(*right(row)))
    goals = planner.claim("planner.inputs").open
    assert goals
    assert any(says in goal for goal in goals), goals


def test_rows_of_onnx_are_its_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "require_this_tree", lambda: None)
    claim = tables.claim()
    assert claim.holds, claim.open
    monkeypatch.setattr(spec, "ALL", tuple(row for row in spec.ALL if row is not spec.MAX_8))
    claim = tables.claim()
    assert any(goal.startswith("Max-8, is there: False") for goal in claim.open)


def test_a_row_differs_from_its_schema_where_it_is_said_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "require_this_tree", lambda: None)
    changed = dataclasses.replace(spec.REDUCE_MAX_18, attributes=("keepdims",))
    said = ({"keepdims"}, {"keepdims", "noop_with_empty_axes"})
    for is_said, is_changed in product((False, True), repeat=2):
        with monkeypatch.context() as patch:
            if is_said:
                patch.setitem(tables.ON_PURPOSE, ("ReduceMax", 18, "attributes"), said)
            if is_changed:
                patch.setattr(spec, "ALL", tuple(changed if row is spec.REDUCE_MAX_18 else row for row in spec.ALL))
            claim = tables.claim()
        found = [goal.partition(":")[0] for goal in claim.open if "attributes" in goal]
        assert found == ([] if is_said == is_changed else ["ReduceMax-18, attributes"])


# ------------------------------------------------------------------------------------------------------- the build


def test_the_build_is_of_sources_as_the_tree_would_count_them() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", _native.build()["sources"])
    assert re.fullmatch(r"[0-9a-f]{64}", digest.digest())


def of_this_build() -> dict[str, Any]:
    """Return evidence that matches the installed build, even if files of the tree have changed."""
    files = {"native/core/order.h": ["0" * 64, ["order"]]}
    return copy.deepcopy(evidence.read("evidence")) | {"build": _native.build(), "files": files}


def use(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    found = of_this_build() | changes
    read = evidence.read
    monkeypatch.setattr(evidence, "read", lambda name: found if name == "evidence" else read(name))


@pytest.mark.skipif(bool(_native.is_miniature), reason="the miniature build is never the one")
def test_this_build_is_the_one(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    assert evidence.differences() == []
    done = CliRunner().invoke(app, ["evidence", "-v"])
    assert done.exit_code == 0
    assert "the evidence is for this build and for the installed files" in done.stdout
    assert f"instruction set in use: {_native.isa()}" in done.stdout
    for claim in evidence.read("evidence")["claims"]:
        assert claim["id"] in done.stdout
    for name, value in evidence.read("evidence")["run"].items():
        assert f"{name}: {', '.join(value) if isinstance(value, list) else value}" in done.stdout


def test_evidence_says_of_what_it_is() -> None:
    found = evidence.read("evidence")
    assert {"commit", "date", "processor", "compiler of the proofs", "system"} < found["run"].keys()
    assert re.match(r"[0-9a-f]{40}", found["run"]["commit"])
    assert found["build"].keys() == {"sources", "compiler", "flags", "instruction_sets"}
    assert "-O3" in found["build"]["flags"]
    # The files of a claim include those that it is about and those that verify it.
    for family in {claim["id"].partition(".")[0] for claim in found["claims"]}:
        files = verify.files_of(found, family)
        assert {"proofs/claims.py"} < files.keys()
        assert any(path.startswith(f"proofs/{family}/") for path in files)
        assert any(not path.startswith("proofs/") for path in files)


@pytest.mark.skipif(bool(_native.is_miniature), reason="the miniature build is never the one")
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sources": "0" * 64}, "the native core"),
        ({"compiler": "GNU 1.0"}, "compiler {compiler} instead of GNU 1.0"),
        ({"flags": "-O1"}, "flags {flags} instead of -O1"),
        ({"instruction_sets": ["x86-64-v3"]}, "instruction sets {instruction_sets} instead of x86-64-v3"),
    ],
    ids=["sources", "compiler", "flags", "instruction sets"],
)
def test_another_build_is_told(monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], says: str) -> None:
    build = _native.build()
    use(monkeypatch, build=build | change)
    words = {name: ", ".join(value) if isinstance(value, list) else value for name, value in build.items()}
    assert evidence.differences() == [says.format(**words)]
    assert CliRunner().invoke(app, ["evidence"]).exit_code == 1


@pytest.mark.parametrize(
    ("name", "text", "other", "is_same"),
    [
        ("a.py", "x = f(1, 2)\n", "# one\n\nx = f(  # two\n    1,\n    2)\n", True),
        ("a.py", "if x:\n  y\n", "if x:\n    y\n", True),
        ("a.py", "if x:\n    y\nz\n", "if x:\n    y\n    z\n", False),
        ("a.py", "x\ny\n", "x;y\n", False),
        ("a.py", "ab\n", "a, b\n", False),
        ("a.py", "x = '# 1'\n", "x = '# 2'\n", False),
        ("a.cpp", "int a;\nint b;\n", "int a; // one\n/* two\n* three */ int b;", True),
        ("a.c", "int a;\nint b;\n", "int a; int b;", True),
        ("a.h", "int a, b", "int a, /**/b", True),
        ("a.def", "ab", "a/**/b", False),
        ("a.c", 's = "// 1";', 's = "// 2";', False),
        ("a.c", 's = "a b";', 's = "a  b";', False),
        ("a.c", """s = "\\"// 1";""", """s = "\\"// 2";""", False),
        ("a.c", "c = '\\'' + 1; // '", "c = '\\'' + 2; // '", False),
        ("a.c", "# define A 1\nint b;", "# define A 1 int b;", False),
        ("a.c", "#define A 1\n", "#define A \\\n  1\n", True),
        ("a.c", "a+ ++b;", "a++ +b;", False),
        ("a.c", "a & &b;", "a && b;", False),
        ("a.c", "a- -b;", "a --b;", False),
        ("a.c", "a < -b;", "a<-b;", True),
        ("a.c", "x = 1e-3;", "x = 1e - 3;", False),
        ("a.c", "x = 1.5f+y;", "x = 1.5f + y;", True),
        ("a.c", "x = 1.;", "x = 1 .;", False),
        ("a.txt", "x = 1\n", "x  = 1\n", False),
    ],
)
def test_a_digest_is_of_a_files_tokens(name: str, text: str, other: str, is_same: bool, tmp_path: Path) -> None:
    """Test that comments and layout do not change a digest, except in strings and in files of other types."""
    digests = []
    for each in (text, other, text):
        (tmp_path / name).write_text(each, encoding="utf-8")
        digests.append(digest_of(tmp_path / name))
    assert digests[0] == digests[2]
    assert (digests[0] == digests[1]) == is_same


def test_another_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, files={f"src/maxops/{name}.py": ["0" * 64, ["order"]] for name in ("spec", "none")})
    assert evidence.differences()[-2:] == ["none.py", "spec.py"]
    done = CliRunner().invoke(app, ["evidence"])
    assert done.exit_code == 1
    assert "the evidence is for a different build; differences: " in done.stdout
    assert done.stdout.endswith("none.py; spec.py\n")


def test_open_goals_are_shown_and_count(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = of_this_build()["claims"]
    claim = next(claim for claim in claims if claim["id"] == "order.keys")
    claim |= {"open": ["float16: a goal"]}
    use(monkeypatch, claims=claims)
    shown = next(
        line for line in CliRunner().invoke(app, ["evidence", "-v"]).stdout.splitlines() if "order.keys " in line
    )
    assert [cell.strip() for cell in shown.split("│")][3:6] == [str(claim["goals"]), "1", ""]
    assert "float16: a goal" in CliRunner().invoke(app, ["evidence", "--format", "json"]).stdout
    assert evidence.by_method()["proof"]["open"] == 1
    status = {row["id"]: row["status"] for row in evidence.table()}
    assert status["ONNX.Max-13.value"] == "open"
    assert status["maxops.maximum.arrays"] == "tested"


def test_goals_of_proofs_and_cases_of_tests_are_counted_apart() -> None:
    counts = evidence.by_method()
    assert counts["proof"]["goals"] > 300
    assert counts["proof"]["cases"] == 0
    assert counts["exhaustive"]["cases"] > 10**9


def test_instruction_sets_are_those_that_claims_name(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, *_ = of_this_build()["claims"]
    first.pop("isa", None)
    use(monkeypatch, claims=[first, second | {"isa": "x86-64-v3"}, second | {"isa": "baseline"}])
    assert evidence.isas() == ["baseline", "x86-64-v3"]


# ----------------------------------------------------------------------------------------------------------- files


def test_json_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch)
    found = json.loads(CliRunner().invoke(app, ["evidence", "--json"]).stdout)
    assert found["claims"] == evidence.read("evidence")["claims"]
    assert found["clauses"] == evidence.rows()
    assert found["installed"]["sources"] == _native.build()["sources"]


def test_the_packages_files_are_small() -> None:
    folder = ROOT / "src" / "maxops" / "evidence"
    assert sum((folder / f"{name}.json").stat().st_size for name in ("evidence", "matrix")) < 80_000


def test_csv_has_a_line_for_each_clause(tmp_path: Path) -> None:
    CliRunner().invoke(app, ["evidence", "--csv", str(tmp_path / "m.csv")])
    text = (tmp_path / "m.csv").read_bytes().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert text.splitlines()[0] == ",".join(evidence.COLUMNS)
    assert [(row["id"], row["text"]) for row in rows] == [(clause.id, clause.statement) for clause in EVERY]
    assert all(value for row in rows for name, value in row.items() if name != "decision")
    value = next(row for row in rows if row["id"] == "ONNX.Max-13.value")
    assert value["verification"] == "proof (order.keys); exhaustive (copies, order, walks); test (order); tests"
    assert "native/drivers/fold.cpp:fold" in value["code"]


def test_the_page_loads_nothing() -> None:
    text = evidence.as_html()
    assert text == evidence.as_html()
    assert not re.search(r"""(?:src|href)=(?!"data:,")|url\(|@import|https?:""", text)
    assert "default-src 'none'" in text


def test_the_page_has_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that the page escapes all text, and that its policy permits only its own style and script."""
    odd = {name: f'<b> & "{name}"' for name in evidence.COLUMNS}
    monkeypatch.setattr(evidence, "table", lambda: [odd, dict.fromkeys(odd, "")])
    text = evidence.as_html()
    lines = [re.findall(r"<t[hd]>(.*?)</t[hd]>", line) for line in re.findall("<tr>.*?</tr>", text)]
    assert [[*map(html.unescape, line)] for line in lines] == [[*evidence.COLUMNS], [*odd.values()], [""] * len(odd)]
    assert "<b>" not in text
    for tag in ("style", "script"):
        (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in text


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
