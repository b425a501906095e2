"""Runs the Python programs of tests in new processes."""

from __future__ import annotations

import os
import subprocess
import sys

HANGS_AFTER = 120.0  # seconds after which a process is ended, because it hangs


def run(code: str, *arguments: str, warnings: str = "", **variables: str) -> str:
    """Run code in a new process, which must succeed, and return its output. `variables` are environment variables.

    With a filter of `warnings`, the process must also leave stderr empty, because Python only prints exceptions that it
    ignores, such as those in threads and destructors.
    """
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", warnings or "default", "-c", code, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (warnings and done.stderr), done.stderr
    return done.stdout
