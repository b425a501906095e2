"""Read the explanations of clauses, each with a reason and an example, from clauses.toml."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from maxops.spec import Spec

IMPORTS = ("import numpy as np", "import maxops as mo")


@dataclass(frozen=True)
class Explanation:
    """The reason for a clause, and an example.

    The example is Python code or, if `is_model` is true, an ONNX model as text that breaks the clause. If `breaks` is
    true, the last line of the code raises an error that cites the clause.
    """

    why: str
    example: str
    is_model: bool
    breaks: bool

    def code(self, row: Spec) -> str:
        """Return the example as a Python program that uses the operator of a row, or as the text of a model."""
        if self.is_model:
            return self.example
        version = "" if row.version is None else f", version={row.version}"
        operator = f'mo.operator("{row.standard}", "{row.operator}"{version})' if row.url else f"mo.{row.operator}"
        is_named = re.search(r"\bop\b", self.example)
        return "\n".join([*IMPORTS, *([f"op = {operator}"] if is_named else []), self.example])


def without_version(clause: str) -> str:
    """Return the id of a clause without the version.

    >>> without_version("ONNX.ReduceMax-18.axes.range")
    'ONNX.ReduceMax.axes.range'
    """
    return re.sub(r"-\d+(?=\.)", "", clause)


@cache
def explanations() -> dict[str, Explanation]:
    """Return the explanations, keyed by clause ids without versions."""
    table = tomllib.loads(files("maxops").joinpath("clauses.toml").read_text(encoding="utf-8"))
    return {
        name: Explanation(
            " ".join(entry["why"].split()),
            (entry.get("example") or entry["model"]).strip("\n"),
            "model" in entry,
            entry.get("breaks", False),
        )
        for entry in table["clauses"]
        for name in entry["of"]
    }
