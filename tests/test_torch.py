"""What only tensors have: the table by way of torch's dispatcher, memory that is shared, kinds that are refused."""

from __future__ import annotations

import pytest

from engine_adapters import ADAPTERS
from engine_cases import CASES, Case
from test_engines import test_engine as hold_to_the_table

torch = pytest.importorskip("torch")

from maxops.engines.torch import eager  # noqa: E402: after the skip

ADAPTER = next(adapter for adapter in ADAPTERS if adapter.name == "torch")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_table_through_the_dispatcher(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eager, "watched", lambda *values: True)
    hold_to_the_table(ADAPTER, case)
