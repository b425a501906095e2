"""The table of libraries, with the fastest expression of each operator in each library.

`maxops bench` times each Python expression on arrays that are already in the library's own form. The runtimes of the
same names in the conformance kit also use the expressions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np

import maxops as mo
from maxops import dtypes
from maxops.bench.grid import Case
from maxops.bench.inputs import FILL_MODE, Work, view
from maxops.bench.timing import Candidate, UnsupportedError
from maxops.plan import Array

Names = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """A timed expression. Untimed, `setup` runs before it, and `back` converts its result `found` to an array.

    The arrays are x0, x1, ..., `data` (the first), `ids` and `out`. Words in braces depend on the call: {inputs} (of
    Max), {out} (", out=out" or nothing), {axis} (a tuple or None), {one_axis} (the axis as a number if there is only
    one), {keepdims}, {count} (of segments) and, if data has two axes, {of_rows} (", axis=0") and {of_items} (ids of the
    data's shape).
    """

    code: str
    setup: str = ""
    back: str = ""
    only: Callable[[Work], bool] = lambda work: True
    other_input: str = ""


@dataclass(frozen=True)
class Library:
    """The expressions of a library. `array` converts a NumPy array to the library's own, and `back` reverses this."""

    name: str
    opening: str  # statements that run once
    max: tuple[Text, ...] = ()
    reduce_max: tuple[Text, ...] = ()
    segment_max: tuple[Text, ...] = ()
    array: str = "{}"
    back: str = "np.asarray({})"
    bfloat16: tuple[str, str] = ("", "")  # `array` and `back` for bfloat16, if they differ
    threads: str = ""  # the statement that sets the number of threads, unless an environment variable sets it
    has_columns_alone: bool = False  # supports only contiguous 1-D arrays of equal length, and no bfloat16

    def start(self, threads: int) -> Names:
        """Import the library, and return the names that its expressions use. Errors of the import propagate."""
        names = {each.__name__: each for each in _HELPERS} | {"np": np, "ml_dtypes": ml_dtypes, "threads": threads}
        exec(self.opening + "\n" + self.threads, names)
        return names

    def conversions(self, dtype: Any) -> tuple[str, str]:
        """Return the `array` and `back` expressions for a NumPy type."""
        return self.bfloat16 if self.bfloat16[0] and dtype == ml_dtypes.bfloat16 else (self.array, self.back)

    def candidates(self, names: Names, work: Work) -> list[Candidate]:
        """Return all candidates that may be the fastest. The fastest correct candidate is timed."""
        case = work.case
        shapes = {operand.shape for operand in case.operands}
        is_strided = any(operand.view != "whole" for operand in case.operands)
        is_table = len(shapes) == 1 and len(*shapes) == 1 and not is_strided and case.dtype is not dtypes.BFLOAT16
        if self.has_columns_alone and not is_table:
            raise UnsupportedError("supports only 1-D columns of equal length, and no bfloat16")
        texts, what = {
            "Max": (self.max, "element-wise maximum"),
            "ReduceMax": (self.reduce_max, "maximum along axes"),
            "SegmentMax": (self.segment_max, "segment maximum"),
        }[case.operator]
        if not (chosen := [text for text in texts if text.only(work)]):
            raise UnsupportedError(f"does not support the {what}" + " with empty segments" * bool(texts))
        return [self.candidate(text, names, work) for text in chosen]

    def candidate(self, text: Text, names: Names, work: Work) -> Candidate:
        """Return the candidate of an expression for one call."""
        axes, inputs = work.axes, [f"x{number}" for number in range(len(work.arrays))]
        words = {
            "inputs": ", ".join(inputs),
            "out": ", out=out" if work.case.out else "",
            "axis": axes,
            "one_axis": axes[0] if axes and len(axes) == 1 else axes,
            "keepdims": False,
            "count": work.case.shape[0] if work.ids is not None else 0,
            "of_rows": ", axis=0" if work.data.ndim > 1 else "",
            "of_items": "[:, None].expand(data.shape)" if work.data.ndim > 1 else "",
        }
        code, here = text.code.format(**words), names | {"work": work, "lowest": work.lowest} | work.named
        exec(text.setup.format(**words), here)
        used = set(compile(code, "candidate", "eval").co_names)
        for name in used & work.named.keys():
            if here[name] is work.named[name]:  # otherwise, the setup has replaced it
                here[name] = eval(self.conversions(work.named[name].dtype)[0].format(name), here)
        back = text.back or self.conversions(work.data.dtype)[1].format("found")
        known = {name: here[name] for name in used & here.keys()}
        return Candidate(code, known, lambda found: eval(back, here | {"found": found}), text.other_input)


# ---------------------------------------------------------------------------- helpers of expressions


def chain(maximum: Callable[..., Any], first: Any, second: Any, *others: Any, out: Any = None) -> Any:
    """Compute the maximum of three or more inputs pair by pair, in a single output array."""
    result = maximum(first, second, out=out)
    for each in others:
        maximum(result, each, out=result)
    return result


def by_starts(
    data: Array, ids: Array, num_segments: int, lowest: Any, axis: int = 0, out: Array | None = None
) -> Array:
    """Compute SegmentMax with NumPy: find the starts from ids, call reduceat, and fill empty segments."""
    starts = np.flatnonzero(ids[1:] != ids[:-1])
    starts += 1
    starts = np.concatenate(([0], starts))
    filled = ids if len(starts) == num_segments else ids[starts]
    return between_starts(data, starts, filled, num_segments, lowest, axis, out)


def between_starts(
    data: Array, starts: Array, filled: Array, num_segments: int, lowest: Any, axis: int = 0, out: Array | None = None
) -> Array:
    """Compute SegmentMax with NumPy: reduceat computes the segments in `filled`, and the others are `lowest`."""
    if len(starts) == num_segments:
        return np.asarray(np.maximum.reduceat(data, starts, axis=axis, out=out))
    highest = np.maximum.reduceat(data, starts, axis=axis)
    if out is None:
        out = np.empty((*data.shape[:axis], num_segments, *data.shape[axis + 1 :]), data.dtype)
    out.fill(lowest)
    out[(slice(None),) * axis + (filled,)] = highest
    return out


def jitted(jax: Any, work: Work, code: str) -> tuple[Any, list[Any]]:
    """Compile a JAX expression, including the views (JAX arrays have no strides), and return it with its arrays."""
    own = [jax.block_until_ready(jax.numpy.asarray(array)) for array in (*work.bases, work.ids) if array is not None]
    names = {"jax": jax, "jnp": jax.numpy, "reduce": reduce, "lowest": work.lowest}

    def run(*given: Any) -> Any:
        arrays = [view(base, operand.view) for base, operand in zip(given, work.case.operands, strict=False)]
        return eval(code, names | {"arrays": arrays, "data": arrays[0], "ids": given[-1]})

    return jax.jit(run).lower(*own).compile(), own


def scattered(work: Work, ids: Array, highest: Array) -> Array:
    """Convert the maxima of groups, which may be in any order, to the result of the operator."""
    result = np.full(work.case.shape, work.lowest, work.case.dtype.numpy)
    result[ids] = highest
    return result


def onnx_model(case: Case) -> bytes:
    """Return a model with one operator of opset 20, after nodes that create the views, which a runtime may fuse."""
    from onnx import parser  # noqa: PLC0415 - an extra

    if case.operator == "SegmentMax":
        raise UnsupportedError("ONNX has no SegmentMax")
    nodes, constants, names = [], [], []
    for number, operand in enumerate(case.operands):
        names.append(f"x{number}" if operand.view == "whole" else f"v{number}")
        if operand.view == "transposed":
            nodes.append(f"v{number} = Transpose (x{number})")
        elif operand.view != "whole":
            end, step = (operand.shape[-1], 1) if operand.view == "half-rows" else (operand.base_shape[-1], 2)
            slices = {"start": 0, "end": end, "axis": len(operand.shape) - 1, "step": step}
            constants += [f"int64[1] {name}{number} = {{{value}}}" for name, value in slices.items()]
            nodes.append(f"v{number} = Slice (x{number}, {', '.join(f'{name}{number}' for name in slices)})")
    if case.operator == "ReduceMax":
        names.append("axes")
        constants.append(f"int64[{len(case.axes)}] axes = {{{', '.join(map(str, case.axes))}}}")
    options = " <keepdims = 0>" if case.operator == "ReduceMax" else ""
    nodes.append(f"y = {case.operator}{options} ({', '.join(names)})")
    named = {f"x{number}": operand.base_shape for number, operand in enumerate(case.operands)} | {"y": case.shape}
    *inputs, output = (f"{case.dtype.onnx}{str(list(shape)) if shape else ''} {name}" for name, shape in named.items())
    text = f'<ir_version: 10, opset_import: ["": 20]> g ({", ".join(inputs)}) => ({output})'
    return bytes(parser.parse_model(f"{text} <{', '.join(constants)}> {{ {' '.join(nodes)} }}").SerializeToString())


def session_of(onnxruntime: Any, work: Work, threads: int) -> tuple[Any, Any]:
    """Return an ONNX Runtime session with threads that do not spin, and a binding to NumPy's memory."""
    from onnx import helper  # noqa: PLC0415 - an extra

    case, options = work.case, onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
    for pool in ("intra_op", "inter_op"):
        options.add_session_config_entry(f"session.{pool}.allow_spinning", "0")
    session = onnxruntime.InferenceSession(onnx_model(case), options, providers=["CPUExecutionProvider"])
    binding, element = session.io_binding(), helper.np_dtype_to_tensor_dtype(case.dtype.numpy)
    for number, base in enumerate(work.bases):
        binding.bind_input(f"x{number}", "cpu", 0, element, list(base.shape), base.ctypes.data)
    given = () if work.out is None else (0, element, list(case.shape), work.out.ctypes.data)
    binding.bind_output("y", "cpu", *given)
    return session, binding


def request_of(openvino: Any, work: Work, threads: int) -> Any:
    """Return a request of a compiled OpenVINO model that keeps the case's precision and shares NumPy's memory."""
    core, arrays, opset, bf16 = openvino.Core(), work.bases, openvino.opset16, openvino.Type.bf16
    if work.ids is not None:
        arrays = (work.data, work.ids)
        types = [bf16 if array.dtype == ml_dtypes.bfloat16 else openvino.Type(array.dtype) for array in arrays]
        inputs = [opset.parameter(list(array.shape), kind) for array, kind in zip(arrays, types, strict=True)]
        count = opset.constant(np.array(work.case.shape[0], work.ids.dtype))
        graph = openvino.Model([opset.segment_max(*inputs, count, fill_mode=FILL_MODE)], inputs, "case")
    else:
        graph = core.read_model(onnx_model(work.case), b"")
    options: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}
    if work.case.dtype.kind == "float":
        options["INFERENCE_PRECISION_HINT"] = {"float16": "f16", "bfloat16": "bf16"}.get(work.case.dtype.name, "f32")
    request = core.compile_model(graph, "CPU", options).create_infer_request()

    def tensor(array: Array) -> Any:
        if array.dtype == ml_dtypes.bfloat16:
            return openvino.Tensor(array.view(np.uint16), list(array.shape), bf16)
        return openvino.Tensor(array, shared_memory=True)

    for number, array in enumerate(arrays):
        request.set_input_tensor(number, tensor(array))
    if work.out is not None:
        request.set_output_tensor(tensor(work.out))
    return request


