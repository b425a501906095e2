"""The libraries, in one table: what others use for the same work, as fast as they can be asked for it.

A library is how it spells a maximum, as Python. `maxops bench` times these texts on arrays that are already the
library's own; the conformance kit's runtimes of the same names run them on NumPy's.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

import maxops as mo
from maxops import dtypes
from maxops.bench.case import Case
from maxops.bench.inputs import FILL_MODE, Inputs, lowest, view
from maxops.bench.timing import Candidate, UnsupportedError
from maxops.dtypes import DType
from maxops.plan import Array

Back = Callable[[Any], Any]  # from a result to an array of NumPy's


@dataclass(frozen=True)
class Work:
    """A case with its inputs, as a library gets it."""

    case: Case
    inputs: Inputs
    threads: int

    @property
    def data(self) -> Array:
        """The first input."""
        return self.inputs.arrays[0]

    @property
    def ids(self) -> Array:
        """The segment ids."""
        assert self.inputs.ids is not None
        return self.inputs.ids

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays by the names that candidates' code has for them."""
        named = {f"x{number}": array for number, array in enumerate(self.inputs.arrays)}
        named |= {"data": self.data, "ids": self.inputs.ids, "out": self.inputs.out}
        return {name: array for name, array in named.items() if array is not None}

    @property
    def axes(self) -> tuple[int, ...] | None:
        """The axes that are reduced; None for all."""
        return None if len(self.case.axes) == self.data.ndim else self.case.axes

    @property
    def count(self) -> int:
        """The number of segments."""
        return self.case.shape[0]

    @property
    def has_empty(self) -> bool:
        """Whether some segments have no rows."""
        return self.count > len(np.unique(self.ids))

    @property
    def lowest(self) -> Any:
        """What empty segments hold, as a NumPy scalar."""
        return lowest(self.case.dtype)

    def scattered(self, ids: Array, highest: Array) -> Array:
        """Groups, in any order, as the operator gives them."""
        result = np.full(self.case.shape, self.lowest, self.case.dtype.numpy)
        result[ids] = highest
        return result


def _chain(maximum: Callable[..., Any], first: Any, second: Any, *others: Any, out: Any = None) -> Any:
    """Three inputs and more: pair by pair into one output."""
    result = maximum(first, second, out=out)
    for each in others:
        maximum(result, each, out=result)
    return result


