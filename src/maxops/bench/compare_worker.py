"""Times one installation of maxops on request: a process of its own Python runs the benchmark's cases.

Each line on stdin is a request in JSON, and each line on stdout is its answer. The cases and their calls come from this
version of the benchmark. `import maxops` decides which maxops is called.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any
from zlib import crc32

if __name__ == "__main__":  # before anything is imported that might print: that is no answer
    _ANSWERS = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

import numpy as np

import maxops


class Worker:
    """Handles requests: each method is a request, and so is each method of the prepared case's stopwatch."""

    def __init__(self) -> None:
        folder = Path(__file__).parent  # whose bench `maxops.bench` is from now on, whichever maxops is installed
        spec = spec_from_file_location("maxops.bench", folder / "__init__.py", submodule_search_locations=[str(folder)])
        assert spec is not None
        sys.modules["maxops.bench"] = module_from_spec(spec)
        from maxops.bench import grid  # noqa: PLC0415

        self._cases = {case.id: case for case in grid.cases(types=grid.TYPES)}
        self.watch: Any = None
        self._elsewhere: Any = None

    def about(self) -> dict[str, Any]:
        """Return the version and the location of this maxops."""
        folder = str(Path(maxops.__file__).parent)
        return {"folder": folder, "maxops": maxops.__version__, "isa": maxops._native.isa()}

    def prepare(self, case_id: str, anew: int) -> dict[str, Any]:
        """Make a case's arrays in a numbered round; return checksums of the arrays and the result, or an error."""
        from maxops.bench import inputs, libraries, timing  # noqa: PLC0415

        self.watch = None  # its arrays go before the next ones come
        # Which pages of memory arrays have, and so which share places in a cache, changes times by up to 1.4, and
        # the next arrays have those that the last ones gave back: unless these are taken.
        self._elsewhere = np.ones(anew << 20, np.uint8)
        work = inputs.build(self._cases[case_id])
        sums = [crc32(inputs.bits(array).data) for array in (*work.bases, work.ids) if array is not None]
        try:
            candidate = libraries.ours(work)
            result = candidate.result(work.case)
        except Exception as error:  # noqa: BLE001  (an older version may not take the call: that is its figure)
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
