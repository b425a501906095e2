"""Runtimes for libraries of functions, which have no models and no operator versions.

For the kit and for benchmarks, `maxops.bench.libraries` defines how each library is imported, accepts arrays and
computes a maximum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from types import MappingProxyType
from typing import ClassVar

from maxops import dtypes
from maxops.bench.libraries import LIBRARIES
from maxops.conformance.case import Call, Feed, Input
from maxops.conformance.literal import literal, type_text
from maxops.conformance.runtimes.runtime import NotApplicableError, Prepared, require_no_constructs
from maxops.conformance.runtimes.scripted import Scripted
from maxops.dtypes import DType

Lines = tuple[str, ...]
NUMPY, TORCH, JAX = LIBRARIES["numpy"], LIBRARIES["torch"], LIBRARIES["jax"]
PYARROW, POLARS, NUMBAGG = LIBRARIES["pyarrow"], LIBRARIES["polars"], LIBRARIES["numbagg"]
NESTED = 64  # maximum depth of nested calls; Python's limit is below 200


class Library(Scripted):
    """The base class of libraries.

    A subclass defines lines of code for each operator. Words in braces are replaced for each call.
    """

    missing_types: ClassVar[frozenset[DType]] = frozenset({dtypes.REAL})
    array: ClassVar[str] = "{}"  # converts a NumPy array to the library's own array; {tensor} is the converted data
    # For all inputs: {pairs} applies `pair` from the first to the last input; {arrays} and {columns} list the inputs.
    elementwise: ClassVar[str] = ""
    pair: ClassVar[str] = ""
    # For {data}; {axis} is an expression for a tuple, or None for all axes. `expand` restores reduced axes.
    along_axes: ClassVar[Lines] = ()
    expand: ClassVar[Lines] = ()
    # For {data}, and {ids} that are less than count; {fill} is the value of empty segments.
    by_ids: ClassVar[Lines] = ()

    def setup(self, call: Call) -> list[str]:
        """Return lines that define the constants."""
        require_no_constructs(call)
        if call.dtype in self.missing_types:
            raise NotApplicableError(f"{self.name} does not support the type {call.dtype}")
        self.answer(call)  # raises if the library lacks the operator
        return [f"{name} = {literal(array)}" for name, array in call.constants.items()]

    def answer(self, call: Call) -> list[str]:
        """Return the operator's lines."""
        if call.row.is_scatter:
            raise NotApplicableError(f"{self.name} has no {call.row.operator}")
        if call.row.operator == "Max":
            return self._maximum(call)
        return self._reduce_max(call) if call.row.operator == "ReduceMax" else self._segment_max(call)

    def words(self, call: Call) -> dict[str, str]:
        """Return the text for each word in braces: the type, its lowest value, and its lowest finite value."""
        least = _lowest_finite(call.dtype)
        return {"dtype": str(call.dtype), "lowest": "-np.inf" if call.dtype.kind == "float" else least, "least": least}

    def tensor(self, call: Call, name: str) -> str:
        """Return the named array as the library's own array."""
        del call
        return self.array.format(name)

    def _maximum(self, call: Call) -> list[str]:
        if not call.inputs:
            raise NotApplicableError("a function cannot express a maximum without inputs")
        names = [_given(each).name for each in call.inputs]
        if not self.elementwise:
            raise NotApplicableError(f"{self.name} has no element-wise maximum")
        tensors = [self.tensor(call, name) for name in names]
        values = {
            "pairs": _folded(self.pair, tensors) if self.pair else "",
            "arrays": ", ".join(tensors),
            "columns": ", ".join(f"{name!r}: {name}" for name in names),
        }
        return [self.elementwise.format(**values, **self.words(call))]

    def _reduce_max(self, call: Call) -> list[str]:
        attributes = dict(call.attributes)
        data, axes = (*call.inputs, None)[:2]
        if attributes.get("noop_with_empty_axes"):
            raise NotApplicableError(f"{self.name} has no noop_with_empty_axes")
        if axes is None:
            axis = f"{tuple(attributes.get('axes', ())) or None}"
        elif axes.constant is not None:
            axis = f"{tuple(axes.constant.reshape(-1).tolist()) or None}"
        else:
            axis = f"tuple({axes.name}.tolist()) or None"
        name, keepdims = _given(data).name, bool(attributes.get("keepdims", 1))
        if not self.along_axes:
            raise NotApplicableError(f"{self.name} does not support the maximum along axes")
        values = {"data": name, "tensor": self.tensor(call, name), "axis": axis, "keepdims": keepdims}
        lines = self.along_axes + (self.expand if keepdims else ())
        return [line.format(**values, **self.words(call)) for line in lines]

    def _segment_max(self, call: Call) -> list[str]:
        data, ids, number = (_given(call.inputs[0]).name, _given(call.inputs[1]).name, (*call.inputs, None)[2])
        mode = str(dict(call.attributes).get("fill_mode")).upper()
        if mode not in ("ZERO", "LOWEST"):
            raise NotApplicableError(f"{self.name} has no fill_mode {mode!r}")
        if not self.by_ids:
            raise NotApplicableError(f"{self.name} has no segment maximum")
        lines = [f"count = {f'int({ids}[-1]) + 1 if {ids}.size else 0' if number is None else f'int({number.name})'}"]
        if number is not None:  # ids may be out of range
            lines += [f"inside = {ids} < count", f"{data}, {ids} = {data}[inside], {ids}[inside]"]
        words = self.words(call)
        words |= {"data": data, "tensor": self.tensor(call, data), "ids": ids}
        words["fill"] = "0" if mode == "ZERO" else words["least"]
        return lines + [line.format(**words) for line in self.by_ids]


