"""Runs a user's own model on another runtime in its own process: `maxops run MODEL --against RUNTIME`.

Each case of the kit has one operator, but a model may have any operators. Therefore the runtime receives the whole
model, and the caller compares its outputs.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from maxops.conformance import runtimes
from maxops.conformance.resource_limits import die_with_parent, remove_file_limit
from maxops.conformance.runtimes.backend import DEVICE, ThirdParty, array_of
from maxops.conformance.runtimes.command import Command
from maxops.conformance.runtimes.runtime import BrokenRuntimeError, NoResultError, ProcessEndedError, Runtime
from maxops.conformance.subprocesses import Subprocesses, python_command, signal_name
from maxops.counted import counted
from maxops.dtypes import BFLOAT16 as BFLOAT16_TYPE
from maxops.errors import MaxopsError
from maxops.plan import Array
from maxops.shown import printable

Inputs = Mapping[str, Array]
SECONDS = 600.0  # the default timeout; some runtimes compile a model for minutes


class RuntimeFailedError(MaxopsError, RuntimeError):
    """Raised if a runtime refuses the model or returns the wrong number of outputs."""


class RuntimeDiedError(RuntimeFailedError):
    """Raised if a runtime ends its process or does not return in time. The message begins with the kit's verdict."""


class Answer(NamedTuple):
    """The runtime with its version, and the model's outputs in order."""

    runtime: str
    outputs: list[Array]


def known() -> list[str]:
    """Return the names of the runtimes that run whole models. Backend modules and programs can run them, too."""
    return list(_RUNNERS)


def check(name: str, model: Path | bytes) -> None:
    """Raise an error if a runtime is unknown, not installed, or unable to run the model."""
    if name in runtimes.GROUPS:
        raise BrokenRuntimeError(f"--against requires a single runtime, got {name!r}; choose {_TAKERS}")
    runtime = runtimes.resolve(name)
    if name not in _RUNNERS and not isinstance(runtime, ThirdParty | Command):
        raise BrokenRuntimeError(f"the runtime {name!r} cannot run models; choose {_TAKERS}")
    if _is_ir(model) and name not in _OF_IR:
        raise BrokenRuntimeError(f"the runtime {name!r} runs only ONNX models; for an IR, choose {' or '.join(_OF_IR)}")


def run(name: str, model: Path | bytes, inputs: Inputs, count: int, seconds: float = SECONDS) -> Answer:
    """Run a model with `count` outputs on named inputs. The model is a file or the bytes of an ONNX model.

    The process has the kit's memory limit, and a timeout in seconds. Raises RuntimeFailedError with the runtime's
    message, or RuntimeDiedError with the exit status of its process.
    """
    check(name, model)
    model = _as_runtimes_take_it(model, inputs)
    with TemporaryDirectory(prefix="maxops-run-") as folder:
        request, reply = Path(folder, "request"), Path(folder, "reply")
        plain = {key: np.ascontiguousarray(array).reshape(array.shape) for key, array in inputs.items()}
        request.write_bytes(pickle.dumps((name, model, plain, count)))
        command = python_command("maxops.conformance.whole_model", [str(request), str(reply), str(os.getpid())])
        environment = os.environ | dict(runtimes.resolve(name).environment)
        try:
            with Subprocesses() as subprocesses:
                done = subprocesses.run(command, os.getcwd(), environment, seconds)
        except subprocess.TimeoutExpired:
            raise RuntimeDiedError(f"hangs: timed out after {seconds:g} s") from None
        if done.returncode < 0:
            raise RuntimeDiedError(f"crashes: the process was killed by {signal_name(-done.returncode)}")
        if done.returncode > 0 or not reply.is_file():
            said = (done.stderr.strip().splitlines() or [f"the process ended with status {done.returncode}"])[-1]
            raise RuntimeDiedError(f"crashes: {said}")
        answer, error, died = pickle.loads(reply.read_bytes())
    if died:
        raise RuntimeDiedError(died)
    if error:
        raise RuntimeFailedError(f"{name}: {error}")
    return Answer(*answer)


def _as_runtimes_take_it(model: Path | bytes, inputs: Inputs) -> Path | bytes:
    """Return the model, or the bytes of a copy if it has functions, defaults of given inputs, or links to its data.

    In the copy, the functions are inlined, the defaults are omitted, and the data is included. Some runtimes support
    functions only partially, treat defaults as constants, or refuse to follow symbolic links, such as those in
    the Hugging Face Hub cache.
    """
    if _is_ir(model):
        return model
    # importing onnx takes longer than most commands
    from maxops.onnx.external import external_tensors, follow_links  # noqa: PLC0415
    from maxops.onnx.inline import by_key, inlined  # noqa: PLC0415
    from maxops.onnx.load import parse, read, take_data_in, to_bytes  # noqa: PLC0415

    source = "the model" if isinstance(model, bytes) else str(model)
    proto = parse(model, source) if isinstance(model, bytes) else read(model)
    needed = [tensor for tensor in proto.graph.initializer if tensor.name not in inputs]
    folder = None if isinstance(model, bytes) else follow_links(proto, model)
    is_linked = isinstance(model, Path) and folder != model.parent and any(external_tensors(proto))
    if not proto.functions and not is_linked and len(needed) == len(proto.graph.initializer):
        return model
    del proto.graph.initializer[:]
    proto.graph.initializer.extend(needed)
    if folder is not None:
        take_data_in(proto, source, folder)
    try:
        return to_bytes(inlined(proto, by_key(proto)) if proto.functions else proto, source)
    except MaxopsError as error:
        raise error.at(source) from error


