"""The order of values: every pair of 8-bit and 16-bit values, and boundaries and random bits of wider dtypes."""

from __future__ import annotations

import ctypes
import inspect
import pickle
from dataclasses import FrozenInstanceError
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import (
    STORED,
    Array,
    assert_same_bits,
    each_float,
    each_type,
    fast_maximum,
    mixed,
    of_words,
    pool,
    words,
)
from helpers.instruction_sets import on_each_source
from maxops import _native, dtypes, plan, reference, spec
from maxops.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, UINT8, UINT16, DType

_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@cache
def _sorted_values(dtype: DType) -> tuple[Array, Array]:
    """Return every value of a type in the reference's order, and the same values with canonical NaNs."""
    top = 2 if dtype.kind == "bool" else 1 << dtype.bits
    order = sorted(range(top), key=lambda bits: reference.order(dtype, bits))
    results = [dtype.nan_bits if reference.order(dtype, bits)[0] else bits for bits in order]
    return of_words(dtype, order), of_words(dtype, results)


@on_each_source
@pytest.mark.parametrize("dtype", [INT8, UINT8, BOOL], ids=str)
def test_every_pair_of_one_byte(dtype: DType) -> None:
    values, results = _sorted_values(dtype)
    n = len(values)
    places = np.maximum.outer(np.arange(n), np.arange(n))
    assert_same_bits(mo.maximum(values[:, np.newaxis], values), results[places])
    assert_same_bits(mo.maximum(np.repeat(values, n), np.tile(values, n)), results[places.reshape(-1)])


@on_each_source
@pytest.mark.parametrize("dtype", [INT16, UINT16, FLOAT16, BFLOAT16], ids=str)
def test_every_value_of_two_bytes_with_each_of_the_pool(dtype: DType) -> None:
    values, results = _sorted_values(dtype)
    place = np.empty(len(values), np.intp)
    place[words(values)] = np.arange(len(values))
    for first in words(pool(dtype)):
        other = of_words(dtype, [first])
        expected = results[np.maximum(np.arange(len(values)), place[first])]
        assert_same_bits(mo.maximum(values, np.repeat(other, len(values))), expected)
        assert_same_bits(mo.maximum(other, values), expected)


@pytest.mark.release  # the next test and the claims order.pairs and order.instructions always run
@on_each_source
@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_every_pair_of_two_bytes(dtype: DType) -> None:
    """Test all 2^32 pairs in both argument orders: row i of the table of maxima has value i up to the diagonal."""
    values, results = _sorted_values(dtype)
    n, rows = 1 << 16, 16
    expected, got = np.tile(results, (rows, 1)), np.empty((rows, n), dtype.numpy)
    for first in range(0, n, rows):
        column = values[first : first + rows, np.newaxis]
        expected[:, :first] = results[first : first + rows, np.newaxis]
        for row in range(rows):
            expected[row, first : first + row] = results[first + row]
        for inputs in ((column, values), (values, column)):
            got.view(dtype.word)[...] = 0xFFFF
            mo.maximum(*inputs, out=got)
            if _memcmp(got.ctypes.data, expected.ctypes.data, expected.nbytes) != 0:
                assert_same_bits(got, expected)  # its error names the position


@on_each_source
@pytest.mark.parametrize("dtype", [INT8, UINT8, BOOL, INT16, UINT16, FLOAT16, BFLOAT16], ids=str)
def test_every_neighbour_in_every_kernel(dtype: DType) -> None:
    """Test that kernels on keys order every value above the previous one, which suffices because keys are integers."""
    values, results = _sorted_values(dtype)
    low, high, expected = values[:-1], values[1:], results[1:]
    for a, b in ((low, high), (high, low)):
        pairs = np.stack([a, b])
        assert_same_bits(mo.maximum(a, b), expected)
        assert_same_bits(mo.maximum(a, b, a), expected)
        assert_same_bits(mo.maximum(a, b, a, b, a, b, a, b), expected)
        assert_same_bits(mo.reduce_max(pairs, (0,), False), expected)
        assert_same_bits(mo.reduce_max(np.ascontiguousarray(pairs.T), (1,), False), expected)
        ids = np.repeat(np.arange(len(expected)), 2)
        assert_same_bits(mo.segment_max(np.ascontiguousarray(pairs.T).reshape(-1), ids, fill_mode="ZERO"), expected)
        assert_same_bits(mo.segment_max(pairs, np.array([0, 0]), fill_mode="ZERO"), expected[np.newaxis])