def _folded(pair: str, tensors: Sequence[str]) -> str:
    """Return an expression that applies `pair` to all tensors. It combines groups, because Python limits nesting."""
    groups = [tensors[start : start + NESTED] for start in range(0, len(tensors), NESTED)]
    return reduce(pair.format, [reduce(pair.format, group) for group in groups])


def _given(each: Input | None) -> Input:
    if each is None:
        raise NotApplicableError("a function call cannot omit an array argument")
    return each


def _lowest_finite(dtype: DType) -> str:
    if dtype.kind == "float":
        return f"{'ml_dtypes' if dtype == dtypes.BFLOAT16 else 'np'}.finfo({type_text(dtype)}).min"
    return "False" if dtype == dtypes.BOOL else f"np.iinfo({type_text(dtype)}).min"


def _spelled(code: str, inputs: str = "") -> str:
    """Return the expression that `maxops bench` runs, for `data` and `ids` or for inputs, with words in braces."""
    return code.format(inputs=inputs, out="", axis="{axis}", keepdims="{keepdims}", count="count")


FILLED = "actual[np.bincount({ids}, minlength=count) == 0] = {fill}"  # fills the segments without ids


class NumPy(Library):
    """The NumPy library, which computes rational numbers as Python objects."""

    name = "numpy"
    missing_types: ClassVar[frozenset[DType]] = frozenset()
    pair: ClassVar[str] = _spelled(NUMPY.max[0].code, "{}, {}")
    elementwise = "actual = np.asarray({pairs})"
    along_axes: ClassVar[Lines] = ("data = {tensor}", f"actual = np.asarray({_spelled(NUMPY.reduce_max[0].code)})")
    by_ids: ClassVar[Lines] = (
        "actual = np.full((count, *{data}.shape[1:]), {lowest}, {data}.dtype)",
        "np.maximum.at(actual, {ids}, {data})",
        FILLED,
    )


