"""Between NumPy's arrays and the core: types that are not ours, code of users' classes, memory and polls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from bits import Array
from maxops import _native
from maxops.errors import AxesError, DTypeError, OutputError

NATIVE: Any = _native
ANYHOW: Any = mo  # with arguments that its types forbid, too
FLOATS, IDS = np.array([1.5, -2, 3], np.float32), np.array([0, 0, 1])

# ------------------------------------------------------------------------------------------------ types that are not ours


def _quad() -> Any:
    return pytest.importorskip("numpy_quaddtype").QuadPrecDType()


def _scaled_float() -> Any:
    """A type without a number, of NumPy's own for tests; a user's types are of this kind."""
    return np._core._multiarray_umath._get_sfloat_dtype()(1.0)  # type: ignore[attr-defined]


TYPES: dict[str, Callable[[], Any]] = {
    "no-number": _scaled_float,
    "numpy_quaddtype": _quad,
    "string": np.dtypes.StringDType,
    **{
        name: lambda name=name: np.dtype(name)  # type: ignore[misc]
        for name in ("longdouble", "complex64", "complex128", "clongdouble", "datetime64[s]", "timedelta64[s]")
    },
    **{name: lambda name=name: np.dtype(name) for name in ("S4", "U2", "V1", "V2", "V4", "V8")},  # type: ignore[misc]
    "structured": lambda: np.dtype([("a", np.float32)]),
    "float8": lambda: np.dtype(ml_dtypes.float8_e5m2),
    "int4": lambda: np.dtype(ml_dtypes.int4),
}


@pytest.fixture(params=TYPES)
def other(request: pytest.FixtureRequest) -> Any:
    """A type that no operator takes."""
    return TYPES[request.param]()


def _zeros(dtype: Any, shape: Any) -> Array:
    """Arrays whose memory is zeros, also of types that cannot be made so."""
    size = int(np.prod(shape)) * dtype.itemsize
    made: Array = np.ndarray(shape, dtype, np.zeros(size, np.uint8)) if dtype.kind != "T" else np.zeros(shape, dtype)
    return made


def _scalars(dtype: Any) -> Iterator[Any]:
    yield _zeros(dtype, ())
    if isinstance(item := _zeros(dtype, (1,))[0], np.generic):
        yield item


def _segments(**options: Any) -> Any:
    return lambda of: of.segment_max(**{"data": FLOATS, "segment_ids": IDS, "fill_mode": "ZERO"} | options)


def _calls(dtype: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any], type[Exception]]]:
    """Each argument with an array or a scalar of the type: its name, its value, the call, and the error."""
    one, three = _zeros(dtype, (1,)), _zeros(dtype, (3,))
    for position in range(3):
        arrays = [FLOATS] * position + [three] + [FLOATS] * (2 - position)
        yield f"input {position}", three, lambda of, arrays=arrays: of.maximum(*arrays), DTypeError
    yield "alone", three, lambda of: of.maximum(three), DTypeError
    yield "alike", three, lambda of: of.maximum(three, three), DTypeError
    yield "beside a number", three, lambda of: of.maximum(three, 1), DTypeError
    yield "out", three, lambda of: of.maximum(FLOATS, FLOATS, out=three), OutputError
    yield "data", three, lambda of: of.reduce_max(three), DTypeError
    yield "data, indices", three, lambda of: of.reduce_max(three, return_indices=True), DTypeError
    yield "axes", one, lambda of: of.reduce_max(FLOATS, one), AxesError
    yield "out", one, lambda of: of.reduce_max(FLOATS, out=one), OutputError
    yield "data", three, _segments(data=three), DTypeError
    yield "ids", three, _segments(segment_ids=three), DTypeError
    yield "ids, unsorted", three, _segments(segment_ids=three, sorted=False), DTypeError
    yield "offsets", three, _segments(segment_ids=None, offsets=three), DTypeError
    yield "out", _zeros(dtype, (2,)), _segments(out=_zeros(dtype, (2,))), OutputError
    for scalar in _scalars(dtype):
        yield "scalar", scalar, lambda of, scalar=scalar: of.maximum(FLOATS, scalar), DTypeError
        yield "scalars", scalar, lambda of, scalar=scalar: of.maximum(scalar, scalar), DTypeError
        yield "axes", scalar, lambda of, scalar=scalar: of.reduce_max(FLOATS, scalar), AxesError
        yield "axes", scalar, lambda of, scalar=scalar: of.reduce_max(FLOATS, (scalar,)), AxesError
        yield "initial", scalar, lambda of, scalar=scalar: of.reduce_max(FLOATS, initial=scalar), DTypeError
        yield "initial", scalar, _segments(fill_mode=None, initial=scalar), DTypeError
        yield "fill_value", scalar, _segments(fill_mode=None, fill_value=scalar), DTypeError
        yield "num_segments", scalar, _segments(num_segments=scalar), DTypeError


def test_types_that_are_not_ours(other: Any) -> None:
    """By every argument, with the planner and without; nothing is written."""
    count = 0
    for name, value, call, error in _calls(other):
        before = np.asarray(value).tobytes()
        with pytest.raises(error, match=r"\[maxops\.") as raised:
            call(mo)
        assert type(raised.value) is error, (name, raised.value)
        assert call(NATIVE) is None, name
        assert np.asarray(value).tobytes() == before, name
        count += 1
    assert count >= 24


STANDARDS = [
    (row.spec.standard, row.spec.operator, row.spec.version) for row in mo.operators() if row.spec.standard != "maxops"
]


@pytest.mark.parametrize("row", STANDARDS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_types_that_no_standard_has(row: tuple[str, str, int | None], other: Any) -> None:
    operator: Any = mo.operator(*row)
    three = _zeros(other, (3,))
    calls = {
        "Max": [lambda: operator(three), lambda: operator(three, three), lambda: operator(FLOATS, three)],
        "ReduceMax": [lambda: operator(three)],
        "SegmentMax": [
            lambda: operator(three, IDS, fill_mode="ZERO"),
            lambda: operator(FLOATS, three, fill_mode="ZERO"),
            lambda: operator(FLOATS, IDS, _zeros(other, ()), fill_mode="ZERO"),
        ],
    }
    for call in calls[row[1]]:
        with pytest.raises(DTypeError):
            call()


# ------------------------------------------------------------------------------------------- code of users' classes

HOOKS = (
    "__index__ __int__ __float__ __bool__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __iter__ __getitem__"
    " __contains__ __array__ __mod__ __rmod__ __add__ __radd__ __sub__ __neg__ __and__ __rshift__ upper lower item"
).split()
VALUES: dict[str, Any] = {
    "int64": np.int64(0),
    "int8": np.int8(0),
    "uint64": np.uint64(0),
    "float32": np.float32(0),
    "float64": np.float64(0),
    "int": 0,
    "float": 0.0,
    "str": "zero",
    "tuple": (0,),
    "list": [0],
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "maximum-input": lambda given: ANYHOW.maximum(FLOATS, given),
    "maximum-first": lambda given: ANYHOW.maximum(given, FLOATS),
    "maximum-out": lambda given: ANYHOW.maximum(FLOATS, out=given),
    "maximum-ties": lambda given: ANYHOW.maximum(FLOATS, ties=given),
    "reduce_max-data": lambda given: ANYHOW.reduce_max(given),
    "reduce_max-axes": lambda given: ANYHOW.reduce_max(FLOATS, given),
    "reduce_max-axes-in-a-tuple": lambda given: ANYHOW.reduce_max(FLOATS, (given,)),
    "reduce_max-axes-in-a-list": lambda given: ANYHOW.reduce_max(FLOATS, [given]),
    **{
        f"reduce_max-{name}": lambda given, name=name: ANYHOW.reduce_max(FLOATS, **{name: given})  # type: ignore[misc]
        for name in "keepdims noop_with_empty_axes out axis dim initial return_indices ties".split()
    },
    **{
        f"segment_max-{name}": lambda given, name=name: _segments(**{name: given})(mo)  # type: ignore[misc]
        for name in (
            "data segment_ids num_segments fill_mode out check_ids sorted out_of_range dim return_indices return_empty"
            " ties"
        ).split()
    },
    "segment_max-offsets": lambda given: _segments(segment_ids=None, offsets=given)(mo),
    "segment_max-initial": lambda given: _segments(fill_mode=None, initial=given)(mo),
    "segment_max-fill_value": lambda given: _segments(fill_mode=None, fill_value=given)(mo),
}


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, TypeError, MemoryError])
@pytest.mark.parametrize("call", CALLS)
def test_what_a_users_class_raises_comes_out_and_its_code_runs_once(call: str, error: type[BaseException]) -> None:
    count = 0
    for (kind, value), hook in product(VALUES.items(), HOOKS):
        base = type(value)
        raised: list[BaseException] = []

        def own(*_: Any, raised: list[BaseException] = raised) -> Any:
            raised.append(error("of a user's class"))
            raise raised[-1]

        given = type("Own", (base,), {hook: own})(value)
        came: BaseException | None = None
        try:
            CALLS[call](given)
        except BaseException as caught:  # noqa: BLE001 - whatever it is
            came = caught
        if hook == "__array__" and isinstance(came, DTypeError):  # which says whose array it is
            came = came.__cause__
        assert not raised or (came is raised[0] and len(raised) == 1), (kind, hook, raised, came)
        count += 1
    assert count == len(VALUES) * len(HOOKS)


@pytest.mark.parametrize("base", [np.int64, np.int8, np.uint16])
def test_an_integer_of_a_users_class_is_asked_once_and_counts(base: type) -> None:
    for value in (0, 1):
        asked = []

        class Own(base):  # type: ignore[misc]
            def __index__(self) -> int:
                asked.append(1)  # noqa: B023 - called within this turn
                return value  # noqa: B023

        data = np.arange(6, dtype=np.float32).reshape(2, 3)
        assert mo.reduce_max(data, Own(7)).tolist() == mo.reduce_max(data, value).tolist()
        assert mo.reduce_max(data, [Own(7)]).tolist() == mo.reduce_max(data, value).tolist()
        assert len(asked) == 2


# -------------------------------------------------------------------------------------- NumPy's memory without the GIL

NATIVE_SOURCES = Path(__file__).parents[1] / "native" / "bindings"


def _balanced(text: str, start: int) -> str:
    """From an opening parenthesis to the one that closes it."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    raise AssertionError("a parenthesis that nothing closes")


