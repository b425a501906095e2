"""The table of faults matches the sources of the proofs; `make faults` tries the faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "proofs"))

from seeded import FAULTS, Fault  # type: ignore[import-not-found]  # noqa: E402


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_every_fault_has_its_place(fault: Fault) -> None:
    text = (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.put(text) != text


def test_a_fault_without_its_place_is_an_error() -> None:
    with pytest.raises(ValueError, match="expected the text once, found it 0 times"):
        Fault("a.c", "no such text", "").put("int a;\n")
    with pytest.raises(ValueError, match="expected the text once, found it 2 times"):
        Fault("a.c", "int", "").put("int a;\nint b;\n")