class Library:
    """A subclass has the texts, in which `{}` is an array, and names in braces differ by call.

    In a candidate's code x0, x1, ... are the inputs of Max, and `data` that of the others, with `ids` and `out`.
    """

    name: ClassVar[str]
    opening: ClassVar[tuple[str, ...]]  # run once
    environment: ClassVar[Mapping[str, str]] = MappingProxyType({})  # of a process that imports it
    pair: ClassVar[str] = ""  # the maximum of two; it takes `out=` if it may be chained
    chain: ClassVar[str] = ""  # the function behind `pair`, if that takes `out=`
    along_axes: ClassVar[str] = ""  # of {data} over {axis}, a tuple or None, with {keepdims}
    by_ids: ClassVar[str] = ""  # of {data} by {ids} below {count}
    lacks: ClassVar[frozenset[DType]] = frozenset()
    has_columns_alone: ClassVar[bool] = False  # 1-D arrays of one length, without strides

    def __init__(self, threads: int) -> None:
        self.names: dict[str, Any] = {"np": np, "ml_dtypes": ml_dtypes, "chain": _chain}
        exec("\n".join(self.opening), self.names)
        self.set_threads(threads)

    def set_threads(self, threads: int) -> None:
        """Make the package use so many threads, where its environment has not done that."""

    @property
    def version(self) -> str:
        """The package's version."""
        return str(getattr(sys.modules[self.name], "__version__", ""))

    @staticmethod
    def array(dtype: DType) -> str:
        """The text that makes one of NumPy's arrays the library's own."""
        return "{}"

    @staticmethod
    def back(dtype: DType) -> str:
        """The text that makes a result one of NumPy's arrays."""
        return "np.asarray({})"

    def candidates(self, work: Work) -> list[Candidate]:
        """Every candidate worth trying; the fastest correct one is timed."""
        case = work.case
        if case.dtype in self.lacks:
            raise UnsupportedError(f"has no {case.dtype}")
        shapes = {operand.shape for operand in case.operands}
        if self.has_columns_alone and (len(shapes) > 1 or any(len(shape) != 1 for shape in shapes)):
            raise UnsupportedError("has 1-D columns of one length only")
        if self.has_columns_alone and any(operand.view != "whole" for operand in case.operands):
            raise UnsupportedError("has no strided arrays")
        methods = {"Max": self.maximum, "ReduceMax": self.reduce_max, "SegmentMax": self.segment_max}
        return methods[case.operator](work)

    def maximum(self, work: Work) -> list[Candidate]:
        """Element-wise maximum: by `pair`, or several inputs pair by pair."""
        if not self.pair:
            raise UnsupportedError("has no element-wise maximum")
        out = ", out=out" if self.chain and work.case.out else ""
        if len(work.inputs.arrays) == 2:
            return [self.timed(work, self.pair.format("x0", f"x1{out}"))]
        inputs = ", ".join(f"x{number}" for number in range(len(work.inputs.arrays)))
        return [self.timed(work, f"chain({self.chain}, {inputs}{out})")]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Maximum along axes."""
        if not self.along_axes:
            raise UnsupportedError("has no maximum along axes")
        return [self.timed(work, self.along_axes.format(data="data", axis=work.axes, keepdims=False))]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Maximum of segments."""
        if not self.by_ids:
            raise UnsupportedError("has no maximum by ids")
        return [self.timed(work, self.by_ids.format(data="data", ids="ids", count=work.count))]

    def timed(self, work: Work, code: str, back: Back | None = None, other_input: str = "", **more: Any) -> Candidate:
        """A candidate: the code, the arrays as the library's own, and what else the code names."""
        names = dict(self.names)
        used = compile(code, "candidate", "eval").co_names
        for name in sorted(work.arrays.keys() & set(used) - more.keys()):
            array = work.arrays[name]
            row = dtypes.of(array.dtype)
            assert row is not None
            names[name] = eval(self.array(row).format("array"), self.names | {"array": array})
        text = self.back(work.case.dtype).format("found")
        return Candidate(
            code,
            {name: value for name, value in (names | more).items() if name in used},
            back or (lambda found: eval(text, self.names | {"found": found})),
            other_input,
        )


