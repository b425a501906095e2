"""Injects handwritten faults into the code of users' calls, and checks that a test detects each.

    PYTHONPATH=tests python -m mutants.faults [WORD ...]      faults whose file or effect contains a word; default: all

Each fault is one edit of one file, in a copy of the tree. The tests that table.py lists for the file run until one
fails. This test must pass without the fault. Prints a line for each fault. The exit code is 1 if one is not detected.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import running, table
from .native import Build
from .running import ROOT


@dataclass(frozen=True)
class Fault:
    """An edit of a file that contains the old text exactly once."""

    file: str  # relative to src/maxops/, or to the root if it is native
    effect: str
    old: str
    new: str

    @property
    def path(self) -> str:
        return self.file if self.file.startswith("native/") else f"src/maxops/{self.file}"

    def put(self) -> str:
        """Return the file's text with the fault."""
        text = (ROOT / self.path).read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"{self.path} has the text of '{self.effect}' {count} times")
        return text.replace(self.old, self.new)


# By file (relative to src/maxops/, or to the root if it is native): the effect, the old text and the new text.
EDITS: dict[str, tuple[tuple[str, str, str], ...]] = {
    # ------------------------------------------------------------------ arguments
    "native/bindings/operators.cpp": (
        ("a fill_value keeps its NaN's bits",
         "call->fill = canonical(type, item.bytes);", "call->fill = bits_of(item.bytes, kernels.itemsize);"),
        ("an initial is read as another parameter",
         "read_initial(given[Of::initial], type", "read_initial(given[Of::fill_value], type"),
        ("indices are taken from another thread's shape",
         "    release.own(&call.data);\n    release.own(&call.indices);\n    const Framework", "    const Framework"),
        ("a call's shapes are not kept while others run", "    release.own(inputs, count);\n", ""),
        ("a keyword given twice is taken", " || values_[place] != nullptr) return false;", ") return false;"),
        ("the ids are left behind where they are widened",
         "        widened.made.drop();\n        return result;\n", "        return result;\n"),
        ("indices are left behind where a call fails",
         "    if (fault) {\n        indices.drop();\n", "    if (fault) {\n"),
        ("results given together lose a reference",
         "PyTuple_SetItem(all, place++, given);", "PyTuple_SetItem(all, place++, Py_NewRef(given));"),
        ("offsets and ids are both taken",
         "if (call.by_offsets && (is_given(given[Of::segment_ids]) || !call.is_sorted))",
         "if (call.by_offsets && !call.is_sorted)"),
        ("an input of another type is taken where it is not the second",
         "if (type >= 0 && views[k].type != type) return kNotHandled;",
         "if (k == 1 && type >= 0 && views[k].type != type) return kNotHandled;"),
    ),
    "native/bindings/tensors.cpp": (
        ("a tensor is left behind where it is put in C order", "    ordered.drop();\n", ""),
        ("a tensor is not asked what it is beside its elements", "|| !other->is_plain(args[k])) return;", ") return;"),
    ),
    "native/bindings/output.cpp": (
        ("results in another order than out's are not copied into a tensor",
         "!made_ || copy_results(view(), given_);", "true;"),
        ("an output is no longer looked at after a call", "(is_as_planned() && PyArray_CopyInto", "(PyArray_CopyInto"),
    ),
    "native/bindings/tensors.h": (
        ("a tensor's memory is borrowed while others run",
         "return framework_ != nullptr && release.lets_others_run();", "return false;"),
    ),
    "native/bindings/arguments.cpp": (
        ("a list of axes is written past its end", "        if (i == kMaxRank) return false;\n", ""),
        ("an array of axes is written past its end", "        if (size > kMaxRank) return false;\n", ""),
        ("of a scalar of eight bytes four are read",
         "std::memcpy(item->bytes, scalar_bytes(object), itemsize);",
         "std::memcpy(item->bytes, scalar_bytes(object), std::min<std::size_t>(itemsize, 4));"),
        ("an integer of four bytes is read as eight",
         "return read_bits(kernels, bits_of(scalar_bytes(object), kernels.itemsize), value);",
         "return read_bits(kernels, bits_of(scalar_bytes(object), 8), value);"),
        ("a float is cut, not rounded", "        kept += rest > half || (rest == half && kept % 2 == 1);\n", ""),
        ("an item of a list is left behind", "        Py_DECREF(item);\n", ""),
    ),
    # ------------------------------------------------------------------ memory, cache, threads, instruction sets
    "native/bindings/memory.cpp": (
        ("an array ends at its last element's first byte",
         "        last += kernels_of(array.type).itemsize;\n", "        last += 1;\n"),
        ("an output that overlaps itself over two axes is written through",
         "if (axes[i].stride < within) return false;",
         "if (axes[i].stride < static_cast<std::ptrdiff_t>(kernels_of(array.type).itemsize)) return false;"),
        ("NumPy's handler is not put back", "PyDataMem_SetHandler(before)", "Py_NewRef(before)"),
        ("a type is left behind where an output is too large",
         "        Py_DECREF(descr);\n        PyErr_Format", "        PyErr_Format"),
        ("an output's own order is another array's",
         "a.data == b.data && a.swapped == b.swapped && a.has_shape_of(b)", "a.data == b.data && a.has_shape_of(b)"),
    ),
    "native/drivers/cache.cpp": (
        ("a block that is too large is taken again and again",
         "block.size >= needed && block.size <= needed + needed / 4", "block.size >= needed"),
        ("a block that is too small is taken",
         "block.size >= needed && block.size", "block.size >= needed / 2 && block.size"),
        ("a mapping is left behind",
         "            unmap_pages(block.data, block.size);\n            return;", "            return;"),
        ("a resize copies past the old array",
         "std::memcpy(moved, data, std::min(cache().size_of(data), size));", "std::memcpy(moved, data, size);"),
    ),
    "native/drivers/system.cpp": (
        ("what is cut off a mapping stays mapped", "    munmap(start + head + size, kHugePageBytes - head);\n", ""),
    ),
    "native/drivers/threads.cpp": (
        ("a caller leaves while others work", "        idle_.wait(lock, is_alone);\n", ""),
        ("a worker takes a signal", "            const SignalsBlocked blocked;\n", ""),
    ),
    "native/bindings/gradients.cpp": (
        ("every maximum has the gradient of the first", "& all_ones_if<Word>(held[i] == 0)", ""),
        ("a row of no segment keeps what its memory held", "std::fill(to[k], to[k] + rows.elements(), 0);", "{}"),
        ("a result is left behind where one fails", "for (Made& each : of) each.drop();", "of[0].drop();"),
    ),
    "engines/torch/plain.py": (
        ("the core has gradients that have gradients",
         "return not (torch.is_grad_enabled() or modes_are_active())", "return not modes_are_active()"),
    ),
    "engines/torch/eager.py": (
        ("axes that change until backward", "tuple(axes) if type(axes) is list else axes", "axes"),
    ),
    "native/drivers/dispatch.cpp": (
        ("a feature of the processor is not looked at", '__builtin_cpu_supports("bmi2")', "true"),
    ),
    "native/kernels/kernels.h": (
        ("no fence follows streaming stores", "    __builtin_ia32_sfence();\n", ""),
    ),
    "native/bindings/xla.cpp": (
        ("an index is cut to 16 bits",
         "return static_cast<std::int32_t>(index);", "return static_cast<std::int16_t>(index);"),
    ),
    "native/bindings/onnxruntime.cpp": (
        ("a session leaves its attributes behind",
         "const Owned attributes = attributes_of(*api, info);",
         "Owned& attributes = *new Owned(attributes_of(*api, info));"),
    ),
    # ------------------------------------------------------------------ engines
    "engines/jax/maxima.py": (
        ("the axis of a vmap within a vmap", "after_rows = ids.ndim  #", "after_rows = 1  #"),
        ("an input that is not mapped is not broadcast",
         "whole = data if data_is_mapped else jnp.broadcast_to(data, (size, *data.shape))", "whole = data"),
    ),
    "engines/columns.py": (
        ("nulls of the first Arrow column alone", "sum(part.null_count for part in parts)", "parts[0].null_count"),
        ("nulls of the first pandas column alone",
         "value.iloc[:, may_hold_nulls]", "value.iloc[:, may_hold_nulls[:1]]"),
    ),
    "engines/torch/vmap.py": (
        ("an initial for each member is refused",
         "    if dims.scalars:  # a different initial value for each member\n"
         "        return _one_by_one(info, call, dims, op)\n",
         ""),
        ("axes that count from the end", "axis % rank + 1 for axis", "axis + 1 for axis"),
    ),
    "engines/torch/gradients.py": (
        ("a gradient is not summed over an axis of size 1",
         "if axis < extra or tensor.shape[axis - extra] != grad.shape[axis]]", "if axis < extra]"),
        ("a tangent that is a view of its input", "return tangent.clone()", "return tangent"),
    ),
    "engines/torch/memory.py": (
        ("a negated tensor is read without its sign",
         "if plain.requires_grad or plain.is_neg():", "if plain.requires_grad:"),
    ),
    "engines/xarray.py": (
        ("named dimensions are dropped, though they are to be kept",
         "call = call._replace(axes=axes, dim=None)", "call = call._replace(axes=axes, dim=None, keepdims=False)"),
    ),
    "engines/dask/chunks.py": (
        ("blocks of unknown size are not compared",
         "return mine, whole or open_ended[0], blocks > 1", "return mine, whole or open_ended[0], blocks > 2"),
    ),
    # ------------------------------------------------------------------ models, checker, judge
    "conformance/session.py": (
        ("one refusal is taken for a type that is missing",
         'if is_asked and all(each.outcome == "refused" for each in group):',
         'if is_asked and any(each.outcome == "refused" for each in group):'),
    ),
    "conformance/judge.py": (
        ("a result that differs is permitted where one kind is",
         'key=lambda ruling: (ruling[0].verdict == "permitted",',
         'key=lambda ruling: (ruling[0].verdict != "permitted",'),
    ),
    "conformance/attempt.py": (
        ("a refusal in the second run is forgotten",
         'if not self._is_refusal or error.kind != "refused":', 'if not self._is_refusal and error.kind != "refused":'),
    ),
    "conformance/compare.py": (
        ("a known fault of another verdict is known",
         'known.get(finding["case"]) != finding["verdict"]', 'finding["case"] not in known'),
    ),
    "checker/rules_segment_max.py": (
        ("the type of num_segments is not looked at", "node.inputs[1:3] if", "node.inputs[1:2] if"),
        ("an id as large as the number of segments", "int(ids.max(initial=-1)) + 1)", "int(ids.max(initial=-1)))"),
    ),
    "checker/report.py": (
        ("a model with nodes outside the standard passes",
         "return not self.broken and not (self.standard is not None and self.outside)", "return not self.broken"),
    ),
    "openvino/layers.py": (
        ("an attribute's other spelling is unknown",
         'FILL_NAMES = ("fill_mode", "empty_segment_value")', 'FILL_NAMES = ("fill_mode",) * 2'),
        ("keep_dims as a number", 'return text in ("true", "1")', 'return text == "true"'),
        ("the least size of a range is taken", "return least if most and int(most) == least else None", "return least"),
    ),
    "onnx/nodes.py": (
        ("an attribute given twice", "        seen.add(attribute.name)\n", ""),
    ),
    "model.py": (
        ("an input's fixed sizes are not looked at", "not isinstance(declared, int) or declared == size", "True"),
    ),
}  # fmt: skip
FAULTS = tuple(Fault(file, *edit) for file, edits in EDITS.items() for edit in edits)


