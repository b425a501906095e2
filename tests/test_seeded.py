"""The table of faults in the proofs' sources stays true to them; `make seeded` tries them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "proofs"))

import contracts  # type: ignore[import-not-found]  # noqa: E402
from seeded import CONTRACTS, FAULTS, Fault  # type: ignore[import-not-found]  # noqa: E402


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_has_its_place(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.put(text) != text


def test_every_function_with_a_contract_has_a_fault() -> None:
    """Under preconditions that contradict one another all goals would be proved, and no fault would be found."""
    files = [f"{contracts.FOLDER}/{file.name}.c" for file in contracts.FILES]
    there = {(file, function) for file in files for function in contracts.functions(file)}
    assert there == {(fault.file, fault.function) for fault in CONTRACTS}
    assert len(there) > 20


def test_contracts_take_each_value_that_a_parameter_may_have() -> None:
    table = (ROOT / "native" / "parameters.def").read_text(encoding="utf-8")
    allowed = {
        name: [eval(re.sub(r"std::size_t\{(\d+)\}", r"\1", bound)) for bound in (least, most)]
        for name, least, most in re.findall(r"^MAXOPS_PARAMETER\((\w+), [^,]+, [^,]+, ([^,]+), ([^,]+),", table, re.M)
    }
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / contracts.FOLDER).glob("*.[ch]"))]
    taken = [each for text in texts for each in re.findall(r"(\w+) <= (k\w+) <= (\w+)", text)]
    assert {name: [int(least, 0), int(most, 0)] for least, name, most in taken if least.isdigit()} == {
        name: allowed[name] for name in ("kRunScan", "kGallopRows", "kShort", "kOrderBlock")
    }


def test_a_fault_without_its_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="the text is there 0 times"):
        Fault("a.c", "", "no such text", "").put("int a;\n")
    with pytest.raises(ValueError, match="the text is there 2 times"):
        Fault("a.c", "", "int", "").put("int a;\nint b;\n")
    with pytest.raises(ValueError, match=r"a\.c has no function g"):
        Fault("a.c", "g", "a", "").put("int f(int a) {\n}\n")


def test_a_fault_stays_within_its_function() -> None:
    text = "int f(int a) {\n    return a;\n}\n\nint g(int a) {\n    return a;\n}\n"
    assert Fault("a.c", "g", "return a;", "return 0;").put(text) == text[:-16] + "    return 0;\n}\n"
    assert Fault("a.c", "f", "return a;", "return 0;").put(text).startswith("int f(int a) {\n    return 0;\n}\n")