@on_each_source
@each_type
def test_every_pair_of_the_pool(dtype: DType) -> None:
    values = pool(dtype)
    expected = _pairs_by_reference(dtype)
    assert_same_bits(mo.maximum(values[:, np.newaxis], values), expected)
    assert_same_bits(mo.maximum(values, values[:, np.newaxis], values), expected)


@cache
def _pairs_by_reference(dtype: DType) -> Array:
    values = pool(dtype)
    keys = [reference.order(dtype, bits) for bits in words(values).tolist()]
    alone = reference.maximum(values)
    return alone[[[i if keys[i] >= keys[j] else j for j in range(len(keys))] for i in range(len(keys))]]


@on_each_source
@pytest.mark.parametrize("dtype", [FLOAT32, FLOAT64, dtypes.INT64, dtypes.UINT64], ids=str)
def test_random_pairs(dtype: DType) -> None:
    a, b = mixed(dtype, 100_000, 1), mixed(dtype, 100_000, 2)
    bits = words(a).copy()
    bits[::2] ^= np.left_shift(
        dtype.word.type(1), np.arange(len(bits[::2]), dtype=dtype.word) % dtype.word.type(dtype.bits)
    )
    near = of_words(dtype, bits)  # a with one bit flipped in every other element
    assert_same_bits(mo.maximum(a, b), fast_maximum(a, b))
    assert_same_bits(mo.maximum(a, near), fast_maximum(a, near))


# ---------------------------------------------------------------------------------- the tables of facts agree


def test_types_are_those_of_the_native_core() -> None:
    rows = _native.types()
    assert set(rows) == {dtype.name for dtype in STORED}
    for dtype in STORED:
        size, lowest_finite, nan = rows[dtype.name]
        assert (8 * size, lowest_finite) == (dtype.bits, dtype.lowest_finite_bits)
        assert nan == (dtype.nan_bits if dtype.kind == "float" else 0)


@each_float
def test_float_rows_are_those_of_their_format(dtype: DType) -> None:
    info = ml_dtypes.finfo(dtype.numpy)  # type: ignore[no-untyped-call]  # knows NumPy's types too
    assert (dtype.bits, dtype.exponent_bits, dtype.mantissa_bits) == (info.bits, info.nexp, info.nmant)
    assert int(words(np.array([-np.inf]).astype(dtype.numpy))[0]) == dtype.lowest_bits
    assert int(words(np.array([np.inf]).astype(dtype.numpy))[0]) == dtype.infinity_bits
    assert int(words(np.array([info.min], dtype.numpy))[0]) == dtype.lowest_finite_bits
    assert np.isnan(of_words(dtype, [dtype.nan_bits]).astype(np.float64)).all()


