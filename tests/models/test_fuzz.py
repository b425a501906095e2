"""Some mutants of the fuzzer, and a test that it can fail. `make fuzz` runs a million mutants."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from onnx import ModelProto

import fuzz
from maxops import errors, openvino
from maxops.checker import check


@pytest.mark.parametrize("count", [500, pytest.param(5_000, marks=pytest.mark.exhaustive)])
def test_mutants_are_read_or_refused(count: int) -> None:
    seen = fuzz.fuzz(count=count, seconds=float("inf"), seed=count, workers=2)  # `make fuzz` uses other seeds
    assert seen["mutants"] == count
    assert min(seen["read"], seen["refused"]) > seen["mutants"] / 10


@pytest.mark.release
@pytest.mark.parametrize("seed", range(len(fuzz.SEEDS)))
def test_every_change_of_one_field(seed: int, tmp_path: Path, unsandboxed: None) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(16))
    path = tmp_path / "m.onnx"
    for data in fuzz.single_changes(ModelProto.FromString(fuzz.SEEDS[seed].SerializeToString())):
        path.write_bytes(data)
        fuzz.attempt(path)
        with suppress(errors.MaxopsError):
            check(path)


def test_mutants_differ_and_come_again() -> None:
    made = [fuzz.mutant(random.Random(seed)) for seed in range(200)]
    assert len(set(made)) > 190
    assert made == [fuzz.mutant(random.Random(seed)) for seed in range(200)]
    assert {ending for ending, _ in made} == {".onnx", ".xml"}


@pytest.mark.parametrize("raised", [KeyError("x"), RecursionError(), errors.ModelError("")], ids=repr)
def test_what_is_no_clear_error_is_let_out(raised: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> None:
        raise raised

    monkeypatch.setattr(openvino, "load", load)
    with pytest.raises((KeyError, RecursionError, AssertionError)):
        fuzz.attempt(tmp_path / "m.xml")


def test_a_worker_that_fails_ends_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("a worker ended with 1")

    monkeypatch.setattr(fuzz, "fuzz", failing)
    monkeypatch.setattr(sys, "argv", ["fuzz.py"])
    assert fuzz.main() == 1
    assert "a worker ended with 1" in capsys.readouterr().err
