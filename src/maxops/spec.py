"""The table of specifications: a row for each operator of each standard and version, and for each function of maxops.

A row lists dtypes, attributes and clauses. A clause summarizes one sentence of a source document, and cites its
section. The level "undecided" marks questions that the document leaves open and that maxops decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Literal

import numpy as np

from maxops import dtypes
from maxops.dtypes import DType
from maxops.errors import UnknownOperatorError, VersionError
from maxops.shown import shown

Level = Literal["must", "undecided"]
# The questions about values that a source may leave open: NaN propagation, the bits of NaN, and the order of zeros.
Open = Literal["NaN", "NaN's bits", "sign of zero"]


@dataclass(frozen=True)
class Clause:
    """A rule of a specification: its id, statement and source, and whether the source or maxops decides it."""

    id: str
    statement: str
    source: str
    level: Level = "must"


# The kind of a parameter's value: several arrays, one array, ids or offsets, a number of segments, one axis, several
# axes, names of dimensions, a flag, one of several strings, a scalar of the data's dtype, or an array for the result.
Kind = Literal["arrays", "array", "indices", "count", "axis", "axes", "dim", "flag", "choice", "scalar", "out"]


class NotGiven(Enum):
    """The default of a parameter for which None is a valid argument."""

    NOT_GIVEN = "<not given>"

    def __repr__(self) -> str:
        return str(self.value)


NOT_GIVEN = NotGiven.NOT_GIVEN


@dataclass(frozen=True)
class Parameter:
    """A parameter of `maximum`, `reduce_max` or `segment_max`: its kind, its default, and the statement of its clause.

    PyTorch's operator schemas and the command-line options are derived from the parameters. Tests compare them with the
    fields of requests (`maxops.calls`), with the signatures of the functions, and with the names in the native core
    (`arguments.def`).

    If `statement` is empty, one of the function's own rules is the clause of the parameter. In operators, a parameter
    with `is_input` is a positional input, and all other parameters are attributes. `alias_of` names the parameter that
    this parameter can replace, such as `axes` for `axis`. `help` is empty for parameters without a command-line option,
    such as `ties` and `dim`.
    """

    name: str
    kind: Kind
    default: Any = None
    statement: str = ""
    choices: tuple[str, ...] = ()
    is_input: bool = False
    alias_of: str = ""
    help: str = ""


SCATTERS = ("ScatterElements", "ScatterND")

_SONNX_PAGE = "https://github.com/onnx/working-groups/tree/main/safety-related-profile"
_PAGES = {
    "ONNX": "https://onnx.ai/onnx/operators/onnx__{name}.html#l-onnx-op-{anchor}",
    "SONNX": _SONNX_PAGE,
    "SONNX draft": _SONNX_PAGE,
    "OpenVINO": "https://docs.openvino.ai/nightly/documentation/openvino-ir-format/operation-sets/operation-specs/"
    "arithmetic/segment-max-16.html",
    "maxops": "",
}


@dataclass(frozen=True)
class Spec:
    """A row of the table: one version of an operator of a standard, or a function of maxops (a plain function).

    ``rules`` maps the short name of each clause to (statement, source, level). ``broadcast`` is "none" (equal shapes),
    "numpy", or "strict" (like "numpy", except that size 0 does not broadcast with size 1). ``index_dtypes`` are the
    dtypes of indices, of ids and num_segments, or of an array of axes. ``leaves_open`` lists the questions that the
    source leaves open and that the `nan` clause decides. Only plain functions have ``parameters``, and only operators
    of standards have ``inputs``.
    """

    standard: str
    operator: str
    version: int | None
    dtypes: tuple[DType, ...]
    rules: tuple[tuple[str, tuple[str, str, Level]], ...]
    index_dtypes: tuple[DType, ...] = ()
    attributes: tuple[str, ...] = ()
    axes_input: bool = False
    negative_axes: bool = True
    broadcast: Literal["none", "numpy", "strict"] = "numpy"
    explicit_types: bool = False
    leaves_open: frozenset[Open] = frozenset({"NaN", "NaN's bits", "sign of zero"})
    parameters: tuple[Parameter, ...] = ()
    _rules: dict[str, tuple[str, str, Level]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rules", dict(self.rules))

    def __repr__(self) -> str:
        return f"<{self.standard} {self.name}>"

    def __reduce__(self) -> tuple[Callable[..., Spec], tuple[Any, ...]]:
        """Pickle the row by name, because requests refer to rows and each row is a single object."""
        return find, (self.standard, self.operator, self.version)

    @property
    def name(self) -> str:
        """The operator with its version, such as "Max-13"."""
        return self.operator if self.version is None else f"{self.operator}-{self.version}"

    @property
    def url(self) -> str:
        """The URL of the specification, or "" for a plain function."""
        return _PAGES[self.standard].format(name=self.operator, anchor=f"{self.operator.lower()}-{self.version}")

    @property
    def inputs(self) -> tuple[tuple[str, bool], ...]:
        """The names of an operator's inputs, and whether each is optional. Max has no names for its inputs."""
        if self.operator == "ReduceMax":
            return (("data", False), ("axes", True))[: 1 + self.axes_input]
        if self.operator == "SegmentMax":
            return (("data", False), ("segment_ids", False), ("num_segments", True))
        if self.is_scatter:
            return (("data", False), ("indices", False), ("updates", False))
        return ()

    @property
    def is_scatter(self) -> bool:
        """Whether the operator is ONNX's ScatterElements or ScatterND."""
        return self.operator in SCATTERS

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses in the order of the table."""
        return tuple(self.rule(short) for short, _ in self.rules)

    def choices(self, name: str) -> tuple[str, ...]:
        """Return the strings that a parameter allows, given its name."""
        return next(each.choices for each in self.parameters if each.name == name)

    def rule(self, short: str) -> Clause:
        """Return the clause with the given short name."""
        return Clause(self.clause(short), *self._rules[short])

    def clause(self, *shorts: str) -> str:
        """Return the id of the first of these clauses that the row has, such as "ONNX.Max-13.T"."""
        for short in shorts:
            if self.has(short):
                return f"{self.standard.replace(' ', '-')}.{self.name}.{short}"
        raise KeyError(f"{self.standard} {self.name} has no clause {' or '.join(map(repr, shorts))}")

    def has(self, short: str) -> bool:
        """Return whether the row has a clause with the given short name."""
        return short in self._rules


def _evolve(row: Spec, rules: dict[str, tuple[str, str, Level]] | None = None, **changes: object) -> Spec:
    """Return the row of a later version: a copy with changed rules and fields."""
    merged = dict(row.rules) | (rules or {})
    return replace(row, rules=tuple(merged.items()), **changes)  # type: ignore[arg-type]


def _types(added: Iterable[DType], *, to: Spec | None = None) -> tuple[DType, ...]:
    """Return the added dtypes and those of a row, in the order of `dtypes.ALL`."""
    chosen = {*added, *(to.dtypes if to else ())}
    return tuple(dtype for dtype in dtypes.ALL if dtype in chosen)


_FLOATS = (dtypes.FLOAT16, dtypes.FLOAT32, dtypes.FLOAT64)
_SIGNED = (dtypes.INT8, dtypes.INT16, dtypes.INT32, dtypes.INT64)
_UNSIGNED = (dtypes.UINT8, dtypes.UINT16, dtypes.UINT32, dtypes.UINT64)
_INTEGERS = _SIGNED + _UNSIGNED

_ONNX_MAX = "ONNX Max"
_ONNX_REDUCE = "ONNX ReduceMax"
_SONNX = "SONNX Max"
_DRAFT = "SONNX draft Max"
_SEGMENT = "OpenVINO SegmentMax-16"

_NAN: tuple[str, str, Level] = (
    "NaN propagates, as the quiet NaN with sign 0 and payload 0; -0 < +0",
    "decided: the documents specify neither",
    "undecided",
)

# ------------------------------------------------------------------------------------------------ ONNX Max

MAX_1 = Spec(
    "ONNX",
    "Max",
    1,
    _FLOATS,
    (
        ("inputs", ("between 1 and 2147483647 inputs", f"{_ONNX_MAX}-1, Inputs", "must")),
        ("T", ("all inputs and the output have the same type, one of those listed", f"{_ONNX_MAX}-1, Summary", "must")),
        ("shape", ("all inputs and the output have the same shape", f"{_ONNX_MAX}-1, Summary", "must")),
        ("value", ("the element-wise maximum of the inputs", f"{_ONNX_MAX}-1, Summary", "must")),
        ("nan", _NAN),
        ("consumed_inputs", ("a legacy attribute, accepted and ignored", f"{_ONNX_MAX}-1, Attributes", "must")),
    ),
    attributes=("consumed_inputs",),
    broadcast="none",
)
MAX_6 = replace(
    MAX_1, version=6, attributes=(), rules=tuple(rule for rule in MAX_1.rules if rule[0] != "consumed_inputs")
)
MAX_8 = _evolve(
    MAX_6,
    {"shape": ("multidirectional (NumPy-style) broadcasting", f"{_ONNX_MAX}-8, Summary", "must")},
    version=8,
    broadcast="numpy",
)
MAX_12 = _evolve(MAX_8, version=12, dtypes=_types(_INTEGERS, to=MAX_8))
MAX_13 = _evolve(MAX_12, version=13, dtypes=_types([dtypes.BFLOAT16], to=MAX_12))

# ------------------------------------------------------------------------------------------- ONNX ReduceMax

REDUCE_MAX_1 = Spec(
    "ONNX",
    "ReduceMax",
    1,
    _types((*_FLOATS, dtypes.INT32, dtypes.INT64, dtypes.UINT32, dtypes.UINT64)),
    (
        ("inputs", ("one input, data", f"{_ONNX_REDUCE}-1, Inputs", "must")),
        (
            "T",
            (
                "the input has one of the listed types, and the output has the same type",
                f"{_ONNX_REDUCE}-1, Types",
                "must",
            ),
        ),
        ("axes", ("a list of integers: the axes to reduce", f"{_ONNX_REDUCE}-1, Attributes", "must")),
        ("axes.unique", ("no axis is repeated", "decided: the document does not specify this", "undecided")),
        (
            "axes.range",
            (
                "axes lie in 0..r-1, where r is the rank",
                "decided: version 1 does not mention negative axes",
                "undecided",
            ),
        ),
        ("axes.default", ("without axes, all axes are reduced", f"{_ONNX_REDUCE}-1, Attributes", "must")),
        (
            "keepdims",
            (
                "1 (the default) keeps the reduced axes with size 1, and 0 drops them",
                f"{_ONNX_REDUCE}-1, Attributes",
                "must",
            ),
        ),
        ("value", ("the maximum along the axes", f"{_ONNX_REDUCE}-1, Summary", "must")),
        ("nan", _NAN),
        (
            "empty",
            (
                "the maximum of no elements is -Inf for floats, and the lowest value for integers",
                "decided for versions before 20",
                "undecided",
            ),
        ),
    ),
    index_dtypes=(dtypes.INT64,),
    attributes=("axes", "keepdims"),
    negative_axes=False,
)
REDUCE_MAX_11 = _evolve(
    REDUCE_MAX_1,
    {"axes.range": ("axes lie in -r..r-1, where r is the rank", f"{_ONNX_REDUCE}-11, Attributes", "must")},
    version=11,
    negative_axes=True,
)
REDUCE_MAX_12 = _evolve(REDUCE_MAX_11, version=12, dtypes=_types([dtypes.INT8, dtypes.UINT8], to=REDUCE_MAX_11))
REDUCE_MAX_13 = _evolve(REDUCE_MAX_12, version=13, dtypes=_types([dtypes.BFLOAT16], to=REDUCE_MAX_12))
REDUCE_MAX_18 = _evolve(
    REDUCE_MAX_13,
    {
        "inputs": ("one or two inputs: data, and optionally axes", f"{_ONNX_REDUCE}-18, Inputs", "must"),
        "axes": ("an int64 list: the axes to reduce", f"{_ONNX_REDUCE}-18, Inputs", "must"),
        "axes.range": ("axes lie in -r..r-1, where r is the rank", f"{_ONNX_REDUCE}-18, Inputs", "must"),
        "axes.default": ("without axes, all axes are reduced", f"{_ONNX_REDUCE}-18, Inputs", "must"),
        "noop_with_empty_axes": (
            "without axes, 1 returns the input, and 0 (the default) reduces all axes",
            f"{_ONNX_REDUCE}-18, Attributes",
            "must",
        ),
    },
    version=18,
    attributes=("keepdims", "noop_with_empty_axes"),
    axes_input=True,
)
REDUCE_MAX_20 = _evolve(
    REDUCE_MAX_18,
    {
        "T": ("bool is also supported, with False < True", f"{_ONNX_REDUCE}-20, Types", "must"),
        "empty": (
            "the maximum of no elements is -Inf for floats, the lowest value for integers, and False for bool",
            "ONNX operator set 20",
            "must",
        ),
    },
    version=20,
    dtypes=_types([dtypes.BOOL], to=REDUCE_MAX_18),
)

# ------------------------------------------------------------------------------------------------ ONNX Scatter

# maxops supports only the reduction "max", which version 18 added.


def _scatter(name: str, indices: tuple[DType, ...], *rules: tuple[str, tuple[str, str, Level]], axis: bool) -> Spec:
    """Return the row of a scatter operator: its own rules, and those shared by both scatter operators."""
    where = f"ONNX {name}-18"
    kind = "int32 or int64" if dtypes.INT32 in indices else "int64"
    return Spec(
        "ONNX",
        name,
        18,
        _types((*_FLOATS, dtypes.BFLOAT16, *_INTEGERS, dtypes.BOOL)),
        (
            ("inputs", ("three inputs: data, indices and updates", f"{where}, Inputs", "must")),
            ("T", ("data, updates and the output have the same type", f"{where}, Types", "must")),
            ("data", ("data has rank 1 or more", f"{where}, Inputs", "must")),
            ("T_IDX", (f"indices is {kind}", f"{where}, Types", "must")),
            *rules,
            (
                "reduction",
                (
                    "reduction is max; maxops does not implement other reductions",
                    f"{where}, Attributes",
                    "must",
                ),
            ),
            ("shape", ("the output has the same shape as data", f"{where}, Summary", "must")),
            ("copy", ("an element without updates is copied from data", f"{where}, Summary", "must")),
            ("value", ("the maximum of an element of data and all of its updates", f"{where}, Summary", "must")),
            ("nan", _NAN),
        ),
        index_dtypes=indices,
        attributes=("axis", "reduction") if axis else ("reduction",),
    )


_ELEMENTS, _ND = (f"ONNX {name}-18" for name in SCATTERS)
SCATTER_ELEMENTS_18 = _scatter(
    "ScatterElements",
    (dtypes.INT32, dtypes.INT64),
    ("indices.shape", ("indices has the same rank as data", f"{_ELEMENTS}, Inputs", "must")),
    (
        "indices.size",
        (
            "except along axis, indices is no larger than data",
            "decided: the position of each index must exist in data",
            "undecided",
        ),
    ),
    ("updates.shape", ("updates has the same shape as indices", f"{_ELEMENTS}, Inputs", "must")),
    ("axis", ("an integer in -r..r-1, where r is the rank; 0 by default", f"{_ELEMENTS}, Attributes", "must")),
    ("indices", ("indices lie in -s..s-1, where s is the size of data along axis", f"{_ELEMENTS}, Inputs", "must")),
    axis=True,
)
SCATTER_ND_18 = _scatter(
    "ScatterND",
    (dtypes.INT64,),
    (
        "indices.shape",
        ("indices has rank 1 or more; its last size, k, is at most the rank of data", f"{_ND}, Summary", "must"),
    ),
    ("updates.shape", ("updates has the shape indices.shape[:-1] + data.shape[k:]", f"{_ND}, Summary", "must")),
    (
        "indices",
        (
            "indices lie in -s..s-1, where s is the size of the indexed axis of data",
            "decided: the document says that they 'are expected in the valid range'",
            "undecided",
        ),
    ),
    axis=False,
)

# --------------------------------------------------------------------------------------------------- SONNX

# Restrictions on every operator of the profile, from the page that SONNX's Max links to.
_RESTRICTIONS = "SONNX general restrictions"
_SONNX_GENERAL: tuple[tuple[str, tuple[str, str, Level]], ...] = (
    ("GR1", ("no tensor is sparse", f"{_RESTRICTIONS}, GR1", "must")),
    ("GR2", ("every numerical type is declared, and no type is inferred", f"{_RESTRICTIONS}, GR2", "must")),
    ("GR3", ("no type is converted implicitly", f"{_RESTRICTIONS}, GR3", "must")),
    ("GR4", ("no default values", f"{_RESTRICTIONS}, GR4", "must")),
)

SONNX_MAX = Spec(
    "SONNX",
    "Max",
    None,
    _types((*_FLOATS, *_INTEGERS, dtypes.REAL)),
    (
        ("L", ("L + 1 inputs, with L in [0, 2^31-1[: between 1 and 2147483647", f"{_SONNX}, Signature", "must")),
        (
            "T",
            ("all tensors have the same type: real, or a listed float or integer type", f"{_SONNX}, Contents", "must"),
        ),
        *_SONNX_GENERAL,
        ("static", ("shapes are static", "decided: C1 and C2 can be verified only for known shapes", "undecided")),
        ("opset", ("the model imports operator set 13 or later", f"{_SONNX}, Contents: based on Max-13", "must")),
        ("C1", ("the inputs shall be broadcastable", f"{_SONNX}, Inputs", "must")),
        ("C2", ("the broadcast inputs and the output have the same shape", f"{_SONNX}, Inputs", "must")),
        (
            "zero-size",
            (
                "an axis of size 0 does not broadcast with an axis of size 1",
                "decided: a literal reading of E1",
                "undecided",
            ),
        ),
        ("value", ("Inf > positive > 0 > -0 > negative > -Inf", f"{_SONNX}, float, Informal specification", "must")),
        ("NaN", ("NaN is an absorbing element", f"{_SONNX}, float, Informal specification", "must")),
        (
            "nan",
            (
                "a NaN result is the quiet NaN with sign 0 and payload 0",
                "decided: the document does not specify the bits",
                "undecided",
            ),
        ),
    ),
    broadcast="strict",
    explicit_types=True,
    leaves_open=frozenset({"NaN's bits"}),
)
SONNX_DRAFT_MAX = Spec(
    "SONNX draft",
    "Max",
    None,
    MAX_13.dtypes,
    (
        ("L", ("C1: between 1 and 2147483647 inputs", f"{_DRAFT}, Constraints", "must")),
        ("T", ("all tensors have one of the twelve listed types", f"{_DRAFT}, Max", "must")),
        ("C1", ("C2: NumPy's broadcasting rules shall be applicable", f"{_DRAFT}, Constraints", "must")),
        (
            "zero-size",
            ("RI, RJ...: along each axis, every size is 1 or the largest size", f"{_DRAFT}, Restrictions", "must"),
        ),
        ("value", ("an input element that is not lower than any other input element", f"{_DRAFT}, Properties", "must")),
        ("nan", _NAN),
    ),
    broadcast="strict",
)

# ------------------------------------------------------------------------------------------------ OpenVINO

SEGMENT_MAX_16 = Spec(
    "OpenVINO",
    "SegmentMax",
    16,
    _types((*_FLOATS, dtypes.BFLOAT16, *_INTEGERS)),
    (
        ("inputs", ("data, segment_ids and optionally num_segments", f"{_SEGMENT}, Inputs", "must")),
        ("T", ("data has any numerical type, and the output has the same type", f"{_SEGMENT}, Types", "must")),
        ("data", ("data has rank 1 or more", f"{_SEGMENT}, Inputs", "must")),
        ("T_IDX", ("segment_ids and num_segments are int32 or int64", f"{_SEGMENT}, Types", "must")),
        ("ids.shape", ("segment_ids is 1-D, with one id for each row of data", f"{_SEGMENT}, Inputs", "must")),
        ("ids", ("segment_ids are non-negative and sorted", f"{_SEGMENT}, Inputs", "must")),
        ("num_segments", ("a non-negative scalar", f"{_SEGMENT}, Inputs", "must")),
        ("num_segments.default", ("max(segment_ids) + 1", f"{_SEGMENT}, Inputs", "must")),
        (
            "num_segments.no_ids",
            ("without ids, the default is 0", "decided: without ids, there is no maximum", "undecided"),
        ),
        (
            "num_segments.smaller",
            ("segments with ids >= num_segments are omitted from the output", f"{_SEGMENT}, Inputs", "must"),
        ),
        ("num_segments.larger", ("the output is padded with empty segments", f"{_SEGMENT}, Inputs", "must")),
        ("fill_mode", ("required: ZERO or LOWEST, the value of empty segments", f"{_SEGMENT}, Attributes", "must")),
        (
            "lowest",
            (
                "LOWEST is the lowest finite value",
                "decided: the document says 'the lowest value of the type'",
                "undecided",
            ),
        ),
        ("shape", ("the shape of data, with the first axis replaced by num_segments", f"{_SEGMENT}, Outputs", "must")),
        ("value", ("the maximum of each segment", f"{_SEGMENT}, Detailed description", "must")),
        ("nan", _NAN),
    ),
    index_dtypes=(dtypes.INT32, dtypes.INT64),
    attributes=("fill_mode",),
)

ALL = (
    MAX_1,
    MAX_6,
    MAX_8,
    MAX_12,
    MAX_13,
    REDUCE_MAX_1,
    REDUCE_MAX_11,
    REDUCE_MAX_12,
    REDUCE_MAX_13,
    REDUCE_MAX_18,
    REDUCE_MAX_20,
    SCATTER_ELEMENTS_18,
    SCATTER_ND_18,
    SONNX_MAX,
    SONNX_DRAFT_MAX,
    SEGMENT_MAX_16,
)

# ------------------------------------------------------------------------------------- the plain functions

# The plain functions follow the newest version of each operator, and extend it with rules of maxops. The rules that
# they adopt from a standard are also clauses of maxops, so that errors of the plain functions never cite a standard.


def _as(row: Spec, short: str) -> tuple[str, tuple[str, str, Level]]:
    """Return a rule of a standard as a rule of a plain function."""
    statement, _, _ = dict(row.rules)[short]
    return short, (statement, f"as {row.clause(short)}", "must")


def _own(short: str, statement: str) -> tuple[str, tuple[str, str, Level]]:
    """Return a rule that only maxops has."""
    return short, (statement, "maxops", "must")


_PLAIN_NAN: tuple[str, tuple[str, str, Level]] = (
    "nan",
    (
        "NaN propagates, as the quiet NaN with sign 0 and payload 0; -0 < +0; nan='ignore' puts NaN below all numbers",
        "as SONNX.Max.NaN, and as IEEE 754-2019's maximumNumber",
        "must",
    ),
)
_TYPES = _own(
    "types",
    "all inputs and out have the same type: a listed float or integer type, bool, or exact rationals; arrays are never "
    "converted",
)
_SCALARS = _own(
    "scalars",
    "a Python scalar is converted to the type of the arrays: a float is rounded to nearest, and every other value must "
    "be exactly representable",
)
_ARRAYS = _own(
    "arrays",
    "a single engine supports all the arrays, without copying them to another device and without losing information",
)
_LABELS = _own("labels", "labels, column names and dimension names of the inputs are equal, and are never dropped")

_DATA = Parameter("data", "array", is_input=True)
_OUT = Parameter(
    "out", "out", None, "a writeable array of the result's type, shape and device; not supported by every engine"
)
_DIM = Parameter("dim", "dim", None, "names of dimensions instead of axis numbers; only for xarray")
_INITIAL = Parameter(
    "initial",
    "scalar",
    None,
    "a scalar of the data's type, or a Python scalar",
    help="Include this value in each maximum. The maximum of no elements is this value.",
)
_INDICES = Parameter(
    "return_indices",
    "flag",
    False,
    "1 also returns the index of the first element that equals each maximum, or -1 if no element equals it; the "
    "default is 0",
    help="Also return the indices of the maxima (argmax).",
)
_TIES = Parameter(
    "ties",
    "choice",
    "even",
    "'even' (the default) divides the gradient equally among tied elements, and 'first' assigns it to the first one",
    ("first", "even"),
)
_NAN_CHOICE = Parameter(
    "nan",
    "choice",
    "propagate",
    "",
    ("propagate", "ignore"),
    help="Propagate NaN, or ignore NaN, as skipna=True does in pandas.",
)


def _plain(
    name: str,
    parameters: tuple[Parameter, ...],
    rules: tuple[tuple[str, tuple[str, str, Level]], ...],
    index_dtypes: tuple[DType, ...] = (),
) -> Spec:
    """Return the row of a plain function: its rules, and the rules of its parameters."""
    return Spec(
        "maxops",
        name,
        None,
        dtypes.ALL,
        (*rules, *(_own(each.name, each.statement) for each in parameters if each.statement)),
        index_dtypes=index_dtypes,
        attributes=tuple(each.name for each in parameters if not each.is_input and each.kind != "out"),
        leaves_open=frozenset(),
        parameters=parameters,
    )


MAXIMUM = _plain(
    "maximum",
    (Parameter("inputs", "arrays", is_input=True), _OUT, _TIES, _NAN_CHOICE),
    (
        _as(MAX_13, "inputs"),
        _TYPES,
        _SCALARS,
        _ARRAYS,
        _LABELS,
        _as(MAX_13, "shape"),
        _as(MAX_13, "value"),
        _PLAIN_NAN,
    ),
)
REDUCE_MAX = _plain(
    "reduce_max",
    (
        _DATA,
        Parameter(
            "axes",
            "axes",
            None,
            "an integer, or a sequence or array of distinct integers: the axes to reduce, by ONNX's convention (axes) "
            "or NumPy's (axis)",
            help="Axes to reduce, such as 0,-1. Default: all axes.",
        ),
        Parameter(
            "keepdims",
            "flag",
            True,
            "1 keeps the reduced axes with size 1, and 0 drops them; the default is 1, or 0 with axis or dim",
            help="Keep the reduced axes with size 1.",
        ),
        Parameter("noop_with_empty_axes", "flag", False, help="Without axes, return the input unchanged."),
        _OUT,
        Parameter("axis", "axes", NOT_GIVEN, alias_of="axes"),
        _DIM,
        _INITIAL,
        _INDICES,
        _TIES,
        _NAN_CHOICE,
    ),
    (
        _TYPES,
        _SCALARS,
        _ARRAYS,
        _as(REDUCE_MAX_20, "axes.range"),
        _own("axes.default", "None and axes=() reduce all axes; axis=() reduces no axes"),
        _as(REDUCE_MAX_20, "noop_with_empty_axes"),
        _as(REDUCE_MAX_20, "value"),
        _PLAIN_NAN,
        _own(
            "empty",
            "the maximum of no elements is -Inf for floats, the lowest value for integers, and False for bool; for "
            "rationals, it is an error",
        ),
    ),
    index_dtypes=_INTEGERS,
)
SEGMENT_MAX = _plain(
    "segment_max",
    (
        _DATA,
        Parameter("segment_ids", "indices", is_input=True),
        Parameter("num_segments", "count", is_input=True, help="Number of segments. Default: the highest id + 1."),
        Parameter(
            "fill_mode",
            "choice",
            None,
            "the value of empty segments: ZERO, or LOWEST (the lowest finite value); required unless fill_value or "
            "initial is given",
            ("ZERO", "LOWEST"),
            help="Value of empty segments: ZERO, or LOWEST (finite). Alternatives: --fill-value and --initial.",
        ),
        Parameter(
            "fill_value",
            "scalar",
            None,
            "the value of empty segments: a scalar of the data's type, or a Python scalar",
            help="Value of empty segments, such as 7, nan or -inf.",
        ),
        _OUT,
        Parameter(
            "check_ids",
            "flag",
            True,
            "1 (the default) validates the values of ids and offsets, and 0 does not",
            help="Validate the ids or offsets. If validation is disabled, invalid ids or offsets produce wrong "
            "results.",
        ),
        Parameter(
            "offsets",
            "indices",
            None,
            "1-D, non-decreasing offsets from 0 to the number of rows, instead of segment_ids",
            help="File (.npy) with the offsets of the segments, instead of IDS.",
        ),
        Parameter(
            "sorted",
            "flag",
            True,
            "1 (the default) requires non-decreasing ids, and 0 allows ids in any order",
            help="Require non-decreasing ids.",
        ),
        Parameter(
            "out_of_range",
            "choice",
            None,
            "'error' or 'drop', for ids outside 0..num_segments-1; by default, the clauses ids and "
            "num_segments.smaller apply",
            ("error", "drop"),
            help="How to handle out-of-range ids. Default: error for unsorted ids; OpenVINO's behavior for sorted ids.",
        ),
        Parameter(
            "axis",
            "axis",
            0,
            "an integer in -r..r-1, 0 by default: the axis along which data is divided into rows",
            help="The axis along which DATA is divided into rows.",
        ),
        _DIM,
        replace(_INITIAL, statement=f"{_INITIAL.statement}; cannot be combined with fill_mode or fill_value"),
        _INDICES,
        Parameter(
            "return_empty",
            "flag",
            False,
            "1 also returns a mask of the empty segments; the default is 0",
            help="Also return a mask of the empty segments.",
        ),
        _TIES,
        _NAN_CHOICE,
    ),
    (
        _own("inputs", "data, and either segment_ids or offsets"),
        _TYPES,
        _SCALARS,
        _ARRAYS,
        _LABELS,
        _as(SEGMENT_MAX_16, "data"),
        _own("index_types", "segment_ids, offsets and num_segments have any integer type"),
        _own("ids.shape", "segment_ids is 1-D, with one id for each slice of data along axis"),
        _own("ids", "segment_ids are non-negative and, if sorted, non-decreasing"),
        _as(SEGMENT_MAX_16, "num_segments"),
        _own("num_segments.default", "max(segment_ids) + 1, or 0 without ids; with offsets, len(offsets) - 1"),
        _own(
            "num_segments.smaller",
            "rows with ids >= num_segments are dropped if ids are sorted, and raise an error otherwise",
        ),
        _as(SEGMENT_MAX_16, "num_segments.larger"),
        _own("shape", "the shape of data, with num_segments elements along axis"),
        _as(SEGMENT_MAX_16, "value"),
        _PLAIN_NAN,
    ),
    index_dtypes=_INTEGERS,
)
PLAIN = (MAXIMUM, REDUCE_MAX, SEGMENT_MAX)


def find(standard: str, operator: str, version: int | None = None, opset: int | None = None) -> Spec:
    """Return the row of an operator at a version, or at its newest version in an opset. Case does not matter.

    >>> find("ONNX", "Max", 8).name
    'Max-8'
    >>> find("onnx", "reducemax", opset=17).name
    'ReduceMax-13'
    """
    for name, value in (("version", version), ("opset", opset)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, np.integer))):
            raise VersionError(
                f"{name} must be an integer, such as {name}=13, got {shown(value)} of type {type(value).__name__}"
            )
    version, opset = (None if value is None else int(value) for value in (version, opset))
    if version is not None and opset is not None:
        raise VersionError(f"got both version {shown(version)} and opset {shown(opset)}; pass only one of them")
    every = (*ALL, *PLAIN)
    asked = tuple(name.casefold() if isinstance(name, str) else name for name in (standard, operator))
    known = [row for row in every if (row.standard.casefold(), row.operator.casefold()) == asked]
    if not known:
        operators = ", ".join(dict.fromkeys(f"{row.standard} {row.operator}" for row in every))
        raise UnknownOperatorError(
            f"unknown operator {shown(operator)} of standard {shown(standard)}; known operators: {operators}"
        )
    newest = known[0] if len(known) == 1 else None
    found = next((row for row in known if row.version == version), newest if version is None else None)
    if opset is not None:
        found = _newest(known, opset)
    if found is not None:
        return found
    name = f"{known[0].standard} {known[0].operator}"
    if known[0].version is None:
        named = f"version {shown(version)}" if opset is None else f"opset {shown(opset)}"
        raise UnknownOperatorError(f"{name} has no versions, got {named}; omit it")
    versions = ", ".join(str(row.version) for row in known)
    if opset is not None:
        raise UnknownOperatorError(f"opset {shown(opset)} has no {name}; known versions of {name}: {versions}")
    if version is None:
        raise UnknownOperatorError(
            f"{name} requires a version; pass version= with one of {versions}, or opset= to select the newest version "
            "in an opset"
        )
    in_set = _newest(known, version)
    hint = f"; pass opset={shown(version)} to select {in_set.name}" if in_set is not None else ""
    raise UnknownOperatorError(f"{name} has no version {shown(version)}; known versions: {versions}{hint}")


def _newest(rows: Iterable[Spec], opset: int) -> Spec | None:
    there = [row for row in rows if row.version is not None and row.version <= opset]
    return max(there, key=lambda row: row.version or 0, default=None)


def in_opset(operator: str, opset: int) -> Spec | None:
    """Return the ONNX row of an operator in an opset: the newest version up to that opset."""
    return _newest((row for row in ALL if row.standard == "ONNX" and row.operator == operator), opset)