class NumPy(Library):
    """The arrays' own package."""

    name = "numpy"
    opening = ("import numpy as np",)
    pair = "np.maximum({}, {})"
    chain = "np.maximum"
    along_axes = "np.max({data}, axis={axis}, keepdims={keepdims})"

    def maximum(self, work: Work) -> list[Candidate]:
        """A number of Python's as such."""
        if work.case.spelling == "python-scalar":
            return [self.timed(work, "np.maximum(x0, x1)", x1=work.inputs.arrays[1].item())]
        return super().maximum(work)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """The ufunc and the method, which are quicker to call than the function."""
        axis = work.axes
        codes = [f"np.maximum.reduce(data, {axis})", f"data.max({axis})"]
        if axis is not None and len(axis) == 1:
            codes.append(f"data.max({axis[0]})")
        return [self.timed(work, code) for code in codes]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Reduceat, from ids; and with starts known, which is less work."""
        candidates = [self.timed(work, f"by_starts(data, ids, {work.count}, lowest)", by_starts=_by_starts, lowest=work.lowest)]
        starts = np.flatnonzero(np.diff(work.ids, prepend=-1))
        if len(starts) == work.count:
            code, why = "np.maximum.reduceat(data, starts, axis=0)", "starts instead of ids"
            candidates.append(self.timed(work, code, other_input=why, starts=starts))
        return candidates


def _by_starts(data: Array, ids: Array, num_segments: int, lowest: Any) -> Array:
    """Starts from ids, reduceat between them, and empty segments filled."""
    starts = np.flatnonzero(ids[1:] != ids[:-1])
    starts += 1
    starts = np.concatenate(([0], starts))
    highest = np.maximum.reduceat(data, starts, axis=0)
    if len(starts) == num_segments:
        return np.asarray(highest)
    result = np.full((num_segments, *data.shape[1:]), lowest, data.dtype)
    result[ids[starts]] = highest
    return result


class Torch(Library):
    """PyTorch on the CPU, without gradients; bfloat16 goes to and fro as its bits."""

    name = "torch"
    opening = ("import torch",)
    pair = "torch.maximum({}, {})"
    chain = "torch.maximum"
    along_axes = "torch.amax({data}, dim={axis}, keepdim={keepdims})"

    def set_threads(self, threads: int) -> None:
        """Of its OpenMP pool."""
        self.names["torch"].set_num_threads(threads)
        self.names["torch"].set_grad_enabled(False)
        warnings.filterwarnings("ignore", message=".*(index_reduce|segment_reduce|scatter_reduce).*")

    @staticmethod
    def array(dtype: DType) -> str:
        """The array's own memory."""
        is_bfloat16 = dtype is dtypes.BFLOAT16
        return "torch.from_numpy({}.view(np.int16)).view(torch.bfloat16)" if is_bfloat16 else "torch.from_numpy({})"

    @staticmethod
    def back(dtype: DType) -> str:
        """The tensor's own memory."""
        return "{}.view(torch.int16).numpy().view(ml_dtypes.bfloat16)" if dtype is dtypes.BFLOAT16 else "{}.numpy()"

    def reduce_max(self, work: Work) -> list[Candidate]:
        """torch.amax, and torch.max over all."""
        codes = ["torch.amax(data)", "torch.max(data)"] if work.axes is None else [f"torch.amax(data, {work.axes})"]
        return [self.timed(work, code) for code in codes]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Three functions; scatter_reduce takes 64-bit ids of the data's shape."""
        if work.case.dtype.kind == "uint" and work.case.dtype.bits > 8:
            raise UnsupportedError(f"not implemented for {work.case.dtype}")
        torch = self.names["torch"]
        count, row = work.count, work.case.shape[1:]
        least = bool(work.lowest) if work.case.dtype.kind == "bool" else work.lowest.item()

        def filled(data: Any) -> Any:
            return torch.full((count, *row), least, dtype=data.dtype)

        def scatter(data: Any, ids: Any) -> Any:
            index = ids.long()
            return filled(data).scatter_reduce_(0, index[:, None].expand(data.shape) if row else index, data, "amax")

        def by_lengths(data: Any, lengths: Any) -> Any:
            return torch.segment_reduce(data, "max", lengths=lengths, axis=0, initial=least, unsafe=True)

        lengths = torch.from_numpy(np.bincount(work.ids, minlength=count))
        of_ids = f"by_lengths(data, torch.bincount(ids, minlength={count}))"
        other = "lengths instead of ids"
        return [
            self.timed(work, "scatter_reduce_(data, ids)", scatter_reduce_=scatter),
            self.timed(work, 'filled(data).index_reduce_(0, ids, data, "amax")', filled=filled),
            self.timed(work, of_ids, by_lengths=by_lengths),
            self.timed(work, "by_lengths(data, lengths)", other_input=other, by_lengths=by_lengths, lengths=lengths),
        ]


