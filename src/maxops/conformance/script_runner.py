"""Runs scripts one after the other, and prints the stdout of each as a line of JSON.

This module is started as a file, not as a module of maxops, because the scripts must show the runtime alone.
"""

import contextlib
import io
import json
import runpy
import sys
import traceback

MARK = "script: "  # marks the runner's lines, because threads and native code of a runtime also print to stdout

if __name__ == "__main__":
    for _path in sys.argv[1:]:
        _printed = io.StringIO()
        with contextlib.redirect_stdout(_printed):
            try:
                runpy.run_path(_path, run_name="__main__")
            except BaseException as _error:  # noqa: BLE001  (the error is part of the output)
                print(traceback.format_exception_only(_error)[0].rstrip())
        print("\n" + MARK + json.dumps(_printed.getvalue()), flush=True)
