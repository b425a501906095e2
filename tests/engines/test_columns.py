"""Columns and tables of pandas, Polars and Arrow: results of the same kind, or an error with the next step."""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array, assert_same_bits
from maxops.errors import DTypeError, ShapeError

BIG = 2**53 + 1  # float64 rounds it
ONE, TWO = np.array([1, BIG]), np.array([[1, 2], [BIG, 3]])
BOTH = {"a": ONE, "b": np.array([2, 3])}
Make = Callable[[Any], Any]


def _arrow(name: str, *words: int) -> Any:
    return getattr(pytest.importorskip("pyarrow"), name)(*words)


def _polars_arrays(pl: Any) -> Any:
    return pl.Series(TWO.tolist(), dtype=pl.Array(pl.Int64, 2))


# For each library: a function that makes a column or a table, and its elements.
EXACT: dict[str, dict[str, tuple[Make, Array]]] = {
    "pandas": {
        "int64": (lambda pd: pd.Series(ONE), ONE),
        "Int64": (lambda pd: pd.Series(ONE, dtype="Int64"), ONE),
        "int64[pyarrow]": (lambda pd: pd.Series(ONE, dtype="int64[pyarrow]"), ONE),
        "array-of-Int64": (lambda pd: pd.array(ONE, dtype="Int64"), ONE),
        "UInt64": (lambda pd: pd.Series([2**64 - 1], dtype="UInt64"), np.array([2**64 - 1], np.uint64)),
        "boolean": (lambda pd: pd.Series([True, False], dtype="boolean"), np.array([True, False])),
        "Float32": (lambda pd: pd.Series([1.5, 2], dtype="Float32"), np.array([1.5, 2], np.float32)),
        "float64-with-NaN": (lambda pd: pd.Series([1.5, np.nan]), np.array([1.5, np.nan])),
        "float16": (lambda pd: pd.Series(np.array([1, 2], np.float16)), np.array([1, 2], np.float16)),
        "sparse": (lambda pd: pd.Series(ONE).astype(pd.SparseDtype("int64", 0)), ONE),
        "sparse-with-NaN": (lambda pd: pd.Series([1.5, np.nan], dtype="Sparse[float]"), np.array([1.5, np.nan])),
        "index": (lambda pd: pd.Index(ONE), ONE),
        "table": (lambda pd: pd.DataFrame(BOTH), TWO),
        "table-of-Int64": (lambda pd: pd.DataFrame(BOTH, dtype="Int64"), TWO),
        "table-of-int64-and-Int64": (lambda pd: pd.DataFrame(BOTH).astype({"b": "Int64"}), TWO),
        "table-of-int64[pyarrow]": (lambda pd: pd.DataFrame(BOTH).astype("int64[pyarrow]"), TWO),
        "table-of-columns-of-one-name": (lambda pd: pd.DataFrame(TWO, columns=["a", "a"]), TWO),
    },
    "polars": {
        "Int64": (lambda pl: pl.Series(ONE), ONE),
        "in-chunks": (lambda pl: pl.concat([pl.Series([1]), pl.Series([BIG])], rechunk=False), ONE),
        "Boolean": (lambda pl: pl.Series([True, False]), np.array([True, False])),
        "Float32-with-NaN": (
            lambda pl: pl.Series([1.5, np.nan], dtype=pl.Float32),
            np.array([1.5, np.nan], np.float32),
        ),
        "UInt8": (lambda pl: pl.Series([1, 2], dtype=pl.UInt8), np.array([1, 2], np.uint8)),
        "arrays-of-a-size": (_polars_arrays, TWO),
        "table": (lambda pl: pl.DataFrame(BOTH), TWO),
    },
    "pyarrow": {
        "int64": (lambda pa: pa.array(ONE), ONE),
        "a-slice": (lambda pa: pa.array([None, 1, BIG])[1:], ONE),
        "in-chunks": (lambda pa: pa.chunked_array([[1], [], [BIG]]), ONE),
        "bool": (lambda pa: pa.array([True, False]), np.array([True, False])),
        "halffloat": (lambda pa: pa.array(np.array([1, 2], np.float16)), np.array([1, 2], np.float16)),
        "float-with-NaN": (lambda pa: pa.array([1.5, np.nan], pa.float32()), np.array([1.5, np.nan], np.float32)),
        "table": (lambda pa: pa.table(BOTH), TWO),
        "record-batch": (lambda pa: pa.record_batch(BOTH), TWO),
    },
}
SOME = {"a": [1, None], "b": [None, None]}
THREE = "contains 3 nulls, which NumPy arrays cannot represent; fill them .* or drop them"
NULLS = r"contains 1 null, which NumPy arrays cannot represent; fill it .* or drop it"
SEVERAL = r"has columns of different dtypes, int64 in column 'a', float64 in column 'b'; select columns of"
MIXED = {"a": ONE, "b": np.array([2.5, 3])}
NO_TYPE = "; convert it to numbers: text to ids"
ALONE = (
    r"has unsupported dtype Array\(Int64, shape=\(2,\)\) in column 'a', .*; pass the column alone, such as table\['a'\]"
)
REFUSED: dict[str, dict[str, tuple[Make, str]]] = {
    "pandas": {
        "Int64-null": (lambda pd: pd.Series([1, None, BIG], dtype="Int64"), NULLS),
        "int64[pyarrow]-null": (lambda pd: pd.Series([1, None, BIG], dtype="int64[pyarrow]"), NULLS),
        "boolean-null": (lambda pd: pd.Series([True, None], dtype="boolean"), NULLS),
        "Float64-null": (lambda pd: pd.Series([1.5, None], dtype="Float64"), NULLS),
        "array-null": (lambda pd: pd.array([1, None]), NULLS),
        "index-null": (lambda pd: pd.Index([1, None], dtype="Int64"), NULLS),
        "table-null": (lambda pd: pd.DataFrame(BOTH, dtype="Int64").replace(3, pd.NA), NULLS),
        "table-nulls": (lambda pd: pd.DataFrame(SOME, dtype="Int64"), THREE),
        "table-nulls-of-float": (lambda pd: pd.DataFrame(SOME, dtype="Float32"), THREE),
        "table-nulls[pyarrow]": (lambda pd: pd.DataFrame(SOME, dtype="int64[pyarrow]"), THREE),
        "table-of-several-types": (lambda pd: pd.DataFrame(MIXED), SEVERAL),
        "table-of-two-widths": (lambda pd: pd.DataFrame(BOTH).astype({"b": "int32"}), "int32 in column 'b'"),
        "table-of-bool-and-int": (lambda pd: pd.DataFrame(BOTH).astype({"b": "bool"}), "bool in column 'b'"),
        "table-of-text": (lambda pd: pd.DataFrame({"a": ["x"], "b": [1]}), f"in column 'a'{NO_TYPE}"),
        "table-without-columns": (lambda pd: pd.DataFrame(), "has no columns, and therefore no dtype"),
        "text": (lambda pd: pd.Series(["a"]), NO_TYPE),
        "categories": (lambda pd: pd.Series([3, 1]).astype("category"), f"has unsupported dtype category{NO_TYPE}"),
        "times": (lambda pd: pd.Series(pd.to_datetime(["2020"])), NO_TYPE),
        "times-in-a-zone": (lambda pd: pd.Series(pd.to_datetime(["2020"], utc=True)), NO_TYPE),
        "text[pyarrow]": (lambda pd: pd.Series(["a"], dtype=pd.ArrowDtype(_arrow("string"))), NO_TYPE),
        "decimals[pyarrow]": (
            lambda pd: pd.Series([decimal.Decimal("1.5")], dtype=pd.ArrowDtype(_arrow("decimal128", 5, 2))),
            NO_TYPE,
        ),
        "intervals": (lambda pd: pd.Series(pd.interval_range(0, 2)), NO_TYPE),
    },
    "polars": {
        "null": (lambda pl: pl.Series([1, None, BIG]), NULLS),
        "Boolean-null": (lambda pl: pl.Series([True, None]), NULLS),
        "Float64-null": (lambda pl: pl.Series([1.5, None]), NULLS),
        "null-in-an-array": (lambda pl: pl.Series([[1.5, None]], dtype=pl.Array(pl.Float64, 2)), NULLS),
        "null-in-an-array-of-arrays": (lambda pl: pl.Series([[[1], [None]]], dtype=pl.Array(pl.Int8, (2, 1))), NULLS),
        "nothing-but-nulls": (lambda pl: pl.Series([None]), NO_TYPE),
        "table-nulls": (lambda pl: pl.DataFrame(SOME, schema={"a": pl.Int64, "b": pl.Int64}), THREE),
        "table-of-several-types": (lambda pl: pl.DataFrame(MIXED), SEVERAL),
        "table-of-arrays": (lambda pl: pl.DataFrame({"a": _polars_arrays(pl)}), ALONE),
        "table-with-a-column-of-arrays": (lambda pl: pl.DataFrame({"b": [1, 2], "a": _polars_arrays(pl)}), ALONE),
        "text": (lambda pl: pl.Series(["a"]), NO_TYPE),
        "categories": (lambda pl: pl.Series(["a"], dtype=pl.Categorical), NO_TYPE),
        "decimals": (lambda pl: pl.Series([decimal.Decimal("1.5")]), NO_TYPE),
        "Int128": (lambda pl: pl.Series([1], dtype=pl.Int128), NO_TYPE),
        "lists": (lambda pl: pl.Series([[1, 2]]), NO_TYPE),
        "dates": (lambda pl: pl.Series([1], dtype=pl.Date), NO_TYPE),
    },
    "pyarrow": {
        "null": (lambda pa: pa.array([1, None, BIG]), NULLS),
        "bool-null": (lambda pa: pa.array([True, None]), NULLS),
        "null-in-a-chunk": (lambda pa: pa.chunked_array([[1], [None, BIG]]), NULLS),
        "table-nulls": (lambda pa: pa.table(SOME, pa.schema([("a", pa.int8()), ("b", pa.int8())])), THREE),
        "record-batch-null": (lambda pa: pa.record_batch({"a": [1, None], "b": [2, 3]}), NULLS),
        "table-of-several-types": (lambda pa: pa.table(MIXED), SEVERAL.replace("float64", "(double|float64)")),
        "text": (lambda pa: pa.array(["a"]), NO_TYPE),
        "dictionary": (lambda pa: pa.array([1, 2]).dictionary_encode(), NO_TYPE),
        "timestamps": (lambda pa: pa.array([1], pa.timestamp("s")), NO_TYPE),
        "decimals": (lambda pa: pa.array([decimal.Decimal("1.5")]), NO_TYPE),
        "lists": (lambda pa: pa.array([[1, 2]]), NO_TYPE),
    },
}


