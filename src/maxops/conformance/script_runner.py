"""Runs scripts one after the other, and appends the stdout of each to a file as a line of JSON.

The arguments are the file and the scripts. The file is not stdout, because threads and native code of a runtime also
print there. This file is run by its path rather than with `python -m`, which would import maxops, because the
scripts must not depend on maxops.
"""

import contextlib
import io
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

if __name__ == "__main__":
    _process, _results = os.getpid(), Path(sys.argv[1])
    for _path in sys.argv[2:]:
        _printed = io.StringIO()
        with contextlib.redirect_stdout(_printed):
            try:
                runpy.run_path(_path, run_name="__main__")
            except BaseException as _error:  # noqa: BLE001  (the error is part of the output)
                print(traceback.format_exception_only(_error)[0].rstrip())
        if os.getpid() != _process:  # the runtime forked, and its child returned
            os._exit(1)
        with _results.open("a", encoding="utf-8") as _file:
            _file.write(json.dumps(_printed.getvalue()) + "\n")