@pytest.mark.parametrize("dtype", [dtype for dtype in STORED if dtype.kind in ("int", "uint")], ids=str)
def test_integer_rows_are_those_of_their_format(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    assert dtype.bits == info.bits
    assert of_words(dtype, [dtype.lowest_bits, dtype.lowest_finite_bits]).tolist() == [info.min, info.min]


@pytest.mark.parametrize(
    ("dtype", "nan", "lowest_finite"),
    [
        (FLOAT16, 0x7E00, -65504.0),
        (BFLOAT16, 0x7FC0, -3.3895313892515355e38),
        (FLOAT32, 0x7FC00000, -3.4028235e38),
        (FLOAT64, 0x7FF8000000000000, -1.7976931348623157e308),
    ],
    ids=lambda value: str(value) if isinstance(value, DType) else "",
)
def test_values_that_the_documents_name(dtype: DType, nan: int, lowest_finite: float) -> None:
    assert dtype.nan_bits == nan
    assert of_words(dtype, [dtype.lowest_finite_bits])[0] == dtype.numpy.type(lowest_finite)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_row_is_found_in_either_byte_order(dtype: DType) -> None:
    assert dtypes.of(dtype.numpy) is dtype
    assert dtypes.of(dtype.numpy.newbyteorder("S")) is dtype


@pytest.mark.parametrize("name", ["q", "Q", "l", "L", "longlong", "ulonglong"])
def test_64_bits_under_any_name_of_c(name: str) -> None:
    numpy = np.dtype(name)
    found = dtypes.of(numpy)
    assert found is not None
    assert (found.kind, found.bits) == ("uint" if numpy.kind == "u" else "int", 8 * numpy.itemsize)
    assert mo.maximum(np.array([1, 2], numpy), np.array([2, 1], found.numpy)).tolist() == [2, 2]


@pytest.mark.parametrize("name", ["complex64", "longdouble", "S3", "U3", "M8[s]", "m8[s]", "V4"])
def test_other_types_have_no_row(name: str) -> None:
    assert dtypes.of(np.dtype(name)) is None
    assert dtypes.of(np.dtype([("a", np.float32)])) is None


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_a_row_of_a_type_is_that_of_numpy(dtype: DType) -> None:
    is_real = dtype is dtypes.REAL
    kinds = {"i": "int", "u": "uint", "b": "bool", "O": "real"}  # the kind of bfloat16 is "V"
    assert dtype.kind == kinds.get(dtype.numpy.kind, "float")
    assert dtype.name == ("real" if is_real else dtype.numpy.name)
    assert dtype.bits == (0 if is_real else 8 * dtype.numpy.itemsize)
    if dtype.kind == "float":
        assert dtype.exponent_bits == ml_dtypes.finfo(dtype.numpy).nexp  # type: ignore[no-untyped-call]
    else:
        assert dtype.exponent_bits == 0
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    with pytest.raises(FrozenInstanceError):
        setattr(dtype, "bits", 1)  # noqa: B010


def test_short_names_of_types() -> None:
    assert dtypes.short_names(dtypes.ALL[2:]) == "float32, float64, int8 to int64, uint8 to uint64, bool, real"
    assert dtypes.short_names(dtypes.ALL[5:11]) == "int16, int32, int64, uint8, uint16, uint32"


def _schemas(operator: str) -> dict[int, Any]:
    defs = pytest.importorskip("onnx").defs
    found = [schema for schema in defs.get_all_schemas_with_history() if (schema.domain, schema.name) == ("", operator)]
    return {schema.since_version: schema for schema in found}


@pytest.mark.parametrize("operator", ["Max", "ReduceMax"])
def test_every_version_that_onnx_has(operator: str) -> None:
    rows = [row for row in spec.ALL if (row.standard, row.operator) == ("ONNX", operator)]
    assert {row.version for row in rows} == set(_schemas(operator))


@pytest.mark.parametrize("row", [row for row in spec.ALL if row.standard == "ONNX"], ids=lambda row: row.name)
def test_row_is_that_of_onnx(row: spec.Spec) -> None:
    assert row.version is not None
    schema = _schemas(row.operator)[row.version]
    (constraint,) = (each for each in schema.type_constraints if each.type_param_str == "T")
    allowed = {name for name in constraint.allowed_type_strs if "complex" not in name and "string" not in name}
    assert {f"tensor({dtype.onnx})" for dtype in row.dtypes} == allowed
    assert set(row.attributes) == set(schema.attributes)
    assert row.axes_input == (len(schema.inputs) == 2)
    if row.operator == "Max":
        assert (schema.min_input, schema.max_input) == (1, plan.MOST_INPUTS)
    elif row.is_scatter:
        assert [each.name for each in schema.inputs] == [name for name, _ in row.inputs]
        types = schema.inputs[1].types
        assert {f"tensor({dtype.onnx})" for dtype in row.index_dtypes} == set(types)
        assert dict(row.rules)["T_IDX"][0] == f"indices is {' or '.join(map(str, row.index_dtypes))}"
    parameters = inspect.signature(mo.operator("ONNX", row.operator, row.version)).parameters
    for name, attribute in schema.attributes.items():
        default = pytest.importorskip("onnx").helper.get_attribute_value(attribute.default_value)
        assert parameters[name].default == (default.decode() if isinstance(default, bytes) else default)


@pytest.mark.parametrize("operator", ["Max", "ReduceMax"])
def test_version_in_force_in_each_opset(operator: str) -> None:
    defs = pytest.importorskip("onnx").defs
    for opset in range(1, defs.onnx_opset_version() + 1):
        row = spec.in_opset(operator, opset)
        assert row is not None
        assert row.version == defs.get_schema(operator, opset, "").since_version