def _cases(table: dict[str, dict[str, tuple[Make, Any]]]) -> pytest.MarkDecorator:
    rows = [(library, name) for library, kinds in table.items() for name in kinds]
    return pytest.mark.parametrize(("library", "kind"), rows, ids=[f"{library}-{name}" for library, name in rows])


def _made(table: dict[str, dict[str, tuple[Make, Any]]], library: str, kind: str) -> tuple[Any, Any]:
    module = pytest.importorskip(library)
    if "pyarrow" in kind:
        pytest.importorskip("pyarrow")
    make, rest = table[library][kind]
    return make(module), rest


@_cases(EXACT)
def test_elements_of_one_type_are_taken_as_they_are(library: str, kind: str) -> None:
    given, elements = _made(EXACT, library, kind)
    assert_same_bits(mo.maximum(given), mo.maximum(elements))
    assert_same_bits(mo.reduce_max(given), mo.reduce_max(elements))
    assert_same_bits(mo.maximum(given, elements), mo.maximum(elements))
    ids = np.zeros(len(elements), np.int64)
    assert_same_bits(mo.segment_max(given, ids, fill_mode="ZERO"), mo.segment_max(elements, ids, fill_mode="ZERO"))


@_cases(REFUSED)
def test_what_an_array_cannot_hold_is_an_error(library: str, kind: str) -> None:
    given, says = _made(REFUSED, library, kind)
    plain = np.arange(max(len(given), 1))
    calls: tuple[Callable[[], object], ...] = (
        lambda: mo.maximum(given),
        lambda: mo.maximum(plain, given),
        lambda: mo.reduce_max(given),
        lambda: mo.segment_max(given, plain, fill_mode="ZERO"),
    )
    for call in calls:
        with pytest.raises(DTypeError, match=says):
            call()
    if getattr(given, "ndim", 1) == 1:
        with pytest.raises(DTypeError, match=rf"segment_ids.*{says}"):
            mo.segment_max(plain, given, fill_mode="ZERO")
        with pytest.raises(DTypeError, match=rf"offsets.*{says}"):
            mo.segment_max(plain, offsets=given, fill_mode="ZERO")