class Jax(Library):
    """The JAX library: XLA compiles each function for the CPU, with 64-bit types."""

    name = "jax"
    opening: Lines = tuple(JAX.opening.splitlines())
    environment: Mapping[str, str] = MappingProxyType({"JAX_PLATFORMS": "cpu"})
    array: ClassVar[str] = JAX.array
    pair = "jnp.maximum({}, {})"
    elementwise = "actual = np.asarray({pairs})"
    along_axes: ClassVar[Lines] = ("actual = np.asarray(jnp.max({tensor}, axis={axis}, keepdims={keepdims}))",)
    by_ids: ClassVar[Lines] = (
        "data, ids = {tensor}, jnp.asarray({ids})",
        "highest = jax.ops.segment_max(data, ids, num_segments=count, indices_are_sorted=True)",
        "empty = np.bincount({ids}, minlength=count) == 0",
        "actual = np.asarray(highest.at[empty].set({fill}))",
    )


class TensorFlow(Library):
    """The TensorFlow library, with its eager functions on the CPU."""

    name = "tensorflow"
    opening: Lines = ("import tensorflow as tf",)
    # do not use a GPU, and print no start-up messages
    environment: Mapping[str, str] = MappingProxyType({"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"})
    array = "tf.constant({})"
    pair = "tf.maximum({}, {})"
    elementwise = "actual = {pairs}.numpy()"
    along_axes: ClassVar[Lines] = (
        "actual = np.asarray(tf.reduce_max({tensor}, axis={axis}, keepdims={keepdims}).numpy())",
    )
    by_ids: ClassVar[Lines] = (
        "actual = tf.math.unsorted_segment_max({tensor}, tf.constant({ids}), count).numpy()",
        FILLED,
    )


class Torch(Library):
    """The PyTorch library. Its tensors share NumPy's memory, and bfloat16 data is passed as int16 bits."""

    name = "torch"
    opening: Lines = (TORCH.opening,)
    pair: ClassVar[str] = _spelled(TORCH.max[0].code, "{}, {}")
    elementwise = "actual = {pairs}{numpy}"
    along_axes: ClassVar[Lines] = ("data = {tensor}", f"actual = {_spelled(TORCH.reduce_max[0].code)}{{numpy}}")
    by_ids: ClassVar[Lines] = (  # scatter_reduce_ requires int64 ids of the data's shape
        "data, ids = {tensor}, torch.from_numpy({ids}).long()",
        "places = ids.reshape(-1, *[1] * (data.ndim - 1)).expand(data.shape)",
        "highest = torch.full((count, *data.shape[1:]), {lowest}, dtype=data.dtype)",
        'highest.scatter_reduce_(0, places, data, "amax")',
        "empty = torch.bincount(ids, minlength=count) == 0",
        "highest[empty] = {fill}",
        "actual = highest{numpy}",
    )

    def start(self) -> None:
        """Import PyTorch, and use one thread, because most calls are small."""
        super().start()
        self.module.set_num_threads(1)

    @property
    def version(self) -> str:
        """Return the version without the build label, such as "+cpu"."""
        return str(self.module.__version__).partition("+")[0]

    def tensor(self, call: Call, name: str) -> str:
        """Return an expression for the tensor. Data of type bfloat16 is passed as int16 bits."""
        return TORCH.conversions(call.dtype.numpy)[0].format(name)

    def words(self, call: Call) -> dict[str, str]:
        """Return the text for each word in braces, with PyTorch's limits of types and conversion to an array."""
        is_float = call.dtype.kind == "float"
        least = f"torch.{'finfo' if is_float else 'iinfo'}(data.dtype).min"
        return {
            "lowest": "-np.inf" if is_float else least,
            "least": least,
            "numpy": TORCH.conversions(call.dtype.numpy)[1].format(""),
        }


class Numbagg(Library):
    """The Numbagg library, which skips NaN by design, as the names of its functions indicate."""

    name = "numbagg"
    opening: Lines = (NUMBAGG.opening,)
    missing_types: ClassVar[frozenset[DType]] = frozenset({dtypes.REAL, dtypes.BFLOAT16})
    along_axes: ClassVar[Lines] = (
        "data, axis = {data}, {axis}",
        f"actual = np.asarray({NUMBAGG.reduce_max[0].code.format(axis='axis')})",
    )
    by_ids: ClassVar[Lines] = (  # the groups are the last axis
        "data, ids = {data}, {ids}",
        f"found = {_spelled(NUMBAGG.segment_max[0].code)}",
        "actual = np.moveaxis(found, -1, 0)",
        FILLED,
    )
    expand: ClassVar[Lines] = ("actual = np.expand_dims(actual, tuple(range({data}.ndim)) if axis is None else axis)",)


