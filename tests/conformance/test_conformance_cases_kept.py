"""No case is lost or changed by accident: `case_digests.json` has digests for each family.

One digest covers all cases with the arrays of all trials. The other covers all cases with the arrays of every sixth
trial, which takes a sixth of the time.

To regenerate the file: python tests/conformance/test_conformance_cases_kept.py
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from itertools import chain, groupby
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from maxops.conformance.case import Case, Trial
from maxops.conformance.cases import FAMILIES, large
from maxops.plan import Array
from maxops.spec import Spec

DIGESTS = Path(__file__).parent / "case_digests.json"


def parts(value: Any) -> Any:
    """Return the content of a value in types whose text is the same on all machines."""
    if isinstance(value, Trial):  # one trial at a time, because all trials together have two million arrays
        arrays = [*chain(*value.feeds), *(value.expected or ()), *value.without_nan]
        lengths = [len(feed) for feed in value.feeds], value.expected is None, len(value.without_nan)
        return parts(value.call), lengths, of_arrays(arrays), value.layout
    if isinstance(value, np.ndarray):
        return of_arrays([value])
    if isinstance(value, (tuple, list)):
        return tuple(map(parts, value))
    if isinstance(value, Spec) or not is_dataclass(value):
        return repr(value)
    return tuple(parts(getattr(value, field.name)) for field in fields(value))


def of_arrays(arrays: list[Array]) -> Any:
    """Return the types, shapes and digests of arrays. Equal neighbors are counted."""
    alike = groupby(arrays, key=lambda each: (each.dtype, each.shape))
    contents = (repr(each.tolist()).encode() if each.dtype.hasobject else each.tobytes() for each in arrays)
    return (
        [(dtype.name, shape, sum(1 for _ in group)) for (dtype, shape), group in alike],
        hashlib.sha256(b"".join(contents)).hexdigest(),
    )


def trial_of(case: Case, family: ModuleType) -> Trial | None:
    """Return the trial of a case. Large cases are limited to one type, because all types take a minute."""
    return case.make() if family is not large or case.dtype.name == "float32" else None


STEPS = {"all": 1, "sixth": 6}


def digest(family: ModuleType, step: str) -> list[Any]:
    """Return the number of a family's cases, and their digest with the arrays of every `step`-th trial."""
    whole = hashlib.sha256()
    made: tuple[str, Any] = ("", None)
    count = trials = 0
    for case in family.cases():
        if case.trial_id != made[0]:  # cases with the same trial are adjacent
            is_made = trials % STEPS[step] == 0
            made = case.trial_id, parts(trial_of(case, family)) if is_made else None
            trials += 1
        whole.update(repr((case.id, case.refusal, case.quick, case.shared, made[1])).encode())
        count += 1
    return [count, whole.hexdigest()]


def name_of(family: ModuleType) -> str:
    return family.__name__.rpartition(".")[2]


@pytest.mark.parametrize("step", [pytest.param("all", marks=pytest.mark.exhaustive), "sixth"])
@pytest.mark.parametrize("family", FAMILIES, ids=name_of)
def test_cases_are_what_they_were(family: ModuleType, step: str) -> None:
    kept = json.loads(DIGESTS.read_text(encoding="utf-8"))[name_of(family)][step]
    assert digest(family, step) == kept, f"if that is meant, write them again: python {Path(__file__).name}"


if __name__ == "__main__":
    written = {name_of(family): {step: digest(family, step) for step in STEPS} for family in FAMILIES}
    DIGESTS.write_text(json.dumps(written, indent=2) + "\n", encoding="utf-8")