def test_a_column_of_rationals_is_one_of_objects() -> None:
    pd = pytest.importorskip("pandas")
    assert mo.reduce_max(pd.Series([1, BIG], dtype=object)).tolist() == [BIG]
    with pytest.raises(DTypeError, match=r"must contain only fractions.Fraction and int"):
        mo.reduce_max(pd.MultiIndex.from_tuples([(1, 2)]))


def test_codes_of_categories_are_ids() -> None:
    pd = pytest.importorskip("pandas")
    keys = pd.Series(["b", "a", "b", None]).astype("category")
    data = np.array([5, 1, 7, 9])
    assert keys.cat.codes.dtype == np.int8
    got = mo.segment_max(data, keys.cat.codes, fill_mode="ZERO", sorted=False, out_of_range="drop")
    assert_same_bits(got, np.array([1, 7]))


@pytest.mark.parametrize("null", ["NA", "nan"])
def test_the_first_label_that_differs_is_none_of_the_nulls_that_both_have(null: str) -> None:
    pd = pytest.importorskip("pandas")
    label = pd.NA if null == "NA" else float("nan")
    one, two = (pd.Series([1, 2, 3], index=[label, "a", last]) for last in "bc")
    with pytest.raises(ShapeError, match="'c' and 'b' at position 2"):
        mo.maximum(one, two)


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_ids_with_labels_go_with_rows_without_any(library: str) -> None:
    """Test tables of Polars and Arrow: their column names do not have to match ids."""
    pandas, tables = pytest.importorskip("pandas"), pytest.importorskip(library)
    data = (tables.DataFrame if library == "polars" else tables.table)({"a": [1.0, 2.0, 3.0], "b": [4.0, 5.0, 6.0]})
    result = mo.segment_max(data, pandas.Series([0, 0, 1], index=list("xyz")), fill_mode="ZERO")
    assert_same_bits(result, np.array([[2.0, 5.0], [3.0, 6.0]]))


