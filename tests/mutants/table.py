"""The tests of each source file: the first row whose pattern matches the file."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from .running import ROOT

CALLS = (
    "calls planner contracts bad_input scalars segment_ids unsorted_ids indices offsets rare_calls maximum reduce_max "
    "segment_max segment_axis scatter real integer_lists operator_versions changed_arrays types interchange engines "
    "portable_elsewhere id_types unchecked_offsets long_values dispatch clauses imports doctests"
)
# Patterns of files, and names of test files without "test_" and ".py", which may be patterns as well.
TABLE = (
    ("native/bindings/onnxruntime*", "onnxruntime"),
    ("native/bindings/xla.cpp", "jax jax_gradients jax_processes"),
    (
        "native/bindings/module.cpp",
        "taken bindings rare_calls contracts compat_numpy threads tensors out_of_memory leaks",
    ),
    ("native/bindings/memory.*", "overlap memory out_of_memory rare_calls maximum segment_max bad_input leaks"),
    ("native/bindings/tensors.*", "tensors torch_small_calls layouts_of_outputs"),
    ("native/bindings/gradients.*", "tensors torch_plain_gradients"),
    (
        "native/bindings/*",
        "taken tensors torch_small_calls layouts_of_outputs bindings scalar_bits long_lists overlap bad_input "
        "compat_numpy out_of_memory maximum segment_max indices leaks",
    ),
    ("native/drivers/cache.*", "memory hardware threads leaks"),
    ("native/drivers/system.*", "memory hardware threads environment small_stacks"),
    ("native/drivers/scratch.*", "small_stacks threads paths segment_paths"),
    ("native/drivers/threads.*", "threads hard_cases hardware"),
    ("native/drivers/dispatch.*", "hardware environment rare_calls order"),
    (
        "native/*",
        "maximum reduce_max segment_max unsorted_ids indices offsets order far runs sizes paths segment_paths "
        "transposed bad_input scalars id_types hard_cases",
    ),
    ("src/maxops/engines/torch/plain.py", "torch_plain_gradients torch_gradients torch_small_calls"),
    ("src/maxops/engines/torch/dispatch.py", "torch torch_small_calls torch_gradients torch_transforms"),
    ("src/maxops/engines/[dt]*/__init__.py", "imports extras engines torch torch_trace dask doctests"),
    ("src/maxops/engines/torch/*", "torch* exported engines extras imports doctests"),
    ("src/maxops/engines/jax/*", "jax* engines extras imports doctests"),
    ("src/maxops/engines/dask/*", "dask* cluster engines xarray* extras imports doctests"),
    ("src/maxops/engines/xarray.py", "xarray* engines doctests"),
    ("src/maxops/engines/columns.py", "columns xarray* doctests"),
    ("src/maxops/engines/cupy.py", "cupy engines"),
    ("src/maxops/engines/interchange.py", "interchange dispatch engines rare_calls contracts torch"),
    ("src/maxops/engines/native.py", f"environment memory bindings out_of_memory {CALLS}"),
    ("src/maxops/engines/*", f"{CALLS} columns cupy"),
    # Without other tests, because processes with JAX's threads cannot fork.
    ("src/maxops/compat/jax.py", "compat_jax extras imports doctests"),
    ("src/maxops/compat/*", "compat_[!j]* extras imports doctests"),
    ("src/maxops/plan/*", CALLS),
    ("src/maxops/ops.py", CALLS),
    ("src/maxops/calls.py", CALLS),
    ("src/maxops/shapes.py", f"{CALLS} reference compat_array_api compat_numpy"),
    ("src/maxops/dtypes.py", f"{CALLS} order"),
    ("src/maxops/order.py", "integer_keys torch_any_device engines jax doctests"),
    ("src/maxops/reference.py", f"{CALLS} reference order"),
    ("src/maxops/model.py", "model* onnx_reference openvino_ir operator_versions doctests"),
    ("src/maxops/onnx/from_torch.py", "torch_onnx"),
    ("src/maxops/onnx/external.py", "structure rewrite model checker_onnx onnxruntime doctests"),
    ("src/maxops/onnx/suite.py", "onnx_backend conformance_folder cli"),
    (
        "src/maxops/onnx/*",
        "model* onnx_* scatter_models rewrite structure long_values checker_onnx checker_malformed extras imports "
        "doctests",
    ),
    ("src/maxops/onnxruntime/*", "onnxruntime model_versions extras imports"),
    ("src/maxops/openvino/*", "openvino* rewrite long_values checker_ir extras imports doctests"),
    ("src/maxops/checker/*", "checker* long_values extras imports doctests"),
    ("src/maxops/conformance/page/*", "conformance_page* conformance_texts"),
    ("src/maxops/conformance/*", "conformance_[!p]* conformance_page imports"),  # without the tests in a browser
    (
        "src/maxops/cli/*",
        "cli* command_walk conformance_command conformance_options checker_command program terminal paths",
    ),
    ("src/maxops/threads.py", "threads without_posix rare_calls doctests"),
    ("src/maxops/threadpool_controller.py", "threads extras"),
    ("src/maxops/evidence/*", "evidence"),
    ("src/maxops/bench/*", "bench conformance_runtimes"),
    ("src/maxops/machine.py", "environment cli*"),
    ("src/maxops/spec.py", f"{CALLS} model operator_versions checker_rules conformance_cases"),
)  # fmt: skip
# The tests of files that any call may use.
OTHERS = (
    f"{CALLS} cli program package without_posix extras counted environment conformance_saved larger_than_memory "
    "out_of_memory"
)
# Files without branches, and files of benchmarks and tests, which are not part of a call.
LEFT_OUT = (
    "src/maxops/bench/*", "*/__main__.py", "native/testing/*", "native/limits.cpp", "*_abi.h", "native/kernels/isa.h",
    "native/bindings/numpy.h", "native/kernels/*.cpp", "native/bindings/sources.*", "native/core_table.*",
)  # fmt: skip


def tests_of(file: str) -> list[str]:
    """Return the paths of the test files for a source file, from the root."""
    names = next((names for pattern, names in TABLE if fnmatch(file, pattern)), OTHERS)
    paths = {path for name in names.split() for path in (ROOT / "tests").rglob(f"test_{name}.py")}
    return sorted(str(path.relative_to(ROOT)) for path in paths)


def files(patterns: Sequence[str]) -> list[str]:
    """Return the files that match the patterns or, without patterns, all files to mutate."""
    found = (path for kind in ("native/**/*.cpp", "native/**/*.h", "src/maxops/**/*.py") for path in ROOT.glob(kind))
    every = sorted(path.relative_to(ROOT).as_posix() for path in found)
    if not patterns:
        return [file for file in every if not any(fnmatch(file, pattern) for pattern in LEFT_OUT)]
    named = [file for file in every if any(fnmatch(file, f"*{Path(pattern)}*") for pattern in patterns)]
    if not named:
        raise SystemExit(f"there is no file {' '.join(patterns)}")
    return named
