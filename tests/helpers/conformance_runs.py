"""Runs of fictitious runtimes in the format of the conformance kit."""

from __future__ import annotations

import numpy as np

from maxops import dtypes, spec
from maxops.conformance.result import SCHEMA, Elements, Finding, Message, Reproducer, Run, Verdict, elements
from maxops.dtypes import DType
from maxops.plan import Array
from maxops.spec import Clause, Spec

KIT = {"maxops": "0.1.0", "cases": 0, "quick": True, "only": "ONNX"}
MACHINE = {"processor": "a made-up processor", "isa": "avx2", "threads": 2, "system": "Linux", "python": "3.11.2"}
# Text that a malicious runtime could return, with markup and invalid characters.
HOSTILE = "</script><img src=x onerror=\"document.title='harmed'\"><b>bold</b>\ud800\u2028\x1b[2J\x00]]>"
SENTENCES = ("in every lane of lengths 1 to 8", "all pairs of the boundary pool", "in the last of 130")


def found(run: Run, case: str) -> Finding:
    """Return the finding of a case."""
    return next(finding for finding in run["findings"] if finding["case"] == case)


class Maker:
    """Builds a run. By default, every case of the given rows conforms."""

    def __init__(self, runtime: str, version: str, rows: tuple[Spec, ...] = spec.ALL) -> None:
        self.run: Run = {
            "schema": SCHEMA,
            "runtime": runtime,
            "version": version,
            "kit": KIT,
            "machine": MACHINE,
            "seconds": 12.5,
            "cases": {},
            "clauses": {},
            "notes": [],
            "reasons": {},
            "findings": [],
            "reproducers": [],
        }
        self._rows: dict[str, tuple[Spec, Clause, DType]] = {}
        for row in rows:
            for clause in row.clauses:
                for dtype in (row.dtypes[0], *row.dtypes[3:6], row.dtypes[-1]):
                    for sentence in SENTENCES if clause.id.endswith("value") else SENTENCES[:1]:
                        case = f"{clause.id}/{dtype}/{sentence.replace(' ', '-')}"
                        self.run["cases"][case] = "conforms"
                        self._rows[case] = row, clause, dtype
        self.run["kit"] = KIT | {"cases": len(self.run["cases"])}

    def cases(self, part: str) -> list[str]:
        """Return the cases whose ids contain a text."""
        named = [case for case in self.run["cases"] if part in case]
        assert named, f"no case with {part!r}"
        return named

    def reproducer(
        self,
        inputs: dict[str, Array],
        expected: Elements | Message,
        actual: Elements | Message,
        attributes: dict[str, object] | None = None,
        *,
        reproduced: bool = True,
    ) -> int:
        """Add a reproducer, and return its number."""
        lines = ["import numpy as np", f"import {self.run['runtime']}", ""]
        lines += [f"{name} = np.{array.dtype}({array.tolist()})" for name, array in inputs.items()]
        lines += [
            f"actual = {self.run['runtime']}.maximum({', '.join(inputs)})",
            "print(actual, actual.tobytes().hex())",
        ]
        made: Reproducer = {
            "inputs": {name: elements(array) for name, array in inputs.items()},
            "attributes": attributes or {},
            "expected": expected,
            "actual": actual,
            "script": "\n".join(lines) + "\n",
            "reproduced": reproduced,
            "output": "[0.0] 00000000\n",
        }
        self.run["reproducers"].append(made)
        return len(self.run["reproducers"]) - 1

    def find(
        self,
        case: str,
        verdict: Verdict,
        expected: Elements | Message,
        actual: Elements | Message,
        reproducer: int | None = None,
        *,
        clause: str = "",
        message: str = "the bits differ",
        index: list[int] | None = None,
    ) -> Finding:
        """Add a finding for a case."""
        row, own, _ = self._rows[case]
        broken = next(each for each in row.clauses if each.id == (clause or own.id))
        finding: Finding = {
            "case": case,
            "clause": broken.id,
            "verdict": verdict,
            "message": message,
            "expected": expected,
            "actual": actual,
            "feed": 0,
            "index": index,
            "reproducer": reproducer,
        }
        self.run["cases"][case] = verdict
        self.run["clauses"][broken.id] = broken.statement
        self.run["findings"].append(finding)
        return finding

    def leave(self, case: str, reason: str) -> None:
        """Mark a case as not applicable."""
        self.run["cases"][case] = "not applicable"
        self.run["reasons"][case] = reason


def _array(dtype: DType, *values: float) -> Elements:
    return elements(np.array(values, dtype.numpy))