class NumpyGroupies(Library):
    """The numpy_groupies library, which supports only groups, and ignores whether ids are sorted."""

    name = "numpy_groupies"
    opening: Lines = ("import numpy_groupies",)
    by_ids: ClassVar[Lines] = (
        'actual = numpy_groupies.aggregate({ids}, {data}, func="max", size=count, fill_value={fill}{of_rows})',
    )

    def words(self, call: Call) -> dict[str, str]:
        """Return the text for each word in braces, with an axis if data has several axes."""
        data = call.inputs[0]
        return super().words(call) | {"of_rows": ", axis=0" if data is not None and len(data.dims) > 1 else ""}


class Columns(Library):
    """The base class of column libraries: arrays are 1-D with equal lengths, and an empty array's maximum is null."""

    missing_types: ClassVar[frozenset[DType]] = frozenset({dtypes.REAL, dtypes.BFLOAT16})

    def words(self, call: Call) -> dict[str, str]:
        """Return the text for each word in braces, with the shape of a column's maximum."""
        return super().words(call) | {"shape": "(1,)" if dict(call.attributes).get("keepdims", 1) else "()"}

    def prepare(self, call: Call) -> Prepared:
        """Reject feeds that are not columns, and maxima of empty columns."""
        prepared = super().prepare(call)

        def run(feed: Feed) -> object:
            arrays = [array for array in call.whole(feed) if array is not None]
            data = arrays[: {"ReduceMax": 1, "SegmentMax": 2}.get(call.row.operator)]
            if any(array.ndim != 1 for array in data) or len({array.shape for array in data}) > 1:
                raise NotApplicableError(f"{self.name} supports only 1-D columns of equal length")
            if call.row.operator == "ReduceMax" and data[0].size == 0:
                raise NotApplicableError(f"{self.name} returns null for the maximum of no elements")
            return prepared(feed)

        return run


class PyArrow(Columns):
    """The PyArrow library. Its compute functions skip nulls and NaN."""

    name = "pyarrow"
    opening: Lines = (PYARROW.opening,)
    array: ClassVar[str] = PYARROW.array
    elementwise: ClassVar[str] = f"actual = {_spelled(PYARROW.max[0].code, '{arrays}')}.to_numpy(zero_copy_only=False)"
    along_axes: ClassVar[Lines] = (
        "actual = pa.array([pc.max({tensor})]).to_numpy(zero_copy_only=False).reshape({shape})",
    )
    by_ids: ClassVar[Lines] = (
        'table = pa.table({{"ids": {ids}, "data": {data}}})',
        f"groups = {PYARROW.segment_max[0].code}",
        "actual = np.full(count, {fill}, np.{dtype})",
        'actual[groups["ids"].to_numpy()] = groups["data_max"].to_numpy()',
    )


class Polars(Columns):
    """The Polars library. Its columns are in a data frame, which preserves their types."""

    name = "polars"
    opening: Lines = (POLARS.opening,)
    elementwise = "actual = pl.DataFrame({{{columns}}}).select(pl.max_horizontal(pl.all())).to_series().to_numpy()"
    along_axes: ClassVar[Lines] = (
        'actual = pl.DataFrame({{"data": {data}}}).max().to_series().to_numpy().reshape({shape})',
    )
    by_ids: ClassVar[Lines] = (
        'frame = pl.DataFrame({{"ids": {ids}, "data": {data}}})',
        f"groups = {POLARS.segment_max[0].code}",
        "actual = np.full(count, {fill}, np.{dtype})",
        'actual[groups["ids"].to_numpy()] = groups["data"].to_numpy()',
    )