class Jax(Library):
    """XLA on the CPU: jitted, 64-bit types on; its arrays have no strides, so that views are part of what is jitted."""

    name = "jax"
    opening = ("import jax, jax.numpy as jnp", 'jax.config.update("jax_enable_x64", True)')
    environment = MappingProxyType({"JAX_PLATFORMS": "cpu"})
    pair = "jnp.maximum({}, {})"
    along_axes = "jnp.max({data}, axis={axis}, keepdims={keepdims})"
    by_ids = "jax.ops.segment_max({data}, {ids}, num_segments={count}, indices_are_sorted=True)"

    @staticmethod
    def array(dtype: DType) -> str:
        """A copy."""
        return "jnp.asarray({})"

    def _jitted(self, work: Work, function: Callable[..., Any], arrays: tuple[Array, ...]) -> list[Candidate]:
        jax = self.names["jax"]
        x = [jax.block_until_ready(self.names["jnp"].asarray(array)) for array in arrays]
        compiled = jax.jit(function).lower(*x).compile()
        return [self.timed(work, "jitted(*x).block_until_ready()", jitted=compiled, x=x)]

    def maximum(self, work: Work) -> list[Candidate]:
        """One fused loop for any number of inputs."""
        views = [operand.view for operand in work.case.operands]
        maximum = self.names["jnp"].maximum
        return self._jitted(work, lambda *bases: reduce(maximum, map(view, bases, views)), work.inputs.bases)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """jnp.max."""
        kind, axes = work.case.operands[0].view, work.case.axes
        return self._jitted(work, lambda base: self.names["jnp"].max(view(base, kind), axis=axes), work.inputs.bases)

    def segment_max(self, work: Work) -> list[Candidate]:
        """jax.ops.segment_max of sorted ids; it fills with -Inf, and we with the lowest finite value."""
        code = compile(self.by_ids.format(data="data", ids="ids", count=work.count), "jax", "eval")

        def segments(data: Any, ids: Any) -> Any:
            found = eval(code, self.names | {"data": data, "ids": ids})
            return self.names["jnp"].maximum(found, work.lowest) if work.has_empty else found

        return self._jitted(work, segments, (work.data, work.ids))


class PyArrow(Library):
    """Arrow's compute functions."""

    name = "pyarrow"
    opening = ("import pyarrow as pa, pyarrow.compute as pc",)
    pair = "pc.max_element_wise({}, {})"
    along_axes = "pc.max({data})"
    by_ids = 'table.group_by("ids").aggregate([("data", "max")])'
    lacks = frozenset({dtypes.BFLOAT16})
    has_columns_alone = True

    @staticmethod
    def array(dtype: DType) -> str:
        """A copy."""
        return "pa.array({})"

    def set_threads(self, threads: int) -> None:
        """Of its pool for computing."""
        self.names["pa"].set_cpu_count(threads)

    def maximum(self, work: Work) -> list[Candidate]:
        """Of any number of inputs; it has no `out=`."""
        code = f"pc.max_element_wise({', '.join(f'x{number}' for number in range(len(work.inputs.arrays)))})"
        return [self.timed(work, code, lambda found: found.to_numpy(zero_copy_only=False))]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Of a whole column."""
        return [self.timed(work, self.along_axes.format(data="data"), lambda scalar: scalar.as_py())]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Groups, which do not know that ids are sorted."""

        def back(groups: Any) -> Array:
            return work.scattered(groups["ids"].to_numpy(), groups["data_max"].to_numpy())

        return [self.timed(work, self.by_ids, back, table=self.names["pa"].table({"ids": work.ids, "data": work.data}))]


class Polars(Library):
    """Its columns; its threads come from POLARS_MAX_THREADS, set before it is imported."""

    name = "polars"
    opening = ("import polars as pl",)
    pair = "frame.select(pl.max_horizontal(pl.all()))"  # of however many columns
    by_ids = 'frame.group_by("ids").agg(pl.col("data").max())'
    lacks = frozenset({dtypes.BFLOAT16})
    has_columns_alone = True

    def maximum(self, work: Work) -> list[Candidate]:
        """Of a frame's columns; it has no `out=`."""
        columns = {str(number): array for number, array in enumerate(work.inputs.arrays)}
        frame = self.names["pl"].DataFrame(columns)
        return [self.timed(work, self.pair, lambda found: found.to_series().to_numpy(), frame=frame)]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """A column's maximum."""
        return [self.timed(work, "series.max()", series=self.names["pl"].Series("data", work.data))]

    def segment_max(self, work: Work) -> list[Candidate]:
        """Groups by a column that says it is sorted."""
        series = self.names["pl"].Series
        frame = self.names["pl"].DataFrame([series("ids", work.ids).set_sorted(), series("data", work.data)])

        def back(groups: Any) -> Array:
            return work.scattered(groups["ids"].to_numpy(), groups["data"].to_numpy())

        return [self.timed(work, self.by_ids, back, frame=frame)]


