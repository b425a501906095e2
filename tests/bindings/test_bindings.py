"""The bindings between NumPy arrays and the core: unsupported dtypes, user classes, memory, and interrupts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import maxops as mo
from helpers.bits import Array
from helpers.programs import run
from maxops import _native
from maxops.errors import AxesError, DTypeError, MaxopsError, OffsetsError, OutputError, SegmentIdsError

NATIVE: Any = _native
ANYHOW: Any = mo  # typed as Any, because some arguments are invalid
FLOATS, IDS = np.array([1.5, -2, 3], np.float32), np.array([0, 0, 1])

# ---------------------------------------------------------------------------------------------------- unsupported types


def _quad() -> Any:
    return pytest.importorskip("numpy_quaddtype").QuadPrecDType()


def _scaled_float() -> Any:
    """Return a dtype without a type number, from NumPy's own tests. User-defined dtypes are of this kind."""
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
    """Return a type that no operator supports."""
    return TYPES[request.param]()


def _zeros(dtype: Any, shape: Any) -> Array:
    """Return an array of zero bytes, even for a type that `np.zeros` does not support."""
    size = int(np.prod(shape)) * dtype.itemsize
    made: Array = np.ndarray(shape, dtype, np.zeros(size, np.uint8)) if dtype.kind != "T" else np.zeros(shape, dtype)
    return made


def _scalars(dtype: Any) -> Iterator[Any]:
    yield _zeros(dtype, ())
    if isinstance(item := _zeros(dtype, (1,))[0], np.generic):
        yield item


def _maximum(arrays: Any, of: Any) -> Any:
    return of.maximum(*arrays)


def _reduce_max(of: Any, **options: Any) -> Any:
    return of.reduce_max(FLOATS, **options)


def _segments(**options: Any) -> Any:
    return lambda of: of.segment_max(**{"data": FLOATS, "segment_ids": IDS, "fill_mode": "ZERO"} | options)


def _calls(dtype: Any) -> Iterator[tuple[str, Any, Callable[[Any], Any], type[Exception]]]:
    """Yield, for each argument, its name, a value of the type, the call, and the error."""
    one, three = _zeros(dtype, (1,)), _zeros(dtype, (3,))
    for position in range(3):
        arrays = [FLOATS] * position + [three] + [FLOATS] * (2 - position)
        yield f"input {position}", three, partial(_maximum, arrays), DTypeError
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
    two = _zeros(dtype, (2,))
    yield "out", two, _segments(out=two), OutputError
    for scalar in _scalars(dtype):
        yield "scalar", scalar, partial(_maximum, [FLOATS, scalar]), DTypeError
        yield "scalars", scalar, partial(_maximum, [scalar, scalar]), DTypeError
        yield "axes", scalar, partial(_reduce_max, axes=scalar), AxesError
        yield "axes", scalar, partial(_reduce_max, axes=(scalar,)), AxesError
        yield "initial", scalar, partial(_reduce_max, initial=scalar), DTypeError
        yield "initial", scalar, _segments(fill_mode=None, initial=scalar), DTypeError
        yield "fill_value", scalar, _segments(fill_mode=None, fill_value=scalar), DTypeError
        yield "num_segments", scalar, _segments(num_segments=scalar), DTypeError


def _written(value: Any) -> object:
    """Return the content that a call may have changed or, for a scalar, its text, because copies differ in padding."""
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value)


def test_types_that_are_not_ours(other: Any) -> None:
    """Test an unsupported type in every argument, with and without the planner, and that nothing is written."""
    count = 0
    for name, value, call, error in _calls(other):
        before = _written(value)
        with pytest.raises(error, match=r"\[maxops\.") as raised:
            call(mo)
        assert type(raised.value) is error, (name, raised.value)
        assert call(NATIVE) is None, name
        assert _written(value) == before, name
        count += 1
    assert count >= 24


STANDARDS = [
    (row.spec.standard, row.spec.operator, row.spec.version) for row in mo.operators() if row.spec.standard != "maxops"
]


