"""The worker process of `maxops bench --compare`. It times one installation of maxops with that installation's Python.

Each line on stdin is a request in JSON, and each line on stdout is its answer. The cases and their calls are those of
this version of the benchmark, and `import maxops` determines which maxops is called.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zlib import crc32

if __name__ == "__main__":  # before the imports, which might print, because stdout is reserved for answers
    _ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

import numpy as np

import maxops


class Worker:
    """Handles requests. A request names a method of this class or of the stopwatch of the prepared case."""

    def __init__(self) -> None:
        folder = Path(__file__).parent  # import `maxops.bench` from this folder, whichever maxops is installed
        spec = spec_from_file_location("maxops.bench", folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        sys.modules["maxops.bench"] = module_from_spec(spec)
        from maxops.bench import grid  # noqa: PLC0415

        self._cases = {case.id: case for case in grid.cases(types=grid.TYPES)}
        self.watch: Any = None
        self._elsewhere: Any = None

    def about(self) -> dict[str, Any]:
        """Return the location, version and instruction set of this maxops."""
        folder = str(Path(maxops.__file__).parent)
        return {"folder": folder, "maxops": maxops.__version__, "isa": maxops._native.isa()}

    def prepare(self, case_id: str, anew: int) -> dict[str, Any]:
        """Build the arrays of a case, and return checksums of the arrays and the result, or an error.

        `anew` is the number of the repetition.
        """
        from maxops.bench import inputs, libraries, timing  # noqa: PLC0415

        self.watch = None  # frees its arrays before the next ones are allocated
        # The memory pages of arrays determine which arrays share cache sets, which changes times by a factor of up to
        # 1.4. New arrays would get the pages that were just freed, so this array occupies these pages.
        self._elsewhere = np.ones(anew << 20, np.uint8)
        work = inputs.build(self._cases[case_id])
        sums = [crc32(inputs.bits(array).data) for array in (*work.bases, work.ids) if array is not None]
        try:
            candidate = libraries.ours(work)
            result = candidate.result(work.case)
        except Exception as error:  # noqa: BLE001  (an older version may not support the call)
            return {"error": timing.one_line(error)}
        self.watch = timing.Stopwatch(candidate)
        return {"inputs": sums, "result": [str(result.dtype), result.shape, crc32(inputs.bits(result).data)]}


def serve(worker: Worker) -> None:
    """Answer requests until stdin ends."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        method = getattr(worker if hasattr(worker, name) else worker.watch, name)
        print(json.dumps(method(*arguments)), file=_ANSWERS, flush=True)


if __name__ == "__main__":
    serve(Worker())
