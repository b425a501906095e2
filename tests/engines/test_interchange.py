"""Third-party arrays: an exception in one of their hooks becomes the cause of a maxops error."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maxops as mo
from helpers.lent import Lent
from maxops import errors
from maxops.calls import MaxCall, ReduceCall
from maxops.plan import Array

ORDINARY = [
    *(ArithmeticError, AssertionError, AttributeError, BufferError, EOFError, ImportError, IndexError, KeyError),
    *(LookupError, NotImplementedError, OSError, OverflowError, RecursionError, ReferenceError),
    *(RuntimeError, StopIteration, TypeError, UnicodeError, ValueError, ZeroDivisionError),
]
UNCHANGED = [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError]


class Hooked:
    """An array with every hook, one of which raises an error."""

    def __init__(self, values: Array, hook: str, error: BaseException) -> None:
        self.values, self.hook, self.error = values, hook, error

    def _call(self, hook: str) -> None:
        if hook == self.hook:
            raise self.error

    def __dlpack_device__(self) -> tuple[int, int]:
        self._call("__dlpack_device__")
        return (1, 0)

    def __dlpack__(self, **options: Any) -> Any:
        self._call("__dlpack__")
        return self.values.__dlpack__(**options)

    def __array_namespace__(self) -> Any:
        self._call("__array_namespace__")
        return self

    def from_dlpack(self, array: Any) -> Any:
        self._call("from_dlpack")
        return array

    @property
    def mask(self) -> None:
        self._call("mask")

    @property
    def units(self) -> None:
        self._call("units")


class HookedArray:
    """An array with only `__array__`, which raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise self.error


HOOKS = ["__dlpack_device__", "__dlpack__", "__array_namespace__", "from_dlpack", "mask", "units", "__array__"]
CALLS: dict[str, Callable[[Callable[[Array], Any]], Any]] = {
    "maximum": lambda make: mo.maximum(make(np.ones(3)), np.ones(3)),
    "reduce": lambda make: mo.reduce_max(make(np.ones(3))),
    "data": lambda make: mo.segment_max(make(np.ones(3)), np.zeros(3, np.int64), fill_mode="ZERO"),
    "ids": lambda make: mo.segment_max(np.ones(3), make(np.zeros(3, np.int64)), fill_mode="ZERO"),
    "offsets": lambda make: mo.segment_max(np.ones(3), offsets=make(np.array([0, 3])), fill_mode="ZERO"),
}


def call_with(call: str, hook: str, error: BaseException) -> None:
    CALLS[call](lambda values: HookedArray(error) if hook == "__array__" else Hooked(values, hook, error))


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("hook", HOOKS)
def test_an_exception_of_a_hook_is_the_cause_of_ours(hook: str, call: str) -> None:
    for kind in ORDINARY:
        error = kind("of the hook")
        if kind is AttributeError and hook in {"mask", "units"}:
            call_with(call, hook, error)  # as if the attribute were missing
            continue
        with pytest.raises(errors.MaxopsError, match=f"{kind.__name__}: .*of the hook") as raised:
            call_with(call, hook, error)
        assert raised.value.__cause__ is error
        assert raised.value.clause.endswith(".arrays")


class Spaced(Hooked):
    """An array with its own namespace."""

    def __init__(self, values: Array, name: str) -> None:
        super().__init__(values, "", KeyError())
        self.__name__ = name

    def __array_namespace__(self) -> Any:
        return self


@pytest.mark.parametrize("count", [2, 3])
def test_arrays_of_several_namespaces_are_refused(count: int) -> None:
    """Test arrays of several namespaces among NumPy arrays: the kind of the result would be arbitrary."""
    made: list[Any] = [Spaced(np.ones(3), f"space{number}") for number in range(count)]
    ids: Any = Spaced(np.zeros(3, np.int64), "ids")
    calls: tuple[Callable[[], Any], ...] = (
        lambda: mo.maximum(np.ones(3), *made),
        lambda: mo.maximum(*made, np.ones(3)),
        lambda: mo.segment_max(made[0], ids, fill_mode="ZERO"),
        lambda: mo.segment_max(made[0], offsets=ids, check_ids=False, fill_mode="ZERO"),
    )
    for call in calls:
        with pytest.raises(errors.EngineError, match=r"got arrays from different libraries: space\d, ") as raised:
            call()
        assert raised.value.clause.endswith(".arrays")
    same: Any = Spaced(np.ones(3), "one")
    assert mo.maximum(same, np.zeros(3), same).tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("more", "advice"),
    [("mask", "fill masked elements first"), ("units", r"\.magnitude"), ("unit", r"\.value")],
    ids=str,
)
@pytest.mark.parametrize("call", CALLS)
def test_what_a_plain_array_has_not_is_told_how_to_leave(more: str, advice: str, call: str) -> None:
    kind = type("Own", (Hooked,), {more: 3})
    with pytest.raises(errors.DTypeError, match=rf"has a {more.removesuffix('s')}, .*{advice}") as raised:
        CALLS[call](lambda array: kind(array, "", KeyError()))
    assert raised.value.clause.endswith(".arrays")