class Judge:
    """Runs the tests of a file on a tree with a fault."""

    def __init__(self, folder: Path) -> None:
        self.tree = running.make_tree(folder, running.installed())
        self.build: Build | None = None
        self.broken: set[str] = set()  # tests that fail without a fault

    def write(self, path: str, text: str) -> None:
        """Write a file of the tree, and rebuild the native modules if it is native."""
        if not path.startswith("native/"):
            running.write(self.tree, path, text)
            return
        if self.build is None:
            self.build = Build(self.tree, "memory.cpp")
            self.compile()
        (self.tree / path).write_text(text, encoding="utf-8")
        self.compile()

    def compile(self) -> None:
        assert self.build is not None
        done = self.build.run("cmake", "--build", str(self.build.place), "-j2")
        if done.returncode:
            raise RuntimeError(done.stdout[-3000:] + done.stderr[-3000:])
        for library in self.build.place.glob("_*.so"):
            shutil.copy(library, self.tree / "src" / "maxops")

    def run(self, tests: Sequence[str]) -> str:
        """Run tests and return the first test that fails, or the way in which the process crashes, or ""."""
        # Tests that also fail without a fault are deselected.
        options = [f"--deselect={name}" for name in self.broken]
        pid = running.fork(self.tree, lambda: running.run_tests(self.tree, [*tests, *options], (), None))
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        running.end(pid)
        if failed := running.finished(self.tree).failed:
            return failed[0]
        return "" if code == 0 else running._fate(code, False, ()).removeprefix("killed: ")

    def noticed_by(self, fault: Fault) -> tuple[str, float]:
        """Return the test that detects a fault, and the seconds until it does."""
        tests = table.tests_of(fault.path)
        sound = (ROOT / fault.path).read_text(encoding="utf-8")
        while True:
            self.write(fault.path, fault.put())
            began = time.monotonic()
            noticed = self.run(tests)
            seconds = time.monotonic() - began
            self.write(fault.path, sound)
            if "::" not in noticed or not (alone := self.run([noticed])):
                return noticed, seconds
            self.broken.add(noticed if "::" in alone else alone)


def main() -> int:
    words = sys.argv[1:]
    asked = [each for each in FAULTS if not words or any(word in f"{each.path} {each.effect}" for word in words)]
    unseen = 0
    with tempfile.TemporaryDirectory(prefix="maxops-faults-") as folder:
        judge = Judge(Path(folder) / "tree")
        for fault in asked:
            noticed, seconds = judge.noticed_by(fault)
            unseen += not noticed
            print(f"{seconds:5.0f} s  {fault.path}: {fault.effect}: {noticed or 'NOT NOTICED'}", flush=True)
    print(f"{len(asked) - unseen} of {len(asked)} are noticed")
    return int(unseen > 0)


if __name__ == "__main__":
    sys.exit(main())
