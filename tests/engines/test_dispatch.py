"""Dispatch to engines by the types of all arguments, without imports and without silent fallbacks."""

# mypy: disable-error-code="call-overload"
# Type checkers do not accept these classes as arrays.

from __future__ import annotations

import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.bits import assert_same_bits
from helpers.lent import Lent
from maxops import errors, spec
from maxops.calls import MaxCall, ReduceCall, SegmentCall, of_node
from maxops.engines import base, table
from maxops.plan import Array


class Wrapped:
    """An array of a new kind."""

    def __init__(self, values: Array) -> None:
        self.values = values


class Narrower(Wrapped):
    """A subclass, which uses the engine of its base class."""


class WrappedEngine:
    """An engine that runs calls on wrapped arrays and records them."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def run(self, call: Any) -> Any:
        self.calls.append(call)
        if isinstance(call, SegmentCall):
            return call.data
        return Wrapped(
            mo.run(call.map(lambda _, array: array if isinstance(array, (np.ndarray, int)) else array.values))
        )


class Other:
    """An array of another kind."""


@pytest.fixture
def engine() -> WrappedEngine:
    """Register an engine for the test."""
    made = WrappedEngine()
    mo.register_engine("wrapped", Wrapped, made)
    return made


A = np.array([1.0, 5.0, 2.0], np.float32)
B = np.array([4.0, 3.0, 2.0], np.float32)
IDS = np.array([0, 0, 1])


def test_a_registered_engine_gets_the_calls_of_its_types(engine: WrappedEngine) -> None:
    assert_same_bits(mo.maximum(Wrapped(A), Narrower(B), ties="first").values, np.maximum(A, B))
    assert_same_bits(mo.maximum(A, 3, Wrapped(B)).values, np.array([4, 5, 3], np.float32))
    assert_same_bits(mo.reduce_max(Wrapped(A), 0, keepdims=False).values, np.array(5, np.float32))
    mo.segment_max(Wrapped(A), IDS, 4, fill_mode="ZERO", sorted=False, return_empty=True)
    assert [type(call) for call in engine.calls] == [MaxCall, MaxCall, ReduceCall, SegmentCall]
    assert engine.calls[0] == MaxCall(engine.calls[0].inputs, ties="first")
    assert engine.calls[3] == SegmentCall(engine.calls[3].data, IDS, 4, "ZERO", sorted=False, return_empty=True)


def test_a_registered_engine_gets_every_option(engine: WrappedEngine) -> None:
    out = np.zeros((), np.float32)
    assert mo.reduce_max(Wrapped(A), keepdims=False, out=out).values is out
    mo.segment_max(Wrapped(A), IDS, fill_mode="ZERO", dim="x")
    assert engine.calls[1].dim == "x"


@pytest.mark.parametrize("row", spec.ALL, ids=str)
def test_standards_run_on_numpy(engine: WrappedEngine, row: spec.Spec) -> None:
    attributes = {"reduction": "max"} if row.is_scatter else {}
    call = of_node(row, [Wrapped(A) for _ in row.inputs] or [Wrapped(A)], attributes)
    with pytest.raises(errors.DTypeError, match="must be a NumPy array, got Wrapped"):
        mo.run(call)
    assert engine.calls == []


def test_any_array_argument_decides(engine: WrappedEngine) -> None:
    mo.segment_max(A, offsets=Wrapped(np.array([0, 3])), fill_mode="ZERO")
    mo.segment_max(A, Wrapped(IDS), fill_mode="ZERO")
    assert [type(call) for call in engine.calls] == [SegmentCall, SegmentCall]


def test_a_later_engine_is_asked_first_and_a_name_is_taken_once(engine: WrappedEngine) -> None:
    second = WrappedEngine()
    mo.register_engine("wrapped", (Wrapped,), second)
    mo.maximum(Wrapped(A))
    third = WrappedEngine()
    mo.register_engine("narrower", Narrower, third, beside="wrapped")
    mo.maximum(Narrower(A), Wrapped(B))
    assert [len(one.calls) for one in (engine, second, third)] == [0, 1, 1]
    mo.register_engine("wrapped", Other, second)  # replaces all types of the name
    with pytest.raises(errors.DTypeError, match="input 0 must be an array, got Wrapped"):
        mo.maximum(Wrapped(A))


def test_what_was_looked_up_is_looked_up_anew_after_a_registration() -> None:
    """Test lookups of single types, of several types, and of subclasses. Names of types may come from any iterable."""
    kind: Any = type("Anew", (Wrapped,), {})
    calls: list[Any] = [lambda: mo.maximum(kind(A)), lambda: mo.maximum(kind(A), B), lambda: mo.maximum(B, 1, kind(A))]
    for number in range(3):
        made = WrappedEngine()
        mo.register_engine(f"anew{number}", Wrapped if number == 0 else kind, made, beside=iter(["numpy"]))
        for count, call in enumerate((*calls, *calls), 1):
            call()
            assert len(made.calls) == count


@pytest.mark.parametrize("scalars", [[], [-9]], ids=["arrays", "a-scalar"])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 40])
def test_only_few_kinds_together_are_remembered(engine: WrappedEngine, count: int, scalars: list[int]) -> None:
    """Test that the cache is limited, because calls may have any number of combinations of types."""
    for place in range(count):
        values = [Narrower(A) if at == place else Wrapped(A) for at in range(count)]
        assert_same_bits(mo.maximum(*values, *scalars).values, A)
    assert sum(Narrower in kinds for kinds in table._found) == (count if count + len(scalars) <= 8 else 0)
    assert all(len(kinds) <= 8 for kinds in table._found)


def test_an_engine_that_is_named_is_imported_at_its_first_call(
    engine: WrappedEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "loaded", {})
    mo.register_engine("named", iter([Other, Wrapped]), "no_such_package.engine")
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        mo.maximum(Wrapped(A))
    monkeypatch.setitem(sys.modules, "no_such_package", type(sys)("no_such_package"))
    monkeypatch.setitem(sys.modules, "no_such_package.engine", engine)
    for _ in range(2):
        assert_same_bits(mo.maximum(Wrapped(A), B).values, np.maximum(A, B))


def test_kinds_that_no_engine_takes_together(engine: WrappedEngine) -> None:
    mo.register_engine("other", Other, engine, beside=())
    says = re.escape(
        "maximum input 0 is of type Wrapped (wrapped), input 1 is of type Other (other): no engine supports"
    )
    with pytest.raises(errors.EngineError, match=says) as caught:
        mo.maximum(Wrapped(A), Other())
    assert caught.value.clause == "maxops.maximum.arrays"
    with pytest.raises(errors.EngineError, match="numpy"):
        mo.maximum(A, Other())


KINDS: dict[str, Any] = {
    "numpy": np.asarray,
    "dask": lambda array: pytest.importorskip("dask.array").from_array(array),
    "xarray": lambda array: pytest.importorskip("xarray").DataArray(array),
    "torch": lambda array: pytest.importorskip("torch").from_numpy(array),
    "jax": lambda array: pytest.importorskip("jax.numpy").asarray(array),
    "interchange": Lent,
}


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("one", KINDS)
def test_which_kinds_go_together(one: str, other: str) -> None:
    """Test that each kind can be mixed with NumPy arrays, and xarray with Dask, but no others."""
    x, y = KINDS[one](A), KINDS[other](B)
    if one == other or "numpy" in (one, other) or {one, other} == {"dask", "xarray"}:
        assert_same_bits(np.asarray(mo.maximum(x, y)), np.maximum(A, B))
        return
    listed = f"input 0 is of type {type(x).__name__} ({one}), input 1 is of type {type(y).__name__} ({other})"
    with pytest.raises(
        errors.EngineError, match=re.escape(f"maximum {listed}: no engine supports these types together")
    ):
        mo.maximum(x, y)


@pytest.mark.parametrize("kind", KINDS)
def test_which_kinds_take_an_output(kind: str) -> None:
    array = KINDS[kind](A.copy())
    if kind in ("numpy", "torch"):
        assert mo.maximum(array, 2, out=array) is array
        return
    says = f"maximum out= is not supported by the {kind} engine"
    with pytest.raises(errors.OutputError, match=says):
        mo.maximum(array, 2, out=B)


class Integer:
    """An integer that only has ``__index__``."""

    def __init__(self, value: Any) -> None:
        self.value = int(value)

    def __index__(self) -> int:
        return self.value


@pytest.mark.parametrize("integer", ["Integer", "numpy", "torch", "jax"])
@pytest.mark.parametrize("kind", KINDS)
def test_integers_of_any_class(kind: str, integer: str) -> None:
    """Test that axes and sizes may be objects with ``__index__``, but not bools or floats of their libraries."""
    of = {**KINDS, "Integer": Integer}[integer]
    one, two = (of(np.array(value, np.int32)) for value in (1, 2))
    values, ids = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([0, 0, 1])
    data = KINDS[kind](values)
    for axes in ({"axis": one}, {"axes": one, "keepdims": False}, {"axis": (one,)}, {"axis": [one]}):
        assert_same_bits(np.asarray(mo.reduce_max(data, **axes)), np.array([2, 5], np.float32))
    found = mo.segment_max(data, ids, two, fill_mode="ZERO", axis=one)
    assert_same_bits(np.asarray(found), np.array([[1, 2], [4, 5]], np.float32))
    if integer == "Integer":
        return
    for dtype in (np.bool, np.float32):
        wrong = of(np.array(1, dtype))
        with pytest.raises(errors.AxesError, match=r"reduce_max axes must be "):
            mo.reduce_max(data, wrong)
        with pytest.raises(errors.AxesError, match=r"reduce_max axes must be integers, got "):
            mo.reduce_max(data, [wrong])
        with pytest.raises(errors.AxesError, match=r"segment_max axis must be an integer, got "):
            mo.segment_max(data, ids, 2, fill_mode="ZERO", axis=wrong)
        with pytest.raises((errors.NumSegmentsError, errors.DTypeError), match=r"segment_max num_segments must "):
            mo.segment_max(data, ids, wrong, fill_mode="ZERO", axis=1)
    with pytest.raises(errors.AxesError, match=r"reduce_max axes must be integers, got "):
        mo.reduce_max(data, [of(np.array([1]))])


@pytest.mark.parametrize("ties", [3, "odd", None, np.array(["even", "even"])], ids=repr)
def test_ties_that_are_none(ties: Any) -> None:
    for function in (mo.maximum, mo.reduce_max):
        with pytest.raises(errors.AttributeValueError, match=r"ties must be 'first' or 'even', got "):
            function(A, ties=ties)


INTERFACE = type("Interface", (), {"__array_interface__": A.__array_interface__})()
STRUCT = type("Struct", (), {"__array_struct__": property(lambda self: A.__array_struct__)})()
RELEASED = type("Released", (), {"__array_interface__": property(lambda self: 1 / 0)})()
LAZY = type("Lazy", (), {"__getattr__": lambda self, name: 1 / 0})()  # any attribute raises another error


@pytest.mark.parametrize(
    "unknown",
    [[1.0, 2.0], "text", object(), {1}, memoryview(b"ab"), INTERFACE, STRUCT, RELEASED, LAZY],
    ids=lambda x: type(x).__name__,
)
def test_what_is_not_an_array_is_told_the_next_step(unknown: Any) -> None:
    with pytest.raises(errors.DTypeError) as caught:
        mo.maximum(A, unknown)
    text = str(caught.value)
    assert text.startswith(f"maximum input 1 must be an array, got {type(unknown).__name__}; ")
    assert ("np.asarray(" in text) == (type(unknown) not in (object, type(LAZY)))
    for function in (mo.reduce_max, mo.segment_max):
        with pytest.raises(errors.DTypeError, match=r"data must be an array, got .*; "):
            function(unknown, IDS) if function is mo.segment_max else function(unknown)


GROUPED: list[tuple[str, Any]] = [
    ("pandas", lambda pandas: pandas.DataFrame({"a": [1, 2]}).groupby("a")),
    ("pandas", lambda pandas: pandas.Series([1, 2]).groupby([0, 0])),
    ("polars", lambda polars: polars.DataFrame({"a": [1, 2]}).group_by("a")),
    ("polars", lambda polars: polars.LazyFrame({"a": [1, 2]}).group_by("a")),
]


@pytest.mark.parametrize(("library", "make"), GROUPED)
def test_the_groups_of_a_table_are_told_to_segment_max(library: str, make: Any) -> None:
    groups = make(pytest.importorskip(library))
    with pytest.raises(errors.DTypeError, match=r"pass the values and the keys to segment_max, .*pd\.factorize"):
        mo.reduce_max(groups)


@pytest.mark.parametrize(
    ("library", "make", "method"),
    [
        ("polars", lambda polars: polars.LazyFrame({"a": [1]}), "collect"),
        ("dask", lambda dask: dask.delayed(A), "compute"),
    ],
)
def test_a_lazy_value_is_told_to_be_loaded(library: str, make: Any, method: str) -> None:
    lazy = make(pytest.importorskip(library))
    with pytest.raises(errors.DTypeError, match=rf"convert it with \.{method}\(\)"):
        mo.reduce_max(lazy)


@pytest.mark.parametrize("method", ["toarray", "todense"])
def test_a_sparse_array_is_told_its_own_method(method: str) -> None:
    sparse = type("Sparse", (), {method: lambda _: A, "__iter__": lambda _: iter(A)})()
    with pytest.raises(errors.DTypeError, match=rf"must be an array, got Sparse; convert it with \.{method}\(\)"):
        mo.maximum(A, sparse)


@pytest.mark.parametrize(
    ("types", "broken", "says"),
    [
        ((), WrappedEngine(), "types of engine 'bad' must be"),
        ("numpy.ndarray", WrappedEngine(), "must be classes or 'module:class' strings"),
        ((3,), WrappedEngine(), "must be classes or 'module:class' strings"),
        ((Wrapped, "late:Late", "late"), WrappedEngine(), "must be classes or 'module:class' strings"),
        (Wrapped, object(), "engine 'bad' must have a function run(call)"),
        (Wrapped, type("Number", (), {"run": 3}), "engine 'bad' must have a function run(call)"),
    ],
    ids=["none", "dotted", "number", "one-of-three", "no-run", "run-is-a-number"],
)
def test_a_bad_engine_is_refused(types: Any, broken: Any, says: str) -> None:
    with pytest.raises(errors.ConfigurationError, match=re.escape(says)):
        mo.register_engine("bad", types, broken)


def test_masked_and_record_arrays_stay_errors() -> None:
    """Test subclasses of NumPy arrays with a different meaning, which must not be ignored silently."""
    for odd, says in (
        (np.ma.masked_array(A, A > 2), r"fill masked elements with \.filled"),
        (np.rec.array(A), "maxops does not support subclasses"),
    ):
        with pytest.raises(errors.DTypeError, match=says):
            mo.maximum(odd, A)


@pytest.mark.parametrize("library", ["dask", "xarray", "torch", "jax", "cupy", "pandas", "polars", "pyarrow", "h5py"])
def test_a_stub_of_a_library_changes_nothing(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test a module without classes, such as a stub, or a module that another thread is importing."""
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, ModuleType(library))
    other = type("Other", (), {"__array__": lambda self, dtype=None, copy=None: A})()
    assert_same_bits(mo.maximum(other, A), A)
    assert_same_bits(mo.segment_max(other, np.arange(len(A)), fill_mode="ZERO"), A)