UNASKED = [
    *("shape", "ndim", "dtype", "size", "index", "columns", "name"),
    *("__len__", "__iter__", "__getitem__", "__bool__"),
]


@pytest.mark.parametrize("call", CALLS)
def test_an_attribute_that_is_no_part_of_the_protocol_is_not_asked(call: str) -> None:
    for name in UNASKED:

        def fails(_: object) -> Any:
            raise RuntimeError(name)  # noqa: B023 - called within this turn

        values: list[Any] = [property(fails), fails, None, 3]
        for value in values:
            kind = type("Own", (Hooked,), {name: value})
            CALLS[call](lambda array: kind(array, "", KeyError()))  # noqa: B023 - called within this turn


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("hook", HOOKS)
def test_memory_errors_and_what_ends_a_program_pass(hook: str, call: str) -> None:
    for kind in UNCHANGED:
        error = kind()
        with pytest.raises(kind) as raised:
            call_with(call, hook, error)
        assert raised.value is error


@pytest.mark.parametrize("device", [None, (), 1, ("cpu", 0), (None, 0)], ids=repr)
def test_a_device_that_is_none_is_an_error_of_ours(device: Any) -> None:
    class Elsewhere(Hooked):
        def __dlpack_device__(self) -> Any:
            return device

    with pytest.raises(errors.MaxopsError):
        mo.run(ReduceCall(Elsewhere(np.ones(3), "", KeyError())))


# --------------------------------------------------------------------------------------------- accepted arrays


class Plain:
    """An array with only `__dlpack__`, without the hook that names the device."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __dlpack__(self, **options: Any) -> Any:
        return self.values.__dlpack__(**options)


class Sub(np.ndarray):
    """A subclass of ndarray."""


class Giving:
    """An array whose `__array__` returns its content."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.values


@pytest.mark.parametrize("call", CALLS)
def test_without_a_hook_for_the_device_it_is_the_cpus(call: str) -> None:
    assert CALLS[call](Plain).tolist() == CALLS[call](np.asarray).tolist()


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("device", [0, 2, 3, 10, -1])
def test_an_array_on_a_device_is_refused(device: int, call: str) -> None:
    with pytest.raises(errors.EngineError, match=rf"is on a device \(DLPack device type {device}\)") as raised:
        CALLS[call](lambda values: Lent(values, device))
    assert raised.value.clause.endswith(".arrays")


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("family", ["floating", "integer", "bool", "complex", None])
def test_text_of_tensorflow_is_not_read(monkeypatch: pytest.MonkeyPatch, family: str | None, call: str) -> None:
    """Test that the memory of text is not requested from TensorFlow, which would abort the process."""

    class Tensor(Plain):
        dtype = SimpleNamespace(
            name="string", **{f"is_{other}": other == family for other in ("floating", "integer", "bool", "complex")}
        )

        def __dlpack__(self, **options: Any) -> Any:
            assert family is not None
            return super().__dlpack__(**options)

    monkeypatch.setitem(sys.modules, "tensorflow", SimpleNamespace(Tensor=Tensor))
    if family is not None:
        assert CALLS[call](Tensor).tolist() == CALLS[call](np.asarray).tolist()
        return
    with pytest.raises(errors.DTypeError, match="of type Tensor has unsupported dtype string; convert it to") as raised:
        CALLS[call](Tensor)
    assert raised.value.clause.endswith(".types")


@pytest.mark.parametrize("call", CALLS)
def test_array_hooks_give_plain_arrays_or_an_error(call: str) -> None:
    got, expected = CALLS[call](Giving), CALLS[call](np.asarray)
    assert type(got) is np.ndarray
    assert got.tolist() == expected.tolist()
    with pytest.raises(errors.DTypeError, match="cannot be converted to a plain NumPy array") as raised:
        CALLS[call](lambda values: Giving(values.view(Sub)))
    assert raised.value.clause.endswith(".arrays")


def test_nothing_is_copied_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Array] = []

    def noted(call: MaxCall) -> Array:
        seen.extend(call.inputs)
        return seen[0]

    monkeypatch.setattr("maxops.engines.numpy.run", noted)
    lent, described = np.ones(3), np.zeros(3)
    given: list[Any] = [Plain(lent), Giving(described)]
    mo.maximum(*given)
    assert [np.shares_memory(*pair) for pair in zip(seen, (lent, described), strict=True)] == [True, True]


def test_every_result_comes_back_in_the_arrays_own_kind() -> None:
    taken: list[Array] = []

    class Counting(Hooked):
        def from_dlpack(self, array: Any) -> Any:
            taken.append(array)
            return (array,)

    x: Any = Counting(np.array([1.0, 3.0, 2.0]), "", KeyError())
    values, places = mo.reduce_max(x, return_indices=True)
    assert (values[0].tolist(), places[0].tolist()) == ([3.0], [1])
    assert len(taken) == 2
    # NumPy arrays do not affect the kind of the result.
    assert mo.maximum(np.zeros(3), x)[0].tolist() == [1.0, 3.0, 2.0]
    assert mo.maximum(x, np.float64(2))[0].tolist() == [2.0, 3.0, 2.0]