class Numbagg(Library):
    """It skips NaN by design; its threads come from NUMBA_NUM_THREADS."""

    name = "numbagg"
    opening = ("import numbagg",)
    along_axes = "numbagg.nanmax({data}, axis={axis})"
    by_ids = "numbagg.group_nanmax({data}, {ids}, num_labels={count}, axis=0)"  # the groups come last

    def segment_max(self, work: Work) -> list[Candidate]:
        """Along the first axis."""
        code = self.by_ids.format(data="data", ids="ids", count=work.count)
        return [self.timed(work, code, lambda found: np.moveaxis(found, -1, 0))]


class NumpyGroupies(Library):
    """It groups, and nothing else; it does not know that ids are sorted."""

    name = "numpy_groupies"
    opening = ("import numpy_groupies",)
    by_ids = 'numpy_groupies.{function}({ids}, {data}, func="max", size={count}, fill_value={fill}{of_rows})'

    def segment_max(self, work: Work) -> list[Candidate]:
        """Both of its fast implementations."""
        words = {"data": "data", "ids": "ids", "count": work.count, "fill": "lowest"}
        words["of_rows"] = ", axis=0" if work.data.ndim > 1 else ""
        return [
            self.timed(work, self.by_ids.format(function=name, **words), lowest=work.lowest)
            for name in ("aggregate_nb", "aggregate_np")
            if hasattr(self.names["numpy_groupies"], name)
        ]


class Bottleneck(Library):
    """It skips NaN by design, and runs on one thread."""

    name = "bottleneck"
    opening = ("import bottleneck",)

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Over one axis or all."""
        if work.axes is not None and len(work.axes) > 1:
            raise UnsupportedError("reduces one axis or all")
        return [self.timed(work, f"bottleneck.nanmax(data, axis={work.axes and work.axes[0]})")]


class SciPy(Library):
    """It gives 0 for a label that is nowhere, which is put right in the timed part where a case has such."""

    name = "scipy"
    opening = ("import scipy.ndimage",)
    has_columns_alone = True

    def reduce_max(self, work: Work) -> list[Candidate]:
        """Over all."""
        return [self.timed(work, "scipy.ndimage.maximum(data)")]

    def segment_max(self, work: Work) -> list[Candidate]:
        """By labels."""
        labels, maximum = np.arange(work.count), self.names["scipy"].ndimage.maximum

        def filled(data: Array, ids: Array) -> Any:
            found = maximum(data, ids, labels)
            found[np.bincount(ids, minlength=work.count) == 0] = work.lowest
            return found

        if work.has_empty:
            return [self.timed(work, "filled(data, ids)", filled=filled)]
        return [self.timed(work, "scipy.ndimage.maximum(data, ids, labels)", labels=labels)]


def onnx_model(case: Case) -> bytes:
    """A model of one operator of opset 20, with views as nodes before it, so that a runtime may fuse them."""
    from onnx import parser  # noqa: PLC0415 - an extra

    if case.operator == "SegmentMax":
        raise UnsupportedError("ONNX has no SegmentMax")
    lines, constants, names = [], [], []
    for number, operand in enumerate(case.operands):
        names.append(f"x{number}" if operand.view == "whole" else f"v{number}")
        if operand.view == "transposed":
            lines.append(f"v{number} = Transpose (x{number})")
        elif operand.view != "whole":
            end, step = (operand.shape[-1], 1) if operand.view == "half-rows" else (operand.base_shape[-1], 2)
            ends = {"start": 0, "end": end, "axis": len(operand.shape) - 1, "step": step}
            constants += [f"int64[1] {name}{number} = {{{value}}}" for name, value in ends.items()]
            lines.append(f"v{number} = Slice (x{number}, {', '.join(f'{name}{number}' for name in ends)})")
    if case.operator == "ReduceMax":
        names.append("axes")
        constants.append(f"int64[{len(case.axes)}] axes = {{{', '.join(map(str, case.axes))}}}")
    options = " <keepdims = 0>" if case.operator == "ReduceMax" else ""
    lines.append(f"y = {case.operator}{options} ({', '.join(names)})")
    inputs = ", ".join(_value(case.dtype, f"x{n}", each.base_shape) for n, each in enumerate(case.operands))
    text = (
        f'<ir_version: 10, opset_import: ["": 20]> case ({inputs}) => ({_value(case.dtype, "y", case.shape)})'
        f" <{', '.join(constants)}> {{ {' '.join(lines)} }}"
    )
    return bytes(parser.parse_model(text).SerializeToString())


def _value(dtype: DType, name: str, shape: tuple[int, ...]) -> str:
    return f"{dtype.onnx}[{','.join(map(str, shape))}] {name}" if shape else f"{dtype.onnx} {name}"


class OnnxRuntime(Library):
    """A session of one operator on the CPU, with IO binding to NumPy's memory."""

    name = "onnxruntime"
    opening = ("import onnxruntime", "from onnx import helper")

    def set_threads(self, threads: int) -> None:
        """Of each session, whose threads do not spin."""
        options = self.options = self.names["onnxruntime"].SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4
        for pool in ("intra_op", "inter_op"):
            options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")

    def candidates(self, work: Work) -> list[Candidate]:
        """A run of a session, whatever the operator."""
        case, out = work.case, work.inputs.out
        session = self.names["onnxruntime"].InferenceSession(
            onnx_model(case), self.options, providers=["CPUExecutionProvider"]
        )
        binding, element = session.io_binding(), self.names["helper"].np_dtype_to_tensor_dtype(case.dtype.numpy)
        for number, base in enumerate(work.inputs.bases):
            binding.bind_input(f"x{number}", "cpu", 0, element, list(base.shape), base.ctypes.data)
        if out is None:
            binding.bind_output("y", "cpu")
        else:
            binding.bind_output("y", "cpu", 0, element, list(case.shape), out.ctypes.data)

        def back(_: Any) -> Any:
            return binding.get_outputs()[0].numpy() if out is None else out

        return [self.timed(work, "session.run_with_iobinding(binding)", back, session=session, binding=binding)]


