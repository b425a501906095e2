"""The claim that the ONNX rows of the table `maxops.spec` agree with the schemas of the onnx package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from claims import Check, Claim, require_this_tree

if TYPE_CHECKING:
    from maxops.dtypes import DType
    from maxops.spec import Spec

Key = tuple[str, int, str]  # operator, version, and what is compared

OPERATORS = ("Max", "ReduceMax")
SCATTERS, FIRST_WITH_MAX = ("ScatterElements", "ScatterND"), 18  # the first version with the reduction "max"
FILES = (
    "proofs/claims.py", "proofs/tables/__init__.py",
    *(f"src/maxops/{name}.py" for name in ("spec", "calls", "dtypes", "plan/max")),
)  # fmt: skip
# The intended differences between rows and their schemas. All other differences are errors, and so are intended
# differences that do not exist.
ON_PURPOSE: dict[Key, tuple[Any, Any]] = {}


def python_packages() -> set[str]:
    """Return the Python packages that must be installed for this check."""
    return set() if find_spec("onnx") else {"maxops[cli]"}


def claim() -> Claim:
    """Compare all ONNX rows with their schemas, and return the claim."""
    require_this_tree()
    compared = list(_compared())
    differ = {key: (ours, theirs) for key, ours, theirs in compared if ours != theirs}
    found = [_words(key, *pair) for key, pair in differ.items() if ON_PURPOSE.get(key) != pair]
    found += [
        f"{_words(key, *pair)}: expected this difference" for key, pair in ON_PURPOSE.items() if differ.get(key) != pair
    ]
    return Claim(
        "tables.onnx",
        "each ONNX row of the spec table has the version, types, attributes, defaults and numbers of inputs of its "
        "schema",
        "exhaustive", f"onnx {version('onnx')}", FILES, len(compared), tuple(found), len(compared),
        f"every version of {' and '.join(OPERATORS)} in the package, and of {' and '.join(SCATTERS)} from version "
        f"{FIRST_WITH_MAX} on",
        "the schemas state what ONNX specifies; rules that they state only in prose are not compared",
    )  # fmt: skip


CHECKS = (Check("tables.onnx", claim),)


def _words(key: Key, ours: Any, theirs: Any) -> str:
    return f"{key[0]}-{key[1]}, {key[2]}: {ours}, but the schema has {theirs}"


def _compared() -> Iterator[tuple[Key, Any, Any]]:
    """Yield each fact to compare, with its value in the row and its value in the schema."""
    from onnx import defs, helper  # noqa: PLC0415

    from maxops import spec  # noqa: PLC0415

    rows = {(row.operator, row.version or 0): row for row in spec.ALL if row.standard == "ONNX"}
    every = [schema for schema in defs.get_all_schemas_with_history() if schema.domain == ""]
    versions = {(schema.name, schema.since_version) for schema in every if _is_maximum(schema)}
    for of in sorted({*rows, *versions}):
        yield (*of, "is there"), of in rows, of in versions
    for of in sorted(rows.keys() & versions):
        row, schema = rows[of], defs.get_schema(*of)
        yield (*of, "in force in its operator set"), spec.in_opset(*of) is row, schema.since_version == of[1]
        types = {name for name in _types(schema, "T") if "complex" not in name and "string" not in name}
        yield (*of, "types"), _tensors(row.dtypes), types
        yield (*of, "names of types"), {f"tensor({dtype.onnx})" for dtype in row.dtypes}, types
        yield (*of, "types of data and result"), ("T", "T"), (schema.inputs[0].type_str, schema.outputs[0].type_str)
        yield (*of, "numbers of inputs"), _inputs(row), (schema.min_input, schema.max_input)
        yield (*of, "attributes"), {*row.attributes}, {*schema.attributes}
        for name, attribute in schema.attributes.items():
            value = attribute.default_value
            default = helper.get_attribute_value(value) if value.name else None
            default = default.decode() if isinstance(default, bytes) else default
            yield (
                (*of, f"{name}: required, and its default"),
                (False, _default(row, name)),
                (attribute.required, default),
            )
        if len(schema.inputs) > 1:
            yield (*of, "types of indices"), _tensors(row.index_dtypes), _types(schema, schema.inputs[1].type_str)


def _is_maximum(schema: Any) -> bool:
    """Return whether an operator computes maxima, always or with the reduction "max"."""
    of_reduction = schema.name in SCATTERS and schema.since_version >= FIRST_WITH_MAX
    return schema.name in OPERATORS or of_reduction


def _types(schema: Any, name: str) -> set[str]:
    """Return the allowed types of a type parameter such as "T". If `name` is a type itself, return this type."""
    return next(({*each.allowed_type_strs} for each in schema.type_constraints if each.type_param_str == name), {name})


def _tensors(types: Iterable[DType]) -> set[str]:
    """Return ONNX's names of tensors with these dtypes, such as "tensor(float)"."""
    from onnx import TensorProto, helper  # noqa: PLC0415

    numbers = [helper.np_dtype_to_tensor_dtype(dtype.numpy) for dtype in types]
    return {f"tensor({TensorProto.DataType.Name(number).lower()})" for number in numbers}


def _inputs(row: Spec) -> tuple[int, int]:
    from maxops.plan import MOST_INPUTS  # noqa: PLC0415

    if row.is_scatter:
        return (3, 3)
    return (1, MOST_INPUTS if row.operator == "Max" else 1 + row.axes_input)


def _default(row: Spec, name: str) -> Any:
    """Return maxops's default value of an attribute."""
    from maxops.calls import MaxCall, ReduceCall, ScatterCall  # noqa: PLC0415

    call = {"Max": MaxCall, "ReduceMax": ReduceCall}.get(row.operator, ScatterCall)
    return call._field_defaults.get(name)
