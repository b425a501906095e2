"""Runs the Python programs of tests in new processes."""

from __future__ import annotations

import os
import subprocess
import sys

HANGS_AFTER = 120.0  # seconds; not a measurement: it ends a process that hangs


def run(code: str, *arguments: str, warnings: str = "default", **variables: str) -> str:
    """Run code in a new process, which must succeed, and return its output; `variables` are of its environment."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-W", warnings, "-c", code, *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