def _released_work() -> Iterator[tuple[str, str]]:
    """What runs without the GIL: each call of run_released with the lambdas that it names, and what comes before."""
    text = (NATIVE_SOURCES / "operators.cpp").read_text()
    for found in re.finditer(r"\brun_released\(", text):
        before = text[text.rindex("\n}", 0, found.start()) : found.start()]
        work = _balanced(text, found.end() - 1)
        for name in re.findall(r"\w+", work):
            if (start := before.find(f"const auto {name} = [&] ")) >= 0:
                work += before[start : before.index("};", start)]
        yield work, before


def test_nothing_of_pythons_is_read_without_the_gil() -> None:
    """A lambda that runs there names none of its functions, and each array that it names has a shape of its own."""
    works = list(_released_work())
    assert len(works) == 6  # Max, ReduceMax, SegmentMax's two steps, ids that are checked, and that are widened
    of_arrays = 0
    for work, before in works:
        inside = work.replace("PyObject", "").replace("poll_signals", "")
        assert not re.search(r"\b(Py|NPY_|npy_)\w*", inside), work
        release = re.match(r"\((\w+),", work)
        assert release is not None, work
        owned = set(re.findall(rf"\b{release[1]}\.own\(&?([\w.]+)", before))
        if "call" in re.findall(r"\w+", work):
            fields = {"call.data", "call.indices"} if "segments(" in work else set()
            fields = {"inputs"} if "maximum(" in work else fields or {"call.data"}
            fields = {"call.indices"} if "check_indices" in work else fields
            assert fields <= owned, (fields, owned)
            of_arrays += 1
        if re.search(r"\bview\b", work) and "widen" not in work:
            assert re.search(rf"Output output\([^;]*&{release[1]}\);", before), work
    assert of_arrays == 5


def test_one_function_alone_looks_at_an_arrays_shape() -> None:
    """Beside comparisons of sizes, and copies, that are done while the GIL is held."""
    uses = [
        (path.name, line.strip())
        for path in sorted(NATIVE_SOURCES.iterdir())
        for line in path.read_text().splitlines()
        if re.search(r"PyArray_(DIMS|STRIDES|SHAPE)\b", line)
    ]
    assert [name for name, _ in uses].count("arguments.h") == 2
    assert {name for name, _ in uses} == {"arguments.h", "output.cpp", "onnxruntime.cpp"}
    assert all("std::" in line for name, line in uses if name != "arguments.h"), uses