def test_labels_that_differ_are_an_error() -> None:
    """Test labels of rows and of columns. An object without labels matches any labels."""
    pd = pytest.importorskip("pandas")
    abc, cba = pd.Series([1, 2, 3], index=list("abc")), pd.Series([3, 2, 1], index=list("cba"))
    frame = pd.DataFrame(np.arange(9).reshape(3, 3), index=list("xyz"), columns=list("abc"))
    for first, second, says in (
        (abc, cba, "input 1 and input 0 have different labels: 'c' and 'a' at position 0"),
        (abc, abc[:1], "1 and 3 labels"),
        (frame, frame[list("cba")], "'c' and 'a' at position 0"),
        (frame, frame.iloc[::-1], "'z' and 'x' at position 0"),
        (frame, cba, "'c' and 'a' at position 0"),
    ):
        with pytest.raises(ShapeError, match=f"{says}.*does not align labels; align them first"):
            mo.maximum(first, second)
    assert_same_bits(mo.maximum(*abc.align(cba)), np.array([1, 2, 3]))
    nans = (pd.Series([value, 2], index=[np.nan, 1.0]) for value in (1, 3))  # NaN labels equal nothing
    assert_same_bits(mo.maximum(*nans), np.array([3, 2]))
    assert_same_bits(mo.maximum(abc, cba.to_numpy()), np.array([3, 2, 3]))
    assert_same_bits(mo.maximum(abc, 2, np.array([1, 2, 4])), np.array([2, 2, 4]))
    assert_same_bits(mo.maximum(frame, abc), np.maximum(frame.to_numpy(), [1, 2, 3]))
    for data in (abc, frame.set_axis(list("abc"))):
        ids = pd.Series([0, 0, 1], index=list("abc"))
        expected = mo.segment_max(data.to_numpy(), ids.to_numpy(), fill_mode="ZERO")
        assert_same_bits(mo.segment_max(data, ids, fill_mode="ZERO"), expected)
        assert_same_bits(mo.segment_max(data, offsets=pd.Series([0, 2, 3]), fill_mode="ZERO"), expected)
        with pytest.raises(ShapeError, match="segment_ids and data have different labels: 'c'"):
            mo.segment_max(data, ids.set_axis(list("cba")), fill_mode="ZERO")


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_ids_have_the_labels_of_the_axis_that_they_are_along(axis: int) -> None:
    pd = pytest.importorskip("pandas")
    labels = list("xyz"), list("abc")
    frame = pd.DataFrame(np.arange(9).reshape(3, 3), *labels)
    ids, others = (pd.Series([0, 0, 1], index=index) for index in (labels[axis], labels[1 - axis % 2]))
    expected = mo.segment_max(frame.to_numpy(), ids.to_numpy(), axis=axis, fill_mode="ZERO")
    assert_same_bits(mo.segment_max(frame, ids, axis=axis, fill_mode="ZERO"), expected)
    with pytest.raises(ShapeError, match="segment_ids and data have different labels"):
        mo.segment_max(frame, others, axis=axis, fill_mode="ZERO")