def swift() -> Run:
    """Return a run of a runtime with a fault of every kind."""
    maker = Maker("swiftmax", "2.1.0")
    zeros = np.array([0.0], "float32"), np.array([-0.0], "float32")
    zero = maker.reproducer(dict(zip("ab", zeros[::-1], strict=True)), elements(zeros[0]), elements(zeros[1]))
    for case in maker.cases("ONNX.Max-13.nan/"):
        dtype = maker._rows[case][2]
        if dtype.kind == "float" and case.startswith("ONNX"):
            maker.find(case, "permitted", _array(dtype, 0.0), _array(dtype, -0.0), zero, message="ONNX orders no zeros")
    for case in maker.cases("SONNX.Max.value/float"):
        dtype = maker._rows[case][2]
        maker.find(case, "violates", _array(dtype, 0.0), _array(dtype, -0.0), zero, message="-0 where +0 is larger")
    big = np.array([2**53 + 1], "int64"), np.array([2**53], "int64")
    lossy = maker.reproducer(dict(zip("ab", big, strict=True)), elements(big[0]), elements(big[1]))
    for case in maker.cases("ReduceMax-13.value/int"):
        maker.find(
            case, "violates", elements(big[0]), elements(big[1]), lossy, message="computed in float64", index=[0]
        )
    whole = np.arange(12, dtype=np.float32).reshape(3, 4)
    other = whole.copy()
    other[1, 2], other[2, 0] = np.nan, -1
    rows = maker.reproducer(
        {"data": whole, "axes": np.array([0, 1], "int64")},
        elements(whole),
        elements(other),
        {"keepdims": 1},
        reproduced=False,
    )
    for case in maker.cases("ONNX.ReduceMax-18.value/float16"):
        maker.find(case, "violates", elements(whole), elements(other), rows, message="a row is lost", index=[1, 2])
    text: Message = {"text": "an error: axes lie in -r..r-1 [ONNX.ReduceMax-18.axes.range]"}
    taken = maker.reproducer({"data": whole[:1, 0]}, text, elements(whole[0, :1]), {"axes": [7]})
    for case in maker.cases("ReduceMax-18.axes.range/"):
        maker.find(case, "missing error", text, elements(whole[0, :1]), taken, message="axis 7 of rank 1 was taken")
    segment: Message = {"text": "ended by SIGSEGV"}
    for case in maker.cases("OpenVINO.SegmentMax-16.ids/"):
        maker.find(case, "crashes", {"text": "an error [OpenVINO.SegmentMax-16.ids]"}, segment, message="SIGSEGV")
    for case in maker.cases("num_segments.no_ids/"):
        maker.find(
            case,
            "uninitialized memory",
            elements(np.array([], "float32")),
            elements(np.array([3e20], "float32")),
            message="two runs differ",
        )
    for case in maker.cases("SegmentMax-16.data/"):
        maker.find(case, "hangs", {"text": "an error"}, {"text": "nothing within 10 s"}, message="it did not come back")
    for case in maker.cases("SegmentMax-16.ids.shape/int8"):
        maker.find(
            case, "corrupted state", {"text": "an error"}, {"text": "an error, then a crash"}, message="after the error"
        )
    for case in maker.cases("ReduceMax-20.value/"):
        words: Message = {"text": "RuntimeError: no kernel\n  at 0x7f00"}
        maker.find(case, "refuses", elements(whole[0]), words, message="RuntimeError: no kernel")
    for case in maker.cases("ONNX.ReduceMax-13.empty/"):
        gone = elements(np.array([-np.inf], "float32")), elements(np.array([[-3.4028235e38]], "float32"))
        maker.find(case, "violates", *gone, message="another shape")
    for case in maker.cases("SONNX-draft.Max.L/"):
        maker.leave(case, "takes no more than two inputs")
    for case in maker.cases("/real/"):
        maker.leave(case, "has no type real")
    return maker.run


def with_a_larger_call() -> tuple[Run, str]:
    """Return a run in which one case has its own, larger reproducer, and the id of this case."""
    run = swift()
    case = next(case for case in run["cases"] if "ReduceMax-13.value/int8" in case)
    small = run["reproducers"][found(run, case)["reproducer"] or 0]
    larger = {name: elements(np.full(3, 2**53, "int64")) for name in small["inputs"]}
    run["reproducers"].append({**small, "inputs": larger})  # type: ignore[typeddict-item]
    found(run, case)["reproducer"] = len(run["reproducers"]) - 1
    return run, case


def swifter() -> Run:
    """Return a run of the next version: some faults are fixed, one is new, and one has a different wrong result."""
    maker = Maker("swiftmax", "2.2.0")
    for finding in swift()["findings"]:
        if finding["clause"].startswith(("OpenVINO", "ONNX.ReduceMax-20")):
            continue
        actual = elements(np.array([5], "float32")) if "ReduceMax-18.value" in finding["case"] else finding["actual"]
        maker.find(
            finding["case"],
            finding["verdict"],
            finding["expected"],
            actual,
            clause=finding["clause"],
            message=finding["message"],
        )
    for case in maker.cases("ONNX.Max-8.value/float16/"):
        dtype = dtypes.FLOAT16
        maker.find(case, "violates", _array(dtype, 2.0), _array(dtype, 1.0), message="the smaller one")
    return maker.run


def careful() -> Run:
    """Return a run of a runtime that claims only ONNX and has no faults."""
    maker = Maker("carefulmax", "0.9", tuple(row for row in spec.ALL if row.standard != "OpenVINO"))
    for case in maker.cases("consumed_inputs/"):
        maker.leave(case, "takes no attributes")
    return maker.run


def many(count: int) -> Run:
    """Return a run with so many findings that the page must draw them in parts."""
    maker = Maker("manymax", "1")
    row, clause, dtype = maker._rows[maker.cases("ONNX.Max-13.value/int8/")[0]]
    for number in range(count):
        case = f"{clause.id}/{dtype}/number-{number}"
        maker._rows[case] = row, clause, dtype
        maker.find(case, "violates", _array(dtype, number % 100), _array(dtype, -1), message=f"reason {number}")
    return maker.run


def hostile() -> Run:
    run = swift()
    run["runtime"] = run["version"] = HOSTILE
    run["machine"] = {HOSTILE: HOSTILE}
    run["reasons"] = dict.fromkeys(run["reasons"], HOSTILE)
    run["clauses"] = dict.fromkeys(run["clauses"], HOSTILE)
    for finding in run["findings"]:
        finding["message"] = HOSTILE
        finding["actual"] = {"text": HOSTILE}
    for reproducer in run["reproducers"]:
        reproducer["script"] = reproducer["output"] = HOSTILE
        reproducer["inputs"] = {HOSTILE: next(iter(reproducer["inputs"].values()))}
        reproducer["attributes"] = {HOSTILE: HOSTILE}
    return run