class OpenVino(Library):
    """A compiled model of one operator, set to keep the case's precision, on tensors that share NumPy's memory."""

    name = "openvino"
    opening = ("import openvino", "from openvino import opset16")

    def set_threads(self, threads: int) -> None:
        """Of each compiled model."""
        self.threads = threads
        self.core: Any = self.names["openvino"].Core()

    def _tensor(self, array: Array) -> Any:
        ov = self.names["openvino"]
        if array.dtype == ml_dtypes.bfloat16:
            return ov.Tensor(array.view(np.uint16), list(array.shape), ov.Type.bf16)
        return ov.Tensor(array, shared_memory=True)

    def candidates(self, work: Work) -> list[Candidate]:
        """Of ONNX's operators by way of the ONNX front end, and its own SegmentMax-16."""
        case, arrays = work.case, work.inputs.bases
        if case.operator == "SegmentMax":
            graph, arrays = self._segments(work), (work.data, work.ids)
        else:
            graph = self.core.read_model(onnx_model(case), b"")
        options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": self.threads}
        if case.dtype.kind == "float":
            precision = {dtypes.FLOAT16: "f16", dtypes.BFLOAT16: "bf16"}.get(case.dtype, "f32")
            options["INFERENCE_PRECISION_HINT"] = precision
        request = self.core.compile_model(graph, "CPU", options).create_infer_request()
        for number, array in enumerate(arrays):
            request.set_input_tensor(number, self._tensor(array))
        if work.inputs.out is not None:
            request.set_output_tensor(self._tensor(work.inputs.out))

        def back(_: Any) -> Array:
            data = np.asarray(request.get_output_tensor().data)
            return data.view(case.dtype.numpy) if case.dtype is dtypes.BFLOAT16 else data

        return [self.timed(work, "request.infer()", back, request=request)]

    def _segments(self, work: Work) -> Any:
        ov, opset = self.names["openvino"], self.names["opset16"]
        is_bfloat16 = work.case.dtype is dtypes.BFLOAT16
        data = opset.parameter(list(work.data.shape), ov.Type.bf16 if is_bfloat16 else ov.Type(work.case.dtype.numpy))
        ids = opset.parameter(list(work.ids.shape), ov.Type(work.ids.dtype))
        count = opset.constant(np.array(work.count, work.ids.dtype))
        return ov.Model([opset.segment_max(data, ids, count, fill_mode=FILL_MODE)], [data, ids], "case")