@pytest.mark.parametrize("row", STANDARDS, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_types_that_no_standard_has(row: tuple[str, str, int | None], other: Any) -> None:
    operator: Any = mo.operator(*row)
    three = _zeros(other, (3,))

    def scattered(indices: Any) -> list[tuple[Any, Any, Any]]:
        wrong = three.reshape(indices.shape)
        return [(three, indices, three), (FLOATS, wrong, FLOATS), (FLOATS, indices, three)]

    calls: dict[str, list[Callable[[], Any]]] = {
        "Max": [lambda: operator(three), lambda: operator(three, three), lambda: operator(FLOATS, three)],
        "ReduceMax": [lambda: operator(three)],
        "SegmentMax": [
            lambda: operator(three, IDS, fill_mode="ZERO"),
            lambda: operator(FLOATS, three, fill_mode="ZERO"),
            lambda: operator(FLOATS, IDS, _zeros(other, ()), fill_mode="ZERO"),
        ],
        "ScatterElements": [partial(operator, *given, reduction="max") for given in scattered(IDS)],
        "ScatterND": [partial(operator, *given, reduction="max") for given in scattered(IDS[:, np.newaxis])],
    }
    for call in calls[row[1]]:
        with pytest.raises(DTypeError):
            call()


# ------------------------------------------------------------------------------------------- code of users' classes

HOOKS = re.findall(
    r"\w+",
    """__index__ __int__ __float__ __bool__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ __hash__ __len__ __iter__
    __getitem__ __contains__ __array__ __mod__ __rmod__ __add__ __radd__ __sub__ __neg__ __and__ __rshift__ upper lower
    item""",
)
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
    "reduce_max-data": ANYHOW.reduce_max,
    "reduce_max-axes": lambda given: ANYHOW.reduce_max(FLOATS, given),
    "reduce_max-axes-in-a-tuple": lambda given: ANYHOW.reduce_max(FLOATS, (given,)),
    "reduce_max-axes-in-a-list": lambda given: ANYHOW.reduce_max(FLOATS, [given]),
    **{
        f"reduce_max-{name}": lambda given, name=name: ANYHOW.reduce_max(FLOATS, **{name: given})  # type: ignore[misc]
        for name in ("keepdims", "noop_with_empty_axes", "out", "axis", "dim", "initial", "return_indices", "ties")
    },
    **{
        f"segment_max-{name}": lambda given, name=name: _segments(**{name: given})(mo)  # type: ignore[misc]
        for name in (
            *("data", "segment_ids", "num_segments", "fill_mode", "out", "check_ids", "sorted", "out_of_range", "dim"),
            *("return_indices", "return_empty", "ties"),
        )
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
        actual: BaseException | None = None
        try:
            CALLS[call](given)
        except BaseException as caught:  # noqa: BLE001 - whatever it is
            actual = caught
        if hook == "__array__" and isinstance(actual, DTypeError):  # the error names the class of the array
            actual = actual.__cause__
        assert not raised or (actual is raised[0] and len(raised) == 1), (kind, hook, raised, actual)
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

NATIVE_SOURCES = Path(__file__).resolve().parents[2] / "native" / "bindings"


def _balanced(text: str, start: int) -> str:
    """Return the text from an opening parenthesis to the matching closing one."""
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    raise AssertionError("a parenthesis that nothing closes")


def _released_work() -> Iterator[tuple[str, str]]:
    """Yield the code that runs without the GIL: each call of run_released with its lambdas, and the code before it."""
    text = "".join((NATIVE_SOURCES / name).read_text() for name in ("operators.cpp", "gradients.cpp"))
    for found in re.finditer(r"\brun_released\(", text):
        before = text[text.rindex("\n}", 0, found.start()) : found.start()]
        work = _balanced(text, found.end() - 1)
        for name in re.findall(r"\w+", work):
            if (start := before.find(f"const auto {name} = [&] ")) >= 0:
                work += before[start : before.index("};", start)]
        yield work, before


def test_nothing_of_pythons_is_read_without_the_gil() -> None:
    """Test that code without the GIL uses no Python function, and that the shapes of its arrays are copied."""
    works = list(_released_work())
    # Max, ReduceMax, two steps of SegmentMax, ids that are checked and widened, and gradients
    assert len(works) == 7
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
        if "widen" in work:
            assert "view" in owned
        elif "spread_all" in work:
            assert {"views", "indices"} <= owned
        elif re.search(r"\bview\b", work):
            assert re.search(rf"Output output\([^;]*&{release[1]}, [^;]*\);", before), work
    assert of_arrays == 5


def test_one_function_alone_looks_at_an_arrays_shape() -> None:
    """Test that only one function reads an array's shape, except comparisons and copies that hold the GIL."""
    uses = [
        (path.name, line.strip())
        for path in sorted(NATIVE_SOURCES.iterdir())
        for line in path.read_text().splitlines()
        if re.search(r"PyArray_(DIMS|STRIDES|SHAPE)\b", line)
    ]
    assert [name for name, _ in uses].count("arguments.h") == 2
    assert {name for name, _ in uses} == {"arguments.h", "output.cpp", "onnxruntime.cpp"}
    assert all("std::" in line for name, line in uses if name != "arguments.h"), uses


# ----------------------------------------------------------------------------------- ids that another thread changes


@pytest.mark.parametrize("named", ["segment_ids", "offsets"])
def test_ids_that_another_thread_puts_right_meanwhile(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test the error if another thread corrects a fault between its detection and the search for its position."""
    monkeypatch.setattr(_native, "check_indices", lambda *_: ("", 0, 0, 0))
    given = {"segment_ids": None, named: np.array([0, 2, 1])}
    kind, clause = {"segment_ids": (SegmentIdsError, "ids"), "offsets": (OffsetsError, "offsets")}[named]
    with pytest.raises(kind, match=rf"{named} were changed by another thread .* \[maxops.segment_max.{clause}\]"):
        _segments(**given)(mo)


@pytest.mark.parametrize("name", ["maximum", "reduce_max", "segment_max"])
def test_arguments_that_another_thread_changes_after_the_plan(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, f"planned_{name}", lambda *_, **__: None)
    calls = {
        "maximum": lambda: ANYHOW.maximum(FLOATS, FLOATS[::-1], ties=_Text("even")),
        "reduce_max": lambda: ANYHOW.reduce_max(FLOATS, ties=_Text("even")),
        "segment_max": lambda: _segments(ties=_Text("even"))(mo),
    }
    with pytest.raises(
        MaxopsError, match=rf"{name} did not run, because another thread changed.*\[maxops.{name}.arrays\]"
    ):
        calls[name]()


class _Text(str):
    """A str subclass, which only the planner accepts."""


# --------------------------------------------------------------------------------------------- torch tensors as out


def test_an_out_of_torch_that_is_refused_keeps_its_version() -> None:
    torch = pytest.importorskip("torch")
    data, ids = torch.tensor([1.0, 5, 2]), torch.tensor([0, 0, 1])
    shapes = {"maximum": (3,), "reduce_max": (1,), "segment_max": (2,)}
    calls: dict[str, Callable[..., Any]] = {
        "maximum": lambda data, out: mo.maximum(data, data, out=out),
        "reduce_max": lambda data, out: mo.reduce_max(data, out=out),
        "segment_max": lambda data, out: mo.segment_max(data, ids, fill_mode="ZERO", out=out),
    }
    count = 0
    for (name, call), gradient in product(calls.items(), (False, True)):
        bad = [
            torch.zeros(7), torch.zeros((1, *shapes[name])), torch.zeros(shapes[name], dtype=torch.float64),
            torch.zeros(shapes[name], dtype=torch.int32), torch.zeros(shapes[name], dtype=torch.complex64),
            torch.zeros(1).expand(3, 3), torch.zeros(shapes[name], device="meta"),
            torch.zeros(shapes[name], requires_grad=True),
        ]  # fmt: skip
        for out in bad:
            with pytest.raises(MaxopsError):
                call(data.clone().requires_grad_(gradient), out)
            assert out._version == 0, (name, out)
            count += 1
        out = torch.full(shapes[name], 9.0)
        wrong = {"ties": "odd"} if name != "segment_max" else {"num_segments": -1}
        with pytest.raises(MaxopsError):
            getattr(ANYHOW, name)(data, *([ids] if name == "segment_max" else []), out=out, **wrong)
        assert (out._version, out.tolist()) == (0, torch.full(shapes[name], 9.0).tolist())
        assert call(data, out) is out
        assert out._version == 1
    assert count == 48


def test_an_out_of_torch_whose_write_is_stopped_moves_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    out, ones = torch.zeros(600_000), torch.ones(600_000)

    def stopped(_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("maxops.engines.numpy.run", stopped)
    with pytest.raises(KeyboardInterrupt):
        mo.maximum(ones, ones, out=out)
    assert out._version == 1


# ----------------------------------------------------------------------------------------------- limited address space

LIMITED = """
import resource
import numpy as np
import maxops as mo
from maxops import _native
mo.set_num_threads(2)
UNIT = 1 << 18  # each call needs 16 of them and more
wide, tall = np.zeros(96 * UNIT, np.int8), np.zeros(8 * UNIT, np.int64)
narrow = np.zeros(48 * UNIT, np.int8)
few = np.broadcast_to(np.int8(0), 32 * UNIT)
shuffled = np.random.default_rng(0).integers(0, 3 * UNIT, 24 * UNIT).astype(np.int32)
many = np.broadcast_to(np.int64(0), 24 * UNIT)
listed, fixed = [0] * (4 * UNIT), (0,) * (4 * UNIT)
def of(ids, *args, **options):
    return mo.segment_max(np.zeros(len(ids), np.int8), ids, *args, **options)
CALLS = {
    "output": lambda: mo.maximum(wide, wide),
    "output of a reduction": lambda: mo.reduce_max(wide[None], 0),
    "indices": lambda: mo.reduce_max(few[None], 0, return_indices=True)[1],
    "mask": lambda: of(np.zeros(1, int), 96 * UNIT, fill_mode="ZERO", return_empty=True)[1],
    "wider ids": lambda: mo.segment_max(narrow, narrow, fill_mode="ZERO"),
    "identity": lambda: mo.reduce_max(wide, noop_with_empty_axes=True),
    "identity, indices": lambda: mo.reduce_max(few[: 12 * UNIT], noop_with_empty_axes=True, return_indices=True)[1],
    "copied to out": lambda: mo.maximum(wide[1:], wide[:-1], out=wide[1:]),
    "working memory": lambda: mo.segment_max(many, shuffled, 3 * UNIT, fill_mode="ZERO", sorted=False),
    "ids in a list": lambda: mo.segment_max(few[: 4 * UNIT], listed, fill_mode="ZERO"),
    "ids in a tuple": lambda: mo.segment_max(few[: 4 * UNIT], fixed, fill_mode="ZERO"),
    "ids in a range": lambda: mo.segment_max(few[: 12 * UNIT], range(12 * UNIT), fill_mode="ZERO"),
    "offsets in a list": lambda: mo.segment_max(few[:0], offsets=listed, fill_mode="ZERO"),
    "offsets in a range": lambda: mo.segment_max(wide[: 12 * UNIT], offsets=range(12 * UNIT + 1), fill_mode="ZERO"),
    "empty segments": lambda: of(np.array([1, 0]), 96 * UNIT, fill_mode="LOWEST", sorted=False),
}
for name, call in CALLS.items():
    call()  # workers and libraries have what they need
    _native.empty_cache()
    kept = mo.maximum(np.broadcast_to(np.int8(0), 512 * UNIT), np.int8(1))
    del kept
    assert mo.memory_info().kept >= 512 * UNIT, name
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + (4 << 20), resource.RLIM_INFINITY))
    try:
        call()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert mo.memory_info().kept < 512 * UNIT, name
print(len(CALLS))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads what is mapped as Linux lists it")
def test_the_cache_gives_back_what_a_call_needs() -> None:
    # For AddressSanitizer (make sanitize), which would end the process if malloc fails.
    options = f"{os.environ.get('ASAN_OPTIONS', '')}:allocator_may_return_null=1"
    variables = {"MAXOPS_OUTPUT_CACHE": "1G", "MALLOC_MMAP_THRESHOLD_": "65536", "ASAN_OPTIONS": options}
    assert run(LIMITED, **variables) == "15\n"


# -------------------------------------------------------------------------------------------------------------- forks

FORKED = """
import os, signal, sys, warnings
warnings.filterwarnings("ignore", category=DeprecationWarning)
from maxops import _limits
source, target = bytes(1 << 22), bytearray(1 << 22)
def sweep():
    return _limits.sweep(memoryview(source), memoryview(target), False, 4)
before = sweep()
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)
        os._exit(0 if sweep() == before and sweep() == before else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert sweep() == before
print("done")
"""


def test_a_child_sweeps_memory_with_threads_of_its_own() -> None:
    assert run(FORKED) == "done\n"
