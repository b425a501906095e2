"""Numbers agree with their nouns, and models are not confused with files of arrays."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import maxops
from maxops.errors import ModelError
from maxops.onnx import load

SOURCES = sorted(Path(maxops.__file__).parent.rglob("*.py"))
# A count that may be 1 before a plural noun; "1 of 2 outputs" is correct.
DISAGREES = re.compile(r"(?<!of )\{len\([^}]*\)\} (inputs|outputs|cases|arrays|axes|files|models|nodes|runs)\b")


def test_counts_agree_with_their_nouns() -> None:
    found = [f"{path}: {each[0]}" for path in SOURCES for each in DISAGREES.finditer(path.read_text("utf-8"))]
    assert len(SOURCES) > 100
    assert not found


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.onnx", "x.pb"])
@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed], ids=lambda each: each.__name__)
def test_a_file_of_arrays_is_no_model(save: object, name: str, tmp_path: Path) -> None:
    assert callable(save)
    path = tmp_path / name
    with path.open("wb") as file:
        save(file, np.ones(3))
    with pytest.raises(ModelError, match=r"is a \.np[yz] .*, not an ONNX model.*--input NAME=FILE"):
        load(path)