class Maxops(Library):
    """Our own: the public functions, as anyone calls them, in each way that a case may be written."""

    name = "maxops"
    opening = ("import maxops as mo",)
    # The newest contract of each.
    operators: ClassVar[dict[str, tuple[str, str, int]]] = {
        "Max": ("ONNX", "Max", 13),
        "ReduceMax": ("ONNX", "ReduceMax", 20),
        "SegmentMax": ("OpenVINO", "SegmentMax", 16),
    }

    def candidates(self, work: Work) -> list[Candidate]:
        """The one call."""
        if work.case.spelling == "operator":
            return [self._operator(work)]
        return super().candidates(work)

    def maximum(self, work: Work) -> list[Candidate]:
        """maxops.maximum."""
        more = {"x1": work.inputs.arrays[1].item()} if work.case.spelling == "python-scalar" else {}
        inputs = ", ".join(f"x{number}" for number in range(len(work.inputs.arrays)))
        return [self.timed(work, f"mo.maximum({inputs}{', out=out' if work.case.out else ''})", **more)]

    def reduce_max(self, work: Work) -> list[Candidate]:
        """maxops.reduce_max."""
        axes = list(work.case.axes) if work.case.spelling == "list-axes" else work.axes
        return [self.timed(work, "mo.reduce_max(data, axes, False)", axes=axes)]

    def segment_max(self, work: Work) -> list[Candidate]:
        """maxops.segment_max."""
        assert work.case.segments is not None
        unchecked = "" if work.case.segments.check_ids else ", check_ids=False"
        count = np.int64(work.count) if work.case.spelling == "numpy-integer" else work.count
        return [self.timed(work, f'mo.segment_max(data, ids, count, fill_mode="LOWEST"{unchecked})', count=count)]

    def _operator(self, work: Work) -> Candidate:
        """As a node of a model has it: all inputs are arrays."""
        operator = mo.operator(*self.operators[work.case.operator])
        if work.case.operator == "Max":
            return self.timed(work, "operator(x0, x1)", operator=operator)
        if work.case.operator == "ReduceMax":
            return self.timed(work, "operator(data, axes, keepdims=0)", operator=operator, axes=np.array(work.case.axes))
        code = 'operator(data, ids, count, fill_mode="LOWEST")'
        return self.timed(work, code, operator=operator, count=np.array(work.count))


class MaxopsOnTorch(Maxops):
    """The same, on torch's tensors."""

    opening = ("import torch", "import maxops as mo")
    array, back = Torch.array, Torch.back


def ours(work: Work) -> Candidate:
    """Our own candidate."""
    library = MaxopsOnTorch if work.case.spelling == "torch-tensors" else Maxops
    return library(work.threads).candidates(work)[0]


def supports(case: Case) -> bool:
    """Whether our own call can be written so here: torch may not be installed, and no operator takes every type."""
    if case.spelling == "torch-tensors":
        return find_spec("torch") is not None
    return case.spelling != "operator" or case.dtype in mo.operator(*Maxops.operators[case.operator]).types


_ALL = (
    NumPy, Torch, OnnxRuntime, OpenVino, Jax, PyArrow, Polars, Numbagg, NumpyGroupies, Bottleneck, SciPy,
)  # fmt: skip
LIBRARIES: dict[str, type[Library]] = {library.name: library for library in _ALL}