_HELPERS: tuple[Callable[..., Any], ...] = (
    chain, by_starts, between_starts, jitted, scattered, session_of, request_of,
)  # fmt: skip


def _two(work: Work) -> bool:
    return len(work.arrays) == 2


def _full(work: Work) -> bool:
    return not work.has_empty


def _jitted(code: str, only: Callable[[Work], bool] = lambda work: True) -> Text:
    return Text("jitted(*x).block_until_ready()", f'jitted, x = jitted(jax, work, "{code}")', only=only)


def _of_lengths(lengths: str, setup: str, other_input: str = "") -> Text:
    code = f'torch.segment_reduce(data, "max", lengths={lengths}, axis=0, initial=least, unsafe=True)'
    return Text(code, f"{_LEAST}; {setup}", other_input=other_input)


_LEAST = "shape, least = work.case.shape, lowest.item()"
_FILLED = "torch.full(shape, least, dtype=data.dtype)"
_JAX_SEGMENTS = "jax.ops.segment_max(data, ids, num_segments={count}, indices_are_sorted=True)"
_SESSION = Text(
    "session.run_with_iobinding(binding)",
    "session, binding = session_of(onnxruntime, work, threads)",
    "binding.get_outputs()[0].numpy() if work.out is None else work.out",
)
_REQUEST = Text(
    "request.infer()",
    "request = request_of(openvino, work, threads)",
    "np.asarray(request.get_output_tensor().data).view(work.case.dtype.numpy)",
)