@pytest.mark.parametrize("kind", ["polars.DataFrame", "pyarrow.table", "pyarrow.record_batch"])
def test_names_of_columns_that_differ_are_an_error(kind: str) -> None:
    library, _, name = kind.partition(".")
    make = getattr(pytest.importorskip(library), name)
    with pytest.raises(ShapeError, match=r"input 1 and .* different labels: 'b' and 'a' at position 0"):
        mo.maximum(make({"a": [1], "b": [2]}), make({"b": [1], "a": [2]}))
    assert_same_bits(mo.maximum(make(BOTH), make(BOTH)), TWO)
    # with tables of pandas and ids along the columns
    pd = pytest.importorskip("pandas")
    table, frame = make(BOTH), pd.DataFrame(BOTH)
    for pair in ((table, frame), (frame, table)):
        assert_same_bits(mo.maximum(*pair), TWO)
    for pair in ((table, frame[["b", "a"]]), (frame[["b", "a"]], table)):
        with pytest.raises(ShapeError, match=r"input 1 and .* different labels: '[ab]' and '[ab]' at position 0"):
            mo.maximum(*pair)
    assert_same_bits(
        mo.segment_max(table, pd.Series([0, 0], index=["a", "b"]), axis=1, fill_mode="ZERO"), TWO.max(1, keepdims=True)
    )
    with pytest.raises(ShapeError, match=r"segment_ids and .* different labels: 'b' and 'a' at position 0"):
        mo.segment_max(table, pd.Series([0, 0], index=["b", "a"]), axis=1, fill_mode="ZERO")
