"""The row that `maxops.operator` returns for every version and opset, and its errors for all others."""

from __future__ import annotations

import inspect
import pydoc
import re
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import maxops as mo
from maxops import spec
from maxops.calls import MaxCall, ReduceCall, SegmentCall
from maxops.errors import UnknownOperatorError, VersionError
from maxops.typing import FillMode, OutOfRange, Ties

NAMES = sorted({(row.standard, row.operator) for row in (*spec.ALL, *spec.PLAIN)})
NOT_INTEGERS: list[Any] = ["13", 13.0, True, np.float64(13), np.bool(1), b"13", (13,), [13], 13j, np.array(13)]


def rows_of(standard: str, name: str) -> list[spec.Spec]:
    return [row for row in (*spec.ALL, *spec.PLAIN) if (row.standard, row.operator) == (standard, name)]


@pytest.mark.parametrize(("standard", "name"), NAMES)
def test_every_version_and_operator_set(standard: str, name: str) -> None:
    for number in (*range(-1, 30), 2**70):
        rows = rows_of(standard, name)
        versions = [row.version for row in rows if row.version is not None]
        newest = max((version for version in versions if version <= number), default=None)
        spellings: list[Any] = [number] if number >= 2**63 else [number, np.int64(number)]
        for spelled in spellings:
            if number in versions:
                assert mo.operator(standard, name, spelled).version == number
            else:
                with pytest.raises(UnknownOperatorError) as caught:
                    mo.operator(standard, name, spelled)
                expected = [str(version) for version in versions] if versions else ["has no versions", "omit it"]
                assert all(text in str(caught.value) for text in expected)
                assert (f"pass opset={number} to select {name}-{newest}" in str(caught.value)) == (newest is not None)
            if newest is not None:
                assert mo.operator(standard.upper(), name.lower(), opset=spelled).version == newest
            else:
                with pytest.raises(UnknownOperatorError, match=f"opset {number} has no" if versions else "omit it"):
                    mo.operator(standard, name, opset=spelled)


@pytest.mark.parametrize(("standard", "name"), NAMES)
def test_without_a_version(standard: str, name: str) -> None:
    rows = rows_of(standard, name)
    if len(rows) == 1:
        assert mo.operator(standard, name).spec is rows[0]
        return
    with pytest.raises(UnknownOperatorError, match="requires a version") as caught:
        mo.operator(standard, name)
    assert all(str(row.version) in str(caught.value) for row in rows)
    assert "opset=" in str(caught.value)


@pytest.mark.parametrize("argument", ["version", "opset"])
@pytest.mark.parametrize("name", [("ONNX", "Max"), ("SONNX", "Max"), ("no", "such")])
def test_a_version_that_is_not_an_integer(name: tuple[str, str], argument: str) -> None:
    for value in NOT_INTEGERS:
        with pytest.raises(VersionError) as caught:
            mo.operator(*name, **{argument: value})
        assert isinstance(caught.value, TypeError)
        assert (
            str(caught.value)
            == f"{argument} must be an integer, such as {argument}=13, got {value!r} of type {type(value).__name__}"
        )


def test_a_version_and_an_operator_set() -> None:
    with pytest.raises(VersionError, match="got both version 13 and opset 14; pass only one of them"):
        mo.operator("ONNX", "Max", 13, opset=14)


@pytest.mark.parametrize("of", mo.operators(), ids=repr)
def test_help_tells_what_an_operator_is(of: mo.Operator) -> None:
    of = type(of)(of.spec)
    text = pydoc.plain(pydoc.render_doc(of))
    assert of.spec.name in text
    assert vars(of)["__name__"] == of.spec.name
    signature = inspect.signature(of)
    if of.standard == "maxops":
        assert signature == inspect.signature(getattr(mo, of.name).__wrapped__)
    else:
        assert all(clause.id in text for clause in of.clauses)
        assert all(str(dtype) in text for dtype in of.types)
        assert [*signature.parameters][len(of.spec.inputs) or 1 :] == [*of.spec.attributes, "out"]
        required = {name for name, is_optional in of.spec.inputs if not is_optional} or {"inputs"}
        expected = required | {"fill_mode"} & {*of.spec.attributes}
        assert {name for name, each in signature.parameters.items() if each.default is each.empty} == expected
    assert repr(of) == f"<{of.standard} {of.spec.name}>"


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_repr_and_help_of_the_functions(name: str) -> None:
    function = getattr(mo, name)
    assert repr(function) == f"<function maxops.{name}>"
    assert str(inspect.signature(function.__wrapped__)) in pydoc.plain(pydoc.render_doc(function)).replace("'", "'")


def test_dir_is_what_is_public() -> None:
    assert dir(mo) == sorted(mo.__all__)
    assert all(hasattr(mo, name) for name in dir(mo))


# ------------------------------------------------------------------------------------- inputs and attributes

INPUTS = {"Max": 2, "ReduceMax": 1, "SegmentMax": 2}


@pytest.mark.parametrize("row", spec.ALL, ids=repr)
def test_an_input_given_as_an_attribute(row: spec.Spec) -> None:
    for position, (name, _) in enumerate(row.inputs):
        called: Any = mo.operator(row.standard, row.operator, row.version)
        with pytest.raises(mo.errors.AttributeValueError) as caught:
            called(*[np.zeros(1)] * position, **{name: np.zeros(1)})
        spelled = ", ".join(each for each, _ in row.inputs[: position + 1])
        number = ("first", "second", "third")[position]
        assert str(caught.value) == (
            f"{row.name} has no attribute {name!r}; pass it as the {number} positional argument: operator({spelled}) "
            f"[{row.clause('inputs')}]"
        )