# fmt: off
_ALL = (
    Library("numpy", "import numpy as np",
        max=(
            Text("np.maximum({inputs}{out})", only=_two),
            Text("np.maximum(x0, x1)", "x1 = x1.item()", only=lambda work: work.case.spelling == "python-scalar"),
            Text("chain(np.maximum, {inputs}{out})", only=lambda work: len(work.arrays) > 2),
        ),
        reduce_max=(
            Text("np.max(data, axis={axis}, keepdims={keepdims})"),
            Text("np.maximum.reduce(data, {axis})"),
            Text("data.max({one_axis})"),
        ),
        segment_max=(
            Text("by_starts(data, ids, {count}, lowest)"),
            Text("np.maximum.reduceat(data, starts, axis=0)", "starts = np.flatnonzero(np.diff(ids, prepend=-1))",
                 only=_full, other_input="starts instead of ids"),
        )),
    Library("torch", "import torch",
        max=(
            Text("torch.maximum({inputs}{out})", only=_two),
            Text("chain(torch.maximum, {inputs}{out})", only=lambda work: not _two(work)),
        ),
        reduce_max=(
            Text("torch.amax(data, dim={axis}, keepdim={keepdims})"),
            Text("torch.amax(data, {axis})"),
            Text("torch.max(data)", only=lambda work: work.axes is None),
        ),
        segment_max=(
            Text(f'{_FILLED}.scatter_reduce_(0, ids.long(){{of_items}}, data, "amax")', _LEAST),
            Text(f'{_FILLED}.index_reduce_(0, ids, data, "amax")', _LEAST),
            _of_lengths("torch.bincount(ids, minlength={count})", ""),
            _of_lengths("lengths", "lengths = torch.from_numpy(np.bincount(ids, minlength={count}))",
                        "lengths instead of ids"),
        ),
        array="torch.from_numpy({})", back="{}.numpy()",
        bfloat16=("torch.from_numpy({}.view(np.int16)).view(torch.bfloat16)",
                  "{}.view(torch.int16).numpy().view(ml_dtypes.bfloat16)"),
        threads="torch.set_num_threads(threads); torch.set_grad_enabled(False); import warnings; "
                'warnings.filterwarnings("ignore", message=".*_reduce.*")'),
    Library("onnxruntime", "import onnxruntime", max=(_SESSION,), reduce_max=(_SESSION,), segment_max=(_SESSION,)),
    Library("openvino", "import openvino, openvino.opset16", max=(_REQUEST,), reduce_max=(_REQUEST,),
        segment_max=(_REQUEST,)),
    Library("jax", 'import jax, jax.numpy as jnp\njax.config.update("jax_enable_x64", True)',
        max=(_jitted("reduce(jnp.maximum, arrays)"),),
        reduce_max=(_jitted("jnp.max(data, axis={axis}, keepdims={keepdims})"),),
        segment_max=(  # JAX fills empty segments with -Inf, and maxops with the lowest finite value
            _jitted(_JAX_SEGMENTS, only=_full),
            _jitted(f"jnp.maximum({_JAX_SEGMENTS}, lowest)", only=lambda work: work.has_empty),
        ),
        array="jnp.asarray({})"),
    Library("pyarrow", "import pyarrow as pa, pyarrow.compute as pc",
        max=(Text("pc.max_element_wise({inputs})", back="found.to_numpy(zero_copy_only=False)"),),
        reduce_max=(Text("pc.max(data)", back="found.as_py()"),),
        segment_max=(
            Text('table.group_by("ids").aggregate([("data", "max")])', "table = pa.table(dict(ids=ids, data=data))",
                 'scattered(work, found["ids"].to_numpy(), found["data_max"].to_numpy())'),
        ),
        array="pa.array({})", threads="pa.set_cpu_count(threads)", has_columns_alone=True),
    Library("polars", "import polars as pl",
        max=(
            Text("frame.select(pl.max_horizontal(pl.all()))",
                 "frame = pl.DataFrame(dict((str(number), each) for number, each in enumerate(work.arrays)))",
                 "found.to_series().to_numpy()"),
        ),
        reduce_max=(Text("series.max()", 'series = pl.Series("data", data)'),),
        segment_max=(
            Text('frame.group_by("ids").agg(pl.col("data").max())',
                 'frame = pl.DataFrame([pl.Series("ids", ids).set_sorted(), pl.Series("data", data)])',
                 'scattered(work, found["ids"].to_numpy(), found["data"].to_numpy())'),
        ),
        has_columns_alone=True),
    Library("numbagg", "import numbagg",  # skips NaN by design, like bottleneck
        reduce_max=(Text("numbagg.nanmax(data, axis={axis})"),),
        segment_max=(
            Text("numbagg.group_nanmax(data, ids, num_labels={count}, axis=0)", back="np.moveaxis(found, -1, 0)"),
        )),
    Library("numpy_groupies", "import numpy_groupies",  # cannot use the fact that ids are sorted
        segment_max=tuple(
            Text(f'numpy_groupies.{name}(ids, data, func="max", size={{count}}, fill_value=lowest{{of_rows}})')
            for name in ("aggregate_nb", "aggregate_np")
        )),
    Library("bottleneck", "import bottleneck", reduce_max=(Text("bottleneck.nanmax(data, axis={one_axis})"),)),
    Library("scipy", "import scipy.ndimage",
        reduce_max=(Text("scipy.ndimage.maximum(data)"),),
        segment_max=(
            Text("scipy.ndimage.maximum(data, ids, labels)", "labels = np.arange({count})", only=_full),
        ),
        has_columns_alone=True),
)
# fmt: on
LIBRARIES: dict[str, Library] = {library.name: library for library in _ALL}

