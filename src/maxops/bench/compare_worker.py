"""One install of maxops, timed on request: a process of its own Python, with the cases of the bench beside this file.

Each line on stdin is a request, each line on stdout its answer, in JSON. The cases and how they are called are this
version's; what is called is whatever `import maxops` finds.
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


def serve(requests: Any, answers: Any) -> None:
    """Answer until stdin ends."""
    folder = Path(__file__).parent  # whose bench `maxops.bench` is from now on, whichever maxops is installed
    spec = spec_from_file_location("maxops.bench", folder / "__init__.py", submodule_search_locations=[str(folder)])
    assert spec is not None
    sys.modules["maxops.bench"] = module_from_spec(spec)
    from maxops.bench import environment, grid, libraries  # noqa: PLC0415
    from maxops.bench.inputs import bits, build  # noqa: PLC0415
    from maxops.bench.timing import Stopwatch, one_line  # noqa: PLC0415

    cases = {case.id: case for case in grid.cases(types=grid.TYPES)}
    watch: Any = None
    elsewhere: Any = None

    def prepare(case_id: str, anew: int) -> dict[str, Any]:
        nonlocal watch, elsewhere
        watch = None  # its arrays go before the next ones come
        # Which pages of memory arrays have, and so which share places in a cache, changes times by up to 1.4, and
        # the next arrays have those that the last ones gave back: unless these are taken.
        elsewhere = np.ones(anew << 20, np.uint8)
        work = build(cases[case_id])
        inputs = [crc32(bits(array).data) for array in (*work.bases, work.ids) if array is not None]
        try:
            candidate = libraries.ours(work)
            result = candidate.result(work.case)
        except Exception as error:  # noqa: BLE001  (an older version may not take the call: that is its figure)
            return {"error": one_line(error)}
        watch = Stopwatch(candidate)
        return {"inputs": inputs, "result": [str(result.dtype), result.shape, crc32(bits(result).data)]}

    for line in requests:
        request = json.loads(line)
        if "case" in request:
            answer = prepare(request["case"], request["anew"])
        elif "warm_up" in request:
            answer = {"seconds": watch.warm_up(request["warm_up"])}
        elif "sample" in request:
            answer = {"seconds": watch.seconds()}
        else:
            answer = {"folder": str(Path(maxops.__file__).parent), **environment.machine(maxops.get_num_threads())}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    serve(sys.stdin, _ANSWERS)