def test_a_type_is_found_once_its_module_is_imported(engine: WrappedEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test that a failed lookup is not cached."""
    late = type("Late", (), {"__array__": lambda self, dtype=None, copy=None: A})
    mo.register_engine("late", "no_such_module:Late", engine)
    assert type(mo.maximum(late())) is type(mo.maximum(A, late())) is np.ndarray
    monkeypatch.setitem(sys.modules, "no_such_module", type(sys)("no_such_module"))
    monkeypatch.setattr(sys.modules["no_such_module"], "Late", late, raising=False)
    with pytest.raises(AttributeError):
        mo.reduce_max(late())  # reaches the engine, which reads .values
    with pytest.raises(AttributeError):
        mo.maximum(A, late())
    assert [type(call) for call in engine.calls] == [ReduceCall, MaxCall]


@pytest.mark.parametrize("before", [[], [2]], ids=["first", "with-other-arguments-before"])
def test_a_call_that_is_exported_keeps_nothing(before: list[int]) -> None:
    """Test that exporting a call adds nothing to a cache, because Dynamo warns about side effects."""
    torch: Any = pytest.importorskip("torch")

    class Model(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any, y: Any) -> Any:
            return mo.maximum(x, y)

    kept: list[dict[Any, Any]] = [table._known, table._found]
    for each in kept:
        each.clear()
    for scalar in before:
        mo.maximum(torch.ones(3), scalar)
    expected = [each.copy() for each in kept]
    torch.export.export(Model(), (torch.ones(3), torch.ones(3)), strict=True)
    assert kept == expected


# ------------------------------------------------------------------------------------------------ interchange


def test_arrays_of_the_array_api_come_back_in_kind() -> None:
    xp = pytest.importorskip("array_api_strict")
    a, b = xp.asarray(A), xp.asarray(B)
    result = mo.maximum(a, b)
    assert type(result) is type(a)
    assert_same_bits(np.from_dlpack(result), np.maximum(A, B))
    values, places = mo.reduce_max(a, keepdims=False, return_indices=True)
    assert (type(values), int(values), int(places)) == (type(a), 5, 1)


def zarr_array(array: Array) -> Any:
    return pytest.importorskip("zarr").array(array)


def h5py_dataset(array: Array) -> Any:
    file = pytest.importorskip("h5py").File.in_memory()
    return file.create_dataset("array", data=array)


def dask_column(array: Array) -> Any:
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    return frame.from_pandas(pandas.Series(array), npartitions=2)


def dask_index(array: Array) -> Any:
    return dask_column(array).to_frame().set_index(0, sorted=True).index


def dask_frame(array: Array) -> Any:
    return dask_column(array).to_frame()


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (zarr_array, r"zarr Array .*dask\.array\.from_zarr"),
        (h5py_dataset, r"h5py Dataset .*dask\.array\.from_array"),
        (dask_column, r"dask Series .*\.values"),
        (dask_index, r"dask Index .*\.values"),
        (dask_frame, r"dask DataFrame .*\.values"),
    ],
)
def test_what_is_not_in_memory_is_not_read_unasked(kind: Any, says: str) -> None:
    """Test that maxops never calls `__array__`, which would read or compute all data of an array."""
    numbers = np.array([0, 1, 1])
    stored = kind(numbers)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("read")

    beside: list[Any] = [numbers]
    if "dask" in sys.modules:
        beside.append(pytest.importorskip("dask.array").from_array(numbers))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(stored), "__array__", fail)
        with pytest.raises(errors.EngineError, match=f"data of type {says}"):
            mo.reduce_max(stored)
        for other in beside:
            with pytest.raises(errors.EngineError, match=f"input 1 of type {says}"):
                mo.maximum(other, stored)
            with pytest.raises(errors.EngineError, match=f"segment_ids of type {says}"):
                mo.segment_max(other, stored, fill_mode="ZERO")
