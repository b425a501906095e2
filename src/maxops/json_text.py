"""Format compact JSON with one line for each entry, for readable diffs."""

from __future__ import annotations

import json
from collections.abc import Mapping


def in_lines(value: Mapping[str, object]) -> str:
    """Return a mapping as JSON, with one line for each entry of its lists and mappings.

    >>> print(in_lines({"format": 1, "cases": [{"id": "a"}, {"id": "b", "ratio": 2.5}]}))
    {
    "format":1,
    "cases":[
    {"id":"a"},
    {"id":"b","ratio":2.5}
    ]
    }
    """
    fields = []
    for name, field in value.items():
        if isinstance(field, dict) and field:
            entries = ",\n".join(f"{_dense(key)}:{_dense(each)}" for key, each in field.items())
            fields.append(f"{_dense(name)}:{{\n{entries}\n}}")
        elif isinstance(field, list) and field:
            entries = ",\n".join(map(_dense, field))
            fields.append(f"{_dense(name)}:[\n{entries}\n]")
        else:
            fields.append(f"{_dense(name)}:{_dense(field)}")
    return "{\n" + ",\n".join(fields) + "\n}"


def _dense(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