AXES_AS_ATTRIBUTE = [row for row in spec.ALL if row.operator == "ReduceMax" and not row.axes_input]


@pytest.mark.parametrize("row", AXES_AS_ATTRIBUTE, ids=repr)
def test_an_attribute_given_as_an_input(row: spec.Spec) -> None:
    with pytest.raises(mo.errors.InputCountError, match=r"pass axes as an attribute, such as axes=\[0\]"):
        mo.operator(row.standard, row.operator, row.version)(np.zeros(1), np.array([0]))


# ------------------------------------------------------------------------------------------------ parameters

ARGUMENTS = Path(__file__).resolve().parents[2] / "native" / "bindings" / "arguments.def"


def name_of(parameter: spec.Parameter) -> str:
    """Return the parameter's name in signatures and documentation, where `maximum` has arrays instead of inputs."""
    return "arrays" if parameter.kind == "arrays" else parameter.name


@pytest.mark.parametrize("row", spec.PLAIN, ids=repr)
def test_a_signature_is_that_of_the_row(row: spec.Spec) -> None:
    """Test signatures, except the default of keepdims, which is None and depends on the name of the axes."""
    written = inspect.signature(getattr(mo, row.operator).__wrapped__).parameters.values()
    assert [(each.name, each.default) for each in written] == [
        (name_of(each), inspect.Parameter.empty if each.kind in ("array", "arrays") else each.default)
        for each in (replace(each, default=None) if each.name == "keepdims" else each for each in row.parameters)
    ]


@pytest.mark.parametrize("row", spec.PLAIN, ids=repr)
def test_the_core_has_the_parameters_of_the_row(row: spec.Spec) -> None:
    lines = re.findall(r"^MAXOPS_(\w+)_ARGUMENT\((\w+)\)$", ARGUMENTS.read_text(), re.MULTILINE)
    expected = [each.name for each in row.parameters if each.kind != "arrays"]
    assert [name for function, name in lines if function.lower() == row.operator] == expected


@pytest.mark.parametrize("row", [*spec.ALL, *spec.PLAIN], ids=repr)
def test_a_row_has_the_words_of_the_table(row: spec.Spec) -> None:
    not_of_the_command = {"inputs", "data", "segment_ids", "out", "dim", "ties"}
    if row.operator != "segment_max":
        not_of_the_command |= {"axis"}
    for clause in row.clauses:
        assert clause.level in get_args(spec.Level)
        assert re.fullmatch(r"[\w.-]+", clause.id)
    for each in row.parameters:
        assert each.kind in get_args(spec.Kind)
        assert bool(each.help) == (each.name not in not_of_the_command), each.name


@pytest.mark.parametrize("row", spec.PLAIN, ids=repr)
def test_each_parameter_has_a_clause_and_an_explanation(row: spec.Spec) -> None:
    document = getattr(mo, row.operator).__doc__
    for each in row.parameters:
        assert f"        {name_of(each)}: " in document
        assert row.has({"segment_ids": "ids", "data": "types"}.get(each.name, each.alias_of or each.name))


@pytest.mark.parametrize(
    ("alias", "row", "name"),
    [
        (Ties, spec.MAXIMUM, "ties"),
        (FillMode, spec.SEGMENT_MAX, "fill_mode"),
        (OutOfRange, spec.SEGMENT_MAX, "out_of_range"),
    ],
    ids=["ties", "fill_mode", "out_of_range"],
)
def test_an_annotation_has_the_words_of_the_row(alias: Any, row: spec.Spec, name: str) -> None:
    choices = row.choices(name)
    assert {*get_args(alias)} == {*choices, *(word.lower() for word in choices if word.isupper())}


@pytest.mark.parametrize(
    ("row", "request_of"), list(zip(spec.PLAIN, (MaxCall, ReduceCall, SegmentCall), strict=True)), ids=repr
)
def test_a_request_has_the_parameters_of_the_row(row: spec.Spec, request_of: Any) -> None:
    fields = [each for each in row.parameters if not each.alias_of]
    assert request_of._fields == (*(each.name for each in fields), "row")
    assert request_of._field_defaults == {
        each.name: each.default for each in fields if each.kind not in ("array", "arrays")
    } | {"row": row}


class Word(StrEnum):
    """A user-defined string enum."""

    EVEN = "even"


@pytest.mark.parametrize("ties", [np.str_("first"), Word.EVEN], ids=repr)
def test_words_of_any_class_of_str(ties: Any) -> None:
    x = np.ones(3, np.float32)
    assert mo.maximum(x, x, ties=ties).tolist() == [1, 1, 1]
    assert mo.reduce_max(x, ties=ties).tolist() == [1]
    assert mo.segment_max(x, np.array([0, 0, 1]), fill_mode="ZERO", ties=ties).tolist() == [1, 1]


@pytest.mark.parametrize("data", [np.array([1.0, 2.0]), np.array([Fraction(1), Fraction(2)])], ids=["native", "exact"])
def test_a_plain_operator_writes_into_out(data: Any) -> None:
    calls: dict[str, tuple[Any, Any, list[int]]] = {
        "maximum": ((data, data), {}, [1, 2]),
        "reduce_max": ((data,), {"keepdims": True}, [2]),
        "segment_max": ((data, np.array([0, 1])), {"fill_mode": "ZERO"}, [1, 2]),
    }
    for name, (inputs, attributes, expected) in calls.items():
        out = np.zeros(len(expected), data.dtype)
        assert mo.operator("maxops", name)(*inputs, out=out, **attributes) is out
        assert out.tolist() == expected