# ------------------------------------------------------------------------------------------- in its own process


def _on_onnxruntime(module: Any, model: Path | bytes, inputs: Inputs) -> list[Any]:
    options = module.SessionOptions()
    options.log_severity_level = 4
    given = model if isinstance(model, bytes) else str(model)
    session = module.InferenceSession(given, options, providers=["CPUExecutionProvider"])
    return list(_ours().outputs_of(session, inputs))


def _on_maxops_in_onnxruntime(_: Any, model: Path | bytes, inputs: Inputs) -> list[Any]:
    return list(_ours().outputs_of(_ours().session(model, providers=["CPUExecutionProvider"]), inputs))


def _ours() -> Any:
    return importlib.import_module("maxops.onnxruntime.session")


def _on_onnx_reference(module: Any, model: Path | bytes, inputs: Inputs) -> list[Any]:
    evaluator = importlib.import_module("onnx.reference").ReferenceEvaluator
    proto = module.load_from_string(model) if isinstance(model, bytes) else module.load(model)
    return list(evaluator(proto).run(None, dict(inputs)))


def _on_maxops_in_openvino(module: Any, model: Path | bytes, inputs: Inputs) -> list[Any]:
    return _on_openvino(module, model, inputs, importlib.import_module("maxops.openvino").rewrite)


def _on_openvino(
    module: Any, model: Path | bytes, inputs: Inputs, rewrite: Callable[[Any], Any] = lambda model: model
) -> list[Any]:
    """Run the model in its own types, because by default the plugin may use narrower types."""
    core = module.Core()
    compiled = core.compile_model(rewrite(core.read_model(model)), "CPU", {"EXECUTION_MODE_HINT": "ACCURACY"})
    request = compiled.create_infer_request()
    for port in compiled.inputs:
        (name,) = {*port.get_names(), port.node.get_friendly_name()} & set(inputs)
        array = inputs[name]
        is_bfloat16 = array.dtype == BFLOAT16_TYPE.numpy
        tensor = (
            module.Tensor(array.view(np.uint16), array.shape, module.Type.bf16) if is_bfloat16 else module.Tensor(array)
        )
        request.set_tensor(port, tensor)
    request.start_async()
    request.wait()  # `infer` loses errors; see conformance/runtimes/openvino.py
    found = [request.get_output_tensor(number) for number in range(len(compiled.outputs))]
    return [
        each.data.view(BFLOAT16_TYPE.numpy).copy() if each.element_type == module.Type.bf16 else each.data.copy()
        for each in found
    ]


_RUNNERS: dict[str, Callable[[Any, Path | bytes, Inputs], list[Any]]] = {
    "onnxruntime": _on_onnxruntime,
    "openvino": _on_openvino,
    "onnx-reference": _on_onnx_reference,
    "maxops:onnxruntime": _on_maxops_in_onnxruntime,
    "maxops:openvino": _on_maxops_in_openvino,
}
_OF_IR = ("openvino", "maxops:openvino")
_TAKERS = (
    f"{', '.join(_RUNNERS)}, a module or class that implements the onnx.backend.base.Backend protocol, or a program "
    "such as 'command:./program'"
)


def _is_ir(model: Path | bytes) -> bool:
    return isinstance(model, Path) and model.suffix.lower() == ".xml"


def _run(runtime: Runtime, model: Path | bytes, inputs: Inputs, count: int) -> list[Any]:
    if runtime.name in _RUNNERS:
        return _RUNNERS[runtime.name](runtime.module, model, inputs)
    onnx = importlib.import_module("onnx")
    proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    if isinstance(runtime, ThirdParty):
        names = [each.name for each in proto.graph.input if each.name in inputs]
        return list(runtime.backend.prepare(proto, DEVICE).run([inputs[name] for name in names]))
    assert isinstance(runtime, Command)
    return runtime.run_model(proto, inputs, count)


def main(arguments: list[str]) -> None:
    """Read a request from a file, run the model, and write the reply to a file."""
    request, reply = map(Path, arguments[:2])
    die_with_parent(int(arguments[2]))
    remove_file_limit()  # outputs may be larger
    process = os.getpid()
    name, model, inputs, count = pickle.loads(request.read_bytes())
    answer: tuple[str, Sequence[Array]] | None = None
    error = died = ""
    try:
        runtime = runtimes.load(name)
        outputs = [array_of(each) for each in _run(runtime, model, inputs, count)]
        if len(outputs) == count:
            answer = f"{name} {printable(runtime.version.strip())}".rstrip(), outputs
        else:
            error = f"returned {counted(len(outputs), 'output')}; the model has {count}"
    except ProcessEndedError as found:
        died = f"crashes: {found}"
    except (MaxopsError, NoResultError) as found:
        error = str(found)
    except Exception as found:  # noqa: BLE001  (any exception is the runtime's answer)
        error = " ".join(f"{type(found).__name__}: {found}".split())
    if os.getpid() != process:  # the runtime forked, and its child returned
        os._exit(1)
    reply.write_bytes(pickle.dumps((answer, error, died)))
