"""Reads and writes files of runs. The error for an invalid file is one line that names the file and the field."""

from __future__ import annotations

import json
import re
import types
from collections.abc import Iterator, Sequence
from math import isfinite, prod
from pathlib import Path
from typing import Any, Literal, NoReturn, Union, get_args, get_origin, get_type_hints, is_typeddict

from maxops import dtypes
from maxops.atomic_files import write_text
from maxops.conformance.bounds import Bounds
from maxops.conformance.ids import case_name, clause_name
from maxops.conformance.result import NO_FINDING, SCHEMA, Run
from maxops.errors import RunFileError
from maxops.json_text import in_lines

_JSON_NAMES = {str: "a string", int: "an integer", float: "a number", bool: "true or false", types.NoneType: "null"}


def read(path: Path) -> list[Run]:
    """Return the runs in a file, which contains one run or a list of runs of several runtimes."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror}") from error
    return parse(data, str(path))


def parse(data: bytes, source: str) -> list[Run]:
    """Parse the runs in the content of a file. Error messages name `source`."""
    try:
        found = json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
    except UnicodeDecodeError as error:
        raise RunFileError(f"{source} is not valid JSON: byte {error.start} is not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise RunFileError(f"{source} is not valid JSON: {error}") from error
    if not isinstance(found, list):
        return [_run(found, source)]
    if not found:
        raise RunFileError(f"{source} is an empty list; expected runs of maxops conform")
    return [_run(each, f"{source}: run {number}") for number, each in enumerate(found)]


def write(path: Path, runs: Sequence[Run]) -> None:
    """Write one run as an object, and several runs as a list."""
    write_text(path, as_text(runs))


def as_text(runs: Sequence[Run]) -> str:
    """Return the text of a file. Equal runs have equal texts. Each case, finding and reproducer has its own line."""
    texts = [in_lines(run) for run in runs]
    return (texts[0] if len(texts) == 1 else "[\n" + ",\n".join(texts) + "\n]") + "\n"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"{text} is too large")
    return number


def _run(found: Any, where: str) -> Run:
    if not isinstance(found, dict) or "schema" not in found:
        raise RunFileError(f'{where} is not a run of maxops conform; expected an object with "schema": {SCHEMA}')
    if found["schema"] != SCHEMA:
        raise RunFileError(
            f"{where} has schema {found['schema']!r}, but this version of maxops reads schema {SCHEMA}; "
            "run maxops conform again"
        )
    fault = _fault(found, Run, "") or _fault_of_kit(found["kit"]) or _mismatch(found)
    if fault:
        raise RunFileError(f"{where}: {fault}")
    run: Run = found  # type: ignore[assignment]
    return run


def _fault_of_kit(kit: dict[str, Any]) -> str:
    """Return the type error of the fields that reports show as sentences, or "". Runs of older versions lack them."""
    fields = {"repeats": int, "bounds": dict[str, Bounds]}
    return next(
        filter(None, (_fault(kit[name], hint, f"kit.{name}") for name, hint in fields.items() if name in kit)), ""
    )


def _mismatch(run: dict[str, Any]) -> str:
    """Return a fault that type checks do not detect, such as a reference without a target."""
    try:
        for case in run["cases"]:
            clause_name(case_name(case).clause)
        for clause in run["clauses"]:
            clause_name(clause)
    except RunFileError as error:
        return str(error)
    reported = {finding["case"] for finding in run["findings"]}
    for case, verdict in run["cases"].items():
        if (case in reported) == (verdict in NO_FINDING):
            entry = "an entry" if case in reported else "no entry"
            return f"cases[{case!r}] is {verdict!r}, but findings has {entry} for it"
    if len(reported) != len(run["findings"]):
        return "findings has several entries for one case"
    for number, finding in enumerate(run["findings"]):
        where, case, verdict = f"findings[{number}]", finding["case"], finding["verdict"]
        if run["cases"].get(case) != verdict:
            return f"{where}.verdict is {verdict!r}, but cases has {run['cases'].get(case, 'no entry')!r} for {case!r}"
        if finding["clause"] not in run["clauses"]:
            return f"{where}.clause is {finding['clause']!r}, which is not in clauses"
        if finding["reproducer"] is not None and not 0 <= finding["reproducer"] < len(run["reproducers"]):
            return f"{where}.reproducer is {finding['reproducer']}, but there are {len(run['reproducers'])} reproducers"
    for where, array in _arrays(run):
        if fault := _fault_of_array(array):
            return f"{where} {fault}"
    return ""


def _fault_of_array(array: dict[str, Any]) -> str:
    """Return the fault of an array, such as bits that do not fit its type, or ""."""
    shape, bits = array["shape"], array["bits"]
    size = prod(shape)
    if min(shape, default=0) < 0:
        return f"has shape {shape}; sizes must not be negative"
    if len(array["values"]) != size or len(bits) not in (0, size):
        counts = f"{len(array['values'])} values and {len(bits)} bits"
        return f"has shape {shape} with {counts}; expected {size} of each, or no bits"
    if not bits:
        return ""
    dtype = dtypes.BY_NAME.get(array["type"])
    if dtype is None or dtype is dtypes.REAL:
        return f"has bits of the unknown type {array['type']!r}"
    pattern = re.compile(f"[0-9A-F]{{{dtype.bits // 4}}}")
    odd = next((each for each in bits if not pattern.fullmatch(each)), None)
    return "" if odd is None else f"has bits {odd!r}; expected {dtype.bits // 4} digits from 0-9 and A-F for {dtype}"


def _arrays(run: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for part in ("findings", "reproducers"):
        for number, each in enumerate(run[part]):
            inputs = each.get("inputs", {}) | {"expected": each["expected"], "actual": each["actual"]}
            for name, found in inputs.items():
                if "text" not in found:
                    yield f"{part}[{number}].{name}", found


def _fault(value: Any, hint: Any, where: str) -> str:
    """Return the type error of a value with its location, or ""."""
    if hint is Any:
        return ""
    if is_typeddict(hint):
        return _fault_of_object(value, get_type_hints(hint), where)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Literal:
        return "" if value in inner else _type_error(value, where, f"one of {', '.join(map(str, inner))}")
    if origin in (Union, types.UnionType):
        faults = [_fault(value, each, where) for each in inner]
        return "" if "" in faults else faults[-1]
    if origin is list:
        if not isinstance(value, list):
            return _type_error(value, where, "a list")
        return next(filter(None, (_fault(each, inner[0], f"{where}[{i}]") for i, each in enumerate(value))), "")
    if origin is dict:
        if not isinstance(value, dict):
            return _type_error(value, where, "an object")
        return next(filter(None, (_fault(each, inner[1], f"{where}[{key!r}]") for key, each in value.items())), "")
    is_bool = isinstance(value, bool)  # a bool is also an int
    is_valid = hint is bool if is_bool else isinstance(value, (int, float) if hint is float else hint)
    return "" if is_valid else _type_error(value, where, _JSON_NAMES[hint])


def _fault_of_object(value: Any, fields: dict[str, Any], where: str) -> str:
    if not isinstance(value, dict):
        return _type_error(value, where, f"an object with {', '.join(fields)}")
    for name, hint in fields.items():
        inside = f"{where}.{name}" if where else name
        if name not in value:
            return f"{inside} is missing"
        if fault := _fault(value[name], hint, inside):
            return fault
    return ""


def _type_error(value: Any, where: str, expected: str) -> str:
    text = json.dumps(value)
    return f"{where or 'the run'} is {text if len(text) <= 60 else text[:60] + '...'}; expected {expected}"
