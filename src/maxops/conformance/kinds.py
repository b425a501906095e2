"""Groups findings of one kind across versions and types. Reports show each kind as a row of a table.

Two findings are of one kind if they have the same verdict and clause (in any version), and look alike: for example, a
zero with the wrong sign, a number instead of a NaN, or an error of the same class. The smallest calls of the
findings are compared.
"""

from __future__ import annotations

from dataclasses import dataclass

from maxops import dtypes
from maxops.conformance.groups import Group, groups
from maxops.conformance.ids import Row, clause_name, row, sort_key
from maxops.conformance.result import Elements, Finding, Message, Run, Verdict
from maxops.conformance.wording import BY_SEVERITY, first_difference

# Grouped only by clause, because details such as the exit status may differ from call to call.
_BY_CLAUSE: tuple[Verdict, ...] = ("crashes", "uninitialized memory", "corrupted state", "hangs", "missing error")
LARGE = 1 << 32  # assumed number of elements of an input that is described only in words


@dataclass(frozen=True)
class Kind:
    """Groups of findings with the same verdict and clause that look alike."""

    verdict: Verdict
    row: Row
    groups: tuple[Group, ...]

    @property
    def findings(self) -> list[Finding]:
        """Return all findings of the kind."""
        return [finding for group in self.groups for finding in group.findings]

    @property
    def versions(self) -> list[int]:
        """The affected versions of the operator."""
        found = {clause_name(group.clause).version for group in self.groups}
        return sorted(version for version in found if version is not None)

    @property
    def types(self) -> list[str]:
        """The affected types, in the order of the type table."""
        found = {each for group in self.groups for each in group.types}
        return [*(name for name in dtypes.BY_NAME if name in found), *sorted(found - dtypes.BY_NAME.keys())]

    @property
    def operator(self) -> str:
        """The operator with its versions: "ONNX Max 12, 13"."""
        versions = ", ".join(map(str, self.versions))
        return f"{self.row.standard} {self.row.operator} {versions}".rstrip()

    @property
    def smallest(self) -> Group:
        """The group to show: the one with the smallest call, in the newest version."""
        return min(self.groups, key=size)


def kinds(run: Run) -> list[Kind]:
    """Return the kinds by severity, with permitted differences last, then in the order of the spec table."""
    every = groups(run)
    missing = _missing_types(every)
    found: dict[tuple[Verdict, Row, object], list[Group]] = {}
    for group in every:
        of = row(group.clause)
        appearance = [missing[of, each] for each in group.types] if _is_missing_type(group) else _appearance(group)
        found.setdefault((group.verdict, of, repr(appearance)), []).append(group)
    made = [Kind(verdict, of, tuple(members)) for (verdict, of, _), members in found.items()]
    return sorted(made, key=lambda kind: (BY_SEVERITY.index(kind.verdict), sort_key(kind.row)))


def _is_missing_type(group: Group) -> bool:
    return group.verdict == "refuses" and row(group.clause).short == "T"


def _missing_types(every: list[Group]) -> dict[tuple[Row, str], list[int]]:
    """Return the versions in which each type is missing. Only types with the same versions are merged."""
    found: dict[tuple[Row, str], list[int]] = {}
    for group in filter(_is_missing_type, every):
        for each in group.types:
            found.setdefault((row(group.clause), each), []).append(clause_name(group.clause).version or 0)
    return {key: sorted(set(versions)) for key, versions in found.items()}


def size(group: Group) -> tuple[bool, int, int]:
    """Return a sort key of groups: those with a script first, then by number of elements, then newest version first."""
    version = clause_name(group.clause).version or 0
    if group.reproducer is None or not group.reproducer["script"]:
        return True, 0, -version
    inputs = group.reproducer["inputs"].values()
    return False, sum(LARGE if "text" in each else len(each["values"]) for each in inputs), -version


def _appearance(group: Group) -> object:
    """Return the key that groups of one kind share."""
    if group.verdict in _BY_CLAUSE:
        return None
    expected, actual = group.expected, group.actual
    if "text" in actual:
        return actual["text"].partition(":")[0][:60]
    return _difference(expected, actual)


def _difference(expected: Elements | Message, actual: Elements) -> object:
    if "text" in expected:
        return "an answer"
    if expected["type"] != actual["type"]:
        return "type"
    if expected["shape"] != actual["shape"]:
        return "shape"
    number = first_difference(expected, actual)
    dtype = dtypes.BY_NAME.get(expected["type"])
    if dtype is None or dtype.kind != "float" or number is None:
        return "float" if dtype is not None and dtype.kind == "float" else "no float"
    expected_class, actual_class = (
        float_class(int(each["bits"][number], 16), dtype).replace("subnormal", "number") for each in (expected, actual)
    )
    return expected_class, actual_class if expected_class != "NaN" or actual_class == "NaN" else "number"


def float_class(word: int, dtype: dtypes.DType) -> str:
    """Return the class of a float from its bits.

    >>> [float_class(word, dtypes.FLOAT32) for word in (0x80000000, 0x7FC00000, 1, 0x3F800000)]
    ['-0', 'NaN', 'subnormal', 'number']
    """
    magnitude = word & (1 << dtype.bits - 1) - 1
    if magnitude > dtype.infinity_bits:
        return "NaN"
    if magnitude == 0:
        return "-0" if word else "+0"
    if magnitude < 1 << dtype.mantissa_bits:
        return "subnormal"
    extremes = {dtype.infinity_bits: "infinity", dtype.infinity_bits - 1: "last finite"}
    return extremes.get(magnitude, "number")