# The newest version of each operator.
OPERATORS = {row[1]: row for row in (("ONNX", "Max", 13), ("ONNX", "ReduceMax", 20), ("OpenVINO", "SegmentMax", 16))}


def supports(case: Case) -> bool:
    """Return whether maxops supports this call. PyTorch may not be installed, and no operator supports every type."""
    if case.spelling == "torch-tensors":
        return find_spec("torch") is not None
    return case.spelling != "operator" or case.dtype in mo.operator(*OPERATORS[case.operator]).types


def ours(work: Work) -> Candidate:
    """Return the candidate of maxops, in the case's spelling."""
    case = work.case
    unchecked = "" if case.check_ids else ", check_ids=False"
    texts = {
        "Max": Text("mo.maximum({inputs}{out})", "x1 = x1.item()" if case.spelling == "python-scalar" else ""),
        "ReduceMax": Text(
            "mo.reduce_max(data, axes, False)",
            f"axes = {'list(work.case.axes)' if case.spelling == 'list-axes' else '{axis}'}",
        ),
        "SegmentMax": Text(
            f'mo.segment_max(data, ids, count, fill_mode="{FILL_MODE}"{unchecked})',
            "count = np.int64({count})" if case.spelling == "numpy-integer" else "count = {count}",
        ),
    }
    if case.spelling == "operator":  # as in a node of a model, all inputs are arrays
        texts = {
            "Max": Text("operator({inputs})"),
            "ReduceMax": Text("operator(data, axes, keepdims=0)", "axes = np.array(work.case.axes)"),
            "SegmentMax": Text(f'operator(data, ids, count, fill_mode="{FILL_MODE}")', "count = np.array({count})"),
        }
    library = replace(LIBRARIES["torch" if case.spelling == "torch-tensors" else "numpy"], threads="")
    names = library.start(0) | {"mo": mo, "operator": mo.operator(*OPERATORS[case.operator])}
    return library.candidate(texts[case.operator], names, work)
